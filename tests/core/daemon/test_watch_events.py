"""What a watch event means, and whose an object is."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.annotations import (
    APPROVED_PLAN,
    MEMBERS_FROM,
    PUSHED_AT,
    RESUME_REQUESTED_AT,
    SYNC_REQUESTED_AT,
)
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.daemon.watch_events import (
    CrdFacts,
    ItemIndex,
    crd_facts,
    established_kinds,
    is_asked,
    is_newly_set,
    is_status_alone,
    kind_of_crd,
    sync_events,
    sync_priority,
)
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.module_api import Outcome, Reads, Select, module


def sync(*, generation=1, status=None, deleted=False, **annotations):
    metadata = {"name": "shop", "namespace": "shop", "generation": generation, "annotations": annotations}
    metadata |= {"deletionTimestamp": "now"} if deleted else {}
    return {"metadata": metadata, "spec": {}, "status": status or {}}


# --- Syncs ---

ASKED = sync(**{SYNC_REQUESTED_AT: "noon"})
PRIORITIES = {
    "a new one": (None, sync(), Priority.PUSH),
    "another spec": (sync(), sync(generation=2), Priority.PUSH),
    "our own status": (sync(), sync(status={"summary": {"total": 1}}), None),
    "somebody asks": (sync(), ASKED, Priority.ASKED),
    "somebody was answered": (ASKED, {**ASKED, "status": {"lastHandledSyncAt": "noon"}}, None),
    "it is being deleted": (sync(), sync(deleted=True), Priority.ASKED),
    "it was being deleted when we came": (None, sync(deleted=True), Priority.ASKED),
    "our own status while it is being deleted": (
        sync(deleted=True),
        sync(deleted=True, status={"summary": {"total": 1}}),
        None,
    ),
    "somebody asks while it is being deleted": (sync(deleted=True), sync(deleted=True, note="x"), Priority.ASKED),
}


@pytest.mark.parametrize(("before", "after", "priority"), PRIORITIES.values(), ids=PRIORITIES)
def test_a_sync_is_looked_at_for_what_others_did(before, after, priority):
    assert sync_priority(before, after) is priority


def test_a_request_stands_until_it_is_answered():
    assert is_asked(ASKED)
    assert is_asked({**ASKED, "status": {"lastHandledSyncAt": "morning"}})
    assert not is_asked({**ASKED, "status": {"lastHandledSyncAt": "noon"}})
    assert not is_asked(sync())


NEWS = {
    "a push": ({PUSHED_AT: "1"}, [on.Pushed()]),
    "an approval": ({APPROVED_PLAN: "abc"}, [on.Approved()]),
    "whose objects it takes over": ({MEMBERS_FROM: "shop/old"}, [on.Approved()]),
    "both": ({PUSHED_AT: "1", APPROVED_PLAN: "abc"}, [on.Approved(), on.Pushed()]),
    "something else": ({"team": "web"}, []),
}


@pytest.mark.parametrize(("annotations", "events"), NEWS.values(), ids=NEWS)
def test_an_annotation_is_news_once(annotations, events):
    before, after = sync(), sync(**annotations)
    assert list(sync_events(before, after)) == events
    assert list(sync_events(after, after)) == []
    assert list(sync_events(None, after)) == [], "whoever starts looks at everything anyway"
    assert list(sync_events(after, before)) == [], "taking it away asks for nothing"


def test_an_annotation_counts_by_the_name_that_it_had_before():
    former = sync(**{"reconcile.dev/resumeRequestedAt": "noon"})
    assert is_newly_set(RESUME_REQUESTED_AT, sync(), former)
    assert not is_newly_set(RESUME_REQUESTED_AT, former, former)


# --- CRDs ---


def crd(*, established="True", generation=1, **metadata):
    conditions = [{"type": "Established", "status": established}] if established else []
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": True}, {"name": "v0", "served": False}]
    return {
        "metadata": {"name": "widgets.example.com", "generation": generation, **metadata},
        "spec": {"group": "example.com", "names": {"kind": "Widget"}, "versions": versions},
        "status": {"conditions": conditions},
    }


def test_a_crd_promises_the_versions_that_it_serves_once_it_is_established():
    promised = (GroupVersionKind("example.com", "v1", "Widget"), GroupVersionKind("example.com", "v2", "Widget"))
    assert established_kinds(crd()) == promised
    for none in (None, crd(established="False"), crd(established=""), crd(deletionTimestamp="now")):
        assert established_kinds(none) == ()


def test_of_a_crd_only_its_spec_and_whether_it_is_served_are_news():
    assert crd_facts(crd()) == CrdFacts(1, "True")
    noted = {**crd(), "status": {**crd()["status"], "storedVersions": ["v1"]}}
    assert crd_facts(noted) == crd_facts(crd())
    others = (None, crd(generation=2), crd(established="False"), crd(established=""))
    assert len({crd_facts(each) for each in (crd(), *others)}) == 5


def test_a_crd_without_a_status_is_read_all_the_same():
    bare = {**crd(), "status": None}
    assert (crd_facts(bare), established_kinds(bare)) == (CrdFacts(1, ""), ())


def test_a_crd_says_which_kind_it_defines_whether_or_not_that_is_served():
    assert kind_of_crd(crd(established="")) == GroupKind("example.com", "Widget")
    assert kind_of_crd({}) == GroupKind("", "")


# --- whose an object is ---


@module(api="example.com/v1", kind="Widget", owns=["v1/ConfigMap"], name="widgets")
class Widgets:
    def reconcile(self, cr, owned, facts, ctx):
        return Outcome([])


@module(
    api="example.com/v1", kind="Reader", owns=["v1/ConfigMap"], name="readers",
    reads=[Reads("v1", "Pod", of=lambda cr: Select({"app": cr["spec"]["app"]}))],
)  # fmt: skip
class Readers:
    def reconcile(self, cr, owned, facts, ctx):
        return Outcome([])


def ref(kind, name, namespace="shop", group="example.com"):
    return ObjectRef(group, kind, namespace, name)


def cr(kind, name, **spec):
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


@pytest.fixture
def index():
    """Two CRs with modules, one below the other, and a Sync."""
    found = ItemIndex("shop")
    found.sync_came(sync())
    found.cr_came(ref("Widget", "top"), "uid-top", Widgets, cr("Widget", "top"))
    found.cr_came(ref("Reader", "below"), "uid-below", Readers, cr("Reader", "below", app="web"))
    return found


SET = {PART_OF: set_id_of(Sync.of(sync()))}
SHOP = ObjectRef(SYNC.group, SYNC.kind, "shop", "shop")


def test_a_member_is_its_syncs(index):
    assert index.sync_of(SET) == SHOP
    assert index.sync_of({PART_OF: "applyset-another-v1"}) is None
    assert index.sync_of({}) is None
    assert len(index) == 1
    index.sync_came({**sync(), "spec": {"drift": "Nonsense"}})
    assert index.sync_of(SET) == SHOP, "a Sync that can't be meant keeps its members"


def test_crs_of_other_namespaces_are_looked_after_only_as_members(index):
    assert index.looks_after(ref("Widget", "any"), {})
    assert not index.looks_after(ref("Widget", "any", "stall"), {})
    assert index.looks_after(ref("Widget", "any", "stall"), SET)
    assert ItemIndex().looks_after(ref("Widget", "any", "stall"), {})


def test_a_child_wakes_the_cr_that_its_labels_or_its_owner_name(index):
    child = ref("ConfigMap", "x", group="")
    labels = {"reconcile.dev/module": "widgets", "app.kubernetes.io/instance": "top"}
    assert index.owners_of(child, labels, "") == {ref("Widget", "top")}
    assert index.owners_of(child, {}, "uid-below") == {ref("Reader", "below")}
    assert index.owners_of(child, labels, "uid-below") == {ref("Widget", "top"), ref("Reader", "below")}
    assert index.owners_of(child, {}, "uid-strange") == frozenset()
    assert index.owners_of(ref("ConfigMap", "x", "stall", ""), labels, "") == frozenset()
    index.cr_went(ref("Widget", "top"), "uid-top", Widgets, cr("Widget", "top"))
    assert index.owners_of(child, labels, "uid-top") == frozenset()


def test_an_object_wakes_the_crs_whose_modules_read_it(index):
    lives = {ref("Reader", "below"): cr("Reader", "below", app="web")}

    def readers(of, labels):
        pod = {"metadata": {"name": of.name, "labels": labels}}
        return list(index.readers_of(of, lambda: pod, [Widgets, Readers], lives.get))

    pod = ObjectRef("", "Pod", "shop", "x")
    assert readers(pod, {"app": "web"}) == [ref("Reader", "below")]
    assert readers(pod, {"app": "db"}) == []
    assert readers(pod._replace(namespace="stall"), {"app": "web"}) == []
    assert readers(pod._replace(kind="Service"), {"app": "web"}) == []
    lives.clear()
    assert readers(pod, {"app": "web"}) == []


def test_an_object_wakes_the_crs_whose_modules_read_all_of_its_namespace(index):
    reads = [Reads("v1", "Pod", whole_namespace=True), Reads("example.com/v1", "Scan", whole_namespace=True)]
    scans = module(api="example.com/v1", kind="Scan", owns=[], reads=reads)(lambda *_: Outcome())
    for name in ("one", "other"):
        index.cr_came(ref("Scan", name), f"uid-{name}", scans, cr("Scan", name))

    def readers(of):
        return [each.name for each in index.reading_all(of, [Widgets, Readers, scans])]

    pod = ObjectRef("", "Pod", "shop", "x")
    assert readers(pod) == ["one", "other"]
    assert readers(pod._replace(namespace="stall")) == readers(pod._replace(kind="Service")) == []
    assert readers(ref("Scan", "one")) == ["other"], "what it does itself wakes nobody but others"
    index.cr_went(ref("Scan", "one"), "uid-one", scans, cr("Scan", "one"))
    assert readers(pod) == ["other"]


def test_a_nested_cr_goes_with_the_one_on_top_of_it(index):
    owners = {ref("Reader", "below"): "uid-top"}
    top = index.top_of(ref("Reader", "below"), lambda each: owners.get(each, ""))
    assert top == ref("Widget", "top")
    assert index.top_of(SHOP, lambda each: owners.get(each, "")) == SHOP
    circle = {ref("Reader", "below"): "uid-top", ref("Widget", "top"): "uid-below"}
    assert index.top_of(ref("Reader", "below"), lambda each: circle[each]) in circle


# --- statuses ---------------------------------------------------------------------------------------------------------------


def member(colour="red", ready=1, *, version="1", when="noon", by="status", **metadata):
    managers = [
        {"manager": "kubectl-reconcile", "operation": "Apply", "time": "morning"},
        {"manager": "controller", "operation": "Update", "subresource": by, "time": when},
    ]
    known = {"name": "web", "resourceVersion": version, "managedFields": managers, **metadata}
    return {"kind": "Deployment", "metadata": known, "spec": {"colour": colour}, "status": {"ready": ready}}


STATUSES = {
    "another status": (member(), member(ready=0, version="2", when="one"), True),
    "another spec": (member(), member(colour="blue", version="2"), False),
    "another spec besides": (member(), member(colour="blue", ready=0), False),
    "another generation": (member(generation=1), member(ready=0, generation=2), False),
    "a label": (member(), member(ready=0, labels={"a": "b"}), False),
    "a status of a kind without that subresource": (member(by=""), member(ready=0, by="", when="one"), False),
    "nothing": (member(), member(version="2"), False),
    "new": (None, member(), False),
    "gone": (member(), None, False),
}


@pytest.mark.parametrize(("before", "after", "alone"), STATUSES.values(), ids=STATUSES)
def test_a_status_that_changes_alone_is_nobodys_drift(before, after, alone):
    assert is_status_alone(before, after) is alone
