"""Who gets to a Kafka, on real brokers: over TLS, with passwords that change, and nobody without."""

import base64
import datetime as dt
import json

import pytest

from kubectl_reconcile_operators.certificates.keys.pairs import Subject, issue, new_authority
from tests.e2e.conftest import crds, new_daemon  # noqa: F401 - fixtures
from tests.operators.real.test_kafka import _programs, kf, zones  # noqa: F401 - fixtures

PLAIN = {"name": "plain"}
SECURED = {"name": "secured", "port": 9094, "tls": {"secretName": "kf-tls"}, "authentication": "scram"}
TOPIC = {"name": "orders", "partitions": 3}
ENTERING = """
import json, sys
from kafka import KafkaConsumer, TopicPartition
settings, ca = json.loads(sys.argv[1]), sys.argv[2]
if "ssl_cafile" in settings:
    open(settings["ssl_cafile"], "w").write(ca)
try:
    consumer = KafkaConsumer(group_id=None, bootstrap_timeout_ms=20000, request_timeout_ms=15000, **settings)
    places = [TopicPartition("orders", number) for number in range(3)]
    print("read", sum(consumer.end_offsets(places).values()) >= 0)
except Exception as error:
    print("refused", type(error).__name__)
"""

SHOWN = """
import ssl, sys
print(ssl.get_server_certificate((sys.argv[1], 9094)).strip() == sys.argv[2].strip())
"""


class Clients:
    """Who tries to get in. *authority* is whom they trust."""

    def __init__(self, cluster):
        self.kf, self.tries = cluster, 0
        self.authority = new_authority("clients", dt.datetime.now(dt.UTC), 86_400)

    def certify(self):
        """Put a new certificate into the Secret of the listener; returns its bytes."""
        place = self.kf.real.namespace
        hosts = ("kf", f"kf.{place}.svc", f"*.kf-brokers.{place}.svc")
        pair = issue(self.authority, Subject("clients", hosts), dt.datetime.now(dt.UTC), 3600)
        self.secret("kf-tls", {"tls.crt": pair.certificate, "tls.key": pair.key})
        return pair.certificate

    def secret(self, name, values):
        self.kf.real.apply({"kind": "Secret", "metadata": {"name": name}, "stringData": values})

    def password(self, user):
        path = f"/api/v1/namespaces/{self.kf.real.namespace}/secrets/kf-user-{user}"
        return base64.b64decode(self.kf.real.get(path)["data"]["password"]).decode()

    def enter(self, port, **settings):
        """What a client gets to hear that comes in so."""
        self.tries += 1
        name, given = f"client-{self.tries}", json.dumps({"bootstrap_servers": f"kf:{port}", **settings})
        argv = ("python", "-c", ENTERING, given, self.authority.certificate)
        self.kf.real.run(*argv, name=name, image="python", pod={"restartPolicy": "Never"})
        self.kf.real.phase("Succeeded", name, timeout_s=600)
        return self.kf.real.logs(name)[-1].split()[0]

    def is_shown(self, number, certificate):
        """Whether a broker shows this certificate."""
        self.tries += 1
        name = f"client-{self.tries}"
        argv = ("python", "-c", SHOWN, f"kf-{number}.kf-brokers", certificate)
        self.kf.real.run(*argv, name=name, image="python", pod={"restartPolicy": "OnFailure"})
        self.kf.real.phase("Succeeded", name, timeout_s=600)
        return self.kf.real.logs(name)[-1] == "True"

    def log_in(self, user, password, **settings):
        given = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": user, "sasl_plain_password": password}
        return self.enter(9094, security_protocol="SASL_SSL", ssl_cafile="/tmp/ca.pem", **given, **settings)  # noqa: S108 - of a container


@pytest.fixture
def clients(kf):  # noqa: F811 - a fixture
    return Clients(kf)


@pytest.mark.usefixtures("zones")
def test_tls_and_passwords_come_without_losing_a_record_and_then_nobody_gets_in_without(kf, clients):  # noqa: F811 - a fixture
    status = kf.apply(topics=[TOPIC]).settled()
    assert [each["rack"] for each in status["brokers"]] == ["zone-kf-0", "zone-kf-1", "zone-kf-2"]
    kf.begin_writing()
    clients.certify()
    kf.apply(topics=[TOPIC], listeners=[PLAIN, SECURED], users=[{"name": "app"}])
    status = kf.settled()
    assert [each["name"] for each in status["listeners"]] == ["plain", "secured"]
    acknowledged, found = kf.end_writing(), kf.read()
    assert not {*acknowledged} - {each for some in found.values() for each in some}
    assert all(some == sorted(some) for some in found.values())

    first = clients.password("app")
    kf.awaited(lambda: clients.log_in("app", first) == "read", "who knows the password gets in")
    assert clients.log_in("app", "wrong") == "refused"
    assert clients.enter(9094, security_protocol="SSL", ssl_cafile="/tmp/ca.pem") == "refused"  # noqa: S108 - of a container
    assert clients.enter(9094) == "refused"
    assert clients.enter(9091) == "refused"

    pods = {number: kf.real.pod(f"kf-{number}")["metadata"]["uid"] for number in range(3)}
    before = {each["name"]: each["secretVersion"] for each in status["users"]}
    clients.secret("kf-user-app", {"password": "opens sesame"})
    certificate = clients.certify()
    for number in range(3):
        kf.awaited(
            lambda at=number: clients.is_shown(at, certificate), "brokers show the certificate that is there now"
        )
    kf.awaited(lambda: changed(kf, before), "the password is another one")
    assert clients.log_in("app", first) == "refused"
    kf.awaited(lambda: clients.log_in("app", "opens sesame") == "read", "who knows the new password gets in")
    kf.settled()
    assert {number: kf.real.pod(f"kf-{number}")["metadata"]["uid"] for number in range(3)} == pods
    assert "opens sesame" not in json.dumps(kf.cr) + kf.daemon.log

    kf.apply(topics=[TOPIC], listeners=[SECURED], users=[{"name": "web"}]).settled()
    assert clients.enter(9092) == "refused"
    assert clients.log_in("app", "opens sesame") == "refused"
    kf.awaited(lambda: clients.log_in("web", clients.password("web")) == "read", "who is new gets in")


def changed(kf, before):  # noqa: F811 - a fixture's name
    status = kf.cr.get("status", {})
    now = {each["name"]: each["secretVersion"] for each in status.get("users", [])}
    return status if now.keys() == before.keys() and now != before else None


def test_the_api_server_copies_the_labels_of_a_place_from_nodes_to_pods(real):
    key = "topology.kubernetes.io/region"
    real.kubectl("label", "node", "processes", f"{key}=here", "--overwrite")
    real.run("sleep", "1000", name="placed")
    real.ready("placed")
    assert real.pod("placed")["metadata"]["labels"][key] == "here"
