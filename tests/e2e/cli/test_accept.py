"""accept and adopt: what the cluster holds becomes what Git asks for; on a real cluster and a real Git server."""

import json
import re
import subprocess
from dataclasses import replace

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from tests import yaml_text

WEB = """\
# The web's settings.
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
    colour: red    # until further notice
    size: "1"
"""
SECRET = (
    '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": "s3cr3t-one"}}'
)
CACHE = '{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "cache"}, "spec": {"size": 1}}'


@pytest.fixture
def drifted(git_server, follow, plugin, cluster, tmp_path):
    """The working tree of a Sync whose objects somebody has changed in the cluster."""
    git_server.push({"apps/web.yaml": WEB, "apps/login.json": SECRET, "apps/cache.json": CACHE}, "first")
    follow(git_server.url, path="apps")
    assert plugin("sync", "shop").status == 0
    cluster.edit("ConfigMap", "web", {"data": {"colour": "blue"}})
    cluster.edit("Secret", "login", {"stringData": {"password": "s3cr3t-two"}})
    cluster.edit("Deployment", "cache", {"spec": {"replicas": 5}})
    tree = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True)
    return tree


def test_drift_is_written_into_the_working_tree(drifted, plugin):
    done = plugin("accept", "shop", "--local", str(drifted))
    assert done.status == 0
    assert "ConfigMap" in done.out
    assert ".data.colour  red → blue" in done.out
    assert (drifted / "apps/web.yaml").read_text() == WEB.replace("red    #", "blue   #")
    assert (drifted / "apps/login.json").read_text() == SECRET
    assert "left: Secret " in done.err
    assert "the values of a Secret don't belong in a file" in done.err
    assert "left: Deployment.apps " in done.err
    assert "it is a child of Memcached.cache.example.com" in done.err
    assert "s3cr3t" not in done.out + done.err
    left = plugin("diff", "shop", "--local", str(drifted), "cm/web", "-o", "json")
    assert not [field for change in json.loads(left.out)["changes"] for field in change.get("fields", ())]


def test_a_dry_run_shows_and_writes_nothing(drifted, plugin):
    done = plugin("accept", "shop", "--local", str(drifted), "--dry-run")
    assert (done.status, ".data.colour  red → blue" in done.out) == (0, True)
    assert (drifted / "apps/web.yaml").read_text() == WEB


def test_drift_is_pushed_to_a_branch(drifted, plugin, git_server):
    done = plugin("accept", "shop", "cm/web", "--branch", "keep-blue", "-m", "Keep it blue")
    assert (done.status, done.err) == (0, "")
    assert "to keep-blue\n" in done.out

    def git(*words):
        return subprocess.run(
            ["git", "-C", git_server.folder, *words], capture_output=True, text=True, check=True
        ).stdout

    assert git("show", "keep-blue:apps/web.yaml") == WEB.replace("red    #", "blue   #")
    assert git("log", "--format=%s|%an", "-1", "keep-blue") == "Keep it blue|Tester\n"
    assert git("diff", "--name-only", "main", "keep-blue") == "apps/web.yaml\n"
    # The branch has moved on meanwhile: nothing is overwritten.
    git_server.push({"more.yaml": "# more\n"}, "more", branch="keep-blue")
    again = plugin("accept", "shop", "cm/web", "--branch", "keep-blue")
    assert (again.status, "branch keep-blue has commits that" in again.err) == (ExitStatus.SOURCE, True)


def test_a_field_that_git_changed_too_is_left_for_a_person(drifted, plugin):
    (drifted / "apps/web.yaml").write_text(WEB.replace("red", "green"))
    done = plugin("accept", "shop", "--local", str(drifted))
    assert (done.status, ".data.colour was changed in Git too; edit apps/web.yaml" in done.err) == (0, True)
    assert "green" in (drifted / "apps/web.yaml").read_text()


def test_diff_accepts_what_it_has_shown(drifted, plugin):
    done = plugin("diff", "shop", "cm/web", "--local", str(drifted), "--accept")
    assert (done.status, "-  colour: blue\n+  colour: red\n" in done.out) == (0, True)
    assert "blue" in (drifted / "apps/web.yaml").read_text()


PATCHED = {"patch": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  colour: blue\n"}


def test_drift_is_written_into_the_patches_of_the_sync(drifted, plugin, cluster):
    shown = plugin("accept", "shop", "--patches", "--dry-run")
    assert (shown.status, ".data.colour  red → blue" in shown.out) == (0, True)
    assert "# spec.source.kustomize.patches[0]\n- patch: |" in shown.out
    assert "kustomize" not in cluster.get("Sync", "shop")["spec"]["source"]
    done = plugin("accept", "shop", "--patches")
    assert (done.status, "spec.source.kustomize.patches[0]: ConfigMap" in done.out) == (0, True)
    assert "the values of a Secret don't belong in a file" in done.err
    assert "s3cr3t" not in shown.out + shown.err + done.out + done.err
    assert cluster.get("Sync", "shop")["spec"]["source"]["kustomize"] == {"patches": [PATCHED]}
    left = json.loads(plugin("diff", "shop", "cm/web", "-o", "json").out)
    assert not [field for change in left["changes"] for field in change.get("fields", ())], (
        "what is live is what is asked for"
    )
    assert plugin("sync", "shop", "cm/web").status == 0
    assert cluster.get("ConfigMap", "web")["data"]["colour"] == "blue"
    cluster.edit("ConfigMap", "web", {"data": {"colour": "green"}})
    assert plugin("accept", "shop", "cm/web", "--patches").status == 0
    changed = {"patch": PATCHED["patch"].replace("blue", "green")}
    assert cluster.get("Sync", "shop")["spec"]["source"]["kustomize"] == {"patches": [changed]}


def test_a_sync_that_another_keeps_is_not_written(drifted, plugin, cluster):
    cluster.edit("Sync", "shop", {"metadata": {"labels": {PART_OF: "applyset-of-another-v1"}}})
    done = plugin("accept", "shop", "cm/web", "--patches")
    assert (done.status, "# spec.source.kustomize.patches[0]\n" in done.out) == (ExitStatus.HELD, True)
    assert "shop is itself a member of a Sync, from a file, which would undo this; nothing was written" in done.err
    assert "kustomize" not in cluster.get("Sync", "shop")["spec"]["source"]


def test_a_sync_that_is_rolled_back_is_resumed_first(drifted, plugin, git_server):
    assert plugin("rollback", "shop", "--to", git_server.sha(), "--yes").status == 0
    done = plugin("accept", "shop", "cm/web", "--patches")
    assert (done.status, "shop is rolled back" in done.err) == (ExitStatus.HELD, True)


PLACES = {
    "nowhere": ("accept", "shop"),
    "at two places": ("accept", "shop", "--local", ".", "--branch", "x"),
    "a folder of no Sync": ("accept", "-f", "."),
    "a diff that has no files": ("diff", "shop", "--accept"),
    "into the Sync and a folder": ("accept", "shop", "--patches", "--local", "."),
    "with the message of a commit that isn't made": ("accept", "shop", "--patches", "-m", "x"),
}


@pytest.mark.parametrize("words", PLACES.values(), ids=PLACES)
def test_where_files_go_must_be_said(words, plugin):
    assert plugin(*words).status == ExitStatus.USAGE


# --- adopt ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def loose(git_server, follow, cluster, tmp_path):
    """Objects that people made by hand beside a Sync, and the working tree of that."""
    git_server.push({"apps/web.yaml": WEB}, "first")
    follow(git_server.url, path="apps")
    where = ("-n", cluster.namespace)
    cluster.kubectl("create", "deployment", "loose", "--image=registry.k8s.io/pause:3.10", *where)
    cluster.kubectl("expose", "deployment", "loose", "--port=80", *where)
    cluster.kubectl("create", "secret", "generic", "login", "--from-literal=password=s3cr3t-one", *where)
    tree = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True)
    return tree


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: loose
  name: loose
spec:
  replicas: 1
  selector:
    matchLabels:
      app: loose
  template:
    metadata:
      labels:
        app: loose
    spec:
      containers:
      - image: registry.k8s.io/pause:3.10
        imagePullPolicy: IfNotPresent
        name: pause
"""


def test_live_objects_are_brought_under_a_sync(loose, plugin, cluster):
    shown = plugin("adopt", "deploy/loose", "--sync", "shop")
    assert (shown.status, shown.out) == (0, DEPLOYMENT)
    before = cluster.get("Deployment", "loose")
    done = plugin("adopt", "deploy/loose", "svc/loose", "--sync", "shop", "--local", str(loose))
    assert (done.status, done.out) == (0, "apps/deployment-loose.yaml\napps/service-loose.yaml\n")
    assert (loose / "apps/deployment-loose.yaml").read_text() == DEPLOYMENT
    for noise in ("uid", "resourceVersion", "managedFields", "status", "clusterIP", "creationTimestamp"):
        assert noise not in (loose / "apps/service-loose.yaml").read_text()
    again = plugin("adopt", "deploy/loose", "--sync", "shop", "--local", str(loose))
    assert (again.status, "apps/deployment-loose.yaml already exists" in again.err) == (ExitStatus.USAGE, True)
    # The next sync takes them over, and changes nothing of what they say.
    assert plugin("sync", "shop", "--local", str(loose)).status == 0
    after = cluster.get("Deployment", "loose")
    assert after["spec"] == before["spec"]
    assert cluster.members("Deployment", "shop") == {"loose"}
    assert plugin("diff", "shop", "--local", str(loose)).status == 0


def test_live_objects_are_adopted_on_a_branch(loose, plugin, git_server):
    done = plugin("adopt", "deploy/loose", "--sync", "shop", "--branch", "adopt")
    assert done.status == 0
    command = ["git", "-C", git_server.folder, "show", "adopt:apps/deployment-loose.yaml"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == DEPLOYMENT


def test_what_can_t_be_adopted(loose, plugin, cluster):
    secret = plugin("adopt", "secret/login", "--sync", "shop")
    assert (secret.status, "the values of a Secret don't belong in Git" in secret.err) == (ExitStatus.USAGE, True)
    assert "s3cr3t" not in secret.out + secret.err
    assert plugin("sync", "shop").status == 0
    member = plugin("adopt", "cm/web", "--sync", "shop")
    assert (member.status, "it already belongs to another ApplySet" in member.err) == (ExitStatus.USAGE, True)
    assert plugin("adopt", "cm/nope", "--sync", "shop").status == ExitStatus.FAILED
    assert plugin("adopt", "deploy/loose", "--sync", "nope").status == ExitStatus.USAGE


@pytest.fixture
def apart(git_server, follow, cluster, tmp_path):
    """A Sync in the test's namespace whose objects go to another; that one's name, and the working tree."""
    other = cluster.at(f"{cluster.namespace}-shop")
    cluster.kubectl("create", "namespace", other.namespace)
    git_server.push({"web.yaml": WEB}, "first")
    follow(git_server.url, targetNamespace=other.namespace)
    other.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "loose"}, "data": {"a": "1"}})
    tree = tmp_path / "apart"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True, timeout=300)
    yield other.namespace, tree
    cluster.kubectl("delete", "namespace", other.namespace, "--wait=false")


LOOSE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: loose\ndata:\n  a: '1'\n"


def test_objects_are_adopted_by_a_sync_of_another_namespace(apart, plugin, cluster, namespace):
    shop, tree = apart
    words = ("adopt", "cm/loose", "--sync", f"{namespace}/shop")
    for here in (replace(plugin, namespace=shop), replace(plugin, namespace="")):  # -n NAMESPACE, or none given
        shown = here(*words)
        assert (shown.status, yaml_text.document(shown.out)) == (0, yaml_text.document(LOOSE))
    assert yaml_text.document(plugin("adopt", "cm/loose", "--sync", "shop").out) == yaml_text.document(LOOSE)
    done = replace(plugin, namespace=shop)(*words, "--local", str(tree))
    assert (done.status, done.out) == (0, "configmap-loose.yaml\n")
    assert plugin("sync", "shop", "--local", str(tree)).status == 0
    mark = applyset_id(ObjectRef("reconcile.dev", "Sync", namespace, "shop"))
    members = cluster.at(shop).list("ConfigMap", f"{PART_OF}={mark}")
    assert {one["metadata"]["name"] for one in members} == {"loose", "web"}


def test_adopt_says_where_the_sync_is(apart, plugin):
    shop, _ = apart
    wrong = replace(plugin, namespace=shop)("adopt", "cm/loose", "--sync", "shop")
    assert wrong.status == ExitStatus.USAGE
    assert re.search(r"hint: namespace (\S+) has one: --sync \1/shop\n", wrong.err)
    for odd in ("a/b/c", "/shop", "gitops/", "/"):
        refused = plugin("adopt", "cm/loose", "--sync", odd)
        assert (refused.status, f"{odd!r} isn't a Sync: write NAME, or NAMESPACE/NAME" in refused.err) == (2, True)
