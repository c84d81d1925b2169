"""MyDatabase: a CR ``MyDatabase`` is a PostgreSQL, begun, filled, changed and brought back one step a pass.

What the one next step is, ``decision`` says; here it becomes children (a pod more or less) or an action (a Secret, something within the
server), whose precondition is looked at again right before it runs.

Conditions: ``Available`` (the primary serves), ``Ready`` (all is as specified), ``Progressing`` (a step is under way), and ``Degraded`` where
nobody but a person can go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kubectl_reconcile.module_api import (
    Action,
    Condition,
    Context,
    Facts,
    Io,
    Manifest,
    Outcome,
    Owned,
    Reads,
    Select,
    VolumeWish,
    kept_status,
    key_of,
    labels_of,
    map_at,
    module,
    named,
    seconds_between,
    text_at,
    unobserved,
    untouched_in,
    volumes_left,
)
from kubectl_reconcile.modules.postgres import driver, outlook
from kubectl_reconcile.modules.postgres.access.tls import in_effect, tls_told
from kubectl_reconcile.modules.postgres.backup.beginning import filling_of, restore_children
from kubectl_reconcile.modules.postgres.backup.upkeep import backups_of, claim_that_stays
from kubectl_reconcile.modules.postgres.children import (
    claim,
    disruption_budget,
    kept_pod,
    new_pod,
    services,
    template_of,
)
from kubectl_reconcile.modules.postgres.decision import next_step, refusal_of, room_told
from kubectl_reconcile.modules.postgres.handover import answered, noted
from kubectl_reconcile.modules.postgres.membership import quorums
from kubectl_reconcile.modules.postgres.reading import state_of
from kubectl_reconcile.modules.postgres.situation import (
    PRIMARY,
    REPLICA,
    ROLE,
    DatabaseState,
    Instance,
    InstanceVolume,
    PrimaryHandover,
    claim_name,
    lsn_text,
)
from kubectl_reconcile.modules.postgres.spec import MyDatabaseSpec, database_spec, secrets_named
from kubectl_reconcile.modules.postgres.steps import ACTIONS, DatabaseStep, NextDo

_EAGER_S, _BUSY_S, _IDLE_S = 0.1, 2.0, 15.0
_PATIENCE = 5
"""Of the time for which clients have waited, which part passes at most before servers are asked again."""


def _claims_named(cr: Manifest) -> Select:
    """Select the volume claims with backups that the spec names: those to write to, and those to begin with."""
    spec = map_at(cr, "spec")
    source = map_at(spec, "bootstrap", "fromBackup")
    of_source = text_at(source, "persistentVolumeClaim", "claimName") or f"{text_at(source, 'database')}-backups"
    target = text_at(spec, "backup", "target", "persistentVolumeClaim", "claimName")
    return Select(names=tuple(each for each in (target, of_source) if each))


@module(
    api="example.com/v1alpha1",
    kind="MyDatabase",
    owns=["v1/Pod", "v1/PersistentVolumeClaim", "v1/Service", "policy/v1/PodDisruptionBudget", "batch/v1/Job"],
    reads=[
        volumes_left("mydatabase"),
        Reads("v1", "PersistentVolumeClaim", of=_claims_named),
        Reads("v1", "Pod", selector="reconcile.dev/module=mydatabase"),
        Reads("v1", "Secret", of=secrets_named, on_request=True),
    ],
    observe_s=12.0,
)
class MyDatabase:
    """Run PostgreSQL: a primary and replicas, with users, databases and parameters as specified.

    An instance that dies comes back on its volume, and none ever begins with an empty one where there was data. Passwords stand in Secrets,
    which are made where they are missing; a new password in one is set in the server.
    """

    async def observe(self, cr: Manifest, io: Io) -> Facts:
        """Ask the servers who they are and what they hold."""
        return await driver.observe(cr, io)

    async def act(self, cr: Manifest, action: Action, io: Io) -> str:
        """Make a Secret, or have a server change something."""
        return await driver.act(cr, action, io)

    def predict(self, _cr: Manifest, facts: Facts, action: Action) -> Facts:
        """Say what there will be."""
        return outlook.after_action(facts, action)

    def foresee(self, cr: Manifest, owned: Owned, facts: Facts) -> Facts:
        """Say what the servers will answer once they run."""
        return outlook.once_running(database_spec(cr), owned, facts, Context("", "mydatabase", cr))

    def reconcile(self, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Take the next step."""
        asked = database_spec(cr)
        if ctx.unobserved:
            return unobserved(cr, ctx.unobserved, _BUSY_S)
        s = state_of(cr, owned, facts, ctx)
        spec = in_effect(asked, s, ctx)
        s = replace(s, filling=filling_of(spec, s, owned, ctx))
        backups = backups_of(spec, s, cr, owned, ctx)
        step = next_step(spec, s, template_of(spec, ctx), ctx)
        is_left = step.reason in {"Paused", "DifferentDatabases", "VersionRefused"}
        children = () if is_left else (*_children(spec, s, step, ctx), *backups.children)
        return Outcome(
            children=children,
            untouched=untouched_in(children),
            keep_children=is_left,
            actions=tuple(_action(s, step)),
            status={**_status(cr, s, step, ctx), **tls_told(spec), **backups.status},
            conditions=(*_conditions(asked, s, step, ctx), *backups.conditions),
            warnings=tuple(filter(None, (refusal_of(asked, s, ctx)[1],))),
            requeue_after_s=min(_again_s(spec, s, step, ctx), backups.wait_s or _IDLE_S),
            urgent=_is_urgent(s, step),
        )

    def finalize(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """End the pods; let go of the volumes, unless they are to go too."""
        pods, found = owned.of("Pod"), state_of(cr, Owned(owned.of("PersistentVolumeClaim")), {}, ctx)
        volumes = {**found.volumes, **found.kept}
        stay = map_at(cr, "spec").get("deletionPolicy") != "Delete"
        of_class = text_at(cr, "spec", "storage", "storageClassName")
        claims = tuple(
            claim(VolumeWish(each.size, of_class), ctx, each, {}, is_primary=each.is_primary)
            for each in volumes.values()
            if stay
        )
        claims += tuple(claim_that_stays(owned, ctx)) if stay else ()
        left = [*pods, *owned.of("PersistentVolumeClaim"), *owned.of("Job")]
        text = f"{len(pods)} pods are left; {len(volumes)} volumes {'stay' if stay else 'go too'}"
        return Outcome(
            children=claims,
            released=tuple(key_of(each) for each in claims),
            status=kept_status(cr),
            conditions=(Condition("Ready", "False", "Deleting", text if left else "everything is gone"),),
            finalized=not left,
        )


def _again_s(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> float:
    """Return when to look again: servers say nothing by themselves, and clients wait while one takes over, or is about to. The longer it takes, the more seldom."""
    if _is_at_rest(spec, s, step):
        return _IDLE_S
    waited_s = max(seconds_between(s.outage.since, ctx.now), 0.0) if s.outage.since else 0.0
    if step.target or (s.handover.is_noted and not s.writable):
        return min(max(_EAGER_S, waited_s / _PATIENCE), _BUSY_S)
    due_s = spec.failover.delay_seconds - waited_s if spec.failover and s.outage.since else _BUSY_S
    return min(max(due_s, _EAGER_S), _BUSY_S) if due_s > 0 else _BUSY_S


def _is_urgent(s: DatabaseState, step: DatabaseStep) -> bool:
    """Tell whether clients wait: nobody takes their writes, they aren't led to who does, or that is about to be so."""
    led_to = [slot for slot, each in s.instances.items() if labels_of(each.manifest).get(ROLE) == PRIMARY]
    return bool(step.target) or (s.is_formed and [each.slot for each in s.writable] != led_to)


def _is_at_rest(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep) -> bool:
    """Tell whether nothing follows by itself: a failover may, once nobody has served for long enough."""
    return step.do in {NextDo.NOTHING, NextDo.STOP} and not (spec.failover and s.is_formed and not s.writable)


# --- children -------------------------------------------------------------------------------------


def _children(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Manifest]:
    """Yield what must exist after the step; what is told by its name alone stays as it is."""
    yield from services(ctx)
    yield disruption_budget(ctx)
    yield from _claims(spec, s, step, ctx)
    yield from restore_children(spec, s, step, ctx)
    for slot, instance in s.instances.items():
        if step.do in {NextDo.DELETE_POD, NextDo.SET_ASIDE} and step.about == slot:
            continue
        is_left = bool(s.writable) and slot != s.named_primary and labels_of(instance.manifest).get(ROLE) == PRIMARY
        is_at_rest = not instance.has_ended and (not instance.is_going or is_left)
        made = kept_pod(spec, ctx, instance, _role(instance, s)) if is_at_rest else None
        yield made or named("v1", "Pod", slot)
    if step.do is NextDo.CREATE_POD:
        yield new_pod(spec, ctx, step.about, step.begin, quorums(s)[-1].setting(step.about))


def _role(instance: Instance, s: DatabaseState) -> str:
    """Return what clients may use an instance for, empty where nobody may. Of two that take writes, neither is the primary.

    One that doesn't answer for the moment stays what it was: whether it is ready, its own probe says.
    """
    before = labels_of(instance.manifest).get(ROLE, "")
    if instance.slot == s.named_primary:
        is_it = instance.is_writable if instance.answer else before == PRIMARY
        return PRIMARY if is_it and len(s.writable) <= 1 else ""
    if not instance.answer or not s.writable:
        return before if before == REPLICA else ""
    return REPLICA if s.streams(instance) else ""


def _claims(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Manifest]:
    for slot, known in (*s.volumes.items(), *s.kept.items()):
        if step.do is NextDo.DELETE_VOLUME and step.about == slot:
            continue
        is_set_aside = step.do is NextDo.SET_ASIDE and step.about == slot
        volume = replace(known, kept_since=ctx.now, rejoins=False) if is_set_aside else known
        instance = s.instances.get(slot)
        if volume.is_going:
            yield named("v1", "PersistentVolumeClaim", claim_name(slot))
        else:
            is_it = slot == s.named_primary if len(s.writable) == 1 else volume.is_primary
            yield claim(spec.storage, ctx, volume, instance.answer if instance else {}, is_primary=is_it)
    if step.do in {NextDo.CREATE_POD, NextDo.RESTORE} and step.about not in s.volumes:
        yield claim(spec.storage, ctx, InstanceVolume(step.about), {}, is_primary=False)


# --- actions --------------------------------------------------------------------------------------


_CHANGED = {
    NextDo.SET_PARAMETERS: "settings",
    NextDo.SET_ACCESS: "hba",
    NextDo.SET_TLS: "tls",
    NextDo.SET_QUORUM: "synchronous",
    NextDo.CONFIRM_QUORUM: "synchronous",
}
"""What of an instance's answer a step changes."""
_REACHED = ("recovery", "timeline", "lsn")


def _action(s: DatabaseState, step: DatabaseStep) -> Iterator[Action]:
    """Yield the step as an action, if it is one. What it was decided on must still be so when it runs."""
    if step.do not in ACTIONS:
        return
    given = dict(step.parameters)
    if step.do is NextDo.MAKE_SECRET:
        holds: dict[str, Any] = {f"secrets.{given['secret']}": "absent"}
    else:
        given.setdefault("instance", s.named_primary)
        slot = given["instance"]
        instance = s.instances[slot]
        holds = {"writable": ",".join(sorted(each.slot for each in s.writable))}
        holds[f"pods.{slot}.uid"] = instance.manifest["metadata"].get("uid")
        match step.do:
            case NextDo.SET_USER:
                holds[f"roles.{given['user']}"] = s.roles.get(given["user"])
            case NextDo.MAKE_SLOT | NextDo.DROP_SLOT:
                holds[f"slots.{given['slot']}"] = s.slots.get(given["slot"])
            case NextDo.CHECKPOINT:
                pass
            case do if said := _CHANGED.get(do):
                holds[f"pods.{slot}.{said}"] = instance.answer.get(said)
            case NextDo.PROMOTE if "closed" in given:
                holds |= {f"pods.{slot}.{name}": instance.answer.get(name) for name in (*_REACHED, "closed")}
            case NextDo.PROMOTE | NextDo.FAIL_OVER:
                holds |= dict(_compared(s))
            case _:
                holds[f"databases.{given['database']}"] = s.databases.get(given["database"])
    is_decision = step.do is NextDo.FAIL_OVER
    is_once = is_decision or step.do is NextDo.CONFIRM_QUORUM
    yield Action(step.key, step.do.value, step.text, given, holds, needs_approval=is_decision, repeats=not is_once)


def _compared(s: DatabaseState) -> Iterator[tuple[str, Any]]:
    """Yield what was compared for a promotion: who stands by, and how far the log of each goes."""
    for each in s.ordered:
        if each.stands_by:
            yield f"pods.{each.slot}.uid", each.uid
            for name in (*_REACHED, "receives"):
                yield f"pods.{each.slot}.{name}", each.answer.get(name)


# --- status ---------------------------------------------------------------------------------------


def _status(cr: Manifest, s: DatabaseState, step: DatabaseStep, ctx: Context) -> dict[str, Any]:
    before = kept_status(cr)
    primary = s.primary
    serves = primary is not None and primary.serves and primary.is_writable
    lost = step.do is NextDo.STOP and step.reason != "Paused" and not serves
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
        "reason": step.text if step.do is NextDo.STOP else "",
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
    if step.do is NextDo.NOTE_QUORUM:
        since, count, noted = ctx.now, count + 1, list(step.parameters["quorums"])
    return {"min": noted[-1]["min"], "quorums": noted, "since": since, "revision": count} if since else {}


def _told(handover: PrimaryHandover) -> dict[str, Any]:
    """Return a handover as a status keeps it."""
    kind = "Failover" if handover.is_failover else "Switchover"
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
    if handover.is_noted:
        return "FailingOver" if handover.is_failover else "SwitchingOver"
    return "Recovering" if s.is_formed else "Creating"


def _line(instance: Instance, s: DatabaseState) -> dict[str, Any]:
    role = PRIMARY if instance.slot == s.named_primary else REPLICA
    lag = map_at(s.followers, instance.slot).get("lagBytes")
    if not s.writable and instance.slot in s.outage.lags:  # the last known one: it tells what a failover may lose
        lag = s.outage.lags[instance.slot]
    told = {"lagBytes": lag} if isinstance(lag, int) and role == REPLICA else {}
    return {"pod": instance.slot, "role": role, "ready": s.is_healthy(instance), **told}


def _conditions(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Condition]:
    primary, (refused, why) = s.primary, refusal_of(spec, s, ctx)
    if full := room_told(spec, s):
        refused, why = "DiskFull", "; ".join(filter(None, (full, why)))
    is_decision = step.do in {NextDo.STOP, NextDo.FAIL_OVER} and step.reason != "Paused"
    if primary is not None and primary.serves and primary.is_writable:
        yield Condition("Available", "True", "PrimaryServes", f"{primary.slot} serves")
    else:
        reason = step.reason or ("PrimaryNotServing" if s.is_formed else "Starting")
        yield Condition("Available", "False", reason, step.text)
    if step.do is NextDo.NOTHING and not refused:
        yield Condition(
            "Ready",
            "True",
            "AsSpecified",
            f"{len(s.instances)} instances are as specified, {s.named_primary} the primary",
        )
    else:
        yield Condition("Ready", "False", step.reason or refused or step.why.value, step.text or why)
    at_it = step.do not in {NextDo.NOTHING, NextDo.STOP}
    yield Condition("Progressing", "True" if at_it else "False", step.why.value, step.text if at_it else "")
    if full and is_decision:
        yield Condition("Degraded", "True", step.reason, f"{step.text}; {why}")
    elif refused:
        yield Condition("Degraded", "True", refused, why)
    elif step.do in ACTIONS and (said := s.failed.get(step.key)):
        yield Condition("Degraded", "True", "Refused", f"{step.text}: {said.removeprefix(f'{step.key}: ')}")
    elif is_decision or step.reason == "InstanceFails":
        yield Condition("Degraded", "True", step.reason, step.text)
