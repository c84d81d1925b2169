"""What a domain module returns: the children that must exist, the status to report, and actions on external systems.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from kubectl_reconcile.core.objects import Condition, GroupVersionKind, Manifest, mapping_of


class Action(Struct, frozen=True):
    """One step on an external system, as data. The same *key* never runs twice.

    *verb* and *parameters* are for the driver. *summary* is the sentence that people read.
    *precondition* is what must still be observed when the action runs (``{"bar.id": "bar-3"}``).
    *needs_approval* marks actions that can't be undone. A key is a DNS label such as ``dispose-bar-3``, and names
    this single step. With *repeats*, the key names a step that may be due again: then earlier runs don't count,
    and only the precondition decides whether it runs.
    *asks_each_time* marks actions that nobody can approve in advance: only an approval of this key counts, not one of its verb or of all.
    """

    key: str
    verb: str
    summary: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    precondition: Mapping[str, Any] = field(default_factory=dict)
    needs_approval: bool = False
    repeats: bool = False
    asks_each_time: bool = False

    def with_parameters(self, parameters: Mapping[str, Any]) -> Action:
        """Return this step with other parameters."""
        return replace(self, parameters=parameters)


class Outcome(Struct, frozen=True):
    """What a module wants: the engine makes exactly this true, and nothing else.

    *children* have ``apiVersion``, ``kind``, ``metadata.name`` and the fields that the module sets;
    fields that it leaves out belong to others. Live children that aren't among them are
    deleted, unless *keep_children* says that they stay. *status* comes without ``conditions`` and
    ``observedGeneration``, which the engine keeps. *requeue_after_s* asks for another call even
    if nothing happens until then.

    *after* orders children, by `key_of`: a child that is a key is written once the children in its value
    are written and healthy (see `in_turn`). *actions* run one after the other, as listed.
    *untouched* are children (by `key_of`) that stay as they are; *recreated* are kinds whose
    children are deleted and recreated rather than changed. *finalized* is for ``finalize``: nothing
    is left to do, and the CR may be deleted. *graces* are the seconds that pods (by `key_of`) have to end when they are deleted, where that isn't what their spec says.
    *dropped* are children (by `key_of`) that the module `Keeps` and wants no longer: nothing else deletes one.
    *warnings* are sentences for previews: parts of the spec that aren't carried out although the rest is.
    *urgent* says that somebody is waiting for the next step, so that the next call isn't delayed because the last ones wrote.
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
    graces: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    urgent: bool = False
    dropped: tuple[str, ...] = ()


def as_tree(outcome: Outcome) -> dict[str, Any]:
    """Return *outcome* as a mapping of its fields. What a module put into them is there as it is, even if it isn't JSON."""
    parts = {"conditions": outcome.conditions, "actions": outcome.actions}
    return asdict(outcome) | {name: [asdict(each) for each in items] for name, items in parts.items()}


STATUS_OF_ENGINE: Final = ("conditions", "observedGeneration")
"""What of a CR's status the engine writes, not the module."""


def kept_status(cr: Manifest) -> dict[str, Any]:
    """Return the status that a module gave *cr* before, for an outcome that doesn't change it."""
    return {name: value for name, value in mapping_of(cr.get("status")).items() if name not in STATUS_OF_ENGINE}


def unobserved(cr: Manifest, why: str, look_again_s: float) -> Outcome:
    """Return the outcome of a module that gets no answer, for the reason *why*: nothing is known, and nothing is done."""
    unknown = (Condition(each, "Unknown", "NotObserved", why) for each in ("Available", "Ready"))
    return Outcome(status=kept_status(cr), conditions=tuple(unknown), requeue_after_s=look_again_s)


def named(api_version: str, kind: str, name: str) -> Manifest:
    """Return a child that has only a name: with `untouched_in`, it stays as it is."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def untouched_in(children: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the ``untouched`` of an outcome: the keys of children that have only a name."""
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
