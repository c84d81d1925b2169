"""A KafkaRebalance: ``spec`` says what is wished, ``decision`` in which state it is and what is next, ``kept`` and ``record`` how that is written down.

Brokers are asked and told by the cluster's own module (see ``carried``), whose planner owns restarts and membership too: so the three can't race. What it writes down, the
KafkaRebalance's own module (``rebalance``) tells.
"""
