"""Charges each test with what it leaves open: ``pytest -p tests.leaks -W error::ResourceWarning``.

A socket or a file that nobody closed is found when garbage is collected, some time in the midst of another test.
With this plugin garbage is collected after each test, which is too slow for every run.
"""

from __future__ import annotations

import gc

import pytest


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    gc.collect()
