"""Which domain modules there are, by the kind that each owns: those that come with us, those of installed packages, and webhooks.

One that comes with us is imported when somebody asks for it: which kinds it owns is known before. A command that
applies a few ConfigMaps would take half as long again if it read how a database fails over.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points

from kubectl_reconcile import modules as bundled
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.health.kind_table import KindRule
from kubectl_reconcile.core.module.api import Module, modules_in
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.engine.modules import metacontroller
from kubectl_reconcile.engine.telemetry.logs import event

_GROUP = "kubectl_reconcile.modules"
_PLACES = {
    GroupVersionKind.parse(api_version, kind): f"{bundled.__name__}.{name}"
    for name, (api_version, *kinds) in bundled.OWNED.items()
    for kind in kinds
}

log = logging.getLogger(__name__)


class KnownModules(Mapping[GroupVersionKind, Module]):
    """Domain modules by the kind that each owns: ours, and *others*, which come first. Which kinds these are costs no import."""

    def __init__(self, others: Mapping[GroupVersionKind, Module] | None = None) -> None:
        self._others = dict(others or {})
        self._asked: dict[GroupVersionKind, Module] = {}

    def __getitem__(self, gvk: GroupVersionKind) -> Module:
        if (found := self._others.get(gvk) or self._asked.get(gvk)) is None:
            found = self._asked[gvk] = _imported(_PLACES[gvk])[gvk]
        return found

    def __contains__(self, gvk: object) -> bool:
        return gvk in self._others or gvk in _PLACES

    def __iter__(self) -> Iterator[GroupVersionKind]:
        return iter({**_PLACES, **self._others})

    def __len__(self) -> int:
        return len(_PLACES.keys() | self._others.keys())

    def in_use(self) -> list[Module]:
        """Return those that somebody has asked for, and the others: any that has a custom resource is among them."""
        return [*self._asked.values(), *self._others.values()]

    @property
    def health(self) -> Mapping[GroupKind, KindRule]:
        """The rules of health that they declare for their CRs; each is looked up when it is asked for."""
        return _HealthRules(self)

    def with_more(self, others: Mapping[GroupVersionKind, Module]) -> KnownModules:
        """Return these modules and *others*, which come first."""
        return KnownModules({**self._others, **others})

    def become(self, other: KnownModules) -> set[GroupKind]:
        """Be as *other* is from now on; return the kinds that have another module now, or none any more."""
        before, self._others = self._others, dict(other._others)
        both = before.keys() | self._others.keys()
        return {gvk.group_kind for gvk in both if before.get(gvk) is not self._others.get(gvk)}


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
        """Tell whether both are of the same modules, without importing ours, which never change."""
        return isinstance(other, _HealthRules) and self._kinds == other._kinds and self._modules is other._modules

    __hash__ = None  # type: ignore[assignment] # as any mapping


def installed_modules() -> KnownModules:
    """Return the domain modules that come with us, and those of installed packages.

    A package whose module can't be imported is logged and passed over: its CRs stay as they are.
    """
    found: dict[GroupVersionKind, Module] = {}
    own = set(_PLACES.values())
    others = [entry.value for entry in sorted(entry_points(group=_GROUP), key=lambda entry: entry.name)]
    for place in dict.fromkeys(each for each in others if each not in own):
        try:
            found |= _imported(place)
        except Exception as error:  # noqa: BLE001 - foreign code; the others must still load
            event(log, logging.ERROR, "module not loaded", module=place, error=error)
    return KnownModules(found)


def known_modules(discovery: Discovery) -> KnownModules:
    """Return the installed modules, and those that webhooks serve where the administrator names some."""
    found = installed_modules()
    if place := os.environ.get(metacontroller.VARIABLE):
        served = {(each.gvk.api_version, each.plural): each.gvk for each in discovery.resources}
        hooked = metacontroller.modules_in_files(place, lambda api, plural: served.get((api, plural)))
        return found.with_more({module.gvk: module for module in hooked})
    return found


@functools.cache
def _imported(place: str) -> Mapping[GroupVersionKind, Module]:
    return {module.gvk: module for module in modules_in(importlib.import_module(place))}
