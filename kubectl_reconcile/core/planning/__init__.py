"""Everything known -> a plan. Where it is decided what is created, updated, replaced, pruned or held, and in which order.

``planner`` is the entry. ``members`` compares what Git asks for with what is there, ``prune`` decides what goes because nobody asks
for it any more, ``children`` does both for what modules want, by way of ``module_call``; ``difference`` leaves out what an earlier
plan has settled. ``builder`` collects what they find, ``arrangement`` and ``order`` say when it is written; ``plan`` is the result
as data, ``planfile`` the same as a file, and ``outlook`` looks further.
"""
