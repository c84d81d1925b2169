"""KafkaRebalance: a CR ``KafkaRebalance`` is one wish of how partitions are to stand in a Kafka, from its proposal to its end.

The Kafka's own module works the proposal out, and carries it out once somebody has approved it here; what it writes down of that, in a ConfigMap, is told here. Nothing is
asked of brokers here.

Conditions: ``Ready`` (all stands as proposed), ``Rebalancing`` (partitions move, or are taken back), and ``Degraded`` where a person has to do something first.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    actions_done,
    kept_status,
    map_at,
    maps_in,
    module,
    text_at,
)
from kubectl_reconcile_operators.kafka.names import API
from kubectl_reconcile_operators.kafka.partitions.assignment import listing
from kubectl_reconcile_operators.kafka.rebalance.decision import RebalancePhase
from kubectl_reconcile_operators.kafka.rebalance.kept import summary
from kubectl_reconcile_operators.kafka.rebalance.record import RebalanceRecord, approval_key, map_name, record_of
from kubectl_reconcile_operators.kafka.rebalance.spec import RebalanceSpec, rebalance_spec
from kubectl_reconcile_operators.kafka.spec import BROKERS_MAX
from kubectl_reconcile_operators.kafka.steps import Do

_BUSY_S, _IDLE_S = 5.0, 60.0
_AT_WORK = frozenset({RebalancePhase.REBALANCING, RebalancePhase.STOPPING})


def _cluster_name(cr: Manifest) -> str:
    return text_at(cr, "spec", "clusterRef", "name")


def _map_name(cr: Manifest) -> str:
    """Return the name of the ConfigMap in which its state is written."""
    cluster = {"metadata": {"name": _cluster_name(cr), "namespace": cr["metadata"].get("namespace")}}
    return map_name(Context("", "kafka", cluster), cr["metadata"]["name"])


@module(
    api=API,
    kind="KafkaRebalance",
    owns=[],
    reads=[
        Reads(API, "Kafka", of=lambda cr: Select.named(_cluster_name(cr))),
        Reads("v1", "ConfigMap", selector="reconcile.dev/module=kafka", of=lambda cr: Select.named(_map_name(cr))),
    ],
)
class KafkaRebalance:
    """Move partitions between the brokers of a Kafka until they are even, once somebody approves what is proposed.

    The proposal says how many partitions, replicas and bytes move, and what each broker holds before and after.
    """

    async def observe(self, _cr: Manifest, _io: Io) -> Facts:
        """Look at nothing: what the brokers say, the Kafka's module has written down."""
        return {}

    async def act(self, _cr: Manifest, _action: Action, _io: Io) -> str:
        """Do nothing: an approval is a decision, which the Kafka's module finds in the journal."""
        return ""

    def reconcile(self, cr: Manifest, owned: Owned, _facts: Facts, _ctx: Context) -> Outcome:
        """Tell how far it is; offer the approval."""
        spec = rebalance_spec(cr)
        cluster = owned.other("Kafka", spec.cluster_ref.name)
        if cluster is None:
            return _told(cr, _unknown(spec.cluster_ref.name))
        record = _record(cr, cluster, owned)
        is_new = record is None or record.phase is RebalancePhase.NEW
        if is_new and (unknown := _unknown_brokers(spec, cluster)):
            return _told(cr, unknown)
        if map_at(cluster, "spec").get("paused") is True:
            return _told(cr, _waiting(cr, record, "ClusterPaused", f"Kafka {spec.cluster_ref.name} is paused"))
        if record is None or record.generation != cr["metadata"].get("generation", record.generation):
            text = f"waits until the module of Kafka {spec.cluster_ref.name} has looked at it"
            return _told(cr, _waiting(cr, record, "NotObserved", text))
        return _told(cr, record, tuple(_approval(cr, record)))

    def finalize(self, cr: Manifest, owned: Owned, _facts: Facts, _ctx: Context) -> Outcome:
        """Wait until what is in flight has been taken back, unless nobody would do that any more."""
        cluster = owned.other("Kafka", _cluster_name(cr))
        record = _record(cr, cluster, owned) if cluster else None
        is_left = cluster is None or bool(cluster["metadata"].get("deletionTimestamp"))
        is_left = is_left or map_at(cluster or {}, "spec").get("paused") is True
        at_work = not is_left and record is not None and record.is_begun
        text = record.text if record and at_work else "nothing of it moves"
        return Outcome(
            status=kept_status(cr),
            conditions=(Condition("Ready", "False", "Deleting", text),),
            requeue_after_s=_BUSY_S,
            finalized=not at_work,
        )


def _record(cr: Manifest, cluster: Manifest, owned: Owned) -> RebalanceRecord | None:
    """Return what the Kafka's module has written down; None where it hasn't, or where the ConfigMap is somebody else's."""
    found = owned.other("ConfigMap", _map_name(cr))
    owners = maps_in(map_at(found or {}, "metadata").get("ownerReferences"))
    is_its = any(
        each.get("uid") == cluster["metadata"].get("uid") and each.get("controller") is True for each in owners
    )
    return record_of(found, str(cr["metadata"].get("uid") or "")) if is_its else None


def _unknown(cluster: str) -> RebalanceRecord:
    text = (
        f".spec.clusterRef.name: there is no Kafka {cluster} in this namespace (hint: correct the name, or create it)"
    )
    return RebalanceRecord("", 0, RebalancePhase.NOT_READY, "ClusterNotFound", text)


def _unknown_brokers(spec: RebalanceSpec, cluster: Manifest) -> RebalanceRecord | None:
    """Return that brokers which are named aren't there, by what the Kafka says; None if all are. Its brokers needn't run to tell."""
    asked = map_at(cluster, "spec").get("brokers")
    told = {each.get("id") for each in maps_in(map_at(cluster, "status").get("brokers"))}
    known = {
        *range(min(asked, BROKERS_MAX) if isinstance(asked, int) else 0),
        *(each for each in told if isinstance(each, int)),
    }
    unknown = sorted({*spec.brokers} - known)
    if not unknown:
        return None
    text = f".spec.brokers: brokers {listing(unknown)} aren't there (hint: there are {listing(sorted(known))})"
    return RebalanceRecord("", 0, RebalancePhase.NOT_READY, "CantBe", text)


def _waiting(cr: Manifest, record: RebalanceRecord | None, reason: str, text: str) -> RebalanceRecord:
    """Return what was written last, with what is waited for now."""
    phase = record.phase if record else RebalancePhase.NEW
    proposal = record.proposal if record else {}
    return RebalanceRecord(
        str(cr["metadata"].get("uid") or ""), 0, phase, reason, text, record.digest if record else "", proposal=proposal
    )


def _approval(cr: Manifest, record: RebalanceRecord) -> Iterator[Action]:
    """Yield the approval of what is proposed, which is for this very proposal."""
    key = approval_key(record.digest)
    if record.phase is RebalancePhase.PROPOSAL_READY and record.proposal and key not in actions_done(cr):
        yield Action(key, Do.ALLOW_MOVES.value, summary(record.proposal), needs_approval=True)


# --- status ---------------------------------------------------------------------------------------


def _told(cr: Manifest, record: RebalanceRecord, actions: tuple[Action, ...] = ()) -> Outcome:
    status: dict[str, Any] = {"phase": record.phase.value, "clusterName": _cluster_name(cr)}
    if record.proposal:
        status["proposal"] = dict(record.proposal)
    ended = record.phase in {RebalancePhase.READY, RebalancePhase.STOPPED}
    return Outcome(
        actions=actions,
        status=status,
        conditions=tuple(_conditions(record)),
        requeue_after_s=_IDLE_S if ended else _BUSY_S,
    )


def _conditions(record: RebalanceRecord) -> Iterator[Condition]:
    is_ready = record.phase is RebalancePhase.READY
    reason = record.reason or record.phase.value
    yield Condition("Ready", "True" if is_ready else "False", reason, record.text)
    at_work = record.phase in _AT_WORK
    yield Condition(
        "Rebalancing",
        "True" if at_work else "False",
        reason if at_work else "NothingMoves",
        record.text if at_work else "",
    )
    if record.phase is RebalancePhase.NOT_READY:
        yield Condition("Degraded", "True", reason, record.text)
