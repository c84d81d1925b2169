"""Where the replicas of partitions stand and should stand: ``assignment`` is what is seen, ``proposal`` what should change, ``batches`` what of that is next.

``drain`` empties brokers that go, ``restarts`` says which broker may stop now; ``board`` and ``balance`` are what proposals are worked out with.
All of it is pure: values in, values out, the same for the same cluster in whatever order its brokers and partitions are listed.
"""
