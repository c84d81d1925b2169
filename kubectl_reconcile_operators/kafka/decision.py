"""What is to be done next for a Kafka: one step, or what is waited for.

The order, each line only where those above are settled; what the cluster refused when it was last tried comes last, so that nothing waits for it:

1. Paused: nothing. Volumes of two clusters, or none of most controllers: nothing, a person decides. Certificates that the Kafka issues itself, see `access.certified`: nobody talks without.
2. Members that have no pod get one, all at once, on their volumes; those whose volumes are going get one once these are gone.
3. Pods that trust nobody any more who has a certificate are ended, unless one has no volume to come back on. A pod that has ended, or can't run and isn't as specified any more, is deleted, and comes back on its volume. A broker that may be at work isn't.
4. Settings that brokers take on while they run. Users. Topics: made, grown, configured. That waits for nobody, once there are brokers enough.
5. A controller that came back with an empty volume is let in again among those that vote, see `metadata.voters`. Moves of a KafkaRebalance that is stopped are taken back.
6. Brokers that don't take part yet are waited for, unless they are to leave.
7. Brokers that leave are emptied, and go once nothing stands on them; those that are new are filled, see `scaling`. Where no broker comes or goes, what a KafkaRebalance
   was approved for moves in the same way, see `rebalance.carried`.
8. Brokers that aren't as specified any more restart, one at a time, see `rolling`; none while a Secret with the Kafka's own certificates is somebody else's. Partitions are led by the brokers that they prefer. Brokers read certificates of listeners again.
9. Once all brokers run a newer version, the cluster's metadata is raised to it, see `metadata.versions`.
10. Volumes of brokers that aren't wanted any more go, where the spec says so and somebody approves.

Pure: a state and a spec in, a step out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kubectl_reconcile.module_api import Context, condition_of, container_states, map_at, text_at
from kubectl_reconcile_operators.kafka.access.certified import (
    certifying,
    cut_off,
    refused_certificates,
    reloads,
    restart_barred,
    taken,
    tls_of,
)
from kubectl_reconcile_operators.kafka.access.users import refused_users, user_steps
from kubectl_reconcile_operators.kafka.metadata.versions import level_steps
from kubectl_reconcile_operators.kafka.metadata.voters import data_lost, voter_steps
from kubectl_reconcile_operators.kafka.names import slot_of
from kubectl_reconcile_operators.kafka.rebalance.carried import CarriedRebalance, election_steps, moving_of, stop_steps
from kubectl_reconcile_operators.kafka.rolling import led_steps, outdated, roll_steps
from kubectl_reconcile_operators.kafka.scaling import (
    MovePlan,
    asked_steps,
    holding,
    leave_steps,
    move_steps,
    refused_moves,
    surplus_steps,
)
from kubectl_reconcile_operators.kafka.situation import BrokerPod, KafkaState
from kubectl_reconcile_operators.kafka.spec import DYNAMIC, KafkaSpec
from kubectl_reconcile_operators.kafka.steps import ACTIONS, SETTLED, Do, KafkaStep, Why, stop, wait
from kubectl_reconcile_operators.kafka.topics import is_same, refused_topics, settings_text, topic_steps
from kubectl_reconcile_operators.volumes import shrink_refused


@dataclass(frozen=True, slots=True)
class KafkaPlans:
    """What is to move: for brokers that come or go, and for KafkaRebalances."""

    scaling: MovePlan
    rebalances: tuple[CarriedRebalance, ...] = ()


def next_step(
    spec: KafkaSpec, s: KafkaState, plans: KafkaPlans, templates: Mapping[int, str], ctx: Context
) -> KafkaStep:
    """Return the one step to take now; *plans* are what is to move, *templates* are the digests that pods are to have, by number."""
    if spec.paused:
        return KafkaStep(Do.STOP, Why.SETTLED, ".spec.paused is true; nothing is changed", reason="Paused")
    refused: KafkaStep | None = None
    for step in _due(spec, s, plans, templates, ctx):
        if step.do not in ACTIONS or step.key not in s.failed:
            return step
        refused = refused or step
    return refused or SETTLED


def _due(
    spec: KafkaSpec, s: KafkaState, plans: KafkaPlans, templates: Mapping[int, str], ctx: Context
) -> Iterator[KafkaStep]:
    """Yield all that is due, in its order."""
    plan, rebalances = plans.scaling, plans.rebalances
    yield from _strange(s)
    yield from data_lost(spec, s, ctx)
    yield from certifying(s, templates, ctx)
    yield from _missing(spec, s, ctx)
    yield from cut_off(s, ctx)
    yield from _ended(s, templates)
    if s.is_told:
        yield from _settings(spec, s)
        yield from user_steps(spec.users, s, ctx)
        if len(s.registered) >= spec.controllers:
            yield from topic_steps(spec, s)
        yield from voter_steps(spec, s, ctx)
        yield from stop_steps(spec, s, rebalances)
    yield from _awaited(spec, s, ctx)
    pace, moving = moving_of(spec, s, plan, rebalances) or (spec, plan)
    yield from move_steps(pace, s, moving)
    yield from election_steps(s, rebalances)
    yield from leave_steps(spec, s, ctx)
    yield from _restarts(spec, s, templates, ctx)
    if not s.moves:
        yield from led_steps(s)
        yield from level_steps(spec, s, outdated(s, templates), ctx)
    yield from reloads(s)
    yield from taken(s, ctx)
    yield from asked_steps(spec, s, plan)
    yield from surplus_steps(spec, s)


def refusals(wanted: KafkaSpec, spec: KafkaSpec, s: KafkaState, plan: MovePlan, ctx: Context) -> list[tuple[str, str]]:
    """Return what of the *wanted* spec is refused while all else goes on, words and sentences; *spec* is what of it is in effect."""
    return [
        *((each.reason, each.text) for each in taken(s, ctx)), *refused_certificates(wanted, s), *refused_users(spec.users, s, ctx), *_shrunk(spec, s), *refused_moves(spec, plan), *refused_topics(spec, s),
    ]  # fmt: skip


def _shrunk(spec: KafkaSpec, s: KafkaState) -> Iterator[tuple[str, str]]:
    """Yield that volumes are larger than the spec has them, if some are: a word and a sentence."""
    sizes = {each.slot: each.size for each in s.volumes.values()}
    if refused := shrink_refused(".spec.storage.size", spec.storage.size, sizes):
        yield "StorageShrinks", refused


def members(spec: KafkaSpec, s: KafkaState) -> tuple[int, ...]:
    """Return the brokers that there are to be for now: those of the spec, and those that leave and still hold something."""
    return (*range(spec.brokers), *holding(spec, s))


def _strange(s: KafkaState) -> Iterator[KafkaStep]:
    clusters = sorted({each.cluster or each.begins for each in s.volumes.values()} - {""} | {s.cluster})
    if len(clusters) > 1:
        text = f"there are volumes of different clusters ({', '.join(clusters)}); nothing is changed (hint: delete the pods and the volume claims of those that are wrong)"
        yield stop(text, "DifferentClusters")


def _missing(spec: KafkaSpec, s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    absent = [number for number in members(spec, s) if number not in s.pods]
    if not s.is_formed:  # the first controllers begin together, or those that come later are none
        yield from (_volume_awaited(number, s) for number in absent if _has_going_volume(number, s))
    missing = tuple(number for number in absent if not _has_going_volume(number, s))
    if not missing:
        return
    names = ", ".join(slot_of(ctx, number) for number in missing)
    if not s.is_formed and not s.pods and not s.volumes:
        yield KafkaStep(Do.CREATE_PODS, Why.CREATING, f"create {names}, the first brokers", brokers=missing)
    old = [number for number in missing if number in s.volumes]
    new = [number for number in missing if number not in s.volumes]
    words = [
        f"{', '.join(slot_of(ctx, each) for each in some)} {how}"
        for some, how in ((old, "on what they have"), (new, "with new volumes"))
        if some
    ]
    yield KafkaStep(Do.CREATE_PODS, _why(s), f"create {' and '.join(words)}", brokers=missing)


def _has_going_volume(number: int, s: KafkaState) -> bool:
    volume = s.volumes.get(number)
    return volume is not None and volume.is_going


def _volume_awaited(number: int, s: KafkaState) -> KafkaStep:
    return wait(f"the volume claim of {s.volumes[number].slot} is terminating", "VolumeTerminating", _why(s))


def _ended(s: KafkaState, templates: Mapping[int, str]) -> Iterator[KafkaStep]:
    is_any_going = any(each.is_going for each in s.pods.values())
    for number, pod in sorted(s.pods.items()):
        if pod.is_going:
            continue
        if pod.is_unformatted and s.is_told:
            yield _deleted(
                pod,
                f"delete {pod.slot}, whose volume came back empty; it is made again, and fetches from others what it had",
                s,
            )
        if pod.has_ended:
            fault = f" ({pod.fault})" if pod.fault else ""
            yield _deleted(pod, f"delete {pod.slot}, which has ended{fault}; it comes back on its volume", s)
        is_old = number in templates and pod.template != templates[number]
        if is_old and not is_any_going and not _may_be_at_work(pod, s):
            yield _deleted(
                pod,
                f"delete {pod.slot}, which doesn't run and no longer matches the spec; it comes back on its volume",
                s,
            )


def _may_be_at_work(pod: BrokerPod, s: KafkaState) -> bool:
    """Tell whether others may rely on a broker, though perhaps nobody hears from it: by what the cluster says, or else by what its node does."""
    if pod.answers or pod.is_ready:
        return True
    if s.is_told:
        return s.registered.get(pod.number, {}).get("fenced") is False
    return not pod.fault and _was_ready(pod)


def _was_ready(pod: BrokerPod) -> bool:
    """Tell whether what runs in a pod has been ready since it began: then that it isn't any more began later than it did."""
    changed = text_at(condition_of(pod.manifest, "Ready") or {}, "lastTransitionTime")
    running = [map_at(state, "running") for _, state in container_states(pod.manifest)]
    return any(text_at(each, "startedAt") < changed for each in running if each)


def _deleted(pod: BrokerPod, text: str, s: KafkaState) -> KafkaStep:
    return KafkaStep(Do.DELETE_POD, _why(s), text, pod.slot, brokers=(pod.number,))


def _awaited(spec: KafkaSpec, s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    for number in range(spec.brokers):
        pod = s.pods.get(number)
        if pod is None and _has_going_volume(number, s):
            yield _volume_awaited(number, s)
        if pod is not None and pod.is_going:
            yield wait(f"pod {pod.slot} is terminating", "PodTerminating", _why(s))
        if not s.is_up(number):
            fault = (pod.fault or pod.silence or s.error) if pod else ""
            reason = "BrokerAway" if s.is_formed else "Starting"
            yield wait(f"{slot_of(ctx, number)} doesn't take part yet{f': {fault}' if fault else ''}", reason, _why(s))
    if not s.is_told:
        yield wait(
            f"the brokers don't say how the cluster is yet{f': {s.error}' if s.error else ''}", "NoController", _why(s)
        )


def _restarts(spec: KafkaSpec, s: KafkaState, templates: Mapping[int, str], ctx: Context) -> Iterator[KafkaStep]:
    """Yield the restarts of brokers that aren't as specified any more. Where a Secret is somebody else's there are none: with what it holds, a broker may not get in again."""
    if tls_of(s, ctx).taken:
        return
    if outdated(s, templates):
        yield from restart_barred(spec, s)
    yield from roll_steps(s, templates, ctx)


def _settings(spec: KafkaSpec, s: KafkaState) -> Iterator[KafkaStep]:
    changed = {name: value for name, value in sorted(spec.dynamic.items()) if not is_same(s.config.get(name), value)}
    dropped = sorted(name for name in s.config if name in DYNAMIC and name not in spec.dynamic)
    if changed or dropped:
        yield KafkaStep(
            Do.SET_CONFIG,
            Why.CHANGING,
            f"set of all brokers, without a restart: {settings_text(changed, dropped)}",
            parameters={"set": changed, "reset": dropped},
            holds={"config": dict(s.config)},
        )


def _why(s: KafkaState) -> Why:
    """Return what a step is for that brings something up."""
    return Why.RECOVERING if s.is_formed else Why.CREATING
