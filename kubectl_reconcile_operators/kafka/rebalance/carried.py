"""KafkaRebalances as the module of their cluster carries them out: which are looked at, what each is at, and which one may move partitions now.

One at a time moves partitions, and none while partitions move because brokers come or go: those come first. What moves is handed on as a `MovePlan`, so throttles and
the number of moves in flight are counted in one place. Brokers that a rebalance has emptied aren't filled again as long as it is there.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, Owned, SpecError, actions_done, named
from kubectl_reconcile_operators.kafka.names import slot_of
from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment
from kubectl_reconcile_operators.kafka.partitions.proposal import proposal_of
from kubectl_reconcile_operators.kafka.partitions.wish import MoveMode
from kubectl_reconcile_operators.kafka.rebalance.decision import (
    RebalanceDo,
    RebalancePhase,
    RebalanceSituation,
    RebalanceStep,
    RefusedWish,
    next_rebalance_step,
)
from kubectl_reconcile_operators.kafka.rebalance.kept import KEPT_MAX, KeptProposal, totals, written
from kubectl_reconcile_operators.kafka.rebalance.record import (
    RebalanceRecord,
    approval_key,
    kept_in,
    map_name,
    map_of,
    record_of,
)
from kubectl_reconcile_operators.kafka.rebalance.spec import RebalanceSpec, rebalance_spec
from kubectl_reconcile_operators.kafka.rolling import led_steps
from kubectl_reconcile_operators.kafka.scaling import MovePlan, cancelled, is_agreed, leaving, moved
from kubectl_reconcile_operators.kafka.situation import KafkaState
from kubectl_reconcile_operators.kafka.spec import KafkaSpec, RebalanceWish
from kubectl_reconcile_operators.kafka.steps import KafkaStep

_MOST = 10
"""So many KafkaRebalances of a cluster are looked at that haven't come to their end."""


@dataclass(frozen=True, slots=True)
class AskedRebalance:
    """A KafkaRebalance with what was written of it: *spec* is None where it makes no sense."""

    name: str
    uid: str
    generation: int
    spec: RebalanceSpec | None
    record: RebalanceRecord | None
    done: tuple[str, ...] = ()
    config_map: Manifest | None = None
    is_going: bool = False

    @property
    def is_begun(self) -> bool:
        """Whether what was approved is being carried out."""
        return self.record is not None and self.record.is_begun

    @property
    def is_at_rest(self) -> bool:
        """Whether it has come to its end, and nobody has asked for anything else since."""
        return self.record is not None and self.record.has_ended and self.record.generation == self.generation


@dataclass(frozen=True, slots=True)
class CarriedRebalance:
    """A rebalance and what is next for it."""

    asked: AskedRebalance
    step: RebalanceStep

    @property
    def is_begun(self) -> bool:
        """Whether what was approved is carried out now, or from the next look on. What can't go on for want of a broker isn't, until that is back."""
        can_go_on = self.step.do is not RebalanceDo.NOTHING and self.step.phase is not RebalancePhase.NOT_READY
        return self.step.do is RebalanceDo.BEGIN or (self.asked.is_begun and can_go_on)


def asked_of(owned: Owned, ctx: Context) -> tuple[AskedRebalance, ...]:
    """Return the KafkaRebalances that name the cluster, those first that are being carried out, then the oldest."""
    maps = {each["metadata"]["name"]: each for each in owned.of("ConfigMap")}
    found = [_asked(each, maps.get(map_name(ctx, each["metadata"]["name"]))) for each in _oldest_first(owned)]
    at_rest = [each for each in found if each.is_at_rest]
    others = sorted((each for each in found if not each.is_at_rest), key=lambda each: not each.is_begun)
    return (*others[:_MOST], *at_rest)


def _oldest_first(owned: Owned) -> list[Manifest]:
    return sorted(
        owned.read("KafkaRebalance"),
        key=lambda each: (str(each["metadata"].get("creationTimestamp") or ""), each["metadata"]["name"]),
    )


def _asked(cr: Manifest, config_map: Manifest | None) -> AskedRebalance:
    metadata = cr["metadata"]
    uid = str(metadata.get("uid") or "")
    try:
        spec = rebalance_spec(cr)
    except SpecError:
        spec = None
    return AskedRebalance(
        metadata["name"],
        uid,
        int(metadata.get("generation") or 0),
        spec,
        record_of(config_map, uid),
        actions_done(cr),
        config_map,
        is_going=bool(metadata.get("deletionTimestamp")),
    )


def emptied_by(asked: Iterable[AskedRebalance]) -> frozenset[int]:
    """Return the brokers that are to stay empty: those off which a rebalance moves everything, or has."""
    kept = {RebalancePhase.REBALANCING, RebalancePhase.READY}
    return frozenset(
        broker
        for each in asked
        if each.spec and each.record and each.record.phase in kept and not each.spec.stopped and not each.is_going
        for broker in (each.spec.brokers if each.spec.mode == MoveMode.REMOVE_BROKERS.value else ())
    )


def carried_of(
    spec: KafkaSpec, s: KafkaState, scaling: MovePlan, asked: Iterable[AskedRebalance], ctx: Context
) -> tuple[CarriedRebalance, ...]:
    """Return what is next for each rebalance that isn't at rest."""
    due = [each for each in asked if each.spec is not None and not each.is_at_rest]
    seen = _seen(spec, s) if due and s.is_told else None
    busy = _busy(spec, s, scaling, ctx)
    found: list[CarriedRebalance] = []
    for each in due:
        other = next((one.asked.name for one in found if one.is_begun), "")
        is_new = any(one.step.do is RebalanceDo.KEEP for one in found)
        why = busy or (f"waits for KafkaRebalance {other}" if other else "waits for its turn" if is_new else "")
        found.append(CarriedRebalance(each, _next(each, s, seen, why)))
    return tuple(found)


def _next(each: AskedRebalance, s: KafkaState, seen: Assignment | None, busy: str) -> RebalanceStep:
    if each.spec is None:
        raise ValueError("a rebalance whose spec is invalid isn't carried on")
    record, kept = each.record, kept_in(each.config_map) if each.record else None
    now = RebalanceSituation(
        seen,
        s.in_flight,
        kept,
        approved=kept is not None and approval_key(kept.digest) in each.done,
        begun=each.is_begun and kept is not None and record is not None and record.digest == kept.digest,
        ended=record.phase if record and record.has_ended else None,
        throttled=any(known.get("throttled") for known in s.registered.values()),
        busy=busy,
        refused=_refused(each),
        stopped=record.stopped if record else 0,
    )
    step = next_rebalance_step(each.spec, now, is_going=each.is_going)
    if step.do is RebalanceDo.KEEP and step.kept and sum(map(len, written(step.kept).values())) > KEPT_MAX:
        text = f".spec: {len(step.kept.moves)} partitions at once are too many to be written down (hint: leave topics out by excludeTopics, and do these later)"
        return RebalanceStep(RebalancePhase.NOT_READY, RebalanceDo.WAIT, text, "TooLarge", asked=step.asked)
    return step


def _refused(each: AskedRebalance) -> RefusedWish | None:
    """Return what was written down of a wish that couldn't be granted; None if it has been edited since, which has it tried again."""
    record = each.record
    if record is None or record.phase is not RebalancePhase.NOT_READY or record.generation != each.generation:
        return None
    return RefusedWish(record.asked, record.reason, record.text) if record.asked else None


def _seen(spec: KafkaSpec, s: KafkaState) -> Assignment:
    """Return what stands where; brokers that are to leave count as away, so that nothing moves to them."""
    going = leaving(spec, s)
    brokers = {
        number: replace(each, fenced=True) if number in going else each for number, each in s.seen.brokers.items()
    }
    return Assignment(brokers, s.seen.partitions)


def _busy(spec: KafkaSpec, s: KafkaState, scaling: MovePlan, ctx: Context) -> str:
    """Return what else the cluster is at, in a few words."""
    if away := [slot_of(ctx, number) for number in range(spec.brokers) if not s.is_up(number)]:
        return f"waits for {', '.join(away[:5])} to take part"
    if scaling.proposal.moves and is_agreed(spec, s, scaling):
        return "waits until brokers that come or go are filled or emptied"
    return ""


# --- what is done ---------------------------------------------------------------------------------


def stop_steps(spec: KafkaSpec, s: KafkaState, carried: Iterable[CarriedRebalance]) -> Iterator[KafkaStep]:
    """Yield what takes back moves of rebalances that are stopped, deleted or wished otherwise."""
    for each in carried:
        step = each.step
        if step.do is not RebalanceDo.MOVE or step.phase is RebalancePhase.REBALANCING:
            continue
        if step.batch.cancel:
            told = f"KafkaRebalance {each.asked.name} {step.text}"
            yield cancelled(list(step.batch.cancel), s, told)
        elif step.batch.submit:
            plan = MovePlan(proposal=proposal_of(s.seen, dict(step.batch.submit)))
            yield moved(pace_of(spec, each.asked), s, plan, step.batch)


def moving_of(
    spec: KafkaSpec, s: KafkaState, scaling: MovePlan, carried: Sequence[CarriedRebalance]
) -> tuple[KafkaSpec, MovePlan] | None:
    """Return what moves for a rebalance, and at which pace; None where none is carried out, or brokers that come or go are first."""
    begun = [each for each in carried if each.asked.is_begun and each.step.kept]
    at_work = min(begun, key=lambda each: not each.is_begun, default=None)
    if at_work is None or (scaling.proposal.moves and is_agreed(spec, s, scaling)):
        return None
    step, wanted = at_work.step, {}
    if step.do is RebalanceDo.MOVE and step.phase is RebalancePhase.REBALANCING and step.kept:
        left = {*step.batch.submit, *step.batch.left}
        wanted = {each.key: each.new for each in step.kept.moves if each.key in left}
    plan = MovePlan(scaling.leaving, (), scaling.settled, proposal_of(scaling.settled, wanted))
    return pace_of(spec, at_work.asked), plan


def election_steps(s: KafkaState, carried: Iterable[CarriedRebalance]) -> Iterator[KafkaStep]:
    """Yield the election of preferred leaders that a rebalance ends with, whatever else waits."""
    if any(each.step.do is RebalanceDo.ELECT for each in carried) and not s.moves:
        yield from led_steps(s)


def pace_of(spec: KafkaSpec, asked: AskedRebalance) -> KafkaSpec:
    """Return the cluster's spec with how many partitions move at a time, and how fast, as the rebalance has it."""
    own, usual = asked.spec, spec.rebalance
    if own is None:
        return spec
    pace = RebalanceWish(
        "Auto",
        own.max_moves_in_flight or usual.max_moves_in_flight,
        own.throttle_bytes_per_second or usual.throttle_bytes_per_second,
    )
    return replace(spec, rebalance=pace)


# --- what is written down -------------------------------------------------------------------------


def rebalance_maps(
    spec: KafkaSpec, asked: Iterable[AskedRebalance], carried: Iterable[CarriedRebalance], ctx: Context
) -> Iterator[Manifest]:
    """Yield a ConfigMap for each rebalance; what is at rest or makes no sense stays as it was written."""
    steps = {each.asked.name: each.step for each in carried}
    for each in asked:
        if each.name in steps:
            step = steps[each.name]
            yield map_of(ctx, each.name, _record(spec, each, step), step.kept)
        elif each.config_map is not None:
            yield named("v1", "ConfigMap", map_name(ctx, each.name))


def _record(spec: KafkaSpec, asked: AskedRebalance, step: RebalanceStep) -> RebalanceRecord:
    stopped = asked.record.stopped if asked.record else 0
    goes_on = asked.is_begun and step.do not in {RebalanceDo.NOTHING, RebalanceDo.KEEP} and step.kept is not None
    return RebalanceRecord(
        asked.uid,
        asked.generation,
        step.phase,
        step.reason,
        step.text,
        step.kept.digest if step.kept else "",
        is_begun=step.do is RebalanceDo.BEGIN or goes_on,
        proposal=_proposal(spec, asked, step, step.kept),
        asked=step.asked if step.phase is RebalancePhase.NOT_READY else "",
        stopped=asked.generation if step.phase is RebalancePhase.STOPPED else stopped,
    )


def _proposal(spec: KafkaSpec, asked: AskedRebalance, step: RebalanceStep, kept: KeptProposal | None) -> dict[str, Any]:
    """Return the totals: of a proposal that is new, or those that were written down with it."""
    if kept is None:
        return {}
    if step.proposal is not None:
        return totals(step.proposal, kept.digest, pace_of(spec, asked).rebalance.throttle_bytes_per_second)
    known = asked.record.proposal if asked.record else {}
    return dict(known) if known.get("digest") == kept.digest else {}
