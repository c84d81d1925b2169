"""How a proposal is written down: totals and a digest for a status, the moves themselves as text, compressed where they are many.

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

from kubectl_reconcile.modules.kafka.partitions.assignment import Key, digest_of
from kubectl_reconcile.modules.kafka.partitions.proposal import MoveProposal, PartitionMove, estimate_s

PLAIN_MAX = 64 * 1024
"""So many characters of moves stand in a status; more go to a ConfigMap, compressed."""
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
    """Return the moves as data of a status or of a ConfigMap: plain, or compressed if they are more than `PLAIN_MAX`."""
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


def is_packed(data: Mapping[str, str]) -> bool:
    """Tell whether *data*, as `written`, belongs into a ConfigMap (its ``binaryData``)."""
    return PACKED in data


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


def summary(proposal: MoveProposal, throttle_bytes_per_s: int) -> str:
    """Return a proposal in a sentence, as an action that waits for approval has it."""
    takes = estimate_s(proposal, throttle_bytes_per_s)
    gets = [
        f"broker {before.broker} {before.size_bytes} → {after.size_bytes}"
        for before, after in zip(proposal.before, proposal.after, strict=True)
        if before.size_bytes != after.size_bytes
    ]
    return (
        f"move {proposal.moved_replicas} replicas of {len(proposal.moves)} partitions, {proposal.moved_bytes} bytes, and change {proposal.changed_leaders} leaders"
        + (f", in about {takes} s" if takes is not None else "")
        + (f"; bytes: {', '.join(gets)}" if gets else "")
    )
