"""How brokers restart that aren't as specified any more: one at a time, the active controller last, and only where every partition can spare the broker.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubectl_reconcile.module_api import Context
from kubectl_reconcile.modules.kafka.names import slot_of
from kubectl_reconcile.modules.kafka.partitions.assignment import listing
from kubectl_reconcile.modules.kafka.partitions.batches import elections
from kubectl_reconcile.modules.kafka.partitions.restarts import BrokerStop, restart_order, stop_of
from kubectl_reconcile.modules.kafka.situation import KafkaState
from kubectl_reconcile.modules.kafka.steps import Aim, KafkaDo, KafkaStep, wait
from kubectl_reconcile.modules.kafka.topics import counted


def outdated(s: KafkaState, templates: Mapping[int, str]) -> list[int]:
    """Return the brokers that were made by another template than they are to have."""
    return [
        number for number, pod in sorted(s.pods.items()) if number in templates and pod.template != templates[number]
    ]


def roll_steps(s: KafkaState, templates: Mapping[int, str], ctx: Context) -> Iterator[KafkaStep]:
    """Yield what is to be done about brokers that have to restart."""
    moving, seen = [each.key for each in s.in_flight], s.seen
    left = outdated(s, templates)
    stops = [stop_of(each, seen, moving) for each in restart_order(seen, left, s.controller)]
    if not stops:
        return
    found = next(
        (each for each in stops if each.is_allowed(approved=_decision(each, templates, ctx) in s.done)), stops[0]
    )
    slot = slot_of(ctx, found.broker)
    if found.waits:
        yield wait(f"{slot} restarts later: {'; '.join(found.waits)}", "RestartWaits", Aim.ROLLING)
    if not found.is_allowed(approved=_decision(found, templates, ctx) in s.done):
        yield _asked(found, slot, templates, s)
    text = f"restart {slot} for what the spec says of brokers, {counted(len(left), 'broker')} to go{_told(found)}"
    yield KafkaStep(KafkaDo.DELETE_POD, Aim.ROLLING, text, slot, brokers=(found.broker,))


def _decision(found: BrokerStop, templates: Mapping[int, str], ctx: Context) -> str:
    """Return the key of the decision that a broker may restart though partitions are away meanwhile."""
    return f"{KafkaDo.ALLOW_RESTART.value}-{_occasion(found, slot_of(ctx, found.broker), templates)}"


def _occasion(found: BrokerStop, slot: str, templates: Mapping[int, str]) -> str:
    return f"{slot}-{templates[found.broker][:8]}"


def _asked(found: BrokerStop, slot: str, templates: Mapping[int, str], s: KafkaState) -> KafkaStep:
    text = f"restart {slot}, though {counted(len(found.single), 'partition')} with a single replica will be away meanwhile: {listing(found.single)}"
    return KafkaStep(
        KafkaDo.ALLOW_RESTART,
        Aim.ROLLING,
        text,
        _occasion(found, slot, templates),
        "RestartAwaitsApproval",
        holds={f"pods.{slot}.uid": s.pods[found.broker].manifest["metadata"].get("uid")},
        needs_approval=True,
    )


def _told(found: BrokerStop) -> str:
    if not found.short:
        return ""
    return (
        f"; meanwhile {counted(len(found.short), 'partition')} can't be written with acks=all: {listing(found.short)}"
    )


def led_steps(s: KafkaState) -> Iterator[KafkaStep]:
    """Yield the election of preferred leaders, where others lead."""
    keys = elections(s.seen.partitions.values())
    if keys:
        topics: dict[str, list[int]] = {}
        for key in keys:
            topics.setdefault(key.topic, []).append(key.number)
        text = f"have {counted(len(keys), 'partition')} led by the brokers that they prefer: {listing(keys)}"
        yield KafkaStep(KafkaDo.ELECT, Aim.CHANGING, text, parameters={"topics": topics})
