"""explain: who owns a field, which line and commit asked for it, and whether it drifted, on a real cluster and Git server."""

from __future__ import annotations

import json
import re
import subprocess
import time

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests import yaml_text

WEB = """\
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata:
      name: web
    data:
      colour: COLOUR
      size: "1"
---
apiVersion: v1
kind: Secret
metadata:
  name: login
stringData:
  password: s3cr3t-one
"""


@pytest.fixture
def shop(git_server, follow, daemon, memcached):
    """A Sync that has applied two commits, suspended; shop.shas are theirs."""
    first = git_server.push(
        {"web.yaml": WEB.replace("COLOUR", "red"), "cache.yaml": memcached("cache", size=2)}, "First shop"
    )
    sync = follow(git_server.url)
    sync.until_synced(first)
    second = git_server.push(
        {"web.yaml": WEB.replace("COLOUR", "green")}, "Paint it green", author="Ada <ada@localhost>"
    )
    sync.until_synced(second)
    sync.change(suspend=True)
    sync.until("Suspended")
    return type("Shop", (), {"sync": sync, "shas": (first, second)})


def test_one_field_is_explained_in_full(plugin, shop, cluster, namespace):
    cluster.edit("ConfigMap", "web", {"data": {"colour": "blue"}})
    told = plugin("explain", "cm/web.data.colour")
    assert told.status == 0, told.err
    lines = [" ".join(text.split()) for text in told.out.splitlines()]
    assert lines[0] == f".data.colour of ConfigMap {namespace}/web"
    assert lines[1:3] == ['live "blue"', 'wanted "green", web.yaml:9']
    assert lines[3].startswith("owner by-hand, by update, ")
    assert lines[4].startswith(f"commit {shop.shas[1][:7]} by Ada, ")
    assert lines[4].endswith("ago: Paint it green")
    assert lines[5:] == [
        f"object member of Sync {namespace}/shop",
        "verdict drift; it stays until the suspended Sync is resumed",
    ]


def test_a_commit_that_nobody_can_read_is_named_without_an_author(plugin, git_server, follow, daemon):
    first = git_server.push({"web.yaml": WEB.replace("COLOUR", "red")})
    sha = git_server.push({"web.yaml": WEB.replace("COLOUR", "green")})
    git = ["git", f"--git-dir={git_server.folder}"]
    body = f"tree {{}}\nparent {first}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> {'9' * 14} +0000\n\nPaint\n"

    def run(*words, **options):
        return subprocess.run([*git, *words], text=True, capture_output=True, check=True, **options).stdout.strip()

    body = body.format(run("rev-parse", f"{sha}^{{tree}}"))
    odd = run("hash-object", "-t", "commit", "-w", "--literally", "--stdin", input=body)
    run("update-ref", "refs/heads/main", odd)
    follow(git_server.url).until_synced(git_server.push({"README.md": "after it"}))
    told = plugin("explain", "cm/web.data.colour")
    assert re.search(rf"^ *commit +{odd[:7]}, \d+d ago$", told.out, re.MULTILINE), told.out


def test_all_fields_show_those_that_differ_first(plugin, shop, cluster):
    cluster.edit("ConfigMap", "web", {"data": {"size": "9", "extra": "x"}})
    _, asked, count, _, group, first, *rest = plugin("explain", "configmap/web").out.splitlines()
    assert asked.split(", last changed by ")[0].endswith("/shop, from web.yaml:4")
    assert f"last changed by {shop.shas[1][:7]} by Ada" in asked
    assert count == "1 field differs from the desired state"
    assert group.startswith("drift   by-hand, ")
    assert first == '        .data.size = "9", to be "1"'
    assert rest[0].startswith("same    kubectl-reconcile, ")
    assert '        .data.colour = "green"' in rest
    other = next(at for at, text in enumerate(rest) if text.startswith("other   by-hand, "))
    assert rest[other + 1] == '        .data.extra = "x"'
    titles, row, *_ = plugin("explain", "cm/web", "-o", "wide").out.splitlines()[4:]
    assert titles.split() == ["STATE", "OWNER", "SINCE", "FILE", "COMMIT", "FIELD"]
    assert row.split()[3:5] == ["web.yaml:10", shop.shas[0][:7]]


def test_a_change_in_git_is_no_drift_and_names_its_commit(plugin, shop, git_server):
    third = git_server.push({"web.yaml": WEB.replace("COLOUR", "black")}, "Paint it black")
    [field] = json.loads(plugin("explain", "cm/web", ".data.colour", "-o", "json").out)["fields"]
    assert (field["state"], field["live"], field["wanted"], field["line"]) == ("git", "green", "black", 9)
    assert field["commit"]["sha"] == third
    [size] = json.loads(plugin("explain", "cm/web.data.size", "-o", "json").out)["fields"]
    assert (size["state"], size["commit"]["sha"]) == ("same", shop.shas[0])


def test_a_field_that_git_dropped_names_the_commit_that_dropped_it(plugin, shop, git_server):
    third = git_server.push({"web.yaml": WEB.replace("      colour: COLOUR\n", "")}, "No colour")
    [field] = json.loads(plugin("explain", "cm/web.data.colour", "-o", "json").out)["fields"]
    assert (field["state"], field["live"], field["commit"]["sha"]) == ("git", "green", third)
    assert "wanted" not in field


def test_a_child_is_explained_by_its_module(plugin, shop, namespace):
    told = plugin("explain", "deploy/cache.spec.replicas").out
    assert "wanted   2, by module memcached" in told
    assert f"for Memcached.cache.example.com {namespace}/cache, of Sync {namespace}/shop" in told


def test_what_a_controller_made_is_said_to_be_its(plugin, shop, cluster, eventually):
    eventually(lambda: cluster.list("Pod"), "the cache has a pod")
    pod = cluster.list("Pod")[0]["metadata"]["name"]
    told = plugin("explain", f"pod/{pod}")
    assert told.status == 0
    assert "made by ReplicaSet/cache-" in told.out


def test_an_object_of_nobody_is_explained_by_its_owners(plugin, cluster):
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a.spec.b"}, "data": {"x": "evil \x1b[31m"}}
    )
    told = plugin("explain", "cm/a.spec.b.data")
    assert told.status == 0, told.err
    assert "belongs to no Sync" in told.out
    assert r"evil \\u001b[31m" in told.out or r"evil \u001b[31m" in told.out
    assert "\x1b" not in told.out


def test_secrets_stay_secret_unless_asked_for(plugin, shop):
    for words in (
        ["explain", "secret/login"],
        ["explain", "secret/login", "-o", "json"],
        ["explain", "secret/login.data"],
    ):
        told = plugin(*words)
        assert told.status == 0
        assert "***" in told.out
        assert "s3cr3t" not in told.out
        assert "czNjcjN0" not in told.out
    assert "czNjcjN0" in plugin("explain", "secret/login", "--show-secrets").out


def test_without_git_the_cluster_still_explains(plugin, shop, tmp_path):
    shop.sync.change(source={"git": {"url": "http://127.0.0.1:1/gone.git"}})
    told = plugin("explain", "cm/web", "--cache-dir", str(tmp_path))
    assert (told.status, ".data.colour" in told.out) == (0, True)
    assert "nothing differs" not in told.out
    assert told.err.startswith("warning: can't read files and commits: ")
    one = plugin("explain", "cm/web.data.colour", "--cache-dir", str(tmp_path))
    facts = facts_of(one)
    assert (facts["wanted"], facts["applied"]) == ("not known: Git can't be read", '"green"')
    assert "no drift" not in one.out


REFUSED = {
    "no such kind": ("nonsense/web", ExitStatus.USAGE, "the cluster serves no kind nonsense"),
    "a kind misspelt": ("configmapp/web", ExitStatus.USAGE, "did you mean configmap"),
    "no name": ("configmap", ExitStatus.FAILED, "write KIND/NAME"),
    "no such object": ("configmap/nobody.data.x", ExitStatus.FAILED, 'configmaps "nobody" not found'),
    "no such field": ("configmap/kube-root-ca.crt.data.nothing", ExitStatus.USAGE, "has no such field"),
    "a path that is none": ("configmap/kube-root-ca.crt.data[[", ExitStatus.USAGE, "can't be read at '[['"),
}


@pytest.mark.parametrize(("text", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_explain_refuses(plugin, cluster, eventually, text, status, message):
    eventually(lambda: cluster.get("ConfigMap", "kube-root-ca.crt"), "the namespace has its CA")
    refused = plugin("explain", text)
    assert (refused.status, refused.out, message in refused.err) == (status, "", True)


def test_a_set_whose_sync_cannot_be_seen_is_said_to_be_one(plugin, cluster, tmp_path, config_map):
    (tmp_path / "web.yaml").write_text(config_map("web", colour="red"))
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    assert "member of Sync " in plugin("explain", "cm/web").out
    assert "which is applied by hand" in plugin("explain", "cm/web").out
    cluster.delete("Sync", "shop")
    told = plugin("explain", "cm/web.data.colour").out
    assert "member of a Sync that is gone, or that you may not see" in told
    assert "no drift" not in told
    assert '"red"' not in told, "its Sync would tell whether a variable brought it from a Secret"
    assert '"red"' in plugin("explain", "cm/web.data.colour", "--show-secrets").out


# -- what is applied by hand -----------------------------------------------------------------------------------------------


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: web:1
"""


@pytest.fixture
def by_hand(plugin, cluster, tmp_path):
    """A folder, synced under a Sync that follows nothing, and its Deployment scaled by somebody a moment later."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "web.yaml").write_text(DEPLOYMENT)
    assert plugin("sync", "-f", str(folder), "--name", "shop").status == 0
    time.sleep(1.1)  # managedFields tell times in seconds
    cluster.edit("Deployment", "web", {"spec": {"replicas": 5}})
    return folder


def facts_of(told):
    """What explain says in full of one field: {"live": …, "wanted": …}."""
    blocks = re.split(r"^  (?=\w)", told.out, flags=re.MULTILINE)[1:]
    return {(words := block.split())[0]: " ".join(words[1:]) for block in blocks}


def test_what_is_kept_by_hand_is_not_called_free_of_drift(plugin, by_hand, namespace):
    assert ".spec.replicas" in plugin("diff", "-f", str(by_hand), "--name", "shop", "-o", "json").out
    told = plugin("explain", "deploy/web.spec.replicas")
    facts = facts_of(told)
    assert "no drift" not in told.out
    assert facts["live"] == "5"
    assert facts["owner"].startswith("by-hand, by update, ")
    assert (
        facts["wanted"]
        == f"not known: Sync {namespace}/shop is applied by hand, so explain needs its files (-f FOLDER)"
    )
    assert facts["applied"] == "not known: by-hand wrote after the last apply"
    assert facts["object"] == f"member of Sync {namespace}/shop, which is applied by hand"
    assert "-f FOLDER" in facts["verdict"]


def test_what_was_applied_last_by_hand_is_told(plugin, by_hand):
    facts = facts_of(plugin("explain", "deploy/web", ".spec.template.spec.containers[name=web].image"))
    assert facts["applied"] == '"web:1"'
    assert facts["wanted"].startswith("not known: ")
    assert facts["verdict"].startswith("it has the value that was applied last; ")
    overview = plugin("explain", "deploy/web").out
    assert "nothing differs" not in overview
    assert "can't read the desired state: " in overview
    document = json.loads(plugin("explain", "deploy/web", "-o", "json").out)
    states = {field["path"]: (field["state"], field.get("applied")) for field in document["fields"]}
    assert states['.spec.template.spec.containers[name="web"].image'] == ("applied", "web:1")
    assert states[".spec.replicas"] == ("unknown", None)


def test_with_its_files_what_is_kept_by_hand_is_explained_exactly(plugin, by_hand, cluster):
    facts = facts_of(plugin("explain", "deploy/web.spec.replicas", "-f", str(by_hand)))
    assert (facts["live"], facts["wanted"]) == ("5", "2, web.yaml:6")
    assert facts["verdict"] == "drift; the next sync reverts it"
    cluster.edit("Deployment", "web", {"spec": {"replicas": 2}})
    facts = facts_of(plugin("explain", "deploy/web.spec.replicas", "-f", str(by_hand)))
    assert facts["verdict"] == "no drift: it has the desired value"


def test_an_object_that_its_files_drop_is_said_to_go(plugin, by_hand, namespace):
    (by_hand / "web.yaml").rename(by_hand / "web.txt")
    (by_hand / "other.yaml").write_text(DEPLOYMENT.replace("web", "other"))
    told = plugin("explain", "deploy/web.spec.template.spec.containers", "-f", str(by_hand))
    assert f"member of Sync {namespace}/shop, which is applied by hand and no longer asks for it" in told.out
    assert "the next sync deletes the object" in told.out
    assert "no drift" not in told.out


def test_files_explain_what_belongs_to_no_sync(plugin, tmp_path, cluster):
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    cluster.apply(yaml_text.document(DEPLOYMENT.replace("replicas: 2", "replicas: 5")))
    facts = facts_of(plugin("explain", "deploy/web.spec.replicas", "-f", str(tmp_path)))
    assert (facts["live"], facts["wanted"]) == ("5", "2, web.yaml:6")
    assert facts["object"] == "belongs to no Sync"
    assert facts["verdict"] == "it was never applied from here; the next sync takes it over"
    (tmp_path / "web.yaml").write_text(DEPLOYMENT.replace("web", "other"))
    facts = facts_of(plugin("explain", "deploy/web.spec.replicas", "-f", str(tmp_path)))
    assert facts["wanted"] == f"not known: it isn't in {tmp_path}"
