"""Certificates that a cluster issues itself: what is made, renewed and rolled out, and that nobody is ever cut off who needn't be."""

import copy
import datetime as dt
import functools
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.module_api import Context, SeenSecret, labels_of, later
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.keys import pairs as certificates
from kubectl_reconcile_operators.certificates.keys.kept import facts_of, values_after
from kubectl_reconcile_operators.etcd.spec import AutoTls, cluster_spec
from kubectl_reconcile_operators.etcd.steps import ON_SECRETS
from kubectl_reconcile_operators.etcd.tls.driver import wish_of
from tests.operators.etcd.foreseen import foreseen
from tests.operators.etcd.world import World, condition

AUTO = {"duration": "2160h", "renewBefore": "720h", "authorityDuration": "8760h"}
DAY_S = 86_400
KINDS = ("ca", "peer", "server", "operator", "client")
MADE = ["make-authority db-ca", "issue db-peer", "issue db-server", "issue db-operator", "issue db-client"]
TOLD = ["trust db-peer", "trust db-server", "trust db-operator", "trust db-client"]
ROLLED = ["delete db-1", "create db-1", "delete db-2", "create db-2", "move-leader db-1", "delete db-0", "create db-0"]


class TlsWorld(World):
    """A cluster with certificates of its own. Members know what they trusted when they began; what they show comes to them with their node's delay."""

    def __init__(self, size=3, **spec):
        super().__init__(size, TLS={"auto": {**AUTO, **spec.pop("auto", {})}}, **spec)
        self.secrets, self.foreign = {}, set()
        self.trusting, self.shown = {}, {}
        self.lagging = set()
        self.known = {}

    # --- what is there ------------------------------------------------------------------------------

    @property
    def ctx(self):
        return Context(self.now, "etcdcluster", self.cr)

    def held_secrets(self):
        return {
            kind: SeenSecret(dict(self.secrets[kind]), kind not in self.foreign, "1") if kind in self.secrets else None
            for kind in KINDS
        }

    def tls(self, kind=""):
        what = json.dumps([self.secrets, sorted(self.foreign)], sort_keys=True)
        if what not in self.known:
            self.known[what] = facts_of(self.held_secrets(), wish_of(self.cr))
        return self.known[what][kind] if kind else self.known[what]

    def facts(self):
        return {**super().facts(), "tls": self.tls()}

    def runs(self, member):
        return super().runs(member) and not self.is_cut_off(self.pods[member["peer"].split("//")[1].split(".")[0]])

    def is_cut_off(self, pod):
        """Whether a member trusts nobody who asks it."""
        signers = {self.tls(kind).get("issuer", "") for kind in ("peer", "server", "operator")} - {""}
        return not signers <= self.trusting.get(pod["metadata"]["uid"], signers)

    def run(self):
        for pod in self.pods.values():
            uid = pod["metadata"]["uid"]
            if uid not in self.trusting:
                assert {"peer", "server"} <= self.secrets.keys(), "a pod waits for Secrets that aren't there"
                self.trusting[uid] = set(self.tls("peer")["trusted"])
                assert pod["metadata"]["annotations"]["etcd.database.coreos.com/trusted"] == ",".join(
                    sorted(self.trusting[uid])
                )
                self.shown[uid] = self.tls("peer")["issuer"]
            if pod["metadata"]["name"] not in self.lagging and "peer" in self.secrets:
                self.shown[uid] = self.tls("peer").get("issuer") or self.shown[uid]
        super().run()

    # --- what happens -------------------------------------------------------------------------------

    def act(self, action):
        if action.verb not in ON_SECRETS:
            super().act(action)
            return
        kind, now = action.parameters["member"], dt.datetime.fromisoformat(self.now)
        assert kind not in self.foreign, "what is somebody else's is changed"
        held = self.held_secrets()
        self.secrets[kind] = values_after(CertificateDo(action.verb), kind, held, wish_of(self.cr), now)
        assert self.tls(kind)["state"] == "ok", "half a pair"

    def step(self, *args, **more):
        outcome = super().step(*args, **more)
        if not any(self.is_cut_off(pod) for pod in self.pods.values()):
            self.assert_all_talk()
        return outcome

    def assert_all_talk(self):
        there = [pod["metadata"]["uid"] for pod in self.pods.values()]
        for one in there:
            for other in there:
                assert self.shown[other] in self.trusting[one], f"{one} doesn't trust {other}"

    def wait(self, seconds):
        """Let time pass; within it, all nodes bring Secrets to their pods."""
        self.now = later(self.now, seconds)
        self.lagging = set()
        self.run()

    def serials(self):
        return {
            kind: x509.load_pem_x509_certificate(self.secrets[kind]["tls.crt"].encode()).serial_number for kind in KINDS
        }


def formed(size=3, **spec):
    return copy.deepcopy(_formed(size, **spec))


@functools.cache
def _formed(size, **spec):
    world = TlsWorld(size, **spec)
    world.settle()
    world.taken.clear()
    return world


def renewed(before, world):
    after = world.serials()
    return sorted(kind for kind in KINDS if before[kind] != after[kind])


# --- at first -------------------------------------------------------------------------------------


def test_certificates_come_before_the_first_member_each_in_the_preview_and_none_with_its_key():
    world = TlsWorld(1)
    shown = foreseen(world)
    outcome = world.settle()
    assert world.taken == [*MADE, "create db-0"] == shown
    assert condition(outcome, "Ready").status == "True"
    assert set(world.secrets["peer"]) == {"ca.crt", "tls.crt", "tls.key"}
    assert "PRIVATE" not in str(world.facts()) + str(world.cr)
    arguments = world.pods["db-0"]["spec"]["containers"][0]["args"]
    assert "--peer-cert-allowed-cn=db-peer" in arguments
    assert "--client-cert-auth=true" in arguments
    volumes = {each["name"]: each.get("secret") for each in world.pods["db-0"]["spec"]["volumes"]}
    assert volumes["peer"] == {"secretName": "db-peer"}
    assert volumes["server"] == {"secretName": "db-server"}


def test_the_status_says_what_is_renewed_next():
    world = formed(1)
    told = world.cr["status"]["certificates"]
    assert told["nextRenewalTime"] == later(world.now, 60 * DAY_S)
    assert told["nextRenewalSecret"] == "db-client"
    assert told["authorityEndTime"] == later(world.now, 365 * DAY_S)


def test_certificates_are_for_the_hosts_of_members_and_of_the_client_service_and_clients_have_none():
    world = formed(1)

    def hosts(kind):
        found = x509.load_pem_x509_certificate(world.secrets[kind]["tls.crt"].encode())
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(alternatives.get_values_for_type(x509.DNSName))

    members = {"*.db.shop.svc", "*.db.shop.svc.cluster.local"}
    assert hosts("peer") == members
    assert hosts("server") > members | {"db-client.shop.svc", "localhost"}
    with pytest.raises(x509.ExtensionNotFound):
        hosts("client")


# --- renewals -------------------------------------------------------------------------------------


def test_certificates_are_renewed_before_their_end_without_a_restart_and_the_cluster_stays_ready():
    world, uids = formed(), None
    before, uids = world.serials(), [pod["metadata"]["uid"] for pod in world.pods.values()]
    world.wait(59 * DAY_S)
    world.settle()
    assert world.taken == []
    world.wait(DAY_S + 1)
    outcome = world.step()
    assert condition(outcome, "Ready").status == "True"
    world.settle()
    assert world.taken == ["issue db-peer", "issue db-server", "issue db-operator", "issue db-client"]
    assert renewed(before, world) == ["client", "operator", "peer", "server"]
    assert [pod["metadata"]["uid"] for pod in world.pods.values()] == uids


def test_a_shorter_duration_renews_what_is_good_for_longer_and_a_longer_one_nothing():
    world = formed()
    world.cr["spec"]["TLS"]["auto"]["duration"] = "2000h"
    world.settle()
    assert [step.split()[0] for step in world.taken] == ["issue"] * 4
    world.taken.clear()
    world.cr["spec"]["TLS"]["auto"]["duration"] = "2161h"
    world.settle()
    assert world.taken == []


def test_an_authority_is_renewed_without_cutting_anybody_off():
    world = formed()
    world.wait(240 * DAY_S)  # 120 days before its end; the certificates have been renewed meanwhile
    world.settle()
    world.taken.clear()
    before = world.tls("ca")["signer"]
    world.wait(6 * DAY_S)
    world.settle()
    assert world.taken == ["add-authority db-ca", *TOLD, *ROLLED[:-1], "use-authority db-ca", ROLLED[-1]]
    after = world.tls("ca")["signer"]
    assert {world.tls(kind)["issuer"] for kind in KINDS[1:]} == {before} != {after}
    world.taken.clear()
    world.lagging = {"db-2"}
    world.wait(0)
    world.lagging = {"db-2"}
    world.now = later(world.now, 55 * DAY_S)
    world.settle()
    assert world.taken == ["issue db-peer", "issue db-server", "issue db-operator", "issue db-client"]
    assert world.shown[world.pods["db-2"]["metadata"]["uid"]] == before
    world.taken.clear()
    world.wait(2 * 3600)
    world.settle()
    rolled = [step for step in world.taken if "authority" not in step and "trust" not in step]
    assert world.taken[:5] == ["drop-authority db-ca", *TOLD]
    assert sorted(rolled) == sorted(
        ["move-leader db-0", *(f"{verb} db-{at}" for verb in ("create", "delete") for at in range(3))]
    )
    assert world.tls("ca")["trusted"] == [after]


def test_a_daemon_that_was_away_until_all_had_ended_mends_it():
    world = formed()
    world.wait(100 * DAY_S)
    world.settle()
    assert world.taken == ["issue db-peer", "issue db-server", "issue db-operator", "issue db-client"]
    world.taken.clear()
    world.wait(400 * DAY_S)
    world.settle()
    assert world.taken[0] == "make-authority db-ca"
    assert len(world.tls("ca")["trusted"]) == 1
    assert condition(world.ask(), "Ready").status == "True"


def test_a_paused_cluster_is_left_alone():
    world = formed()
    world.cr["spec"]["paused"] = True
    world.wait(100 * DAY_S)
    world.settle()
    assert world.taken == []


# --- what somebody did to Secrets -----------------------------------------------------------------


def cut(values):
    return {**values, "tls.key": values.get("tls.key", "")[:60]}


def large_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def strangers(number):
    """So many authorities that nobody knows, as a bundle."""
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return "".join(certificates.new_authority("stranger", now, DAY_S).certificate for _ in range(number))


DAMAGED = {
    "gone": lambda world, kind: world.secrets.pop(kind),
    "without its key": lambda world, kind: world.secrets[kind].pop("tls.key", None),
    "with half a key": lambda world, kind: world.secrets.update({kind: cut(world.secrets[kind])}),
    "with the key of another": lambda world, kind: world.secrets[kind].update({"tls.key": world.secrets["client"]["tls.key"]}),
    "for other names": lambda world, kind: world.secrets.update({kind: dict(world.secrets["client"])}),
    "no certificates": lambda world, kind: world.secrets.update({kind: dict.fromkeys(("ca.crt", "tls.crt", "tls.key"), "x")}),
    "empty": lambda world, kind: world.secrets.update({kind: {}}),
    "with a key that takes long to check": lambda world, kind: world.secrets[kind].update({"tls.key": large_key()}),
    "with a certificate that is endless": lambda world, kind: world.secrets[kind].update({"tls.crt": world.secrets[kind].get("tls.crt", "") * 30}),
    "without trust": lambda world, kind: world.secrets[kind].update({"ca.crt": "x"}),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("kind", ["peer", "server", "operator"])
def test_a_certificate_that_somebody_broke_is_issued_again_and_nobody_restarts(kind, damage):
    world = formed()
    damage(world, kind)
    world.settle()
    assert len(world.taken) == 1
    assert world.taken[0] in {f"issue db-{kind}", f"trust db-{kind}"}
    assert condition(world.ask(), "Ready").status == "True"


def test_of_authorities_without_end_the_first_ones_are_looked_at():
    assert len(certificates.authorities_in(strangers(40))) == 16
    world = formed()
    world.secrets["peer"]["ca.crt"] += strangers(40)
    assert len(world.tls("peer")["trusted"]) == 16
    world.settle()
    assert world.tls("peer")["trusted"] == world.tls("ca")["trusted"]


@pytest.mark.parametrize("damage", [DAMAGED[name] for name in ("gone", "with half a key", "empty")])
def test_an_authority_whose_key_is_lost_is_followed_by_another_beside_the_one_that_members_trust(damage):
    world = formed()
    before = world.tls("ca")["signer"]
    damage(world, "ca")
    outcome = world.step()
    assert condition(outcome, "Recovering").status == "True"
    world.settle()
    assert world.taken == ["make-authority db-ca", *TOLD, *ROLLED[:-1], "use-authority db-ca", ROLLED[-1]]
    assert len(world.tls("ca")["trusted"]) == 2
    assert world.tls("peer")["issuer"] == before
    del world.secrets["client"]
    world.settle()
    assert world.tls("client")["issuer"] == world.tls("ca")["signer"] != before


def test_however_often_an_authority_loses_its_key_another_one_follows():
    world = formed()
    for _ in range(20):
        for key in ("tls.key", "next.key"):
            world.secrets["ca"].pop(key, None)
        assert world.tls("ca")["state"] == "broken"
        world.step()
        assert world.tls("ca")["state"] == "ok"
    world.settle()
    assert world.tls("peer")["trusted"] == world.tls("ca")["trusted"]


def test_where_every_key_is_lost_members_come_back_on_their_volumes():
    world = formed()
    data = dict(world.data)
    world.secrets.clear()
    world.settle()
    assert world.taken[:5] == MADE
    assert sorted(world.taken[5:]) == sorted(f"{verb} db-{at}" for verb in ("create", "delete") for at in range(3))
    assert world.data == data
    assert condition(world.ask(), "Ready").status == "True"


def test_where_every_key_is_lost_what_is_kept_in_memory_is_not_ended():
    world = formed(in_memory=True)
    world.secrets.clear()
    outcome = world.settle()
    assert world.taken == MADE
    found = condition(outcome, "Degraded")
    assert (found.status, found.reason) == ("True", "AuthorityLost")
    assert "put Secret db-ca back from a copy" in found.message


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_of_somebody_else_is_left_alone_and_told(kind):
    world = TlsWorld(1)
    world.secrets[kind], world.foreign = {"a": "b"}, {kind}
    outcome = world.settle()
    found = condition(outcome, "Degraded")
    assert (found.status, found.reason) == ("True", "SecretTaken")
    assert f"Secret db-{kind} exists and doesn't belong to this cluster; it is left alone (hint: " in found.message
    assert not world.pods
    del world.secrets[kind]
    world.foreign.clear()
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"


def test_a_secret_that_is_taken_from_a_running_cluster_keeps_members_from_nothing_but_rollouts():
    world = formed()
    world.foreign = {"server"}
    world.secrets["server"] = {}
    world.objects.pop(("Pod", "db-1"))
    world.cr["spec"]["pod"]["env"] = [{"name": "X", "value": "1"}]
    world.shown["u"] = ""
    outcome = world.settle()
    assert world.taken == ["create db-1"]
    assert condition(outcome, "Degraded").reason == "SecretTaken"


# --- laws -----------------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.tuples(st.just("damage"), st.sampled_from(sorted(DAMAGED)), st.sampled_from(KINDS)),
    st.tuples(st.just("wait"), st.sampled_from([0, 2 * 3600, 61 * DAY_S, 120 * DAY_S, 250 * DAY_S])),
    st.tuples(st.just("steps"), st.integers(1, 12)),
    st.tuples(st.just("pod"), st.integers(0, 2)),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(EVENTS, max_size=5))
def test_whatever_the_secrets_hold_all_end_with_certificates_that_all_members_trust(events):
    world = formed()
    data = dict(world.data)
    for event in events:
        world.lagging = {"db-0", "db-1", "db-2"}  # nodes take their time
        match event:
            case "damage", how, kind:
                if {kind, "client"} <= world.secrets.keys() and world.secrets["client"].get("tls.key"):
                    DAMAGED[how](world, kind)
            case "wait", seconds:
                world.wait(seconds)
            case "steps", count:
                for _ in range(count):
                    world.step()
            case "pod", at if len(world.pods) == 3 and {"peer", "server"} <= world.secrets.keys():
                world.objects.pop(("Pod", f"db-{at}"))
                world.run()
            case _:
                pass
    world.settle(200)
    assert condition(world.ask(), "Ready").status == "True"
    known = world.tls()
    assert {each["state"] for each in known.values()} == {"ok"}
    assert not any(world.is_cut_off(pod) for pod in world.pods.values())
    for pod in world.pods.values():
        assert {each["issuer"] for kind, each in known.items() if kind != "ca"} <= world.trusting[
            pod["metadata"]["uid"]
        ]
    assert world.data == data


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(sorted(DAMAGED)), st.sampled_from(KINDS), st.sampled_from([0, 61 * DAY_S, 200 * DAY_S, 250 * DAY_S])
)
def test_what_is_done_about_certificates_was_shown_before(how, kind, seconds):
    world = formed()
    world.now = later(world.now, seconds)
    DAMAGED[how](world, kind)
    shown = foreseen(world)
    world.settle(200)
    assert shown == world.taken


# --- the spec -------------------------------------------------------------------------------------

SECRETS = {"member": {"peerSecret": "p", "serverSecret": "s"}, "operatorSecret": "o"}
REFUSED = {
    "neither": ({}, r"\.spec\.TLS: must have either static or auto \(hint: auto"),
    "both": ({"auto": {}, "static": SECRETS}, r"\.spec\.TLS: must have either static or auto"),
    "no duration": ({"auto": {"duration": "90d"}}, r"auto\.duration: must be a duration as in 2160h or 1h30m, not '90d'"),
    "nothing": ({"auto": {"renewBefore": ""}}, r"auto\.renewBefore: must be a duration"),
    "minutes": ({"auto": {"duration": "50m", "renewBefore": "10m"}}, r"auto\.duration: must be an hour or more"),
    "renewed at once": ({"auto": {"duration": "24h", "renewBefore": "24h"}}, r"auto\.renewBefore: .* less than duration \(24h\), not 24h"),
    "renewed too late": ({"auto": {"renewBefore": "4m59s"}}, r"auto\.renewBefore: must be five minutes or more"),
    "a short authority": ({"auto": {"authorityDuration": "6479h"}}, r"auto\.authorityDuration: must be three times duration"),
    "an endless one": ({"auto": {"authorityDuration": "438001h"}}, r"auto\.authorityDuration: .*50 years\) at most"),
}  # fmt: skip


@pytest.mark.parametrize(("tls", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_with_field_and_hint(tls, message):
    cr = copy.deepcopy(World(1).cr)
    cr["spec"]["TLS"] = tls
    with pytest.raises(SpecError, match=message):
        cluster_spec(cr)


def test_durations_are_written_as_kubernetes_writes_them():
    assert AutoTls(duration="1h30m15s").duration_s == 5415
    assert AutoTls().authority_duration_s == 10 * 365 * DAY_S


def test_pods_of_clusters_with_other_certificates_or_none_stay_what_they_were_made_by():
    for spec in ({}, {"TLS": {"static": SECRETS}}):
        world = World(1, **spec)
        world.settle()
        (pod,) = world.pods.values()
        assert {name.rpartition("/")[2] for name in pod["metadata"]["annotations"]} == {
            "template", "initial-cluster", "initial-cluster-state",
        }  # fmt: skip
        assert labels_of(pod)["etcd_cluster"] == "db"
        assert not any("allowed-cn" in each for each in pod["spec"]["containers"][0]["args"])
        assert "certificates" not in world.cr["status"]
