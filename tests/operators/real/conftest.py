"""Fixtures for operators whose databases run in pods, and the order of their tests."""

import os

import pytest

from tests.real_pods import _real_pods, real  # noqa: F401 - fixtures

LONGEST_S = 3000
"""What a test of real programs may take on a machine that is busy with others."""

WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def pytest_itemcollected(item) -> None:
    if not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(LONGEST_S))


def pytest_collection_modifyitems(items) -> None:
    """Let the longest begin first, so that none of them runs alone at the end. Workers take two tests at once: short ones stand between."""
    longest = sorted(filter(minutes, items), key=minutes, reverse=True)
    others = [item for item in items if not minutes(item)]
    first = [item for pair in zip(longest, others, strict=False) for item in pair][: 2 * WORKERS]
    items[:] = [*first, *(item for item in (*longest, *others) if item not in first)]


def minutes(item) -> int:
    """How long a test takes, by its own account; 0 where it says nothing, since it is short."""
    mark = item.get_closest_marker("minutes")
    return mark.args[0] if mark else 0
