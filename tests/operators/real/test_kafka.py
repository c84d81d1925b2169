"""Kafka on real brokers: begun, filled with topics, written and read, changed, and hurt, by one cluster for all tests of this file."""

import json
import os
import re
import shutil
import subprocess

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.images.kafka_programs import KAFKA_VERSIONS
from tests.chaos.kafka.live import LiveKafka
from tests.conftest import KubectlError
from tests.e2e.conftest import PROGRAM, crds, new_daemon  # noqa: F401 - fixtures

OLD, VERSION = KAFKA_VERSIONS
ZONE = "topology.kubernetes.io/zone"
POLICY = "admissionregistration.k8s.io/v1"
END = "/tmp/end"  # noqa: S108 - of a container
_LINES = 40
"""So many lines of each log are told of a cluster where something doesn't come true."""


@pytest.fixture(scope="module", autouse=True)
def _programs():
    """Brokers of these versions, where this machine can have them."""
    missing = [each for each in ("java", "mvn") if not shutil.which(each)]
    if missing:
        pytest.skip(f"there is no {' and no '.join(missing)} on PATH (Debian: apt-get install maven)")
    for version in KAFKA_VERSIONS:
        try:
            catalog.find(f"kafka:{version}")
        except ImageError:
            catalog.build(print, only=f"kafka:{version}")


@pytest.fixture
def zones(real):
    """Have each broker stand in a zone of its own, but for kf-3, which is in that of kf-0, as if their nodes did: the label comes to pods as they are made."""
    name, place = f"zones-{real.namespace}", real.namespace
    key = f'"/metadata/labels/" + jsonpatch.escapeKey("{ZONE}")'
    patch = f'[JSONPatch{{op: "add", path: {key}, value: "zone-" + object.metadata.name.replace("kf-3", "kf-0")}}]'
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": place}}
    spec = {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"namespaceSelector": here, "resourceRules": [pods]},
        "matchConditions": [{"name": "brokers", "expression": 'object.metadata.name.startsWith("kf-")'}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }  # fmt: skip
    whole = {"apiVersion": POLICY, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {"kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {"policyName": name}}
    real.kubectl.apply([whole, {"apiVersion": POLICY, **binding}])
    probe = {
        "metadata": {"name": "kf-x", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "system"}]},
    }

    def is_in_force():
        status, body = real.asked("POST", f"/api/v1/namespaces/{place}/pods?dryRun=All", probe)
        return status == 201 and ZONE in json.loads(body)["metadata"]["labels"]

    real.eventually(is_in_force, "pods get a zone")
    yield
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        real.kubectl("delete", kind, name)


@pytest.fixture
def kf(real, crds, new_daemon) -> "Kf":  # noqa: F811 - fixtures
    found = Kf(real, new_daemon(real.kubectl.kubeconfig, real.namespace).start())
    yield found
    found.end()


class Kf:
    """One Kafka called kf, and a daemon that looks after it."""

    def __init__(self, real, daemon):
        self.real, self.daemon, self.spec = real, daemon, {}

    def manifest(self, **spec):
        """The Kafka as it was applied last, but for what is given here."""
        whole = {"version": VERSION, "storage": {"size": "1Gi"}, "deletionPolicy": "Delete", **self.spec, **spec}
        return {"apiVersion": "kafka.example.com/v1alpha1", "kind": "Kafka", "metadata": {"name": "kf"}, "spec": whole}

    def apply(self, **spec):
        manifest = self.manifest(**spec)
        self.spec = manifest["spec"]
        self.real.apply(manifest)
        return self

    @property
    def cr(self):
        return self.real.get(f"/apis/kafka.example.com/v1alpha1/namespaces/{self.real.namespace}/kafkas/kf")

    def at_rest(self):
        """The status, where it is of the newest spec, all is as specified, and all replicas are in sync."""
        cr = self.cr
        status = cr.get("status", {})
        is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", []))
        is_newest = status.get("observedGeneration") == cr.get("metadata", {}).get("generation")
        return status if is_newest and is_ready and status["underReplicatedPartitions"] == 0 else None

    def settled(self):
        return self.awaited(self.at_rest, "all is as specified", timeout_s=900)

    def awaited(self, condition, what, timeout_s=600):
        """What *condition* returns once that is true; a failure tells what the cluster, its pods, its brokers and the daemon say."""
        try:
            return self.real.eventually(condition, what, timeout_s=timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.told()}") from error

    def told(self):
        """What is known of a cluster where something doesn't come true."""
        cr = self.cr
        path = f"/api/v1/namespaces/{self.real.namespace}/pods?labelSelector=reconcile.dev/module%3Dkafka"
        pods = [(each["metadata"]["name"], each.get("status", {})) for each in self.real.get(path).get("items", [])]
        parts = {
            f"kf, generation {cr.get('metadata', {}).get('generation')}": json.dumps(cr.get("status", {}), indent=1),
            "its journal": json.dumps(cr.get("metadata", {}).get("annotations", {})),
            **{f"pod {name}": json.dumps(status) for name, status in pods},
            **{f"log of {name}, {container}": self.tail(name, container) for name, _ in pods for container in ("prepare", "kafka")},
            "log of the daemon": "\n".join(self.daemon.log.splitlines()[-_LINES:]),
        }  # fmt: skip
        return "\n".join(f"--- {what}\n{text}" for what, text in parts.items())

    def tail(self, name, container):
        """The last lines of a container's log, or why there are none."""
        try:
            return "\n".join(self.real.logs(name, "-c", container, f"--tail={_LINES}"))
        except KubectlError as error:
            return str(error)

    def begin_writing(self, name="writer"):
        """Have a producer write numbers to topic orders, each acknowledged by all who are in sync, until it is told to end."""
        self.real.run("python", "-c", WRITER, name=name, image="python", pod={"restartPolicy": "Never"})
        self.awaited(lambda: len(self.written(name)) > 10, "numbers are acknowledged")

    def written(self, name="writer"):
        """The numbers that were acknowledged so far; none while the log can't be read."""
        try:
            return [int(line) for line in self.real.logs(name) if line.isdecimal()]
        except KubectlError:
            return []

    def end_writing(self, name="writer"):
        """End the producer; returns the numbers that were acknowledged."""
        self.real.kubectl("exec", name, "-n", self.real.namespace, "--", "touch", END)
        self.real.phase("Succeeded", name, timeout_s=600)
        return self.written(name)

    def read(self, name="reader"):
        """All records of topic orders, by partition, in their order."""
        self.real.run("python", "-c", READER, name=name, image="python", pod={"restartPolicy": "OnFailure"})
        self.real.phase("Succeeded", name, timeout_s=600)
        return json.loads(self.real.logs(name)[-1])

    def wish(self, name="away", **spec):
        """Make or change a rebalance."""
        kind = {"apiVersion": "kafka.example.com/v1alpha1", "kind": "KafkaRebalance"}
        self.real.apply({**kind, "metadata": {"name": name}, "spec": {"clusterRef": {"name": "kf"}, **spec}})

    def until(self, phase, name="away"):
        """The status of a rebalance once it is in this phase, of its newest spec."""
        path = f"/apis/kafka.example.com/v1alpha1/namespaces/{self.real.namespace}/kafkarebalances/{name}"

        def reached():
            cr = self.real.get(path)
            status = cr.get("status", {})
            is_newest = status.get("observedGeneration") == cr.get("metadata", {}).get("generation")
            return status if is_newest and status.get("phase") == phase else None

        return self.awaited(reached, f"rebalance {name} is {phase}")

    def approve(self, name="away"):
        """Let a rebalance have what it proposes now."""
        command = [PROGRAM, "approve", f"kr/{name}", "-n", self.real.namespace, "--yes"]
        environ = {**os.environ, "KUBECONFIG": self.real.kubectl.kubeconfig}

        def said():
            answer = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
            return answer.stdout if answer.returncode == 0 and "approved " in answer.stdout else None

        return self.awaited(said, "somebody approves")

    def phase(self):
        """The phase, by a status of the newest spec."""
        cr = self.cr
        status = cr.get("status", {})
        return status.get("phase") if status.get("observedGeneration") == cr["metadata"]["generation"] else None

    def kill(self, number):
        """Have a broker end at once; returns when its node has begun it again."""
        before = self.real.container(f"kf-{number}")["restartCount"]
        self.real.sandbox.pods.signal(self.real.namespace, f"kf-{number}", "KILL")
        self.awaited(
            lambda: self.real.container(f"kf-{number}")["restartCount"] > before, f"kf-{number} is begun again"
        )

    def actions(self):
        """The actions that the daemon has carried out, in their order."""
        return re.findall(r'object="Action.reconcile.dev \S+/kf/(\S+)" op=act', self.daemon.log)

    def reason(self, type_):
        """The reason of a condition of the newest spec, nothing where there is none."""
        cr = self.cr
        conditions = {each["type"]: each for each in cr.get("status", {}).get("conditions", [])}
        found = conditions.get(type_, {})
        return found.get("reason") if found.get("observedGeneration") == cr["metadata"]["generation"] else None

    def is_moving(self):
        """Whether the cluster says that partitions move."""
        conditions = self.cr.get("status", {}).get("conditions", [])
        return any(each["type"] == "Rebalancing" and each["status"] == "True" for each in conditions)

    def held(self):
        """How many replicas each broker holds, by the status, once nothing moves."""
        return {each["id"]: each["replicas"] for each in self.settled()["brokers"]}

    def end(self):
        """Delete the cluster, all brokers at once: the last controller would wait until it is killed for others to hear that it ends."""
        here = ("-n", self.real.namespace)
        self.real.kubectl("delete", "kafka", "kf", *here, "--wait=false", "--ignore-not-found")
        self.real.kubectl(
            "delete", "pod", "-l", "reconcile.dev/module=kafka", *here, "--grace-period=1", "--timeout=600s"
        )
        self.real.kubectl("wait", "--for=delete", "kafka/kf", *here, "--timeout=600s")


WRITER = """
import itertools, os
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers="kf:9092", acks="all", enable_idempotence=True, delivery_timeout_ms=600000)
for number in itertools.count():
    if os.path.exists("/tmp/end"):
        break
    producer.send("orders", b"%d" % number, partition=number % 3).get(600)
    print(number, flush=True)
"""
FILLER = """
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers="kf:9092", acks="all", delivery_timeout_ms=600000)
for number in range(480):
    producer.send("bulk", bytes(100_000), partition=number % 3)
producer.flush()
"""
READER = """
import json
from kafka import KafkaConsumer, TopicPartition
consumer = KafkaConsumer(bootstrap_servers="kf:9092", group_id=None)
places = [TopicPartition("orders", number) for number in range(3)]
consumer.assign(places)
consumer.seek_to_beginning()
ends, found = consumer.end_offsets(places), {str(number): [] for number in range(3)}
while any(consumer.position(each) < ends[each] for each in places):
    for place, records in consumer.poll(1000).items():
        found[str(place.partition)] += [int(each.value) for each in records]
print(json.dumps(found))
"""


def nothing_is_lost(kf):
    """End the producer, and see that all that was acknowledged is there, in its order."""
    acknowledged, found = kf.end_writing(), kf.read()
    assert not {*acknowledged} - {each for some in found.values() for each in some}
    assert all(some == sorted(some) for some in found.values())


@pytest.mark.minutes(9)
def test_brokers_begin_are_upgraded_come_and_go_without_losing_a_record(kf):
    status = kf.apply(version=OLD, topics=[{"name": "orders", "partitions": 3}]).settled()
    assert (status["phase"], status["readyBrokers"], status["offlinePartitions"]) == ("Running", 3, 0)
    assert [each["replicas"] for each in status["brokers"]] == [3, 3, 3]
    assert (status["version"], status["metadataVersion"]) == (OLD, 29)

    kf.begin_writing()
    before = {number: kf.real.pod(f"kf-{number}")["metadata"]["uid"] for number in range(3)}
    kf.apply(
        version=VERSION,
        topics=[{"name": "orders", "partitions": 3, "config": {"retention.ms": "86400000"}}],
        config={"queued.max.requests": "400"},
    )
    status = kf.settled()
    after = {number: kf.real.pod(f"kf-{number}")["metadata"]["uid"] for number in range(3)}
    assert not {*before.values()} & {*after.values()}
    assert (status["readyBrokers"], status["version"], status["metadataVersion"]) == (3, VERSION, 30)

    kf.apply(version=OLD)
    kf.awaited(lambda: kf.reason("Degraded") == "DowngradeRefused", "the way back is refused")
    assert {number: kf.real.pod(f"kf-{number}")["metadata"]["uid"] for number in range(3)} == after

    status = kf.apply(version=VERSION, brokers=4, rebalance={"throttleBytesPerSecond": 100_000_000}).settled()
    assert [each["replicas"] > 0 for each in status["brokers"]] == [True] * 4
    assert status["filling"] == []
    kf.apply(brokers=3)
    kf.awaited(lambda: kf.phase() == "Scaling", "a broker is on its way out")
    status = kf.apply(brokers=4).settled()
    assert [each["replicas"] > 0 for each in status["brokers"]] == [True] * 4
    nothing_is_lost(kf)


@pytest.mark.minutes(5)
def test_brokers_that_are_killed_and_disks_that_are_lost_cost_no_record(kf):
    status = kf.apply(topics=[{"name": "orders", "partitions": 3}]).settled()
    kf.begin_writing()
    controller = status["activeController"]
    kf.kill(controller)
    status = kf.settled()
    assert status["clusterId"]

    before = kf.real.pod("kf-1")["metadata"]["uid"]
    kf.real.kubectl("delete", "pvc/kf-1-data", "-n", kf.real.namespace, "--wait=false")
    kf.real.delete("kf-1")
    kf.awaited(lambda: kf.real.pod("kf-1").get("metadata", {}).get("uid") not in {None, before}, "it comes again")
    assert kf.settled()["clusterId"] == status["clusterId"]
    votes = dict.fromkeys(each for each in kf.actions() if "voter" in each)
    assert [*votes] == ["remove-voter-kf-1", "add-voter-kf-1"]

    for number in range(3):
        kf.kill(number)
    assert kf.settled()["clusterId"] == status["clusterId"]
    nothing_is_lost(kf)


OFF_3 = {"mode": "remove-brokers", "brokers": [3]}
PAIRED = {"name": "paired", "num_partitions": -1, "replication_factor": -1, "configs": []}


@pytest.mark.minutes(10)
@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # said of how kafka-python is imported
@pytest.mark.usefixtures("zones")
def test_a_rebalance_moves_what_is_approved_and_takes_back_what_is_in_flight_when_it_is_stopped(kf):
    topics = [{"name": name, "partitions": 3} for name in ("orders", "bulk")]
    kf.apply(brokers=4, topics=topics).settled()
    before = kf.held()
    assert before[3] > 0
    kf.real.run("python", "-c", FILLER, name="filler", image="python", pod={"restartPolicy": "OnFailure"})
    kf.real.phase("Succeeded", "filler", timeout_s=600)
    kf.begin_writing()

    kf.wish(**OFF_3, throttleBytesPerSecond=1000)
    assert kf.until("ProposalReady")["proposal"]["replicas"] == before[3]
    assert "allow-moves-" in kf.approve()
    kf.until("Rebalancing")
    kf.awaited(kf.is_moving, "partitions are in flight")
    kf.wish(**OFF_3, throttleBytesPerSecond=1000, stopped=True)
    kf.until("Stopped")
    assert kf.held()[3] > 0

    kf.wish(**OFF_3, throttleBytesPerSecond=5_000_000)
    kf.until("ProposalReady")
    kf.approve()
    kf.until("Rebalancing")
    kf.kill(kf.cr["status"]["activeController"])
    kf.until("Ready")
    assert kf.held()[3] == 0

    live = LiveKafka(kf.real.sandbox, kf.real.namespace, "kf")
    rows = [{"partition_index": number, "broker_ids": each} for number, each in enumerate(([0, 3], [3, 0], [0, 1]))]
    live.told("CreateTopics", topics=[{**PAIRED, "assignments": rows}], timeout_ms=20_000, validate_only=False)
    kf.wish("racks", goals=["rack"])
    proposed = kf.until("ProposalReady", "racks")["proposal"]
    assert (proposed["partitions"], proposed["replicas"]) == (2, 2)
    kf.approve("racks")
    kf.until("Ready", "racks")
    stand = [{*place.replicas} for (topic, _), place in sorted(live.places().items()) if topic == "paired"]
    assert all(len(each) == 2 and each != {0, 3} for each in stand)
    assert stand[2] == {0, 1}
    nothing_is_lost(kf)
