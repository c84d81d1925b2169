"""The contract between modules and the engine, on plain values."""

from __future__ import annotations

import copy
import itertools
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.health.cel_rules import HealthRules, Rule
from kubectl_reconcile.core.health.judge import HealthStatus
from kubectl_reconcile.core.module.adoption import UNKNOWN_UID, adopt_child, with_owner_uid
from kubectl_reconcile.core.module.api import health_of, module, modules_in
from kubectl_reconcile.core.module.call import ModuleError, check_purity, outcome_of, outcome_of_invalid
from kubectl_reconcile.core.module.inputs import Context, Owned, Reads
from kubectl_reconcile.core.module.outcome import Action, Outcome
from kubectl_reconcile.core.module.specs import Between, SpecError, spec_of
from kubectl_reconcile.core.objects import Condition, GroupVersionKind, ObjectRef

NOW = "2026-01-01T00:00:00Z"


def a_cr(name="web", namespace="shop", **spec):
    return {
        "apiVersion": "example.com/v1",
        "kind": "Cache",
        "metadata": {"name": name, "namespace": namespace, "uid": "u-1"},
        "spec": spec,
    }


def a_child(kind="Service", name="web", api="v1", **metadata):
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}}


def a_module(reconcile, *, owns=("v1/Service",)):
    return module(api="example.com/v1", kind="Cache", owns=owns)(reconcile)


def context(cr, name="cache"):
    return Context(now=NOW, module=name, cr=cr)


def call(reconcile, cr=None, *, with_=outcome_of, **kwargs):
    cr = cr or a_cr()
    return with_(a_module(reconcile, **kwargs), cr, Owned(), {}, context(cr))


# --- names and labels ---

DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
CR_NAMES = st.from_regex(
    r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?){0,5}", fullmatch=True
)
SUFFIXES = st.just("") | st.from_regex(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)

NAMES = {
    "a child is named as its CR": ("web", "", "web"),
    "a suffix follows": ("web", "pod-0", "web-pod-0"),
    "the longest name that fits": ("w" * 63, "", "w" * 63),
    "dots are no part of a DNS label": ("web.example", "", "web-example-HASH"),
    "a long name keeps its suffix": ("w" * 63, "client", "w" * 47 + "-HASH-client"),
}


@pytest.mark.parametrize(("name", "suffix", "expected"), NAMES.values(), ids=NAMES)
def test_child_names_are_readable(name, suffix, expected):
    assert re.sub(r"-[0-9a-f]{8}\b", "-HASH", context(a_cr(name)).name(suffix)) == expected


@given(CR_NAMES, SUFFIXES)
def test_child_names_are_valid_and_stable(name, suffix):
    found = context(a_cr(name)).name(suffix)
    assert DNS_LABEL.fullmatch(found)
    assert context(a_cr(name)).name(suffix) == found
    assert found.endswith(suffix)


@given(CR_NAMES, CR_NAMES)
def test_two_crs_never_share_a_name(one, other):
    assert (context(a_cr(one)).name() == context(a_cr(other)).name()) == (one == other)


def test_shortened_names_differ_where_only_the_end_differs():
    first, second = (context(a_cr("w" * 70 + end)).name() for end in "ab")
    assert first != second
    assert len(first) == len(second) == 63


@pytest.mark.parametrize("suffix", ["Pod", "a_b", "-a", "a.b", "x" * 41])
def test_a_suffix_that_could_break_a_name_is_refused(suffix):
    with pytest.raises(ValueError, match="suffix must be a DNS label"):
        context(a_cr()).name(suffix)


def test_labels_select_one_cr():
    assert context(a_cr("web")).labels() == {
        "app.kubernetes.io/name": "cache",
        "app.kubernetes.io/instance": "web",
        "app.kubernetes.io/managed-by": "kubectl-reconcile",
        "reconcile.dev/module": "cache",
    }


@given(CR_NAMES)
def test_labels_are_valid_and_contain_the_selector(name):
    ctx = context(a_cr(name))
    assert ctx.selector().items() <= ctx.labels().items()
    assert all(len(value) <= 63 for value in ctx.labels().values())


def test_a_cr_sees_only_its_own():
    ctx = context(a_cr("web"))
    assert ctx.sees(a_child("Pod", "p", namespace="shop", labels={**ctx.labels(), "pod-template-hash": "1"}))
    assert not ctx.sees(a_child("Pod", "p", namespace="other", labels=ctx.labels()))
    assert not ctx.sees(a_child("Pod", "p", namespace="shop", labels=context(a_cr("web2")).labels()))
    assert not ctx.sees(a_child("Pod", "p", namespace="shop"))


# --- owned ---


def test_owned_finds_children_by_kind_and_name():
    service, other = a_child("Service", "web"), a_child("Service", "api")
    owned = Owned(children=[service, other], read=[a_child("Pod", "web")])
    assert owned.get("Service", "web") is service
    assert owned.get("Service", "none") is None
    assert owned.of("Service") == (other, service)
    assert owned.of("Pod") == ()
    assert [pod["metadata"]["name"] for pod in owned.read("Pod")] == ["web"]


def test_owned_tells_kinds_of_two_groups_apart():
    core, knative = a_child("Service"), a_child("Service", api="serving.example.com/v1")
    assert Owned([core, knative]).of("Service.serving.example.com") == (knative,)


@given(st.permutations([a_child(name=name) for name in "abcd"]))
def test_answers_do_not_depend_on_the_order_of_events(children):
    assert [child["metadata"]["name"] for child in Owned(children).of("Service")] == list("abcd")


def test_a_missing_child_has_a_health_too():
    owned = Owned([a_child("ConfigMap", "there")])
    assert owned.health("ConfigMap", "there").status is HealthStatus.CURRENT
    assert owned.health("ConfigMap", "gone").status is HealthStatus.NOT_FOUND


# --- views on a spec ---


@dataclass(frozen=True)
class View:
    size: Annotated[int, Between(0, 9)]
    container_port: int = 80
    image: str = "cache:1"
    paused: bool = False
    resources: Mapping[str, Any] = field(default_factory=dict)


def test_a_view_reads_camel_case_and_fills_in_defaults():
    assert spec_of(a_cr(size=3, containerPort=81), View) == View(size=3, container_port=81)


def test_null_is_absent_and_unknown_fields_are_left_alone():
    assert spec_of(a_cr(size=3, image=None, novelty=1), View) == View(size=3)


INVALID = {
    "missing": ({}, ".spec.size: is required"),
    "null": ({"size": None}, ".spec.size: is required"),
    "text for a number": ({"size": "3"}, '.spec.size: must be a whole number, not "3"'),
    "a fraction": ({"size": 1.5}, ".spec.size: must be a whole number, not 1.5"),
    "true isn't a number": ({"size": True}, ".spec.size: must be a whole number, not true"),
    "too small": ({"size": -1}, ".spec.size: must be between 0 and 9, not -1"),
    "too large": ({"size": 10}, ".spec.size: must be between 0 and 9, not 10"),
    "a number for text": ({"size": 1, "image": 2}, ".spec.image: must be text, not 2"),
    "a number for a switch": ({"size": 1, "paused": 0}, ".spec.paused: must be true or false, not 0"),
    "a list for an object": ({"size": 1, "resources": []}, ".spec.resources: must be an object, not []"),
    "the field is named as on the wire": (
        {"size": 1, "containerPort": "x"},
        '.spec.containerPort: must be a whole number, not "x"',
    ),
    "long values are cut": ({"size": "x" * 999}, '.spec.size: must be a whole number, not "' + "x" * 61 + "…"),
    "control characters are escaped": ({"size": "\x1b[2J"}, '.spec.size: must be a whole number, not "\\u001b[2J"'),
}


@pytest.mark.parametrize(("spec", "message"), INVALID.values(), ids=INVALID)
def test_an_invalid_spec_names_the_field(spec, message):
    with pytest.raises(SpecError) as refused:
        spec_of(a_cr(**spec), View)
    assert str(refused.value) == message
    assert message.startswith(refused.value.field)


def test_a_spec_that_is_no_object_is_named():
    with pytest.raises(SpecError, match=r"\.spec: must be an object, not 3"):
        spec_of({**a_cr(), "spec": 3}, View)


def test_an_absent_spec_is_an_empty_one():
    with pytest.raises(SpecError, match=r"\.spec\.size: is required"):
        spec_of({"metadata": {}}, View)


@dataclass(frozen=True)
class Tier:
    name: str
    weight: Annotated[float, Between(0, 1)] = 1.0


@dataclass(frozen=True)
class Tiers:
    policy: Literal["Retain", "Delete"] = "Retain"
    tiers: tuple[Tier, ...] = ()
    fallback: Tier | None = None
    ports: tuple[int, ...] = ()


def test_a_view_has_views_lists_and_words_to_choose_from():
    spec = {
        "policy": "Delete",
        "tiers": [{"name": "a", "weight": 0}, {"name": "b"}],
        "fallback": {"name": "c"},
        "ports": [80],
    }
    assert spec_of(a_cr(**spec), Tiers) == Tiers("Delete", (Tier("a", 0), Tier("b", 1.0)), Tier("c"), (80,))
    assert spec_of(a_cr(), Tiers) == Tiers()


INVALID_WITHIN = {
    "another word": ({"policy": "Keep"}, '.spec.policy: must be one of Retain, Delete, not "Keep"'),
    "no word": ({"policy": ["Retain"]}, '.spec.policy: must be one of Retain, Delete, not ["Retain"]'),
    "no list": ({"ports": 80}, ".spec.ports: must be a list, not 80"),
    "an item of another type": ({"ports": [80, "81"]}, '.spec.ports[1]: must be a whole number, not "81"'),
    "a field of an item": ({"tiers": [{"name": "a"}, {}]}, ".spec.tiers[1].name: is required"),
    "a number that is out of bounds": (
        {"fallback": {"name": "a", "weight": 1.5}}, ".spec.fallback.weight: must be between 0 and 1, not 1.5",
    ),
    "no number": ({"fallback": {"name": "a", "weight": "1"}}, '.spec.fallback.weight: must be a number, not "1"'),
    "no object": ({"fallback": "a"}, '.spec.fallback: must be an object, not "a"'),
    "a value of 64 characters": ({"ports": "x" * 62}, f'.spec.ports: must be a list, not "{"x" * 61}…'),
    "a value of 63 characters": ({"ports": "x" * 61}, f'.spec.ports: must be a list, not "{"x" * 61}"'),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), INVALID_WITHIN.values(), ids=INVALID_WITHIN)
def test_an_invalid_part_of_a_spec_is_named_by_its_path(spec, message):
    with pytest.raises(SpecError) as refused:
        spec_of(a_cr(**spec), Tiers)
    assert str(refused.value) == message
    assert (refused.value.field, refused.value.message) == tuple(message.split(": ", 1))


# --- modules ---


def test_a_module_that_acts_observes_too():
    class Acting:
        def reconcile(self, *_):
            return Outcome()

        async def act(self, *_):
            return None

    with pytest.raises(ValueError, match="module cache: a module that acts must also observe"):
        module(api="example.com/v1", kind="Cache", owns=())(Acting)


def test_a_module_has_the_functions_that_its_class_has():
    class Whole:
        """Cache things."""

        def reconcile(self, *_):
            return Outcome()

        finalize = observe = act = predict = foresee = reconcile

    rules = [{"Failed": {"phase": "Broken"}}]
    whole = module(api="v1", kind="A", owns=(), observe_s=1, act_s=2, health=rules)(Whole)
    parts = (whole.reconcile, whole.finalize, whole.observe, whole.act, whole.predict, whole.foresee)
    assert all(part() == Outcome() for part in parts)
    assert (whole.observe_s, whole.act_s, whole.docs, whole.name) == (1, 2, "Cache things.", "a")
    assert whole.health is not None
    plain = module(api="v1", kind="A", owns=())(lambda *_: Outcome())
    assert (plain.observe_s, plain.act_s, plain.docs, plain.health, plain.finalize) == (10, 30, "", None, None)


def test_a_module_is_data():
    @module(api="example.com/v1", kind="Cache", owns=["apps/v1/Deployment"], reads=[Reads("v1", "Pod", "a=b,c/d=")])
    def cache(*_):
        """Cache things.

        At length.
        """
        return Outcome()

    assert (cache.name, cache.gvk) == ("cache", GroupVersionKind("example.com", "v1", "Cache"))
    assert cache.owns == (GroupVersionKind("apps", "v1", "Deployment"),)
    assert cache.reads[0].gvk == GroupVersionKind("", "v1", "Pod")
    assert cache.reads[0].labels == {"a": "b", "c/d": ""}
    assert cache.manager == "kubectl-reconcile-cache"
    assert cache.docs == "Cache things.\n\nAt length."


def test_modules_of_a_python_module_are_found():
    python_module = types.ModuleType("two")
    python_module.b = module(api="v1", kind="B", owns=[])(lambda *_: Outcome())
    python_module.a = python_module.alias = module(api="v1", kind="A", owns=[])(lambda *_: Outcome())
    python_module.other = "not one"
    assert [found.name for found in modules_in(python_module)] == ["a", "b"]


@pytest.mark.parametrize("kind", ["Deployment", "apps/v1/", "/Deployment"])
def test_a_kind_that_is_misspelt_is_refused(kind):
    with pytest.raises(ValueError, match="group"):
        module(api="v1", kind="A", owns=[kind])


@pytest.mark.parametrize("name", ["Cache", "a_b", "x" * 41])
def test_a_module_name_must_fit_into_labels(name):
    with pytest.raises(ValueError, match="module name"):
        module(api="v1", kind="A", owns=[], name=name)


@pytest.mark.parametrize("selector", ["", "a", "a==b", "a in (b)", "a=b,", "!a"])
def test_a_selector_is_made_of_equalities(selector):
    with pytest.raises(ValueError, match="key=value"):
        Reads("v1", "Pod", selector)


def test_a_module_that_is_silent_about_degraded_is_not_degraded():
    ready = Condition("Ready", "True", "Ok")
    outcome = call(lambda *_: Outcome(conditions=(ready,)))
    assert outcome.conditions == (ready, Condition("Degraded", "False", "AsExpected"))


def test_a_module_speaks_of_degraded_itself():
    degraded = Condition("Degraded", "True", "Broken")
    assert call(lambda *_: Outcome(conditions=(degraded,))).conditions == (degraded,)


def refuse(*_):
    raise SpecError(".spec.size", "must be even")


def test_an_invalid_spec_is_for_the_caller_to_report():
    with pytest.raises(SpecError, match=r"\.spec\.size: must be even"):
        call(refuse)


def test_an_invalid_spec_leaves_children_and_status_alone():
    cr = {**a_cr(), "status": {"nodes": ["a"], "conditions": [{}], "observedGeneration": 3}}
    outcome = outcome_of_invalid(cr, SpecError(".spec.size", "must be even"))
    assert outcome.conditions == (Condition("Degraded", "True", "InvalidSpec", ".spec.size: must be even"),)
    assert outcome.status == {"nodes": ["a"]}
    assert outcome.keep_children
    assert cr["status"]["observedGeneration"] == 3


FAULTS = {
    "a crash": (lambda *_: {}["size"], "KeyError: 'size'"),
    "a kind it doesn't own": (lambda *_: Outcome((a_child("Secret"),)), "made Secret web, but Secret v1 isn't among"),
    "the same child twice": (lambda *_: Outcome((a_child(), a_child())), "returned Service web twice"),
    "a child without a name": (lambda *_: Outcome((a_child(name=""),)), "a child Service has no name"),
    "no outcome": (lambda *_: None, "returned NoneType, not an Outcome"),
    "a child that isn't an object": (lambda *_: Outcome(({},)), "its outcome can't be used: KeyError: 'apiVersion'"),
    "a number that JSON doesn't have": (
        lambda *_: Outcome(status={"load": float("inf")}),
        "its outcome can't be used: ValueError: Out of range float values are not JSON compliant",
    ),
    "a child before one that it comes after": (
        lambda *_: Outcome((a_child(), a_child(name="b")), after={"Service/web": ("Service/b",)}),
        "Service/web comes after Service/b, which must be listed before it",
    ),
    "an action that nobody runs": (lambda *_: acting("grow"), "wants action grow, but has no `act` to run it"),
}


def acting(*keys):
    return Outcome(actions=tuple(Action(key, "grow", "grow it") for key in keys))


@pytest.mark.parametrize(("reconcile", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_module_names_the_module(reconcile, message):
    with pytest.raises(ModuleError) as fault:
        call(reconcile)
    assert str(fault.value).startswith(f"module cache: {message}")
    assert fault.value.module == "cache"
    assert fault.value.message.startswith(message)


def test_children_may_come_after_those_that_are_listed_before_them():
    order = {"Service/b": ("Service/web",), "Service/c": ("Service/web", "Service/b")}
    children = (a_child(), a_child(name="b"), a_child(name="c"))
    assert call(lambda *_: Outcome(children, after=order)).children == children


def acts(*keys):
    class Acting:
        def reconcile(self, *_):
            return acting(*keys)

        async def observe(self, *_):
            return {}

        async def act(self, *_):
            return None

    return call(Acting)


def test_each_action_has_a_key_of_its_own_that_can_be_a_name():
    assert [action.key for action in acts("grow", "x" * 63).actions] == ["grow", "x" * 63]
    for keys, message in (
        (("grow", "grow"), "wants action grow twice"),
        (("grow", "Shrink"), "an action's key must be a DNS label, not 'Shrink'"),
        (("x" * 64,), f"an action's key must be a DNS label, not '{'x' * 64}'"),
    ):
        with pytest.raises(ModuleError) as fault:
            acts(*keys)
        assert fault.value.message == message


def test_a_custom_resource_that_is_deleted_is_finalized_by_a_module_that_can():
    class Leaving:
        def reconcile(self, *_):
            return Outcome(status={"is": "here"})

        def finalize(self, *_):
            return Outcome(finalized=True)

    going = a_cr()
    going["metadata"]["deletionTimestamp"] = NOW
    assert call(Leaving, going).finalized
    assert call(Leaving).status == {"is": "here"}
    assert call(lambda *_: Outcome(status={"is": "here"}), going).status == {"is": "here"}


# --- purity ---


def test_a_pure_module_passes():
    assert call(lambda *_: Outcome((a_child(),)), with_=check_purity).children == (a_child(),)


def test_refusing_a_spec_is_pure():
    assert call(refuse, with_=check_purity).keep_children


def changes_its_input(cr, *_):
    cr["spec"]["size"] = 1
    return Outcome()


def remembers(counter=itertools.count()):  # noqa: B008 - keeping something between calls is the point
    return lambda *_: Outcome(status={"calls": next(counter)})


IMPURE = {
    "changes its input": (changes_its_input, "it changed its input"),
    "keeps something between calls": (remembers(), "returned different outcomes"),
    "returns a set": (lambda *_: Outcome(status={"nodes": {1}}), "its outcome can't be used"),
    "returns not-a-number": (lambda *_: Outcome(status={"load": float("nan")}), "its outcome can't be used"),
}


@pytest.mark.parametrize(("reconcile", "message"), IMPURE.values(), ids=IMPURE)
def test_an_impure_module_is_told_so(reconcile, message):
    with pytest.raises(ModuleError, match=message):
        call(reconcile, with_=check_purity)


# --- adoption ---

CACHE = a_module(lambda *_: Outcome())


def test_a_child_is_adopted():
    child = a_child(labels={"a": "b"})
    before = copy.deepcopy(child)
    adopted = adopt_child(child, a_cr(), CACHE)
    assert adopted["metadata"] == {
        "name": "web",
        "namespace": "shop",
        "labels": {"a": "b", "reconcile.dev/module": "cache"},
        "ownerReferences": [
            {
                "apiVersion": "example.com/v1",
                "kind": "Cache",
                "name": "web",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert child == before


def test_a_cluster_scoped_cr_has_children_where_its_module_says():
    cr = {**a_cr(), "metadata": {"name": "web", "uid": "u-1"}}
    (child,) = call(lambda *_: Outcome((a_child(namespace="x", labels=context(cr).labels()),)), cr).children
    assert adopt_child(child, cr, CACHE)["metadata"]["namespace"] == "x"
    assert context(cr).sees(child)


def test_a_preview_adopts_for_an_owner_that_does_not_exist_yet():
    cr = {**a_cr(), "metadata": {"name": "web", "namespace": "shop"}}
    planned = adopt_child(a_child(), cr, CACHE)
    assert planned["metadata"]["ownerReferences"][0]["uid"] == UNKNOWN_UID
    written = with_owner_uid(planned, "u-9")
    assert written == adopt_child(a_child(), a_cr() | {"metadata": {**cr["metadata"], "uid": "u-9"}}, CACHE)


def test_a_known_owner_is_left_alone():
    adopted = adopt_child(a_child(), a_cr(), CACHE)
    assert with_owner_uid(adopted, "u-9") is adopted
    assert with_owner_uid(a_child(), "u-9") == a_child()


def test_a_module_may_tell_the_health_of_its_resource_by_rules_of_its_own():
    @module(
        api="example.com/v1",
        kind="Widget",
        owns=[],
        health=[{"Failed": {"mood": "Broken"}}, {"Current": {"mood": "Up"}}, {"InProgress": {}}],
    )
    def widget(_cr, _owned, _facts, _ctx):
        """Make nothing."""

    rules = HealthRules(kinds=health_of([widget]))
    verdicts = {
        mood: rules.judge(
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "status": {"mood": mood}}
        ).status
        for mood in ("Up", "Broken", "Musing")
    }
    assert verdicts == {"Up": HealthStatus.CURRENT, "Broken": HealthStatus.FAILED, "Musing": HealthStatus.IN_PROGRESS}
    by_the_sync = Rule.parse({"kind": "Widget.example.com", "current": "self.status.mood == 'Musing'"})
    assert (
        HealthRules(rules=[by_the_sync], kinds=rules.kinds)
        .judge(
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "status": {"mood": "Musing"}}
        )
        .status
        is HealthStatus.CURRENT
    )


def test_health_that_cant_be_meant_is_refused():
    with pytest.raises(ValueError, match="one verdict"):
        module(api="example.com/v1", kind="Widget", owns=[], health=[{"Well": {}}])(lambda *_: None)


# --- whole namespaces ---


@dataclass(frozen=True)
class Kept:
    """A live object as bytes would be: parsed when it is asked for."""

    ref: ObjectRef
    asked: list

    def manifest(self):
        self.asked.append(self.ref.name)
        return {"apiVersion": "v1", "kind": self.ref.kind, "metadata": {"name": self.ref.name, "namespace": "shop"}}


def test_what_is_read_of_a_whole_namespace_is_parsed_when_a_module_asks_for_its_kind():
    asked = []
    around = [
        Kept(ObjectRef("", kind, "shop", name), asked) for kind, name in (("Pod", "b"), ("Service", "s"), ("Pod", "a"))
    ]
    owned = Owned(read=[a_child("Pod", "aa", namespace="shop")], around=around)
    assert (list(owned.children), asked) == ([], [])
    assert [each["metadata"]["name"] for each in owned.read("Pod")] == ["a", "aa", "b"]
    assert asked == ["a", "b"]
    assert owned.other("Service", "s")["kind"] == "Service"
    assert [each["metadata"]["name"] for each in owned.others] == ["aa", "a", "b", "s"]
    assert copy.deepcopy(owned).read("Pod") == owned.read("Pod")


@pytest.mark.parametrize("more", [{"selector": "app=web"}, {"of": lambda _: None}, {"on_request": True}])
def test_who_reads_a_whole_namespace_reads_nothing_less(more):
    with pytest.raises(ValueError, match="whole_namespace is all objects of a kind"):
        Reads("v1", "Pod", whole_namespace=True, **more)
