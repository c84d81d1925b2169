"""Classes: a confused deputy, takeover of another tenant's objects, empty impersonation that falls back to the controller's rights.

The world is that of ``tenants.py``: team A attacks, team B's bakery must neither lose anything nor wait.
"""

from __future__ import annotations

import json
import secrets

import pytest

from tests.e2e.program import Plugin
from tests.security.tenants import (
    GROUP,
    VALUE,
    account,
    annotated,
    config,
    following,
    manifest,
    owner_of_all,
    role,
    rule,
    said_of,
)
from tests.waiting import patiently

pytestmark = pytest.mark.xdist_group("tenants")  # one cluster and one daemon for all of them

PRIVILEGED = manifest(
    "v1",
    "Pod",
    "owner",
    "kube-system",
    spec={"containers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]},
)
BINDING = owner_of_all("owner", "committer")
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

    def is_told():
        found = sync.condition()
        return found["status"] == "False" and "impersonate" in found["message"]

    patiently(is_told, "the Sync tells of it")
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


def test_a_variable_brings_nothing_that_the_syncs_account_may_not_read(world, attack, bakery):
    cluster, _, daemon = world
    a = cluster.at("team-a")
    a.apply(manifest("v1", "Secret", "kept", "team-a", stringData={"code": VALUE}))
    note = config("note", text="x")
    note["metadata"]["annotations"] = {"stolen": "${CODE}"}
    sync, _ = attack(note)

    def wants(name):
        ref = {"name": "CODE", "valueFrom": {"secretKeyRef": {"name": name, "key": "code"}}}
        a.edit("Sync", sync.name, {"spec": {"source": {"substitute": {"variables": [ref]}}}})

    wants("kept")
    refusal = "${CODE} has no value: Secret team-a/kept may not be read"
    patiently(lambda: refusal in sync.condition("Synced").get("message", ""), "the Secret may not be read")
    for name in ("../../team-b/secrets/vault", "vault?x=", "%2e%2e"):
        wants(name)
        patiently(
            lambda name=name: f"{name!r} isn't a name of a Secret" in json.dumps(sync.status), f"{name} is refused"
        )
    assert VALUE not in said_of(sync, daemon)
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
        sync.until("ApplyFailed", sha)
        words = (
            "belongs to Sync team-b/bakery, which hasn't released it",
            f"reconcile.dev/moved-to: team-a/{sync.name}",
        )
        # What was granted is in force a moment later.
        patiently(lambda: all(each in sync.condition("Synced")["message"] for each in words), "it says who has to")
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
    patiently(lambda: sync.status.get("unasked") == ["ConfigMap team-c/forged"], "it is reported")
    warning = next(each for each in sync.status["warnings"] if "forged" in each)
    assert "no revision that was applied is known to have asked for them" in warning
    patiently(lambda: sync.condition()["status"] == "True", "it is ready")
    assert "far" not in json.dumps(sync.status), "where the set has never been nobody looks"
    tree = Plugin(cluster.kubectl, "team-c")("tree", "victim")
    assert "forged" not in tree.out
    assert "not asked for by any revision, so not shown: ConfigMap team-c/forged" in tree.err

    sync.until_synced(repository.push({"two.json": None}))
    assert c.get("ConfigMap", "two") is None, "others are pruned"
    assert sync.status["unasked"] == ["ConfigMap team-c/forged"]
    c.delete("Sync", "victim")
    patiently(lambda: c.get("Sync", "victim") is None, "the Sync is gone")
    assert c.get("ConfigMap", "one") is None
    assert c.get("ConfigMap", "forged"), "and what was never asked for is there"
    assert bakery.cluster.get("ConfigMap", "far")
    assert bakery.goes_on()
