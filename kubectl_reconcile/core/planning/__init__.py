"""Everything known -> a plan. Where it is decided what is created, updated, replaced, pruned or held, and in which order.

``members`` compares what Git asks for with what is there (pruning is decided there), ``children`` does so for what modules want;
``builder`` collects what both find, ``order`` arranges it, and ``planner`` is the entry.
"""
