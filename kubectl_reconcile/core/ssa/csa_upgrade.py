"""Takeover of objects that other tools made, as kubectl's ``csaupgrade`` does it.

A tool that isn't server-side apply (``kubectl apply``, ``create``, Helm 3) leaves its fields to a
manager with operation Update, one that is (Flux, Argo CD, Helm 4) to a manager with operation
Apply. Were we to apply beside it, a field that leaves Git would live on, owned by that manager. So
its entry becomes ours first, by a JSON patch of ``metadata.managedFields``, and the apply that
follows removes what Git doesn't want.

Rules: managers whose Update entry owns the ``last-applied-configuration`` annotation are always
taken over (they are client-side apply, whatever they are called); the well-known names in
`CLIENT_SIDE_MANAGERS` and `APPLIERS` only at adoption, since later their changes are drift.
Entries of subresources never: those are controllers', as an autoscaler's ``scale`` is.

A port renumbered by hand is a case of its own: ports merge by number, so the server would see the
edited port beside ours, under the same name, and refuse the pair (`Service.spec.ports[].name` and
`Container.ports[].name` must be unique). The item becomes ours, and goes with the apply.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import FieldPath, Manifest, mapping_of, maps_in
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.managed_fields import APPLY, UPDATE, Entry, takeover_patch
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

APPLIERS: Final = frozenset(
    {
        "argocd-controller",
        "configsync",
        "helm",
        "helm-controller",
        "kapp",
        "kapp-server-side-apply",
        "kubectl",
        "kustomize-controller",
    }
)
"""Tools that apply whole manifests server-side: Argo CD, Config Sync, Helm 4, Flux, kapp and ``kubectl apply --server-side``."""

_WRITERS: Final = CLIENT_SIDE_MANAGERS | APPLIERS

CONTROLLERS: Final = frozenset(
    {
        "cloud-controller-manager",
        "cluster-autoscaler",
        "horizontal-pod-autoscaler",
        "keda",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "vpa-updater",
    }
)
"""Managers that decide single fields at run time; what they own is never taken over."""

LAST_APPLIED_NAME: Final = "kubectl.kubernetes.io/last-applied-configuration"
LAST_APPLIED: Final = FieldPath.fields("metadata", "annotations", LAST_APPLIED_NAME)
"""The annotation in which client-side apply keeps what it wrote."""


class TakeOver(Struct, frozen=True):
    """Whose fields become ours when we adopt an object: those of known tools, and of *also*, but for *never*.

    Both are field managers by name; ``*`` in *never* stands for everybody.
    """

    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    @classmethod
    def parse(cls, names: Iterable[str]) -> Self:
        """Read names as a Sync has them: ``pulumi`` is taken over too, ``!helm`` isn't, ``!*`` is nobody.

        Raises:
            ValueError: a name that no manager can have, or one of a controller.
        """
        names = tuple(names)
        for name in names:
            if not name.removeprefix("!") or name == "*":
                raise ValueError(
                    f"{name!r} names no field manager; write one such as kustomize-controller, or !* for none"
                )
            if name in CONTROLLERS:
                raise ValueError(
                    f"{name} is a controller, whose fields stay its own; name a tool that applies manifests"
                )
        also = tuple(sorted({name for name in names if not name.startswith("!")}))
        return cls(also, tuple(sorted({name[1:] for name in names if name.startswith("!")})))

    def includes(self, entry: Entry) -> bool:
        """Return whether the fields of this entry become ours at adoption."""
        name = entry["manager"]
        known = APPLIERS if entry["operation"] == APPLY else _WRITERS
        return (name in known or name in self.also) and not self.spares(name)

    def spares(self, manager: str) -> bool:
        """Return whether *manager* keeps what it owns."""
        return manager in self.never or "*" in self.never


KNOWN_TOOLS: Final = TakeOver()
"""What is taken over unless a Sync says otherwise."""


def managers_to_take_over(
    live: Manifest, manager: str, take_over: TakeOver = KNOWN_TOOLS, *, adopting: bool | None = None
) -> tuple[str, ...]:
    """Return the managers whose entries must become *manager*'s before it applies, sorted.

    *adopting* says that *live* isn't a member yet; None: it isn't if *manager* has never applied it.
    """
    entries = [entry for entry in maps_in(live["metadata"].get("managedFields")) if _is_sound(entry)]
    theirs = [entry for entry in entries if not _is_apply_of(entry, manager)]
    is_new = len(theirs) == len(entries)  # else their changes are drift
    found = {
        entry["manager"]
        for entry in theirs
        if (
            entry.get("operation") == UPDATE and _is_client_side_apply(entry) and not take_over.spares(entry["manager"])
        )
        or ((is_new if entry["operation"] == UPDATE else _or(adopting, is_new)) and take_over.includes(entry))
    }
    return tuple(sorted(found))


def _is_sound(entry: Entry) -> bool:
    """Tell whether an entry is about the object itself, and says who did what."""
    named = isinstance(entry.get("manager"), str) and entry.get("operation") in (APPLY, UPDATE)
    return named and not entry.get("subresource")


def _or(said: bool | None, otherwise: bool) -> bool:  # noqa: FBT001 - both are plain answers
    return otherwise if said is None else said


def _is_client_side_apply(entry: Entry) -> bool:
    node: Any = entry.get("fieldsV1")
    for element in LAST_APPLIED:
        node = mapping_of(node).get(element)
        if node is None:
            return False
    return True


def taken_over(live: Manifest, managers: Collection[str], manager: str) -> list[Entry]:
    """Return the managedFields of *live* after *manager* took over the entries of *managers*."""
    entries: list[Entry] = list(live["metadata"].get("managedFields") or ())
    for other in sorted(managers):
        entries = _take_over(entries, other, manager)
    return entries


def _take_over(entries: list[Entry], other: str, manager: str) -> list[Entry]:
    """Give the entries of *other* to *manager*: joined if at the same version, else dropped."""
    ours = next((entry for entry in entries if _is_apply_of(entry, manager)), None)
    theirs = [entry for entry in entries if entry is not ours and _is_of(entry, other)]
    if not theirs:
        return entries
    target = ours if ours is not None else theirs[0]
    joined = FieldSet.of_wire(target.get("fieldsV1") or {})
    at_version = [entry for entry in theirs if entry["apiVersion"] == target["apiVersion"]]
    for entry in {
        entry["operation"]: entry for entry in reversed(at_version)
    }.values():  # the first of each, as kubectl does
        joined |= FieldSet.of_wire(entry.get("fieldsV1") or {})
    becomes = {**target, "manager": manager, "operation": APPLY, "fieldsV1": joined.to_wire()}
    return [becomes if entry is target else entry for entry in entries if entry is target or entry not in theirs]


def _is_of(entry: Entry, manager: str) -> bool:
    return entry.get("manager") == manager and not entry.get("subresource")


def _is_apply_of(entry: Entry, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == APPLY and not entry.get("subresource")


def taken_from(live: Manifest, patch: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the managers of *live* that a takeover *patch* leaves nothing, sorted; none where there is no patch."""
    if not patch:
        return ()
    left = {entry.get("manager") for entry in patch[0]["value"]}
    found = {entry.get("manager", "") for entry in live["metadata"].get("managedFields") or ()}
    return tuple(sorted(found - left))


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


def rebased(patch: tuple[Mapping[str, Any], ...], before: Manifest, live: Manifest) -> tuple[Mapping[str, Any], ...]:
    """Return *patch*, made for *before*, as it must be for *live*; empty if more than its status has changed hands."""
    if _of_object(before) != _of_object(live):
        return ()
    status = [entry for entry in live["metadata"].get("managedFields") or () if entry.get("subresource")]
    return takeover_patch(live, [*(entry for entry in patch[0]["value"] if not entry.get("subresource")), *status])


def _of_object(live: Manifest) -> list[Entry]:
    return [entry for entry in live["metadata"].get("managedFields") or () if not entry.get("subresource")]
