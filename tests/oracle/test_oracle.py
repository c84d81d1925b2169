"""A small run of the oracle: fixed seeds, so that a failure stays one."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracle.__main__ import run

SEEDS = ("one", "two")


@pytest.fixture
def quiet_sandbox(own_sandbox):
    """A control plane without controllers: nothing changes an object but its story."""
    flags = {"kube-apiserver": ("--disable-admission-plugins=ServiceAccount",)}
    return own_sandbox(components=("etcd", "kube-apiserver"), flags=flags)


async def test_three_way_says_what_the_server_does(quiet_sandbox):
    for seed in SEEDS:
        tally = await run(150, seed, 6, str(quiet_sandbox.kubeconfig))
        assert tally.mismatches == []
        assert tally.false_same == 0
        assert not tally.is_too_unsure
        assert tally.questions >= 150
