"""What ``diff --until-stable`` shows of a Kafka is what the daemon does, step by step, on real brokers."""

import pytest

from tests.chaos.kafka.live import LiveKafka
from tests.operators.real.kafka.cluster import OLD, ORDERS, VERSION
from tests.operators.real.promises import Promises

pytestmark = [
    pytest.mark.scenario(minutes=9),
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated"),  # said of how kafka-python is imported
]
ELECTED = "act kf/elect-leaders"


class KafkaPromises(Promises):
    """Previews of one Kafka."""

    def __init__(self, kf, folder):
        super().__init__(kf, folder)
        self.live = LiveKafka(kf.real.sandbox, kf.real.namespace, "kf")

    def manifest(self, **spec):
        return self.subject.manifest(**spec)

    def compare(self, what, promised, done):
        """As of all; leaders are elected as soon as replicas are in sync, one election for some or all of them, which may be before or after what else was shown."""
        elected = [any(ELECTED in each for each in some) for some in (promised, [done])]
        assert elected[0] is elected[1], f"{what}: {promised} was shown, and {done} done"
        super().compare(
            what,
            [[step for step in each if step != ELECTED] for each in promised],
            [step for step in done if step != ELECTED],
        )

    def settle(self, **_):
        self.subject.settled()
        self.live.settled(timeout_s=900)


def test_seven_changes_of_a_real_cluster_take_the_steps_that_were_shown(kf, tmp_path):
    promises = KafkaPromises(kf, tmp_path)
    promises.change("a cluster begins", version=OLD, topics=[ORDERS])
    grown = [{**ORDERS, "partitions": 4, "config": {"retention.ms": "86400000"}}, {"name": "more"}]
    promises.change("topics change", topics=grown, config={"num.io.threads": "9"})
    promises.change(
        "it is upgraded, with a setting that takes a restart", version=VERSION, config={"queued.max.requests": "400"}
    )
    promises.change("a broker comes", brokers=4)
    promises.change("a broker goes", brokers=3)
    promises.change("a topic gets fewer replicas", topics=[grown[0], {**grown[1], "replicas": 2}])
    with promises.kept("a controller loses its volume"):
        kf.real.kubectl("delete", "pvc/kf-1-data", "-n", kf.real.namespace, "--wait=false")
        kf.real.kubectl("delete", "pod/kf-1", "-n", kf.real.namespace)
        kf.real.kubectl("wait", "--for=delete", "pvc/kf-1-data", "-n", kf.real.namespace, "--timeout=120s")
