"""Takeover of objects that other tools made, as kubectl's ``csaupgrade`` does it.

A tool that isn't server-side apply (``kubectl apply``, ``create``, Helm) leaves its fields to a
manager with operation Update. Were we to apply beside it, a field that leaves Git would live on,
owned by that manager. So its entry becomes ours first, by a JSON patch of
``metadata.managedFields``, and the apply that follows removes what Git doesn't want.

Rules: managers whose Update entry owns the ``last-applied-configuration`` annotation are always
taken over (they are client-side apply, whatever they are called); the well-known names in
`CLIENT_SIDE_MANAGERS` only where we haven't applied yet, since later their changes are drift.

A port renumbered by hand is a case of its own: ports merge by number, so the server would see the
edited port beside ours, under the same name, and refuse the pair (`Service.spec.ports[].name` and
`Container.ports[].name` must be unique). The item becomes ours, and goes with the apply.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from kubectl_reconcile.core.objects import FieldPath, Manifest
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.managed_fields import APPLY, UPDATE, entry_of
from kubectl_reconcile.core.ssa.schema import ListType, Type
from kubectl_reconcile.core.ssa.typed import Path, element_of

CLIENT_SIDE_MANAGERS: Final = frozenset(
    {
        "helm",
        "kubectl",
        "kubectl-client-side-apply",
        "kubectl-create",
        "kubectl-edit",
        "kubectl-expose",
        "kubectl-replace",
        "kubectl-run",
        "before-first-apply",
    }
)
"""Managers that write whole manifests without server-side apply."""

LAST_APPLIED_NAME: Final = "kubectl.kubernetes.io/last-applied-configuration"
LAST_APPLIED: Final = FieldPath.fields("metadata", "annotations", LAST_APPLIED_NAME)
"""The annotation in which client-side apply keeps what it wrote."""

Entry = Mapping[str, Any]


def managers_to_take_over(
    live: Manifest, manager: str, client_side: Collection[str] = CLIENT_SIDE_MANAGERS
) -> tuple[str, ...]:
    """Return the managers whose Update entries must become *manager*'s before it applies, sorted."""
    wanted = client_side if entry_of(live, manager) is None else ()
    found = {entry["manager"] for entry in _updates(live) if entry["manager"] in wanted or _is_client_side_apply(entry)}
    return tuple(sorted(found))


def _updates(live: Manifest) -> list[Entry]:
    entries = live["metadata"].get("managedFields") or ()
    return [entry for entry in entries if entry.get("operation") == UPDATE and not entry.get("subresource")]


def _is_client_side_apply(entry: Entry) -> bool:
    node: Any = entry.get("fieldsV1") or {}
    for element in LAST_APPLIED:
        node = node.get(element)
        if node is None:
            return False
    return True


def taken_over(live: Manifest, managers: Collection[str], manager: str) -> list[Entry]:
    """Return the managedFields of *live* after *manager* took over the Update entries of *managers*."""
    entries: list[Entry] = list(live["metadata"].get("managedFields") or ())
    for client_side in sorted(managers):
        entries = _take_over(entries, client_side, manager)
    return entries


def _take_over(entries: list[Entry], client_side: str, manager: str) -> list[Entry]:
    """Give the Update entry of *client_side* to *manager*: joined if at the same version, else dropped."""
    theirs = [entry for entry in entries if _is_update_of(entry, client_side)]
    if not theirs:
        return entries
    ours = next((entry for entry in entries if _is_apply_of(entry, manager)), None)
    target = ours if ours is not None else theirs[0]
    joined = FieldSet.of_wire(target.get("fieldsV1") or {})
    for entry in theirs:
        if entry["apiVersion"] == target["apiVersion"]:
            joined |= FieldSet.of_wire(entry.get("fieldsV1") or {})
            break
    becomes = {**target, "manager": manager, "operation": APPLY, "fieldsV1": joined.to_wire()}
    return [becomes if entry is target else entry for entry in entries if entry is target or entry not in theirs]


def _is_update_of(entry: Entry, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == UPDATE and not entry.get("subresource")


def _is_apply_of(entry: Entry, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == APPLY and not entry.get("subresource")


def handed_over(entries: Collection[Entry], items: FieldSet, manager: str) -> list[Entry]:
    """Return *entries* with *items* and all below them moved from those who updated them to what *manager* applied."""
    moved: list[Entry] = []
    for entry in entries:
        fields = FieldSet.of_wire(entry.get("fieldsV1") or {})
        if _is_apply_of(entry, manager):
            fields |= items
        elif entry.get("operation") == UPDATE:
            fields = fields.recursive_difference(items)
        if fields:
            moved.append({**entry, "fieldsV1": fields.to_wire()})
    return moved


def renumbered_ports(wanted: Any, live: Any, of: Type, path: Path = ()) -> Iterator[Path]:
    """Yield the ports of *live* that *wanted* has under the same name with another number."""
    if isinstance(wanted, dict) and isinstance(live, dict) and of.map is not None:
        for name in wanted.keys() & live.keys():
            if (kind := of.map.type_at(name)) is not None:
                yield from renumbered_ports(wanted[name], live[name], kind, (*path, f"f:{name}"))
    elif isinstance(wanted, list) and isinstance(live, list) and of.list is not None and of.list.keys:
        yield from _renumbered_in_list(wanted, live, of.list, path)


def _renumbered_in_list(wanted: list[Any], live: list[Any], of: ListType, path: Path) -> Iterator[Path]:
    stated = {element_of(item, of): item for item in wanted}
    names = {item.get("name") for item in wanted if isinstance(item, dict)} if "protocol" in of.keys else ()
    for item in live:
        element = element_of(item, of)
        if element in stated:
            yield from renumbered_ports(stated[element], item, of.item, (*path, element))
        elif item.get("name") and item["name"] in names:
            yield (*path, element)


def takeover_patch(live: Manifest, entries: list[Entry]) -> tuple[Mapping[str, Any], ...]:
    """Return the JSON patch that stores *entries*; a change of *live* in between makes the server answer 409."""
    return (
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"].get("resourceVersion", "")},
    )


def rebased(patch: tuple[Mapping[str, Any], ...], before: Manifest, live: Manifest) -> tuple[Mapping[str, Any], ...]:
    """Return *patch*, made for *before*, as it must be for *live*; empty if more than its status has changed hands."""
    if _of_object(before) != _of_object(live):
        return ()
    status = [entry for entry in live["metadata"].get("managedFields") or () if entry.get("subresource")]
    return takeover_patch(live, [*(entry for entry in patch[0]["value"] if not entry.get("subresource")), *status])


def _of_object(live: Manifest) -> list[Entry]:
    return [entry for entry in live["metadata"].get("managedFields") or () if not entry.get("subresource")]
