"""What happens to a Sync that is being deleted, by what is left of its members.

Rules:

- It goes once nothing of its set is left that it must outlive.
- Where its account lacks a right, it stays and says so: letting it go would leave its members without anybody who knows. It is
  tried again when rights come, and released by ``delete --orphan``.
- What had a member's marks, was asked for by nobody and couldn't be deleted while the Sync lived holds up nothing: whoever
  may write an object can copy those marks.
- In a namespace that is being deleted it doesn't stay for what can't be fixed there: accounts and bindings go with
  the namespace. Members that are left elsewhere are named.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from kubectl_reconcile.core.apply import causes
from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import Sync


class Remains(Struct, frozen=True):
    """What is left of a set after all was deleted that could be.

    *refused* are objects that the account may not delete, *unlisted* says which kinds it may not list. *going* are those
    whose deletion was accepted, and *failing* says what else went wrong.
    """

    refused: tuple[Refusal, ...] = ()
    unlisted: tuple[str, ...] = ()
    going: tuple[ObjectRef, ...] = ()
    failing: tuple[str, ...] = ()


class RemovalEnding(Struct, frozen=True):
    """What follows: the Sync stays as *report* says, or goes where there is none, and *left* says what stays behind."""

    report: Report | None = None
    left: tuple[str, ...] = ()

    @property
    def lets_go(self) -> bool:
        """Tell whether the Sync goes now."""
        return self.report is None


def ending_of(
    sync: Sync, remains: Remains, *, known: Collection[str], namespace_goes: bool, is_overdue: bool
) -> RemovalEnding:
    """Return what happens to *sync*. *known* are the objects of which its status said that they can't be deleted.

    *is_overdue* tells that it has been tried for so long that even what may pass isn't waited for, where *namespace_goes*.
    """
    missing = tuple(each for each in remains.refused if str(each.ref) not in known)
    left = tuple(str(each.ref) for each in remains.refused)
    if namespace_goes and (is_overdue or not remains.failing):
        elsewhere = tuple(str(each.ref) for each in remains.refused if each.ref.namespace != sync.namespace)
        return RemovalEnding(left=(*elsewhere, *remains.unlisted))
    if missing or remains.unlisted:
        sentences = [*causes.of_refusals(missing), *remains.unlisted]
        return RemovalEnding(Report(ConditionReason.UNDELETABLE, f"{_first(sentences)}; {_way_out(sync)}"), left)
    if remains.failing:
        return RemovalEnding(Report(ConditionReason.DELETING, _first(remains.failing)), left)
    if remains.going:
        waits = f"waits until these are gone: {causes.listed([str(ref) for ref in remains.going])}"
        return RemovalEnding(Report(ConditionReason.DELETING, waits), left)
    return RemovalEnding(left=left)


def _first(sentences: Collection[str]) -> str:
    first, *rest = sentences
    return f"{first} (and {len(rest)} more)" if rest else first


def _way_out(sync: Sync) -> str:
    return f"to keep the remaining members instead: kubectl reconcile delete {sync.name} -n {sync.namespace} --orphan"
