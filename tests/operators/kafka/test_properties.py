"""What a broker is started with, where Kafka's own default would do harm."""

from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile_operators.kafka.children import properties
from kubectl_reconcile_operators.kafka.spec import kafka_spec
from tests.operators.kafka.world import NOW, a_cr

WAITS = "initial.broker.registration.timeout.ms"


def properties_of(number=0, **spec):
    cr = a_cr(**spec)
    lines = properties(kafka_spec(cr), Context(NOW, "kafka", cr), number).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_broker_that_begins_waits_for_controllers_far_longer_than_a_slow_machine_takes_to_start_them():
    """By default it gives up after a minute, and its controller ends with it: four brokers on a tenth of a processor never came up so."""
    assert {properties_of(number)[WAITS] for number in (0, 3)} == {"3600000"}
    assert properties_of(config={WAITS: "60000"})[WAITS] == "60000"
