"""Kafka on real brokers: begun, filled with topics, written and read, changed, and hurt, by one cluster for all tests of this file."""

import shutil

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from tests.conftest import KubectlError
from tests.e2e.conftest import PROGRAM, crds, new_daemon  # noqa: F401 - fixtures

VERSION = "4.3.1"
AT = "kf:9092"


@pytest.fixture(scope="module", autouse=True)
def _programs():
    """Brokers of this version, where this machine can have them."""
    missing = [each for each in ("java", "mvn") if not shutil.which(each)]
    if missing:
        pytest.skip(f"there is no {' and no '.join(missing)} on PATH")
    try:
        catalog.find(f"kafka:{VERSION}")
    except ImageError:
        catalog.build(print, only=f"kafka:{VERSION}")


@pytest.fixture
def kf(real, crds, new_daemon) -> "Kf":  # noqa: F811 - fixtures
    found = Kf(real, new_daemon(real.kubectl.kubeconfig, real.namespace).start())
    yield found
    found.end()


class Kf:
    """One Kafka called kf, and a daemon that looks after it."""

    def __init__(self, real, daemon):
        self.real, self.daemon, self.spec = real, daemon, {}

    def apply(self, **spec):
        self.spec = {"version": VERSION, "storage": {"size": "1Gi"}, "deletionPolicy": "Delete", **self.spec, **spec}
        kind = {"apiVersion": "kafka.example.com/v1alpha1", "kind": "Kafka"}
        self.real.apply({**kind, "metadata": {"name": "kf"}, "spec": self.spec})
        return self

    @property
    def cr(self):
        return self.real.get(f"/apis/kafka.example.com/v1alpha1/namespaces/{self.real.namespace}/kafkas/kf")

    def condition(self, type_):
        found = self.cr.get("status", {}).get("conditions", [])
        return next((each for each in found if each["type"] == type_), {"status": "", "message": "", "reason": ""})

    def is_settled(self):
        cr = self.cr
        is_newest = cr.get("status", {}).get("observedGeneration") == cr.get("metadata", {}).get("generation")
        return is_newest and self.condition("Ready")["status"] == "True"

    def settled(self):
        self.real.eventually(self.is_settled, "all is as specified", timeout_s=900)
        return self.cr["status"]

    def inside(self, script, *, pod="kf-0"):
        """What a script says in a broker's pod; one that fails is tried again, since names and leaders may take a moment."""
        last = ""

        def said():
            nonlocal last
            try:
                command = ("exec", "-n", self.real.namespace, pod, "-c", "kafka", "--", "sh", "-c", script)
                return [self.real.kubectl(*command)]
            except KubectlError as error:
                last = str(error)
                return None

        return self.real.eventually(said, f"{script} succeeds", timeout_s=600)[0].split()

    def topic(self, name):
        lines = self.inside(f"kafka-topics.sh --bootstrap-server {AT} --describe --topic {name}")
        return " ".join(lines)

    def end(self):
        gone = ("delete", "kafka", "kf", "-n", self.real.namespace, "--timeout=600s", "--ignore-not-found")
        self.real.kubectl(*gone)


def test_brokers_begin_hold_records_and_change_without_losing_one(kf):
    status = kf.apply(topics=[{"name": "orders", "partitions": 3}]).settled()
    assert (status["phase"], status["readyBrokers"], status["offlinePartitions"]) == ("Running", 3, 0)
    assert [each["replicas"] for each in status["brokers"]] == [3, 3, 3]

    kf.inside(
        f"seq 1 1000 | kafka-console-producer.sh --bootstrap-server {AT} --topic orders --command-property acks=all"
    )
    read = f"kafka-console-consumer.sh --bootstrap-server {AT} --topic orders --from-beginning --max-messages 1000 --timeout-ms 60000"
    assert sorted(map(int, kf.inside(read))) == list(range(1, 1001))
