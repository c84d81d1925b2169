"""What is told of a database in its status: who is who, how far each is, and conditions.

A status isn't written while nothing happens to the database: what changes with each write, such as how far logs go and how far replicas are behind, is told coarsely.

Pure: a state and the next step in, a status and conditions out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_reconcile.module_api import Condition, Context, Manifest, kept_status, map_at
from kubectl_reconcile_operators.postgres.decision import refusal_of, room_told
from kubectl_reconcile_operators.postgres.handover import answered, noted
from kubectl_reconcile_operators.postgres.membership import commit_told, members, quorums
from kubectl_reconcile_operators.postgres.situation import (
    PRIMARY,
    REPLICA,
    DatabaseState,
    Instance,
    PrimaryHandover,
    claim_name,
    lsn_text,
)
from kubectl_reconcile_operators.postgres.spec import MyDatabaseSpec
from kubectl_reconcile_operators.postgres.steps import ACTIONS, DatabaseStep, Do


def status_of(cr: Manifest, s: DatabaseState, step: DatabaseStep, ctx: Context) -> dict[str, Any]:
    """Return what the status says besides conditions."""
    before = kept_status(cr)
    primary = s.primary
    serves = s.serving is not None
    lost = step.do is Do.STOP and step.reason != "Paused" and not serves
    known_handover = noted(s, step)
    phase = "Failed" if lost else "Running" if serves else _phase(s, known_handover)
    answer: Mapping[str, Any] = primary.answer if primary else {}
    known = {
        "currentPrimary": s.named_primary if s.is_formed or primary else "",
        "systemID": s.system,
        "version": str(answer.get("version") or before.get("version") or ""),
        "timeline": answer.get("timeline") or before.get("timeline") or 0,
        "targetPrimary": known_handover.to or (s.named_primary if s.is_formed or primary else ""),
        "handover": _told(known_handover),
        "synchronous": _noted_quorums(s, step, ctx),
        "switchoverAnswered": answered(s, step),
        "restoredFrom": s.filling.file or str(before.get("restoredFrom") or ""),
    }
    return {
        "phase": phase,
        "reason": step.text if step.do is Do.STOP else "",
        "instances": [_line(each, s) for _, each in sorted(s.instances.items())],
        "keptVolumes": [{"claim": claim_name(slot), "since": each.kept_since} for slot, each in sorted(s.kept.items())],
        "readyInstances": sum(s.is_healthy(each) for each in s.instances.values()),
        **{name: value for name, value in known.items() if value},
    }


def _noted_quorums(s: DatabaseState, step: DatabaseStep, ctx: Context) -> dict[str, Any]:
    """Return by what rows may have been acknowledged, and how many have one now before it is."""
    before, noted = s.synchronous, [each.told() for each in quorums(s)]
    count = found if isinstance(found := before.get("revision"), int) else 0
    since = str(before.get("since") or "")
    if step.do is Do.NOTE_QUORUM:
        since, count, noted = ctx.now, count + 1, list(step.parameters["quorums"])
    return {"min": noted[-1]["min"], "quorums": noted, "since": since, "revision": count} if since else {}


def _told(handover: PrimaryHandover) -> dict[str, Any]:
    """Return a handover as a status keeps it."""
    kind = "Gathering" if handover.is_gathering else "Failover" if handover.is_failover else "Switchover"
    if not handover.is_noted:
        return {}
    timeline, position = handover.after or (0, None)
    seen = {} if position is None else {"timeline": timeline, "checkpoint": lsn_text(position)}
    return {
        "to": handover.to,
        "uid": handover.uid,
        "kind": kind,
        **seen,
        **({"closed": True} if handover.is_closed else {}),
    }


def _phase(s: DatabaseState, handover: PrimaryHandover) -> str:
    if handover.is_noted and not handover.is_gathering:
        return "FailingOver" if handover.is_failover else "SwitchingOver"
    return "Recovering" if s.is_formed else "Creating"


def _line(instance: Instance, s: DatabaseState) -> dict[str, Any]:
    role = PRIMARY if instance.slot == s.named_primary else REPLICA
    lag = map_at(s.followers, instance.slot).get("lagBytes")
    if not s.writable and instance.slot in s.outage.lags:  # the last known one: it tells what a failover may lose
        lag = s.outage.lags[instance.slot]
    told: dict[str, Any] = {"lagBytes": lag} if isinstance(lag, int) and role == REPLICA else {}
    if position := instance.answer.get("lsn") or instance.answer.get("around"):
        told["lsn"] = position
    return {"pod": instance.slot, "role": role, "ready": s.is_healthy(instance), **told}


def conditions_of(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Condition]:
    """Yield the conditions, those of backups aside."""
    refused, why = refusal_of(spec, s, ctx)
    if full := room_told(spec, s):
        refused, why = "DiskFull", "; ".join(filter(None, (full, why)))
    is_decision = step.do in {Do.STOP, Do.FAIL_OVER} and step.reason != "Paused"
    if s.serving is not None:
        yield Condition("Available", "True", "PrimaryServes", f"{s.serving.slot} serves")
    else:
        reason = step.reason or ("PrimaryNotServing" if s.is_formed else "Starting")
        yield Condition("Available", "False", reason, step.text)
    if step.do is Do.NOTHING and not refused:
        yield Condition(
            "Ready",
            "True",
            "AsSpecified",
            "; ".join(
                filter(
                    None,
                    (
                        f"{len(s.instances)} instances are as specified, {s.named_primary} the primary",
                        commit_told(spec),
                    ),
                )
            ),
        )
    else:
        yield Condition("Ready", "False", step.reason or refused or step.why.value, step.text or why)
    yield from _replicating(spec, s, ctx)
    at_it = step.do not in {Do.NOTHING, Do.STOP}
    yield Condition("Progressing", "True" if at_it else "False", step.why.value, step.text if at_it else "")
    if full and is_decision:
        yield Condition("Degraded", "True", step.reason, f"{step.text}; {why}")
    elif refused:
        yield Condition("Degraded", "True", refused, why)
    elif step.do in ACTIONS and (said := s.failed.get(step.key)):
        yield Condition("Degraded", "True", "Refused", f"{step.text}: {said.removeprefix(f'{step.key}: ')}")
    elif is_decision or step.reason == "InstanceFails":
        yield Condition("Degraded", "True", step.reason, step.text)


def _replicating(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> Iterator[Condition]:
    """Yield whether all replicas follow, where there are to be some."""
    replicas = members(spec, s, ctx)[1:]
    if not replicas:
        return
    behind = [slot for slot in replicas if slot not in s.instances or not s.streams(s.instances[slot])]
    if not s.writable:
        reason = "PrimaryNotServing" if s.is_formed else "Starting"
        yield Condition("Replicating", "False", reason, "no server takes writes that replicas could follow")
    elif behind:
        count = len(replicas) - len(behind)
        text = f"{count} of {len(replicas)} replicas follow {s.named_primary}, without {', '.join(behind)}"
        yield Condition("Replicating", "False", "ReplicaNotFollowing", text)
    else:
        yield Condition("Replicating", "True", "AllFollow", f"{', '.join(replicas)} follow {s.named_primary}")
