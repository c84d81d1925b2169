"""Events: which are remembered, so that what is said again is counted and not written again; nobody waits for one for long."""

import contextlib
import time

import pytest

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.engine.telemetry import events
from kubectl_reconcile.engine.telemetry.events import _QUIET_S, _REMEMBERED, Events, _lately, _Said
from tests.lines import line_to


def heard(at_s):
    return _Said("/events/one", heard_s=at_s, told_s=at_s)


def test_of_many_events_those_heard_last_are_remembered_and_there_is_room_for_as_many_more():
    said = {(f"uid-{at}", "Applied", "1 created"): heard(float(at) / 1000) for at in range(_REMEMBERED)}
    first, *_, last = said
    kept = _lately(dict(reversed(said.items())), now_s=5.0)
    assert len(kept) == _REMEMBERED // 2
    assert last in kept
    assert first not in kept


def test_what_was_not_heard_for_long_is_forgotten_first():
    said = {("uid-1", "Failed", "no"): heard(0.0), ("uid-2", "Failed", "no"): heard(1.0)}
    assert [*_lately(said, now_s=_QUIET_S + 0.5)] == [("uid-2", "Failed", "no")]


@pytest.fixture
async def silent(kubeconfig, tmp_path):
    """A client whose only connection has died, and nobody has told."""
    with contextlib.closing(line_to(kubeconfig)) as line:
        config = line.kubeconfig(kubeconfig, tmp_path / "along-the-line")
        async with await Client.connect(Access(kubeconfig=str(config))) as client:
            await client.get("/api/v1/namespaces/default")
            line.silence()
            yield client


async def test_an_event_along_a_dead_connection_is_given_up_and_holds_nobody_up(
    silent, namespace, kubectl, monkeypatch
):
    monkeypatch.setattr(events, "_WAITS_S", 0.5)
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop", "namespace": namespace}}
    began_s = time.monotonic()
    said = Events(silent)
    await said.normal(about, "Synced", "1 created", action="Sync")
    assert time.monotonic() - began_s < 30, "it waits half a second, and not until the line breaks"
    monkeypatch.setattr(events, "_WAITS_S", 100.0)
    await said.normal(about, "Synced", "1 created", action="Sync")
    assert "1 created" in kubectl("get", "events", "-n", namespace, "-o", "yaml"), "said again, it goes along another"
