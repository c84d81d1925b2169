"""How a module is asked: what it is shown, and what is said and kept where it gives no outcome."""

import json

import pytest

from kubectl_reconcile.core.module.api import Observation, UnloadedModule, module
from kubectl_reconcile.core.module.inputs import Reads, Select
from kubectl_reconcile.core.module.outcome import Action, Outcome
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.objects import GroupKind, ObjectRef, Severity
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.module_call import Parent, children_of, is_recalled, owned_view
from kubectl_reconcile.core.planning.snapshot import Objects
from tests.core.planning.family import CACHE, KINDS, REF, a_module, cache, child, conditions, live, plan, wants
from tests.core.planning.shop import inputs_of

PLACE = "Cache.example.com shop/web"
FIRST = child("a")
STEP = Action("step-1", "step", "do it")


def problem(one, cr=None, **more):
    (found,) = plan(one, cr or cache(), **more).problems
    assert (found.path, found.line, found.in_source) == (PLACE, 0, False)
    return found.severity, found.message, found.hint


def refusing(*_):
    raise SpecError(".spec.size", "must be even")


def breaking(*_):
    raise KeyError("size")


BREAKS_AT = breaking.__code__.co_firstlineno + 1


def misusing(*_):
    return {}[json.loads('"colour"')]


def reading(*_):
    return json.loads("{")


CRASHES = {"its own line": misusing, "the line that calls what isn't its own": reading}


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_a_crash_names_the_line_of_the_module(crash):
    line = crash.__code__.co_firstlineno + 1
    assert f"in planning/test_module_call.py:{line} ({crash.__name__})" in problem(a_module(crash))[1]


def test_a_spec_that_a_module_refuses_is_named_and_all_stays_as_it_is():
    one = a_module(refusing)
    assert problem(one) == (
        Severity.ERROR, ".spec.size: must be even", "correct the field; until then everything stays as it is",
    )  # fmt: skip
    made = plan(one, cache(status={"nodes": ["a"]}), live(FIRST))
    assert (made.changes, conditions(made)["Degraded"]) == ((), ("True", "InvalidSpec"))


def test_a_module_that_breaks_is_named_and_all_stays_as_it_is():
    one = a_module(breaking)
    assert problem(one) == (
        Severity.ERROR, f"module cache: KeyError: 'size', in planning/test_module_call.py:{BREAKS_AT} (breaking)",
        "its children are left alone until the module is fixed",
    )  # fmt: skip
    made = plan(one, cache(status={"nodes": ["a"], "observedGeneration": 1}), live(FIRST))
    status = made.outcomes.statuses[0].after["status"]
    assert (made.changes, status["nodes"]) == ((), ["a"])
    assert [(each["type"], each["message"]) for each in status["conditions"]] == [
        ("Stalled", f"module cache: KeyError: 'size', in planning/test_module_call.py:{BREAKS_AT} (breaking)")
    ]


UNLOADED = UnloadedModule(
    "cache", CACHE, owns=(), reads=(), reconcile=breaking, docs="", why="its module can't be loaded", hint="install it"
)  # fmt: skip


@pytest.mark.parametrize(
    "cr",
    [cache(), cache(deleted=True, finalizers=["reconcile.dev/cache"]), cache(**{"reconcile.dev/paused": "true"})],
    ids=["as it is", "being deleted", "paused"],
)
def test_where_a_module_cant_be_loaded_that_is_said_and_children_and_status_stay_as_they_are(cr):
    assert problem(UNLOADED, cr) == (Severity.ERROR, "its module can't be loaded", "install it")
    made = plan(UNLOADED, cr, live(FIRST))
    assert (made.changes, made.outcomes.statuses) == ((), ())


def observing(outcome):
    async def looked(*_):
        return {}

    return a_module(lambda *_: outcome, observe=looked, act=lambda *_: None, finalize=lambda *_: outcome)


def test_what_cant_be_observed_is_said_and_nothing_is_done_to_it_and_no_child_goes():
    unseen = Observation(error="no answer")
    assert problem(observing(Outcome()), observed=unseen) == (
        Severity.ERROR, "its external system can't be observed: no answer", "it is observed again, at growing intervals",
    )  # fmt: skip
    kept = cache(finalizers=["reconcile.dev/cache"])
    assert ops_of(plan(observing(Outcome((FIRST,), actions=(STEP,))), kept, observed=unseen)) == ["create a"]
    assert plan(observing(Outcome()), kept, live(FIRST), observed=unseen).changes == ()
    going = cache(deleted=True, finalizers=["reconcile.dev/cache"])
    assert plan(observing(Outcome(finalized=True)), going, observed=unseen).changes == ()
    assert ops_of(plan(observing(Outcome(finalized=True)), going, observed=Observation())) == ["let-go"]


def test_a_pod_that_is_ready_and_was_not_heard_is_told_of_and_what_is_known_is_done():
    deaf = Observation({}, unheard="pod web-0: no answer at port 80 within 3 s")
    one, kept = observing(Outcome((FIRST,), actions=(STEP,))), cache(finalizers=["reconcile.dev/cache"])
    assert problem(one, kept, observed=deaf) == (
        Severity.WARNING, "ready, but silent: pod web-0: no answer at port 80 within 3 s",
        "try again: steps may be missing, and none are foreseen",
    )  # fmt: skip
    assert ops_of(plan(one, kept, observed=deaf)) == ["create a", "step"]


def ops_of(made):
    return [change.action.verb if change.action else f"{change.op.value} {change.ref.name}" for change in made.changes]


def test_what_nobody_has_observed_yet_is_to_be_looked_at_first():
    made = plan(observing(Outcome((FIRST,))), cache())
    assert made.changes == ()
    assert made.outcomes.unobserved[REF].module.name == "cache"
    assert made.outcomes.unobserved[REF].cr == cache()


def test_the_reason_why_nothing_is_observed_is_told_to_the_module_and_so_are_facts():
    seen = []

    async def looked(*_):
        return {}

    def look(_cr, _owned, facts, ctx):
        seen.append((facts, ctx.unobserved, ctx.now, ctx.module, ctx.ceilings["--load-max-rate"]))
        return Outcome()

    one = a_module(look, observe=looked)
    for observation in (Observation({"size": 1}), Observation(error="no answer")):
        plan(one, cache(), observed=observation)
    now = "2026-11-20T12:00:00Z"
    assert seen == [({"size": 1}, "", now, "cache", 1000), ({}, "no answer", now, "cache", 1000)]


def test_warnings_of_a_module_stop_nothing():
    one = wants(FIRST, warnings=("it is old",))
    assert problem(one) == (Severity.WARNING, "it is old", "")
    assert ops_of(plan(one, cache())) == ["create a"]


def test_facts_that_a_daemon_noted_say_how_old_they_are():
    noted = Observation({}, as_of="2026-11-20T11:59:18Z", unreached="no right to reach them")
    assert problem(observing(Outcome()), cache(finalizers=["reconcile.dev/cache"]), observed=noted) == (
        Severity.WARNING, "its pods, as the daemon observed them 42 s ago: no right to reach them", "the daemon decides the next steps",
    )  # fmt: skip


# --- what it is shown -----------------------------------------------------------------------------


def config(name, namespace="shop", labels=None, **data):
    metadata = {"name": name, "labels": labels or {}, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def shown(*objects, reads, cr=None, unread=None):
    """What a module that reads this is shown of ConfigMaps."""
    one = module(api="example.com/v1", kind="Cache", owns=[], reads=reads, name="cache")(lambda *_: Outcome())
    found = owned_view(Objects(objects), one, cr or cache(), unread=unread or {})
    return [
        f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}" for each in found.read("ConfigMap")
    ], found


def reading(**more):
    return [Reads("v1", "ConfigMap", **more)]


OWN = {
    "app.kubernetes.io/name": "cache",
    "app.kubernetes.io/instance": "web",
    "reconcile.dev/module": "cache",
}
OBJECTS = [
    config("own", labels={**OWN, "app": "a"}),
    config("other", labels={"app": "a"}, to="web"),
    config("third", labels={"app": "b"}),
    config("own", "bar", labels={**OWN, "app": "a"}, to="web"),
    {**config("own", labels={**OWN, "app": "a"}), "kind": "Secret"},
]
READ = {
    "what carries its labels": (reading(selector="app=a"), ["shop/own"]),
    "what it names": (reading(of=lambda _: Select(names=("third", "gone"))), ["shop/third"]),
    "what has the labels that it names": (reading(of=lambda _: Select(labels={"app": "a"})), ["shop/other", "shop/own"]),
    "what refers to it": (reading(of=lambda _: Select.referring("web", "data", "to")), ["shop/other"]),
    "what it names and has the labels": (
        reading(selector="app=a", of=lambda _: Select(names=("third", "other"))), ["shop/other"],
    ),
    "nothing that is read on request": (reading(on_request=True, of=lambda _: Select(names=("third",))), []),
    "all of its namespace": (reading(whole_namespace=True), ["shop/other", "shop/own", "shop/third"]),
}  # fmt: skip


@pytest.mark.parametrize(("reads", "names"), READ.values(), ids=READ)
def test_a_module_is_shown(reads, names):
    assert shown(*OBJECTS, reads=reads)[0] == names


def test_what_a_namespace_holds_is_shown_once_and_apart_from_children():
    mine = live(child("mine"))
    mine["kind"], mine["apiVersion"] = "ConfigMap", "v1"
    both = [*reading(whole_namespace=True), *reading(of=lambda _: Select(names=("third",)))]
    names, found = shown(*OBJECTS, mine, reads=both)
    assert names == ["shop/other", "shop/own", "shop/third"]
    assert [each["metadata"]["name"] for each in found.children] == ["mine"]


def test_what_couldnt_be_listed_of_a_namespace_is_told_for_what_is_read_there():
    unread = {
        ("shop", GroupKind("", "ConfigMap")): "no rights", ("bar", GroupKind("", "ConfigMap")): "x", ("shop", GroupKind("", "Pod")): "y",
    }  # fmt: skip
    assert shown(reads=reading(whole_namespace=True), unread=unread)[1].unread == {"ConfigMap": "no rights"}
    assert shown(reads=reading(selector="app=a"), unread=unread)[1].unread == {}


def test_a_custom_resource_of_no_namespace_reads_no_whole_one():
    bare = cache()
    bare["metadata"] = {name: value for name, value in bare["metadata"].items() if name != "namespace"}
    assert shown(*OBJECTS, reads=reading(whole_namespace=True), cr=bare)[0] == []
    assert shown(config("x", ""), reads=reading(of=lambda _: Select(names=("x",))), cr=bare)[0] == ["/x"]


def test_children_are_what_it_controls_in_its_own_namespace():
    here, there = live(child("a")), live(child("b"))
    there["metadata"]["namespace"] = "bar"
    found = Objects([here, there, live(child("c"), owner="u-2")])
    assert [each.ref.name for each in children_of(found, cache())] == ["a"]
    bare = cache()
    bare["metadata"] = {name: value for name, value in bare["metadata"].items() if name != "namespace"}
    assert [each.ref.name for each in children_of(found, bare)] == ["b", "a"]
    unmade = {**bare, "metadata": {"name": "web"}}
    assert children_of(found, unmade) == ()


# --- a custom resource ----------------------------------------------------------------------------


def parent(live_cr, order=(0, 1, 2)):
    return Parent(wants(), KINDS[CACHE], REF, cache(), live_cr, order)


def test_a_custom_resource_is_known_by_what_is_live():
    assert (parent(None).uid, parent(None).is_going) == ("", False)
    assert (parent(cache()).uid, parent(cache()).is_going) == ("u-1", False)
    assert parent(cache(deleted=True)).is_going
    assert parent(None).place(3) == (0, 1, 5)
    wish = parent(None).wants
    assert (wish.owner, wish.manager) == (ObjectRef("example.com", "Cache", "shop", "web"), "kubectl-reconcile-cache")


@pytest.mark.parametrize(
    ("observed", "recalled"), [(None, False), (Observation(), False), (Observation(as_of="x"), True)]
)
def test_facts_that_somebody_else_noted_are_recalled(observed, recalled):
    inputs = inputs_of([], observed={REF: observed} if observed else {})
    assert is_recalled(PlanBuilder.of(inputs), parent(cache())) is recalled
