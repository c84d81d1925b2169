"""What a watch event of an account, a role or a binding means for what somebody may do.

Annotations, labels and tokens change nothing of that, and whoever may write one may do so without end: that is no news.

Pure: *before* and *after* are an object as it was and as it is, None where it wasn't or isn't there, or isn't known.
"""

from __future__ import annotations

from typing import Any, Final

from kubectl_reconcile.core.daemon.pass_events import RightsChanged
from kubectl_reconcile.core.objects import Manifest, ObjectRef, account_user, maps_in, metadata_of
from kubectl_reconcile.core.planning.rights.subjects import user_of

_SAYS: Final = ("rules", "aggregationRule", "roleRef", "subjects")


def rights_news(ref: ObjectRef, before: Manifest | None, after: Manifest | None) -> RightsChanged | None:
    """Return whose rights an object may have changed; None where it changed nobody's."""
    if before is not None and after is not None and _what(ref, before) == _what(ref, after):
        return None
    if ref.kind == "ServiceAccount":
        return RightsChanged(frozenset({account_user(ref.namespace, ref.name)}))
    if not ref.kind.endswith("Binding"):
        return RightsChanged()
    subjects = [each for manifest in (before, after) for each in maps_in((manifest or {}).get("subjects"))]
    if (before is None and after is None) or any(each.get("kind") == "Group" for each in subjects):
        return RightsChanged()
    return RightsChanged(frozenset(user_of(each, ref.namespace) for each in subjects))


def _what(ref: ObjectRef, manifest: Manifest) -> list[Any]:
    """Return what of an object decides what somebody may do; of an account, that it is there."""
    if ref.kind == "ServiceAccount":
        return [metadata_of(manifest).get("uid")]
    return [manifest.get(name) for name in _SAYS]
