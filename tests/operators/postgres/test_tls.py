"""Servers offer TLS with the certificate of a Secret, in a model of Kubernetes and PostgreSQL."""

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress
from kubectl_reconcile_operators.certificates.keys.given import tls_worth
from kubectl_reconcile_operators.postgres.steps import EXPIRED
from tests.operators.postgres.foreseen import foreseen
from tests.operators.postgres.world import World, condition

TLS = {"secretName": "certificate"}
REPLACED = ["delete db-1", "create db-1", "set-tls db-1"]


def formed(**spec):
    world = World(users=[{"name": "shop"}], **spec)
    world.settle()
    world.taken.clear()
    return world


def lines(world, slot):
    pod = world.pods[slot]["metadata"]["uid"]
    return world.running[pod]["hba"].splitlines()


def offers(world):
    return {name: world.running[pod["metadata"]["uid"]]["tls"]["on"] for name, pod in world.pods.items()}


def test_pods_are_replaced_one_by_one_and_offer_it_before_they_require_it():
    world = formed(replicas=2)
    world.secrets["certificate"] = "tls.crt"
    world.cr["spec"]["tls"] = {**TLS, "mode": "Require"}
    shown = foreseen(world)
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert shown == world.taken
    assert world.taken[:3] == REPLACED
    assert offers(world) == {"db-0": True, "db-1": True}
    assert all("host all all all scram-sha-256" not in lines(world, slot) for slot in world.pods)


def test_another_certificate_is_read_without_a_restart():
    world = formed(tls=TLS)
    world.secrets["certificate"] = "tls.crt"
    world.settle()
    world.taken.clear()
    world.server["tls"]["stale"] = True
    (step,) = world.step().actions
    assert step.summary == "have db-0 reload its certificate"
    world.settle()
    assert world.taken == ["set-tls db-0"]


def test_a_certificate_that_a_server_refuses_to_read_again_is_told_until_it_shows_it():
    world = formed(tls=TLS)
    world.secrets["certificate"] = "tls.crt"
    world.settle()
    world.server["tls"]["shown"] = False
    (step,) = world.ask().actions
    assert step.summary == "have db-0 reload its certificate"
    failed = ActionJournal.of(world.cr).ended(step, world.now, ActionProgress.FAILED, f"{step.key}: it goes on with the one before")  # fmt: skip
    world.cr["metadata"]["annotations"][ACTIONS] = failed.text()
    assert (
        condition(world.ask(), "Degraded").message == "have db-0 reload its certificate: it goes on with the one before"
    )
    world.server["tls"]["shown"] = True
    assert condition(world.settle(), "Degraded").status == "False"


def test_a_certificate_that_expires_is_told_and_is_not_read_in_place_of_another():
    world = formed(tls=TLS)
    world.secrets["certificate"] = "tls.crt"
    world.settle()
    world.taken.clear()
    world.worth["certificate"] = f"{EXPIRED} 2026-11-19"
    world.server["tls"]["stale"] = True
    outcome = world.settle()
    told = condition(outcome, "Degraded")
    assert (told.status, told.reason) == ("True", "TlsRefused")
    assert "Secret certificate has a certificate that expired on 2026-11-19" in told.message
    assert (condition(outcome, "Available").status, world.taken) == ("True", [])
    del world.worth["certificate"]
    outcome = world.settle()
    assert (condition(outcome, "Degraded").status, world.taken) == ("False", ["set-tls db-0"])


def test_a_server_that_restarts_offers_a_certificate_that_has_expired_rather_than_none():
    world = formed(tls={**TLS, "mode": "Require"})
    world.secrets["certificate"] = "tls.crt"
    world.settle()
    world.worth["certificate"] = f"{EXPIRED} 2026-11-19"
    world.kill("db-0")
    outcome = world.settle()
    assert condition(outcome, "Degraded").reason == "TlsRefused"
    assert offers(world) == {"db-0": True}


def test_a_database_takes_on_no_certificate_that_has_expired():
    world = formed()
    world.cr["spec"]["tls"] = {**TLS, "mode": "Require"}
    world.secrets["certificate"] = "tls.crt"
    world.worth["certificate"] = f"{EXPIRED} 2026-11-19"
    outcome = world.settle()
    assert (condition(outcome, "Degraded").reason, world.taken) == ("TlsRefused", [])


def pair(until=datetime(2026, 12, 1, tzinfo=UTC)):
    """A certificate that signs itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "db")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, datetime(2026, 11, 1, tzinfo=UTC), until)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {"tls.crt": made.sign(key, SHA256()).public_bytes(Encoding.PEM).decode(), "tls.key": pem.decode()}


WORTH = {
    "a pair does": (pair(), "ok"),
    "one half is no pair": ({"tls.crt": pair()["tls.crt"]}, "lacks the key tls.key"),
    "the key of another": (
        {**pair(), "tls.key": pair()["tls.key"]},
        "has a key that isn't that of its certificate",
    ),
    "it has expired": (pair(datetime(2026, 11, 20, 12, tzinfo=UTC)), f"{EXPIRED} 2026-11-20"),
    "words": (
        {"tls.crt": "none", "tls.key": "none"},
        "has a certificate or a key that can't be read (hint: PEM, without a passphrase; RSA, EC or Ed25519)",
    ),
}


@pytest.mark.parametrize(("values", "worth"), WORTH.values(), ids=WORTH)
def test_what_a_certificate_is_worth(values, worth):
    assert tls_worth(values, datetime(2026, 11, 20, 12, tzinfo=UTC)) == worth


def test_a_secret_that_is_not_there_is_told_and_the_database_stays_as_it_is():
    world = formed()
    world.cr["spec"] |= {"tls": {**TLS, "mode": "Require"}, "databases": [{"name": "orders"}]}
    outcome = world.settle()
    told = condition(outcome, "Degraded")
    assert (told.status, told.reason) == ("True", "TlsRefused")
    assert told.message.startswith(".spec.tls.secretName: Secret certificate isn't there (hint: ")
    assert outcome.warnings == (told.message,)
    assert world.taken == ["make-database orders"]
    assert "host all all all scram-sha-256" in lines(world, "db-0")
    world.secrets["certificate"] = "tls.crt"
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert offers(world) == {"db-0": True}


def test_what_was_required_stays_required_when_the_secret_goes():
    world = formed(tls={**TLS, "mode": "Require"})
    world.secrets["certificate"] = "tls.crt"
    world.settle()
    del world.secrets["certificate"]
    world.kill("db-0")
    outcome = world.settle()
    assert condition(outcome, "Degraded").reason == "TlsRefused"
    assert condition(outcome, "Available").status == "True"
    assert (offers(world), lines(world, "db-0")[-1]) == ({"db-0": False}, "hostssl all all all scram-sha-256")


def test_without_it_all_get_in_again():
    world = formed(tls={**TLS, "mode": "Require"})
    world.secrets["certificate"] = "tls.crt"
    world.settle()
    del world.cr["spec"]["tls"]
    world.settle()
    assert (offers(world), lines(world, "db-0")[-1]) == ({"db-0": False}, "host all all all scram-sha-256")


def test_secrets_of_users_say_that_it_is_to_be_asked_for():
    world = World(users=[{"name": "shop"}], tls=TLS)
    world.secrets["certificate"] = "tls.crt"
    made = [action.parameters for _ in range(8) for action in world.step().actions if action.verb == "make-secret"]
    assert {each["secret"]: each["sslmode"] for each in made} == {"db-superuser": "", "db-user-shop": "require"}


def test_a_server_that_does_not_take_the_certificate_holds_up_nothing_else():
    world = World(tls=TLS)
    world.secrets["certificate"] = "tls.crt"
    offer = next(action for _ in range(8) for action in world.step().actions if action.verb == "set-tls")
    world.server["tls"]["on"] = False
    failed = ActionJournal.of(world.cr).ended(offer, world.now, ActionProgress.FAILED, f"{offer.key}: it doesn't")
    world.cr["metadata"]["annotations"][ACTIONS] = failed.text()
    world.cr["spec"]["databases"] = [{"name": "orders"}]
    world.taken.clear()
    world.step()
    outcome = world.step()
    assert world.taken == ["make-database orders", "set-tls db-0"]
    assert condition(outcome, "Degraded").message == "have db-0 offer TLS: it doesn't"
