"""One Kafka on real brokers, as its clients and its owner have it."""

import json
import re

from kubectl_reconcile.sandbox.images.kafka_programs import KAFKA_VERSIONS
from tests.kubectl import KubectlError
from tests.operators.real.commands import approved

OLD, VERSION = KAFKA_VERSIONS
ORDERS = {"name": "orders", "partitions": 3}
END = "/tmp/end"  # noqa: S108 - of a container
WRITER = """
import itertools, os, sys, time
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers="kf:9092", acks="all", enable_idempotence=True, delivery_timeout_ms=600000)
for number in itertools.count(int(sys.argv[1])):
    if os.path.exists("/tmp/end"):
        break
    producer.send("orders", b"%d" % number, partition=number % 3).get(600)
    print(number, flush=True)
    time.sleep(0.02)
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


class Kf:
    """One Kafka called kf, and a daemon that looks after it."""

    def __init__(self, real, daemon):
        self.real, self.daemon, self.spec = real, daemon, {}
        self._next, self._clients = 0, 0

    def manifest(self, **spec):
        """The Kafka as it was applied last, but for what is given here."""
        whole = {"version": VERSION, "storage": {"size": "1Gi"}, **self.spec, **spec}
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
        return self.awaited(self.at_rest, "all is as specified")

    def awaited(self, condition, what):
        return self.real.eventually(condition, what, timeout_s=900)

    def begin_writing(self):
        """Have a producer write numbers to topic orders, each acknowledged by all who are in sync, until it is told to end; none twice, whoever writes."""
        argv = ("python", "-c", WRITER, str(self._next))
        self.real.run(*argv, name=self._client("writer"), image="python", pod={"restartPolicy": "Never"})
        self.goes_on()

    def goes_on(self):
        """Wait until more is acknowledged."""
        before = len(self.written())
        self.awaited(lambda: len(self.written()) > before + 10, "numbers are acknowledged")

    def written(self):
        """The numbers that the last producer was acknowledged so far; none while its log can't be read."""
        try:
            return [int(line) for line in self.real.logs(f"writer-{self._clients}") if line.isdecimal()]
        except KubectlError:
            return []

    def nothing_is_lost(self):
        """End the producer, and see that all that was acknowledged is there, in its order."""
        writer = f"writer-{self._clients}"
        self.real.kubectl("exec", writer, "-n", self.real.namespace, "--", "touch", END)
        self.real.phase("Succeeded", writer, timeout_s=900)
        acknowledged = self.written()
        self._next = acknowledged[-1] + 1
        found = self.read()
        assert not {*acknowledged} - {each for some in found.values() for each in some}
        assert all(some == sorted(some) for some in found.values())

    def read(self):
        """All records of topic orders, by partition, in their order."""
        name = self._client("reader")
        self.real.run("python", "-c", READER, name=name, image="python", pod={"restartPolicy": "OnFailure"})
        self.real.phase("Succeeded", name, timeout_s=900)
        return json.loads(self.real.logs(name)[-1])

    def _client(self, kind):
        self._clients += 1
        return f"{kind}-{self._clients}"

    def pods(self):
        """What runs as each broker."""
        path = f"/api/v1/namespaces/{self.real.namespace}/pods?labelSelector=reconcile.dev/module%3Dkafka"
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in self.real.get(path)["items"]}

    def lose_disk(self, slot):
        """Delete a broker's pod and its volume; returns when it has come again."""
        before = self.real.pod(slot)["metadata"]["uid"]
        self.real.kubectl("delete", f"pvc/{slot}-data", "-n", self.real.namespace, "--wait=false")
        self.real.delete(slot)
        self.awaited(
            lambda: self.real.pod(slot).get("metadata", {}).get("uid") not in {None, before}, f"{slot} comes again"
        )

    def empty_disk(self, slot):
        """Empty a broker's volume under it; returns when another pod has come for that."""
        before = self.real.pod(slot)["metadata"]["uid"]
        emptied = (
            "exec",
            slot,
            "-c",
            "kafka",
            "-n",
            self.real.namespace,
            "--",
            "rm",
            "-rf",
            "/var/lib/kafka/data/kafka",
        )
        self.real.kubectl(*emptied)
        self.real.sandbox.pods.signal(self.real.namespace, slot, "KILL")
        self.awaited(
            lambda: self.real.pod(slot).get("metadata", {}).get("uid") not in {None, before}, f"{slot} comes again"
        )

    def lose_all(self):
        """Delete all pods and all volumes."""
        here = ("-n", self.real.namespace, "-l", "reconcile.dev/module=kafka")
        self.real.kubectl("delete", "pvc", *here, "--wait=false")
        self.real.kubectl("delete", "pod", *here, "--grace-period=1", "--timeout=600s")

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
        return approved(self.real, f"kr/{name}")

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
