"""What the cluster's module writes down of a KafkaRebalance, and the KafkaRebalance's own module reads: a ConfigMap, which the Kafka owns.

It holds the *record* (in which state it is, what was proposed) and the moves themselves. Approvals aren't among it: these are on the KafkaRebalance itself.

Pure. What is read back may have been changed by anybody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, map_at
from kubectl_reconcile_operators.kafka.partitions.assignment import digest_of
from kubectl_reconcile_operators.kafka.rebalance.decision import RebalancePhase
from kubectl_reconcile_operators.kafka.rebalance.kept import PACKED, KeptProposal, read_back, written
from kubectl_reconcile_operators.kafka.steps import Do

STATE = "state.json"
_STATE_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class RebalanceRecord:
    """How far the KafkaRebalance with this *uid* is, as of this *generation*. *proposal* are the totals of what was proposed, *digest* is what is approved; *asked* is the digest of what the wish was refused on, if it was. *stopped* is the generation as of which it was last stopped, 0 if it never was."""

    uid: str
    generation: int
    phase: RebalancePhase
    reason: str = ""
    text: str = ""
    digest: str = ""
    is_begun: bool = False
    proposal: Mapping[str, Any] = field(default_factory=dict)
    asked: str = ""
    stopped: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is done until its spec changes."""
        return self.phase in {RebalancePhase.READY, RebalancePhase.STOPPED}


def approval_key(digest: str) -> str:
    """Return the key of the action by which somebody approves the proposal with this digest."""
    return f"{Do.ALLOW_MOVES.value}-{digest}"


def map_name(cluster: Context, rebalance: str) -> str:
    """Return the name of the ConfigMap for the KafkaRebalance of this name."""
    return cluster.name(f"rebalance-{digest_of(rebalance)[:8]}")


def map_of(cluster: Context, rebalance: str, record: RebalanceRecord, kept: KeptProposal | None) -> Manifest:
    """Return the ConfigMap that says all this."""
    state = {
        "uid": record.uid,
        "generation": record.generation,
        "rebalance": rebalance,
        "phase": record.phase.value,
        "reason": record.reason,
        "text": record.text,
        "digest": record.digest,
        "begun": record.is_begun,
        "proposal": dict(record.proposal),
        **({"asked": record.asked} if record.asked else {}),
        **({"stopped": record.stopped} if record.stopped else {}),
    }
    moves = written(kept) if kept and kept.moves else {}
    packed = {name: text for name, text in moves.items() if name == PACKED}
    plain = {name: text for name, text in moves.items() if name != PACKED}
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": map_name(cluster, rebalance), "labels": cluster.labels("rebalance")},
        "data": {STATE: json.dumps(state, separators=(",", ":"), sort_keys=True), **plain},
    }
    if packed:
        body["binaryData"] = packed
    return body


def record_of(config_map: Manifest | None, uid: str) -> RebalanceRecord | None:
    """Return what was written of the KafkaRebalance with this uid; None if nothing was, or it can't be read."""
    text = map_at(config_map or {}, "data").get(STATE)
    try:
        if not isinstance(text, str) or len(text) > _STATE_MAX:
            return None
        found = json.loads(text)
        record = RebalanceRecord(
            str(found["uid"]),
            int(found["generation"]),
            RebalancePhase(found["phase"]),
            str(found["reason"]),
            str(found["text"]),
            str(found["digest"]),
            found["begun"] is True,
            dict(found["proposal"]),
            str(found.get("asked", "")),
            int(found.get("stopped", 0)),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return record if record.uid == uid else None


def kept_in(config_map: Manifest | None) -> KeptProposal | None:
    """Return the moves that were written down; None if there are none, or somebody has changed them."""
    return read_back({**map_at(config_map or {}, "data"), **map_at(config_map or {}, "binaryData")})
