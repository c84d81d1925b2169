"""Modules in any language: Metacontroller's CompositeController hooks over HTTP serve as modules unchanged.

A CompositeController manifest says which kind is the parent, which kinds are children and how they are updated, and
where the hooks are. Its ``sync`` hook is called when the module is asked to look outside, with the parent and its
children; what it answers are facts, which a pure function turns into an outcome. So a preview shows
what a hook wants, too, and everything else (merge, order, status, prune) is as for any module. As with Metacontroller, a hook
must change nothing itself and answer the same to the same question.

The manifests are files that the administrator names by ``KUBECTL_RECONCILE_WEBHOOKS`` (a file, or a folder of them), never
objects of a synced repository. Not served: ``customize`` and ControllerRevisions.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.module.api import Io, Module
from kubectl_reconcile.core.module.inputs import Context, Facts, Owned
from kubectl_reconcile.core.module.outcome import Outcome, in_turn, key_of
from kubectl_reconcile.core.objects import Condition, GroupVersionKind, Manifest
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.engine.modules.external_systems import OutsideError
from kubectl_reconcile.engine.modules.reach import ModuleIo
from kubectl_reconcile.engine.telemetry.logs import event

VARIABLE = "KUBECTL_RECONCILE_WEBHOOKS"

_TIMEOUT_S = 10.0
_SHOWN = 200
_CAMEL = re.compile(r"[A-Za-z][A-Za-z0-9]*")

log = logging.getLogger(__name__)

Find = Callable[[str, str], GroupVersionKind | None]
"""Returns the kind of an apiVersion and a resource name such as ``pods``; None where the server has none."""


class HookError(Exception):
    """A hook answered, and not as it should; the message has its words."""


class _Hooked(Struct, frozen=True):
    """One CompositeController: where its hooks are, and how its children are updated."""

    name: str
    hooks: Mapping[str, tuple[str, float]]
    strategies: Mapping[GroupVersionKind, str]
    resync_s: float | None

    async def observe(self, cr: Manifest, io: Io) -> Facts:
        """Ask the hook; what it answers is a fact."""
        finalizing = bool(cr["metadata"].get("deletionTimestamp"))
        url, timeout_s = self.hooks["finalize" if finalizing and "finalize" in self.hooks else "sync"]
        if not isinstance(io, ModuleIo):
            raise HookError("only the engine calls hooks")
        question = {
            "controller": {"kind": "CompositeController", "metadata": {"name": self.name}},
            "parent": cr,
            "children": self._grouped(io.owned),
            "related": {},
            "finalizing": finalizing,
        }
        answer = await io.systems.request("POST", url, body=question, timeout_s=timeout_s)
        if answer.status == 429:
            raise HookError(f"the hook {without_credentials(url)} is overloaded (429)")
        if answer.status != 200 or not isinstance(answer.body, Mapping):
            raise HookError(
                f"the hook {without_credentials(url)} answers {answer.status}: {answer.text[:_SHOWN] or 'nothing'}"
            )
        return dict(answer.body)

    def reconcile(self, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Return the hook's answer as an outcome."""
        status = dict(cr.get("status") or {}) if ctx.unobserved else dict(facts.get("status") or {})
        conditions = tuple(_conditions(status.pop("conditions", None) or ()))
        status.pop("observedGeneration", None)
        if ctx.unobserved:
            return Outcome(status=status, conditions=(Condition("Degraded", "True", "HookFailed", ctx.unobserved),))
        children: list[Manifest] = list(facts.get("children") or ())
        there = {key_of(child) for child in owned.children}
        return Outcome(
            children=tuple(children),
            status=status,
            conditions=conditions,
            requeue_after_s=facts.get("resyncAfterSeconds") or self.resync_s,
            after=in_turn(*([child] for child in children if self._is(child, "Rolling"))),
            untouched=tuple(
                key for child in children if self._is(child, "OnDelete") and (key := key_of(child)) in there
            ),
            recreated=tuple({child["kind"] for child in children if self._is(child, "Recreate")}),
            finalized=bool(facts.get("finalized")),
        )

    def _is(self, child: Manifest, strategy: str) -> bool:
        return strategy in self.strategies.get(GroupVersionKind.of(child), "OnDelete")

    def _grouped(self, owned: Owned) -> dict[str, dict[str, Manifest]]:
        groups: dict[str, dict[str, Manifest]] = {f"{gvk.kind}.{gvk.api_version}": {} for gvk in self.strategies}
        for child in owned.children:
            gvk = GroupVersionKind.of(child)
            groups.setdefault(f"{gvk.kind}.{gvk.api_version}", {})[child["metadata"]["name"]] = child
        return groups


def _conditions(found: Sequence[Mapping[str, Any]]) -> Iterator[Condition]:
    for one in found:
        reason = str(one.get("reason") or "AsTheHookSays")
        yield Condition(
            str(one["type"]),
            str(one.get("status", "Unknown")),
            reason if _CAMEL.fullmatch(reason) else "AsTheHookSays",
            str(one.get("message") or ""),
        )


def folder_of(place: str) -> Path:
    """Return the folder to watch for changes of *place*, a file or a folder."""
    return Path(place) if Path(place).is_dir() else Path(place).parent


def modules_in_files(place: str, find: Find) -> list[Module]:
    """Return the modules of all CompositeControllers in *place*; what can't be used is logged and passed over."""
    found = []
    root = Path(place)
    files = sorted(root.glob("*.y*ml")) + sorted(root.glob("*.json")) if root.is_dir() else [root]
    for file in files:
        try:
            manifests = [each.manifest for each in parse(file.read_bytes(), file.name).manifests]
            found += [module_of(each, find) for each in manifests if each["kind"] == "CompositeController"]
        except (OSError, KeyError, TypeError, ValueError, OutsideError) as error:
            event(log, logging.ERROR, "webhook module not loaded", file=file, error=f"{type(error).__name__}: {error}")
    return found


def modules_offline() -> list[Module]:
    """Return the modules that the environment names, without asking a server: kinds are called by their plural names."""
    place = os.environ.get(VARIABLE, "")
    return modules_in_files(place, GroupVersionKind.parse) if place else []


def module_of(controller: Manifest, find: Find) -> Module:
    """Return the module that a CompositeController describes.

    Raises:
        KeyError: it lacks something.
        ValueError: the server doesn't know the parent's kind.
    """
    spec, name = controller["spec"], controller["metadata"]["name"]
    parent = find(spec["parentResource"]["apiVersion"], spec["parentResource"]["resource"])
    if parent is None:
        raise ValueError(f"{name}: the server has no {spec['parentResource']['resource']}")
    strategies = {
        gvk: (rule.get("updateStrategy") or {}).get("method", "OnDelete")
        for rule in spec.get("childResources") or ()
        if (gvk := find(rule["apiVersion"], rule["resource"]))
    }
    hooks = {kind: _hook(hook["webhook"]) for kind, hook in spec["hooks"].items() if hook and "webhook" in hook}
    hooked = _Hooked(name, {"sync": hooks["sync"], **hooks}, strategies, spec.get("resyncPeriodSeconds"))
    return Module(
        name=name,
        gvk=parent,
        owns=tuple(strategies),
        reads=(),
        reconcile=hooked.reconcile,
        finalize=hooked.reconcile if "finalize" in hooks else None,
        observe=hooked.observe,
        docs=f"Served by the hook {hooks['sync'][0]}.",
        observe_s=max(timeout_s for _, timeout_s in hooks.values()) + 1,
    )


def _hook(webhook: Mapping[str, Any]) -> tuple[str, float]:
    if "url" in webhook:
        url = str(webhook["url"])
    else:
        service = webhook["service"]
        port = service.get("port", 80)
        url = f"{service.get('protocol', 'http')}://{service['name']}.{service['namespace']}:{port}{webhook.get('path', '/')}"
    number = re.fullmatch(r"([0-9.]+)s", str(webhook.get("timeout", "")))
    return url, float(number[1]) if number else _TIMEOUT_S
