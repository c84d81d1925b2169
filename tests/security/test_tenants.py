"""Classes: a confused deputy, takeover of another tenant's objects, empty impersonation that falls back to the controller's rights.

Two teams, a namespace each, in one cluster whose daemon has the rights of ``install`` and nothing more: its own user with its own
token, so that even the right to impersonate is RBAC's to judge. Team A attacks: who commits to its repository, and who may write its
Syncs. Team B's bakery must neither lose anything nor wait.
"""

from __future__ import annotations

import contextlib
import json
import secrets

import pytest

from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox
from tests.e2e.conftest import Api, Cluster, Daemon, Followed, Plugin, patiently

GROUP = "rbac.authorization.k8s.io"
DAEMON = "system:serviceaccount:reconcile-system:kubectl-reconcile"
ALL = ["get", "list", "watch", "create", "patch", "delete"]
VALUE = "the-oven-opens-with-4711"
USERS = {
    DAEMON: ("system:serviceaccounts", "system:serviceaccounts:reconcile-system", "system:authenticated"),
    "committer": ("system:authenticated",),
    "baker": ("system:authenticated",),
}


def role(cluster, name, *subjects, rules):
    """A Role of the cluster's namespace, bound to *subjects*."""
    metadata, ref = {"name": name, "namespace": cluster.namespace}, {"apiGroup": GROUP, "kind": "Role", "name": name}
    given = [{"apiGroups": [rule[0]], "resources": [rule[1]], "verbs": rule[2], **rule[3]} for rule in rules]
    cluster.kubectl.apply(
        [
            {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": given},
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": ref,
                "subjects": list(subjects),
            },
        ],
        "--server-side",
        "--force-conflicts",
    )


def rule(group, resource, verbs=ALL, **more):
    return group, resource, verbs, more


def account(namespace, name="kubectl-reconcile"):
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def user(name):
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def manifest(api_version, kind, name, namespace="", **content):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def config(name, namespace="", **data):
    return manifest("v1", "ConfigMap", name, namespace, data=data)


def annotated(one, **annotations):
    noted = {f"reconcile.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {**one, "metadata": {**one["metadata"], "annotations": noted}}


@pytest.fixture(scope="module")
def world(binaries, run_folder, kubectl, tmp_path_factory):
    """The cluster as its administrator sees it, and the daemon."""
    folder = tmp_path_factory.mktemp("tenants")
    sandbox = Sandbox(f"own-{secrets.token_hex(4)}", root=run_folder)
    with contextlib.ExitStack() as stack:
        stack.callback(sandbox.down)
        sandbox.up(Options(users=USERS), binaries=binaries)
        own = kubectl.using(sandbox.kubeconfig)
        cluster = Cluster(stack.enter_context(contextlib.closing(Api(own))), own, "reconcile-system")
        done = Plugin(own, "reconcile-system")("install")
        assert done.status == 0, done.err
        for team in ("team-a", "team-b"):
            cluster.kubectl("create", "namespace", team)
        a, b = cluster.at("team-a"), cluster.at("team-b")
        role(a, "members", account("team-a"), rules=[rule("", "configmaps"), rule("reconcile.dev", "syncs")])
        role(
            a, "people", user("committer"), rules=[rule("reconcile.dev", "syncs"), rule("", "events", ["get", "list"])]
        )
        role(b, "members", account("team-b"), rules=[rule("", "configmaps"), rule("", "secrets")])
        role(b, "people", user("baker"), rules=[rule("reconcile.dev", "syncs")])
        daemon = Daemon(
            str(sandbox.kubeconfig_for(DAEMON)),
            "",
            folder / "daemon.log",
            options=("--lease-namespace=reconcile-system", "--module-accounts"),
        ).start()
        stack.callback(daemon.kill)
        yield cluster, sandbox, daemon


def following(cluster, name, url, **spec):
    source = {"git": {"url": url, "interval": "1s"}}
    cluster.apply(
        {
            "apiVersion": "reconcile.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {"name": name, "namespace": cluster.namespace},
            "spec": {"source": source, **spec},
        }
    )
    return Followed(cluster, name)


class Bakery:
    """Team B's Sync, and whether its work goes on."""

    def __init__(self, cluster, repository):
        self.cluster, self.repository, self.number = cluster, repository, 0
        vault = manifest("v1", "Secret", "vault", stringData={"code": VALUE})
        sha = repository.push({"vault.json": json.dumps(vault), "bread.json": json.dumps(config("bread", price="3"))})
        self.sync = following(cluster, "bakery", repository.url)
        self.sync.until_synced(sha)

    def goes_on(self):
        """Commits are applied, and drift is put back."""
        self.number += 1
        price = f"{self.number}.50"
        sha = self.repository.push({"bread.json": json.dumps(config("bread", price=price))})
        self.sync.until_synced(sha)
        self.cluster.edit("ConfigMap", "bread", {"data": {"price": "nothing"}})
        patiently(lambda: self.cluster.get("ConfigMap", "bread")["data"] == {"price": price}, "drift is put back")
        return True


@pytest.fixture(scope="module")
def bakery(world, git_host):
    cluster, *_ = world
    return Bakery(cluster.at("team-b"), git_host.create(f"bakery-{secrets.token_hex(4)}"))


@pytest.fixture
def attack(world, git_host, request):
    """attack({path: manifest}) has team A's repository hold these, and a Sync of team A follow it; returns that and the commit."""
    cluster, *_ = world
    a = cluster.at("team-a")
    name = f"attack-{secrets.token_hex(4)}"
    repository = git_host.create(name)

    def begin(*manifests, **spec):
        files = {f"{number}.json": json.dumps(one) for number, one in enumerate(manifests)}
        sha = repository.push(files)
        return following(a, name, repository.url, **spec), sha

    yield begin
    with contextlib.suppress(Exception):
        a.edit("Sync", name, {"metadata": {"finalizers": []}})
    with contextlib.suppress(Exception):
        a.delete("Sync", name)


def said_of(sync, daemon):
    """All that reaches people of team A: their Sync, their events, and the log besides."""
    events = sync.cluster.list("Event")
    return json.dumps([sync.live, events]) + daemon.log


PRIVILEGED = manifest(
    "v1",
    "Pod",
    "owner",
    "kube-system",
    spec={"containers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]},
)
BINDING = manifest(
    f"{GROUP}/v1",
    "ClusterRoleBinding",
    "owner",
    roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
    subjects=[user("committer")],
)
FORGED_RIGHT = manifest(
    f"{GROUP}/v1",
    "RoleBinding",
    "owner",
    "team-b",
    roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": "admin"},
    subjects=[account("team-a")],
)


def test_a_confused_deputy_writes_nothing_beyond_the_accounts_rights(world, attack, bakery):
    cluster, *_ = world
    theft = manifest("v1", "Secret", "vault", "team-b", stringData={"code": "mine"})
    sync, sha = attack(PRIVILEGED, BINDING, FORGED_RIGHT, theft, config("own", color="red"))
    failed = sync.until("ApplyFailed", sha)
    assert failed["message"].startswith("ServiceAccount team-a/kubectl-reconcile lacks rights on 4 objects")
    assert cluster.at("kube-system").get("Pod", "owner") is None
    assert " owner " not in cluster.kubectl("get", "clusterrolebindings,rolebindings", "-A", "--no-headers")
    assert bakery.cluster.get("Secret", "vault")["data"] != {"code": "bWluZQ=="}
    assert cluster.at("team-a").get("ConfigMap", "own"), "what the account may do is done"
    assert bakery.goes_on()


def test_another_teams_sync_keeps_its_url_and_so_its_credentials(world, attack, bakery, git_host):
    trap = git_host.create(f"trap-{secrets.token_hex(4)}")
    before = bakery.sync.live["spec"]
    stolen = manifest(
        "reconcile.dev/v1alpha1",
        "Sync",
        "bakery",
        "team-b",
        spec={"source": {"git": {"url": trap.url, "secretRef": {"name": "bakery-git"}}}},
    )
    new = {**stolen, "metadata": {"name": "second", "namespace": "team-b"}}
    sync, sha = attack(stolen, new)
    refused = sync.until("ApplyFailed", sha)
    assert "syncs.reconcile.dev in namespace team-b" in refused["message"]
    assert bakery.sync.live["spec"] == before
    assert bakery.cluster.get("Sync", "second") is None
    assert bakery.goes_on()


@pytest.fixture
def superuser(world):
    """An account of team A's namespace that may do everything, for somebody else's purposes."""
    cluster, *_ = world
    cluster.kubectl("create", "serviceaccount", "superuser", "-n", "team-a")
    cluster.kubectl(
        "create", "clusterrolebinding", "superuser", "--clusterrole=cluster-admin", "--serviceaccount=team-a:superuser"
    )
    yield
    cluster.kubectl("delete", "clusterrolebinding/superuser")
    cluster.kubectl("delete", "serviceaccount/superuser", "-n", "team-a")


@pytest.mark.usefixtures("superuser")
def test_an_account_that_the_daemon_may_not_act_as_is_not_acted_as_nor_is_anybody_else(world, attack, bakery):
    cluster, *_ = world
    sync, _ = attack(PRIVILEGED, BINDING, config("as-superuser"), serviceAccountName="superuser")
    failed = patiently(
        lambda: sync.condition() if sync.condition().get("status") == "False" else None, "the Sync tells of it"
    )
    assert "impersonate" in failed["message"]
    assert cluster.at("kube-system").get("Pod", "owner") is None
    assert cluster.at("team-a").get("ConfigMap", "as-superuser") is None, "nor with the daemon's own rights"
    assert " owner " not in cluster.kubectl("get", "clusterrolebindings", "--no-headers")
    assert bakery.goes_on()


ODD_ACCOUNTS = ["system:masters", "../kube-system", "kube-system:default", "x\nImpersonate-Group: system:masters"]


@pytest.mark.parametrize("name", ODD_ACCOUNTS)
def test_no_name_of_an_account_is_another_identity(attack, world, name):
    with pytest.raises(Exception, match="serviceAccountName"):
        attack(config("odd"), serviceAccountName=name)
    assert world[0].at("team-a").get("ConfigMap", "odd") is None


def test_what_only_the_daemon_may_read_reaches_nobody(world, attack, bakery, kubectl, tmp_path):
    cluster, sandbox, daemon = world
    named = [
        manifest("v1", "Secret", "vault", "team-b", stringData={"code": "guess"}),
        config("bread", "team-b", price="0"),
    ]
    sync, sha = attack(*named)
    sync.until("ApplyFailed", sha)
    price = bakery.cluster.get("ConfigMap", "bread")["data"]["price"]
    committer = Plugin(kubectl.using(sandbox.kubeconfig_for("committer")), "team-a")
    answers = [committer(*words) for words in (("diff", sync.name), ("status", sync.name), ("explain", sync.name))]
    said = said_of(sync, daemon) + "".join(each.out + each.err for each in answers)
    for value in (VALUE, "dGhlLW92ZW4", f'"price": "{price}"', f"price: {price}"):
        assert value not in said
    # Copied marks don't make it a member of the attacker's set, even if its books are made to say so.
    books = {
        "applyset.kubernetes.io/contains-group-kinds": "Secret,ConfigMap",
        "applyset.kubernetes.io/additional-namespaces": "team-b",
    }
    cluster.at("team-a").edit("Sync", sync.name, {"metadata": {"annotations": books}})
    sync.ask()
    assert VALUE not in said_of(sync, daemon)
    assert bakery.cluster.get("Secret", "vault")
    assert bakery.goes_on()


def test_takeover_of_another_tenants_object_needs_that_tenants_word(world, attack, bakery):
    cluster, *_ = world
    role(
        bakery.cluster,
        "shared",
        account("team-a"),
        rules=[rule("", "configmaps", ["get", "list", "watch", "create", "patch"])],
    )
    try:
        arriving = annotated(config("bread", "team-b", price="0"), moved_from="team-b/bakery")
        sync, sha = attack(arriving)
        refused = sync.until("ApplyFailed", sha)
        assert "belongs to Sync team-b/bakery, which doesn't give it away" in refused["message"]
        assert f"reconcile.dev/moved-to: team-a/{sync.name}" in refused["message"]
        assert bakery.cluster.get("ConfigMap", "bread")["data"]["price"] != "0"
        assert bakery.goes_on()

        cake = config("cake", price="9")
        bakery.sync.until_synced(bakery.repository.push({"cake.json": json.dumps(cake)}))
        given = annotated(cake, moved_to=f"team-a/{sync.name}")
        bakery.sync.until_synced(bakery.repository.push({"cake.json": json.dumps(given)}))
        uid = bakery.cluster.get("ConfigMap", "cake")["metadata"]["uid"]
        attack(annotated(config("cake", "team-b", price="8"), moved_from="team-b/bakery"))
        patiently(lambda: bakery.cluster.get("ConfigMap", "cake")["data"] == {"price": "8"}, "what was given is taken")
        assert bakery.cluster.get("ConfigMap", "cake")["metadata"]["uid"] == uid
        bakery.sync.until_synced(bakery.repository.push({"cake.json": None}))
        assert bakery.cluster.get("ConfigMap", "cake")["metadata"]["uid"] == uid
    finally:
        cluster.kubectl("delete", "rolebinding/shared", "-n", "team-b")


def test_forged_members_hold_up_nobody(world, git_host, bakery):
    cluster, *_ = world
    cluster.kubectl("create", "namespace", "team-c")
    c, repository = cluster.at("team-c"), git_host.create(f"victim-{secrets.token_hex(4)}")
    writing = ["get", "list", "watch", "create", "patch"]
    own = [rule("", "configmaps", writing), rule("", "configmaps", ["delete"], resourceNames=["one", "two"])]
    role(c, "members", account("team-c"), rules=own)
    sync = following(c, "victim", repository.url, deletionPolicy="Prune", maxDeletes=10)
    sync.until_synced(repository.push({f"{name}.json": json.dumps(config(name)) for name in ("one", "two")}))
    sync.forge_member("forged", "team-c")
    sync.forge_member("far", "team-b")
    patiently(lambda: any("forged" in each for each in sync.status.get("warnings") or ()), "it is reported")
    warning = next(each for each in sync.status["warnings"] if "forged" in each)
    assert "ServiceAccount team-c/kubectl-reconcile may not delete configmaps in namespace team-c" in warning
    assert "kubectl reconcile grant victim -n team-c" in warning
    assert sync.condition()["status"] == "True"
    assert "far" not in json.dumps(sync.status), "where the set has never been nobody looks"

    sync.until_synced(repository.push({"two.json": None}))
    assert c.get("ConfigMap", "two") is None, "others are pruned"
    assert sync.status["undeletable"] == ["ConfigMap team-c/forged"]
    c.delete("Sync", "victim")
    patiently(lambda: c.get("Sync", "victim") is None, "the Sync is gone")
    assert c.get("ConfigMap", "one") is None
    assert c.get("ConfigMap", "forged"), "and what nobody could delete is there"
    assert bakery.cluster.get("ConfigMap", "far")
    assert bakery.goes_on()
