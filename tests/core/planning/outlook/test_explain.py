"""Why fields are what they are, by plain values: live object, manifest and the change of the next sync."""

import pytest
from msgspec import structs

from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.outlook.explain import (
    ExplainedField,
    ExplainFacts,
    FieldState,
    as_written,
    explained,
    outlook,
    steps_to,
    was_applied,
)
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.resources.sync import DriftPolicy, Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.merge import FieldChange, FieldConflict, Reason
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.core.ssa.typed import ABSENT

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
        facts(OURS, unread="why", colour="red"), FieldState.APPLIED, "the value that was applied last",
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
              unread="why", colour="red"), FieldState.OTHER, "the last apply didn't set it",
    ),
    "nothing is known without an apply": (
        facts(owner("hand", "colour", operation="Update", time=EARLIER), unread="why", colour="red"),
        FieldState.UNKNOWN, "the object doesn't say when it was applied",
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
    given = structs.replace(given, change=Change(REF, Op.DELETE))
    assert "the next sync deletes the object" in outlook(explained(given)[0], given)


POLICIES = {
    "put back": (Sync("shop", "shop"), "the next sync reverts it"),
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


# --- in whole sentences ---------------------------------------------------------------------------

FOLDER = Sync("shop", "shop", source=None)
OUTLOOKS = {
    FieldState.SAME: "no drift: it has the desired value",
    FieldState.GIT: "no drift: the files changed, and the next sync applies it",
    FieldState.BOTH: "drift, and the files changed too; the next sync applies the new value",
    FieldState.ADOPT: "it was never applied from here; the next sync takes it over",
    FieldState.DRIFT: "drift; the next sync reverts it",
    FieldState.OTHER: "no drift: it isn't in the files, so its owner decides",
    FieldState.DEFAULT: "no drift: it isn't in the files and nobody owns it; it is a default of the server",
}


def a_field(standing, rule=""):
    return ExplainedField(COLOUR, "blue", "red", standing, rule=rule)


@pytest.mark.parametrize(("standing", "sentence"), OUTLOOKS.items(), ids=OUTLOOKS)
def test_what_comes_of_a_field_is_one_sentence(standing, sentence):
    assert outlook(a_field(standing), facts(OURS, sync=FOLDER, colour="blue")) == sentence


def test_where_there_is_no_sync_files_are_of_git():
    given = structs.replace(facts(OURS, colour="blue"), sync=None)
    assert outlook(a_field(FieldState.GIT), given) == "no drift: Git changed, and the next sync applies it"
    assert outlook(a_field(FieldState.DRIFT), given) == "drift; the next sync reverts it"


def test_a_field_that_is_left_alone_says_by_which_rule():
    assert outlook(a_field(FieldState.LEFT, "spec.ignore has .a"), facts(OURS)) == "left alone: spec.ignore has .a"


UNREAD = {
    FieldState.APPLIED: "it has the value that was applied last; whether that is still the desired value isn't known: why",
    FieldState.OTHER: "the last apply didn't set it; whether it is desired now isn't known: why",
    FieldState.DEFAULT: "the last apply didn't set it, and nobody owns it; it is a default of the server",
    FieldState.UNKNOWN: "whether it is drift isn't known: why",
}


@pytest.mark.parametrize(("standing", "sentence"), UNREAD.items(), ids=UNREAD)
def test_what_isnt_known_is_said_with_the_reason(standing, sentence):
    assert outlook(a_field(standing), facts(OURS, unread="why")) == sentence


DRIFTS = {
    "suspended": (Sync("shop", "shop", suspend=True), "", "drift; it stays until the suspended Sync is resumed"),
    "only reported": (
        Sync("shop", "shop", drift=DriftPolicy.REPORT), "",
        "drift; spec.drift is Report, so it stays until somebody syncs, or Git changes the object",
    ),
    "only reported, and of a module": (Sync("shop", "shop", drift=DriftPolicy.REPORT), REF, "drift; the next sync reverts it"),
}  # fmt: skip


@pytest.mark.parametrize(("sync", "by", "sentence"), DRIFTS.values(), ids=DRIFTS)
def test_drift_that_stays_says_why(sync, by, sentence):
    given = facts(OURS, wanted={"colour": "red"}, sync=sync)
    if by:
        given = structs.replace(given, change=given.change.attributed(owner=by))
    assert outlook(a_field(FieldState.DRIFT), given) == sentence


def test_drift_of_an_object_of_no_plan_is_reverted():
    given = facts(OURS, sync=Sync("shop", "shop", drift=DriftPolicy.REPORT))
    assert outlook(a_field(FieldState.DRIFT), given) == "drift; the next sync reverts it"


def test_what_goes_with_its_object_is_said_and_drift_still_is_drift():
    given = structs.replace(facts(OURS), change=Change(REF, Op.DELETE))
    assert outlook(a_field(FieldState.SAME), given) == (
        "it has the value that was applied last; the next sync deletes the object, because no file has it any more"
    )
    assert outlook(a_field(FieldState.OTHER), given) == "no drift: it isn't in the files, so its owner decides"


# --- what is wanted -------------------------------------------------------------------------------


def test_a_status_in_a_file_is_nobodys_wish():
    given = facts(OURS, wanted={"colour": "red"}, colour="red")
    given = structs.replace(given, manifest={**given.manifest, "status": {"ready": True}})
    assert [field.path for field in explained(given)] == [COLOUR]
    assert explained(given, IgnoreRule.parse(".status.ready")) == []


def test_a_field_has_the_value_that_is_there_and_the_one_that_is_wanted():
    [field] = explained(facts(OURS, wanted={"colour": "red"}, colour="blue"))
    assert (field.live, field.wanted, field.change) == ("blue", "red", None)
    [alone] = explained(facts(OURS, colour="blue"))
    assert alone.wanted is ABSENT


def test_a_field_that_the_next_sync_takes_away_is_wanted_no_more():
    gone = FieldChange(COLOUR, "remove", "blue", None, Reason.GIT)
    [field] = explained(facts(OURS, wanted={"colour": "red"}, changes=[gone], colour="blue"))
    assert (field.wanted, field.change) == (ABSENT, gone)
    [later] = explained(
        facts(OURS, wanted={"colour": "red"}, changes=[changed(COLOUR, Reason.GIT, "blue", "red!")], colour="blue")
    )
    assert later.wanted == "red!"


def test_a_change_above_or_below_a_field_is_one_of_it():
    above = changed(FieldPath.fields("data"), Reason.GIT)
    fields = {
        str(field.path): field
        for field in explained(facts(OURS, wanted={"colour": "red"}, changes=[above], colour="blue"))
    }
    assert fields[".data.colour"].standing is FieldState.GIT
    assert fields[".data.colour"].wanted == "red"


def secret(given, **data):
    live = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": data}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, **given}
    return ExplainFacts(live, UNKNOWN, Sync("shop", "shop"), manifest)


def test_what_a_secret_has_as_text_is_wanted_as_the_server_holds_it():
    given = secret({"stringData": {"colour": "red"}, "data": {"size": "MQ=="}}, colour="cmVk", size="MQ==")
    assert {str(field.path): field.wanted for field in explained(given)} == {
        ".data.colour": "cmVk",
        ".data.size": "MQ==",
    }
    assert as_written(COLOUR, given.manifest) == FieldPath.fields("stringData", "colour")
    assert as_written(SIZE, given.manifest) == SIZE


def test_only_secrets_have_text_that_the_server_holds_otherwise():
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "stringData": {"colour": "red"}}
    assert as_written(COLOUR, other) == COLOUR
    assert as_written(COLOUR, {**other, "kind": "Secret", "apiVersion": "example.com/v1"}) == COLOUR
    assert as_written(FieldPath.fields("data"), {**other, "kind": "Secret"}) == FieldPath.fields("data")
    assert as_written(COLOUR, {**other, "kind": "Secret", "stringData": "odd"}) == COLOUR


def test_rules_and_policies_that_leave_a_field_are_named():
    by_rule = explained(STANDINGS["left by a rule"][0])
    by_policy = explained(STANDINGS["left to its owner"][0])
    by_back_off = explained(STANDINGS["left by a back-off"][0])
    assert [field.rule for field in (*by_rule, *by_policy, *by_back_off)] == [
        "spec.ignore has .data.colour",
        "the conflict policy is Yield, and hpa owns it",
        f"a back-off: {REF}: .data.colour: hpa overwrote it 10 times until 2026-01-01T00:00:00Z",
    ]


def test_what_was_applied_from_here_is_known_by_its_manager():
    assert was_applied(facts(OURS).live, None)
    assert was_applied(facts(owner("kubectl-reconcile-cache", "colour")).live, Sync("shop", "shop"))
    assert was_applied(facts(owner("team", "colour")).live, Sync("shop", "shop", field_manager="team"))
    assert not was_applied(facts(owner("team", "colour")).live, Sync("shop", "shop"))
    assert not was_applied(facts(owner("kubectl-reconcile", "colour", operation="Update")).live, None)
