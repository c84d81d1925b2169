"""What keeps the event loop from turning is named, and what doesn't isn't."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from kubectl_reconcile.core.health.judge import health
from kubectl_reconcile.engine.telemetry import loop_monitor
from kubectl_reconcile.engine.telemetry.logs import _FIELDS
from kubectl_reconcile.engine.telemetry.metrics import Metrics


class Dawdling(dict):
    """An object that takes its time to answer."""

    def get(self, name, default=None):
        time.sleep(0.3)  # it is stuck, as the log is to say
        return default


@pytest.fixture
def told(caplog):
    """What the monitor logged: told() -> the fields of each line."""
    caplog.set_level(logging.WARNING, logger="kubectl_reconcile")
    logging.getLogger("kubectl_reconcile").addHandler(caplog.handler)
    yield lambda: [getattr(record, _FIELDS) for record in caplog.records if record.message == "event loop blocked"]
    logging.getLogger("kubectl_reconcile").removeHandler(caplog.handler)


def of_core(lines):
    """A machine that stands still blocks the loop elsewhere, too."""
    return [each for each in lines if each["place"].startswith("core/")]


@pytest.mark.parametrize("rest_s", [0.2, 2.0], ids=["that has work", "at rest"])
def test_what_blocks_a_loop_is_named_with_its_task(told, rest_s):
    metrics = Metrics()

    async def work():
        with loop_monitor.watched(metrics):
            asyncio.current_task().set_name("worker-7: Sync.reconcile.dev shop/web")
            await asyncio.sleep(rest_s)  # the loop is at rest
            health(Dawdling(apiVersion="example.com/v1", kind="Thing", metadata={"name": "slow"}))
            deadline = time.monotonic() + 200
            while not of_core(told()) and time.monotonic() < deadline:
                await asyncio.sleep(0.02)

    loop_monitor.run(work())
    [fields, *_] = of_core(told())
    assert fields["task"] == "worker-7: Sync.reconcile.dev shop/web"
    assert fields["duration_ms"] >= 200
    assert 'reconcile_loop_blocked_seconds_count{place="core/' in metrics.text().decode()


async def test_a_loop_that_notes_nothing_can_not_be_watched():
    with pytest.raises(TypeError, match="notes when it works"), loop_monitor.watched(Metrics()):
        pass
