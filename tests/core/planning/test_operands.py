"""Modules that look at pods of their own: what follows once those run, and what is left to others where they can't be reached."""

from __future__ import annotations

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation, module
from kubectl_reconcile.core.module.outcome import Action, Outcome
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef, Severity
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.outlook.simulation import passes
from kubectl_reconcile.core.planning.planner import build_children
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import known

NOW = "2026-11-20T12:00:00Z"


@module(api="example.com/v1", kind="Choir", owns=["v1/Pod"])
class Choir:
    """A choir: a voice is invited, gets a pod, sings; then the next. Whoever sings is known only by listening."""

    async def observe(self, _cr, _io):
        """Listen."""
        return {"invited": 0, "singing": 0}

    async def act(self, _cr, _action, _io):
        """Invite."""
        return ""

    def reconcile(self, cr, _owned, facts, _ctx):
        """Invite one voice when all that were invited sing."""
        invited, singing = facts["invited"], facts["singing"]
        pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"voice-{at}"}} for at in range(invited)]
        again = Action("invite", "invite", f"invite voice {invited}", repeats=True)
        due = (again,) if singing == invited < cr["spec"]["voices"] else ()
        return Outcome(tuple(pods), status={"singing": singing}, actions=due)

    def predict(self, _cr, facts, _action):
        """One more is invited."""
        return {**facts, "invited": facts["invited"] + 1}

    def foresee(self, _cr, owned, facts):
        """Whoever has a pod sings."""
        return {**facts, "singing": len(owned.of("Pod"))}


POD, CHOIR = GroupVersionKind.parse("v1", "Pod"), GroupVersionKind.parse("example.com/v1", "Choir")
CR = {
    "apiVersion": "example.com/v1",
    "kind": "Choir",
    "metadata": {"name": "c", "namespace": "shop", "uid": "u-1", "generation": 1, "resourceVersion": "1"},
    "spec": {"voices": 3},
}
KINDS = {
    POD: Kind(POD, "pods", namespaced=True, schema=UNKNOWN),
    CHOIR: Kind(CHOIR, "choirs", namespaced=True, schema=UNKNOWN, custom=True, has_status=True),
}


def foresee(seen):
    inputs = known(
        sync=Sync(name="", namespace="shop"),
        revision=Revision("", "", {}),
        desired=(),
        live=Objects([CR]),
        kinds=KINDS,
        modules={CHOIR: Choir},
        now=NOW,
        grouped=False,
        observed={ObjectRef.of(CR): seen},
    )

    def build(inputs):
        return build_children(inputs, inputs.live.stored(ObjectRef.of(CR)).manifest())

    first = build(inputs)
    return [first, *passes(inputs, first, build)]


def steps(plan):
    """What a pass does; of what is there nobody knows the schema here, so nothing is sure."""
    return [change.action.key if change.action else change.ref.name for change in plan.changes if not change.unsure]


def way(plans):
    return [done for plan in plans if (done := steps(plan))]


WAY = [step for at in range(3) for step in (["invite"], [f"voice-{at}"])]


def test_each_pass_goes_by_what_the_pods_of_the_one_before_say():
    assert way(foresee(Observation({"invited": 0, "singing": 0}))) == WAY


def test_what_is_planned_on_facts_of_others_is_left_to_them_and_shown_all_the_same():
    seen = Observation({"invited": 1, "singing": 0}, as_of="2026-11-20T11:59:18Z", unreached="no right to reach them")
    first, *later = foresee(seen)
    assert steps(first) == ["voice-0"]
    assert not any(change.writes for change in first.changes)
    assert "the daemon" in first.changes[0].gate.waits
    assert first.outcomes.statuses == ()
    (told,) = first.problems
    assert told.severity is Severity.WARNING
    assert "its pods, as the daemon observed them 42 s ago: no right to reach them" in str(told)
    assert way(later) == WAY[2:]


def test_nothing_follows_where_nobody_answers():
    assert way(foresee(Observation(error="nobody answers"))) == []
