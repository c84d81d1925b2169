"""How a proposal is written down: totals and a digest for a status, the moves themselves for a ConfigMap, compressed where they are many.

What was approved is carried out as it was written, even if the cluster would be given another proposal by then; so the moves are kept, with the
order in which replicas stood.

Pure. What is read back may have been changed by anybody: it counts only if its digest is the one that it says.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile_operators.kafka.partitions.assignment import Key, digest_of, listing
from kubectl_reconcile_operators.kafka.partitions.proposal import MoveProposal, PartitionMove, estimate_s
from kubectl_reconcile_operators.kafka.topics import counted, size_text

PLAIN_MAX = 64 * 1024
"""So many characters of moves are written as they are; more are compressed."""
KEPT_MAX = 900_000
"""So many characters a ConfigMap takes beside what else is in it."""
_TOLD_MAX = 20
_TEXT_MAX = 16 * 1024 * 1024
PLAIN, PACKED = "moves.json", "moves.json.z"


@dataclass(frozen=True, slots=True)
class KeptProposal:
    """A proposal that was written down: for which wish, for which assignment, and what is to move. *digest* is what an approval is for."""

    wish: str
    seen: str
    moves: tuple[PartitionMove, ...] = ()

    @property
    def digest(self) -> str:
        """A hash of all of it, sizes and leaders left out: these change while nothing moves."""
        moves = [[*each.key, list(each.old), list(each.new)] for each in self.moves]
        return digest_of([self.wish, self.seen, moves])


def kept_of(proposal: MoveProposal, wish: str) -> KeptProposal:
    """Return what is kept of a proposal for the wish with this digest."""
    return KeptProposal(wish, proposal.seen, proposal.moves)


def written(kept: KeptProposal) -> dict[str, str]:
    """Return the moves as data of a ConfigMap: plain, or compressed if they are more than `PLAIN_MAX`."""
    topics: dict[str, dict[str, Any]] = {}
    for each in kept.moves:
        line = [list(each.old), list(each.new), each.size_bytes, -1 if each.leader is None else each.leader]
        topics.setdefault(each.key.topic, {})[str(each.key.number)] = line
    text = json.dumps(
        {"digest": kept.digest, "wish": kept.wish, "seen": kept.seen, "moves": topics}, separators=(",", ":")
    )
    if len(text) <= PLAIN_MAX:
        return {PLAIN: text}
    return {PACKED: base64.b64encode(zlib.compress(text.encode(), 9)).decode()}


def read_back(data: Mapping[str, Any]) -> KeptProposal | None:
    """Return the proposal that was `written`; None if there is none, or somebody has changed it."""
    try:
        found = json.loads(_text(data))
        kept = KeptProposal(found["wish"], found["seen"], tuple(_moves(found["moves"])))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, binascii.Error, RecursionError):
        return None
    return kept if kept.digest == found["digest"] else None


def _text(data: Mapping[str, Any]) -> str:
    if PACKED not in data:
        return str(data[PLAIN])
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(base64.b64decode(data[PACKED], validate=True), _TEXT_MAX)
    if unpacking.unconsumed_tail:
        raise ValueError("too long")
    return text.decode()


def _moves(topics: Mapping[str, Mapping[str, Any]]) -> list[PartitionMove]:
    moves = (
        PartitionMove(Key(topic, int(number)), tuple(old), tuple(new), int(size), leader if leader >= 0 else None)
        for topic, lines in topics.items()
        for number, (old, new, size, leader) in lines.items()
    )
    return sorted(moves, key=lambda each: each.key)


def totals(proposal: MoveProposal, digest: str, throttle_bytes_per_s: int) -> dict[str, Any]:
    """Return what a status and a preview say of a proposal: how much moves, and each broker before and after."""
    after = {each.broker: each for each in proposal.after}
    found: dict[str, Any] = {
        "digest": digest,
        "partitions": len(proposal.moves),
        "replicas": proposal.moved_replicas,
        "leaders": proposal.changed_leaders,
        "bytes": proposal.moved_bytes,
        "brokers": [
            {
                "id": each.broker,
                "bytesBefore": each.size_bytes,
                "bytesAfter": after[each.broker].size_bytes,
                "replicasBefore": each.replicas,
                "replicasAfter": after[each.broker].replicas,
                "leadersBefore": each.leaders,
                "leadersAfter": after[each.broker].leaders,
            }
            for each in proposal.before
        ],
    }
    takes = estimate_s(proposal, throttle_bytes_per_s)
    if takes is not None:
        found["estimatedSeconds"] = takes
    if proposal.notes:
        found["notes"] = list(proposal.notes)
    return found


def summary(found: Mapping[str, Any]) -> str:
    """Return the totals of a proposal in a sentence, as the action that waits for approval has them."""
    takes = f", {found['estimatedSeconds']} s at least" if found.get("estimatedSeconds") else ""
    changed = listing((_load(each) for each in found["brokers"] if _load(each)), _TOLD_MAX)
    return (
        f"move {counted(found['partitions'], 'partition')}: {counted(found['replicas'], 'replica')}, {size_text(found['bytes'])}{takes};"
        f" {counted(found['leaders'], 'partition')} would prefer another leader; brokers hold (replicas, leaders): {changed or 'what they held'}"
    )


def _load(each: Mapping[str, Any]) -> str:
    before, after = (
        f"{size_text(each[f'bytes{when}'])} ({each[f'replicas{when}']}, {each[f'leaders{when}']})"
        for when in ("Before", "After")
    )
    return f"{each['id']} {before} → {after}" if before != after else ""
