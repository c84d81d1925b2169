"""What a plan must know first: asked round by round, each once, until the plan is the one that asking one by one would give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from kubectl_reconcile.core.manifests.parse import Drawn, Located
from kubectl_reconcile.core.module.api import Observation, module
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.endings.cascade import Listed
from kubectl_reconcile.core.planning.inputs import Asked
from kubectl_reconcile.core.planning.plan import Contention, Op, Plan
from kubectl_reconcile.core.planning.planner import build, explain
from kubectl_reconcile.core.planning.questions import Answers, Questions, decide, explained, take
from kubectl_reconcile.core.planning.snapshot import Objects, Overlay
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents, applyset_id
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom, IgnoreRule
from kubectl_reconcile.core.ssa.managed_fields import entry_of
from tests.core.planning.shop import MEMCACHED, NOW, SHOP, SHOP_ID, cache, config, hook, inputs_of, live, written

FAR, NEAR = ObjectRef(SYNC.group, SYNC.kind, "far", "other"), ObjectRef(SYNC.group, SYNC.kind, "shop", "near")
COLOR = FieldPath.fields("data", "color")
DRIFT_IS_LEFT = IgnoreRule.parse(".data.color")
DRIFT_IS_LEFT = replace(DRIFT_IS_LEFT, of=IgnoreFrom.DRIFT)
NAMES = "abcdef"
CONFIG_MAP = config("a")


def colored(name, color, **annotations):
    return {**config(name, **annotations), "data": {"color": color}}


def ref(name):
    return ObjectRef.of(config(name))


def child_of_cache(cr, *_):
    """A pod, and for a cache that says so another cache, and so on: what is outside is known level by level."""
    name, size = cr["metadata"]["name"], cr["spec"]["size"]
    pod = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": size}}
    return Outcome(children=[pod, *([cache(f"{name}-x", size - 1)] if size > 2 else [])])


def observed_caches():
    methods = {"reconcile": lambda _, *given: child_of_cache(*given), "observe": lambda *_: {}}
    owns = ["apps/v1/Deployment", "cache.example.com/v1alpha1/Memcached", "v1/Pod"]
    one = module(api="cache.example.com/v1alpha1", kind="Memcached", owns=owns, name="memcached")
    return {MEMCACHED: one(type("Caches", (), methods))}


def inner(name, kinds=(SYNC.group_kind,), *, of=SHOP_ID):
    """A live Sync that takes its members along, itself a member of another."""
    found = Contents(frozenset(kinds), frozenset({"shop"})).metadata(
        ObjectRef(SYNC.group, SYNC.kind, "shop", name), "x/1"
    )
    body = {
        "apiVersion": SYNC.api_version, "kind": SYNC.kind, "metadata": {"name": name, "namespace": "shop"},
        "spec": {"deletionPolicy": "Prune"},
    }  # fmt: skip
    there = live(body, set_id=of, uid=f"uid-{name}")
    return {
        **there,
        "metadata": {**there["metadata"], **found, "labels": {**there["metadata"]["labels"], **found["labels"]}},
    }


@dataclass
class World:
    """What a source asks for, what the caches show, and all that somebody would be answered who asks."""

    desired: list = field(default_factory=list)
    shown: list = field(default_factory=list)
    hidden: list = field(default_factory=list)
    unreadable: set = field(default_factory=set)
    applied: dict = field(default_factory=dict)
    strangers: set = field(default_factory=set)
    overwritten: set = field(default_factory=set)
    is_far_gone: bool = False
    is_near_known: bool = False
    is_drawn_before: bool = False
    depth: int = 0
    ignore: tuple = ()
    same: set = field(default_factory=set)

    def inputs(self):
        """What is known at first; an earlier pass has found what is the same."""
        inputs = self._unseen()
        keys = {each.ref: each.provenance.key for each in build(inputs).changes} if self.same else {}
        return inputs.remembering(verdicts={each: (keys[each], "7") for each in self.same})

    def _unseen(self):
        # drawn values are compared by nobody: what is told apart is where they stand
        return inputs_of(
            self.desired, self.shown, sync=replace(SHOP, ignore=self.ignore), modules=observed_caches(),
        )  # fmt: skip

    def answers(self, asked, inputs):
        """Answer all that is asked, from what is so."""
        names = [each for each, _ in asked.names]
        begun = {each.ref for each in asked.writes if each.ref in self.overwritten and _is_of_color(each)}
        listed = {each: self.listed(each) for each in asked.along}
        return Answers(
            observed={each: Observation({"seen": True}) for each in asked.outside},
            found=Objects(each for each in self.hidden if ObjectRef.of(each) in names),
            unreadable={each: "configmaps is forbidden" for each in names if each in self.unreadable},
            recalled={each.ref: self.applied[each.ref] for each in asked.updates if each.ref in self.applied},
            strangers=frozenset(asked.unasked) & frozenset(self.strangers),
            gone=asked.givers if self.is_far_gone else frozenset(),
            desired=self.redrawn(inputs) if asked.draws and self.is_drawn_before else None,
            listed=listed,
            sets={applyset_id(NEAR): NEAR} if self.is_near_known and applyset_id(NEAR) in asked.foreign.values() else {},
            contentions={**inputs.memory.contentions, **self.contended(begun)} if begun else None,
        )  # fmt: skip

    def listed(self, listing):
        """What deletions take along: a Sync in a Sync in a Sync, as deep as this world is."""
        level = next((at for at in range(self.depth + 1) if listing.set_id == _set_of(at)), None)
        if level is None or level == self.depth:
            return Listed()
        return Listed((inner(f"set-{level + 1}", of=_set_of(level)),))

    @staticmethod
    def redrawn(inputs):
        return tuple(
            replace(each, manifest=colored(each.ref.name, "drawn again")) if each.drawn else each
            for each in inputs.desired
        )

    @staticmethod
    def contended(refs):
        return {each: (Contention(each, COLOR, "rival", 3, NOW),) for each in refs}


def _is_of_color(change):
    return any(each.path == COLOR for each in change.fields)


def _set_of(level):
    return applyset_id(ObjectRef(SYNC.group, SYNC.kind, "shop", f"set-{level}"))


SITUATIONS = [
    "new", "hidden", "hidden and same", "unreadable", "same", "drift", "git", "forgotten", "near", "far", "moves from far",
    "unasked", "stranger", "overwritten", "drawn", "drawn and there", "nothing",
]  # fmt: skip


def put(world, name, what):  # noqa: C901, PLR0912 - one line per situation
    asked, path = colored(name, "red"), f"{name}.yaml"
    there, other = (live(colored(name, color), path=path) for color in ("red", "blue"))
    located = written(asked, path, 1)
    match what:
        case "new":
            pass
        case "hidden":
            world.hidden.append(live(colored(name, "blue"), set_id=""))
        case "hidden and same":
            world.hidden.append(there)
        case "unreadable":
            world.unreadable.add(ref(name))
        case "same":
            world.shown.append(there)
            world.same.add(ref(name))
        case "drift" | "overwritten":
            world.shown.append(other)
            world.applied[ref(name)] = asked
            if what == "overwritten":
                world.overwritten.add(ref(name))
        case "git":
            world.shown.append(other)
            world.applied[ref(name)] = colored(name, "blue")
        case "forgotten":
            extra = {**other, "data": {"color": "blue", "size": "9"}}
            world.shown.append({**extra, "metadata": {**extra["metadata"], "managedFields": []}})
            world.applied[ref(name)] = {**colored(name, "blue"), "data": {"color": "blue", "size": "9"}}
        case "near":
            world.shown.append(live(colored(name, "blue"), set_id=applyset_id(NEAR), path=path))
        case "far":
            world.shown.append(live(colored(name, "blue"), set_id=applyset_id(FAR), path=path))
        case "moves from far":
            world.shown.append(live(colored(name, "blue"), set_id=applyset_id(FAR), path=path))
            located = written(colored(name, "red", moved_from="far/other"), path, 1)
        case "unasked" | "stranger":
            world.shown.append(there)
            located = None
            if what == "stranger":
                world.strangers.add(ref(name))
        case "drawn" | "drawn and there":
            located = replace(located, drawn=(Drawn(("data", "color"), "red"),))
            if what == "drawn and there":
                world.shown.append(there)
        case _:
            located = None
    if located is not None:
        world.desired.append(located)


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
    begun = {each.ref for each in plan.acting() if each.ref in world.overwritten and each.writes and _is_of_color(each)}
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


def a_world(**situations):
    world = World()
    for name, what in situations.items():
        put(world, name, what.replace("_", " "))
    return world


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
