"""What an object's silence says: whom it holds up, and for how long."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.health.cel_rules import HealthRules, Rule
from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.health.silence import Expected, expected_of
from kubectl_reconcile.core.health.summary import HealthTally, member_health
from kubectl_reconcile.core.objects import GroupKind, ObjectRef

WIDGET = GroupKind("example.com", "Widget")
CURRENT, IN_PROGRESS, UNKNOWN = HealthStatus.CURRENT, HealthStatus.IN_PROGRESS, HealthStatus.UNKNOWN

EXPECTATIONS = {
    "a kind without a status": (WIDGET, False, (), Expected.NEVER),
    "a kind with one": (WIDGET, True, (), Expected.POSSIBLE),
    "a kind of which another object has spoken": (WIDGET, True, (WIDGET,), Expected.SURE),
    "another kind has spoken": (WIDGET, True, (GroupKind("example.com", "Gadget"),), Expected.POSSIBLE),
    "one of Kubernetes' own": (GroupKind("networking.k8s.io", "Ingress"), True, (), Expected.NEVER),
    "one of Kubernetes' own, of which another has spoken": (
        GroupKind("", "ResourceQuota"), True, (GroupKind("", "ResourceQuota"),), Expected.NEVER,
    ),
    "a custom resource in a group that looks like Kubernetes' own": (
        GroupKind("x-k8s.io", "JobSet"), True, (), Expected.POSSIBLE,
    ),
    "a Sync, which may have no source": (GroupKind("reconcile.dev", "Sync"), True, (), Expected.NEVER),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "has_status", "spoken", "expected"), EXPECTATIONS.values(), ids=EXPECTATIONS)
def test_whether_a_status_is_to_be_expected(kind, has_status, spoken, expected):
    assert expected_of(kind, has_status=has_status, spoken=spoken) is expected


def widget(name="w", status=None, **spec):
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": metadata,
        "spec": spec,
        "status": status or {},
    }


def at(seconds):
    return (
        f"2026-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"
        if seconds >= 0
        else f"2025-12-31T23:59:{60 + seconds:02d}Z"
    )


AGES = {
    "just made": (0, IN_PROGRESS, CURRENT),
    "after two seconds": (2, IN_PROGRESS, CURRENT),
    "after three": (3, CURRENT, CURRENT),
    "after a minute": (60, UNKNOWN, UNKNOWN),
    "made a second from now, by a clock that is behind": (-1, IN_PROGRESS, CURRENT),
    "made long from now: the clock says nothing": (-30, CURRENT, CURRENT),
}


@pytest.mark.parametrize(("age", "wave", "member"), AGES.values(), ids=AGES)
def test_a_silent_object_holds_up_a_later_wave_for_a_moment_and_its_set_never(age, wave, member):
    rules, known = HealthRules(), {"expected": Expected.POSSIBLE, "now": at(age)}
    assert rules.passes(widget(), **known).status is wave
    assert member_health(rules, widget(), **known).status is member
    assert not member_health(rules, widget(), **known).status.holds_up


def test_what_is_sure_to_speak_holds_up_both():
    rules, known = HealthRules(), {"expected": Expected.SURE, "now": at(3600)}
    assert rules.passes(widget(), **known).status is IN_PROGRESS
    assert member_health(rules, widget(), **known).status is IN_PROGRESS


def test_a_rule_of_the_user_speaks_for_the_silent():
    rules = HealthRules(rules=(Rule.parse({"kind": "Widget.example.com", "current": "self.spec.size == 3"}),))
    found = rules.judge(widget(size=3), expected=Expected.POSSIBLE, now=at(3600))
    assert (found.status, found.is_silent) == (CURRENT, False)


def test_once_a_sibling_has_spoken_the_silent_are_waited_for():
    tally, now = HealthTally(), at(10)

    def note(name, status=None):
        expected = expected_of(WIDGET, has_status=True, spoken=tally.spoken)
        found = member_health(HealthRules(), widget(name, status), expected=expected, now=now)
        return tally.note(ObjectRef("example.com", "Widget", "shop", name), found, now)

    for name in ("a", "b", "c"):
        note(name)
    assert tally.counts == {CURRENT: 3}
    note("a", {"phase": "Ready"})
    assert tally.note_spoken(WIDGET, now)
    assert not tally.note_spoken(WIDGET, now)
    assert tally.summary().counts == {CURRENT: 1, IN_PROGRESS: 2}
    assert "but has on others of its kind" in tally.summary().sentence
    note("b", {"phase": "Ready"})
    tally.note(ObjectRef("example.com", "Widget", "shop", "c"), None, now)
    assert tally.summary().counts == {CURRENT: 2}
    assert not tally.note_spoken(GroupKind("example.com", "Gadget"), now), "nobody of that kind waits"
