"""A KafkaRebalance, as far as it is decided: ``spec`` says what is wished, ``decision`` in which state it is and what is next, ``kept`` how its proposal is written down.

Brokers are asked and told by the cluster's own module, whose planner owns restarts and membership too: so the three can't race.
"""
