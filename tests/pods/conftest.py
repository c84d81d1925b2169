"""Fixtures for pods that run as processes."""

import pytest

LONGEST_S = 3000
"""What a test of real programs may take on a machine that is busy with others."""


def pytest_itemcollected(item) -> None:
    if not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(LONGEST_S))
