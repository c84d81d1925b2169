"""Which Syncs wait for which: what waits for itself is named, and nothing else is."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.daemon.dependencies import DependencyGraph
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id


def ref(name):
    return ObjectRef("reconcile.dev", "Sync", "shop", name)


def sync(name, *names, above="", wait=True):
    labels = {PART_OF: applyset_id(ref(above))} if above else {}
    spec = {"dependsOn": [{"name": each} for each in names], "health": {"wait": wait}}
    return {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": name, "namespace": "shop", "generation": 1, "labels": labels},
        "spec": {"source": {"git": {"url": "https://git.example.com/shop"}}, **spec},
    }


def graph(*syncs, asks=True):
    """Return a graph of these, of which those that are marked as members are asked for, unless nobody *asks*."""
    found, sets = DependencyGraph(), {}
    for each in syncs:
        found.came(each)
        if (above := each["metadata"]["labels"].get(PART_OF)) and asks:
            parent = next(other for other in syncs if applyset_id(ObjectRef.of(other)) == above)
            sets.setdefault(ObjectRef.of(parent), set()).add(ObjectRef.of(each))
    for parent, members in sets.items():
        found.asks_for(parent, members)
    return found


CYCLES = {
    "on itself": ([sync("a", "a")], "Sync shop/a depends on Sync shop/a"),
    "on one another": (
        [sync("a", "b"), sync("b", "a")],
        "Sync shop/a depends on Sync shop/b, which depends on Sync shop/a",
    ),
    "by way of a third": (
        [sync("a", "b"), sync("b", "c"), sync("c", "a")],
        "Sync shop/a depends on Sync shop/b, which depends on Sync shop/c, which depends on Sync shop/a",
    ),
    "a member on what it is a member of": (
        [sync("a", "apps", above="apps"), sync("apps")],
        "Sync shop/a depends on Sync shop/apps, which has the member Sync shop/a",
    ),
    "on a member of its own, which it would have to make first": (
        [sync("a", "below"), sync("below", above="a")],
        "Sync shop/a depends on Sync shop/below, which is a member of Sync shop/a",
    ),
}


@pytest.mark.parametrize(("syncs", "told"), CYCLES.values(), ids=CYCLES)
def test_a_sync_that_waits_for_itself_says_by_way_of_whom(syncs, told):
    assert graph(*syncs).cycle(ref("a")) == f"waits for itself: {told}"


FINE = {
    "nothing known": [],
    "one after the other": [sync("a", "b"), sync("b")],
    "on one that nobody has made": [sync("a", "b")],
    "twice by different ways": [sync("a", "b", "c"), sync("b", "d"), sync("c", "d"), sync("d")],
    "a set with members": [sync("apps"), sync("a", above="apps"), sync("b", "a", above="apps")],
    "a member on a set that doesn't wait for its health": [sync("a", "apps", above="apps"), sync("apps", wait=False)],
    "a cycle of others": [sync("a", "b"), sync("b", "c"), sync("c", "b")],
}


def test_who_depends_on_a_sync_is_known_until_they_do_no_more():
    known = graph(sync("a", "base"), sync("b", "base", "other"), sync("base"))
    assert known.waiting_for(ref("base")) == [ref("a"), ref("b")]
    known.came(sync("b", "other"))
    known.went(ref("a"))
    assert (known.waiting_for(ref("base")), known.waiting_for(ref("other"))) == ([], [ref("b")])


@pytest.mark.parametrize("syncs", FINE.values(), ids=FINE)
def test_who_waits_for_others_alone_is_in_no_cycle(syncs):
    assert graph(*syncs).cycle(ref("a")) == ""


def test_a_cycle_ends_with_the_spec_that_makes_it_or_with_one_of_its_syncs():
    found = graph(sync("a", "b"), sync("b", "a"))
    found.came(sync("b"))
    assert found.cycle(ref("a")) == ""
    found.came(sync("b", "a"))
    assert found.cycle(ref("a"))
    found.went(ref("b"))
    assert found.cycle(ref("a")) == ""


def test_a_sync_that_can_not_be_meant_so_waits_for_nobody():
    found = graph(sync("a", "b"), sync("b", "a"))
    found.came({**sync("b", "a"), "spec": {"dependsOn": 3}})
    assert found.cycle(ref("a")) == ""


FORGED = {
    "a member of nobody's asking": [sync("q", "p"), sync("p"), sync("x", "q", above="p")],
    "a member that says it is one of who depends on it": [sync("q", "p"), sync("p", above="q")],
}


@pytest.mark.parametrize("syncs", FORGED.values(), ids=FORGED)
def test_a_mark_alone_makes_nobody_a_member(syncs):
    assert not any(graph(*syncs, asks=False).cycle(ref(name)) for name in "pqx")


def test_who_is_asked_for_and_has_another_s_mark_is_no_member():
    known = graph(sync("q", "p"), sync("p"), sync("x", "q"))
    known.asks_for(ref("p"), [ref("x")])
    assert not known.cycle(ref("q")), "p asks for x, and may not have it"
    known.came(sync("x", "q", above="p"))
    assert known.cycle(ref("q"))
    known.asks_for(ref("p"), [])
    assert not known.cycle(ref("q"))
