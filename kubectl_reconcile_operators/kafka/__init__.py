"""Kafka: brokers that come, go and restart without a partition that is lost or can't be written.

``decision`` says what the one next step is, ``situation`` what it is decided on; ``children`` are manifests, ``driver`` is the only file
that asks and tells brokers, in the language that ``session`` speaks. ``partitions`` plans where replicas stand, and which broker may stop.
"""

from kubectl_reconcile_operators.kafka.cluster import Kafka
from kubectl_reconcile_operators.kafka.rebalance.rebalance import KafkaRebalance

__all__ = ["Kafka", "KafkaRebalance"]
