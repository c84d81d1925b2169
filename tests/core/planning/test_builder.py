"""What members and children share while a plan is made: how a change is judged, what is told of it, and what it waits for."""

from collections import Counter

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import VariableUse
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef, Problem
from kubectl_reconcile.core.planning.builder import (
    OutcomesSoFar,
    PlanBuilder,
    Settled,
    Standing,
    in_order,
    merged,
    unreadable,
)
from kubectl_reconcile.core.planning.hold import Hold, Marked
from kubectl_reconcile.core.planning.order import Stage, key_of
from kubectl_reconcile.core.planning.plan import Gate, Op, Outcomes, Provenance, StatusWrite
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.merge import ConflictPolicy
from kubectl_reconcile.modules.memcached import memcached
from tests.core.planning.changes import a_change
from tests.core.planning.shop import KINDS, MEMCACHED, SHOP, cache, inputs_of, live, plan, written

MAP = KINDS[GroupVersionKind("", "v1", "ConfigMap")]


def config(name="web", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": data}


def ref(name):
    return ObjectRef("", "ConfigMap", "shop", name)


def builder(*cluster, sync=SHOP, **more):
    return PlanBuilder.of(inputs_of([], cluster, sync=sync, **more))


def judged(desired, there=None, *, rules=SHOP, kind=MAP, provenance=None, **more):
    given = provenance or Provenance("a.yaml", 3)
    return builder().judge(ObjectRef.of(desired), kind, desired, there, rules=rules, provenance=given, **more)


# --- judging --------------------------------------------------------------------------------------

MINE = Provenance("a.yaml", 3)


def test_what_isnt_there_is_created_as_it_is_sent():
    change = judged(config(a="1"))
    assert (change.op, change.before, change.kind) == (Op.CREATE, None, MAP)
    assert change.after == change.intent == config(a="1")
    assert [str(field.path) for field in change.fields if "data" in str(field.path)] == [".data.a"]
    assert (change.provenance, change.gate) == (MINE, Gate())


def test_what_is_otherwise_is_updated_and_its_fields_are_named():
    there = live(config(a="1"), set_id="")
    change = judged(config(a="2"), there)
    assert (change.op, change.before, change.intent) == (Op.UPDATE, there, config(a="2"))
    assert change.after["data"] == {"a": "2"}
    assert [(str(field.path), field.before, field.after) for field in change.fields] == [(".data.a", "1", "2")]


def test_what_is_as_it_should_be_is_unchanged_and_keeps_its_labels():
    labelled = cache("web", labels={"app": "web"})
    change = judged(labelled, live(labelled, set_id=""), kind=SIZED)
    assert (change.op, change.labels, change.provenance, change.kind.plural) == (
        Op.UNCHANGED,
        {"app": "web"},
        MINE,
        "memcacheds",
    )
    assert (change.before, change.after) == (None, None)


def test_what_is_being_deleted_is_written_again_once_it_is_gone():
    going = live(config(a="1"), set_id="", deletionTimestamp="2026-11-20T12:00:00Z")
    assert judged(config(a="2"), going).gate.blocked == "it is being deleted; it will be recreated once it is gone"


SIZED = KINDS[MEMCACHED]


def overwritten(size):
    """A Memcached of which another manager owns the size."""
    found = live(cache("web", size=2), set_id="")
    entry = {
        "manager": "scaler", "operation": "Apply", "apiVersion": found["apiVersion"], "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:size": {}}},
    }  # fmt: skip
    ours = {**found["metadata"]["managedFields"][0], "fieldsV1": {"f:spec": {}}}
    metadata = {**found["metadata"], "managedFields": [ours, entry]}
    return {**found, "metadata": metadata, "spec": {"size": size}}


POLICIES = {
    "overrides": (ConflictPolicy.OVERRIDE, "", True),
    "fails": (ConflictPolicy.FAIL, ".spec.size belongs to scaler", False),
}


@pytest.mark.parametrize(("policy", "blocked", "force"), POLICIES.values(), ids=POLICIES)
def test_a_field_of_another_manager_is_overwritten_or_named_as_the_sync_says(policy, blocked, force):
    rules = replace(SHOP, conflicts=policy)
    change = judged(cache("web", size=3), overwritten(2), rules=rules, kind=SIZED)
    assert (change.gate.blocked, change.gate.force) == (blocked, force)
    assert [str(conflict.path) for conflict in change.conflicts] == [".spec.size"]


def test_an_objects_own_policy_counts_before_that_of_the_sync():
    rules = replace(SHOP, conflicts=ConflictPolicy.FAIL)
    change = judged(cache("web", size=3), overwritten(2), rules=rules, kind=SIZED, policy=ConflictPolicy.OVERRIDE)
    assert (change.gate.blocked, change.gate.force) == ("", True)


def test_a_field_that_the_sync_ignores_is_left_alone():
    rules = replace(SHOP, ignore=(IgnoreRule.parse(".spec.size"),))
    assert judged(cache("web", size=3), live(cache("web"), set_id=""), rules=rules, kind=SIZED).op is Op.UNCHANGED


def test_what_cant_be_merged_is_left_alone_and_said_without_values_of_secrets():
    use = VariableUse(("spec", "size"), ("SIZE",), secret=True, texts=("hunter2",))
    broken = cache("web", size={"hunter2": 1})
    there = live(cache("web"), set_id="")
    change = judged(broken, there, kind=SIZED, provenance=Provenance("a.yaml", 3, uses=(use,)))
    assert (change.op, change.before, change.after) == (Op.UNCHANGED, there, there)
    assert change.gate.blocked.startswith(".spec.size")
    assert "hunter2" not in change.gate.blocked
    assert (change.kind, change.provenance.file) == (SIZED, "a.yaml")


def test_what_couldnt_be_read_is_said():
    assert unreadable("no rights") == Gate(blocked="it can't be read: no rights")


# --- deletions ------------------------------------------------------------------------------------


def test_a_deletion_tells_what_there_was_and_which_file_asked_for_it():
    there = live(config(a="1"), path="old.yaml")
    begun = builder(there)
    (member,) = begun.members()
    change = begun.deletion(member)
    assert (change.ref, change.op, change.kind, change.before) == (ref("web"), Op.DELETE, MAP, there)
    assert change.provenance.file == "old.yaml"


def test_a_deletion_at_a_version_that_isnt_known_is_of_the_kind_of_that_name():
    there = live(config(a="1"))
    begun = builder({**there, "apiVersion": "v1beta1"})
    (member,) = begun.members()
    assert begun.deletion(member).kind == MAP


def owned(name, uid):
    found = config(name)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid, "controller": True}
    return {**found, "metadata": {**found["metadata"], "uid": f"uid-{name}", "ownerReferences": [owner]}}


def test_what_the_garbage_collector_takes_is_shown_behind_its_owner():
    begun = builder(live(config()), owned("child", "uid-web"), owned("below", "uid-child"))
    (member,) = begun.members()
    begun.cascade(member, (0, 5, 0))
    found = {change.ref.name: (key, change) for key, change in begun.changes}
    assert {name: key for name, (key, _) in found.items()} == {
        "child": key_of(Stage.DELETE, (0, 5, 1)), "below": key_of(Stage.DELETE, (0, 5, 2)),
    }  # fmt: skip
    assert [found[name][1].provenance.owner for name in ("child", "below")] == [ref("web"), ref("child")]
    assert all(change.gate.cascade and change.op is Op.DELETE for _, change in begun.changes)


@pytest.mark.parametrize("held", [True, False])
def test_what_lists_show_to_go_along_is_held_with_what_takes_it(held):
    begun = builder()
    begun.add_cascade(ref("child"), config("child"), ref("web"), (0, 5, 0), held=held)
    ((key, change),) = begun.changes
    assert key == key_of(Stage.DELETE, (0, 5, 1))
    assert (change.ref, change.op, change.kind, change.before) == (ref("child"), Op.DELETE, MAP, config("child"))
    assert (change.gate, change.provenance) == (Gate(held=held, cascade=True), Provenance(owner=ref("web")))


# --- stages ---------------------------------------------------------------------------------------


def test_a_change_has_its_place_in_its_stage():
    begun, change = builder(), a_change(ref("web"), Op.CREATE)
    begun.when.stages[ref("first")] = Stage.BEFORE
    begun.add(change, (1, 2, 3))
    begun.add(a_change(ref("first"), Op.CREATE), (1, 2, 3))
    begun.add(a_change(ref("hook"), Op.CREATE, hook="post-sync"), (1, 2, 3))
    begun.add(a_change(ref("early"), Op.CREATE, hook="pre-sync"), (1, 2, 3))
    begun.add(a_change(ref("first"), Op.DELETE), (1, 2, 3), deleting=True)
    stages = [Stage.WRITE, Stage.BEFORE, Stage.AFTER, Stage.BEFORE, Stage.DELETE]
    assert [key for key, _ in begun.changes] == [key_of(stage, (1, 2, 3)) for stage in stages]


def test_a_phase_is_that_of_the_kind_and_the_first_where_none_is_known():
    begun = builder()
    assert begun.phase(ref("web")) == MAP.phase
    assert begun.phase(ObjectRef("", "Namespace", "", "x")) != MAP.phase
    assert begun.phase(ObjectRef("example.com", "Widget", "shop", "x")) == 0


# --- the whole plan -------------------------------------------------------------------------------


def test_a_plan_says_of_what_it_is_and_what_was_found():
    problem = Problem("a.yaml", 1, "odd")
    begun = builder(problems=[problem, problem], observed={ref("web"): Observation({"size": 1})})
    begun.verdicts[ref("web")] = ("a", "b")
    held = Hold("NeedsConsent", "so", (ref("web"),))
    made = begun.finish([held], Marked(7))
    assert (made.sync, made.revision, made.problems) == (SHOP.ref, "c0ffee" + "0" * 34, (problem,))
    assert (made.holds, made.members, made.verdicts) == ((held,), 7, {ref("web"): ("a", "b")})
    assert made.outcomes.observed == {ref("web"): Observation({"size": 1})}
    assert builder(sync=Sync(name="", namespace="shop")).finish().sync is None


def test_modules_are_asked_again_after_the_shortest_of_their_times():
    write = StatusWrite(ref("web"), MAP, {}, "m", "u")
    found = OutcomesSoFar([write], [30.0, 5.0], {}, is_urgent=True)
    assert found.total({}) == Outcomes((write,), 5.0, {}, {}, is_urgent=True)
    assert OutcomesSoFar().total({}) == Outcomes()


def test_what_is_wrong_with_objects_is_told_and_these_are_left_alone():
    begun, problem = builder(), Problem("a.yaml", 1, "odd")
    begun.spare({ref("web"): problem})
    assert (begun.problems, begun.spared) == ([problem], {ref("web")})


def test_what_was_brought_from_a_secret_is_hidden_in_what_modules_make_of_it():
    secret, plain = VariableUse(("spec", "size"), ("SIZE",), secret=True, texts=("7",)), VariableUse(("a",), ("A",))
    made = plan([replace(written(cache("web")), uses=(secret, plain))], modules={MEMCACHED: memcached})
    uses = {change.ref.kind: change.provenance.uses for change in made.changes}
    assert uses.pop("Memcached") == (secret, plain)
    assert set(uses.values()) == {(secret,)}
    plainly = plan([replace(written(cache("web")), uses=(plain,))], modules={MEMCACHED: memcached})
    assert {change.provenance.uses for change in plainly.changes if change.is_child} == {()}
    other = plan([replace(written(cache("web")), uses=(secret,)), cache("other")], modules={MEMCACHED: memcached})
    below = {change.ref.name: change.provenance.uses for change in other.changes if change.is_child}
    assert below["web"] == (secret,)
    assert below["other"] == ()


# --- what is waited for ---------------------------------------------------------------------------


def store(name, *, ready=None, **annotations):
    """A custom resource in the cluster, which says whether it is ready."""
    noted = {f"reconcile.dev/{key}": value for key, value in annotations.items()}
    found = cache(name, **({"annotations": noted} if noted else {}))
    if ready is None:
        return found
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {**live(found), "status": {"conditions": conditions}}


def awaited(*desired, cluster, **more):
    return [change.ref.name for change in plan(desired, cluster, **more).schedule.awaited]


BUSY, DONE = store("busy"), store("done")
CLUSTER = [store("busy", ready=False), store("done", ready=True)]


def test_what_isnt_well_and_comes_before_what_is_written_is_awaited():
    late = store("late", wave="1")
    assert awaited(BUSY, DONE, late, cluster=CLUSTER) == ["busy"]
    assert awaited(BUSY, DONE, late, cluster=CLUSTER, whole=False) == []
    assert awaited(BUSY, DONE, late, cluster=[*CLUSTER, store("late", ready=False, wave="1")]) == []
    assert awaited(BUSY, DONE, store("late"), cluster=CLUSTER) == []


def test_what_another_depends_on_is_awaited_in_the_same_wave():
    user = store("user", **{"depends-on": "Memcached.cache.example.com/busy"})
    cluster = [*CLUSTER, store("idle", ready=False)]
    assert awaited(BUSY, DONE, store("idle"), user, cluster=cluster) == ["busy"]


# --- what an earlier build settled ----------------------------------------------------------------


def settled(*names, wave=0):
    key = key_of(Stage.WRITE, (wave, 0, 0))
    members = {
        ref(name): Settled(key, a_change(ref(name), Op.UNCHANGED, wave=wave), at) for at, name in enumerate(names)
    }
    return Standing(
        [], members, {each.number: of for of, each in members.items()},
        sorted((each.change for each in members.values()), key=in_order), {key: len(names)} if names else {}, {key: wave},
    )  # fmt: skip


def names_of(changes):
    return [change.ref.name for change in changes]


@pytest.mark.parametrize("count", [3, 200])
def test_members_that_are_looked_at_again_stand_no_more(count):
    names = [f"m{number:03}" for number in range(count)]
    standing = settled(*names)
    standing.keys = Counter(standing.keys)
    assert standing.let_go([1]) == [ref("m001")]
    assert names_of(standing.ordered) == [name for name in names if name != "m001"]
    assert (len(standing.members), len(standing.numbers), standing.keys.total()) == (count - 1, count - 1, count - 1)
    assert ref("m001") not in standing.members
    left = [number for number in range(count) if number != 1]
    standing.let_go(left)
    assert (standing.ordered, standing.members, standing.keys) == ([], {}, Counter())


def test_members_move_to_the_waves_where_their_places_are_now():
    standing = settled("a", "b")
    (key,) = standing.keys
    before = standing.ordered
    standing.move({key: 0})
    assert standing.ordered is before
    standing.move({key: 4})
    assert {change.gate.wave for change in standing.ordered} == {4}
    assert {each.change.gate.wave for each in standing.members.values()} == {4}
    assert [each.number for each in standing.members.values()] == [0, 1]
    assert (names_of(standing.ordered), standing.waves) == (["a", "b"], {key: 4})


@pytest.mark.parametrize("count", [2, 200])
def test_changes_are_put_in_between_those_that_are_in_order(count):
    ordered = [a_change(ref(f"m{number:03}"), Op.UNCHANGED, wave=1) for number in range(count)]
    first, middle, last = (
        a_change(ref(name), Op.CREATE, wave=wave) for name, wave in (("z", 0), ("m000x", 1), ("a", 2))
    )
    found = merged(ordered, [last, middle, first])
    assert found == sorted([*ordered, first, middle, last], key=in_order)
    assert found[0] is first
    assert found[-1] is last
    assert len(ordered) == count
