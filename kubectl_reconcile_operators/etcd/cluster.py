"""EtcdCluster: a CR ``EtcdCluster`` is a cluster of etcd, formed, scaled, repaired and upgraded one step a pass.

What the one next step is, ``decision`` says; here it becomes children (a pod more or less) or an action on etcd (a member more or less, a
promotion, another leader), whose precondition is looked at again right before it runs.

Conditions: ``Available`` (a majority serves), ``Ready`` (all is as specified), ``Recovering``, ``Scaling``, ``Upgrading``, ``Alarm`` (etcd has raised one),
and ``Degraded`` where only a person can continue.
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
    SpecError,
    kept_status,
    key_of,
    map_at,
    module,
    named,
    unobserved,
    untouched_in,
    volumes_left,
)
from kubectl_reconcile_operators.certificates.decision import RENEWING
from kubectl_reconcile_operators.certificates.state import secret_names
from kubectl_reconcile_operators.etcd import driver, outlook
from kubectl_reconcile_operators.etcd.children import (
    CLIENT_PORT,
    DATA_DIRECTORY,
    claim,
    claim_name,
    client_service,
    disruption_budget,
    image,
    kept_pod,
    lone_pod,
    new_pod,
    services,
    shrunk,
    template_of,
    token,
)
from kubectl_reconcile_operators.etcd.decision import Wanted, next_step, wanted_of
from kubectl_reconcile_operators.etcd.precautions import BACKUP_API, LastBackup, kept_backups, last_backup
from kubectl_reconcile_operators.etcd.recovery import (
    going_on_alone,
    is_decided,
    laid_out,
    recovery_key,
    recovery_of,
    voters_told,
)
from kubectl_reconcile_operators.etcd.replacing import (
    given_up_for,
    is_given_up,
    new_seed,
    replacement_key,
    replacement_of,
)
from kubectl_reconcile_operators.etcd.restored import restore_named
from kubectl_reconcile_operators.etcd.situation import Situation, peer_url, situation_of
from kubectl_reconcile_operators.etcd.spec import ClusterSpec, cluster_spec
from kubectl_reconcile_operators.etcd.steps import ON_SECRETS, Do, EtcdStep, Why
from kubectl_reconcile_operators.etcd.tls.decision import renewals_told
from kubectl_reconcile_operators.etcd.tls.kinds import KINDS, members_trust
from kubectl_reconcile_operators.etcd.upkeep import alarm_condition, defragmentation_told, upkeep_of
from kubectl_reconcile_operators.volumes import CLAIM, KEPT_CLAIMS, claims_at_the_end

_BUSY_S, _IDLE_S = 2.0, 15.0


def _secrets_issued(cr: Manifest) -> Select:
    """Select the Secrets that a cluster issues itself, if it does."""
    is_auto = isinstance(map_at(cr, "spec", "TLS").get("auto"), Mapping)
    return Select(names=tuple(secret_names(KINDS, Context("", "etcdcluster", cr)).values()) if is_auto else ())


@module(
    api="etcd.database.coreos.com/v1beta2",
    kind="EtcdCluster",
    owns=[
        "v1/Pod",
        "v1/PersistentVolumeClaim",
        "v1/Service",
        "policy/v1/PodDisruptionBudget",
        f"{BACKUP_API}/EtcdBackup",
    ],
    reads=[
        volumes_left("etcdcluster"),
        Reads("etcd.database.coreos.com/v1beta2", "EtcdRestore", of=restore_named),
        Reads("v1", "Secret", of=_secrets_issued, on_request=True, rewrites=True),
    ],
    keeps=[KEPT_CLAIMS],
    observe_s=12.0,
    act_s=driver.LONGEST_S + 5,
)
class EtcdCluster:
    """Run a cluster of etcd with ``spec.size`` members of ``spec.version``.

    Members are added as learners and promoted once they have caught up; a member that dies comes back on its volume, and only one whose
    data is gone is replaced. Versions go up by one minor at a time, member by member, the leader last. While no majority serves, no member is
    added or removed.
    """

    async def observe(self, cr: Manifest, io: Io) -> Facts:
        """Ask the members who they are and how they do."""
        return await driver.observe(cr, io)

    async def act(self, cr: Manifest, action: Action, io: Io) -> str:
        """Change the membership, who leads, or a Secret with certificates."""
        return await driver.act(cr, action, io)

    def predict(self, _cr: Manifest, facts: Facts, action: Action) -> Facts:
        """Say what members there will be."""
        return outlook.after_action(facts, action)

    def foresee(self, cr: Manifest, owned: Owned, facts: Facts) -> Facts:
        """Say what the pods will answer once they run."""
        ctx, tls = Context("", "etcdcluster", cr), bool(cluster_spec(cr).TLS)
        if is_given_up(cr, facts):
            return outlook.once_given_up(facts, is_noted=bool(map_at(cr, "status", "replacing")))
        if is_decided(cr, facts):
            return outlook.once_alone(owned, facts, ctx, tls=tls)
        return outlook.once_running(owned, facts, ctx, tls=tls)

    def reconcile(self, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Take the next step."""
        spec = cluster_spec(cr)
        s = situation_of(cr, owned, facts, ctx)
        wanted = wanted_of(spec, s, template_of(spec, ctx, members_trust(facts)), ctx)
        if ctx.unobserved:
            return unobserved(cr, ctx.unobserved, _IDLE_S if spec.paused else _BUSY_S)
        step = next_step(spec, s, wanted, ctx)
        children = tuple(_children(spec, s, wanted, step, ctx))
        if not s.is_known and (budget := owned.get("PodDisruptionBudget", ctx.name())) is not None:
            children += (named(budget["apiVersion"], "PodDisruptionBudget", budget["metadata"]["name"]),)
        untouched = untouched_in(children)
        return Outcome(
            children=children,
            untouched=untouched,
            dropped=(key_of(named("v1", CLAIM, claim_name(step.slot))),) if step.do is Do.DELETE_VOLUME else (),
            keep_children=step.reason == "Paused",
            actions=tuple(_action(spec, s, step, ctx)),
            status=_status(cr, spec, s, step, ctx),
            conditions=(*_conditions(spec, s, step, wanted), alarm_condition(cr, s)),
            requeue_after_s=_IDLE_S
            if step.do in {Do.NOTHING, Do.STOP, Do.REPLACE, Do.MAKE_ROOM, Do.ACCEPT, Do.END_VOLUME}
            else _BUSY_S,
        )

    def finalize(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """End the pods, after a last backup if one is asked for; the volumes stay, unless they are to go too."""
        pods = owned.of("Pod")
        if (last := _last_backup(cr, owned, ctx)) is not None:
            return _kept_until(last, cr)
        claims = claims_at_the_end(cr, owned, ctx)
        left = [*pods, *claims.left]
        what = "stay" if claims.stay else "go too"
        text = f"{len(pods)} pods are left; {len(claims.there)} volumes {what}" if left else "everything is gone"
        return Outcome(
            dropped=claims.dropped,
            status=kept_status(cr),
            conditions=(Condition("Ready", "False", "Deleting", text),),
            finalized=not left,
        )


def _last_backup(cr: Manifest, owned: Owned, ctx: Context) -> LastBackup | None:
    """Return what the end of a cluster waits for; nothing where its spec is refused, since nobody knows then how to take it."""
    try:
        return last_backup(cluster_spec(cr), owned, ctx)
    except SpecError:
        return None


def _kept_until(last: LastBackup, cr: Manifest) -> Outcome:
    """Return what keeps a cluster that is to go until its last backup is there; what was written is noted before anything ends."""
    return Outcome(
        children=(last.child,),
        keep_children=True,
        status={**kept_status(cr), **({"lastBackup": last.written} if last.written else {})},
        conditions=last.conditions,
        requeue_after_s=_BUSY_S,
    )


# --- children -------------------------------------------------------------------------------------


def _children(spec: ClusterSpec, s: Situation, wanted: Wanted, step: EtcdStep, ctx: Context) -> Iterator[Manifest]:
    """Yield what must exist after the step; what is told by its name alone stays as it is."""
    yield from services(ctx)
    yield from _claims(spec, s, step, ctx)
    yield from kept_backups(spec, s.precautions, step, ctx)
    if s.is_known and len(s.voters) > 1:
        yield disruption_budget(ctx, s.quorum)
    trusted = members_trust(s.facts)
    voting, begun = {each.slot for each in s.voters}, {each.slot for each in s.members if each.is_started}
    for slot, pod in s.pods.items():
        if step.do is Do.DELETE_POD and step.slot == slot:
            continue
        is_at_rest = not pod.is_going and not pod.has_ended and (s.is_known or pod.is_apart)
        has_begun = slot in begun and pod.answers
        is_voter = slot in voting and not pod.is_apart
        made = kept_pod(spec, ctx, pod, is_voter=is_voter, has_begun=has_begun, trusted=trusted) if is_at_rest else None
        yield made or named("v1", "Pod", slot)
    if step.do is Do.CREATE_POD:
        yield new_pod(spec, ctx, step.slot, wanted.version, s.members, seed=step.seed, trusted=trusted)
    if step.do is Do.CREATE_ALONE:
        yield lone_pod(spec, ctx, step.slot, wanted.version, trusted=trusted)


def _claims(spec: ClusterSpec, s: Situation, step: EtcdStep, ctx: Context) -> Iterator[Manifest]:
    for volume in () if spec.in_memory else s.cut_short:
        yield claim(spec, ctx, volume, "")
    for slot, volume in s.volumes.items():
        if step.do is Do.DELETE_VOLUME and step.slot == slot:
            continue
        member, pod = s.member(slot), s.pods.get(slot)
        seen = member.id if member and member.is_started and pod and pod.answers else ""
        stays = volume.is_going or spec.in_memory
        stays_on = member is not None and not volume.aside  # a mind was changed before the member was removed
        after = laid_out(replace(volume, is_surplus=False) if stays_on else volume, step)
        yield named("v1", "PersistentVolumeClaim", claim_name(slot)) if stays else claim(spec, ctx, after, seen)
    if step.do in {Do.CREATE_POD, Do.CREATE_VOLUME} and not spec.in_memory and step.slot not in s.volumes:
        yield claim(spec, ctx, new_seed(step), "")


# --- actions --------------------------------------------------------------------------------------


_ON_ETCD = {Do.ADD, Do.PROMOTE, Do.MOVE_LEADER, Do.REMOVE, Do.COMPACT, Do.DEFRAGMENT, Do.DISARM}


def _action(spec: ClusterSpec, s: Situation, step: EtcdStep, ctx: Context) -> Iterator[Action]:
    """Yield the step as an action on etcd, if it is one. What it was decided on must still be so when it runs."""
    if step.do is Do.RECOVER:
        yield _recovery(s, step, ctx)
    if step.do is Do.REPLACE and s.restore is not None:
        yield Action(
            replacement_key(s.restore), step.do.value, step.text, {"slot": s.restore.name}, needs_approval=True
        )
    if step.do is Do.ACCEPT:
        yield Action(
            step.member, step.do.value, step.text, {"slot": step.slot}, needs_approval=True, asks_each_time=True
        )
    if step.do in {Do.MAKE_ROOM, Do.END_VOLUME}:
        yield Action(step.key, step.do.value, step.text, {"slot": step.slot}, needs_approval=True)
    if step.do in ON_SECRETS:
        yield Action(
            step.key,
            step.do.value,
            step.text,
            {"slot": step.slot, "member": step.member},
            {"tls": s.facts.get("tls")},
            repeats=True,
        )
    if step.do not in _ON_ETCD:
        return
    via = next((each.slot for each in s.voters if each.id == s.leader), "")
    holds: dict[str, Any] = {
        "quorum": True,
        "membership": s.facts.get("membership"),
        "answering": s.facts.get("answering"),
    }
    if step.do in {Do.REMOVE, Do.MOVE_LEADER, Do.DEFRAGMENT}:
        holds["leader"] = s.leader
    via = step.slot if step.do is Do.DEFRAGMENT else via
    parameters: dict[str, Any] = {"slot": step.slot, "member": step.member, "via": via}
    if step.do is Do.ADD:
        parameters["peer"] = peer_url(ctx, step.slot, tls=bool(spec.TLS))
    if step.do is Do.COMPACT:
        parameters["revision"] = s.facts.get("revision")
    yield Action(
        step.key, step.do.value, step.text, parameters, holds,
        needs_approval=step.needs_approval, repeats=not step.occasion,
    )  # fmt: skip


def _recovery(s: Situation, step: EtcdStep, ctx: Context) -> Action:
    """Return the action that decides who goes on alone; that it has run is what all else follows from."""
    holds = {"quorum": False, "membership": s.facts.get("membership"), "answering": s.facts.get("answering")}
    parameters = {"slot": step.slot, "member": step.member}
    key = recovery_key(s, recovery_of(ctx.cr))
    return Action(key, step.do.value, step.text, parameters, holds, needs_approval=True)


# --- status ---------------------------------------------------------------------------------------


def _status(cr: Manifest, spec: ClusterSpec, s: Situation, step: EtcdStep, ctx: Context) -> dict[str, Any]:
    before: Mapping[str, Any] = cr.get("status") or {}
    names = sorted(s.pods)
    running = s.running_version
    is_lost = step.reason in {"DataLost", "DifferentClusters"}
    is_up, noted = s.has_majority, recovery_of(cr)
    phase = "Failed" if is_lost else "Running" if is_up or before.get("phase") == "Running" else "Creating"
    alone, digest = going_on_alone(s, noted), given_up_for(s, replacement_of(cr))
    known: dict[str, Any] = {
        "keptVolumes": [{"claim": claim_name(slot)} for slot, each in sorted(s.volumes.items()) if each.aside],
        "clusterID": s.clusters[0] if len(s.clusters) == 1 and s.is_known else before.get("clusterID", ""),
        "voters": None if digest else voters_told(s) if s.is_known else before.get("voters"),
        "recovery": {"slot": alone} if alone and not digest else None,
        "replacing": {"digest": digest} if digest else None,
    }
    return {
        "phase": phase,
        "reason": step.told if step.do in {Do.STOP, Do.RECOVER, Do.ACCEPT, Do.MAKE_ROOM} else "",
        "size": len(s.members) if s.is_known else before.get("size", 0),
        "serviceName": client_service(ctx),
        "clientPort": CLIENT_PORT,
        "members": {
            "ready": [name for name in names if s.pods[name].serves],
            "unready": [name for name in names if not s.pods[name].serves],
        },
        "currentVersion": str(running) if running else before.get("currentVersion", ""),
        "targetVersion": spec.version if running and running != spec.target else "",
        **({name: value for name, value in known.items() if value}),
        **({"defragmentation": kept} if (kept := defragmentation_told(spec, step, upkeep_of(cr), ctx.now)) else {}),
        **({"certificates": due} if (due := renewals_told(spec, s, ctx)) else {}),
        **({"seed": seed} if (seed := _seed(spec, s, step, ctx)) else {}),
    }


def _seed(spec: ClusterSpec, s: Situation, step: EtcdStep, ctx: Context) -> dict[str, str]:
    """Return what a restore must know to write the first member's data, nothing where none is to."""
    volume = s.volumes.get(step.slot)
    if step.reason not in {"Restoring", "RestoreFailed"} or volume is None:
        return {}
    return {
        "member": step.slot,
        "claimName": claim_name(step.slot),
        "claimUID": volume.uid,
        "dataDirectory": DATA_DIRECTORY,
        "peerURL": peer_url(ctx, step.slot, tls=bool(spec.TLS)),
        "token": token(ctx),
        "image": image(spec, spec.target),
        "version": str(spec.target),
        **({"approved": step.member} if step.member else {}),
    }


def _conditions(spec: ClusterSpec, s: Situation, step: EtcdStep, wanted: Wanted) -> Iterator[Condition]:
    serving, voters = len(s.serving), len(s.voters)
    text = f"{serving} of {voters} members serve"
    if s.has_majority:
        yield Condition("Available", "True", "MajorityServes", text)
    else:
        yield Condition("Available", "False", _why_not(s, step), step.told or text)
    word, refused = ("VersionRefused", wanted.refusal) if wanted.refusal else ("StorageShrinks", shrunk(spec, s))
    renews = step.reason == RENEWING and serving == voters == spec.size
    if (step.do is Do.NOTHING or step.reason == "Scheduled" or renews) and not refused:
        even = " (an even size survives no more failures than the next smaller size)" if spec.size % 2 == 0 else ""
        yield Condition("Ready", "True", "AsSpecified", f"{text}, version {wanted.version}{even}")
    else:
        yield Condition(
            "Ready",
            "False",
            step.reason or (word if refused and not step.told else step.why.value),
            step.told or refused,
        )
    for why in (Why.RECOVERING, Why.SCALING, Why.UPGRADING):
        at_it = step.why is why
        yield Condition(
            why.value, "True" if at_it else "False", "UnderWay" if at_it else "AsExpected", step.told if at_it else ""
        )
    if refused:
        yield Condition("Degraded", "True", word, refused)
    elif (step.do is Do.STOP and step.reason != "Paused") or step.reason in {
        "QuorumLost",
        "RestoreNotFound",
        "RestoreFailed",
        "NoSpace",
        "BackupFailed",
    }:
        yield Condition("Degraded", "True", step.reason, step.told)


def _why_not(s: Situation, step: EtcdStep) -> str:
    """Return why no majority serves, in a word."""
    if (
        s.is_formed
        and s.restore is not None
        and step.do is not Do.RECOVER
        and not any(each.member for each in s.volumes.values())
    ):
        return "Restoring"
    return "QuorumLost" if step.reason == "QuorumLost" or s.is_formed else "Starting"
