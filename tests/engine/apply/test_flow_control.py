"""How fast we ask: what a server takes is found out by few refusals, and remembered."""

import asyncio

import pytest

from kubectl_reconcile.cluster.errors import Forbidden, TooManyRequests, Unreachable
from kubectl_reconcile.engine.apply.flow_control import LATE, FlowControl, patiently
from tests.waiting import steadily_meanwhile, until


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
            await asyncio.sleep(0.005)  # what an answer takes
        finally:
            self.busy -= 1


async def all_of(server, pace, count):
    await asyncio.gather(*(patiently(server.ask, pace=pace) for _ in range(count)))


async def test_what_a_narrow_server_takes_is_learnt_and_not_tried_beyond_again_and_again(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._PROBE_S", 1000.0)
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


# --- bulk ---


class Held:
    """A server that answers when it is told to; *begun* are the requests that it has got, in order."""

    def __init__(self):
        self.begun, self.answers = [], {}

    async def ask(self, name, pace):
        async with pace.place():
            self.begun.append(name)
            self.answers[name] = asyncio.get_running_loop().create_future()
            await self.answers[name]
            del self.answers[name]

    def answer(self, name):
        self.answers[name].set_result(None)

    async def asked(self, names, pace):
        """Have these asked for, and return the tasks once each has begun or waits."""
        tasks = [asyncio.create_task(self.ask(name, pace)) for name in names]
        await turns()
        return tasks

    async def answer_all(self, tasks):
        async with asyncio.timeout(60):
            while not all(task.done() for task in tasks):
                for answer in self.answers.values():
                    answer.done() or answer.set_result(None)
                await turns()


async def turns():
    for _ in range(5):
        await asyncio.sleep(0)


def bulk_names(count):
    return [f"bulk-{number}" for number in range(count)]


async def test_bulk_that_nobody_else_disturbs_has_all_places():
    server, pace = Held(), FlowControl(start=8, most=8)
    tasks = await server.asked(bulk_names(100), pace.bulk)
    assert len(server.begun) == 8
    await server.answer_all(tasks)


async def test_a_single_request_passes_all_the_bulk_that_waits():
    server, pace = Held(), FlowControl(start=8, most=8)
    bulk = await server.asked(bulk_names(100), pace.bulk)
    single = await server.asked(["single"], pace)
    server.answer("bulk-0")
    await turns()
    assert server.begun[8:] == ["single"]
    await server.answer_all([*bulk, *single])


@pytest.mark.parametrize(("places", "of_bulk"), [(64, 4), (32, 2), (8, 2), (2, 1)])
async def test_while_others_ask_bulk_has_few_of_the_places(places, of_bulk):
    server, pace = Held(), FlowControl(start=places, most=places)
    single = await server.asked(["single"], pace)
    bulk = await server.asked(bulk_names(100), pace.bulk)
    assert server.begun == ["single", *bulk_names(of_bulk)]
    await server.answer_all([*single, *bulk])


async def test_bulk_has_all_places_again_once_others_have_been_silent(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._OTHERS_S", 0.0)
    server, pace = Held(), FlowControl(start=8, most=8)
    single = await server.asked(["single"], pace)
    bulk = await server.asked(bulk_names(100), pace.bulk)
    server.answer("single")
    await turns()
    assert len(server.begun) - len(single) == 8
    await server.answer_all([*single, *bulk])


async def test_one_place_is_enough_for_bulk_and_others_to_come_to_an_end():
    server, pace = Held(), FlowControl(start=1, most=1)
    bulk = await server.asked(bulk_names(20), pace.bulk)
    single = await server.asked(["one", "two"], pace)
    await server.answer_all([*bulk, *single])
    assert server.begun[:3] == ["bulk-0", "one", "two"]


async def test_who_asks_again_and_again_passes_nobody_who_waits():
    """A worker that goes from one object to the next at once took the place that it had given up, before any who waited."""
    pace, begun = FlowControl(start=1, most=1), []

    async def work(pace, names):
        for name in names:
            async with pace.place():
                begun.append(name)
                await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(work(pace.bulk, bulk_names(50)), work(pace, ["one", "two"]), work(pace, ["three"]))
    assert max(begun.index(each) for each in ("one", "two", "three")) <= 5


async def test_a_place_that_was_handed_on_to_who_gives_up_goes_to_the_next():
    pace, server = FlowControl(start=1, most=1), Held()
    tasks = await server.asked(["first", "second", "third"], pace)
    server.answer("first")
    await asyncio.sleep(0)  # it is over, and its place is the second's, who doesn't know yet
    tasks[1].cancel()
    await turns()
    assert server.begun in (["first", "third"], ["first", "second", "third"])
    await server.answer_all(tasks)


async def test_who_gives_up_waiting_holds_nobody_up():
    server, pace = Held(), FlowControl(start=1, most=1)
    bulk = await server.asked(bulk_names(5), pace.bulk)
    for task in bulk[1:4]:
        task.cancel()
    await turns()
    server.answer("bulk-0")
    await turns()
    assert server.begun == ["bulk-0", "bulk-4"]
    await server.answer_all(bulk)


# --- tenants ---


@pytest.fixture
def moment(monkeypatch):
    """Requests are late soon."""
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._MOMENT_S", 0.01)


async def test_one_tenant_leaves_places_to_others():
    server, pace = Held(), FlowControl(start=8, most=8)
    hog = await server.asked([f"a{number}" for number in range(20)], pace.share("a"))
    assert len(server.begun) == 6
    other = await server.asked(["b"], pace.share("b"))
    assert server.begun[6:] == ["b"]
    await server.answer_all([*hog, *other])


async def test_who_waits_is_served_in_turns_of_tenants():
    server, pace = Held(), FlowControl(start=1, most=1)
    tasks = await server.asked(["a0", "a1", "a2"], pace.share("a"))
    tasks += await server.asked(["b0"], pace.share("b"))
    await server.answer_all(tasks)
    assert server.begun == ["a0", "a1", "b0", "a2"], "once each while another waits"


async def test_requests_that_a_webhook_holds_up_need_no_place_and_bound_their_tenant(moment):
    server, pace = Held(), FlowControl(start=8, most=8)
    hog = await server.asked([f"a{number}" for number in range(200)], pace.share("a"))
    await until(lambda: len(server.begun) >= LATE.late, "they are late", timeout_s=10, pause_s=0.005)
    await steadily_meanwhile(
        lambda: len(server.begun) <= LATE.late + 6, "no more begin where so many are late", for_s=0.05
    )
    others = await server.asked(["b", "c"], pace.share("b"))
    assert server.begun[-2:] == ["b", "c"]
    await server.answer_all([*hog, *others])


async def test_what_a_webhook_says_slows_down_nobody_else():
    pace, said = FlowControl(), 'admission webhook "a.example.com" denied the request: slow down'
    with pytest.raises(TooManyRequests):
        async with pace.share("a").place():
            raise TooManyRequests(said, status=429, retry_after_s=600.0)
    async with asyncio.timeout(1), pace.share("b").place():
        assert pace.limit == 24


async def test_a_server_that_asks_for_ten_minutes_is_asked_again_after_seconds(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._LONGEST_ASKED_S", 0.05)
    pace = FlowControl()
    with pytest.raises(TooManyRequests):
        async with pace.place():
            raise TooManyRequests("too many requests", status=429, retry_after_s=600.0)
    async with asyncio.timeout(10), pace.place():
        assert pace.limit == 12


class Refusing:
    """A webhook that refuses all with the same words."""

    def __init__(self):
        self.asked = 0

    async def ask(self):
        self.asked += 1
        raise TooManyRequests('admission webhook "a" denied the request: no', status=429, retry_after_s=600.0)


async def test_a_webhook_is_asked_a_few_times_and_not_for_as_long_as_a_server(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.apply.flow_control._LONGEST_ASKED_S", 0.001)
    hook = Refusing()
    with pytest.raises(TooManyRequests):
        await patiently(hook.ask, pace=FlowControl())
    assert hook.asked == 6
