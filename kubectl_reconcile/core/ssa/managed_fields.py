"""Who owns which fields of a live object: its ``metadata.managedFields``.

Vocabulary: an *owner* is one entry: a manager with an operation (Apply or Update), a
subresource and a version. Two Apply entries of one manager and subresource are the same owner
at whatever version; of two entries of one owner the last counts. An object that nobody tracks is owned whole by ``before-first-apply`` as
soon as somebody applies.

An entry is at the version at which its manager wrote. For an apply the server converts the object to these versions, and fails with status 500 where it can't: a
CRD doesn't serve one any more, or the object has a field that one of them doesn't know. It fails again at each try, since nothing but a successful
apply would change the record. Then the record is *restated*: all entries at the version that is applied. Where a version has other names for some
fields, what is recorded of these is lost, so this is done only after the server has failed at it. A webhook that converts and is down is waited for instead.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.objects import FieldPath, Manifest, maps_in, metadata_of
from kubectl_reconcile.core.ssa.fieldset import FieldSet

APPLY: Final = "Apply"
UPDATE: Final = "Update"

Entry: TypeAlias = Mapping[str, Any]
"""One entry of managedFields."""

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager to which the server gives the fields of an object that had no managedFields."""

IGNORED_METADATA: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Metadata that is the server's own: never part of what we send."""

STRIPPED: Final = FieldSet.of(
    [
        FieldPath.fields("apiVersion"),
        FieldPath.fields("kind"),
        FieldPath.fields("metadata"),
        *(
            FieldPath.fields("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)
"""Fields that never have an owner."""


class Owner(Struct, frozen=True):
    """One owner of fields; *time* is RFC 3339, empty if the entry has none."""

    manager: str
    operation: str
    subresource: str
    api_version: str
    time: str
    fields: FieldSet

    def is_(self, manager: str) -> bool:
        """Return whether this is what *manager* applied to the object itself."""
        return self.manager == manager and self.operation == APPLY and not self.subresource


def entry_of(live: Manifest, manager: str) -> Mapping[str, Any] | None:
    """Return the managedFields entry of what *manager* applied to the object itself, or None."""
    for entry in maps_in(live["metadata"].get("managedFields")):
        if entry.get("manager") == manager and entry.get("operation") == APPLY and not entry.get("subresource"):
            found: Mapping[str, Any] = entry
            return found
    return None


def owners_of(live: Manifest) -> tuple[Owner, ...]:
    """Return the owners of the fields of *live*, in the order of its managedFields.

    Raises:
        ValueError: an entry is one that the server couldn't read either.
    """
    return owners_in(maps_in(metadata_of(live).get("managedFields")))


def owners_in(entries: Iterable[Mapping[str, Any]]) -> tuple[Owner, ...]:
    """Return the owners that managedFields *entries* say.

    Raises:
        ValueError: an entry is one that the server couldn't read either.
    """
    return tuple({_identity(entry): _owner(entry) for entry in entries}.values())


def repeats_an_owner(live: Manifest) -> bool:
    """Return whether two entries are the same owner, of which the server will forget the first."""
    entries = maps_in(live["metadata"].get("managedFields"))
    if len(entries) == 2 and entries[0].get("manager") != entries[1].get("manager"):
        return False
    return len(entries) > 1 and len({_identity(entry) for entry in entries}) < len(entries)


def _identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    version = "" if entry.get("operation") == APPLY else entry.get("apiVersion")
    return tuple(
        str(part) for part in (entry.get("manager"), entry.get("operation"), entry.get("subresource"), version)
    )


def _owner(entry: Mapping[str, Any]) -> Owner:
    operation, fields = str(entry.get("operation", "")), entry.get("fieldsV1")
    readable = entry.get("fieldsType") == "FieldsV1" and isinstance(fields, Mapping | None)
    if operation not in {APPLY, UPDATE} or not readable or not entry.get("apiVersion"):
        raise ValueError(f"managedFields entry of {entry.get('manager', '')!r} can't be read")
    return Owner(
        manager=str(entry.get("manager") or ""),
        operation=operation,
        subresource=str(entry.get("subresource") or ""),
        api_version=str(entry["apiVersion"]),
        time=str(entry.get("time") or ""),
        fields=FieldSet.of_wire(fields or {}),
    )


# --- restated ---------------------------------------------------------------------------------------

_FAILED: Final = 500
_CONVERTING: Final = ("failed to convert", "request to convert CR")
"""What the server says in any of the steps of an apply that need another version: structured-merge-diff's merge/update.go, and the converter of CRDs."""


def takeover_patch(live: Manifest, entries: list[Entry]) -> tuple[Mapping[str, Any], ...]:
    """Return the JSON patch that stores *entries*; a change of *live* in between makes the server answer 409."""
    is_there = "managedFields" in metadata_of(live)
    return (
        {"op": "replace" if is_there else "add", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"].get("resourceVersion", "")},
    )


def has_failed_at_versions(status: int, message: str) -> bool:
    """Tell whether the server failed at converting an object to the versions that its managedFields name, and will again."""
    return status == _FAILED and any(each in message for each in _CONVERTING) and "webhook" not in message


def restated(
    live: Manifest, api_version: str, entries: Iterable[Mapping[str, Any]] | None = None
) -> tuple[Mapping[str, Any], ...]:
    """Return the JSON patch that has all owners of *live*, or these *entries*, at *api_version*; empty where they are."""
    known = list(maps_in(metadata_of(live).get("managedFields")) if entries is None else entries)
    if all(each.get("apiVersion") == api_version for each in known):
        return ()
    found: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for each in known:
        identity = tuple(str(each.get(name) or "") for name in ("manager", "operation", "subresource"))
        found[identity] = _joined(found.get(identity), {**each, "apiVersion": api_version})
    return takeover_patch(live, list(found.values()))


def _joined(one: Entry | None, other: Entry) -> Entry:
    """Return what two entries of one manager say, which would be the same owner at one version: the server keeps the last alone."""
    if one is None:
        return other
    fields = FieldSet.of_wire(one.get("fieldsV1") or {}) | FieldSet.of_wire(other.get("fieldsV1") or {})
    return {**other, "fieldsV1": fields.to_wire()}
