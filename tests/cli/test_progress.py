"""What is told of a sync under way: how many objects are done, of how many, and how long writing may take yet."""

import asyncio
import sys

import pytest

from kubectl_reconcile.cli.output.progress import Busy, Progress, SyncProgress, Writes, board
from kubectl_reconcile.cli.output.terminal import Terminal
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.engine.apply.writer import Step
from tests.core.planning.changes import a_change

PLAIN = Terminal()
ERR = Terminal(is_stderr=True)


def config(name):
    return ObjectRef("", "ConfigMap", "shop", name)


def plan(*names, op=Op.CREATE):
    return Plan(None, "3f9c2e1", tuple(a_change(config(name), op) for name in names))


def tell(progress, *names, op=Op.CREATE, state=ResultState.SUCCEEDED, ms=0.0):
    for name in names:
        progress.hooks().result(Result(a_change(config(name), op), state, "refused", ms))


def begun(*names):
    progress = Progress(PLAIN, ERR)
    progress.expect(plan(*names))
    return progress


def counted(progress):
    return progress.standing().done, progress.standing().total


def headline(**standing):
    return PLAIN.text(board(SyncProgress(**standing), {}, 0.0, 200)[0])


# --- objects ----------------------------------------------------------------------------------------------------------


def test_an_object_that_is_written_again_is_done_once():
    progress = begun("a", "b", "c")
    tell(progress, "a", "b")
    tell(progress, "a", "a", op=Op.UPDATE)
    assert counted(progress) == (2, 3)


def test_the_total_grows_by_what_follows_before_it_is_done():
    progress = begun("a", "b")
    tell(progress, "a", "b")
    progress.expect(plan("child", "grandchild"))
    assert counted(progress) == (2, 4)
    progress.expect(plan("a", op=Op.UPDATE))
    tell(progress, "child", "unforeseen")
    assert counted(progress) == (4, 5)


def test_what_is_not_to_be_written_is_no_work():
    progress = begun("a")
    progress.expect(plan("b", op=Op.UNCHANGED))
    assert counted(progress) == (0, 1)


def test_what_failed_and_what_was_never_to_be_written_are_done_and_failed():
    progress = begun("a", "b")
    tell(progress, "a", "blocked", state=ResultState.FAILED)
    standing = progress.standing()
    assert (standing.done, standing.total, standing.failed) == (2, 3, 2)


# --- time -------------------------------------------------------------------------------------------------------------


def test_time_in_which_nothing_is_written_is_no_part_of_the_estimate():
    writes = Writes()
    for at in range(10):
        writes.add(100.0 * at, 0.5)
    assert writes.left_s(4) == pytest.approx(2.0)


def test_requests_under_way_at_once_take_their_time_once():
    writes = Writes()
    for _ in range(10):
        writes.add(101.0, 1.0)
    writes.add(102.0, 2.0)
    assert writes.busy_s == pytest.approx(2.0)


def test_a_few_writes_say_nothing_of_the_others():
    writes = Writes()
    for at in range(9):
        writes.add(float(at), 0.5)
    assert writes.left_s(1000) is None
    writes.add(9.0, 0.5)
    assert writes.left_s(1000) is not None


def test_only_requests_tell_how_fast_the_server_writes():
    progress = begun(*map(str, range(100)))
    tell(progress, *map(str, range(20)), ms=0.0, state=ResultState.SKIPPED)
    tell(progress, *map(str, range(20, 40)), ms=60_000.0, op=Op.REPLACE)
    tell(progress, *map(str, range(40, 49)), ms=1.0)
    assert progress.standing().left_s is None
    tell(progress, "49", ms=1.0)
    assert 0 < progress.standing().left_s < 1


def test_while_something_is_waited_for_nothing_is_estimated():
    progress = begun(*map(str, range(100)))
    tell(progress, *map(str, range(20)), ms=1.0)
    progress.waits(config("1"), "0 of 1 replicas are ready")
    assert progress.standing().left_s is None
    progress.waits(config("1"), "")
    assert progress.standing().left_s is not None


# --- words ------------------------------------------------------------------------------------------------------------


def test_the_board_tells_objects_and_only_what_is_known():
    assert headline(total=4, done=3) == "###############.....  3 of 4 done"
    assert headline(total=4, done=4, left_s=0.4).endswith("4 of 4 done")
    assert headline(total=80, done=20, wave=2, waves=3, failed=1, left_s=12.3) == (
        "wave 2 of 3  #####...............  20 of 80 done  1 failed  about 12 s left"
    )


def test_the_board_names_what_takes_longest():
    busy = {"ConfigMap shop/a": Busy(9.0), "Deployment shop/web": Busy(2.0, "0 of 1 replicas are ready")}
    lines = [PLAIN.text(one) for one in board(SyncProgress(0), busy, 10.0, 200)]
    assert lines == ["    8 s  Deployment shop/web: 0 of 1 replicas are ready", "    1 s  ConfigMap shop/a"]


def test_a_wave_begins_with_how_far_it_is_and_no_guess_at_the_time(capsys):
    progress = begun(*"abcd")
    tell(progress, *"ab", ms=400.0)
    tell(progress, "a", op=Op.UPDATE, ms=400.0)
    progress.hooks().step(Step(2, 2, 2))
    assert capsys.readouterr().err == "wave 2 of 2: 2 objects, 2 of 4 done\n"


def test_what_failed_and_then_came_right_has_not_failed():
    progress = begun("a", "b", "c")
    tell(progress, "a", "b", "c", state=ResultState.FAILED)
    tell(progress, "a", op=Op.UPDATE)
    tell(progress, "b", state=ResultState.SKIPPED)
    assert progress.counts(plan("a", "b", "c")) == {"updated": 1, "skipped": 1, "failed": 1, "unchanged": 0, "held": 0}
    assert progress.standing().failed == 2
    progress.hooks().result(Result(a_change(config("c"), Op.UPDATE), ResultState.SUCCEEDED, "", 0.0, wrote=False))
    assert progress.counts(plan("a", "b", "c")) == {"updated": 1, "skipped": 1, "unchanged": 1, "held": 0}
    tell(progress, "a", state=ResultState.FAILED)
    assert progress.counts(plan("a"))["failed"] == 1


# --- when it is written -----------------------------------------------------------------------------------------------


async def test_results_that_come_together_are_written_together_and_none_is_left(capsys):
    progress = Progress(PLAIN, ERR)
    async with progress.drawn():
        tell(progress, "a", "b", "c")
        assert capsys.readouterr().out == "created  ConfigMap shop/a\n"
    assert capsys.readouterr().out == "created  ConfigMap shop/b\ncreated  ConfigMap shop/c\n"


async def test_no_result_waits_for_the_next_one(capsys):
    progress = Progress(PLAIN, ERR)
    async with progress.drawn():
        tell(progress, "a", "b")
        async with asyncio.timeout(60):
            while not capsys.readouterr().out.endswith("shop/b\n"):
                await asyncio.sleep(0.01)


async def test_results_until_then_are_written_where_the_work_fails(capsys):
    progress = Progress(PLAIN, ERR)

    async def work():
        async with progress.drawn():
            tell(progress, "a", "b")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    assert capsys.readouterr().out == "created  ConfigMap shop/a\ncreated  ConfigMap shop/b\n"


async def test_what_went_well_before_is_written_before_what_goes_wrong(capfd, monkeypatch):
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    progress = Progress(PLAIN, Terminal(is_stderr=True))
    tell(progress, "a", "b")
    tell(progress, "c", state=ResultState.FAILED)
    names = [text.split("shop/")[1][0] for text in capfd.readouterr().out.splitlines()]
    assert names == ["a", "b", "c"]
