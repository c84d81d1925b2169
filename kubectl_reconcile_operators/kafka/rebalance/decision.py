"""In which state a rebalance is, and the one thing that is next.

===============  ==================================================================================================
New              nothing is known of the cluster yet
PendingProposal  something else is under way in the cluster: a proposal would be out of date at once
ProposalReady    a proposal waits for approval; it is replaced as soon as somebody else moves a replica
Rebalancing      what was approved is carried out, a few partitions at a time
Ready            all of it stands as proposed, and is led as it should be
Stopping         what is in flight is taken back; what was moved stays
Stopped          nothing of it is in flight any more
NotReady         the wish can't be granted, or a person has to do something first
===============  ==================================================================================================

All is told from what Kafka says and from the proposal that was written down, so whoever is killed goes on from there. Three things are remembered: what was
approved, that it was begun (until then a replica that somebody else moves voids the approval), and that a rebalance has come to its end (else it would take back
what a later one does). Throttles are set and taken off by the cluster's module, with those of brokers that come and go.

Pure: decides; the cluster's module asks and tells brokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, digest_of, listing
from kubectl_reconcile_operators.kafka.partitions.batches import Batch, InFlight, next_batch, undo
from kubectl_reconcile_operators.kafka.partitions.proposal import MoveProposal, PartitionMove, propose
from kubectl_reconcile_operators.kafka.rebalance.kept import KeptProposal, kept_of
from kubectl_reconcile_operators.kafka.rebalance.spec import RebalanceSpec


class RebalancePhase(StrEnum):
    """The states, as the table above has them."""

    NEW = "New"
    PENDING_PROPOSAL = "PendingProposal"
    PROPOSAL_READY = "ProposalReady"
    REBALANCING = "Rebalancing"
    READY = "Ready"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    NOT_READY = "NotReady"


class RebalanceDo(StrEnum):
    """What is next."""

    NOTHING = "nothing"
    WAIT = "wait"
    """Look again: something under way comes to its end by itself."""
    KEEP = "keep"
    """Write the step's proposal down, in place of the one before."""
    APPROVE = "approve"
    """Ask somebody to approve the proposal that was written down."""
    BEGIN = "begin"
    """Write down that what was approved is carried out from now on."""
    MOVE = "move"
    """Cancel and submit what the batch says: cancelled first."""
    ELECT = "elect"
    """Have the batch's partitions led by the brokers that they prefer."""


@dataclass(frozen=True, slots=True)
class RefusedWish:
    """A wish that couldn't be granted, and why: *asked* is the digest of what that was worked out from."""

    asked: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class RebalanceSituation:
    """What a rebalance is decided on.

    *seen* is None where brokers say nothing. *busy* is what else the cluster is at, in a few words: nothing is begun meanwhile. *ended* is the phase in which the
    proposal *kept* came to its end, if it has: Ready or Stopped. *throttled* is whether brokers have a throttle now, *begun* whether it was written down that *kept* is carried out.
    *refused* is what was worked out last, where that was no proposal. *stopped* is the generation as of which it was last stopped, 0 if it never was.
    """

    seen: Assignment | None
    in_flight: Sequence[InFlight] = ()
    kept: KeptProposal | None = None
    approved: bool = False
    begun: bool = False
    ended: RebalancePhase | None = None
    throttled: bool = False
    busy: str = ""
    refused: RefusedWish | None = None
    stopped: int = 0


@dataclass(frozen=True, slots=True)
class RebalanceStep:
    """The state, and the one thing to do. *text* says it to people, *reason* is a word for a condition; *asked* is the digest of what a proposal, or none, was worked out from."""

    phase: RebalancePhase
    do: RebalanceDo
    text: str
    reason: str = ""
    batch: Batch = field(default_factory=Batch)
    proposal: MoveProposal | None = None
    kept: KeptProposal | None = None
    asked: str = ""


_UNTHROTTLED = "waits until the throttle is taken off"


def next_rebalance_step(spec: RebalanceSpec, now: RebalanceSituation, *, is_going: bool = False) -> RebalanceStep:
    """Return the state of a rebalance and what is next; *is_going* is whether its custom resource is being deleted, which stops it."""
    kept = now.kept
    if now.seen is None:
        return _blind(now)
    if spec.stopped or is_going:
        return _stop(now.seen, now, RebalancePhase.STOPPING)
    if kept is None or now.ended is RebalancePhase.STOPPED:
        return _plan(spec, now.seen, now)
    if kept.wish != _wish(spec, now):
        return _wish_again(spec, now.seen, now)
    return _pursue(spec, now.seen, now, kept)


def _wish(spec: RebalanceSpec, now: RebalanceSituation) -> str:
    """Return a hash of what is wished. It is another one after a stop, since an approval ends with that, even if the same moves are proposed again."""
    return digest_of([spec.digest, now.stopped]) if now.stopped else spec.digest


def _wish_again(spec: RebalanceSpec, seen: Assignment, now: RebalanceSituation) -> RebalanceStep:
    """Propose for a wish that has changed, once nothing is in flight of what was approved before."""
    before = _stop(seen, now, RebalancePhase.PENDING_PROPOSAL)
    return _plan(spec, seen, now) if before.do is RebalanceDo.NOTHING else before


def _pursue(spec: RebalanceSpec, seen: Assignment, now: RebalanceSituation, kept: KeptProposal) -> RebalanceStep:
    """Bring a proposal that was written down to its end."""
    if now.ended is RebalancePhase.READY or not kept.moves:
        return RebalanceStep(RebalancePhase.READY, RebalanceDo.NOTHING, "", "AsProposed", kept=kept)
    if now.begun:
        return _carry_out(spec, seen, now, kept)
    return _await_approval(spec, seen, now, kept)


def _blind(now: RebalanceSituation) -> RebalanceStep:
    """Return where a rebalance is while brokers say nothing: where it was, as far as that is told without them."""
    text = "no broker says how the cluster is"
    if now.ended is not None:
        return RebalanceStep(now.ended, RebalanceDo.NOTHING, "", kept=now.kept)
    if now.kept is None:
        phase = RebalancePhase.NEW
    else:
        phase = RebalancePhase.REBALANCING if now.begun else RebalancePhase.PROPOSAL_READY
    return RebalanceStep(phase, RebalanceDo.WAIT, text, "NotObserved", kept=now.kept)


def _stop(seen: Assignment, now: RebalanceSituation, phase: RebalancePhase) -> RebalanceStep:
    """Take back what is in flight of what was approved, then the throttle; *phase* is the state meanwhile."""
    kept = now.kept
    if kept is None or not now.begun or now.ended is not None:
        return RebalanceStep(now.ended or RebalancePhase.STOPPED, RebalanceDo.NOTHING, "", kept=kept)
    batch = undo(kept.moves, seen, now.in_flight)
    if batch.cancel or batch.submit:
        text = f"takes back the moves of {listing((*batch.cancel, *batch.submit))}; what was moved stays"
        return RebalanceStep(phase, RebalanceDo.MOVE, text, "TakesBack", batch, kept=kept)
    if batch.waiting:
        text = f"waits for {listing(batch.waiting)}, which only have old replicas to take away"
        return RebalanceStep(phase, RebalanceDo.WAIT, text, "TakesBack", batch, kept=kept)
    if now.throttled:
        return RebalanceStep(phase, RebalanceDo.WAIT, _UNTHROTTLED, "TakesBack", batch, kept=kept)
    if batch.elect:
        return RebalanceStep(phase, RebalanceDo.ELECT, _electing(batch), "TakesBack", batch, kept=kept)
    return RebalanceStep(RebalancePhase.STOPPED, RebalanceDo.NOTHING, "", kept=kept)


def _plan(spec: RebalanceSpec, seen: Assignment, now: RebalanceSituation) -> RebalanceStep:
    """Propose, unless the cluster is at something that a proposal would be out of date by."""
    if why := _why_not_now(now):
        return RebalanceStep(RebalancePhase.PENDING_PROPOSAL, RebalanceDo.WAIT, why, "ClusterBusy")
    asked = digest_of([spec.digest, seen.read_digest])
    if now.refused is not None and now.refused.asked == asked:
        return _refused(now.refused)
    proposal = propose(seen, spec.wish)
    if proposal.problems:
        return _refused(RefusedWish(asked, "CantBe", _told(spec, proposal.problems)))
    kept = kept_of(proposal, _wish(spec, now))
    if not proposal.moves:
        text = "everything is where it should be: nothing to move"
        return RebalanceStep(RebalancePhase.READY, RebalanceDo.KEEP, text, "AsWished", proposal=proposal, kept=kept)
    text = "a proposal is there"
    return RebalanceStep(
        RebalancePhase.PROPOSAL_READY, RebalanceDo.KEEP, text, "Proposed", proposal=proposal, kept=kept, asked=asked
    )


def _refused(found: RefusedWish) -> RebalanceStep:
    return RebalanceStep(RebalancePhase.NOT_READY, RebalanceDo.WAIT, found.text, found.reason, asked=found.asked)


def _told(spec: RebalanceSpec, problems: Sequence[str]) -> str:
    """Return why a wish can't be granted, each time with the field that it is about."""
    return "; ".join(f"{_field(spec, each)}: {each}" for each in problems)


def _field(spec: RebalanceSpec, problem: str) -> str:
    """Return the field that a problem is about."""
    if "goal rack" in problem:
        return ".spec.goals"
    if problem.startswith("topics "):
        return ".spec.excludeTopics"
    return ".spec.brokers" if spec.brokers else ".spec.clusterRef"


def _why_not_now(now: RebalanceSituation) -> str:
    if now.busy:
        return now.busy
    moving = [each.key for each in now.in_flight]
    return f"waits for {len(moving)} partitions that are being moved: {listing(sorted(moving))}" if moving else ""


def _await_approval(
    spec: RebalanceSpec, seen: Assignment, now: RebalanceSituation, kept: KeptProposal
) -> RebalanceStep:
    if kept.seen != seen.digest:
        return _plan(spec, seen, now)
    if now.approved and (why := _why_not_now(now)):
        return RebalanceStep(
            RebalancePhase.PROPOSAL_READY, RebalanceDo.WAIT, f"is approved; {why}", "ClusterBusy", kept=kept
        )
    if now.approved:
        text = f"begins to move {len(kept.moves)} partitions"
        return RebalanceStep(RebalancePhase.REBALANCING, RebalanceDo.BEGIN, text, "Moving", kept=kept)
    text = f"waits for approval to move {len(kept.moves)} partitions"
    return RebalanceStep(RebalancePhase.PROPOSAL_READY, RebalanceDo.APPROVE, text, "AwaitsApproval", kept=kept)


def _carry_out(spec: RebalanceSpec, seen: Assignment, now: RebalanceSituation, kept: KeptProposal) -> RebalanceStep:
    moving = {each.key for each in now.in_flight}
    moves = [each for each in kept.moves if each.key in moving or not _is_overtaken(each, seen)]
    live = [each for each in moves if not _missing(each, seen)]
    batch = next_batch(live, seen, now.in_flight, spec.max_moves_in_flight or 1)
    if batch.is_finished and len(live) < len(moves):
        return _lacking(moves, seen, batch, kept)
    if batch.is_finished:
        return _end(now, kept, batch)
    progress = f"{len(batch.done)} of {len(moves)} partitions moved, {len(batch.waiting)} under way"
    do, reason = _moving(now, batch)
    text = f"{progress}; {now.busy}" if reason == "ClusterBusy" else progress
    return RebalanceStep(RebalancePhase.REBALANCING, do, text, reason, batch, kept=kept)


def _moving(now: RebalanceSituation, batch: Batch) -> tuple[RebalanceDo, str]:
    """Return what is next while partitions are left to move, and a word on why."""
    if not batch.submit:
        return RebalanceDo.WAIT, "Moving"
    return (RebalanceDo.WAIT, "ClusterBusy") if now.busy else (RebalanceDo.MOVE, "Moving")


def _is_overtaken(move: PartitionMove, seen: Assignment) -> bool:
    """Tell whether somebody else has moved a partition that isn't in flight since, so that it stands neither where it stood nor where it was to go: that stays as it is."""
    there = seen.partitions.get(move.key)
    return there is not None and set(there.replicas) not in (set(move.old), set(move.new))


def _missing(move: PartitionMove, seen: Assignment) -> list[int]:
    """Return the brokers that aren't there or don't run, and that a replica is to move to."""
    return [each for each in move.added if each not in seen.brokers or seen.brokers[each].fenced]


def _lacking(moves: Sequence[PartitionMove], seen: Assignment, batch: Batch, kept: KeptProposal) -> RebalanceStep:
    """Say what keeps the rest from moving, all else being done."""
    away = sorted({broker for each in moves for broker in _missing(each, seen)})
    text = f"brokers {listing(away)} aren't there or don't run, and replicas are to move to them (hint: start or add them, or stop the rebalance)"
    return RebalanceStep(RebalancePhase.NOT_READY, RebalanceDo.WAIT, text, "BrokersMissing", batch, kept=kept)


def _end(now: RebalanceSituation, kept: KeptProposal, batch: Batch) -> RebalanceStep:
    """Wait until the throttle is off, have the preferred brokers lead, and be ready."""
    if now.throttled:
        return RebalanceStep(RebalancePhase.REBALANCING, RebalanceDo.WAIT, _UNTHROTTLED, "Ending", batch, kept=kept)
    if batch.elect:
        return RebalanceStep(
            RebalancePhase.REBALANCING, RebalanceDo.ELECT, _electing(batch), "Ending", batch, kept=kept
        )
    text = f"{len(kept.moves)} partitions stand as proposed"
    gone = f"; {len(batch.gone)} are no more: {listing(batch.gone)}" if batch.gone else ""
    return RebalanceStep(RebalancePhase.READY, RebalanceDo.NOTHING, text + gone, "AsProposed", batch, kept=kept)


def _electing(batch: Batch) -> str:
    return f"{len(batch.elect)} partitions get their preferred leaders: {listing(batch.elect)}"
