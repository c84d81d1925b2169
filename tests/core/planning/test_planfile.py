"""Plan files, on plain values: what is carried out as it was shown, and what is refused because something moved."""

import json

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.module.api import Action, Observation
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Nested, Op, Outcomes, Plan, fingerprint
from kubectl_reconcile.core.planning.planfile import PlanFile, PlanFileError, PlanMoved, fingerprints
from tests.core.planning.changes import a_change

SHOP = ObjectRef("reconcile.dev", "Sync", "shop", "web")
WEB = ObjectRef("apps", "Deployment", "shop", "web")
DATA = ObjectRef("", "ConfigMap", "shop", "data")
BAR = ObjectRef("sweets.example.com", "Candy", "shop", "bar")
REVISION = "c0ffee0123456789" + "0" * 24
LATER = "facade0123456789" + "0" * 24


def body(ref, **content):
    return {"apiVersion": f"{ref.group}/v1".lstrip("/"), "kind": ref.kind, "metadata": {"name": ref.name}, **content}


def updated(ref, *, to=2, **rest):
    return a_change(ref, Op.UPDATE, before=body(ref, size=1), intent=body(ref, size=to), **rest)


def acting(key):
    return a_change(BAR, Op.ACT, action=Action(key, "make", "make a bar"))


def a_plan(*changes, revision=REVISION, sync=SHOP):
    return Plan(sync, revision, changes, confirmed=True)


def entry(change):
    """A change as ``diff -o json`` writes it, as far as plan files go."""
    shown = {"object": change.ref._asdict(), "op": change.op.value, "fingerprint": fingerprint(change)}
    return shown | ({} if change.action is None else {"action": {"key": change.action.key}})


def tree_of(made):
    return {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Plan",
        "sync": {"namespace": made.sync.namespace, "name": made.sync.name},
        "revision": made.revision,
        "hash": made.hash,
        "confirmed": made.confirmed,
        "changes": [entry(change) for change in made.changes if not change.is_quiet],
    }


def read(tree):
    return PlanFile.parse(json.dumps(tree).encode())


def kept(*changes):
    """The file of a plan, looked at and kept."""
    return read(tree_of(a_plan(*changes)))


EVERYTHING = (
    updated(WEB),
    a_change(DATA, Op.CREATE, intent=body(DATA)),
    acting("make-1"),
    acting("make-2"),
    a_change(DATA._replace(name="gone"), Op.DELETE, before=body(DATA), held=True),
    a_change(DATA._replace(name="stuck"), Op.UNCHANGED, blocked="its file can't be read"),
    a_change(DATA._replace(name="quiet"), Op.UNCHANGED),
)


def test_the_same_plan_is_carried_out():
    file = kept(*EVERYTHING)
    assert (file.sync, file.revision, file.confirmed) == (SHOP, REVISION, True)
    file.check(a_plan(*EVERYTHING))


def test_a_plan_that_the_server_has_not_tried_says_so():
    assert read({**tree_of(a_plan()), "confirmed": False}).confirmed is False


def test_what_needs_nothing_is_no_part_of_a_plan_file_and_what_is_blocked_is():
    shown = {(ref.name, what) for ref, what in fingerprints(a_plan(*EVERYTHING))}
    assert shown == {
        ("web", "update"),
        ("data", "create"),
        ("bar", "act:make-1"),
        ("bar", "act:make-2"),
        ("gone", "delete"),
        ("stuck", "unchanged"),
    }


WEB_TEXT, DATA_TEXT, BAR_TEXT = "Deployment.apps shop/web", "ConfigMap shop/data", "Candy.sweets.example.com shop/bar"
MOVED = {
    "the source moved": (
        [updated(WEB)],
        a_plan(updated(WEB), revision=LATER),
        ["the source is at facade0123456789, the plan was made at c0ffee0123456789"],
    ),
    "an object changed since": ([updated(WEB)], a_plan(updated(WEB, to=3)), [f"{WEB_TEXT} has changed since"]),
    "an object is as it should be by now": ([updated(WEB)], a_plan(), [f"{WEB_TEXT} needs no change any more"]),
    "an object would change too": ([], a_plan(updated(WEB)), [f"{WEB_TEXT} would be updated too"]),
    "an object is gone and would be made": (
        [updated(WEB)],
        a_plan(a_change(WEB, Op.CREATE)),
        [f"{WEB_TEXT} would be created, not updated"],
    ),
    "an object would be recreated": (
        [updated(WEB)],
        a_plan(a_change(WEB, Op.REPLACE)),
        [f"{WEB_TEXT} would be replaced, not updated"],
    ),
    "an object would go": (
        [a_change(DATA, Op.CREATE)],
        a_plan(a_change(DATA, Op.DELETE)),
        [f"{DATA_TEXT} would be deleted, not created"],
    ),
    "an object can't be touched any more": (
        [updated(WEB)],
        a_plan(a_change(WEB, Op.UNCHANGED, blocked="it belongs to others")),
        [f"{WEB_TEXT} would be left alone, not updated"],
    ),
    "another action comes": (
        [acting("make-1")],
        a_plan(acting("make-2")),
        [f"{BAR_TEXT} would be acted on (make-2), not acted on (make-1)"],
    ),
    "another action comes as well": (
        [acting("make-1")],
        a_plan(acting("make-1"), acting("make-2")),
        [f"{BAR_TEXT} would be acted on (make-2) too"],
    ),
    "an object that is acted on would change as well": (
        [acting("make-1")],
        a_plan(updated(BAR), acting("make-1")),
        [f"{BAR_TEXT} would be updated too"],
    ),
    "one of two actions is done by now": (
        [acting("make-1"), acting("make-2")],
        a_plan(acting("make-2")),
        [f"{BAR_TEXT} wouldn't be acted on (make-1) any more"],
    ),
    "two of three things are done by now": (
        [acting("make-1"), updated(BAR), acting("make-2")],
        a_plan(acting("make-2")),
        [f"{BAR_TEXT} wouldn't be acted on (make-1) and updated any more"],
    ),
    "two things happen that were not shown": (
        [],
        a_plan(updated(BAR), acting("make-2")),
        [f"{BAR_TEXT} would be updated and acted on (make-2) too"],
    ),
    "two things happen instead of two others": (
        [a_change(BAR, Op.CREATE), acting("make-1")],
        a_plan(updated(BAR), acting("make-2")),
        [f"{BAR_TEXT} would be updated and acted on (make-2), not created and acted on (make-1)"],
    ),
    "one thing moved and another changed": (
        [acting("make-1"), updated(BAR)],
        a_plan(updated(BAR, to=3)),
        [f"{BAR_TEXT} wouldn't be acted on (make-1) any more", f"{BAR_TEXT} has changed since"],
    ),
    "all at once": (
        [updated(WEB)],
        a_plan(a_change(DATA, Op.CREATE), revision=LATER),
        [
            "the source is at facade0123456789, the plan was made at c0ffee0123456789",
            f"{WEB_TEXT} needs no change any more",
            f"{DATA_TEXT} would be created too",
        ],
    ),
}


@pytest.mark.parametrize(("shown", "now", "moved"), MOVED.values(), ids=MOVED)
def test_a_plan_that_moved_is_refused_and_each_difference_named(shown, now, moved):
    with pytest.raises(PlanMoved) as refused:
        kept(*shown).check(now)
    assert refused.value.moved == moved
    assert str(refused.value) == f"the plan is no longer valid, nothing was written: {'; '.join(moved)}"
    assert refused.value.hint == "to see the new plan: kubectl reconcile diff"


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, " (and 1 more)"), (8, " (and 3 more)")])
def test_five_differences_are_named_and_the_others_counted(count, more):
    with pytest.raises(PlanMoved) as refused:
        kept().check(a_plan(*(updated(DATA._replace(name=f"data-{at}")) for at in range(count))))
    assert len(refused.value.moved) == count
    assert str(refused.value).endswith(f"shop/data-4 would be updated too{more}")


def test_a_hash_that_was_edited_is_noticed():
    with pytest.raises(PlanMoved) as refused:
        replace(kept(updated(WEB)), hash="0" * 64).check(a_plan(updated(WEB)))
    assert refused.value.moved == ["the file was edited: its hash isn't that of its changes"]


def test_a_fingerprint_that_was_edited_is_noticed():
    tree = tree_of(a_plan(updated(WEB)))
    tree["changes"][0]["fingerprint"] = "0" * 64
    with pytest.raises(PlanMoved) as refused:
        read(tree).check(a_plan(updated(WEB)))
    assert refused.value.moved == [f"{WEB_TEXT} has changed since"]


def test_a_plan_of_another_revision_is_not_called_edited():
    with pytest.raises(PlanMoved) as refused:
        kept().check(a_plan(revision=LATER))
    assert refused.value.moved == ["the source is at facade0123456789, the plan was made at c0ffee0123456789"]


def test_what_a_later_program_does_to_an_object_is_named_in_its_own_word():
    tree = tree_of(a_plan(updated(WEB)))
    tree["changes"][0]["op"] = "polish"
    with pytest.raises(PlanMoved) as refused:
        read(tree).check(a_plan(updated(WEB)))
    assert refused.value.moved == [f"{WEB_TEXT} would be updated, not polish"]


GOOD = tree_of(a_plan(updated(WEB)))
MAKE_IT = "create it with: kubectl reconcile diff … -o json > plan.json"
REFUSED = {
    "no JSON": (b"{", "it isn't JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    "no object": (b"[]", "it isn't a Plan"),
    "another kind": (json.dumps({**GOOD, "kind": "Deployment"}).encode(), "it isn't a Plan"),
    "another version": (
        json.dumps({**GOOD, "apiVersion": "reconcile.dev/v9"}).encode(),
        "it is a Plan of reconcile.dev/v9, this program reads reconcile.dev/v1alpha1",
    ),
    "a Sync without a namespace": (
        json.dumps({**GOOD, "sync": {"name": "web"}}).encode(),
        "its field 'namespace' is missing",
    ),
    "no revision": (
        json.dumps({name: value for name, value in GOOD.items() if name != "revision"}).encode(),
        "its field 'revision' is missing",
    ),
    "no hash": (
        json.dumps({name: value for name, value in GOOD.items() if name != "hash"}).encode(),
        "its field 'hash' is missing",
    ),
    "nothing of whether the server tried it": (
        json.dumps({name: value for name, value in GOOD.items() if name != "confirmed"}).encode(),
        "its field 'confirmed' is missing",
    ),
    "no changes": (
        json.dumps({name: value for name, value in GOOD.items() if name != "changes"}).encode(),
        "its field 'changes' is missing",
    ),
    "a change of nothing": (
        json.dumps({**GOOD, "changes": [{"op": "update", "fingerprint": ""}]}).encode(),
        "its field 'object' is missing",
    ),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_plan_file_is_refused_with_what_to_do(data, message):
    with pytest.raises(PlanFileError) as refused:
        PlanFile.parse(data)
    assert (str(refused.value), refused.value.hint) == (message, MAKE_IT)


@pytest.mark.parametrize("sync", [None, {}])
def test_a_plan_that_belongs_to_no_sync_can_not_be_carried_out(sync):
    with pytest.raises(PlanFileError) as refused:
        read({**GOOD, "sync": sync})
    assert str(refused.value) == "it belongs to no Sync, so nothing would record its objects"
    assert refused.value.hint == "create it with diff … --name NAME -o json"


ODD_CHANGES = {
    "a change that is a word": ["update"],
    "a change that is a list": [[]],
    "changes that are a word": "update",
    "changes that are a number": 3,
    "an object that is a word": [{"object": "web", "op": "update", "fingerprint": ""}],
    "an action that is a word": [{**GOOD["changes"][0], "action": "make"}],
}


@pytest.mark.parametrize("changes", ODD_CHANGES.values(), ids=ODD_CHANGES)
def test_changes_that_nobody_could_have_written_are_refused(changes):
    with pytest.raises(PlanFileError, match=r"^one of its changes isn't in the format of this program$"):
        read({**GOOD, "changes": changes})


@pytest.mark.parametrize("sync", ["shop/web", ["shop"], 3])
def test_a_sync_that_nobody_could_have_written_is_refused(sync):
    with pytest.raises(PlanFileError, match=r"^its field 'sync' isn't in the format of this program$"):
        read({**GOOD, "sync": sync})


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(PlanFileError, match="it isn't JSON"):
        PlanFile.parse(b"\xff\xfe\x00")


# --- what a fingerprint heeds ---


def before(**more):
    """The update of a Deployment, by what it was before."""
    was = body(WEB, size=1)
    metadata = {**was["metadata"], "labels": {"app": "web"}, "uid": "u", **more.pop("metadata", {})}
    return a_change(WEB, Op.UPDATE, before={**was, **more, "metadata": metadata}, intent=body(WEB, size=2))


UNHEEDED = {
    "its version": {"metadata": {"resourceVersion": "8"}},
    "its generation": {"metadata": {"generation": 4}},
    "its owners": {"metadata": {"managedFields": [{"manager": "x"}]}},
    "its status": {"status": {"replicas": 1}},
}


@pytest.mark.parametrize("more", UNHEEDED.values(), ids=UNHEEDED)
def test_a_change_is_the_same_whatever_the_server_keeps_of_the_object(more):
    assert fingerprint(before(**more)) == fingerprint(before())


HEEDED = {
    "a field of the object": {"size": 3},
    "a label": {"metadata": {"labels": {"app": "api"}}},
    "that it is another object of that name": {"metadata": {"uid": "another"}},
}


@pytest.mark.parametrize("more", HEEDED.values(), ids=HEEDED)
def test_a_change_is_another_one_by(more):
    assert fingerprint(before(**more)) != fingerprint(before())


def test_a_change_is_the_same_in_whatever_order_its_fields_are_written():
    there, intent = body(WEB, a=1, b=2), body(WEB, a=2, b=2)
    backwards = [dict(reversed(each.items())) for each in (there, intent)]
    one = a_change(WEB, Op.UPDATE, before=there, intent=intent)
    other = a_change(WEB, Op.UPDATE, before=backwards[0], intent=backwards[1])
    assert fingerprint(one) == fingerprint(other)


# --- facts that somebody else found out ----------------------------------------------------------------


def test_a_plan_made_on_noted_facts_is_refused_once_these_have_moved():
    seen, made = {"members": 3}, a_plan(updated(WEB))
    entries = [
        {"object": BAR._asdict(), "facts": seen, "error": "", "asOf": "2026-11-20T12:00:00Z"},
        {"object": DATA._asdict(), "facts": {"other": 1}, "error": ""},
    ]
    file = PlanFile.parse(json.dumps({**tree_of(made), "observed": entries}).encode())

    def now(facts, as_of="2026-11-20T12:05:00Z"):
        return replace(made, outcomes=Outcomes(observed={BAR: Observation(facts, as_of=as_of)}))

    file.check(now(seen))
    file.check(now(seen, as_of=""))  # seen with our own eyes, and it is the same
    for moved in (now({"members": 2}), made):
        with pytest.raises(PlanMoved, match=r"Candy.* shop/bar: the state of its pods has changed since"):
            file.check(moved)
    with pytest.raises(PlanFileError, match="observed"):
        PlanFile.parse(json.dumps({**tree_of(made), "observed": [3]}).encode())


SECRET = ObjectRef("", "Secret", "shop", "login")


def secret(password, before="b2xk"):
    """The update of a Secret to a password, by the one before."""
    tree = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
    }
    return a_change(
        SECRET,
        Op.UPDATE,
        before={**tree, "data": {"password": before}},
        intent={**tree, "data": {"password": password}},
    )


def test_no_value_of_a_secret_goes_into_a_fingerprint():
    assert (
        fingerprint(secret("bmV3")) == fingerprint(secret("b3RoZXI=")) == fingerprint(secret("bmV3", before="b2xkZXI="))
    )


@pytest.mark.parametrize("more", [{"resourceVersion": "8"}, {"uid": "another"}], ids=str)
def test_a_secret_that_was_written_meanwhile_is_another_one(more):
    change = secret("bmV3")
    written = {**change.before, "metadata": {**change.before["metadata"], **more}}
    assert fingerprint(replace(change, before=written)) != fingerprint(change)


def test_a_secret_that_is_made_is_another_change_than_one_that_is_updated():
    change = secret("bmV3")
    made = replace(change, before=None)
    nameless = replace(change, before={**change.before, "metadata": {}})
    assert len({fingerprint(each) for each in (change, made, nameless)}) == 3


def test_a_secret_with_another_key_is_another_change():
    change = secret("bmV3")
    more = {**change.intent, "data": {"password": "bmV3", "user": "YQ=="}}
    assert fingerprint(replace(change, intent=more)) != fingerprint(change)


def test_what_is_told_of_a_secret_hides_the_values_that_it_has_and_that_it_had():
    assert secret("bmV3").told("not b2xk but bmV3") == "not *** but ***"


# --- nested plans -------------------------------------------------------------------------------------------------------

API = ObjectRef("reconcile.dev", "Sync", "shop", "api")


def nested_entry(each):
    shown = [entry(change) for change in each.plan.changes] if each.plan else []
    plan = {"plan": {"revision": each.plan.revision, "changes": shown}} if each.plan else {}
    names = [{"namespace": one.namespace, "name": one.name} for one in (*each.above, each.sync)]
    return {"sync": names[-1], "above": names[:-1], "op": each.op.value, **plan}


def a_nested_plan(*changes, op=Op.UPDATE, revision=REVISION):
    return Nested(API, op, plan=Plan(API, revision, changes))


def with_nested(*nested):
    made = replace(a_plan(updated(DATA)), nested=nested)
    return made, read({**tree_of(made), "nested": list(map(nested_entry, nested))})


BELOW = {
    "an object changes otherwise": (a_nested_plan(updated(WEB, to=3)), f"Sync shop/api: {WEB} has changed since"),
    "an object needs no change any more": (a_nested_plan(), f"Sync shop/api: {WEB} needs no change any more"),
    "its repository has moved": (
        a_nested_plan(updated(WEB), revision=LATER),
        "Sync shop/api would be at facade0123456789, not at c0ffee0123456789",
    ),
    "it would be new": (a_nested_plan(updated(WEB), op=Op.CREATE), "Sync shop/api would be created, not updated"),
}


@pytest.mark.parametrize(("now", "expected"), BELOW.values(), ids=BELOW)
def test_what_moved_in_a_nested_plan_is_named(now, expected):
    _, file = with_nested(a_nested_plan(updated(WEB)))
    with pytest.raises(PlanMoved) as refused:
        file.check(replace(a_plan(updated(DATA)), nested=(now,)))
    assert expected in refused.value.moved


def test_nested_plans_that_come_and_go_are_named():
    made, file = with_nested(a_nested_plan(updated(WEB)))
    with pytest.raises(PlanMoved) as refused:
        file.check(replace(made, nested=()))
    assert refused.value.moved == ["Sync shop/api no longer changes with it"]
    other = replace(made.nested[0], above=(SHOP,))
    with pytest.raises(PlanMoved) as refused:
        file.check(replace(made, nested=(*made.nested, other)))
    assert refused.value.moved == ["Sync shop/api changes with it, too"]


def test_a_plan_with_the_same_nested_plans_goes_ahead():
    made, file = with_nested(a_nested_plan(updated(WEB)), Nested(SHOP, Op.DELETE, not_planned="its members stay"))
    file.check(made)


def test_a_file_whose_nested_plans_were_edited_is_refused():
    made = replace(a_plan(updated(DATA)), nested=(a_nested_plan(updated(WEB)),))
    tree = {**tree_of(made), "nested": []}
    with pytest.raises(PlanMoved, match="its hash isn't that of its changes"):
        read(tree).check(a_plan(updated(DATA)))


@pytest.mark.parametrize("nested", [7, [7], [{"sync": 1, "above": []}], [{"sync": {}, "above": []}]])
def test_nested_plans_in_another_format_are_no_plan(nested):
    with pytest.raises(PlanFileError):
        read({**tree_of(a_plan(updated(DATA))), "nested": nested})
