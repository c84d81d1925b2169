"""Passes that wait for what is outside the cluster: they lend their workers after a moment, and a namespace has so many and no more."""

import asyncio
from contextlib import ExitStack, contextmanager

from kubectl_reconcile.engine.daemon import cr_controller
from kubectl_reconcile.engine.daemon.cr_controller import MOST_OF_A_NAMESPACE, OutsidePasses
from tests.waiting import steadily_meanwhile


class Workers:
    """How many workers are lent, and were so far."""

    def __init__(self) -> None:
        self.now = self.ever = 0

    @contextmanager
    def lend(self):
        self.now += 1
        self.ever += 1
        try:
            yield
        finally:
            self.now -= 1


async def test_a_pass_lends_its_worker_once_it_has_lasted_for_a_moment(monkeypatch):
    monkeypatch.setattr(cr_controller, "_MOMENT_S", 0.0)
    workers = Workers()
    with OutsidePasses(workers.lend).begun("shop"):
        assert workers.now == 0
        while not workers.now:
            await asyncio.sleep(0)
    assert (workers.now, workers.ever) == (0, 1)


async def test_a_pass_that_is_over_before_lends_nothing(monkeypatch):
    monkeypatch.setattr(cr_controller, "_MOMENT_S", 0.001)
    workers = Workers()
    with OutsidePasses(workers.lend).begun("shop"):
        pass
    await steadily_meanwhile(lambda: workers.ever == 0, "nothing was lent", for_s=0.05)


async def test_a_namespace_that_has_as_many_as_it_may_leaves_room_for_others():
    passes = OutsidePasses(Workers().lend)
    with ExitStack() as stack:
        for _ in range(MOST_OF_A_NAMESPACE):
            assert passes.has_room("shop")
            stack.enter_context(passes.begun("shop"))
        assert not passes.has_room("shop")
        assert passes.has_room("others")
    assert passes.has_room("shop")


async def test_many_namespaces_have_a_bound_together():
    passes, begun = OutsidePasses(Workers().lend), 0
    with ExitStack() as stack:
        while passes.has_room(f"shop-{begun}"):
            stack.enter_context(passes.begun(f"shop-{begun}"))
            begun += 1
    assert begun == 10 * MOST_OF_A_NAMESPACE
