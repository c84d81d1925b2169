"""Which domain modules there are, by the kind that each owns: those of installed packages, ours among them, and webhooks.

Packages name their modules by entry points. One that is called by its kind, as in ``Memcached.v1alpha1.cache.example.com``, says without an
import what it is for, and is imported when somebody asks for that kind: a command that applies a few ConfigMaps would take half as long again
if it read how a database fails over. One of any other name is imported to find out.

Where several packages have a module for one kind, the first one by the name of the package counts; what comes with us comes last.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.health.kind_table import KindRule
from kubectl_reconcile.core.module.api import Module, UnloadedModule, modules_in
from kubectl_reconcile.core.module.call import ModuleError
from kubectl_reconcile.core.module.jobs import shortened
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.engine.modules import metacontroller
from kubectl_reconcile.engine.telemetry.logs import event

_GROUP = "kubectl_reconcile.modules"
_OURS = "kubectl-reconcile"
_BY_KIND = re.compile(
    r"(?P<kind>[A-Z][A-Za-z0-9]*)\.(?P<version>v[0-9][a-z0-9]*)\.(?P<group>[a-z0-9-]+(\.[a-z0-9-]+)+)"
)
_REASON_MAX = 300

log = logging.getLogger(__name__)


class ModulePlace(Struct, frozen=True):
    """Where modules are: *place* is what is imported, *package* what was installed."""

    place: str
    package: str


class ModuleFault(Struct, frozen=True):
    """Something wrong with what packages say of their modules, and the *hint* what to do. *is_missing* says whether a module is missing by it, *kind* which it is for where that is known."""

    why: str
    hint: str
    is_missing: bool = True
    kind: str = ""


class KnownModules(Mapping[GroupVersionKind, Module]):
    """Domain modules by the kind that each owns: there already, or at a place that they are imported from when somebody asks. Which kinds these are costs no import.

    A module that can't be imported is an `UnloadedModule`. *faults* are what was found wrong so far.
    """

    def __init__(
        self, found: Mapping[GroupVersionKind, Module | ModulePlace] | None = None, faults: Iterable[ModuleFault] = ()
    ) -> None:
        self._found = dict(found or {})
        self._asked: dict[GroupVersionKind, Module] = {}
        self.faults = list(faults)

    def __getitem__(self, gvk: GroupVersionKind) -> Module:
        found = self._found[gvk]
        if isinstance(found, Module):
            return found
        if gvk not in self._asked:
            self._asked[gvk] = self._loaded(gvk, found)
        return self._asked[gvk]

    def __contains__(self, gvk: object) -> bool:
        return gvk in self._found

    def __iter__(self) -> Iterator[GroupVersionKind]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def in_use(self) -> list[Module]:
        """Return those that are loaded by now: any that has a custom resource is among them."""
        return [*self._asked.values(), *(each for each in self._found.values() if isinstance(each, Module))]

    def all_loaded(self) -> list[Module]:
        """Return all that can be loaded, having tried; *faults* are complete then."""
        return [each for each in self.values() if not isinstance(each, UnloadedModule)]

    def lost(self) -> list[ModuleFault]:
        """Return the faults because of which nobody knows which kinds have a module."""
        return [each for each in self.faults if each.is_missing and not each.kind]

    @property
    def health(self) -> Mapping[GroupKind, KindRule]:
        """The rules of health that they declare for their CRs; each is looked up when it is asked for."""
        return _HealthRules(self)

    def with_more(self, others: Mapping[GroupVersionKind, Module]) -> KnownModules:
        """Return these modules and *others*, which come first."""
        return KnownModules({**self._found, **others}, self.faults)

    def become(self, other: KnownModules) -> set[GroupKind]:
        """Be as *other* is from now on; return the kinds that have another module now, or none any more."""
        before, self._found, self.faults = self._found, dict(other._found), list(other.faults)
        both = before.keys() | self._found.keys()
        changed = {gvk for gvk in both if not _is_same(before.get(gvk), self._found.get(gvk))}
        self._asked = {gvk: module for gvk, module in self._asked.items() if gvk not in changed}
        return {gvk.group_kind for gvk in changed}

    def _loaded(self, gvk: GroupVersionKind, at: ModulePlace) -> Module:
        found = _imported_from(at)
        if isinstance(found, ModuleFault):
            fault = found
        elif module := found.get(gvk):
            return module
        else:
            there = ", ".join(sorted(map(_called, found))) or "none"
            why = f"{at.place} of package {at.package} has no module for {_called(gvk)}, which its entry point is called by; it has {there}"
            fault = ModuleFault(why, "tell who made the package, or remove it")
        self.faults.append(replace(fault, kind=_called(gvk)))
        event(log, logging.ERROR, "module not loaded", kind=_called(gvk), module=at.place, error=fault.why)
        return _unloaded(gvk, fault)


class _HealthRules(Mapping[GroupKind, KindRule]):
    """The rules of health of some modules, by kind."""

    def __init__(self, modules: KnownModules) -> None:
        self._modules = modules
        self._kinds = {gvk.group_kind: gvk for gvk in modules}

    def __getitem__(self, kind: GroupKind) -> KindRule:
        if (rule := self._modules[self._kinds[kind]].health) is None:
            raise KeyError(kind)
        return rule

    def __iter__(self) -> Iterator[GroupKind]:
        return (kind for kind, gvk in self._kinds.items() if self._modules[gvk].health is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        """Tell whether both are of the same modules, without importing one."""
        return isinstance(other, _HealthRules) and self._kinds == other._kinds and self._modules is other._modules

    __hash__ = None  # type: ignore[assignment] # as any mapping


def installed_modules() -> KnownModules:
    """Return the domain modules of installed packages.

    A package whose module has to be imported to know its kind, and can't be, is logged and passed over: its CRs stay as they are.
    """
    found: dict[GroupVersionKind, Module | ModulePlace] = {}
    chosen: dict[GroupVersionKind, ModulePlace] = {}
    faults: list[ModuleFault] = []
    for entry, at in _declared():
        if gvk := _kind_named(entry.name):
            new: Mapping[GroupVersionKind, Module | ModulePlace] = {gvk: at}
        else:
            modules = _imported_from(at)
            if isinstance(modules, ModuleFault):
                event(log, logging.ERROR, "module not loaded", module=at.place, error=modules.why)
                faults.append(modules)
                continue
            new = modules
        for each, what in new.items():
            first = chosen.setdefault(each, at)
            found.setdefault(each, what)
            if first != at and at.package != _OURS:
                both = f"{first.place} of package {first.package} and {at.place} of package {at.package}"
                why = f"{both} are both for {_called(each)}; the first one counts"
                faults.append(ModuleFault(why, "remove one of them", is_missing=False))
    return KnownModules(found, faults)


def known_modules(discovery: Discovery) -> KnownModules:
    """Return the installed modules, and those that webhooks serve where the administrator names some."""
    found = installed_modules()
    if place := os.environ.get(metacontroller.VARIABLE):
        served = {(each.gvk.api_version, each.plural): each.gvk for each in discovery.resources}
        hooked = metacontroller.modules_in_files(place, lambda api, plural: served.get((api, plural)))
        return found.with_more({module.gvk: module for module in hooked})
    return found


def _declared() -> list[tuple[EntryPoint, ModulePlace]]:
    """Return the entry points, that of the package first whose module counts."""
    found = [
        (each, ModulePlace(each.value, each.dist.name if each.dist else "")) for each in entry_points(group=_GROUP)
    ]
    return sorted(found, key=lambda one: (one[1].package == _OURS, one[1].package, one[0].name))


def _kind_named(name: str) -> GroupVersionKind | None:
    """Return the kind that an entry point is called by, None if it has another name."""
    found = _BY_KIND.fullmatch(name)
    return GroupVersionKind(found["group"], found["version"], found["kind"]) if found else None


def _called(gvk: GroupVersionKind) -> str:
    """Return what the entry point of a kind is called."""
    return f"{gvk.kind}.{gvk.version}.{gvk.group}"


def _is_same(one: Module | ModulePlace | None, other: Module | ModulePlace | None) -> bool:
    return one is other or (isinstance(one, ModulePlace) and one == other)


def _imported_from(at: ModulePlace) -> Mapping[GroupVersionKind, Module] | ModuleFault:
    """Return the modules at a place, by kind, or why it can't be imported. It is foreign code: whatever it does, the others must go on."""
    try:
        return _imported(at.place)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - see above
        why = shortened(f"{type(error).__name__}: {error}", _REASON_MAX)
        said = f"{at.place} of package {at.package} can't be imported: {why}"
        return ModuleFault(said, f"install package {at.package} again, with all that it needs, or remove it")


@functools.cache
def _imported(place: str) -> Mapping[GroupVersionKind, Module]:
    return {module.gvk: module for module in modules_in(importlib.import_module(place))}


def _unloaded(gvk: GroupVersionKind, fault: ModuleFault) -> UnloadedModule:
    """Return what stands for a module that can't be loaded."""
    name = gvk.kind.lower()
    why = f"its module can't be loaded: {fault.why}"

    def refuse(*_: object) -> NoReturn:
        raise ModuleError(name, why)

    return UnloadedModule(
        name, gvk, owns=(), reads=(), reconcile=refuse, docs="", why=why,
        hint=f"{fault.hint}; a daemon is to be restarted then. Until then its children and its status stay as they are",
    )  # fmt: skip
