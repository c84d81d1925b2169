"""What a Sync adds to the rules of health: expressions in CEL for kinds that need their own, and how strict to be.

Vocabulary: an expression speaks of the object as ``self``, as in a CRD's validation rules. Of a rule's
expressions ``failed`` is asked first, then ``inProgress``, then ``current``; where none is true the object
is in progress if there is a ``current`` to become true, else the general rules decide. A field that an
expression names and the object lacks makes the expression false, since controllers fill in
their status late. One that can't be answered for another reason, as where it compares a text with a number, is a *fault*: the
general rules decide then, and the verdict says so. An expression that might take long for an object isn't asked of it, see ``cel_cost``: the object
counts as in progress, and its verdict says so.

Pure: expressions can't do anything but look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.health.cel_cost import Size
from kubectl_reconcile.core.health.cel_tests import CelError, CelFault, CelTest
from kubectl_reconcile.core.health.health import AWAITING, has_status, why
from kubectl_reconcile.core.health.judge import Expected, Health, HealthStatus, health
from kubectl_reconcile.core.health.kind_table import KindRule
from kubectl_reconcile.core.health.silence import is_young
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, condition_of

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
    tests: Mapping[HealthStatus, CelTest] = field(compare=False, repr=False)

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
        tests = {status: _asked(text, keys[status]) for status, text in texts.items()}
        return cls(GroupKind(group, name), texts, tests)

    def judge(self, manifest: Manifest) -> Health | None:
        """Return what the rule says of an object, None where it says nothing.

        Raises:
            CelFault: an expression can't be answered for this object.
        """
        size = Size.of(manifest)
        for test in self.tests.values():
            if test.takes_too_long(size):
                return Health(
                    HealthStatus.IN_PROGRESS, f"the rule {test.text!r} would take too long for an object of this size"
                )
        for status, test in self.tests.items():
            if test.holds(manifest):
                return Health(status, f"by the rule {test.text!r}")
        if HealthStatus.CURRENT in self.tests:
            return Health(HealthStatus.IN_PROGRESS, f"not yet {self.expressions[HealthStatus.CURRENT]!r}")
        return None


def _asked(text: str, key: str) -> CelTest:
    try:
        return CelTest.parse(text, "self")
    except CelError as error:
        raise RuleError(key, str(error)) from None


class HealthRules(Struct, frozen=True):
    """How a Sync wants health judged. *strict* asks for work done rather than accepted; *kinds* are the rules of modules."""

    strict: bool = False
    rules: Sequence[Rule] = ()
    kinds: Mapping[GroupKind, KindRule] = msgspec.field(default_factory=dict)

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
            return replace(found, status=HealthStatus.IN_PROGRESS, message=f"{found.message}; a hook must complete")
        if kind == _CLAIM and found.status is HealthStatus.IN_PROGRESS:
            return replace(found, status=HealthStatus.CURRENT)
        return replace(found, status=HealthStatus.IN_PROGRESS) if is_young(found) else found

    def _judged(
        self, manifest: Manifest | None, *, strict: bool, expected: Expected = Expected.NOT_KNOWN, now: str = ""
    ) -> Health:
        if manifest is None:
            return health(manifest)
        return _with_what_is_awaited(manifest, self._of_object(manifest, strict=strict, expected=expected, now=now))

    def _of_object(self, manifest: Manifest, *, strict: bool, expected: Expected, now: str) -> Health:
        kind = GroupVersionKind.of(manifest).group_kind
        general = health(manifest, strict=strict, expected=expected, now=now, rule=self.kinds.get(kind))
        if general.status is HealthStatus.TERMINATING:
            return general
        for rule in self.rules:
            if rule.kind != kind:
                continue
            try:
                found = rule.judge(manifest)
            except CelFault as fault:
                return replace(general, fault=f"the rule {fault}")
            if found is not None:
                return found
        return general


def _with_what_is_awaited(manifest: Manifest, found: Health) -> Health:
    """Return the health of an object with what it waits for a person to approve, unless something is wrong with it."""
    awaited = condition_of(manifest, AWAITING)
    if found.status not in {HealthStatus.CURRENT, HealthStatus.IN_PROGRESS} or not has_status(awaited, "True"):
        return found
    return replace(found, message=why(awaited))


GENERAL: Final = HealthRules()
"""The general rules and nothing else: what most Syncs ask for, which share it."""
