"""What a Sync adds to the rules of health: expressions in CEL for kinds that need their own, and how strict to be.

Vocabulary: an expression speaks of the object as ``self``, as in a CRD's validation rules. Of a rule's
expressions ``failed`` is asked first, then ``inProgress``, then ``current``; where none is true the object
is in progress if there is a ``current`` to become true, else the general rules decide. A field that an
expression names and the object lacks makes the expression false, since controllers fill in
their status late. One that can't be answered for another reason, as where it compares a text with a number, is a *fault*: the
general rules decide then, and the verdict says so. An expression that might take long for an object isn't asked of it, see ``cel_cost``: the object
counts as in progress, and its verdict says so.

Pure: expressions can't do anything but look. The library is imported where a rule is read.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Self

from kubectl_reconcile.core.health.cel_cost import MOST_STEPS, USUAL, Size, UnreadableError, steps
from kubectl_reconcile.core.health.kind_table import KindRule
from kubectl_reconcile.core.health.kstatus import Expected, Health, HealthStatus, health
from kubectl_reconcile.core.health.silence import is_young
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest

_ASKED: Final = (
    ("failed", HealthStatus.FAILED),
    ("inProgress", HealthStatus.IN_PROGRESS),
    ("current", HealthStatus.CURRENT),
)
_CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
_JOB: Final = GroupKind("batch", "Job")
LIMITS: Final = frozenset(
    {
        GroupKind("", "LimitRange"),
        GroupKind("", "ResourceQuota"),
        GroupKind("autoscaling", "HorizontalPodAutoscaler"),
        GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler"),
        GroupKind("policy", "PodDisruptionBudget"),
    }
)
"""Kinds that limit what others do."""
_REASON: Final = 160


class RuleError(ValueError):
    """A rule that can't be meant so; *field* says which part of it."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Rule:
    """How to tell the health of one kind."""

    kind: GroupKind
    expressions: Mapping[HealthStatus, str]
    programs: Mapping[HealthStatus, Any] = field(compare=False, repr=False)

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Self:
        """Read a rule as a Sync writes it.

        Raises:
            RuleError: it says nothing, or an expression isn't CEL.
        """
        name, _, group = str(entry.get("kind") or "").partition(".")
        texts = {status: str(entry[key]) for key, status in _ASKED if entry.get(key)}
        if not name:
            raise RuleError("kind", "is required, as in Memcached.cache.example.com")
        if not texts:
            raise RuleError("current", "a rule needs at least one of current, inProgress and failed")
        keys = {status: key for key, status in _ASKED}
        programs = {status: _compiled(text, keys[status]) for status, text in texts.items()}
        return cls(GroupKind(group, name), texts, programs)

    def judge(self, manifest: Manifest) -> Health | None:
        """Return what the rule says of an object, None where it says nothing.

        Raises:
            RuleFault: an expression can't be answered for this object.
        """
        size = Size.of(manifest)
        for text in self.expressions.values():
            if steps(text, size) > MOST_STEPS:
                return Health(HealthStatus.IN_PROGRESS, f"the rule {text!r} would take too long for so large an object")
        for status, program in self.programs.items():
            if _holds(program, self.expressions[status], manifest):
                return Health(status, f"by the rule {self.expressions[status]!r}")
        if HealthStatus.CURRENT in self.programs:
            return Health(HealthStatus.IN_PROGRESS, f"not yet {self.expressions[HealthStatus.CURRENT]!r}")
        return None


def _compiled(text: str, key: str) -> Any:
    try:
        program, taken = _program(text), steps(text, USUAL)
    except UnreadableError as error:
        raise RuleError(key, f"it can't be told how long it takes: {error}") from None
    except ValueError as error:
        raise RuleError(key, str(error).splitlines()[0]) from None
    if taken > MOST_STEPS:
        message = f"would take too long: some {taken:.2g} steps for an object of usual size, {MOST_STEPS} are the most"
        raise RuleError(key, f"{message}; nest fewer loops, shorten what is repeated")
    return program


@lru_cache(maxsize=1024)
def _program(text: str) -> Any:
    return importlib.import_module("cel").compile(text)


class RuleFault(Exception):  # noqa: N818 - what is wrong with a rule, for one object
    """An expression that can't be answered for an object; prints as a clause."""


def _holds(program: Any, text: str, manifest: Manifest) -> bool:
    """Tell whether an expression is true of an object; what the object lacks makes it false.

    Raises:
        RuleFault: it can't be answered.
    """
    try:
        found = program.execute({"self": manifest})
    except LookupError:
        return False
    except Exception as error:  # noqa: BLE001 - whatever an expression stumbles over is its author's to mend
        raise RuleFault(f"the rule {text!r} can't be answered: {str(error)[:_REASON]}") from None
    if not isinstance(found, bool):
        raise RuleFault(f"the rule {text!r} is neither true nor false but {type(found).__name__}")
    return found


@dataclass(frozen=True, slots=True)
class HealthRules:
    """How a Sync wants health judged. *strict* asks for work done rather than accepted; *kinds* are the rules of modules."""

    strict: bool = False
    rules: Sequence[Rule] = ()
    kinds: Mapping[GroupKind, KindRule] = field(default_factory=dict)

    def judge(self, manifest: Manifest | None, *, expected: Expected = Expected.NOT_KNOWN, now: str = "") -> Health:
        """Return the health of a live object; *expected* and *now* are as for `health`."""
        return self._judged(manifest, strict=self.strict, expected=expected, now=now)

    def passes(
        self,
        manifest: Manifest | None,
        *,
        hook: bool = False,
        expected: Expected = Expected.NOT_KNOWN,
        now: str = "",
    ) -> Health:
        """Return the health that decides whether a later wave may start.

        A Job has to complete, unless it is suspended; a *hook* has to in any case. A claim needs no volume yet: it may be bound only when a pod of that
        later wave uses it, so waiting for it could last forever. A budget, a quota or an autoscaler
        only limits what others do: its verdict is about them, and they may come later. What has just been made gets a moment in which
        its controller may say its first word.
        """
        kind = GroupVersionKind.of(manifest).group_kind if manifest is not None else None
        found = self._judged(manifest, strict=self.strict or kind == _JOB, expected=expected, now=now)
        if kind in LIMITS and found.status is not HealthStatus.TERMINATING:
            return replace(found, status=HealthStatus.CURRENT)
        if hook and found.status is HealthStatus.SUSPENDED:
            return replace(found, status=HealthStatus.IN_PROGRESS, message=f"{found.message}; a hook has to complete")
        if kind == _CLAIM and found.status is HealthStatus.IN_PROGRESS:
            return replace(found, status=HealthStatus.CURRENT)
        return replace(found, status=HealthStatus.IN_PROGRESS) if is_young(found) else found

    def _judged(
        self, manifest: Manifest | None, *, strict: bool, expected: Expected = Expected.NOT_KNOWN, now: str = ""
    ) -> Health:
        if manifest is None:
            return health(manifest)
        kind = GroupVersionKind.of(manifest).group_kind
        general = health(manifest, strict=strict, expected=expected, now=now, rule=self.kinds.get(kind))
        if general.status is HealthStatus.TERMINATING:
            return general
        for rule in self.rules:
            if rule.kind != kind:
                continue
            try:
                found = rule.judge(manifest)
            except RuleFault as fault:
                return replace(general, fault=str(fault))
            if found is not None:
                return found
        return general


GENERAL: Final = HealthRules()
"""The general rules and nothing else: what most Syncs ask for, which share it."""
