"""Tables, views and selectors: plain values, judged by a plain dictionary and by the server."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.cluster import store
from kubectl_reconcile.cluster.store import CacheSnapshot, StoredObject, Table, newer
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, ObjectRef
from kubectl_reconcile.core.selector import Selector

WIDGET = GroupVersionKind("example.com", "v1", "Widget")
KIND = GroupKind("example.com", "Widget")


def widget(name: str, *, version: str = "1", labels=None, owner: str = "") -> StoredObject:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": version}
    if labels:
        metadata["labels"] = labels
    if owner:
        metadata["ownerReferences"] = [{"uid": "bystander"}, {"uid": owner, "controller": True}]
    return StoredObject.of({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}, WIDGET)


def ref(name: str) -> ObjectRef:
    return ObjectRef("example.com", "Widget", "shop", name)


STATES = {
    "the very same": ({}, True),
    "a later one": ({"resourceVersion": "2"}, False),
    "of another object of that name": ({"uid": "uid-other"}, False),
    "made by hand, without a version": ({"resourceVersion": None}, False),
}


@pytest.mark.parametrize(("metadata", "expected"), STATES.values(), ids=STATES)
def test_what_was_read_before_counts_only_while_it_is_the_same_state_of_the_same_object(metadata, expected):
    stored = widget("one")
    read = stored.manifest()
    assert stored.is_version_of({**read, "metadata": {**read["metadata"], **metadata}}) is expected


def test_an_object_without_a_version_is_never_taken_for_what_was_read_before():
    stored = widget("one", version="")
    assert not stored.is_version_of(stored.manifest())


def test_of_a_bare_object_nothing_that_was_read_before_counts():
    stored = widget("one")
    assert not stored.bare(()).is_version_of(stored.manifest())


def test_a_stored_object_is_all_of_the_object():
    manifest = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": "one",
            "namespace": "shop",
            "labels": {"a": "ä\u2028"},
            "managedFields": [{"manager": "x"}],
        },
        "spec": {"none": None, "big": 2**60, "half": 0.5, "empty": {}},
    }
    found = StoredObject.of(manifest, WIDGET)
    assert found.manifest() == manifest
    assert (found.ref, found.labels, found.controller_uid, found.uid) == (ref("one"), {"a": "ä\u2028"}, "", "")


VERSIONS = {
    "numbers compare as numbers": ("10", "9", True),
    "equal isn't newer": ("9", "9", False),
    "older isn't newer": ("9", "10", False),
    "opaque ones are newer when different": ("b", "a", True),
    "opaque ones aren't newer when equal": ("a", "a", False),
    "anything is newer than nothing": ("5", "", True),
}


@pytest.mark.parametrize(("version", "than", "expected"), VERSIONS.values(), ids=VERSIONS)
def test_versions_compare(version, than, expected):
    assert newer(version, than) is expected


names = st.sampled_from("abcdefgh")
writes = st.one_of(
    st.tuples(st.just("put"), names, st.sampled_from(["", "blue", "red"]), st.sampled_from(["", "one", "two"])),
    st.tuples(st.just("bare"), names),
    st.tuples(st.just("drop"), names),
    st.tuples(st.just("replace"), st.sets(names)),
    st.tuples(st.just("view")),
)


@given(st.lists(writes, max_size=40))
def test_a_table_is_a_dictionary_and_its_views_never_change(steps):
    """Whatever is written, each view shows what the table held when it was taken, by every way of asking."""
    before, store._MOST_RECENT = store._MOST_RECENT, 3
    noted, store._MOST_NOTED = store._MOST_NOTED, 4
    try:
        table, model, views = Table(), {}, []
        for step in steps:
            match step:
                case ("put", name, colour, owner):
                    stored = widget(name, labels={"colour": colour} if colour else None, owner=owner)
                    table.put(stored)
                    model[stored.ref] = stored
                case ("bare", name):
                    model[ref(name)] = widget(name, version="12").bare(())
                    table.put(model[ref(name)])
                case ("drop", name):
                    table.drop(ref(name))
                    model.pop(ref(name), None)
                case ("replace", chosen):
                    model = {ref(name): widget(name, owner="one") for name in chosen}
                    table.replace(dict(model))
                case _:
                    views.append((CacheSnapshot({KIND: (table.view(),)}), dict(model)))
        views.append((CacheSnapshot({KIND: (table.view(),)}), model))
        for snapshot, expected in views:
            shows(snapshot, expected)
        for (earlier, was), (later, now) in itertools.combinations(views, 2):
            changed = later.changed_since(earlier.moment([KIND]))
            differs = {key for key in {*was, *now} if was.get(key) is not now.get(key)}
            assert changed is None or differs <= set(changed)
            assert was.keys() == now.keys() or changed is None or changed
    finally:
        store._MOST_RECENT, store._MOST_NOTED = before, noted


def shows(snapshot: CacheSnapshot, expected: dict[ObjectRef, StoredObject]) -> None:
    in_order = [expected[key] for key in sorted(expected)]
    assert list(snapshot.refs()) == sorted(expected)
    assert list(snapshot.of_kind(KIND)) == in_order
    assert list(snapshot.of_kind(KIND, "elsewhere")) == []
    assert snapshot.count(whole=True) == sum(stored.is_whole for stored in in_order)
    assert snapshot.count(whole=False) == sum(not stored.is_whole for stored in in_order)
    for name in "abcdefgh":
        assert snapshot.stored(ref(name)) is expected.get(ref(name))
    for owner in ("one", "two", "nobody"):
        assert list(snapshot.owned_by(owner)) == [stored for stored in in_order if stored.controller_uid == owner]
    for colour in ("blue", "red"):
        wanted = [stored for stored in in_order if stored.labels.get("colour") == colour]
        assert list(snapshot.labelled("colour", colour)) == wanted


def test_of_few_changes_it_is_told_which_they_were():
    table = Table()
    for name in "abcdefgh":
        table.put(widget(name))
    before = CacheSnapshot({KIND: (table.view(),)}).moment([KIND])
    table.put(widget("c", version="12"))
    table.drop(ref("d"))
    assert set(CacheSnapshot({KIND: (table.view(),)}).changed_since(before)) == {ref("c"), ref("d")}


@pytest.mark.parametrize(
    "views",
    [lambda table: (table.view(), Table().view()), lambda table: (), lambda table: (Table().view(),)],
    ids=["one more feed", "no feed", "another feed"],
)
def test_under_other_feeds_anything_may_have_changed(views):
    table = Table()
    table.put(widget("a"))
    before = CacheSnapshot({KIND: (table.view(),)}).moment([KIND])
    assert CacheSnapshot({KIND: views(table)}).changed_since(before) is None


def test_a_snapshot_knows_whether_something_is_bare():
    table = Table()
    table.put(widget("a"))
    assert not CacheSnapshot({KIND: (table.view(),)}).has_bare
    table.put(widget("a", version="12").bare(()))
    assert CacheSnapshot({KIND: (table.view(),)}).has_bare
    table.drop(ref("a"))
    assert not CacheSnapshot({KIND: (table.view(),)}).has_bare
    table.replace({ref("a"): widget("a").bare(())})
    assert CacheSnapshot({KIND: (table.view(),)}).has_bare


def test_where_feeds_overlap_the_newest_state_counts_once():
    old, new = widget("one", version="9", labels={"a": "b"}), widget("one", version="10")
    tables = [Table(), Table()]
    tables[0].put(old)
    tables[1].put(new)
    snapshot = CacheSnapshot({KIND: tuple(table.view() for table in tables)})
    assert snapshot.stored(ref("one")) is new
    assert snapshot.of_kind(KIND) == (new,)
    assert (snapshot.count(whole=True), snapshot.count(whole=False)) == (1, 0)
    assert snapshot.labelled("a", "b") == ()


def test_an_empty_snapshot_holds_nothing():
    assert CacheSnapshot().get(ref("one")) is None
    assert CacheSnapshot().refs() == CacheSnapshot().labelled("a", "b") == CacheSnapshot().owned_by("x") == ()


# -- selectors ---------------------------------------------------------------------------------------------------------

SELECTORS = [
    "",
    "app=web",
    "app==web",
    "app = web , tier=front",
    "app!=web",
    "app!=mail",
    "app in (web, mail)",
    "app in (mail)",
    "app notin (mail)",
    "app notin (web,mail)",
    "absent notin (x)",
    "absent!=x",
    "app",
    "!app",
    "absent",
    "!absent",
    "example.com/part-of=x.y_z-1",
    "example.com/part-of",
    "empty=",
    "empty!=",
    "empty",
    "app in (web),!absent,tier",
    "app=web,tier=back",
]


@pytest.mark.parametrize("text", SELECTORS)
async def test_selectors_select_as_the_server_does(client, namespace, config_map, text):
    labels = {"app": "web", "tier": "front", "empty": "", "example.com/part-of": "x.y_z-1"}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await client.create(path, config_map("one", labels=labels))
    items, _ = await client.list(path, labelSelector=text, fieldSelector="metadata.name=one")
    assert Selector.parse(text).matches(labels) is bool(items)


@pytest.mark.parametrize("text", ["=", "a in b", "a in (b", "a=b c", "!a=b", ",", "a,,b", "a=b,", "a b", "a=(b)"])
def test_what_is_no_selector_is_refused(text):
    with pytest.raises(ValueError, match="not a label selector"):
        Selector.parse(text)
