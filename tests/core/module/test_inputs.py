"""What a module is given: which objects it reads, the live objects around a custom resource, and names for its children."""

import copy
import hashlib
from dataclasses import dataclass
from typing import Any

import pytest

from kubectl_reconcile.core.health.judge import HealthStatus
from kubectl_reconcile.core.module.inputs import CEILINGS, Context, Owned, Reads, Select, volumes_left
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef


def an(kind, name="web", api_version="v1", namespace="shop", labels=None, **content):
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, **place, "labels": labels or {}},
        **content,
    }


# --- what is read ---------------------------------------------------------------------------------

BOTH = {"app": "web", "tier": "front"}
SELECTED = {
    "all labels": (Select(labels=BOTH), an("Pod", labels={**BOTH, "x": "y"}), True),
    "not some of the labels": (Select(labels=BOTH), an("Pod", labels={"app": "web"}), False),
    "a name": (Select.named("web"), an("Pod"), True),
    "not another name": (Select.named("api"), an("Pod"), False),
    "nothing by an empty name": (Select.named(""), an("Pod", ""), False),
    "who refers to it": (Select.referring("db", "spec", "ref", "name"), an("Pod", spec={"ref": {"name": "db"}}), True),
    "not who refers to another": (Select.referring("db", "spec", "ref", "name"), an("Pod", spec={"ref": {"name": "x"}}), False),
    "not who refers to nothing": (Select.referring("", "spec", "ref"), an("Pod", spec={"ref": ""}), False),
    "one of several ways": (Select(labels=BOTH, names=("web",)), an("Pod"), True),
    "nothing by nothing": (Select(), an("Pod"), False),
}  # fmt: skip


@pytest.mark.parametrize(("select", "manifest", "is_selected"), SELECTED.values(), ids=SELECTED)
def test_an_object_is_selected_by(select, manifest, is_selected):
    assert select.matches(manifest) is is_selected


def everything(_):
    return Select()


def test_reads_name_a_kind_and_its_labels():
    reads = Reads("apps/v1", "Deployment", "app=web,tier=")
    assert reads.gvk == GroupVersionKind("apps", "v1", "Deployment")
    assert reads.labels == {"app": "web", "tier": ""}
    assert Reads("v1", "Pod", of=everything).labels == {}


WHOLE = "whole_namespace is all objects of a kind; it can't be combined with selector, of or on_request"
NOTHING = "a selector is written key=value,key=value; without one, say by `of` which objects are read"
REFUSED = {
    "neither labels nor anything else": ({}, NOTHING),
    "no equality": ({"selector": "app"}, "a selector is written key=value,key=value, not 'app'"),
    "an empty part": ({"selector": "app=web,"}, "a selector is written key=value,key=value, not 'app=web,'"),
    "a whole namespace by labels": ({"whole_namespace": True, "selector": "a=b"}, WHOLE),
    "a whole namespace by choice": ({"whole_namespace": True, "of": everything}, WHOLE),
    "a whole namespace on request": ({"whole_namespace": True, "on_request": True}, WHOLE),
}


@pytest.mark.parametrize(("more", "message"), REFUSED.values(), ids=REFUSED)
def test_what_says_nothing_or_two_things_is_refused(more, message):
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its text is compared whole
        Reads("v1", "Pod", **more)
    assert str(refused.value) == message


def test_a_whole_namespace_needs_no_selector():
    assert Reads("v1", "Pod", whole_namespace=True).labels == {}


# --- live objects ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Later:
    """An object that is parsed when it is asked for, and counts how often."""

    body: Any
    asked: list[str]
    version: str = "7"

    @property
    def ref(self):
        return ObjectRef.of(self.body)

    def manifest(self):
        self.asked.append(self.body["metadata"]["name"])
        return self.body


def test_children_and_others_are_told_apart_and_come_by_name():
    mine, other = [an("Pod", "b"), an("Pod", "a"), an("Service")], [an("Pod", "d"), an("Pod", "c"), an("Secret")]
    owned = Owned(mine, other)
    assert owned.of("Pod") == (mine[1], mine[0])
    assert owned.read("Pod") == (other[1], other[0])
    assert (owned.get("Pod", "b"), owned.get("Pod", "c"), owned.get("Service", "b")) == (mine[0], None, None)
    assert (owned.other("Pod", "c"), owned.other("Pod", "b")) == (other[1], None)
    assert owned.children == (mine[1], mine[0], mine[2])
    assert owned.others == (other[1], other[0], other[2])
    assert list(owned) == [*owned.children, *owned.others]
    assert (Owned().children, Owned().others, Owned().unread) == ((), (), {})


def test_a_kind_may_be_named_with_its_group():
    web, other = an("Deployment", api_version="apps/v1"), an("Deployment", "x", "example.com/v1")
    owned = Owned([web, other])
    assert owned.of("Deployment.apps") == (web,)
    assert owned.of("Deployment") == (web, other)


def test_the_health_of_a_child_is_that_of_the_object():
    assert Owned([an("Service", spec={})]).health("Service", "web").status is HealthStatus.CURRENT
    assert Owned().health("Service", "web").status is HealthStatus.NOT_FOUND


def test_what_is_around_is_parsed_for_whoever_asks_for_its_kind_and_sorted_with_the_rest():
    asked = []
    around = [Later(an("Pod", "c"), asked), Later(an("Pod", "a"), asked), Later(an("Service", "s"), asked)]
    owned = Owned(read=[an("Pod", "b"), an("Secret")], around=around)
    assert [each["metadata"]["name"] for each in owned.read("Pod")] == ["a", "b", "c"]
    assert sorted(asked) == ["a", "c"]
    assert owned.other("Service", "s") == an("Service", "s")
    assert [each["metadata"]["name"] for each in owned.others] == ["b", "web", "a", "c", "s"]


def test_what_is_around_can_be_had_unparsed():
    asked = []
    owned = Owned(
        [an("Pod", "mine")], [an("Pod", "b"), an("Secret")], [Later(an("Pod", "a"), asked), Later(an("Service"), asked)]
    )
    found = {each.ref.name: each for each in owned.around(["Pod", "Job.batch"])}
    assert (set(found), asked) == ({"a", "b"}, [])
    assert (found["b"].manifest(), found["b"].version, found["a"].version) == (an("Pod", "b"), "", "7")
    assert list(owned.around([])) == []


def test_a_copy_shares_what_is_parsed_each_time_again():
    asked = []
    owned = Owned([an("Pod", "a")], [an("Pod", "b")], [Later(an("Pod", "c"), asked)], {"Pod": "no rights"})
    found = copy.deepcopy(owned)
    assert asked == []
    found.children[0]["metadata"]["name"] = "x"
    assert owned.children[0]["metadata"]["name"] == "a"
    assert [each["metadata"]["name"] for each in found.read("Pod")] == ["b", "c"]
    assert found.unread == {"Pod": "no rights"}


# --- names and labels -----------------------------------------------------------------------------


def context(name="web", namespace="shop"):
    return Context("2026-11-20T12:00:00Z", "cache", an("Cache", name, "example.com/v1", namespace))


def test_a_name_is_that_of_the_custom_resource_and_a_suffix():
    assert context().name() == "web"
    assert context().name("data") == "web-data"
    assert context("w" * 58).name("data") == f"{'w' * 58}-data"


LONG = {"too long": "w" * 59, "with dots": "a.b", "with dots at the end of what is left": f"{'w' * 48}.{'x' * 20}"}


@pytest.mark.parametrize("name", LONG.values(), ids=LONG)
def test_a_name_that_is_no_label_is_shortened_and_told_apart_by_a_hash(name):
    found, digest = context(name).name("data"), hashlib.sha256(name.encode()).hexdigest()[:8]
    head = name.replace(".", "-")[: 63 - len("-12345678-data")]
    assert found == f"{head}-{digest}-data"
    assert len(found) <= 63


@pytest.mark.parametrize("suffix", ["Data", "a_b", "-a", "x" * 41])
def test_a_suffix_is_a_label_of_forty_characters_at_most(suffix):
    with pytest.raises(ValueError, match="suffix must be a DNS label of at most 40 characters, not"):
        context().name(suffix)
    assert context().name("x" * 40) == f"web-{'x' * 40}"


NUMBERS = {
    "web-0": 0,
    "web-12": 12,
    "web-99999": 99_999,
    "web-100000": -1,
    "web-01": -1,
    "web": -1,
    "web-": -1,
    "api-1": -1,
    "web-a": -1,
}


@pytest.mark.parametrize(("name", "number"), NUMBERS.items(), ids=NUMBERS)
def test_the_number_in_a_name_is_read_as_it_was_written(name, number):
    assert context().number_of(name) == number


def test_children_are_selected_by_labels_that_tell_module_and_custom_resource():
    own = {"app.kubernetes.io/name": "cache", "app.kubernetes.io/instance": "web", "reconcile.dev/module": "cache"}
    assert context().selector() == own
    assert context().selector("front") == {**own, "app.kubernetes.io/component": "front"}
    managed = {"app.kubernetes.io/managed-by": "kubectl-reconcile"}
    assert context().labels() == {**own, **managed}
    assert context().labels("front") == {**context().selector("front"), **managed}
    assert context().ceilings == CEILINGS


SEEN = {
    "its own": (context(), an("Pod", labels=context().labels()), True),
    "of another namespace": (context(), an("Pod", namespace="bar", labels=context().labels()), False),
    "of another custom resource": (context(), an("Pod", labels=context("api").labels()), False),
    "of a custom resource of no namespace": (
        context(namespace=""),
        an("Pod", namespace="bar", labels=context().labels()),
        True,
    ),
}


@pytest.mark.parametrize(("of", "pod", "is_seen"), SEEN.values(), ids=SEEN)
def test_an_object_is_seen_by_the_custom_resource_whose_labels_it_has(of, pod, is_seen):
    assert of.sees(pod) is is_seen


def test_claims_that_an_earlier_custom_resource_of_the_name_left_are_found_and_nobody_elses():
    def left_by(name):
        labels = Context("", "store", an("Store", name)).labels()
        return an("PersistentVolumeClaim", f"{name}-0", labels=labels)

    reads = volumes_left("store")
    assert reads.selector == "reconcile.dev/module=store"
    assert reads.of(an("Store", "a")).matches(left_by("a"))
    assert not reads.of(an("Store", "a")).matches(left_by("b"))
