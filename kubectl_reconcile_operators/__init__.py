"""The operators that come with the product: etcd with its backups and restores, PostgreSQL, and Kafka.

They are domain modules as anybody's: of ``kubectl_reconcile`` they import the module API alone, and the product finds them by entry points. What they share is here, too:
``certificates`` that they issue, ``backups`` by Jobs, and ``volumes`` that stay. No operator knows another one; what one has to know of another's custom resources, it reads there.
"""
