"""MyDatabase: a CR ``MyDatabase`` is a PostgreSQL, begun, filled, changed and brought back one step a pass.

What the one next step is, ``decision`` says; here it becomes children (a pod more or less) or an action (a Secret, something within the
server), whose precondition is looked at again right before it runs.

What is told of it, ``report`` says. Conditions: ``Available`` (the primary serves), ``Replicating`` (all replicas follow), ``Ready`` (all is as specified), ``Progressing`` (a step is under way), and
``Degraded`` where only a person can continue.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from kubectl_reconcile_operators.postgres import driver, outlook
from kubectl_reconcile_operators.postgres.access.tls import in_effect, tls_told
from kubectl_reconcile_operators.postgres.backup.upkeep import backups_of
from kubectl_reconcile_operators.postgres.bootstrap.beginning import filling_children, filling_of
from kubectl_reconcile_operators.postgres.children import (
    claim,
    disruption_budget,
    kept_pod,
    new_pod,
    services,
    template_of,
)
from kubectl_reconcile_operators.postgres.decision import next_step, refusal_of
from kubectl_reconcile_operators.postgres.failover import FAILOVER_GRACE_S
from kubectl_reconcile_operators.postgres.membership import commit_told, quorums
from kubectl_reconcile_operators.postgres.reading import state_of
from kubectl_reconcile_operators.postgres.report import conditions_of, status_of
from kubectl_reconcile_operators.postgres.situation import (
    PRIMARY,
    REPLICA,
    ROLE,
    DatabaseState,
    Instance,
    InstanceVolume,
    claim_name,
)
from kubectl_reconcile_operators.postgres.spec import MyDatabaseSpec, database_spec, secrets_named
from kubectl_reconcile_operators.postgres.steps import ACTIONS, DECISIONS, DatabaseStep, Do, Why
from kubectl_reconcile_operators.volumes import CLAIM, KEPT_CLAIMS, claims_at_the_end

_EAGER_S, _BUSY_S, _IDLE_S = 0.1, 2.0, 15.0
_WATCHFUL_S = 10.0
"""How often servers are asked at rest where a replica is to take over soon: one whose network is dead tells nobody, nor does its pod change."""
_LATE = "9999-12-31T23:59:59Z"
"""The time of a preview's guess: all that only takes time has passed."""
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
    keeps=[KEPT_CLAIMS],
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
        return outlook.once_running(database_spec(cr), owned, facts, Context(_LATE, "mydatabase", cr))

    def reconcile(self, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Take the next step."""
        asked = database_spec(cr)
        if ctx.unobserved:
            return unobserved(cr, ctx.unobserved, _BUSY_S)
        s = state_of(cr, owned, facts, ctx)
        spec = in_effect(asked.accepted, s, ctx)
        s = replace(s, filling=filling_of(spec, s, owned, ctx))
        backups = backups_of(spec, s, cr, owned, ctx)
        step = next_step(spec, s, template_of(spec, ctx), ctx)
        is_left = step.reason in {"Paused", "DifferentDatabases", "VersionRefused"}
        left = tuple(_unled(spec, s, ctx)) if step.reason == "DifferentDatabases" else ()
        children = left if is_left else (*_children(spec, s, step, ctx), *backups.children)
        return Outcome(
            children=children,
            untouched=untouched_in(children),
            dropped=_dropped(step),
            graces=_graces(s, step),
            keep_children=is_left,
            actions=tuple(_action(s, step)),
            status={**status_of(cr, s, step, ctx), **tls_told(spec), **backups.status},
            conditions=(*conditions_of(asked, s, step, ctx), *backups.conditions),
            warnings=tuple(filter(None, (refusal_of(asked, s, ctx)[1], commit_told(asked)))),
            requeue_after_s=min(_again_s(spec, s, step, ctx), backups.wait_s or _IDLE_S),
            urgent=_is_urgent(s, step),
        )

    def finalize(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """End the pods; the volumes stay, unless they are to be deleted too."""
        pods, claims = owned.of("Pod"), claims_at_the_end(cr, owned, ctx)
        left = [*pods, *claims.left, *owned.of("Job")]
        text = f"{len(pods)} pods are left; {len(claims.there)} volumes {'stay' if claims.stay else 'go too'}"
        return Outcome(
            dropped=claims.dropped,
            status=kept_status(cr),
            conditions=(Condition("Ready", "False", "Deleting", text if left else "everything is gone"),),
            finalized=not left,
        )


def _dropped(step: DatabaseStep) -> tuple[str, ...]:
    """Return the volume claim that a step deletes, by its key."""
    is_so = step.do is Do.DELETE_VOLUME
    return (key_of(named("v1", CLAIM, claim_name(step.about))),) if is_so else ()


def _graces(s: DatabaseState, step: DatabaseStep) -> dict[str, int]:
    """Return how long the primary has to end that is left behind: it has no clients to take leave of, and may hang."""
    is_left = step.do is Do.DELETE_POD and step.is_failover and step.about == s.named_primary
    return {key_of(named("v1", "Pod", step.about)): FAILOVER_GRACE_S} if is_left else {}


def _again_s(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> float:
    """Return when to look again: servers say nothing by themselves, and clients wait while one takes over, or is about to. The longer it takes, the more seldom."""
    if _is_at_rest(spec, s, step):
        return _WATCHFUL_S if spec.failover and not spec.paused else _IDLE_S
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
    return step.do in {Do.NOTHING, Do.STOP} and not (spec.failover and s.is_formed and not s.writable)


# --- children -------------------------------------------------------------------------------------


def _children(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Manifest]:
    """Yield what must exist after the step; what is told by its name alone stays as it is."""
    yield from services(ctx)
    yield disruption_budget(ctx)
    yield from _claims(spec, s, step, ctx)
    yield from filling_children(spec, s, step, ctx)
    for slot, instance in s.instances.items():
        if step.do in {Do.DELETE_POD, Do.SET_ASIDE} and step.about == slot:
            continue
        is_left = bool(s.writable) and slot != s.named_primary and labels_of(instance.manifest).get(ROLE) == PRIMARY
        is_at_rest = not instance.has_ended and (not instance.is_going or is_left)
        made = kept_pod(spec, ctx, instance, _role(instance, s), s.system) if is_at_rest else None
        yield made or named("v1", "Pod", slot)
    if step.do is Do.CREATE_POD:
        yield new_pod(spec, ctx, step.about, step.begin, quorums(s)[-1].setting(step.about), s.system)


def _unled(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> Iterator[Manifest]:
    """Yield the pods of servers that have the data of another database: no client is led there, all else stays."""
    for instance in s.ordered:
        if not s.is_ours(instance) and not instance.is_going:
            yield kept_pod(spec, ctx, instance, "", s.system) or named("v1", "Pod", instance.slot)


def _role(instance: Instance, s: DatabaseState) -> str:
    """Return what clients may use an instance for, empty where nobody may. Of two that take writes, neither is the primary.

    One that doesn't answer for the moment stays what it was: whether it is ready, its own probe says.
    """
    before = labels_of(instance.manifest).get(ROLE, "")
    if not s.is_ours(instance):
        return ""
    if instance.slot == s.named_primary:
        is_it = instance.is_writable if instance.answer else before == PRIMARY
        return PRIMARY if is_it and len(s.writable) <= 1 else ""
    if not instance.answer or not s.writable:
        return before if before == REPLICA else ""
    return REPLICA if s.streams(instance) else ""


def _claims(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Manifest]:
    for slot, known in (*s.volumes.items(), *s.kept.items()):
        if step.do is Do.DELETE_VOLUME and step.about == slot:
            continue
        is_set_aside = step.do is Do.SET_ASIDE and step.about == slot
        is_surplus = step.why is Why.SCALING
        aside = replace(known, kept_since=ctx.now, rejoins=False, is_surplus=is_surplus)
        volume = aside if is_set_aside else known
        instance = s.instances.get(slot)
        if volume.is_going:
            yield named("v1", "PersistentVolumeClaim", claim_name(slot))
        else:
            is_it = slot == s.named_primary if len(s.writable) == 1 else volume.is_primary
            yield claim(spec.storage, ctx, volume, instance.answer if instance else {}, is_primary=is_it)
    is_new = step.do in {Do.CREATE_POD, Do.RESTORE} and step.about not in s.volumes
    for slot in (*s.unclaimed, *((step.about,) if is_new else ())):
        yield claim(spec.storage, ctx, InstanceVolume(slot), {}, is_primary=False)


# --- actions --------------------------------------------------------------------------------------


_CHANGED = {
    Do.SET_PARAMETERS: "settings",
    Do.SET_ACCESS: "hba",
    Do.SET_TLS: "tls",
    Do.SET_QUORUM: "synchronous",
    Do.CONFIRM_QUORUM: "synchronous",
}
"""What of an instance's answer a step changes."""
_REACHED = ("recovery", "timeline", "lsn")


def _action(s: DatabaseState, step: DatabaseStep) -> Iterator[Action]:
    """Yield the step as an action, if it is one. What it was decided on must still be so when it runs."""
    if step.do not in ACTIONS:
        return
    given = dict(step.parameters)
    if step.do is Do.MAKE_SECRET:
        holds: dict[str, Any] = {f"secrets.{given['secret']}": "absent"}
    else:
        given.setdefault("instance", s.named_primary)
        slot = given["instance"]
        instance = s.instances[slot]
        holds = {"writable": ",".join(sorted(each.slot for each in s.writable))}
        holds[f"pods.{slot}.uid"] = instance.manifest["metadata"].get("uid")
        match step.do:
            case Do.SET_USER:
                holds[f"roles.{given['user']}"] = s.roles.get(given["user"])
            case Do.MAKE_SLOT | Do.DROP_SLOT:
                holds[f"slots.{given['slot']}"] = s.slots.get(given["slot"])
            case Do.CHECKPOINT | Do.END_VOLUME:
                pass
            case do if said := _CHANGED.get(do):
                holds[f"pods.{slot}.{said}"] = instance.answer.get(said)
            case Do.PROMOTE if "closed" in given:
                holds |= {f"pods.{slot}.{name}": instance.answer.get(name) for name in (*_REACHED, "closed")}
            case Do.PROMOTE | Do.FAIL_OVER:
                holds |= dict(_compared(s))
            case _:
                holds[f"databases.{given['database']}"] = s.databases.get(given["database"])
    is_decision = step.do in DECISIONS
    is_once = is_decision or step.do is Do.CONFIRM_QUORUM
    yield Action(
        step.key,
        step.do.value,
        step.text,
        given,
        holds,
        needs_approval=is_decision,
        repeats=not is_once,
        asks_each_time="unended" in given,
    )


def _compared(s: DatabaseState) -> Iterator[tuple[str, Any]]:
    """Yield what was compared for a promotion: who stands by, and how far the log of each goes."""
    for each in s.ordered:
        if each.stands_by:
            yield f"pods.{each.slot}.uid", each.uid
            for name in (*_REACHED, "receives"):
                yield f"pods.{each.slot}.{name}", each.answer.get(name)
