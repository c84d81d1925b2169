"""What a daemon needs no more is found soon, and everything is looked through once after a burst."""

from __future__ import annotations

import subprocess
import sys

BURST = """
import asyncio, gc, weakref
from kubectl_reconcile.engine.telemetry import memory

class Circle:
    def __init__(self):
        self.me = self

memory.look_after()
assert gc.get_freeze_count() > 10_000, "code is never looked through again"
lost = Circle()
gone = weakref.ref(lost)
gc.collect()  # it is old now
del lost
kept = []
tidying = memory.Tidying()

async def main():
    for is_so in (True, True, True):
        await tidying.at_rest(is_so=is_so)
    print("without a burst:", gone() is None)
    while not memory._was_busy():
        kept.append([None])
    await tidying.at_rest(is_so=False)
    await tidying.at_rest(is_so=True)
    print("at work a moment ago:", gone() is None)
    await tidying.at_rest(is_so=True)
    print("at rest:", gone() is None, memory._was_busy())

asyncio.run(main())
"""


def test_after_a_burst_everything_is_looked_through_once_at_rest():
    done = subprocess.run([sys.executable, "-c", BURST], capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["without a burst: False", "at work a moment ago: False", "at rest: True False"]


AGAIN = """
import asyncio, itertools
from kubectl_reconcile.engine.telemetry import memory

memory.look_after()
kept, now = [], itertools.chain([0.0, 0.0, 3.0], itertools.repeat(299.0, 1), itertools.repeat(300.0))
tidying = memory.Tidying(lambda: next(now))

async def main():
    for _ in range(3):
        while not memory._was_busy():
            kept.append([None])
        for is_so in (False, True, True):
            await tidying.at_rest(is_so=is_so)
        print(memory._was_busy())

asyncio.run(main())
"""


def test_what_takes_long_is_done_seldom():
    done = subprocess.run([sys.executable, "-c", AGAIN], capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["False", "True", "False"], "after three seconds of it nothing for three hundred"
