"""Where links lead within a tree, and how far they are followed."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.tree import resolved

WAYS = {
    "no link": ({}, "a/b", "a/b"),
    "a link beside": ({"a/b": "../c"}, "a/b/d", "c/d"),
    "one link twice on a way": ({"l": "a"}, "l/../l/x", "a/x"),
    "a link out of the tree": ({"l": "../x"}, "l", None),
    "a link to the root of the machine": ({"l": "/etc"}, "l", None),
    "round in circles": ({"a": "b", "b": "a"}, "a", None),
    "through itself": ({"a": "a/x"}, "a", None),
    "forty links": ({f"l{n}": f"l{n + 1}" for n in range(40)}, "l0", "l40"),
    "forty-one links": ({f"l{n}": f"l{n + 1}" for n in range(41)}, "l0", None),
}


@pytest.mark.parametrize(("links", "path", "there"), WAYS.values(), ids=WAYS)
def test_links_lead_as_far_as_they_do_in_linux(links, path, there):
    assert resolved(path, links.get) == there


def test_links_that_lead_a_long_way_round_are_left_soon():
    links = {f"l{n}": f"{'a/../' * 800}l{n + 1}" for n in range(40)}
    looks = []

    def look(place):
        looks.append(place)
        return links.get(place)

    assert resolved("l0", look) is None
    assert len(looks) <= 4096
