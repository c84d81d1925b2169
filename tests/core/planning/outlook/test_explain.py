"""Why fields are what they are, by plain values: live object, manifest and the change of the next sync."""

import dataclasses

import pytest

from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.outlook.explain import ExplainFacts, FieldState, explained, outlook, steps_to
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.resources.sync import DriftPolicy, Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.merge import FieldChange, FieldConflict, Reason
from kubectl_reconcile.core.ssa.schema import UNKNOWN

REF = ObjectRef("", "ConfigMap", "shop", "web")
COLOUR, SIZE = FieldPath.fields("data", "colour"), FieldPath.fields("data", "size")


def owner(manager, *names, operation="Apply", time="2026-01-01T00:00:00Z", subresource="", root="data"):
    fields = {f"f:{root}": {f"f:{name}": {} for name in names}}
    entry = {"manager": manager, "operation": operation, "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1"}
    return {**entry, "fieldsV1": fields, **({"subresource": subresource} if subresource else {})}


def facts(*owners, wanted=None, changes=(), conflicts=(), sync=None, contended=(), unread="", **data):
    live = {
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "web", "namespace": "shop", "managedFields": list(owners)},
    }  # fmt: skip
    manifest = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": wanted} if wanted else None
    )
    op = Op.UPDATE if changes else Op.UNCHANGED
    change = Change(REF, op, fields=tuple(changes), conflicts=tuple(conflicts)) if wanted else None
    return ExplainFacts(live, UNKNOWN, sync or Sync("shop", "shop"), manifest, change, contended, unread)


def changed(path, reason, before=None, after=None):
    return FieldChange(path, "replace", before, after, reason)


OURS = owner("kubectl-reconcile", "colour")
STANDINGS = {
    "as asked for": (facts(OURS, wanted={"colour": "red"}, colour="red"), FieldState.SAME),
    "changed by hand": (
        facts(OURS, wanted={"colour": "red"}, changes=[changed(COLOUR, Reason.DRIFT)], colour="blue"), FieldState.DRIFT,
    ),
    "changed in Git": (
        facts(OURS, wanted={"colour": "red"}, changes=[changed(COLOUR, Reason.GIT)], colour="blue"), FieldState.GIT,
    ),
    "changed in both": (
        facts(OURS, wanted={"colour": "red"}, changes=[changed(COLOUR, Reason.BOTH)], colour="blue"), FieldState.BOTH,
    ),
    "never applied": (
        facts(wanted={"colour": "red"}, changes=[changed(COLOUR, Reason.ADOPT)], colour="blue"), FieldState.ADOPT,
    ),
    "somebody else's": (facts(owner("other", "colour", operation="Update"), colour="red"), FieldState.OTHER),
    "left by a rule": (
        facts(
            owner("hpa", "colour", operation="Update"), wanted={"colour": "red"},
            sync=Sync("shop", "shop", ignore=(IgnoreRule.parse(".data.colour"),)), colour="blue",
        ), FieldState.LEFT,
    ),
    "left to its owner": (
        facts(
            owner("hpa", "colour", operation="Update"), wanted={"colour": "red"},
            conflicts=[FieldConflict(COLOUR, "hpa", "blue", "red")], colour="blue",
        ), FieldState.LEFT,
    ),
    "left by a back-off": (
        facts(
            OURS, wanted={"colour": "red"}, changes=[changed(COLOUR, Reason.DRIFT)],
            contended=[f"{REF}: .data.colour: hpa overwrote it 10 times until 2026-01-01T00:00:00Z"], colour="blue",
        ), FieldState.LEFT,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), STANDINGS.values(), ids=STANDINGS)
def test_standing(given, expected):
    [field] = explained(given, IgnoreRule.parse(".data.colour"))
    assert (field.path, field.standing) == (COLOUR, expected)
    assert outlook(field, given)


def test_what_nobody_owns_is_a_default_and_shows_when_asked_for():
    given = facts(colour="red")
    assert explained(given) == []
    [field] = explained(given, IgnoreRule.parse(".data"))
    assert (field.path, field.standing) == (COLOUR, FieldState.DEFAULT)


def test_a_field_that_isnt_there_is_none():
    assert explained(facts(OURS, colour="red"), IgnoreRule.parse(".data.size")) == []


def test_what_differs_comes_first_and_status_only_when_asked_for():
    status = owner("controller", "ready", operation="Update", subresource="status", root="status")
    given = facts(
        owner("kubectl-reconcile", "colour", "size"), status, wanted={"colour": "red", "size": "1"},
        changes=[changed(SIZE, Reason.DRIFT)], colour="red", size="2",
    )  # fmt: skip
    assert [field.path for field in explained(given)] == [SIZE, COLOUR]
    assert [str(field.path) for field in explained(given, IgnoreRule.parse(".status"))] == [".status.ready"]


def test_all_owners_are_named_the_latest_first():
    late = owner("late", "colour", time="2026-02-01T00:00:00Z")
    [field] = explained(facts(OURS, late, wanted={"colour": "red"}, colour="red"))
    assert [one.manager for one in field.owners] == ["late", "kubectl-reconcile"]


LATER, EARLIER = "2026-01-01T00:00:09Z", "2025-12-31T23:59:59Z"
BY_OWNERS = {
    "what our apply owns is as it was applied": (
        facts(OURS, unread="why", colour="red"), FieldState.APPLIED, "as it was applied last",
    ),
    "what somebody wrote since isn't known": (
        facts(owner("kubectl-reconcile", "size"), owner("hand", "colour", operation="Update", time=LATER),
              unread="why", colour="red"), FieldState.UNKNOWN, "hand wrote after the last apply",
    ),
    "nor what was written in the second of the apply": (
        facts(owner("kubectl-reconcile", "size"), owner("hand", "colour", operation="Update"),
              unread="why", colour="red"), FieldState.UNKNOWN, "hand wrote after the last apply",
    ),
    "nor what was written at an unknown time": (
        facts(owner("kubectl-reconcile", "size"), owner("hand", "colour", operation="Update", time=""),
              unread="why", colour="red"), FieldState.UNKNOWN, "hand wrote after the last apply",
    ),
    "what somebody wrote before wasn't applied from here": (
        facts(owner("kubectl-reconcile", "size"), owner("hand", "colour", operation="Update", time=EARLIER),
              unread="why", colour="red"), FieldState.OTHER, "the last apply didn't mention it",
    ),
    "nothing is known without an apply": (
        facts(owner("hand", "colour", operation="Update", time=EARLIER), unread="why", colour="red"),
        FieldState.UNKNOWN, "nothing on the object says when it was applied",
    ),
    "a rule of the Sync holds all the same": (
        facts(owner("kubectl-reconcile", "size"), owner("hpa", "colour", operation="Update", time=LATER),
              unread="why", sync=Sync("shop", "shop", ignore=(IgnoreRule.parse(".data.colour"),)), colour="red"),
        FieldState.LEFT, "spec.ignore has .data.colour",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "standing", "why"), BY_OWNERS.values(), ids=BY_OWNERS)
def test_without_files_the_owners_tell_what_they_can(given, standing, why):
    [field] = explained(given, IgnoreRule.parse(".data.colour"))
    assert field.standing is standing
    said = f"{field.rule}; {outlook(field, given)}"
    assert why in said
    assert "no drift" not in said


def test_what_is_to_be_deleted_is_said_to_go():
    given = facts(OURS, colour="red")
    given = dataclasses.replace(given, change=Change(REF, Op.DELETE))
    assert "the next sync deletes the object" in outlook(explained(given)[0], given)


POLICIES = {
    "put back": (Sync("shop", "shop"), "the next sync puts it back"),
    "suspended": (Sync("shop", "shop", suspend=True), "suspended"),
    "reported": (Sync("shop", "shop", drift=DriftPolicy.REPORT), "spec.drift is Report"),
}


@pytest.mark.parametrize(("sync", "expected"), POLICIES.values(), ids=POLICIES)
def test_what_comes_of_drift_depends_on_the_sync(sync, expected):
    given = facts(OURS, wanted={"colour": "red"}, changes=[changed(COLOUR, Reason.DRIFT)], sync=sync, colour="blue")
    assert expected in outlook(explained(given)[0], given)


def test_unreadable_owners_hide_nothing_else():
    given = facts({"manager": "odd", "operation": "Apply"}, wanted={"colour": "red"}, colour="red")
    [field] = explained(given)
    assert (field.path, field.owners, field.standing) == (COLOUR, (), FieldState.SAME)


def test_steps_lead_as_far_as_a_manifest_states():
    manifest = {"data": {"a.b": "1"}}
    assert steps_to(FieldPath.fields("data", "a.b"), manifest, UNKNOWN) == ("data", "a.b")
    assert steps_to(FieldPath.fields("data", "nothing"), manifest, UNKNOWN) == ("data",)
