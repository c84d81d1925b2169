"""Kafka: a CR ``Kafka`` is a cluster of brokers, begun, filled with topics, changed and brought back one step a pass.

What the one next step is, ``decision`` says; here it becomes children (pods more or less) or an action (something told to the brokers), whose
precondition is looked at again right before it runs.

Conditions: ``Available`` (every partition has a leader), ``Ready`` (all is as specified), ``Progressing`` (a step is under way), ``Rolling`` (brokers restart one by one), ``Rebalancing`` (partitions move), and ``Degraded`` where
something isn't as it should be or only a person can continue.
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
    module,
    named,
    unobserved,
    untouched_in,
    volumes_left,
)
from kubectl_reconcile_operators.certificates.decision import RENEWING, renewals_told
from kubectl_reconcile_operators.certificates.state import secret_names
from kubectl_reconcile_operators.kafka import driver, outlook
from kubectl_reconcile_operators.kafka.access.certified import KINDS, TERMS, members_certificate, members_trust, tls_of
from kubectl_reconcile_operators.kafka.access.listeners import in_effect
from kubectl_reconcile_operators.kafka.access.users import secrets_named, users_told
from kubectl_reconcile_operators.kafka.children import (
    Certified,
    broker_pod,
    claim,
    client_config,
    disruption_budget,
    kept_pod,
    services,
    template_of,
)
from kubectl_reconcile_operators.kafka.decision import KafkaPlans, members, next_step, refusals
from kubectl_reconcile_operators.kafka.metadata.versions import accepted, refused_versions
from kubectl_reconcile_operators.kafka.names import API, claim_name, slot_of
from kubectl_reconcile_operators.kafka.rebalance.carried import asked_of, carried_of, emptied_by, rebalance_maps
from kubectl_reconcile_operators.kafka.rolling import outdated
from kubectl_reconcile_operators.kafka.scaling import plan_of
from kubectl_reconcile_operators.kafka.situation import BrokerVolume, KafkaState, state_of
from kubectl_reconcile_operators.kafka.spec import CONTROLLERS, KafkaSpec, kafka_spec
from kubectl_reconcile_operators.kafka.steps import ACTIONS, Do, KafkaStep, Why
from kubectl_reconcile_operators.kafka.topics import counted, deletions
from kubectl_reconcile_operators.volumes import CLAIM, KEPT_CLAIMS, claims_at_the_end

_BUSY_S, _IDLE_S = 2.0, 15.0
_LISTED_MAX = 100
"""So many topics, and so many partitions, are told by name at most."""


def _rebalances(cr: Manifest) -> Select:
    """Select the KafkaRebalances that name the cluster."""
    return Select.referring(cr["metadata"]["name"], "spec", "clusterRef", "name")


def _secrets_issued(cr: Manifest) -> Select:
    """Select the Secrets with the certificates that a Kafka issues itself."""
    return Select(names=tuple(secret_names(KINDS, Context("", "kafka", cr)).values()))


@module(
    api=API,
    kind="Kafka",
    owns=["v1/Pod", "v1/PersistentVolumeClaim", "v1/Service", "v1/ConfigMap", "policy/v1/PodDisruptionBudget"],
    reads=[
        volumes_left("kafka"),
        Reads(API, "KafkaRebalance", of=_rebalances),
        Reads("v1", "Secret", of=secrets_named, on_request=True),
        Reads("v1", "Secret", of=_secrets_issued, on_request=True, rewrites=True),
    ],
    keeps=[KEPT_CLAIMS],
    observe_s=12.0,
    act_s=30.0,
)
class Kafka:
    """Run Kafka: brokers, the first of them controllers too, with topics and settings as specified.

    A broker that dies comes back on its volume. The cluster keeps its id forever.
    """

    async def observe(self, cr: Manifest, io: Io) -> Facts:
        """Ask the brokers what they hold, and one of them how the cluster is."""
        return await driver.observe(cr, io)

    async def act(self, cr: Manifest, action: Action, io: Io) -> str:
        """Have the cluster change something."""
        return await driver.act(cr, action, io)

    def predict(self, _cr: Manifest, facts: Facts, action: Action) -> Facts:
        """Say what there will be."""
        return outlook.after_action(facts, action)

    def foresee(self, cr: Manifest, owned: Owned, facts: Facts) -> Facts:
        """Say what the brokers will answer once they run."""
        return outlook.once_running(kafka_spec(cr), owned, facts, Context("", "kafka", cr))

    def reconcile(self, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Take the next step."""
        wanted = kafka_spec(cr)
        if ctx.unobserved:
            return unobserved(cr, ctx.unobserved, _BUSY_S)
        s = state_of(cr, owned, facts, ctx)
        spec = accepted(wanted, s)
        spec = replace(spec, listeners=in_effect(spec.listeners, s.access.listeners, s.access.usable))
        certified = Certified(members_trust(s), members_certificate(s))
        templates = {number: template_of(spec, ctx, number, certified) for number in members(spec, s)}
        asked = asked_of(owned, ctx)
        plan = plan_of(spec, s, emptied_by(asked))
        carried = carried_of(spec, s, plan, asked, ctx)
        step = next_step(spec, s, KafkaPlans(plan, carried), templates, ctx)
        is_left = step.do is Do.STOP
        maps = rebalance_maps(spec, asked, carried, ctx)
        children = () if is_left else (*_children(spec, s, step, certified, ctx), *maps)
        refused = [*refused_versions(wanted, s, outdated(s, templates)), *refusals(wanted, spec, s, plan, ctx)]
        gone = () if spec.paused or not s.is_told else tuple(deletions(spec, s))
        at_rest = step.do in {Do.NOTHING, Do.STOP} and not any(each.is_begun for each in carried)
        return Outcome(
            children=children,
            untouched=untouched_in(children),
            dropped=tuple(_dropped(step, ctx)),
            keep_children=is_left,
            actions=tuple(_action(each) for each in (step, *gone) if each.do in ACTIONS),
            status={**_status(cr, spec, s, step, ctx), "filling": list(plan.noted)},
            conditions=tuple(_conditions(spec, s, refused, step, gone)),
            warnings=tuple(text for _, text in refused),
            requeue_after_s=_IDLE_S if at_rest else _BUSY_S,
        )

    def finalize(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """End the pods, controllers last; the volumes stay, unless they are deleted too."""
        pods, claims = owned.of("Pod"), claims_at_the_end(cr, owned, ctx)
        left = [*pods, *claims.left]
        what = "kept" if claims.stay else "deleted too"
        text = f"{counted(len(pods), 'pod')} left; {counted(len(claims.there), 'volume')} {what}"
        later = tuple(_needed_to_end(owned, ctx))
        return Outcome(
            children=later,
            untouched=untouched_in(later),
            dropped=claims.dropped,
            status=kept_status(cr),
            conditions=(Condition("Ready", "False", "Deleting", text if left else "everything is gone"),),
            finalized=not left,
        )


def _dropped(step: KafkaStep, ctx: Context) -> Iterator[str]:
    """Yield the volume claims that a step deletes, by their keys."""
    for number in step.brokers if step.do is Do.DELETE_VOLUME else ():
        yield key_of(named("v1", CLAIM, claim_name(slot_of(ctx, number))))


def _needed_to_end(owned: Owned, ctx: Context) -> Iterator[Manifest]:
    """Yield the controllers, and what names them, while other brokers are there: one that can't tell a controller that it ends waits until it is killed."""
    may_control = {slot_of(ctx, number) for number in range(max(CONTROLLERS))}
    names = {each["metadata"]["name"] for each in owned.of("Pod")}
    if names - may_control:
        for name in sorted(names & may_control):
            yield named("v1", "Pod", name)
        for service in owned.of("Service"):
            yield named("v1", "Service", service["metadata"]["name"])


# --- children -------------------------------------------------------------------------------------


def _children(
    spec: KafkaSpec, s: KafkaState, step: KafkaStep, certified: Certified, ctx: Context
) -> Iterator[Manifest]:
    """Yield what must exist after the step; what is told by its name alone stays as it is."""
    yield from services(spec, ctx)
    yield client_config(spec, ctx)
    yield disruption_budget(ctx, len(members(spec, s)))
    begins = {} if s.is_formed else dict.fromkeys(range(spec.controllers), s.cluster)
    volumes = {number: _noted(each, s) for number, each in s.volumes.items()}
    made = step.brokers if step.do is Do.CREATE_PODS else ()
    volumes |= {
        number: BrokerVolume(number, slot_of(ctx, number), begins=begins.get(number, "")) for number in made if number not in volumes
    }  # fmt: skip
    volumes |= {each.number: BrokerVolume(each.number, each.slot, begins=each.begins) for each in s.unclaimed}
    for number, volume in sorted(volumes.items()):
        if step.do is Do.DELETE_VOLUME and number in step.brokers:
            continue
        yield (
            named("v1", "PersistentVolumeClaim", claim_name(volume.slot))
            if volume.is_going
            else claim(spec.storage, ctx, volume)
        )
    for number, pod in sorted(s.pods.items()):
        if step.do is Do.DELETE_POD and number in step.brokers:
            continue
        is_at_rest = not pod.is_going and not pod.has_ended
        served = pod.prepared_at or "-" if s.is_told and s.is_up(number) else ""
        yield kept_pod(spec, ctx, number, pod.manifest, served) if is_at_rest else named("v1", "Pod", pod.slot)
    for number in made:
        yield broker_pod(spec, ctx, number, volumes[number], s.cluster, certified)


def _noted(volume: BrokerVolume, s: KafkaState) -> BrokerVolume:
    """Return what is noted on a volume: the cluster, once its broker has answered for it."""
    return replace(volume, cluster=s.cluster) if s.is_told and s.is_up(volume.number) else volume


def _action(step: KafkaStep) -> Action:
    once = step.needs_approval
    return Action(
        step.key, step.do.value, step.text, step.parameters, step.holds, needs_approval=once, repeats=not once
    )


# --- status ---------------------------------------------------------------------------------------


def _status(cr: Manifest, spec: KafkaSpec, s: KafkaState, step: KafkaStep, ctx: Context) -> dict[str, Any]:
    before = kept_status(cr)
    phase = _phase(s, step)
    status: dict[str, Any] = {
        "phase": phase,
        "reason": step.text if step.do is Do.STOP else "",
        "brokers": [_line(number, s, ctx) for number in sorted({*members(spec, s), *s.registered})],
        "readyBrokers": sum(s.is_up(number) for number in members(spec, s)),
        "version": spec.version if s.is_told else s.before.version,
        "metadataVersion": s.level,
        "clusterId": s.cluster if s.is_formed or s.is_told else "",
        "bootstrapServers": client_config(spec, ctx)["data"].get("bootstrap.servers", ""),
        "listeners": [each.told() for each in spec.listeners],
        "certificates": renewals_told(TERMS, tls_of(s, ctx)),
    }
    if not s.is_told:
        kept = ("topics", "users", "underReplicatedPartitions", "offlinePartitions", "activeController")
        return {**status, **{name: before[name] for name in kept if name in before}}
    return {
        **status,
        "activeController": s.controller,
        "underReplicatedPartitions": len(s.behind),
        "offlinePartitions": len(s.offline),
        "topics": _topics(spec, s),
        "users": users_told(spec.users, s, ctx),
    }


def _topics(spec: KafkaSpec, s: KafkaState) -> dict[str, Any]:
    """Return which topics are the spec's (once they were, until they are gone), and those that others made."""
    own = {*(each.name for each in spec.topics), *s.before.listed} & {*s.topics}
    others = sorted(name for name, each in s.topics.items() if name not in own and not each.get("internal"))
    return {
        "partitions": len(s.partitions),
        "managed": sorted(own),
        "othersCount": len(others),
        "others": others[:_LISTED_MAX],
    }


def _line(number: int, s: KafkaState, ctx: Context) -> dict[str, Any]:
    held = s.held.get(number, [])
    rack = str(s.registered.get(number, {}).get("rack") or "")
    return {
        "id": number,
        "pod": slot_of(ctx, number),
        "ready": s.is_up(number),
        "leaders": sum(each["leader"] == number for each in held),
        "replicas": len(held),
        "bytes": sum(each["bytes"] for each in held),
        **({"rack": rack} if rack else {}),
    }


def _phase(s: KafkaState, step: KafkaStep) -> str:
    if step.do is Do.STOP and step.reason != "Paused":
        return "Failed"
    if not s.is_formed and not s.is_told:
        return "Creating"
    if step.why in {Why.SCALING, Why.ROLLING} and step.do is not Do.NOTHING:
        return step.why.value
    return "Running" if s.is_told and not s.offline else "Recovering"


def _conditions(
    spec: KafkaSpec, s: KafkaState, refused: list[tuple[str, str]], step: KafkaStep, gone: tuple[KafkaStep, ...]
) -> Iterator[Condition]:
    if s.is_told and not s.offline:
        yield Condition("Available", "True", "AllLed", f"{counted(len(s.partitions), 'partition')}, each with a leader")
    elif s.is_told:
        yield Condition("Available", "False", "PartitionsOffline", f"nobody leads {_some(s.offline)}")
    else:
        yield Condition(
            "Available", "False", step.reason or "NoController", step.text or "no broker says how the cluster is"
        )
    if (step.do is Do.NOTHING or step.reason == RENEWING) and not refused and not gone:
        yield Condition("Ready", "True", "AsSpecified", f"{counted(spec.brokers, 'broker')} as specified")
    else:
        reason, text = refused[0] if refused else ("AwaitsApproval", gone[0].text if gone else "")
        yield Condition(
            "Ready",
            "False",
            step.reason or (reason if step.do is Do.NOTHING else step.why.value),
            step.text or text,
        )
    at_it = step.do not in {Do.NOTHING, Do.STOP}
    yield Condition("Progressing", "True" if at_it else "False", step.why.value, step.text if at_it else "")
    is_rolling = at_it and step.why is Why.ROLLING
    yield Condition(
        "Rolling",
        "True" if is_rolling else "False",
        "Restarting" if is_rolling else "AsSpecified",
        step.text if is_rolling else "",
    )
    is_moving = bool(s.in_flight) or step.do is Do.MOVE
    yield Condition(
        "Rebalancing",
        "True" if is_moving else "False",
        "PartitionsMoving" if is_moving else "NothingMoves",
        step.text if is_moving else "",
    )
    yield from _degraded(s, step, refused)


def _degraded(s: KafkaState, step: KafkaStep, refused: list[tuple[str, str]]) -> Iterator[Condition]:
    if step.do is Do.STOP and step.reason != "Paused":
        yield Condition("Degraded", "True", step.reason, step.text)
    elif step.do in ACTIONS and (said := s.failed.get(step.key)):
        yield Condition("Degraded", "True", "Refused", f"{step.text}: {said.removeprefix(f'{step.key}: ')}")
    elif refused:
        yield Condition("Degraded", "True", refused[0][0], "; ".join(text for _, text in refused))
    elif s.behind:
        yield Condition("Degraded", "True", "UnderReplicated", f"replicas of {_some(s.behind)} aren't in sync")


def _some(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
