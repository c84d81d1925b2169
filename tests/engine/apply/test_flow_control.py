"""How fast we ask: what a server takes is found out by few refusals, and remembered."""

import asyncio

import pytest

from kubectl_reconcile.cluster.errors import Forbidden, TooManyRequests, Unreachable
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


class Starting:
    """A server that is away, then knows nobody's rights for so many requests, then answers."""

    def __init__(self, refusals):
        self.asked, self.refusals = 0, refusals

    async def ask(self):
        self.asked += 1
        if self.asked == 1:
            raise Unreachable("https://127.0.0.1", "connection refused")
        if self.asked <= self.refusals + 1:
            raise Forbidden("you may not", status=403, retry_after_s=0.001)
        return "done"


async def test_a_server_that_comes_back_is_waited_for_until_it_knows_who_may_do_what():
    assert await patiently(Starting(refusals=50).ask, pace=FlowControl()) == "done"


async def test_who_may_not_is_told_so_soon_after_an_outage_too(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._RECOVERY_S", 0.05)
    with pytest.raises(Forbidden):
        await patiently(Starting(refusals=10**9).ask, pace=FlowControl())


async def test_who_may_not_is_told_so_at_once_by_a_server_that_was_never_away():
    server = Starting(refusals=10**9)
    server.asked = 1
    with pytest.raises(Forbidden):
        await patiently(server.ask, pace=FlowControl())
    assert server.asked == 2
