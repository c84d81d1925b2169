"""What a plan must know first: asked round by round, each once, until the plan is the one that asking one by one would give."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.inputs import Asked
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.planning.planner import build, explain
from kubectl_reconcile.core.planning.questions import Answers, Questions, decide, explained, take
from kubectl_reconcile.core.planning.snapshot import Objects, Overlay
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.managed_fields import entry_of
from tests.core.planning.answering import (
    DRIFT_IS_LEFT,
    FAR,
    NAMES,
    NEAR,
    SITUATIONS,
    World,
    a_world,
    colored,
    inner,
    is_of_color,
    put,
    ref,
)
from tests.core.planning.shop import SHOP_ID, cache, hook, live, written


@st.composite
def worlds(draw):
    world = World(
        is_far_gone=draw(st.booleans()), is_near_known=draw(st.booleans()), is_drawn_before=draw(st.booleans()),
        depth=draw(st.integers(0, 3)), ignore=draw(st.sampled_from([(), (), (DRIFT_IS_LEFT,)])),
    )  # fmt: skip
    for name in NAMES:
        put(world, name, draw(st.sampled_from(SITUATIONS)))
    if world.depth:
        world.shown.append(inner("set-0"))
    cr = draw(st.sampled_from(["", "", "new", "there", "hidden"]))
    if cr:
        body = cache("sessions", draw(st.integers(1, 4)))
        world.desired.append(written(body, "caches.yaml", 1))
        {"new": [], "there": world.shown, "hidden": world.hidden}[cr].append(live(body))
    return world


def rounds(inputs, answer, most=60):
    """Return the plan and each round's questions, with *answer* asked until there is nothing left to ask."""
    made, so_far = explained(inputs, build(inputs)), []
    while isinstance(asked := decide(inputs, made), Questions):
        assert len(so_far) < most, asked.counts()
        so_far.append(asked)
        inputs, made = take(inputs, made, *answer(asked, inputs))
        made = explained(inputs, build(inputs)) if made is None else made
    assert asked is made
    return made, so_far


def all_at_once(world):
    return lambda asked, inputs: (asked, world.answers(asked, inputs))


def one_by_one(world):  # noqa: C901 - a chain as long as there are questions
    """The plan as it was made before questions were data: a chain of builds, each after the answer to one question."""
    inputs = world.inputs()

    def observed(inputs):
        plan = build(inputs)
        while plan.outcomes.unobserved:
            inputs = inputs.observing({each: Observation({"seen": True}) for each in plan.outcomes.unobserved})
            plan = build(inputs)
        return plan, inputs

    def bases(plan):
        updates = [each for each in plan.acting() if each.op is Op.UPDATE and not each.provenance.owner and each.before]
        return {each.ref: world.applied[each.ref] for each in updates if each.ref in world.applied}

    plan, inputs = observed(inputs)
    names = {each.ref for each in plan.acting() if each.op is Op.CREATE}
    found = Objects(each for each in world.hidden if ObjectRef.of(each) in names)
    unreadable = dict.fromkeys(names & world.unreadable, "configmaps is forbidden")
    if found or unreadable:
        seen = {each: said for each, said in inputs.modules.observed.items() if not found.stored(each)}
        inputs = replace(inputs, live=Overlay(inputs.live, found), modules=replace(inputs.modules, observed=seen))
        plan, inputs = observed(inputs.knowing(unreadable=unreadable))
    if any(_is_forgotten(each) for each in plan.acting()) and (known := bases(plan)):
        plan = build(inputs := inputs.remembering(bases=known))
    if never := frozenset(plan.marked.unasked) & frozenset(world.strangers):
        plan = build(inputs := inputs.knowing(strangers=never))
    if world.is_far_gone and any(each.provenance.foreign for each in plan.acting()):
        plan = build(inputs := inputs.knowing(gone=frozenset({FAR})))
    while plan.lacking:
        listed = {each: world.listed(each) for each in plan.lacking}
        plan = build(inputs := inputs.knowing(listed={**inputs.lookups.listed, **listed}))
    if world.is_drawn_before and any(each.provenance.drawn for each in plan.acting()):
        plan = build(inputs := replace(inputs, desired=world.redrawn(inputs)))
    if world.ignore:
        plan = build(inputs := inputs.remembering(informed=True, bases=bases(plan)))
    begun = {each.ref for each in plan.acting() if each.ref in world.overwritten and each.writes and is_of_color(each)}
    if begun and all(each.op is Op.UPDATE for each in plan.acting() if each.ref in begun):
        plan = build(inputs := inputs.remembering(contentions=world.contended(begun)))
    foreign = frozenset(each.ref for each in plan.acting() if each.provenance.foreign)
    known = inputs.knowing(recalled={**inputs.memory.bases, **bases(plan)})
    is_seen = world.is_near_known and any(each.provenance.foreign == applyset_id(NEAR) for each in plan.acting())
    known = known.remembering(sets={applyset_id(NEAR): NEAR} if is_seen else {})
    return explain(replace(known, asked=Asked(foreign=foreign)), plan, foreign | known.lookups.recalled.keys())


def _is_forgotten(change):
    before = change.before or {}
    is_ours = (before.get("metadata", {}).get("labels") or {}).get(PART_OF) == SHOP_ID
    return change.op is Op.UPDATE and is_ours and entry_of(before, change.provenance.manager) is None


def told(made):
    """Return all of a plan but for the labels of what it leaves as it is: with a verdict known they are told without our mark."""
    return made.with_changes(replace(each, labels=None) for each in made.changes)


def subjects(asked):
    """Return who each question is about, by its name."""
    for name, each in asdict(asked).items():
        if name in {"sure", "recalls"}:
            continue
        if isinstance(each, bool):
            yield from [(name, "")] if each else ()
        elif name == "names":
            yield from ((name, one) for one, _ in each)
        else:
            yield from ((name, getattr(one, "ref", one)) for one in each)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_there_is_an_end_and_nobody_is_asked_twice_of_the_same(world):
    _, so_far = rounds(world.inputs(), all_at_once(world))
    times = Counter(each for asked in so_far for each in subjects(asked))
    found_since = {("outside", ObjectRef.of(each)) for each in world.hidden}
    assert {each for each, count in times.items() if count > 1} <= found_since


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_the_plan_is_the_one_that_asking_one_by_one_gives(world):
    made, _ = rounds(world.inputs(), all_at_once(world))
    assert told(made) == told(one_by_one(world))


@settings(max_examples=60, deadline=None)
@given(worlds(), st.data())
def test_it_does_not_matter_which_questions_of_a_round_are_answered_first(world, data):
    together, _ = rounds(world.inputs(), all_at_once(world))

    def some(asked, inputs):
        """Answer a part of a round; the rest is asked again."""
        there = {name: each for name, each in asdict(asked).items() if each}
        of = {"sure": "names", "recalls": "updates", "informs": "updates"}
        chosen = data.draw(st.sets(st.sampled_from(sorted({of.get(name, name) for name in there})), min_size=1))
        part = Questions(**{name: each for name, each in there.items() if of.get(name, name) in chosen})
        return part, world.answers(part, inputs)

    apart, _ = rounds(world.inputs(), some, most=200)
    assert told(apart) == told(together)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_where_nothing_is_asked_the_plan_is_the_first_one(world):
    inputs = world.inputs()
    first = build(inputs)
    made, so_far = rounds(inputs, all_at_once(world))
    assert so_far or made == first


# --- what is asked ---


def asked_first(world):
    inputs = world.inputs()
    return decide(inputs, build(inputs))


def test_a_set_in_sync_asks_nothing():
    assert isinstance(asked_first(a_world(a="same", b="same")), Plan)


def test_what_would_be_created_is_asked_for_by_name_before_all_that_follows_from_it():
    assert asked_first(a_world(a="new", b="drift", c="stranger")).counts() == {"names": 1}


def test_what_decides_over_endings_is_asked_at_once():
    world = a_world(a="forgotten", b="stranger", c="moves from far")
    assert asked_first(world).counts() == {"updates": 2, "recalls": 1, "unasked": 1, "givers": 1}


def test_drift_asks_what_was_applied_last_and_who_overwrites_it():
    world = a_world(a="drift", b="same")
    made, so_far = rounds(world.inputs(), all_at_once(world))
    assert [asked.counts() for asked in so_far] == [{"updates": 1}, {"writes": 1}]
    assert [each.ref.name for each in made.acting()] == ["a"]


def test_hooks_have_all_names_looked_up_surely_and_other_objects_none():
    plain, hooked = a_world(a="new"), a_world(a="new")
    hooked.desired.append(Located.of(hook("pre-sync"), "job.yaml", 1))
    assert asked_first(plain).sure == frozenset()
    assert asked_first(hooked).sure == {ref("a"), ObjectRef("batch", "Job", "shop", "migrate")}


def test_a_chart_is_asked_again_for_what_it_looked_up_of_what_is_to_be_written_and_what_it_asks_for_then_counts():
    world, now = a_world(a="drift", b="same"), a_world(a="nothing", b="same")
    inputs = world.inputs().knowing(chart=("v1 ConfigMap shop/a", "v1 ConfigMap shop/b"))
    made, so_far = rounds(inputs, lambda asked, _: (asked, Answers(begun=now.inputs() if asked.lookups else None)))
    assert so_far[0].lookups == ("v1 ConfigMap shop/a",)
    assert (len(so_far), made) == (1, build(now.inputs()))


def test_an_answer_that_changes_no_judgement_leaves_the_plan_as_it_was_built():
    inputs = a_world(a="drift").inputs()
    made = build(inputs)
    _, told = take(inputs, made, decide(inputs, made), Answers(recalled={ref("a"): colored("a", "red")}))
    assert [each.reason for each in told.acting()[0].fields] != [each.reason for each in made.acting()[0].fields]
    assert told.hash == made.hash


def test_contention_of_which_nothing_is_left_is_told_once():
    world = a_world(a="same", b="same")
    inputs = world.inputs().remembering(contentions=World.contended({ref("a")}))
    made, so_far = rounds(inputs, all_at_once(world))
    assert [[each.ref for each in asked.settled] for asked in so_far if asked.settled] == [[ref("a")]]
    assert isinstance(made, Plan)
    assert Sync(name="shop", namespace="shop").ref == made.sync
