"""Which live objects a replica holds whole: all that it works on, and all by which replicas find out what is whose.

Of members of a Sync that another replica works on it need only know that they are there. Who names an object that
another Sync holds asks the server for it anyway, as the account of the Sync that names it.

Pure: what is ours is asked of the caller, and remembered until the share changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from kubectl_reconcile.core.daemon.watch_events import ItemIndex
from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, RIGHTS
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.sync import SYNC

_BY_ALL = frozenset({SYNC.group_kind, CRD, NAMESPACE, *RIGHTS})


class Holding(Struct):
    """What to hold: *is_ours* tells whether a Sync is in our share, *has_module* whether a kind has a module."""

    index: ItemIndex
    is_ours: Callable[[ObjectRef], bool]
    has_module: Callable[[GroupKind], bool]
    _ours: dict[ObjectRef, bool] = field(default_factory=dict)

    def share_changed(self) -> None:
        """Ask again whose each Sync is."""
        self._ours.clear()

    def is_whole(self, selector: str, kind: GroupKind, labels: Mapping[str, str]) -> bool:
        """Tell whether an object of this *kind* with these *labels* is held whole where a feed with *selector* shows it.

        A member of a set whose Sync isn't known is nobody's yet; should its Sync come, it is read again.
        """
        if selector != PART_OF:
            return True
        sync = self.index.sync_of(labels)
        if sync is not None and sync not in self._ours:
            self._ours[sync] = self.is_ours(sync)
        return (sync is not None and self._ours[sync]) or kind in _BY_ALL or self.has_module(kind)
