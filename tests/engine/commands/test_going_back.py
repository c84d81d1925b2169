"""How a Sync is taken back to what it said of its chart, and forward again: patches, on plain values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.source import chart_settings
from kubectl_reconcile.engine.commands.suspend_resume import _pinned, _resumed, replacing

leaves = st.one_of(st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))
settings = st.recursive(
    st.dictionaries(st.sampled_from("abc"), leaves, max_size=3),
    lambda below: st.dictionaries(st.sampled_from("abc"), st.one_of(leaves, below), max_size=3),
    max_leaves=8,
)


def patched(target: Any, patch: Any) -> Any:
    """A JSON merge patch, as RFC 7396 has it."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = patched(found.get(name), value)
    return found


@given(settings, settings)
def test_the_patch_leaves_nothing_of_what_was_there(before, after):
    assert patched(before, replacing(before, after)) == after


PIN = {"repository": "https://charts.example.com", "name": "web"}
OLD, NEW = ({**PIN, "version": version} for version in ("1.2.3", "1.3.0"))
WRITTEN = {
    "where it belongs": {"chart": NEW, "helm": {"values": {"size": 1}}},
    "where earlier versions had it": {"helm": {"chart": NEW, "values": {"size": 1}}},
    "with nothing beside it": {"chart": NEW},
    "nowhere": {"helm": {"lookup": "Cluster"}},
}
BACK = {
    "another version": {"chart": OLD, "values": {"size": 1}},
    "another version with nothing beside it": {"chart": OLD},
    "no chart": {"values": {"size": 2}},
    "nothing": {},
}


@pytest.mark.parametrize("settings", BACK.values(), ids=BACK)
@pytest.mark.parametrize("source", WRITTEN.values(), ids=WRITTEN)
def test_a_chart_goes_back_where_the_sync_has_it_and_forward_again(source, settings):
    live = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": {"git": {"branch": "main"}, **source}}}
    pinned = patched(live, _pinned(live, "c0ffee", settings))
    assert chart_settings(pinned) == settings
    assert pinned["spec"]["source"]["git"] == {"commit": "c0ffee"}
    assert "chart" not in pinned["spec"]["source"].get("helm", {}) or "chart" in source.get("helm", {})
    resumed = patched(pinned, _resumed(pinned))
    assert chart_settings(resumed) == chart_settings(live)
    assert resumed["spec"]["source"]["git"] == {"branch": "main"}
