"""Checkup: a namespace looked at for weaknesses, again and again, and what changed since the time before.

``spec`` is what is asked for, ``record`` what the status keeps of results, ``verdict`` what they mean.
"""

from kubectl_reconcile.modules.checkup.checkup import checkup

__all__ = ["checkup"]
