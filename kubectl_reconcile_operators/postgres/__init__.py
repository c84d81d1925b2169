"""MyDatabase: PostgreSQL run step by step, each step shown before it is taken.

``decision`` says what the one next step is, ``situation`` what it is decided on; ``children`` are manifests, ``driver`` is the only file
that asks and tells servers, in the language that ``protocol`` knows and ``session`` speaks.
"""

from kubectl_reconcile_operators.postgres.database import MyDatabase

__all__ = ["MyDatabase"]
