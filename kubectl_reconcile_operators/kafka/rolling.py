"""How brokers restart that aren't as specified any more: one at a time, the active controller last, and only where every partition and the controllers' quorum can spare the broker.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from kubectl_reconcile.module_api import Context, map_at
from kubectl_reconcile_operators.kafka.names import slot_of
from kubectl_reconcile_operators.kafka.partitions.assignment import Key, listing
from kubectl_reconcile_operators.kafka.partitions.batches import elections
from kubectl_reconcile_operators.kafka.partitions.restarts import BrokerStop, restart_order, stop_of
from kubectl_reconcile_operators.kafka.situation import KafkaState
from kubectl_reconcile_operators.kafka.steps import Do, KafkaStep, Why, wait
from kubectl_reconcile_operators.kafka.topics import counted


def outdated(s: KafkaState, templates: Mapping[int, str]) -> list[int]:
    """Return the brokers that were made by another template than they are to have."""
    return [
        number for number, pod in sorted(s.pods.items()) if number in templates and pod.template != templates[number]
    ]


def roll_steps(s: KafkaState, templates: Mapping[int, str], ctx: Context) -> Iterator[KafkaStep]:
    """Yield what is to be done about brokers that have to restart."""
    moving = [each.key for each in s.in_flight]
    left = outdated(s, templates)
    stops = [_stop(each, s, moving) for each in restart_order(s.seen, left, s.controller)]
    if not stops:
        return
    found = next(
        (each for each in stops if each.is_allowed(approved=_decision(each, templates, ctx) in s.done)), stops[0]
    )
    slot = slot_of(ctx, found.broker)
    if found.waits:
        yield wait(f"{slot} restarts later: {'; '.join(found.waits)}", "RestartWaits", Why.ROLLING)
    if not found.is_allowed(approved=_decision(found, templates, ctx) in s.done):
        yield _asked(found, slot, templates, s)
    text = f"restart {slot} for what the spec says of brokers, {counted(len(left), 'broker')} to go{_told(found)}"
    yield KafkaStep(Do.DELETE_POD, Why.ROLLING, text, slot, brokers=(found.broker,))


def _stop(broker: int, s: KafkaState, moving: Collection[Key]) -> BrokerStop:
    """Return whether a broker may stop now, as a broker and as a controller."""
    found = stop_of(broker, s.seen, moving)
    return replace(found, waits=(*found.waits, *_others_first(broker, s)))


def _others_first(broker: int, s: KafkaState) -> Iterator[str]:
    """Yield what has to come first besides what partitions need.

    A controller that came back with an empty volume observes until it is let in again: a voter stops only while most of the voters vote without it. One that is
    the only voter has nobody to wait for.
    """
    volume = s.volumes.get(broker)
    if volume is not None and volume.is_going:
        yield "its volume claim is terminating, and would be gone with its pod"
    voters, observers = map_at(s.quorum, "voters"), map_at(s.quorum, "observers")
    if len(voters) < 2 or str(broker) not in voters or str(broker) in observers:
        return
    left = [each for each in voters if each != str(broker) and each not in observers and s.is_up(int(each))]
    if 2 * len(left) <= len(voters):
        yield f"the controllers would have no majority: of {len(voters)} voters, {len(left)} would vote without it"


def _decision(found: BrokerStop, templates: Mapping[int, str], ctx: Context) -> str:
    """Return the key of the decision that a broker may restart though partitions are away meanwhile."""
    return f"{Do.ALLOW_RESTART.value}-{_occasion(found, slot_of(ctx, found.broker), templates)}"


def _occasion(found: BrokerStop, slot: str, templates: Mapping[int, str]) -> str:
    return f"{slot}-{templates[found.broker][:8]}"


def _asked(found: BrokerStop, slot: str, templates: Mapping[int, str], s: KafkaState) -> KafkaStep:
    text = f"restart {slot}, though {counted(len(found.single), 'partition')} with a single replica will be away meanwhile: {listing(found.single)}"
    return KafkaStep(
        Do.ALLOW_RESTART,
        Why.ROLLING,
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
        yield KafkaStep(Do.ELECT, Why.CHANGING, text, parameters={"topics": topics})
