"""What is to be done where brokers come or go, or topics are to have more or fewer replicas: partitions move to brokers that are new, and off those that leave, a few at a time; a broker goes once nothing stands on it.

Where that is, is seen from Kafka each time: what stands where, and what is in flight. The status keeps only which brokers are being *filled*. Reassignments in flight that
nobody here asks for come to their end; those that go elsewhere than is wanted now are cancelled.

Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from kubectl_reconcile.module_api import Context, map_at, text_at
from kubectl_reconcile_operators.kafka.names import fact_key, slot_of
from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, Key, digest_of, listing, with_replicas
from kubectl_reconcile_operators.kafka.partitions.batches import Batch, next_batch
from kubectl_reconcile_operators.kafka.partitions.drain import drain, without_racks
from kubectl_reconcile_operators.kafka.partitions.proposal import MoveProposal, estimate_s, proposal_of, propose
from kubectl_reconcile_operators.kafka.partitions.replicas import Resized, with_fewer, with_more
from kubectl_reconcile_operators.kafka.partitions.wish import ALL_GOALS, MoveMode, Wish
from kubectl_reconcile_operators.kafka.situation import KafkaState
from kubectl_reconcile_operators.kafka.spec import KafkaSpec
from kubectl_reconcile_operators.kafka.steps import Do, KafkaStep, Why, wait
from kubectl_reconcile_operators.kafka.topics import counted, size_text
from kubectl_reconcile_operators.volumes import SurplusEnd, end_of_surplus, surplus_occasion, surplus_told


@dataclass(frozen=True, slots=True)
class MovePlan:
    """What moves for the sake of *filled* brokers or of those that are *leaving*; *settled* is where all stands once what is in flight has come to its end.

    *pods* tells the pods of these brokers from others of the same names, or what topics were wished from what is wished of them later. *resized* are topics that get more or fewer replicas, for which nothing else moves; *stuck* are sentences on partitions that can't. *noted* are the brokers that the status keeps: those that aren't filled yet, and those that are being emptied, which would be filled again if they were to stay.
    """

    leaving: tuple[int, ...] = ()
    filled: tuple[int, ...] = ()
    settled: Assignment = field(default_factory=lambda: Assignment({}, {}))
    proposal: MoveProposal = field(default_factory=lambda: MoveProposal(""))
    noted: tuple[int, ...] = ()
    pods: str = ""
    resized: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()

    @property
    def occasion(self) -> str:
        """What it is for, as a part of an action's key: brokers that come again some day are another occasion."""
        if self.resized:
            return f"replicas-{self.pods}"
        return "-".join(map(str, (*(("to", *self.filled) if self.filled else ("off", *self.leaving)), self.pods)))


def leaving(spec: KafkaSpec, s: KafkaState) -> tuple[int, ...]:
    """Return the brokers that are there, and aren't to be any more."""
    return tuple(sorted(number for number in {*s.pods, *s.registered} if number >= spec.brokers))


def holding(spec: KafkaSpec, s: KafkaState) -> tuple[int, ...]:
    """Return those of the brokers that leave on which something stands."""
    return tuple(number for number in leaving(spec, s) if s.holds(number))


def plan_of(spec: KafkaSpec, s: KafkaState, empty: Collection[int] = ()) -> MovePlan:
    """Return what is to move now: off brokers that leave first, then to those that are new; those that are to stay *empty* aren't filled."""
    if not s.is_told:
        return MovePlan(noted=s.before.filling)
    settled = with_replicas(s.seen, {each.key: each.target for each in s.in_flight})
    going = leaving(spec, s)
    there = (number for number in range(spec.brokers) if number in s.registered and number not in empty)
    new = tuple(number for number in there if _is_new(number, s, settled))
    emptied = tuple(number for number in going if s.holds(number))
    counts = {each.name: spec.replicas_of(each) for each in spec.topics}
    fewer = with_fewer(settled, counts, going)
    if fewer.wanted:
        return _resized(s, going, settled, fewer, (*new, *emptied))
    if emptied:
        return MovePlan(going, (), settled, drain(settled, going).proposal, (*new, *emptied), _pods(going, s))
    filled = tuple(number for number in new if s.is_up(number))
    if not filled:
        more = with_more(settled, counts, going)
        return _resized(s, going, settled, replace(more, stuck=(*fewer.stuck, *more.stuck)), new)
    found = propose(settled, Wish(without_racks(settled, going, ALL_GOALS), MoveMode.ADD_BROKERS, filled))
    is_full = not found.moves and not found.problems and not s.moves
    return MovePlan(going, filled, settled, found, () if is_full else new, _pods(filled, s))


def _resized(
    s: KafkaState, going: tuple[int, ...], settled: Assignment, found: Resized, noted: tuple[int, ...]
) -> MovePlan:
    """Return what moves for the sake of topics alone; what it is for is the spec's generation."""
    topics = tuple(sorted({key.topic for key in found.wanted}))
    moves = proposal_of(settled, dict(found.wanted))
    return MovePlan(going, (), settled, moves, noted, str(s.generation), topics, found.stuck)


def _pods(brokers: tuple[int, ...], s: KafkaState) -> str:
    """Return a short hash of the pods of these brokers."""
    return digest_of([text_at(s.pods[each].manifest, "metadata", "uid") for each in brokers if each in s.pods])[:8]


def _is_new(number: int, s: KafkaState, settled: Assignment) -> bool:
    return number in s.before.filling or (bool(settled.partitions) and not settled.held_by(number))


def move_steps(spec: KafkaSpec, s: KafkaState, plan: MovePlan) -> Iterator[KafkaStep]:
    """Yield what moves partitions. Where that can't be, or somebody hasn't approved, nothing is yielded: nobody waits for it."""
    batch = next_batch(plan.proposal.moves, s.seen, s.in_flight, spec.rebalance.max_moves_in_flight)
    wrong = _off_target(plan, s)
    if wrong and is_agreed(spec, s, plan):
        text = f"cancel the moves of {counted(len(wrong), 'partition')} to where nothing is wanted any more: {listing(wrong)}"
        yield cancelled(wrong, s, text)
    move = moved(spec, s, plan, batch) if batch.submit and is_agreed(spec, s, plan) else None
    if move:
        yield move
    if s.in_flight:
        yield from _throttled(spec, s)
        names = listing(sorted(each.key for each in s.in_flight))
        yield wait(f"{counted(len(s.in_flight), 'partition')} moving: {names}", "PartitionsMoving", Why.SCALING)
    if move and move.key not in s.failed:
        return
    if throttled := sorted(number for number, each in s.registered.items() if each.get("throttled")):
        yield _unthrottled(throttled, s)


def is_agreed(spec: KafkaSpec, s: KafkaState, plan: MovePlan) -> bool:
    """Tell whether moves may begin: nobody has to approve them, or somebody has."""
    return spec.rebalance.mode == "Auto" or f"{Do.ALLOW_MOVES.value}-{plan.occasion}" in s.done


def asked_steps(spec: KafkaSpec, s: KafkaState, plan: MovePlan) -> Iterator[KafkaStep]:
    """Yield the proposal that waits for somebody."""
    if plan.proposal.moves and not is_agreed(spec, s, plan):
        yield KafkaStep(
            Do.ALLOW_MOVES,
            Why.SCALING,
            f"move {_totals(spec, plan.proposal)}",
            plan.occasion,
            "MovesAwaitApproval",
            needs_approval=True,
        )


def refused_moves(spec: KafkaSpec, plan: MovePlan) -> Iterator[tuple[str, str]]:
    """Yield why nothing can move: a word and a sentence."""
    for text in plan.stuck:
        yield "ReplicasDiffer", f".spec.topics: not all topics can have as many replicas as they should: {text}"
    for problem in plan.proposal.problems[:1]:
        if not plan.filled:
            yield (
                "ScaleInRefused",
                f".spec.brokers: {spec.brokers} can't be reached yet, since {listing(plan.leaving)} can't be emptied: {problem}",
            )
        else:
            yield "RebalanceRefused", f"nothing moves to {listing(plan.filled)}: {problem}"


def _off_target(plan: MovePlan, s: KafkaState) -> list[Key]:
    """Return the reassignments in flight that go to a broker that leaves."""
    return sorted(each.key for each in s.in_flight if {*each.target} & {*plan.leaving} & {*each.adding})


def cancelled(keys: list[Key], s: KafkaState, text: str) -> KafkaStep:
    """Return the step that takes back reassignments in flight."""
    given = {"moves": [{"topic": key.topic, "partition": key.number} for key in keys]}
    return KafkaStep(Do.CANCEL, Why.SCALING, text, parameters=given, holds=_in_flight(keys, s))


def _in_flight(keys: list[Key], s: KafkaState) -> dict[str, object]:
    return {f"moves.{fact_key(key.topic)}.{key.number}": s.moves[key.topic][str(key.number)] for key in keys}


def moved(spec: KafkaSpec, s: KafkaState, plan: MovePlan, batch: Batch) -> KafkaStep:
    """Return the step that submits *batch*, a part of *plan*."""
    of = {each.key: each for each in plan.proposal.moves}
    now = [of[key] for key in batch.submit]
    told = listing(f"{each.key} from {_ids(each.old)} to {_ids(each.new)}" for each in now)
    text = f"move {told}; in all {_totals(spec, plan.proposal)}"
    holds: dict[str, object] = {f"moves.{fact_key(key.topic)}.{key.number}": None for key in batch.submit}
    for key in batch.submit:
        place = f"topics.{fact_key(key.topic)}"
        holds[f"{place}.id"] = s.topics[key.topic]["id"]
        holds[f"{place}.partitions.{key.number}.replicas"] = list(s.seen.partitions[key].replicas)
    given = {
        "moves": [{"topic": each.key.topic, "partition": each.key.number, "replicas": list(each.new)} for each in now],
        "throttle": spec.rebalance.throttle_bytes_per_second,
        "brokers": sorted(number for number in s.registered if s.is_up(number)),
    }
    about = hashlib.sha256(repr(sorted(batch.submit.items())).encode()).hexdigest()[:8]
    return KafkaStep(Do.MOVE, Why.SCALING, text, about, parameters=given, holds=holds)


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


def _totals(spec: KafkaSpec, proposal: MoveProposal) -> str:
    """Return how much moves, how long that takes at least, and what each broker holds before and after."""
    took = estimate_s(proposal, spec.rebalance.throttle_bytes_per_second)
    loads = listing(
        (
            f"{before.broker} {size_text(before.size_bytes)} ({before.replicas}) → {size_text(after.size_bytes)} ({after.replicas})"
            for before, after in zip(proposal.before, proposal.after, strict=True)
            if before != after
        ),
        20,
    )
    least = f", {took} s at least" if took else ""
    return (
        f"{counted(len(proposal.moves), 'partition')}, {counted(proposal.moved_replicas, 'replica')}, {size_text(proposal.moved_bytes)}{least};"
        f" brokers hold (replicas): {loads or 'what they held'}"
    )


def _throttled(spec: KafkaSpec, s: KafkaState) -> Iterator[KafkaStep]:
    """Yield another throttle where what moves has one that isn't the spec's; what moves without any is somebody else's."""
    wanted = str(spec.rebalance.throttle_bytes_per_second)
    found = {number: map_at(each, "throttled") for number, each in s.registered.items() if s.is_up(number)}
    other = {number: rates for number, rates in found.items() if {*rates.values()} - {wanted}}
    if other:
        text = f"have partitions move at {wanted} bytes per second at most, as the spec says now"
        given = {"throttle": spec.rebalance.throttle_bytes_per_second, "brokers": sorted(other)}
        holds = {f"brokers.{number}.throttled": dict(rates) for number, rates in other.items()}
        yield KafkaStep(Do.THROTTLE, Why.SCALING, text, wanted, parameters=given, holds=holds)


def _unthrottled(brokers: list[int], s: KafkaState) -> KafkaStep:
    topics = sorted(topic for topic, known in s.topics.items() if known.get("throttled"))
    text = "remove the throttle, since nothing moves any more"
    given = {"brokers": brokers, "topics": topics}
    return KafkaStep(Do.UNTHROTTLE, Why.SCALING, text, parameters=given, holds={"moves": {}})


# --- brokers that leave ---------------------------------------------------------------------------


def leave_steps(spec: KafkaSpec, s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    """Yield the end of brokers that leave and hold nothing: the pod, then what the cluster knows of it, the last broker first."""
    if not s.is_told or s.in_flight:
        return
    for number in sorted(leaving(spec, s), reverse=True):
        slot, known = slot_of(ctx, number), s.registered.get(number)
        if s.holds(number):
            continue
        pod = s.pods.get(number)
        if pod is not None and pod.is_going:
            yield wait(f"pod {slot} is terminating", "PodTerminating", Why.SCALING)
        if pod is not None:
            text = f"delete {slot}, which holds no partitions any more, for {counted(spec.brokers, 'broker')}"
            yield KafkaStep(Do.DELETE_POD, Why.SCALING, text, slot, brokers=(number,))
        if known and known.get("fenced") is False:
            yield wait(f"the cluster still counts on {slot}, which has ended", "BrokerUnfenced", Why.SCALING)
        text = f"have the cluster forget {slot}"
        holds = {f"brokers.{number}.fenced": True, f"brokers.{number}.holds": 0}
        yield KafkaStep(Do.UNREGISTER, Why.SCALING, text, slot, parameters={"broker": number}, holds=holds)


def surplus_steps(spec: KafkaSpec, s: KafkaState) -> Iterator[KafkaStep]:
    """Yield the end of volumes whose brokers aren't wanted any more, or the decision that somebody has to make before."""
    for number in sorted(s.volumes, reverse=True):
        volume = s.volumes[number]
        is_surplus = number >= spec.brokers and number not in s.pods and number not in s.registered and s.is_told
        if not is_surplus or volume.is_going:
            continue
        text = surplus_told(volume.slot, "broker")
        match end_of_surplus(spec.deletion_policy, volume.slot, volume.uid, s.done):
            case SurplusEnd.ASKED:
                about = surplus_occasion(volume.slot, volume.uid)
                yield KafkaStep(Do.END_VOLUME, Why.SCALING, text, about, "AwaitsApproval", needs_approval=True)
            case SurplusEnd.GONE:
                yield KafkaStep(Do.DELETE_VOLUME, Why.SCALING, text, volume.slot, brokers=(number,))
            case SurplusEnd.KEPT:
                pass
