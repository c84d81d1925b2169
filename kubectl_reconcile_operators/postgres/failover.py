"""How a replica takes over from a primary that is away, which may lose what it hadn't received: a failover.

Only from a primary that is *known to have ended*: its pod is gone, which Kubernetes says once its node has ended it. One whose server answers nobody, not its own
node's probe either, is deleted first; so is one that passes that probe, while no replica receives anything from it: its network is dead, or it is about to hang. It has `FAILOVER_GRACE_S` to end. While the node hasn't reported that it has ended, nobody is promoted: a server that can't be reached may take
writes, unless a person says so: once its pod should have ended by now, that is offered, as a decision of its own. Pods never restart by themselves, and the old primary's is only recreated once somebody else takes writes, as a standby.

1. The primary hasn't served for as long as the spec says, though its pod was recreated meanwhile where it could be. What may be lost is nothing, where those that answer are enough of a
   quorum, see `membership`; else at most the last known lag of the replica whose log goes furthest, unless replication is to be synchronous. More than the spec allows, or unknown, it takes somebody's approval, which counts for this outage and this replica alone.
2. Who takes over is noted in the status; the primary's pod is deleted, whatever it is at.
3. Once it is gone and no replica receives anything any more, the one is promoted whose log goes furthest of those that answer.

A replica whose volume is full, too, takes over from nobody: the new timeline needs room in its log. The primary is brought back until one of them has some.

Where the pod doesn't go in step 2, somebody may decide that step 3 is taken anyway, and what the old primary still writes is lost. Not while a replica receives anything: then it lives.

A primary that serves again before step 2 ends it, as does somebody who promotes an instance by hand.

Pure: a state in, steps out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from kubectl_reconcile.module_api import Context, seconds_between
from kubectl_reconcile_operators.postgres.children import Begin
from kubectl_reconcile_operators.postgres.handover import elected, standing_by
from kubectl_reconcile_operators.postgres.membership import has_every_row
from kubectl_reconcile_operators.postgres.situation import LAG_LEAST, DatabaseState, Instance
from kubectl_reconcile_operators.postgres.spec import COMMIT, FailoverWish, MyDatabaseSpec
from kubectl_reconcile_operators.postgres.steps import DatabaseStep, Do, Why, ended, wait

FAILOVER_GRACE_S = 10
"""How long the server of a primary that is left behind may take to end in order. One that doesn't is killed: its volume is recovered when it starts again."""


def failing_over(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is next in a failover, if one is under way, or due and needs nobody's approval any more."""
    if s.writable or not s.is_formed or s.handover.is_gathering:
        return
    if s.handover.is_failover:
        for step in _gone_on(spec, s, template, ctx):
            yield replace(step, why=Why.RECOVERING, target=step.target or s.handover.to, is_failover=True)
    elif (best := _heir(spec, s, ctx)) is not None and _may(spec, s, best):
        yield _begun(spec, s, best)


def offered(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield the decision that somebody has to make, where a failover is due that may lose too much; the primary is brought back meanwhile, where it can be."""
    best = None if s.writable or s.handover.is_failover else _heir(spec, s, ctx)
    if best is not None and not _may(spec, s, best):
        yield _offer(spec, s, best, ctx)


def left_behind(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield the decision that somebody has to make where the primary's pod should have ended, and its node doesn't say that it has; then what follows from it."""
    old, best = s.primary, None if s.writable or not s.is_formed else _heir(spec, s, ctx)
    if old is None or best is None or any(each.answer.get("receives") for each in s.ordered):
        return
    if not _is_approved(s, best, f"unended {old.uid}"):
        yield _offer_beside(spec, s, old, best, ctx)
    elif not s.handover.is_failover:
        yield replace(wait(_told(spec, s, best), "FailingOver", s), target=best.slot, is_failover=True)
    else:
        for step in _gone_on(spec, s, template, ctx):
            yield replace(step, why=Why.RECOVERING, target=step.target or s.handover.to, is_failover=True)


def _offer_beside(spec: MyDatabaseSpec, s: DatabaseState, old: Instance, best: Instance, ctx: Context) -> DatabaseStep:
    """Return the offer to leave a primary behind of which nobody knows that it has ended."""
    step = _offer(spec, s, best, ctx, f"unended {old.uid}")
    warning = f"{old.slot} was to end and its node doesn't say that it has: it may still take writes of clients that reach it, and these are lost; "
    return replace(step, text=f"{warning}{step.text}", parameters={**step.parameters, "unended": old.uid})


def _offer(spec: MyDatabaseSpec, s: DatabaseState, best: Instance, ctx: Context, besides: str = "") -> DatabaseStep:
    hint = f"kubectl reconcile approve mydatabase/{ctx.cr['metadata']['name']}"
    text = f"{_told(spec, s, best)} (hint: if {s.named_primary} won't come back: {hint})"
    given = {"instance": best.slot}
    return DatabaseStep(Do.FAIL_OVER, Why.RECOVERING, text, _key(s, best, besides), "FailoverOffered", parameters=given)


def _heir(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> Instance | None:
    """Return the replica whose log goes furthest, if a failover is due: nobody has served for long enough, by what the primary's own node says too."""
    wish, since, old = spec.failover, s.outage.since, s.primary
    if wish is None or not since or seconds_between(since, ctx.now) < wish.delay_seconds:
        return None
    if old is not None and (old.answer or (old.is_going and not old.is_overdue)):
        return None
    if old is not None and old.is_ready and not _is_cut_off(s, old):
        return None
    heirs = [each for each in s.ordered if each.stands_by and each.reached and not each.is_going]
    best = max(heirs, key=lambda each: (each.reached or (0, 0), s.has_room(each.slot)), default=None)
    return best if best is not None and s.has_room(best.slot) else None  # a full one would end in its turn


def _is_cut_off(s: DatabaseState, old: Instance) -> bool:
    """Tell whether a primary serves nobody whom anybody knows of, though its own node's probe passes: it doesn't answer here, and of its replicas at least half answer, and none of them receives anything.

    Its network is dead, or it hangs. Where replicas receive something, it is only here that it can't be reached.
    """
    others = [each for each in s.ordered if each.slot != old.slot]
    known = [each for each in others if each.stands_by and each.reached is not None]
    return bool(known) and 2 * len(known) >= len(others) and not any(each.answer.get("receives") for each in known)


def _may(spec: MyDatabaseSpec, s: DatabaseState, best: Instance) -> bool:
    """Tell whether a failover may begin: what may be lost is little enough, or somebody has given it up."""
    wish, lag = spec.failover or FailoverWish(), _lag(s, best.slot)
    is_little = not spec.is_lossless and lag is not None and lag <= wish.max_lag_bytes
    return _is_approved(s, best) or (wish.mode == "Automatic" and (is_little or has_every_row(spec, s)))


def _is_approved(s: DatabaseState, best: Instance, besides: str = "") -> bool:
    return f"{Do.FAIL_OVER}-{_key(s, best, besides)}" in s.outage.done


def _begun(spec: MyDatabaseSpec, s: DatabaseState, best: Instance) -> DatabaseStep:
    text, old = _told(spec, s, best), s.primary
    if old is None:
        return replace(wait(text, "FailingOver", s), target=best.slot, is_failover=True)
    text = f"delete {old.slot}: {text}"
    return DatabaseStep(
        Do.DELETE_POD, Why.RECOVERING, text, old.slot, "FailingOver", target=best.slot, is_failover=True
    )


def _told(spec: MyDatabaseSpec, s: DatabaseState, best: Instance) -> str:
    loss = _loss(spec, s, best.slot)
    return f"{best.slot} takes over from {s.named_primary}, which hasn't served since {s.outage.since}; {loss}"


def _key(s: DatabaseState, best: Instance, besides: str) -> str:
    """Return what tells this occasion from all others; *besides* is what else is given up."""
    occasion = f"{s.outage.since} {best.uid} {best.reached} {besides}".strip()
    return hashlib.sha256(occasion.encode()).hexdigest()[:10]


def _lag(s: DatabaseState, slot: str) -> int | None:
    lag = s.outage.lags.get(slot)
    return None if lag is None else max(lag, LAG_LEAST)


def _loss(spec: MyDatabaseSpec, s: DatabaseState, slot: str) -> str:
    lag = _lag(s, slot)
    if has_every_row(spec, s):
        return "may lose 0 bytes, since those that answer have, together, all that was acknowledged"
    if spec.loose_commit and spec.synchronous:
        behind = "" if lag is None else f", besides up to {lag} bytes (last known lag)"
        return f"may lose rows that were acknowledged, since .spec.parameters[{COMMIT}] is {spec.loose_commit}{behind}"
    if lag is None:
        return "how far it was behind isn't known, nor what is lost"
    return f"may lose up to {lag} bytes (last known lag)"


def _is_left(s: DatabaseState, old: Instance) -> bool:
    """Tell whether a pod is that of the primary that was left behind, and none that came afterwards to stand by."""
    return old.uid == s.handover.uid or old.begun.get("BEGIN") not in {Begin.REPLICA, Begin.REWIND}


# --- how it goes on -------------------------------------------------------------------------------


def _gone_on(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    old, to = s.primary, s.handover.to
    if old is not None and not old.stands_by and not old.is_going and _is_left(s, old):
        text = f"delete {old.slot}, so that it can't come back beside {to}"
        yield DatabaseStep(Do.DELETE_POD, Why.RECOVERING, text, old.slot)
    if (
        to in s.instances or to in s.volumes
    ):  # it may have been promoted already, so that nobody else is before it stands by
        yield from standing_by(spec, s, to, template)
    if not any(each.stands_by for each in s.ordered):
        yield wait(f"no replica answers that could take over from {s.named_primary}", "FailingOver", s)
    best = max((each for each in s.ordered if each.reached), key=lambda each: each.reached or (0, 0), default=None)
    is_known = best is not None and not any(each.answer.get("receives") for each in s.ordered)
    is_asked = old is None or not old.is_going
    if best is not None and is_known and is_asked and spec.is_lossless and not has_every_row(spec, s):
        yield from _brought_back(s)
    if best is not None and is_known and is_asked and spec.is_lossless and not (has_every_row(spec, s) or _is_approved(s, best)):  # fmt: skip
        yield _offer(spec, s, best, ctx)
    yield from elected(spec, s, ctx, f"whose log goes furthest of those that answer; {_loss(spec, s, to)}")


def _brought_back(s: DatabaseState) -> Iterator[DatabaseStep]:
    """Yield what has those stand by that could: the old primary, too, and whoever has gone since. Together they may have every row."""
    for slot, volume in sorted(s.volumes.items()):
        if slot in s.instances:
            yield from (step for step in ended(s.instances[slot], s) if step.do is Do.DELETE_POD)
        elif not volume.is_going:
            text = f"create {slot} on its volume, as a standby"
            yield DatabaseStep(Do.CREATE_POD, Why.RECOVERING, text, slot, begin=Begin.REPLICA)
