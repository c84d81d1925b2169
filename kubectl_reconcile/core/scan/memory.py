"""What earlier scans found, so that the next one looks only at what has changed.

An object that is known by its version, its uid and resourceVersion, isn't even parsed again: what is found in it, and what of it counts for others, can't be
another thing. What is known has a bound; what doesn't fit is looked at each time.

A scan says the same with a memory as without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from msgspec import Struct, field

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.scan.alike import AlikePods
from kubectl_reconcile.core.scan.findings import ScanFinding
from kubectl_reconcile.core.scan.namespace import found_in, is_made
from kubectl_reconcile.core.scan.notes import ScanNote, note_of
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.core.scan.rules import ScanRules

_MOST: Final = 100_000
"""How many objects and findings may be known."""


class Versioned(Protocol):
    """A live object that is parsed when it is asked for."""

    @property
    def ref(self) -> ObjectRef:
        """Which object this is."""

    @property
    def version(self) -> str:
        """What tells this very state of it from all others, empty where nothing does."""

    def manifest(self) -> Mapping[str, Any]:
        """Return the whole object, parsed."""


class _KnownObject(Struct, frozen=True):
    """What is known of an object: what counts of it for others, and what was found in it by which profile."""

    note: ScanNote
    findings: dict[Profile, tuple[ScanFinding, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return 1 + sum(map(len, self.findings.values()))


class ScanMemory:
    """What is known about the objects of scanned namespaces: at most *most* objects and findings in total."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._places: dict[str, dict[str, _KnownObject]] = {}

    def findings_among(self, place: str, objects: Iterable[Versioned], rules: ScanRules) -> list[ScanFinding]:
        """Return what a scan by *rules* finds among the *objects* of a namespace, as `namespace.findings_among` does."""
        there = {each.ref: each for each in objects}
        before = self._places.get(place, {})
        alike = AlikePods(rules.profile)
        known = {
            ref: before.get(each.version) or _learned(each, there, rules.profile, alike) for ref, each in there.items()
        }

        def look(ref: ObjectRef) -> tuple[ScanFinding, ...]:
            findings = known[ref].findings
            if rules.profile not in findings:
                findings[rules.profile] = alike.findings_of(there[ref].manifest())
            return findings[rules.profile]

        found = found_in((each.note for each in known.values()), rules, look)
        self._keep(place, {there[ref].version: each for ref, each in known.items()})
        return found

    def _keep(self, place: str, known: Mapping[str, _KnownObject]) -> None:
        """Know this of a namespace and nothing else; of all others, those that were scanned last."""
        room, kept = self._most, {}
        for version, each in known.items():
            room -= each.size
            if room >= 0 and version:
                kept[version] = each
        others = {name: each for name, each in self._places.items() if name != place}
        for name in reversed(list(others)):
            room -= sum(each.size for each in others[name].values())
            if room < 0:
                del others[name]
        self._places = {**others, place: kept}


def _learned(each: Versioned, there: Mapping[ObjectRef, object], profile: Profile, alike: AlikePods) -> _KnownObject:
    manifest = each.manifest()
    known = _KnownObject(note_of(manifest))
    if not known.note.goes and not is_made(known.note, there):
        known.findings[profile] = alike.findings_of(manifest)
    return known
