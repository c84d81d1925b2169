"""How a Sync is taken back to what it said of its chart, and forward again: patches, on plain values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.engine.commands.suspend_resume import replacing

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
