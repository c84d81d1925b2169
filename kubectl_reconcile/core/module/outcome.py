"""What a domain module returns: the children that must exist, the status to report, and actions on external systems.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_reconcile.core.objects import Condition, GroupVersionKind, Manifest, mapping_of


@dataclass(frozen=True, slots=True)
class Action:
    """One step on an external system, as data; the same *key* never runs twice.

    *verb* and *parameters* are for the driver, *summary* is the sentence people read,
    *precondition* is what must still be observed when it runs (``{"bar.id": "bar-3"}``), and
    *needs_approval* marks what can't be undone. A key is a DNS label, like ``dispose-bar-3``: it
    names the one occasion on which the step is taken. Where *repeats* is set it names the step alone, which may be due again: then what
    was done says nothing, and the precondition decides whether it runs.
    """

    key: str
    verb: str
    summary: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    precondition: Mapping[str, Any] = field(default_factory=dict)
    needs_approval: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a module wants: everything it returns is put in place, nothing else.

    *children* carry ``apiVersion``, ``kind``, ``metadata.name`` and what the module insists on;
    a field that it leaves out belongs to others. Live children that aren't among them are
    deleted, unless *keep_children* says that they stay. *status* comes without ``conditions`` and
    ``observedGeneration``, which the engine keeps. *requeue_after_s* asks for another call even
    if nothing happens until then.

    *after* orders children: the child ``key_of`` of which is a key is written once those named are
    as they should be and healthy (see `in_turn`). *actions* run one after the other, as listed.
    *untouched* are children (by `key_of`) that stay as they are; *recreated* are kinds whose
    children are deleted and recreated rather than changed. *finalized* is for ``finalize``: nothing
    is left to be done, the CR may go; children whose `key_of` is *released* stay behind then, as nobody's.
    *warnings* are sentences for whoever previews: what of the spec isn't done although the rest is.
    *urgent* tells that somebody waits for what follows, so that the next call isn't put off because the last ones wrote.
    """

    children: tuple[Manifest, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    actions: tuple[Action, ...] = ()
    requeue_after_s: float | None = None
    keep_children: bool = False
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    untouched: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    finalized: bool = False
    released: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    urgent: bool = False


STATUS_OF_ENGINE: Final = ("conditions", "observedGeneration")
"""What of a CR's status the engine writes, not the module."""


def kept_status(cr: Manifest) -> dict[str, Any]:
    """Return the status that a module gave *cr* before, for an outcome that changes nothing of it."""
    return {name: value for name, value in mapping_of(cr.get("status")).items() if name not in STATUS_OF_ENGINE}


def unobserved(cr: Manifest, why: str, look_again_s: float) -> Outcome:
    """Return what a module says while nobody answers it, *why* being the reason: nothing is known, and nothing is done."""
    unknown = (Condition(each, "Unknown", "NotObserved", why) for each in ("Available", "Ready"))
    return Outcome(status=kept_status(cr), conditions=tuple(unknown), requeue_after_s=look_again_s)


def named(api_version: str, kind: str, name: str) -> Manifest:
    """Return a child that is told by its name alone: with `untouched_in` it stays as it is."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def untouched_in(children: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the ``untouched`` of an outcome: the keys of those that are told by name alone."""
    return tuple(
        key_of(each) for each in children if each == named(each["apiVersion"], each["kind"], each["metadata"]["name"])
    )


def key_of(child: Manifest) -> str:
    """Return how an outcome names one of its children: ``Deployment.apps/web``."""
    return f"{GroupVersionKind.of(child).group_kind}/{child['metadata']['name']}"


def in_turn(*stages: Sequence[Manifest]) -> dict[str, tuple[str, ...]]:
    """Return the ``after`` of an outcome that makes each stage wait until all stages before are healthy.

    Children one at a time are stages of one child each.
    """
    waits: dict[str, tuple[str, ...]] = {}
    before: tuple[str, ...] = ()
    for stage in stages:
        keys = tuple(key_of(child) for child in stage)
        waits |= {key: before for key in keys if before}
        before += keys
    return waits
