"""What a feed holds, against a model of the server: a history, a watch that lags, lists, and own writes told late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import NotHeld
from kubectl_reconcile.cluster.feed import EventKind, Feed, FeedContents
from kubectl_reconcile.cluster.store import StoredObject
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.selector import Selector

WIDGET = GroupVersionKind("example.com", "v1", "Widget")
FEED = Feed(Resource(WIDGET, "widgets", namespaced=True), label_selector="ours")


def ref(name: str) -> ObjectRef:
    return ObjectRef("example.com", "Widget", "shop", name)


def widget(name: str, uid: str, version: int, *, ours: bool) -> dict[str, Any]:
    labels = {"labels": {"ours": "yes"}} if ours else {}
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(version), **labels}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}


def is_ours(manifest: dict[str, Any] | None) -> bool:
    return manifest is not None and "labels" in manifest["metadata"]


@dataclass
class Server:
    """Objects with one history; *events* is what a watch of FEED tells, *states* what a list of it shows at each version."""

    version: int = 1
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    states: dict[int, dict[str, dict[str, Any]]] = field(default_factory=lambda: {1: {}})

    def write(self, name: str, *, ours: bool) -> dict[str, Any]:
        before = self.objects.get(name)
        uid = before["metadata"]["uid"] if before else f"uid-{self.version + 1}"
        after = widget(name, uid, self.version + 1, ours=ours)
        self._commit(name, before, after)
        return after

    def delete(self, name: str) -> tuple[str, int]:
        before = self.objects[name]
        self._commit(name, before, None)
        return before["metadata"]["uid"], self.version

    def _commit(self, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        self.version += 1
        self.objects.pop(name, None)
        if after:
            self.objects[name] = after
        if is_ours(after):
            self.events.append((self.version, "MODIFIED" if is_ours(before) else "ADDED", after))
        elif is_ours(before):
            metadata = {**before["metadata"], "resourceVersion": str(self.version)}
            self.events.append((self.version, "DELETED", {**before, "metadata": metadata}))
        self.states[self.version] = {key: found for key, found in self.objects.items() if is_ours(found)}


names = st.sampled_from("ab")
steps = st.one_of(
    st.tuples(st.sampled_from(["write", "own write"]), names, st.booleans()),
    st.tuples(st.sampled_from(["delete", "own delete"]), names),
    st.tuples(st.just("watch"), st.integers(1, 4)),
    st.tuples(st.just("tell"), names),
    st.tuples(st.just("list"), st.integers(0, 3), st.booleans()),
)


def is_same(one: StoredObject | None, other: StoredObject | None) -> bool:
    """Tell whether both are one state of an object, whole or bare."""
    return (one and (one.uid, one.resource_version)) == (other and (other.uid, other.resource_version))


@dataclass
class Story:
    """The server, the feed's contents, how far its watch is, and own writes that nobody has told the feed yet."""

    server: Server = field(default_factory=Server)
    contents: FeedContents = field(default_factory=lambda: FeedContents(FEED, Selector.parse(FEED.label_selector)))
    seen: int = 1
    untold: dict[str, list[Any]] = field(default_factory=lambda: {"a": [], "b": []})
    told: dict[str, tuple[int, dict[str, Any] | None]] = field(default_factory=dict)  # the last own write, by name
    mirror: dict[ObjectRef, StoredObject] = field(default_factory=dict)  # what a subscriber would believe
    kept: frozenset[str] = frozenset("ab")  # names of what is to be held whole
    gained_at: int = 1  # the server's version when that last grew

    def __post_init__(self) -> None:
        self.contents.keeps = lambda stored: stored.ref.name in self.kept

    def take(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("write", name, ours):
                self.server.write(name, ours=ours)
            case ("own write", name, ours):
                self.untold[name].append(self.server.write(name, ours=ours))
            case ("delete" | "own delete" as verb, name) if name in self.server.objects:
                news = self.server.delete(name)
                self.untold[name] += [news] if verb == "own delete" else []
            case ("watch", count):
                self.watch(count)
            case ("tell", name) if self.untold[name]:
                self.tell(name, self.untold[name].pop(0))
            case ("list", lag, forgotten):
                self.list(max(self.seen, self.server.version - lag), forgotten=forgotten)
            case ("share", kept):
                self.gained_at = self.server.version if kept - self.kept else self.gained_at
                self.kept = kept
            case ("slim",):
                self.contents.slim()
            case ("complete", lag):
                self.complete(max(self.gained_at, self.server.version - lag))

    def complete(self, version: int) -> None:
        """List beside the watch, as was asked for after the share grew; the watch may be further by the time it is answered."""
        held = map(self.contents.held, self.stored_at(version))
        self.believe(self.contents.complete({stored.ref: stored for stored in held}))

    def stored_at(self, version: int) -> list[StoredObject]:
        return [StoredObject.of(manifest, WIDGET) for manifest in self.server.states[version].values()]

    def watch(self, count: int) -> None:
        for version, type_, manifest in [event for event in self.server.events if event[0] > self.seen][:count]:
            self.believe(self.contents.absorb(type_, manifest))
            self.seen = version

    def tell(self, name: str, news: Any) -> None:
        if isinstance(news, tuple):
            uid, version = news
            self.told[name] = version, None
            self.believe(self.contents.deleted(ref(name), uid))
        else:
            self.told[name] = int(news["metadata"]["resourceVersion"]), news if is_ours(news) else None
            self.believe(self.contents.wrote(StoredObject.of(news, WIDGET)))

    def list(self, version: int, *, forgotten: bool) -> None:
        if forgotten:
            self.contents.unload()
        found = map(self.contents.held, self.stored_at(version))
        self.believe(self.contents.adopt({stored.ref: stored for stored in found}, str(version)))
        self.seen = version

    def believe(self, changes: Any) -> None:
        for change in changes:
            assert is_same(self.mirror.get(change.ref), change.old)
            assert (change.kind is EventKind.DELETED) == (change.new is None)
            if change.new:
                self.mirror[change.ref] = change.new
            else:
                del self.mirror[change.ref]

    def check(self) -> None:
        """What is shown of an object is what we wrote last, or what the server says of a time after that."""
        for name in "ab":
            shown = self.contents.table.get(ref(name))
            assert is_same(self.mirror.get(ref(name)), shown)
            version, ours = self.told.get(name, (0, None))
            expected = ours if version > self.seen else self.server.states[self.seen].get(name)
            if shown is None or expected is None or shown.is_whole:
                assert (shown.manifest() if shown else None) == expected
            else:
                assert shown.resource_version == expected["metadata"]["resourceVersion"]
                assert shown.labels == {"ours": "yes"}


@given(st.lists(steps, max_size=30))
def test_what_is_shown_is_the_last_own_write_or_what_the_server_says_later(history):
    story = Story()
    story.list(1, forgotten=False)
    for step in history:
        story.take(step)
        story.check()
    for name, pending in story.untold.items():
        for news in pending:
            story.tell(name, news)
            story.check()
    story.watch(len(story.server.events))
    story.check()
    shown = {stored.ref.name: stored.manifest() for stored in story.contents.table}
    assert shown == story.server.states[story.server.version]


shares = st.frozensets(st.sampled_from("ab"))


@given(
    st.lists(steps | st.tuples(st.just("share"), shares) | st.just(("slim",)), max_size=30),
    st.integers(0, 3),
    st.data(),
)
def test_what_is_kept_is_whole_once_it_was_read_again_and_nothing_that_is_shown_differs_for_it(history, lag, data):
    story = Story()
    story.list(1, forgotten=False)
    for step in history:
        story.take(step)
        story.check()
    story.take(("complete", lag))
    if data.draw(st.booleans()):
        story.take(("slim",))
        assert not [each for each in story.contents.table if each.is_whole and each.ref.name not in story.kept]
    story.watch(len(story.server.events))
    bare = {stored.ref.name for stored in story.contents.table if not stored.is_whole}
    assert not bare & story.kept
    assert {stored.ref.name for stored in story.contents.table} >= story.server.states[story.server.version].keys()


def test_a_bare_object_says_of_which_object_nothing_is_held():
    contents = FeedContents(FEED, Selector.parse("ours"), keeps=lambda _: False)
    (change,) = contents.absorb("ADDED", widget("one", "uid-1", 1, ours=True))
    with pytest.raises(NotHeld, match=r"Widget.example.com shop/one isn't cached here"):
        change.new.manifest()


def test_opaque_versions_still_notice_what_vanished():
    contents = FeedContents(FEED, Selector.parse("ours"))
    one = widget("one", "uid-1", 1, ours=True)
    one["metadata"]["resourceVersion"] = "x1"
    stored = StoredObject.of(one, WIDGET)
    assert len(contents.adopt({stored.ref: stored}, "list-1")) == 1
    assert [change.kind for change in contents.adopt({}, "list-2")] == [EventKind.DELETED]
    contents.adopt({stored.ref: stored}, "list-3")
    assert [
        change.kind
        for change in contents.absorb("DELETED", one | {"metadata": one["metadata"] | {"resourceVersion": "x2"}})
    ] == [EventKind.DELETED]


def test_what_is_being_deleted_without_a_word_is_doubted_ever_more_seldom():
    contents = FeedContents(FEED, Selector.parse("ours"))
    one = widget("one", "uid-1", 1, ours=True)
    contents.absorb("ADDED", one)
    assert not any(contents.doubts() for _ in range(70))
    one["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "2"}
    contents.absorb("MODIFIED", one)
    assert [each for each in range(1, 131) if contents.doubts()] == [2, 4, 8, 16, 32, 64, 96, 128]
    one["metadata"]["resourceVersion"] = "3"
    contents.absorb("MODIFIED", one)
    assert [each for each in range(1, 5) if contents.doubts()] == [2, 4]
    contents.absorb("DELETED", one)
    assert not any(contents.doubts() for _ in range(4))
    assert contents.silent == {}


def test_what_is_remembered_of_the_gone_is_bounded():
    contents = FeedContents(FEED, Selector.parse("ours"))
    for number in range(10_500):
        contents.deleted(ref("one"), f"uid-{number}")
    assert len(contents.gone) == 10_000
