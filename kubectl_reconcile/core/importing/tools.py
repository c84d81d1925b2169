"""The tools that can be imported from, behind one door: which kinds to read, and what these become.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.importing import argocd, argocd_fields, flux, flux_fields
from kubectl_reconcile.core.importing.argocd import Repository
from kubectl_reconcile.core.importing.fields import Fate, KindTable
from kubectl_reconcile.core.importing.placing import placed
from kubectl_reconcile.core.importing.units import PIN, STOPS, Imported, Placed, Unit, told_apart
from kubectl_reconcile.core.objects import GroupKind, Manifest, map_at, maps_in, text_at
from kubectl_reconcile.core.resources.chart import ChartSpec


class Tool(StrEnum):
    """Another tool."""

    ARGOCD = "argocd"
    FLUX = "flux"

    @property
    def known_as(self) -> str:
        """What people call it."""
        return {Tool.ARGOCD: "Argo CD", Tool.FLUX: "Flux"}[self]

    @property
    def tables(self) -> tuple[KindTable, ...]:
        """The tables of its kinds that are read."""
        return argocd_fields.TABLES if self is Tool.ARGOCD else flux_fields.TABLES

    @property
    def not_read(self) -> Mapping[tuple[str, str], str]:
        """Its kinds that no Sync is made of, and why."""
        return argocd_fields.NOT_READ if self is Tool.ARGOCD else flux_fields.NOT_READ

    @property
    def kinds(self) -> tuple[GroupKind, ...]:
        """All kinds of it that are known."""
        return (
            *(GroupKind(each.group, each.kind) for each in self.tables),
            *(GroupKind(*each) for each in self.not_read),
        )


class Gathered(Struct):
    """What was read: *documents*, with Secrets that have no values, *repositories* of Argo CD, and folders with a kustomization (*overlays*)."""

    documents: list[Placed] = field(default_factory=list)
    repositories: list[Repository] = field(default_factory=list)
    overlays: set[str] = field(default_factory=set)

    def add(self, manifest: Manifest, file: str = "") -> None:
        """Take up an object, or the objects of a list; what a Secret holds isn't kept."""
        if manifest.get("kind") == "List" and manifest.get("apiVersion") == "v1":
            for each in maps_in(manifest.get("items")):
                self.add(each, file)
            return
        if not all(isinstance(manifest.get(name), str) for name in ("apiVersion", "kind")):
            return
        names = {name: text_at(manifest, "metadata", name) for name in ("name", "namespace")}
        whole = {**manifest, "metadata": {**map_at(manifest, "metadata"), **names}}
        if (whole["apiVersion"], whole["kind"]) == ("v1", "Secret"):
            if (found := argocd.repository_of(whole)) is not None:
                self.repositories.append(found)
            whole = flux.without_values(whole)
        self.documents.append(Placed(whole, file))

    def wanted_values(self) -> Iterator[tuple[str, str, str]]:
        """Yield the kind, namespace and name of each ConfigMap and Secret whose keys are variables of a Kustomization."""
        for each in self.documents:
            for entry in maps_in(map_at(each.manifest, "spec", "postBuild").get("substituteFrom")):
                namespace = text_at(each.manifest, "metadata", "namespace")
                yield str(entry.get("kind")), namespace, str(entry.get("name"))


def imported(tool: Tool, gathered: Gathered, *, namespace: str = "default", url: str = "", into: str = "") -> Imported:
    """Return what was gathered of *tool* as Syncs; *namespace* is that of objects that name none, *url* and *into* as the tools' own."""
    documents = [*placed(gathered.documents, namespace)]
    if tool is Tool.FLUX:
        return told_apart(flux.translate(documents, url=url, overlays=gathered.overlays))
    repositories = [each if each.namespace else each._replace(namespace=namespace) for each in gathered.repositories]
    return told_apart(argocd.translate(documents, repositories, into=into))


# --- digests of charts ---------------------------------------------------------------------------------------------------


def unpinned(found: Imported) -> Sequence[ChartSpec]:
    """Return the charts of Syncs that have no digest yet, each once."""
    charts = (map_at(each, "spec", "source", "chart") for each in found.syncs)
    return [*dict.fromkeys(_chart(each) for each in charts if each and not each.get("digest"))]


def pinned(found: Imported, digests: Mapping[ChartSpec, str], faults: Mapping[ChartSpec, str]) -> Imported:
    """Return what was found with *digests* of charts, and with the *faults* of those that nobody could get one of."""
    return replace(found, units=tuple(_pinned(unit, digests, faults) for unit in found.units))


def _pinned(unit: Unit, digests: Mapping[ChartSpec, str], faults: Mapping[ChartSpec, str]) -> Unit:
    syncs, findings = [], list(unit.findings)
    for each in unit.syncs:
        chart = map_at(each, "spec", "source", "chart")
        asked = _chart(chart) if chart and not chart.get("digest") else None
        if asked is not None and asked in digests:
            source = {**each["spec"]["source"], "chart": {**chart, "digest": digests[asked]}}
            each = {**each, "spec": {**each["spec"], "source": source}}  # noqa: PLW2901 - the same, pinned
            findings = [one for one in findings if one.text != PIN]
        elif asked is not None and asked in faults:
            findings = [one._replace(text=f"{PIN}; asked for it: {faults[asked]}") if one.text == PIN else one for one in findings]  # fmt: skip
        syncs.append(each)
    return replace(unit, syncs=tuple(syncs), findings=tuple(findings))


def _chart(fields: Manifest) -> ChartSpec:
    return ChartSpec(str(fields.get("repository")), str(fields.get("name")), str(fields.get("version")))


def suspended(found: Imported) -> Imported:
    """Return what was found with all Syncs suspended."""
    return replace(
        found,
        units=tuple(
            replace(unit, syncs=tuple({**each, "spec": {**each["spec"], "suspend": True}} for each in unit.syncs))
            for unit in found.units
        ),
    )


# --- what is said of it all ------------------------------------------------------------------------------------------------


class Tally(Struct, frozen=True):
    """How many *units* there are, how many of them are for this cluster (*here*), and how many of those are *translated*."""

    units: int
    here: int
    translated: int

    @classmethod
    def of(cls, found: Iterable[Imported]) -> Tally:
        """Count what was found."""
        units = [unit for each in found for unit in each.units]
        here = [unit for unit in units if not unit.is_elsewhere]
        return cls(len(units), len(here), sum(unit.is_translated for unit in here))

    @property
    def percent(self) -> float:
        """How many of a hundred units for this cluster are translated."""
        return 100.0 * self.translated / self.here if self.here else 100.0


def by_text(units: Iterable[Unit], *fates: Fate) -> Mapping[tuple[str, str], list[Unit]]:
    """Return what is to be known of several units by the field and the text, the most frequent first."""
    found: dict[tuple[str, str], list[Unit]] = {}
    for unit in units:
        for finding in unit.findings_of(*fates):
            found.setdefault((finding.place, finding.text), []).append(unit)
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


STOPPING: Final = tuple(STOPS)
"""Fates that keep a unit from becoming a Sync, for `by_text`."""
