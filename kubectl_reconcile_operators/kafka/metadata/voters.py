"""Controllers that vote, and one that came back with an empty volume: it observes until it is let in again.

Kafka knows a voter by its id and by that of its directory. A controller whose volume is lost has another directory: what it was is still counted among the voters, and never answers again. It is put
out, and what the controller is now is let in. In between the others decide by themselves, as they do while it is away; so that isn't begun unless all of them take part, and it has all of the log.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.module_api import Context, map_at
from kubectl_reconcile_operators.kafka.names import CONTROLLER_PORT, host, slot_of
from kubectl_reconcile_operators.kafka.situation import KafkaState
from kubectl_reconcile_operators.kafka.spec import KafkaSpec
from kubectl_reconcile_operators.kafka.steps import Do, KafkaStep, Why, stop


def data_lost(spec: KafkaSpec, s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    """Yield that nobody can lead the cluster any more: most of the controllers have lost what they knew of it."""
    if not s.is_formed or s.is_told:
        return
    gone = [slot_of(ctx, number) for number in range(spec.controllers) if _has_lost_data(number, s)]
    if 2 * (spec.controllers - len(gone)) <= spec.controllers:
        yield stop(
            f"the data of {', '.join(gone)} is gone, so that {spec.controllers - len(gone)} of {spec.controllers} controllers know the cluster, and nobody can lead it; none is"
            " begun in its place (hint: bring their volumes back; where they are gone for good, delete this Kafka and its volume claims, and create it again)",
            "DataLost",
        )


def _has_lost_data(number: int, s: KafkaState) -> bool:
    """Tell whether what a controller had is gone; one that has never served had nothing."""
    volume, pod = s.volumes.get(number), s.pods.get(number)
    if volume is None or not (volume.cluster or volume.begins):
        return number not in {each.number for each in s.unclaimed}
    return bool(volume.cluster) and pod is not None and pod.has_lost_data


def voter_steps(spec: KafkaSpec, s: KafkaState, ctx: Context) -> Iterator[KafkaStep]:
    """Yield what lets controllers vote again, one at a time."""
    voters, observers = map_at(s.quorum, "voters"), map_at(s.quorum, "observers")
    for number in range(spec.controllers):
        id_, slot = str(number), slot_of(ctx, number)
        others = [each for each in voters if each != id_]
        at_work = all(s.is_up(int(each)) and each not in observers for each in others)
        if id_ not in observers or number not in s.caught_up or not s.is_up(number) or not (others and at_work):
            continue
        about = {"cluster": s.cluster, "voter": number}
        if id_ in voters:
            text = f"have {slot}, which came back with an empty volume, no longer counted among the controllers that vote; then it is let in again"
            given = {**about, "directory": voters[id_]}
            holds = {f"cluster.voters.{each}": directory for each, directory in voters.items()}
            yield KafkaStep(Do.REMOVE_VOTER, Why.RECOVERING, text, slot, parameters=given, holds=holds)
        text = f"let {slot} vote again as a controller, which has all of the metadata now"
        given = {**about, "directory": observers[id_], "host": host(ctx, number), "port": CONTROLLER_PORT}
        holds = {f"cluster.observers.{number}": observers[id_], f"cluster.voters.{number}": None}
        yield KafkaStep(Do.ADD_VOTER, Why.RECOVERING, text, slot, parameters=given, holds=holds)
