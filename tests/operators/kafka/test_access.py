"""Who gets to brokers: certificates of their own, listeners that come and go, users with passwords of Secrets, and that nobody is cut off by what goes wrong with these."""

import copy
import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile_operators.kafka.access.listeners import client_data, in_effect
from kubectl_reconcile_operators.kafka.spec import kafka_spec
from tests.operators.kafka.access import AccessWorld, listeners_of
from tests.operators.kafka.foreseen import foreseen
from tests.operators.kafka.world import a_cr, condition

PLAIN = {"name": "plain"}
TLS = {"name": "tls", "port": 9094, "tls": {"secretName": "kf-tls"}}
SCRAM = {"name": "scram", "port": 9095, "authentication": "scram"}
BOTH = {**TLS, "authentication": "scram"}
MADE = ["make-authority-ca", "issue-broker", "issue-operator"]
ROLLED = ["delete kf-1", "create kf-1", "delete kf-2", "create kf-2", "delete kf-0", "create kf-0"]


def formed(**spec):
    return copy.deepcopy(_formed(tuple(sorted(spec.items()))))


@functools.cache
def _formed(spec):
    world = AccessWorld(**dict(spec))
    world.settle()
    world.took()
    return world


# --- certificates of its own ----------------------------------------------------------------------


def test_brokers_begin_once_they_have_certificates_and_let_nobody_in_without_one():
    world = AccessWorld()
    assert foreseen(world)[:3] == MADE
    world.settle()
    assert world.took() == [*MADE, "create kf-0", "create kf-1", "create kf-2"]
    config = world.pods[0]["spec"]["initContainers"][0]["env"][1]["value"].splitlines()
    for name in ("broker", "controller"):
        assert f"listener.name.{name}.ssl.client.auth=required" in config
    assert "listener.security.protocol.map=BROKER:SSL,CONTROLLER:SSL,PLAIN:PLAINTEXT" in config


def test_a_certificate_of_its_own_is_renewed_in_time_and_brokers_restart_for_it_one_at_a_time():
    world = formed()
    world.now = "2027-10-25T12:00:00Z"
    world.settle()
    assert world.took() == ["issue-broker", "issue-operator", *ROLLED]
    assert world.cr["status"]["certificates"]["nextRenewalSecret"] in {"kf-broker", "kf-operator"}


def test_another_authority_takes_over_without_cutting_anybody_off():
    world = formed()
    for now in ("2035-11-01T00:00:00Z", "2036-10-25T00:00:00Z", "2036-10-25T02:00:00Z"):
        world.now = now
        world.settle()
        assert not any(each["error"] for each in world.facts()["pods"].values())
    taken = world.took()
    assert taken.count("add-authority-ca") == taken.count("use-authority-ca") == taken.count("drop-authority-ca") == 1
    assert taken.index("use-authority-ca") > max(taken.index(f"delete kf-{each}") for each in range(3))
    assert len(world.own()[1]["ca"]["trusted"]) == 1


def with_a_topic_that_one_broker_holds():
    """A cluster whose broker 1 doesn't restart unless somebody says so, and whose next authority signs already."""
    world = formed()
    world.topic("logs", [1])
    world.now = "2035-11-01T00:00:00Z"
    world.settle()
    approve_restart(world)
    world.settle()
    assert {"create kf-1", "use-authority-ca"} <= {*world.took()}
    return world


def approve_restart(world):
    world.approve(next(each.key for each in world.ask().actions if each.verb == "allow-restart"))


def test_an_authority_stays_trusted_while_a_broker_shows_what_it_signed_however_long_its_restart_takes():
    world = with_a_topic_that_one_broker_holds()
    for now in ("2036-10-25T00:00:00Z", "2036-10-25T06:00:00Z"):
        world.now = now
        outcome = world.settle()
        assert not any(each["error"] for each in world.facts()["pods"].values())
        assert condition(outcome, "Rolling").reason == "Restarting"
    assert world.took() == ["issue-broker", "issue-operator", *ROLLED[2:]]
    assert len(world.own()[1]["ca"]["trusted"]) == 2
    approve_restart(world)
    world.settle()
    assert "drop-authority-ca" in world.took()
    assert len(world.own()[1]["ca"]["trusted"]) == 1


def test_where_every_key_is_lost_brokers_come_back_on_their_volumes():
    world = formed()
    disks = copy.deepcopy(world.disks)
    world.secrets.clear()
    world.settle()
    taken = world.took()
    assert taken[:3] == MADE
    assert sorted(taken[3:]) == sorted(ROLLED)
    assert world.disks == disks
    assert world.cr["status"]["readyBrokers"] == 3


@pytest.mark.parametrize("doomed", [{1}, {0, 1, 2}], ids=["of one", "of all"])
def test_where_every_key_is_lost_and_volumes_would_be_gone_with_their_pods_no_pod_is_deleted(doomed):
    world = formed()
    disks, secrets = copy.deepcopy(world.disks), copy.deepcopy(world.secrets)
    world.secrets.clear()
    for number in doomed:
        world.doom_volume(number)
    said = condition(world.settle(), "Degraded")
    assert (said.reason, world.took(), world.disks) == ("AuthorityLost", MADE, disks)
    assert f"the data of {', '.join(f'kf-{each}' for each in sorted(doomed))} would be lost" in said.message
    world.secrets["ca"] = secrets["ca"]
    world.settle()
    assert {number: world.disks[number] for number in doomed} == {number: disks[number] for number in doomed}
    assert world.cr["status"]["readyBrokers"] == 3


def test_a_broker_that_is_away_comes_back_while_others_would_lose_their_volumes():
    world = formed()
    world.secrets.clear()
    world.doom_volume(1)
    world.objects.pop(("Pod", "kf-2"))
    assert condition(world.settle(), "Degraded").reason == "AuthorityLost"
    assert world.took() == [*MADE, "create kf-2"]


def test_no_broker_restarts_onto_a_secret_of_somebody_else_and_all_else_goes_on():
    world = with_tls()
    world.foreign = {"broker"}
    world.put("kf-tls")
    world.change(config={"queued.max.requests": "9"}, topics=[{"name": "orders"}])
    said = condition(world.settle(), "Degraded")
    assert said.reason == "SecretTaken"
    assert "Secret kf-broker exists and doesn't belong to this Kafka" in said.message
    assert world.took() == ["make-topic-orders", *(f"reload-certificates-{each}" for each in range(3))]
    world.foreign = set()
    world.settle()
    assert sorted(each for each in world.took() if each != "elect-leaders") == sorted(ROLLED)


def test_that_a_secret_is_somebody_else_s_is_said_while_a_broker_is_waited_for():
    world = formed()
    world.foreign, world.silent = {"broker"}, {1}
    outcome = world.settle()
    assert (condition(outcome, "Ready").reason, world.took()) == ("BrokerAway", [])
    assert condition(outcome, "Degraded").reason == "SecretTaken"


def test_no_authority_is_dropped_while_a_secret_is_somebody_else_s():
    world = with_a_topic_that_one_broker_holds()
    world.foreign = {"broker"}
    for number in range(3):
        world.objects.pop(("Pod", f"kf-{number}"))
    for now in ("2036-10-25T00:00:00Z", "2036-10-25T06:00:00Z"):
        world.now = now
        world.settle()
    assert "drop-authority-ca" not in world.took()


def test_a_secret_of_somebody_else_is_left_alone_and_said():
    world = AccessWorld()
    world.secrets["ca"], world.foreign = {"ca.crt": "x"}, {"ca"}
    outcome = world.settle()
    said = condition(outcome, "Degraded")
    assert (said.reason, world.took(), world.objects) == ("SecretTaken", [], {})
    assert "Secret kf-ca exists and doesn't belong to this Kafka" in said.message


# --- listeners ------------------------------------------------------------------------------------


def test_a_listener_with_tls_comes_beside_the_plain_one_a_broker_at_a_time():
    world = formed()
    world.put("kf-tls")
    world.change(listeners=[PLAIN, TLS])
    shown = foreseen(copy.deepcopy(world))
    while not world.connects("tls"):
        world.step()
        assert world.connects("plain")
    world.settle()
    assert world.took() == ROLLED == shown
    ports = world.objects["Service", "kf"]["spec"]["ports"]
    assert {each["name"]: each["port"] for each in ports} == {"plain": 9092, "tls": 9094}
    world.change(listeners=[BOTH])
    world.settle()
    assert world.objects["ConfigMap", "kf"]["data"] == {
        "bootstrap.servers": "kf.shop.svc:9094",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "tls.properties": "bootstrap.servers=kf.shop.svc:9094\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n",
    }


BAD_SECRETS = {
    "that isn't there": None,
    "with another key": "has a key that isn't that of its certificate",
    "that has expired": "has a certificate that expired on 2026-11-01",
}


@pytest.mark.parametrize("state", BAD_SECRETS.values(), ids=BAD_SECRETS)
def test_a_listener_waits_for_its_secret_and_all_stay_as_they_were_until_then(state):
    world = formed()
    if state:
        world.put("kf-tls", state)
    world.change(listeners=[BOTH])
    outcome = world.settle()
    said = condition(outcome, "Degraded")
    assert (said.reason, world.took()) == ("TlsRefused", [])
    assert said.message.startswith(".spec.listeners[0].tls.secretName: Secret kf-tls ")
    assert said.message.endswith("; listeners stay as they are")
    assert world.connects("plain")
    assert world.cr["status"]["bootstrapServers"] == "kf.shop.svc:9092"
    world.put("kf-tls")
    world.settle()
    assert world.took() == ROLLED
    assert (world.connects("tls"), world.listens("plain")) == (True, 0)


def test_a_cluster_begins_without_a_listener_whose_secret_is_not_there_yet():
    world = AccessWorld(listeners=[TLS])
    world.settle()
    assert world.cr["status"]["readyBrokers"] == 3
    assert world.cr["status"]["listeners"] == []
    world.took()
    world.put("kf-tls")
    world.settle()
    assert world.took() == ROLLED
    assert world.connects("tls")


def test_a_certificate_that_changes_is_read_again_and_nobody_restarts():
    world = with_tls()
    world.put("kf-tls")
    world.lagging = {1}
    for _ in range(5):
        world.step()
    assert [*dict.fromkeys(world.took())] == ["reload-certificates-0", "reload-certificates-1"]
    world.lagging = set()
    assert condition(world.settle(), "Ready").status == "True"
    assert [*dict.fromkeys(world.took())] == ["reload-certificates-1", "reload-certificates-2"]


def test_brokers_do_not_restart_while_none_would_start_again():
    world = with_tls()
    del world.given["kf-tls"]
    world.change(config={"queued.max.requests": "9"})
    outcome = world.settle()
    assert (condition(outcome, "Ready").reason, world.took()) == ("TlsRefused", [])
    assert "don't restart" in condition(outcome, "Degraded").message
    world.put("kf-tls")
    world.settle()
    assert sorted(each for each in world.took() if not each.startswith("reload")) == sorted(ROLLED)


def with_tls():
    world = formed()
    world.put("kf-tls")
    world.change(listeners=[PLAIN, TLS])
    world.settle()
    world.took()
    return world


@pytest.mark.parametrize("before", [(), (PLAIN,), (PLAIN, TLS)])
def test_what_is_wanted_is_in_effect_where_it_can_be(before):
    told = kafka_spec(a_cr(listeners=list(before))).listeners if before else ()
    wanted = kafka_spec(a_cr(listeners=[SCRAM, TLS])).listeners
    assert in_effect(wanted, told, {"kf-tls"}) == wanted
    is_able = TLS in before
    assert in_effect(wanted, told, set()) == (wanted if is_able else told or wanted[:1])


def test_clients_are_told_of_each_listener():
    listeners = kafka_spec(a_cr(listeners=[PLAIN, SCRAM])).listeners
    assert client_data(listeners, "kf.shop.svc") == {
        "bootstrap.servers": "kf.shop.svc:9092",
        "security.protocol": "PLAINTEXT",
        "plain.properties": "bootstrap.servers=kf.shop.svc:9092\nsecurity.protocol=PLAINTEXT\n",
        "scram.properties": "bootstrap.servers=kf.shop.svc:9095\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n",
    }


REFUSED = {
    "no listener": ({"listeners": []}, ".spec.listeners: must be 1 to 8 listeners"),
    "a name twice": ({"listeners": [PLAIN, {**TLS, "name": "plain"}]}, ".spec.listeners[1].name: plain is that of listener 0, too"),
    "a port twice": ({"listeners": [PLAIN, {**TLS, "port": 9092}]}, ".spec.listeners[1].port: 9092 is that of listener 0, too"),
    "the brokers' port": ({"listeners": [{**PLAIN, "port": 9091}]}, ".spec.listeners[0].port: must be another one than 9091"),
    "a name of Kafka's": ({"listeners": [{"name": "controller"}]}, ".spec.listeners[0].name: must be 1 to 10 small letters"),
    "a Secret that can't be": ({"listeners": [{**TLS, "tls": {"secretName": "../x"}}]}, ".spec.listeners[0].tls.secretName: must be"),
    "a way to log in": ({"listeners": [{**PLAIN, "authentication": "plain"}]}, ".spec.listeners[0].authentication: must be one of none, scram"),
    "a user's name": ({"users": [{"name": "a=b"}]}, ".spec.users[0].name: must be 1 to 34 small letters"),
    "a user twice": ({"users": [{"name": "app"}, {"name": "app"}]}, ".spec.users[1].name: app is there twice"),
    "rights": ({"config": {"authorizer.class.name": "x"}}, ".spec.config[authorizer.class.name]: can't be set, since rights of users"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_of_access_is_refused_with_its_field(case):
    spec, why = REFUSED[case]
    with pytest.raises(SpecError) as refused:
        kafka_spec(a_cr(**spec))
    assert str(refused.value).startswith(why)


# --- users ----------------------------------------------------------------------------------------


def test_users_are_made_with_passwords_of_secrets_that_are_made_too():
    world = AccessWorld(listeners=[SCRAM], users=[{"name": "app"}, {"name": "web"}])
    world.put("kf-user-web")
    world.settle()
    steps = [each.rpartition("-")[0] if each.startswith("set-user") else each for each in world.took()]
    assert steps == [
        *MADE,
        "create kf-0",
        "create kf-1",
        "create kf-2",
        "make-secret-app",
        "set-user-app",
        "set-user-web",
    ]
    assert [each["name"] for each in world.cr["status"]["users"]] == ["app", "web"]
    assert world.users == {name: world.given[f"kf-user-{name}"]["version"] for name in ("app", "web")}


def test_a_password_that_changes_is_set_once_and_no_broker_restarts():
    world = formed_with_users()
    world.put("kf-user-app")
    world.settle()
    assert [each.rpartition("-")[0] for each in world.took()] == ["set-user-app"]
    assert world.users["app"] == world.given["kf-user-app"]["version"]
    world.put("kf-user-app", "lacks the key password")
    outcome = world.settle()
    assert world.took() == []
    assert condition(outcome, "Degraded").message == "Secret kf-user-app lacks the key password"


def test_who_is_taken_out_of_the_spec_logs_in_no_more_until_it_is_back_and_others_stay():
    world = formed_with_users()
    world.users["stranger"] = "x"
    world.change(users=[])
    world.settle()
    assert [each.rpartition("-")[0] for each in world.took()] == ["lock-user-app"]
    assert world.users == {"stranger": "x", "app": "a password that nobody knows"}
    assert world.cr["status"]["users"] == []
    world.change(users=[{"name": "app"}])
    world.settle()
    assert [each.rpartition("-")[0] for each in world.took()] == ["set-user-app"]
    assert world.users["app"] == world.given["kf-user-app"]["version"]


def test_a_user_that_somebody_took_away_comes_back():
    world = formed_with_users()
    world.users.clear()
    world.settle()
    assert world.users == {"app": world.given["kf-user-app"]["version"]}


def with_noted(*users):
    """A cluster whose status says that these were given their passwords, which they were."""
    world = formed()
    for user in users:
        world.put(f"kf-user-{user}")
        world.users[user] = world.given[f"kf-user-{user}"]["version"]
    world.cr["status"]["users"] = [{"name": user, "secretVersion": world.users[user]} for user in users]
    return world


def test_users_are_locked_out_before_those_are_made_that_come_in_their_place():
    old, new = [f"z-{at}" for at in range(60)], [f"a-{at}" for at in range(60)]
    world = with_noted(*old)
    for user in new:
        world.put(f"kf-user-{user}")
    world.change(users=[{"name": user} for user in new])
    world.settle(150)
    assert [each.partition("-user-")[0] for each in world.took()] == ["lock"] * 60 + ["set"] * 60
    assert {world.users[user] for user in old} == {"a password that nobody knows"}


def test_all_are_locked_out_that_the_status_names_however_many():
    stay, left = [f"a-{at}" for at in range(100)], [f"z-{at}" for at in range(30)]
    world = with_noted(*stay, *left)
    world.change(users=[{"name": user} for user in stay])
    world.settle()
    assert {world.users[user] for user in left} == {"a password that nobody knows"}
    assert [each["name"] for each in world.cr["status"]["users"]] == sorted(stay)


def test_who_is_taken_out_of_the_spec_before_the_status_says_who_it_is_is_locked_out():
    world = formed()
    world.put("kf-user-app")
    world.change(users=[{"name": "app"}])
    world.steps_until(lambda: "app" in world.users)
    assert world.cr["status"]["users"] == []
    world.change(users=[])
    world.settle()
    assert world.users == {"app": "a password that nobody knows"}
    assert [each.partition("-user-")[0] for each in world.took()] == ["set", "lock"]
    assert world.cr["status"]["users"] == []


def formed_with_users():
    world = formed()
    world.change(users=[{"name": "app"}])
    world.settle()
    world.took()
    return world


# --- laws -----------------------------------------------------------------------------------------


CHANGES = st.one_of(
    st.tuples(st.just("listeners"), st.lists(st.sampled_from([PLAIN, TLS, SCRAM, {**BOTH, "name": "both", "port": 9096}]), min_size=1, max_size=3, unique_by=lambda each: each["name"])),
    st.tuples(st.just("users"), st.lists(st.sampled_from([{"name": "app"}, {"name": "web"}]), max_size=2, unique_by=lambda each: each["name"])),
    st.tuples(st.just("secret"), st.sampled_from(["kf-tls", "kf-user-app", "kf-user-web"]), st.sampled_from(["ok", "ok", "is of no use", "gone"])),
    st.tuples(st.just("lose"), st.sampled_from(["ca", "broker", "operator"])),
    st.tuples(st.just("step"), st.integers(1, 4)),
)  # fmt: skip


def apply(world, change):
    match change:
        case ("listeners" | "users" as field, wanted):
            world.change(**{field: wanted})
        case ("secret", name, "gone"):
            world.given.pop(name, None)
        case ("secret", name, state):
            world.put(name, state)
        case ("lose", kind):
            world.secrets.pop(kind, None)
        case (_, times):
            for _ in range(times):
                world.step()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CHANGES, max_size=7))
def test_whatever_happens_to_secrets_all_ends_as_specified_once_they_are_good(changes):
    world = formed()
    stays = {**PLAIN, "name": "always", "port": 9099}
    world.change(listeners=[stays])
    world.settle()
    for change in changes:
        apply(world, ("listeners", [stays, *change[1]]) if change[0] == "listeners" else change)
        assert all("always" in listeners_of(pod) for pod in world.pods.values()), "a listener that stays is gone"
    for name in ("kf-tls", *(f"kf-user-{each['name']}" for each in world.spec.get("users", []))):
        world.put(name)
    outcome = world.settle(120)
    assert condition(outcome, "Ready").status == "True"
    wanted = {each["name"]: each.get("tls", {}).get("secretName", "") for each in world.spec["listeners"]}
    assert all(listeners_of(pod) == wanted for pod in world.pods.values())
    assert not any(False in each["shown"].values() for each in world.facts()["pods"].values())
    assert {each["name"] for each in world.spec.get("users", [])} <= world.users.keys()
    named = {each["name"] for each in world.spec.get("users", [])}
    for name, version in world.users.items():
        assert version == (
            world.given[f"kf-user-{name}"]["version"] if name in named else "a password that nobody knows"
        )
