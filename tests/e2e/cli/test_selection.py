"""What a command is about: some objects, another revision, a working tree at each save, all Syncs; on a real cluster."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests import forked

BIN = Path(sys.executable).parent
PATIENCE_S = 90.0


def run(*arguments, **environ):
    return forked.run(arguments, env={**os.environ, **environ})


def config(name, labels=None, **data):
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


CACHE = {
    "apiVersion": "cache.example.com/v1alpha1",
    "kind": "Memcached",
    "metadata": {"name": "cache"},
    "spec": {"size": 1},
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}


def files(*, changed=False):
    """A small shop. Changed: one object more, one less, three others."""
    size = {"spec": {"size": 2}} if changed else {}
    found = {
        "apps/web.yaml": config("web", {"app": "web"}, colour="blue" if changed else "red"),
        "apps/service.yaml": {**SERVICE, "spec": {"ports": [{"port": 81 if changed else 80}]}},
        "cache.yaml": CACHE | size,
    }
    return found | ({"new.yaml": config("new", {"app": "web"})} if changed else {"gone.yaml": config("gone")})


def write(folder, manifests):
    for path in [*folder.rglob("*.yaml")]:
        path.unlink()
    for name, manifest in manifests.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(yaml.safe_dump(manifest))


@pytest.fixture
def shop(tmp_path, kubeconfig, namespace, crds, cluster):
    """The words that name a folder which was synced and has changed since; the ConfigMap gone drifted, too."""
    folder = tmp_path / "shop"
    folder.mkdir()
    write(folder, files())
    words = ("-f", str(folder), "--name", "shop", "--kubeconfig", kubeconfig, "-n", namespace)
    assert run("sync", *words).returncode == 0
    write(folder, files(changed=True))
    return words


SELECTED = {
    "an object": (["cm/web"], {"configmap/web"}),
    "an object by the kind's plural and group": (["memcacheds.cache.example.com/cache"], {"memcached.cache.example.com/cache", "deployment.apps/cache"}),
    "two objects": (["configmap/web", "svc/web"], {"configmap/web", "service/web"}),
    "a kind": (["-k", "ConfigMap"], {"configmap/web", "configmap/new", "configmap/gone"}),
    "two kinds": (["-k", "svc", "--kind", "deploy"], {"service/web", "deployment.apps/cache"}),
    "a label": (["-l", "app=web"], {"configmap/web", "configmap/new"}),
    "a label and a kind": (["-l", "app!=web", "-k", "cm"], {"configmap/gone"}),
    "a file": (["cache.yaml"], {"memcached.cache.example.com/cache", "deployment.apps/cache"}),
    "a folder": (["apps/"], {"configmap/web", "service/web"}),
    "a file in a folder": (["./apps/web.yaml"], {"configmap/web"}),
    "what is created": (["--only", "create"], {"configmap/new"}),
    "what is created or deleted": (["--only=create,delete"], {"configmap/new", "configmap/gone"}),
    "updates of a kind": (["--only", "update", "-k", "cm"], {"configmap/web"}),
}  # fmt: skip


def test_objects_are_selected(shop):
    """One test for all cases: what is in the cluster is the same for each."""
    for name, (words, expected) in SELECTED.items():
        done = run("diff", *shop, *words, "-o", "name", "--offline")
        assert (set(done.stdout.split()), done.returncode) == (expected, 1 if expected else 0), f"{name}: {done}"


def test_drift_is_selected(shop, cluster):
    cluster.edit("ConfigMap", "gone", {"data": {"colour": "blue"}})
    cluster.edit("Service", "web", {"spec": {"sessionAffinity": "ClientIP"}})
    deployment = cluster.edit("Deployment", "cache", {"spec": {"replicas": 7}})
    assert deployment["spec"]["replicas"] == 7
    assert run("diff", *shop, "--only", "drift", "-o", "name").stdout.split() == ["deployment.apps/cache"]


def test_an_object_that_does_not_change_itself_is_selected_by_its_labels_with_what_follows(
    tmp_path, kubeconfig, namespace, crds, cluster
):
    folder = tmp_path / "shop"
    folder.mkdir()
    write(folder, {"cache.yaml": {**CACHE, "metadata": {"name": "cache", "labels": {"app": "cache"}}}})
    words = ("-f", str(folder), "--name", "shop", "--kubeconfig", kubeconfig, "-n", namespace)
    assert run("sync", *words).returncode == 0
    cluster.edit("Deployment", "cache", {"spec": {"replicas": 7}})
    assert run("diff", *words, "-l", "app=cache", "-o", "name").stdout.split() == ["deployment.apps/cache"]
    assert run("diff", *words, "-l", "app=other").stdout.strip() == "no changes, 0 unchanged"


BAD = {
    "a kind that there isn't": (["-k", "nokind"], "the server has no kind 'nokind'"),
    "a selector that is none": (["-l", "=="], "'==' isn't a label selector"),
    "a word that is none of the choices": (["--only", "moved"], "'moved' is not one of create, update, delete, drift"),
    "an object without a name": (["cm/web", "web"], "'web' isn't an object; write TYPE/NAME"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD)
def test_what_can_t_be_selected_is_a_usage_error(shop, words, message):
    done = run("diff", *shop, *words)
    assert (done.returncode, message in done.stderr, done.stdout) == (ExitStatus.USAGE, True, "")


def test_a_selected_part_is_synced_and_the_rest_left_alone(shop, cluster):
    done = run("sync", *shop, "memcached/cache", "cm/new")
    assert done.returncode == 0, done.stderr
    assert (
        cluster.get("Memcached", "cache")["spec"]["size"] == cluster.get("Deployment", "cache")["spec"]["replicas"] == 2
    )
    assert cluster.get("ConfigMap", "new")
    assert cluster.get("ConfigMap", "web")["data"]["colour"] == "red"
    assert cluster.get("ConfigMap", "gone")
    # The rest is still to be done, deletions too: nothing was forgotten.
    left = run("diff", *shop, "-o", "name").stdout.split()
    assert left == ["configmap/web", "service/web", "configmap/gone"] or set(left) == {
        "configmap/web",
        "service/web",
        "configmap/gone",
    }
    assert run("sync", *shop).returncode == 0
    assert cluster.get("ConfigMap", "gone") is None


def test_a_plan_of_a_part_is_carried_out_as_such(shop, cluster, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(run("diff", *shop, "svc/web", "-o", "json").stdout)
    assert json.loads(file.read_text())["partial"] is True
    refused = run("sync", *shop, "--plan", str(file))
    assert (refused.returncode, "the plan is no longer valid" in refused.stderr) == (ExitStatus.FAILED, True)
    assert run("sync", *shop, "svc/web", "--plan", str(file)).returncode == 0
    assert cluster.get("Service", "web")["spec"]["ports"][0]["port"] == 81
    assert cluster.get("ConfigMap", "web")["data"]["colour"] == "red"


# --- another revision, a working tree ---------------------------------------------------------------------------------


@pytest.fixture
def followed(follow, git_server, cluster):
    """A Sync of a repository's folder apps, whose first commit is in the cluster, without a daemon."""
    sha = git_server.push({"apps/web.yaml": json.dumps(config("web", colour="red"))}, "first")
    follow(git_server.url, path="apps")
    return sha


@pytest.fixture
def ask(kubeconfig, namespace):
    return lambda *words: run(*words, "--kubeconfig", kubeconfig, "-n", namespace)


def test_any_revision_of_a_sync_s_repository_can_be_previewed(followed, git_server, ask, cluster):
    assert ask("sync", "shop").returncode == 0
    second = git_server.push({"apps/web.yaml": json.dumps(config("web", colour="blue"))}, "second", branch="topic")
    subprocess.run(["git", "-C", git_server.folder, "update-ref", "refs/pull/12/head", second], check=True)
    for revision in ("topic", second, second[:8], "refs/pull/12/head", "pull/12/head"):
        done = ask("diff", "shop", "--revision", revision)
        assert (done.returncode, "+  colour: blue" in done.stdout) == (1, True), f"{revision}: {done}"
        assert f"(apps/web.yaml:1, {second[:7]})" in done.stdout
    assert ask("diff", "shop", "--revision", followed[:7]).returncode == 0
    missing = ask("diff", "shop", "--revision", "nope")
    assert (missing.returncode, 'it has no "nope"' in missing.stderr) == (ExitStatus.SOURCE, True)
    assert cluster.get("ConfigMap", "web")["data"]["colour"] == "red"


def test_another_revision_may_be_synced_where_no_daemon_follows(followed, git_server, ask, cluster):
    git_server.push({"apps/web.yaml": json.dumps(config("web", colour="blue"))}, "second", branch="topic")
    assert ask("sync", "shop", "--revision", "topic").returncode == 0
    assert cluster.get("ConfigMap", "web")["data"]["colour"] == "blue"


@pytest.mark.usefixtures("daemon")
def test_a_daemon_s_sync_takes_no_other_revision(followed, git_server, ask):
    git_server.push({"apps/web.yaml": json.dumps(config("web", colour="blue"))}, "second", branch="topic")
    done = ask("sync", "shop", "--revision", "topic")
    assert (done.returncode, "would revert anything else" in done.stderr) == (ExitStatus.USAGE, True)
    assert ask("suspend", "shop").returncode == 0  # as the hint says
    assert ask("sync", "shop", "--revision", "topic").returncode == 0


def test_a_working_tree_is_previewed_under_its_sync(followed, git_server, ask, tmp_path, cluster):
    assert ask("sync", "shop").returncode == 0
    tree = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True)
    assert ask("diff", "shop", "--local", str(tree)).returncode == 0
    (tree / "apps" / "web.yaml").write_text(json.dumps(config("web", colour="blue")))
    (tree / "apps" / "more.yaml").write_text(json.dumps(config("more")))
    (tree / "elsewhere.yaml").write_text(json.dumps(config("elsewhere")))
    done = ask("diff", "shop", "--local", str(tree), "-o", "summary")
    assert done.returncode == 1
    assert "elsewhere" not in done.stdout
    assert ".data.colour changed in the file" in done.stdout
    assert done.stdout.endswith("1 to create, 1 to update, 0 unchanged\n")
    cluster.edit("ConfigMap", "web", {"data": {"colour": "green"}})
    told = ask("diff", "shop", "--local", str(tree), "--reasons").stdout
    assert "the file, and drift by by-hand" in told  # what was applied last is known from the repository
    (tree / ".reconcileignore").write_text("more.yaml\n")
    assert "more" not in ask("diff", "shop", "--local", str(tree), "-o", "name").stdout


class Watching:
    """``diff --watch`` as a process; what it prints is taken in as it comes."""

    def __init__(self, *words):
        command = [BIN / "kubectl-reconcile", "diff", *words, "--watch"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.seen = ""

    def until(self, text):
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{text!r} didn't come:\n{self.seen}"
            if select.select([self.process.stdout], [], [], left_s)[0]:
                chunk = os.read(self.process.stdout.fileno(), 65536)
                assert chunk, f"it ended:\n{self.seen}"
                self.seen += chunk.decode()
        self.seen = self.seen.partition(text)[2]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.stdout.close()
        return self.process.wait(PATIENCE_S)


def test_each_save_shows_the_difference_anew(tmp_path, kubeconfig, namespace, crds, cluster):
    folder = tmp_path / "shop"
    folder.mkdir()
    write(folder, {"web.yaml": config("web", colour="red")})
    words = ("-f", str(folder), "--name", "shop", "--kubeconfig", kubeconfig, "-n", namespace)
    assert run("sync", *words).returncode == 0
    watching = Watching(*words)
    watching.until("no changes, 1 unchanged\n")
    write(folder, {"web.yaml": config("web", colour="blue")})
    watching.until("+  colour: blue\n")
    watching.until("1 to update, 0 unchanged\n")
    (folder / "web.yaml").write_text("kind: [\n")
    watching.until("web.yaml:2: not valid YAML")
    write(folder, {"web.yaml": config("web", colour="green")})
    watching.until("+  colour: green\n")
    watching.until("1 to update, 0 unchanged\n")
    assert watching.end() == ExitStatus.INTERRUPTED


def test_each_save_of_whatever_an_overlay_consists_of_shows_the_difference_anew(
    tmp_path, kubeconfig, namespace, crds, follow, git_server, renders
):
    files = {
        "base/kustomization.yaml": "configMapGenerator: [{name: web, envs: [web.env]}]\n"
        "generatorOptions: {disableNameSuffixHash: true}\n",
        "base/web.env": "colour=red\n",
        "prod/kustomization.yaml": "resources: [../base]\n",
    }
    git_server.push(files)
    follow(git_server.url, path="prod", suspend=True)
    tree = tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", git_server.url, tree], check=True, timeout=300)
    watching = Watching("shop", "--local", str(tree), "--kubeconfig", kubeconfig, "-n", namespace)
    watching.until("+  colour: red\n")
    watching.until("1 to create, 0 unchanged\n")
    (tree / "base" / "web.env").write_text("colour=blue\n")
    watching.until("+  colour: blue\n")
    watching.until("1 to create, 0 unchanged\n")
    (tree / "prod" / "kustomization.yaml").write_text("resources: [../nowhere]\n")
    watching.until("prod/kustomization.yaml:1: kustomize can't build it")
    (tree / "prod" / "kustomization.yaml").write_text("resources: [../base]\nnamePrefix: p-\n")
    watching.until("p-web")
    assert watching.end() == ExitStatus.INTERRUPTED


def test_each_save_of_a_chart_shows_what_it_looks_up_as_it_is_then(
    tmp_path, kubeconfig, namespace, crds, cluster, follow, git_server, renders
):
    chart = {
        "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "values.yaml": "size: 1\n",
        "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  size: '{{ .Values.size }}'\n"
        '  colour: {{ (lookup "v1" "ConfigMap" .Release.Namespace "theirs").data.colour }}\n',
    }
    git_server.push(chart)
    follow(git_server.url, suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": {"lookup": "Cluster"}}}})
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"colour": "red"}})
    tree = tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", git_server.url, tree], check=True, timeout=300)
    watching = Watching("shop", "--local", str(tree), "--kubeconfig", kubeconfig, "-n", namespace)
    watching.until("+  colour: red\n")
    watching.until("1 to create, 0 unchanged, 1 warning\n")
    cluster.edit("ConfigMap", "theirs", {"data": {"colour": "blue"}})
    (tree / "values.yaml").write_text("size: 2\n")
    watching.until("+  colour: blue\n")
    watching.until("1 to create, 0 unchanged, 1 warning\n")
    assert watching.end() == ExitStatus.INTERRUPTED


def test_only_files_can_be_watched():
    done = run("diff", "shop", "--watch", "--server", "https://127.0.0.1:1")
    assert (done.returncode, "it needs -f FOLDER or --local FOLDER" in done.stderr) == (ExitStatus.USAGE, True)


# --- all Syncs --------------------------------------------------------------------------------------------------------


def test_all_syncs_of_all_namespaces(own_cluster, crds_of, follow, git_server):
    own, sandbox = own_cluster(components=("etcd", "kube-apiserver"))
    crds_of(own)
    own.kubectl("create", "namespace", "other")
    git_server.push({"web.yaml": json.dumps(config("web"))}, "first")
    follow(git_server.url, "one", on=own)
    follow(git_server.url, "two", on=own.at("other"))
    follow(f"{git_server.url}-nowhere", "broken", on=own)
    where = ("--kubeconfig", str(sandbox.kubeconfig))
    done = run("diff", "-A", *where, "-o", "summary")
    assert done.returncode == ExitStatus.SOURCE
    assert [line for line in done.stdout.splitlines() if line.startswith("Sync ")] == [
        "Sync default/one",
        "Sync other/two",
    ]
    assert "error: Sync default/broken: " in done.stderr
    assert [plan["sync"]["name"] for plan in json.loads(run("diff", "-A", *where, "-o", "json").stdout)["items"]] == [
        "one",
        "two",
    ]
    assert run("sync", "-A", *where).returncode == ExitStatus.SOURCE
    assert own.get("ConfigMap", "web")
    assert own.at("other").get("ConfigMap", "web")
    # A name is meant for one of them, and a slip of the pen for none.
    own.at("other").edit("ConfigMap", "web", {"data": {"colour": "blue"}})
    own.delete("Sync", "broken")
    for verb in ("diff", "sync"):
        slip = run(verb, "-A", "cm/wbe", "deploy/web", *where)
        assert slip.returncode == ExitStatus.USAGE, slip
        assert "error: no ConfigMap wbe belongs to any of these Syncs\nhint: did you mean web?" in slip.stderr
        assert "no Deployment.apps web belongs to any of these Syncs" in slip.stderr
        assert run(verb, "-A", "cm/web", *where).returncode == (verb == "diff")
    refused = run("diff", "shop", "-A", *where)
    assert (refused.returncode, "leave out SYNC" in refused.stderr) == (ExitStatus.USAGE, True)


# --- slips of the pen -------------------------------------------------------------------------------------------------


SLIPS = {
    "an object": ("cm/wbe", "no ConfigMap wbe belongs to Sync {0}/shop", "did you mean web?"),
    "an object of a kind that has none": (
        "deploy/web",
        "no Deployment.apps web belongs to Sync {0}/shop",
        "diff -o tree",
    ),
    "a file": ("apps/wbe.yaml", "no object comes from apps/wbe.yaml", "did you mean apps/web.yaml?"),
}


@pytest.mark.parametrize("verb", ["diff", "sync"])
@pytest.mark.parametrize(("word", "message", "hint"), SLIPS.values(), ids=SLIPS)
def test_a_name_that_means_nothing_is_an_error_with_the_nearest_one(
    verb, word, message, hint, kubeconfig, namespace, crds, tmp_path
):
    write(tmp_path, {"apps/web.yaml": config("web")})
    done = run(verb, "-f", str(tmp_path), "--name", "shop", word, "--kubeconfig", kubeconfig, "-n", namespace)
    assert (done.returncode, done.stdout) == (ExitStatus.USAGE, "")
    assert message.format(namespace) in done.stderr
    assert hint in done.stderr
