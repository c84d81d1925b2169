"""New revisions that wait for a person: what is held, what lets it through, and what never waits."""

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.apply.results import report_of
from kubectl_reconcile.core.planning.hold import NEW_REVISION
from kubectl_reconcile.core.resources.source import GitSpec, SourceSpec
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.core.resources.sync import ApprovalPolicy
from tests.core.planning.services import SHOP, live, plan, service

ASKING = replace(SHOP, source=SourceSpec(GitSpec("https://g/x")), approval=ApprovalPolicy.ALWAYS)


def sized(text):
    return {**service(), "spec": {"type": text}}


def held(made):
    return [change.ref.name for change in made.changes if change.gate.held]


def test_all_that_a_new_revision_changes_is_held_and_its_approval_lets_it_through():
    made = plan([sized("a"), service("new")], [live(sized("b")), live(service("gone"))], sync=ASKING)
    assert (sorted(held(made)), list(made.waves())) == (["gone", "new", "web"], [])
    assert [hold.reason for hold in made.holds] == [NEW_REVISION]
    report = report_of(made, ())
    assert report.reason is ConditionReason.HELD
    assert report.message.startswith(f"revision c0ffee, which changes 3 objects, waits for approval {made.approval}: ")
    approved = replace(ASKING, approved_plan=made.approval)
    again = plan([sized("a"), service("new")], [live(sized("c"))], sync=approved)
    assert (held(again), again.holds) == ([], ())


NEVER_HELD = {
    "where nobody asks for it": {"sync": replace(ASKING, approval=ApprovalPolicy.NEVER)},
    "where it was applied before": {"applied": True},
    "where a person applies files": {"sync": replace(ASKING, source=None)},
    "approved among others": {},
}


@pytest.mark.parametrize("more", NEVER_HELD.values(), ids=NEVER_HELD)
def test_nothing_is_held(more):
    known = plan([sized("a")], [live(sized("b"))], sync=ASKING).approval
    sync = replace(ASKING, approved_plan=f"{'0' * 16},{known}") if not more else ASKING
    assert held(plan([sized("a")], [live(sized("b"))], **{"sync": sync, **more})) == []


def test_the_approval_of_another_revision_is_none():
    other = replace(ASKING, approved_plan="0" * 16)
    assert held(plan([sized("a")], [live(sized("b"))], sync=other)) == ["web"]


def test_a_revision_that_changes_nothing_needs_nobody():
    assert plan([service()], [live(service())], sync=ASKING).holds == ()
