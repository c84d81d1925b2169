"""What is to be done about topics: made, grown, configured; those that the spec doesn't name are left alone, and once it did, deleted with somebody's approval.

Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_reconcile.module_api import map_at
from kubectl_reconcile_operators.kafka.names import fact_key
from kubectl_reconcile_operators.kafka.situation import KafkaState
from kubectl_reconcile_operators.kafka.spec import OWNED_TOPIC_CONFIG, KafkaSpec, TopicWish
from kubectl_reconcile_operators.kafka.steps import Do, KafkaStep, Why

_NAME_MAX = 30
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")


def topic_steps(spec: KafkaSpec, s: KafkaState) -> Iterator[KafkaStep]:
    """Yield what makes topics as they are specified."""
    for wish in spec.topics:
        if wish.name not in s.topics and spec.replicas_of(wish) <= len(s.registered):
            yield _made(spec, wish)
    for wish in spec.topics:
        if wish.name in s.topics:
            yield from _grown(wish, s)
            yield from _configured(wish, map_at(s.topics, wish.name))


def deletions(spec: KafkaSpec, s: KafkaState) -> Iterator[KafkaStep]:
    """Yield the deletion of each topic that the spec named once, and doesn't any more."""
    wanted = {each.name for each in spec.topics}
    for name in s.before.listed:
        known = map_at(s.topics, name)
        if name in wanted or not known:
            continue
        size = sum(each["bytes"] for each in map_at(known, "partitions").values())
        yield KafkaStep(
            Do.DELETE_TOPIC,
            Why.CHANGING,
            f"delete topic {name} with all its records{f', {size_text(size)}' if size else ''}: the spec doesn't name it any more",
            f"{label_of(name)}-{hashlib.sha256(str(known['id']).encode()).hexdigest()[:6]}",
            parameters={"topic": name},
            holds=_holding(name, "id", known["id"]),
            needs_approval=True,
        )


def refused_topics(spec: KafkaSpec, s: KafkaState) -> Iterator[tuple[str, str]]:
    """Yield what of the wanted topics is refused while all else goes on: a word and a sentence."""
    for at, wish in enumerate(spec.topics):
        partitions = map_at(s.topics, wish.name, "partitions")
        if len(partitions) > wish.partitions:
            yield "PartitionsShrink", (
                f".spec.topics[{at}].partitions: topic {wish.name} has {len(partitions)} partitions, and Kafka can't take any away"
                f" (hint: set it to {len(partitions)}, or copy the records into another topic)"
            )  # fmt: skip


def _made(spec: KafkaSpec, wish: TopicWish) -> KafkaStep:
    replicas = spec.replicas_of(wish)
    text = f"create topic {wish.name} with {counted(wish.partitions, 'partition')}, {counted(replicas, 'replica')} each"
    given = {"topic": wish.name, "partitions": wish.partitions, "replicas": replicas, "set": dict(wish.config)}
    return KafkaStep(
        Do.MAKE_TOPIC,
        Why.CHANGING,
        text,
        label_of(wish.name),
        parameters=given,
        holds=_holding(wish.name, "id", None),
    )


def _grown(wish: TopicWish, s: KafkaState) -> Iterator[KafkaStep]:
    before = len(map_at(s.topics, wish.name, "partitions"))
    if before < wish.partitions and wish.name not in s.moves:
        text = f"grow topic {wish.name} from {before} to {counted(wish.partitions, 'partition')}; records with a key may go to another one from then on"
        given = {"topic": wish.name, "partitions": wish.partitions}
        yield KafkaStep(
            Do.GROW_TOPIC,
            Why.CHANGING,
            text,
            label_of(wish.name),
            parameters=given,
            holds=_holding(wish.name, "id", map_at(s.topics, wish.name).get("id")),
        )


def _configured(wish: TopicWish, known: Mapping[str, Any]) -> Iterator[KafkaStep]:
    before = {name: value for name, value in map_at(known, "config").items() if name not in OWNED_TOPIC_CONFIG}
    changed = {
        name: str(value) for name, value in sorted(wish.config.items()) if not is_same(before.get(name), str(value))
    }
    dropped = sorted({*before} - {*wish.config})
    if changed or dropped:
        text = f"set of topic {wish.name}: {settings_text(changed, dropped)}"
        given = {"topic": wish.name, "set": changed, "reset": dropped}
        yield KafkaStep(
            Do.SET_TOPIC,
            Why.CHANGING,
            text,
            label_of(wish.name),
            parameters=given,
            holds=_holding(wish.name, "config", dict(map_at(known, "config"))),
        )


def _holding(topic: str, what: str, value: Any) -> dict[str, Any]:
    return {f"topics.{fact_key(topic)}.{what}": value}


def is_same(live: str | None, wanted: str) -> bool:
    """Tell whether a setting is what is wanted, however Kafka writes numbers and lists."""
    return live is not None and (live == wanted or _parts(live) == _parts(wanted))


def _parts(value: str) -> list[Any]:
    parts = [part.strip() for part in value.split(",")]
    return [
        float(part) if _NUMBER.fullmatch(part) else part.lower() if part.lower() in {"true", "false"} else part
        for part in parts
    ]


def settings_text(changed: Mapping[str, str], dropped: list[str]) -> str:
    """Return what is set and reset, for people."""
    return ", ".join(
        (
            *(f"{name} to {value}" for name, value in changed.items()),
            *(f"{name} to its default" for name in dropped),
        )
    )


def label_of(topic: str) -> str:
    """Return a topic's name as a part of an action's key, which is small letters, digits and dashes."""
    plain = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-")[:_NAME_MAX].strip("-")
    return plain if plain == topic else f"{plain}-{hashlib.sha256(topic.encode()).hexdigest()[:6]}".strip("-")


def counted(number: int, noun: str) -> str:
    """Return how many of something there are, in words for people."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size_text(size: int) -> str:
    """Return a size for people."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if size >> power:
            return f"{size / (1 << power):.3g} {unit}"
    return "less than 1 MiB"
