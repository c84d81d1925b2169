"""How fast we ask: what a server takes is found out by few refusals, and remembered."""

import asyncio

import pytest

from kubectl_reconcile.cluster.errors import TooManyRequests
from kubectl_reconcile.engine.apply.flow_control import FlowControl, patiently


@pytest.fixture(autouse=True)
def _brisk(monkeypatch):
    """All times a tenth of what they are."""
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._COOLDOWN_S", 0.05)


class Narrow:
    """A server that takes so many requests at once, and refuses the others for a moment."""

    def __init__(self, takes):
        self.takes, self.busy, self.refused = takes, 0, 0

    async def ask(self):
        if self.busy >= self.takes:
            self.refused += 1
            raise TooManyRequests("too many requests", retry_after_s=0.05)
        self.busy += 1
        try:
            await asyncio.sleep(0.005)
        finally:
            self.busy -= 1


async def all_of(server, pace, count):
    await asyncio.gather(*(patiently(server.ask, pace=pace) for _ in range(count)))


async def test_what_a_narrow_server_takes_is_learnt_and_not_tried_beyond_again_and_again():
    server, pace = Narrow(takes=2), FlowControl()
    await all_of(server, pace, 200)
    assert pace.limit <= 2
    learnt = server.refused
    await all_of(server, pace, 300)
    assert server.refused == learnt


async def test_a_server_that_takes_more_again_is_given_more(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._PROBE_S", 0.05)
    server, pace = Narrow(takes=2), FlowControl()
    await all_of(server, pace, 100)
    server.takes = 100
    await all_of(server, pace, 500)
    assert pace.limit > 4


async def test_a_server_that_never_complains_gets_the_most():
    pace = FlowControl(start=4, most=8)
    await all_of(Narrow(takes=100), pace, 200)
    assert pace.limit == 8
