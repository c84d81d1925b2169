"""What a plan does to the findings of a scan: which ones it adds, and which it fixes.

What is looked for says whoever asks, by one profile for everything, or the Checkups of the namespaces that the plan changes: then a scan of a namespace as the plan
leaves it is compared with one of the namespace as it is, so what is reported is what its Checkup finds afterwards.

What the plan would not write isn't counted: what is blocked, denied or held stays as it is until somebody sees to that.

Pure: a plan in, findings out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct, field

from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, map_at, place_of
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.scan.findings import ScanFinding, findings_of
from kubectl_reconcile.core.scan.namespace import SCANNED_KINDS, findings_among
from kubectl_reconcile.core.scan.notes import maker_of
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.core.scan.rules import ScanRules, ScanRulesError

CHECKUP = GroupVersionKind("checks.reconcile.dev", "v1alpha1", "Checkup")


class PlannedFinding(Struct, frozen=True):
    """A finding that a change adds or fixes, and where what is changed is written: ``file:line``, a module's name, or nothing."""

    finding: ScanFinding
    place: str = ""


class ScanOutlook(Struct, frozen=True):
    """What a plan adds to a scan, and what it fixes."""

    new: tuple[PlannedFinding, ...] = ()
    fixed: tuple[PlannedFinding, ...] = ()


class ScannedNamespace(Struct, frozen=True):
    """A namespace as it is, the *objects* that a scan looks at, and its Checkups, by name.

    Where not all *is_known*, nobody can say what answers for a Service.
    """

    objects: Sequence[Manifest]
    checkups: Mapping[str, ScanRules]
    is_known: bool = True

    def found_in(self, objects: Iterable[Manifest]) -> dict[ScanFinding, None]:
        """Return what any of the Checkups finds in *objects*; of other kinds than they look at nothing counts, not even what these have made."""
        there = [each for each in objects if ObjectRef.of(each).group_kind in SCANNED_KINDS]
        found = (each for rules in self.checkups.values() for each in findings_among(there, rules))
        return {each: None for each in found if self.is_known or each.check != "endpoints"}


class ScanScope(Struct, frozen=True):
    """What is looked for: by one *profile* in everything that changes, or in *namespaces* by their Checkups."""

    profile: Profile | None = None
    namespaces: Mapping[str, ScannedNamespace] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.profile is not None or bool(self.namespaces)

    @property
    def names(self) -> list[str]:
        """The Checkups that are asked, each with its namespace."""
        return [f"{place}/{name}" for place, each in sorted(self.namespaces.items()) for name in sorted(each.checkups)]

    @property
    def strictest(self) -> Profile:
        """The profile, or the strictest one that a Checkup has."""
        rules = [each.profile for place in self.namespaces.values() for each in place.checkups.values()]
        return self.profile or (Profile.RESTRICTED if Profile.RESTRICTED in rules else Profile.BASELINE)

    def __str__(self) -> str:
        if self.profile is not None:
            return self.profile.value
        return f"Checkup{'' if len(self.names) == 1 else 's'} {', '.join(self.names)}"


def is_written(change: Change) -> bool:
    """Tell whether an object is another one after the plan."""
    return not (change.op in {Op.UNCHANGED, Op.ACT} or change.gate.blocked or change.gate.denied or change.gate.held)


def checkups_after(live: Iterable[Manifest], changes: Iterable[Change]) -> dict[str, dict[str, ScanRules]]:
    """Return by namespace what Checkups look for once a plan is carried out; those that are suspended, or make no sense, look for nothing."""
    there = {ObjectRef.of(each): each for each in live}
    for change in filter(is_written, changes):
        if change.ref.group_kind == CHECKUP.group_kind:
            there.pop(change.ref, None)
            there |= {change.ref: change.after} if change.after and change.op is not Op.DELETE else {}
    found: dict[str, dict[str, ScanRules]] = {}
    for ref, checkup in sorted(there.items(), key=lambda item: item[0]):
        if (rules := _rules_of(checkup)) is not None:
            found.setdefault(ref.namespace, {})[ref.name] = rules
    return found


def _rules_of(checkup: Manifest) -> ScanRules | None:
    spec = map_at(checkup, "spec")
    try:
        looks = spec.get("scan") is not None and spec.get("suspend") is not True
        return ScanRules.of(map_at(spec, "scan")) if looks else None
    except ScanRulesError:
        return None


def outlook_of(changes: Iterable[Change], scope: ScanScope) -> ScanOutlook:
    """Return what *changes* do to the findings of a scan, in the order of the changes where one *profile* counts, else of namespaces and objects."""
    written = list(filter(is_written, changes))
    if scope.profile is not None:
        return _by_object(written, scope.profile)
    new: list[PlannedFinding] = []
    fixed: list[PlannedFinding] = []
    for place, namespace in sorted(scope.namespaces.items()):
        here = {change.ref: change for change in written if change.ref.namespace == place}
        live = {ref: change.before for ref, change in here.items() if change.before}
        live |= {ObjectRef.of(each): each for each in namespace.objects}
        before, after = (namespace.found_in(each) for each in (live.values(), _after(live, here)))
        new += [_planned(each, here.get(each.ref)) for each in after if each not in before]
        fixed += [_planned(each, here.get(each.ref)) for each in before if each not in after]
    return ScanOutlook(tuple(new), tuple(fixed))


class PlanScan:
    """What plans do to the findings of a scan within a *scope*. Each is scanned when it is first asked for, and once: that of a large namespace takes a while."""

    def __init__(self, scope: ScanScope) -> None:
        self.scope = scope
        self._known: dict[int, tuple[Sequence[Change], ScanOutlook]] = {}

    def __bool__(self) -> bool:
        return bool(self.scope)

    def outlook(self, changes: Sequence[Change]) -> ScanOutlook:
        """Return what the *changes* of a plan do to the findings."""
        if id(changes) not in self._known:  # they are kept with it, so nothing else gets their identity
            self._known[id(changes)] = changes, outlook_of(changes, self.scope)
        return self._known[id(changes)][1]


def _by_object(written: Iterable[Change], profile: Profile) -> ScanOutlook:
    new: list[PlannedFinding] = []
    fixed: list[PlannedFinding] = []
    for change in written:
        # In the order in which they are found, each once.
        before = dict.fromkeys(findings_of(change.before, profile) if change.before else ())
        after = dict.fromkeys(findings_of(change.after, profile) if change.after else ())
        new += [_planned(each, change) for each in after if each not in before]
        fixed += [_planned(each, change) for each in before if each not in after]
    return ScanOutlook(tuple(new), tuple(fixed))


def _after(live: Mapping[ObjectRef, Manifest], written: Mapping[ObjectRef, Change]) -> Iterator[Manifest]:
    """Yield the objects of a namespace as a plan leaves them; what is deleted takes along what it has made."""
    gone = {ref for ref, change in written.items() if change.op is Op.DELETE}
    left = {ref: each for ref, each in live.items() if ref not in written}
    while along := {ref for ref, each in left.items() if maker_of(ref, each) in gone}:
        gone |= along
        left = {ref: each for ref, each in left.items() if ref not in along}
    yield from left.values()
    # What is written comes whatever happened to its maker.
    yield from (change.after for change in written.values() if change.after and change.op is not Op.DELETE)


def _planned(finding: ScanFinding, change: Change | None) -> PlannedFinding:
    if change is None:
        return PlannedFinding(finding)
    place = place_of(change.provenance.file, change.provenance.line)
    told = replace(finding, path=change.told(finding.path), demand=change.told(finding.demand))
    return PlannedFinding(told, "" if change.op is Op.DELETE else change.module or place)
