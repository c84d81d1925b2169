"""One followed Sync as a state machine: (state, event, now) -> (state, instructions).

A pass is over the *set*, all that Git asks for, when Git, the Sync or the kinds changed, when somebody asked, or when the
last one failed; else it is over the *dirty* members alone, those that changed in the cluster. A turn with nothing to look at
asks the source at most. Somebody who asks is told what the last pass over the set found, where the watches say that it
still holds.

The source is asked beside all that (``source_state``): a server that takes its time holds up neither drift nor a set that is
due for another reason. What it says is taken in at the beginning of the next turn; whoever asks waits for it.

========== ============================ =================================================== ==========
phase      event                        what follows                                        next phase
========== ============================ =================================================== ==========
any        TurnCame, spec.suspend       all is forgotten; Tell Suspended                    IDLE
IDLE       TurnCame, due or asked      ReadSource, unless it is current; and work (below)
IDLE       TurnCame, else               work
any        SourceDue                    ReadSource, where it is                             same
at rest    SourceCurrent                LookAgain when the source is due again              same
any        SourceRead, news             the set is due at once                              same
any        SourceFailed                 Retry, Tell                                         same
(work)     the source failed last       only the dirty members
(work)     gated, a dependency unready  Tell DependencyNotReady, or a cycle; only drift     IDLE, ON_OBJECTS
(work)     the same, as a daemon begins the same; PlanSet as it was let through before      ON_SET
(work)     asked, nothing changed       CheckMembers                                        CHECKING
(work)     asked, or the set is due     PlanSet                                             ON_SET
(work)     some are dirty, not paused   PlanObjects                                         ON_OBJECTS
(work)     nothing of all that          nothing, or LookAgain when the pause is over        IDLE
CHECKING   MembersChecked               Tell as before, or PlanSet                          IDLE, ON_SET
ON_SET     PlanMade                     drift that is to be left is held; ApplySet          ON_SET
ON_SET     Applied                      Tell; Retry where something failed                  IDLE
ON_SET     Applied, while gated         nothing: what was let through before is kept up     IDLE
ON_OBJECTS PlanMade                     drift is corrected or told; ApplyObjects             ON_OBJECTS
ON_OBJECTS Applied                      told; the set is due where something failed         IDLE
any        PassInterrupted              what was under way is due again                     IDLE
any        PassFailed                   Tell, Retry; the set is due                         IDLE
any        Forgotten                    all is forgotten                                    IDLE
any        ObjectsChanged               members are dirty; for others the set is due        same
any        Pushed, SourceMoved          the source is due; LookAgain                        same
any        KindsChanged                 the set is due at once; LookAgain                   same
any        Resumed, Approved            the same                                            same
any        NamespaceCame, if missed     the set is due at once; LookAgain                   same
any        RightsChanged, if refused    source and set are due, once in half a minute        same
any        DependencyChanged, if gated  LookAgain                                           same
any        RetryScheduled               the source, or the set, is due then                 same
any        a result nobody waits for    nothing: it is of a pass that was forgotten         same
========== ============================ =================================================== ==========

A set is *gated* until the Syncs that it depends on have let through what it is to become, once for a revision and a spec.

Pure: time is an argument, in seconds of a clock that only goes forward.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.drift import (
    Drift,
    deleted_in,
    drift_after,
    drift_note,
    is_mere_ownership,
    with_drift,
    without_drift,
)
from kubectl_reconcile.core.daemon.pass_phase import (
    RIGHTS_S,
    InvariantError,
    PassPhase,
    PassState,
    RightsLack,
    is_at_rest,
)
from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S, RETRY_CAP_S, Priority
from kubectl_reconcile.core.resources.status import ConditionReason, Counts, Report
from kubectl_reconcile.core.resources.sync import DriftPolicy, Sync

__all__ = ["SOON_S", "InvariantError", "PassPhase", "PassState", "Step", "step"]

SOON_S = 0.05
"""The least pause before a turn whose time has come, so that the clock has certainly passed it."""

_SHORTEST_CAP_S = 5.0
_NO_DRIFT: Final[Drift] = {}

Step: TypeAlias = tuple[PassState, tuple[on.Instruction, ...]]

_AWAITED: Final[Mapping[type[Any], frozenset[PassPhase]]] = {
    on.MembersChecked: frozenset({PassPhase.CHECKING}),
    on.PlanMade: frozenset({PassPhase.ON_SET, PassPhase.ON_OBJECTS}),
    on.Applied: frozenset({PassPhase.ON_SET, PassPhase.ON_OBJECTS}),
}
"""In which phases the result of an instruction counts; in any other it is of a pass that was forgotten."""


def step(state: PassState, event: on.Event, now_s: float) -> Step:  # noqa: C901, PLR0911, PLR0912 - one line per row
    """Return what happens to *state* by *event*, and what is to be done."""
    if state.phase not in _AWAITED.get(type(event), frozenset(PassPhase)):
        return state, ()
    if isinstance(event, on.SourceRead | on.SourceFailed) and not state.source.is_reading:
        return state, ()
    match event:
        case on.TurnCame():
            return _turn(state, event, now_s)
        case on.SourceDue():
            is_due = state.sync is not None and now_s >= state.source.due_s and not state.source.is_reading
            # Whoever waits is told by the pass after this one.
            asked = state.source.asked if state.source.is_awaited else None
            return _ask_source(state, asked, now_s) if is_due else (state, ())
        case on.SourceCurrent():
            return _source_current(state, now_s) if is_at_rest(state) else (state, ())
        case on.SourceRead():
            return _source_read(state, event, now_s), ()
        case on.SourceFailed():
            return _source_failed(state, event, now_s)
        case on.MembersChecked():
            return _members_checked(state, event)
        case on.PlanMade():
            return _set_planned(state, event) if state.phase is PassPhase.ON_SET else _objects_planned(state, event)
        case on.Applied():
            return _set_applied(state, event) if state.phase is PassPhase.ON_SET else _objects_applied(state, event)
        case on.PassInterrupted():
            return _unfinished(state), (on.LookAgain(Priority.RESYNC),)
        case on.PassFailed():
            return _failed(state, event)
        case on.RetryScheduled():
            return _retry_scheduled(state, event, now_s), ()
        case on.ObjectsChanged():
            return _objects_changed(state, event), ()
        case on.SpecInvalid():
            report = Report(ConditionReason.INVALID, event.message)
            return state.telling(report), (on.Tell(report, on.Scope.SYNC),)
        case on.Forgotten():
            return PassState(), ()
        case on.Pushed():
            known = state.sync is not None
            heard = replace(state, source=state.source.heard_of_news(now_s)) if known else state
            return heard, (on.LookAgain(Priority.PUSH),)
        case on.SourceMoved():
            moved = replace(state, source=state.source.seen_to_move()) if state.sync else state
            return moved, (on.LookAgain(Priority.PUSH),)
        case on.KindsChanged():
            return _due_now(state, Priority.RESYNC)
        case on.Resumed() | on.Approved():
            return _due_now(state, Priority.ASKED)
        case on.NamespaceCame():
            return _due_now(state, Priority.PUSH) if event.name in state.missing else (state, ())
        case on.RightsChanged():
            return _rights_changed(state, event, now_s)
        case on.DependencyChanged():
            awaited = [each.ref for each in state.sync.depends_on] if state.sync and state.is_gated else []
            return state, (on.LookAgain(Priority.PUSH),) * (event.ref in awaited)


def _source_current(state: PassState, now_s: float) -> Step:
    interval_s = _interval_s(_sync(state))
    source = state.source.answered(now_s, interval_s, state.source.verification)
    return replace(state, source=source), (on.LookAgain(Priority.POLL, max(source.due_s - now_s, SOON_S)),)


def _rights_changed(state: PassState, event: on.RightsChanged, now_s: float) -> Step:
    """Have what was refused for want of rights tried again; where that was done lately, only a while after."""
    if not state.rights.is_denied or state.sync is None or not event.concerns(state.sync.account):
        return state, ()
    if (at_s := state.rights.from_s) > now_s:
        later = replace(state, source=replace(state.source, due_s=min(state.source.due_s, at_s)), retry_s=at_s)
        return _due(later), (on.LookAgain(Priority.PUSH, at_s - now_s + SOON_S),)
    source = replace(state.source, due_s=0.0)
    return _due_now(replace(state, source=source, rights=RightsLack(True, now_s + RIGHTS_S)), Priority.PUSH)


# --- a turn -------------------------------------------------------------------------------------------------------------


def _turn(state: PassState, event: on.TurnCame, now_s: float) -> Step:
    sync = event.sync
    if sync.suspend:
        report = Report(ConditionReason.SUSPENDED, "spec.suspend is true")
        return PassState(told=report.reason), (on.Tell(report, on.Scope.SYNC, sync.requested_at),)
    if state.sync is None or (state.sync.source, state.sync.account) != (sync.source, sync.account):
        state = PassState()
    elif state.sync.generation != sync.generation:
        state = replace(_due(state), is_gated=True)
    state = replace(state, sync=sync, drift={} if sync.drift is DriftPolicy.CORRECT else state.drift)
    state, reading = _reading(state, sync, event, now_s)
    state, instructions = _work(state, event.facts, now_s)
    return state, (*reading, *instructions)


def _reading(state: PassState, sync: Sync, event: on.TurnCame, now_s: float) -> Step:
    """Have the source asked if it is due or somebody asks again; who was waiting for it gets a pass over the set."""
    source = state.source.wanted(sync.requested_at, now_s) if event.is_asked else state.source
    if not source.is_reading and now_s >= source.due_s:
        if event.facts.is_current and source.is_open and not source.is_awaited:
            current = replace(state, source=source.answered(now_s, _interval_s(sync), source.verification))
            return _looking_for_deleted(current), ()
        asked = sync.requested_at if event.is_asked or source.is_awaited else None
        return _ask_source(replace(state, source=source), asked, now_s)
    if source.is_awaited and not source.is_reading:
        return replace(state, source=source.waited_for(), is_asked=True), ()
    return replace(state, source=source), ()


def _ask_source(state: PassState, asked: str | None, now_s: float) -> Step:
    source = state.source
    since_s = source.since_s(now_s, _interval_s(_sync(state)))
    asking = on.ReadSource(source.is_awaited or not source.is_open, is_awaited=source.is_awaited, since_s=since_s)
    return replace(state, source=source.begun(asked)), (asking,)


def _source_read(state: PassState, event: on.SourceRead, now_s: float) -> PassState:
    """Note what the source asks for; after an outage the set is due, so that the status tells that it is over."""
    is_changed = event.is_news or not state.source.is_open
    source = state.source.answered(now_s, _interval_s(_sync(state)), event.verification)
    state = replace(_due(state) if is_changed else state, source=source)
    state = replace(state, retry_s=0.0, is_gated=True) if event.is_news else state
    return _looking_for_deleted(replace(state, is_gated=False) if event.was_passed else state)


def _looking_for_deleted(state: PassState) -> PassState:
    """Have what somebody deleted, and is left so, looked for as often as the source: whoever brings it back need not label it, and no watch shows it then."""
    return replace(state, dirty=state.dirty | (deleted_in(state.drift) & state.members))


def _source_failed(state: PassState, event: on.SourceFailed, now_s: float) -> Step:
    """Keep up what was read before. Credentials may be what is wrong, so they are read again next time."""
    sync, is_stale = _sync(state), state.source.is_stale
    reason = ConditionReason.UNVERIFIED if event.verification else event.reason
    report = Report(reason, event.message, verification=event.verification)
    state = replace(state, source=state.source.failed(now_s)).telling(report)
    told = on.Tell(report, on.Scope.SOURCE, _answered(state))
    cap_s = max(_interval_s(sync), _SHORTEST_CAP_S)
    retry = on.Retry(on.Scope.SOURCE, Priority.POLL, cap_s, event.message)
    return state, (told,) if is_stale else (retry, told)


def _work(state: PassState, facts: on.ClusterFacts, now_s: float) -> Step:
    """Choose what this turn is for, and when the next one is; one more comes when the source has answered."""
    state = _due(state) if facts.has_lapsed else state
    due_s = [] if state.source.is_reading else [state.source.due_s]
    due_s += [] if facts.lapses_at_s is None else [facts.lapses_at_s]
    if state.is_due and state.retry_s > now_s:  # this turn may have come instead of the one that the retry asked for
        due_s.append(state.retry_s)
    again = (on.LookAgain(Priority.POLL, max(min(due_s) - now_s, SOON_S)),) if due_s else ()
    state, work = _chosen(state, facts, now_s)
    return state, (*again, *work)


def _chosen(state: PassState, facts: on.ClusterFacts, now_s: float) -> Step:
    if not state.source.is_open:
        return _objects(state, facts)
    if state.is_gated and (facts.waits or facts.cycle):
        return _waiting(state, facts)
    state = replace(state, is_gated=False)
    if state.is_asked and state.settled and not state.dirty and not facts.is_contended:
        return replace(state, phase=PassPhase.CHECKING), (on.CheckMembers(),)
    if state.is_asked or (state.is_due and now_s >= state.retry_s):
        return _set(state)
    return _objects(state, facts)


def _waiting(state: PassState, facts: on.ClusterFacts) -> Step:
    """Tell what is waited for; what was let through before is kept up meanwhile."""
    report = Report(ConditionReason.CYCLE if facts.cycle else ConditionReason.WAITING, facts.cycle or facts.waits)
    told = on.Tell(report, on.Scope.SYNC, _answered(state))
    state = replace(_due(state).telling(report), is_asked=False)
    if facts.has_earlier:
        return replace(state, phase=PassPhase.ON_SET, dirty=frozenset()), (told, on.PlanSet(is_earlier=True))
    state, instructions = _objects(state, facts)
    return state, (told, *instructions)


def _members_checked(state: PassState, event: on.MembersChecked) -> Step:
    if state.settled is None or not event.are_there:
        return _set(state)
    answer = on.Tell(state.settled, on.Scope.SYNC, _answered(state))
    return _idle(state.telling(state.settled)), (answer,)


# --- a pass over the set ------------------------------------------------------------------------------------------------


def _set(state: PassState) -> Step:
    begun = replace(state, phase=PassPhase.ON_SET, is_due=False, dirty=frozenset(), settled=None)
    return begun, (on.PlanSet(unseen=_creates_unseen(state)),)


def _creates_unseen(state: PassState) -> bool:
    """Tell whether new objects are created without a look for others of their names, which the server refuses to touch.

    Who wants to know before anything is written has them looked for, and so does what failed: it would be refused again.
    """
    sync = _sync(state)
    return sync.drift is DriftPolicy.CORRECT and not (sync.atomic or sync.approved_plan or state.retry_s)


def _set_planned(state: PassState, event: on.PlanMade) -> Step:
    """Carry the plan out; drift that is to be left alone is, unless somebody asked."""
    made, drift = event.plan, _NO_DRIFT
    if _sync(state).drift is not DriftPolicy.CORRECT and not state.is_asked:
        made, drift = without_drift(made, state.drift, is_new=event.applied_revision != made.revision)
    state = replace(state, members=event.members, dirty=state.dirty & event.members, drift=drift)
    writes = sum(1 for change in made.acting() if change.writes)
    return state, (on.ApplySet(made, _creates_unseen(state), 0 if state.is_gated else writes),)


def _set_applied(state: PassState, event: on.Applied) -> Step:
    sync = _sync(state)
    if state.is_gated:  # what is waited for stays told
        return _idle(_due(state), missing=event.missing_namespaces), ()
    report = _signed(state, with_drift(event.report, sync.drift, state.drift))
    told = on.Tell(report, on.Scope.SET, _answered(state))
    state = _idle(state.telling(report), missing=event.missing_namespaces)
    if report.reason in {ConditionReason.FAILED, ConditionReason.PROBLEMS}:
        return _due(state), (told, _retry(sync))
    is_all = report.reason is ConditionReason.SYNCED and not report.undeletable  # else who asks wants it tried again
    if is_all and sync.drift is DriftPolicy.CORRECT and not state.is_due:
        total = report.counts.total
        state = replace(state, settled=replace(report, counts=Counts(total, unchanged=total)))
    return state, (told, on.ForgetFailures())


# --- a pass over objects ------------------------------------------------------------------------------------------------


def _objects(state: PassState, facts: on.ClusterFacts) -> Step:
    """Look at what changed in the cluster, which needs no source; what is corrected again and again waits for its turn."""
    ready = frozenset(ref for ref in state.dirty if not facts.pauses_s.get(ref))
    if ready:
        begun = replace(state, phase=PassPhase.ON_OBJECTS, dirty=state.dirty - ready, under_way=ready)
        return begun, (on.PlanObjects(ready),)
    if state.dirty:
        pause_s = min(facts.pauses_s[ref] for ref in state.dirty)
        return _idle(state), (on.LookAgain(Priority.DRIFT, pause_s),)
    return _idle(state), ()


def _objects_planned(state: PassState, event: on.PlanMade) -> Step:
    """Have drift corrected, or told; where contention changed, or what a chart asks for, a pass over the set follows."""
    instructions: tuple[on.Instruction, ...] = ()
    made = event.plan
    if event.contention_changed or event.was_told_anew:
        state, instructions = _due(state), (on.LookAgain(Priority.DRIFT, DEBOUNCE_S),)
    if _sync(state).drift is not DriftPolicy.CORRECT:
        drift, news = drift_after(made.changes, state.drift)
        state, made = replace(state, drift=drift), made.with_changes(filter(is_mere_ownership, made.changes))
        instructions += tuple(on.DriftLeft(ref, note) for ref, note in news)
    return state, (*instructions, on.ApplyObjects(made))


def _objects_applied(state: PassState, event: on.Applied) -> Step:
    sync, state = _sync(state), _idle(state, under_way=frozenset())
    instructions: list[on.Instruction] = []
    if sync.drift is DriftPolicy.CORRECT:
        put_back = tuple(on.DriftPutBack(change.ref, drift_note(change)) for change in event.written)
        instructions += [*put_back, on.NotePutBack(put_back)] if put_back else []
    elif state.told in {ConditionReason.SYNCED, ConditionReason.DRIFTED}:
        sentence = f"{(total := len(state.members))} object{'' if total == 1 else 's'} in sync"
        found = Report(ConditionReason.SYNCED, sentence, event.report.revision, Counts(total))
        report = _signed(state, with_drift(found, sync.drift, state.drift))
        state = state.telling(report)
        instructions.append(on.Tell(report, on.Scope.OBJECTS))
    if event.has_failed:
        state = _due(state)
        instructions.append(_retry(sync))
    if state.dirty:
        instructions.append(on.LookAgain(Priority.DRIFT, DEBOUNCE_S))
    return state, tuple(instructions)


def _objects_changed(state: PassState, event: on.ObjectsChanged) -> PassState:
    """Note what changed; what no file explains calls for a pass over the set."""
    if not state.source.is_read:
        return state  # the first pass looks at all of them
    known = event.refs & state.members
    state = state if known == event.refs else _due(state)
    return replace(state, dirty=state.dirty | known)


def _signed(state: PassState, report: Report) -> Report:
    """Return *report* with whose signature the source has; newer revisions may be refused while all is well with what is in force."""
    return replace(report, verification=state.source.verification)


# --- what goes wrong ----------------------------------------------------------------------------------------------------


def _failed(state: PassState, event: on.PassFailed) -> Step:
    report = Report(event.reason, event.message)
    answers = _answered(state) if state.sync and event.is_answer else ""
    retry = on.Retry(on.Scope.BROKEN_OFF, Priority.RESYNC, RETRY_CAP_S, event.message)
    state = _unfinished(state)
    state = _due(state) if state.sync else state  # only a pass over the set tells that all is well again
    return state.telling(report), (retry, on.Tell(report, on.Scope.BROKEN_OFF, answers))


def _unfinished(state: PassState) -> PassState:
    """Have what was under way looked at again."""
    again = _due(state) if state.phase is PassPhase.ON_SET else state
    return _idle(again, dirty=(state.dirty | state.under_way) & state.members, under_way=frozenset())


def _retry(sync: Sync) -> on.Retry:
    """Have the set looked at again, later with each failure; polls in between only look for news."""
    return on.Retry(on.Scope.SET, Priority.DRIFT, max(_interval_s(sync), RETRY_CAP_S))


def _retry_scheduled(state: PassState, event: on.RetryScheduled, now_s: float) -> PassState:
    if state.sync is None:
        return state
    if event.retry.scope is on.Scope.SOURCE:
        return replace(state, source=replace(state.source, due_s=now_s + event.after_s))
    if event.retry.scope is on.Scope.SET:
        return replace(state, retry_s=now_s + event.after_s - SOON_S)
    return state


# --- small moves --------------------------------------------------------------------------------------------------------


def _sync(state: PassState) -> Sync:
    if state.sync is None:
        raise InvariantError("work is under way for a Sync that isn't followed")
    return state.sync


def _interval_s(sync: Sync) -> float:
    return sync.source.interval_s if sync.source else 0.0


def _answered(state: PassState) -> str:
    """Return the request that a report answers: none as long as who asked waits for the source."""
    return "" if state.source.is_awaited else _sync(state).requested_at


def _idle(state: PassState, **changes: Any) -> PassState:
    return replace(state, phase=PassPhase.IDLE, is_asked=False, **changes)


def _due(state: PassState) -> PassState:
    return replace(state, is_due=True, settled=None)


def _due_now(state: PassState, priority: Priority) -> Step:
    """Have the set looked at without waiting for the pause after a failure; the next failure counts as the first."""
    due = replace(_due(state), retry_s=0.0) if state.sync else state
    return due, (on.ForgetFailures(), on.LookAgain(priority))
