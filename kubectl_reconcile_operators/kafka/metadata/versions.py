"""Versions of Kafka, and those of a cluster's metadata: what all brokers write down in common, which only goes up.

Vocabulary: a *level* is a number that Kafka gives a version of its metadata (its feature ``metadata.version``). A broker *knows* levels up to that of its own version; the cluster is *at* one.
An upgrade replaces all brokers first, one at a time; until the level is raised, the way back is open. A version that doesn't know the level that the cluster is at can't run it.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from kubectl_reconcile.module_api import Context
from kubectl_reconcile_operators.kafka.names import slot_of
from kubectl_reconcile_operators.kafka.situation import KafkaState
from kubectl_reconcile_operators.kafka.spec import LEVELS, KafkaSpec
from kubectl_reconcile_operators.kafka.steps import Do, KafkaStep, Why


def accepted(spec: KafkaSpec, s: KafkaState) -> KafkaSpec:
    """Return the spec with a version that can run the cluster: its own, or what runs, where its own is too old."""
    if not is_too_old(spec, s):
        return spec
    version = _oldest(s.level) if LEVELS.get(s.before.version, 0) < s.level else s.before.version
    images = Counter(each.image for each in s.pods.values())
    image = min(images, key=lambda each: (-images[each], each), default="")
    return replace(spec, version=version, image=image)


def is_too_old(spec: KafkaSpec, s: KafkaState) -> bool:
    """Tell whether the version of a spec doesn't know the level that the cluster is at."""
    return LEVELS[spec.version] < s.level


def _oldest(level: int) -> str:
    """Return the oldest version that knows a level, or the newest there is where none does."""
    return next((version for version, known in LEVELS.items() if known >= level), list(LEVELS)[-1])


def refused_versions(spec: KafkaSpec, s: KafkaState, left: Collection[int]) -> Iterator[tuple[str, str]]:
    """Yield what of the version is refused while all else goes on: a word and a sentence. *left* are brokers that have to restart first."""
    if is_too_old(spec, s):
        needed = _oldest(s.level)
        hint = f" (hint: set it to {needed})" if LEVELS[needed] >= s.level else ""
        yield (
            "DowngradeRefused",
            (
                f".spec.version: {spec.version} knows metadata versions up to {LEVELS[spec.version]}, and the cluster is at {s.level}, which can't be lowered{hint}"
            ),
        )
    wanted = LEVELS[spec.version]
    if s.is_told and not is_too_old(spec, s) and (behind := _behind(s, wanted, left)):
        known = min(behind.values())
        yield "ImageTooOld", (
            f".spec.image: brokers {', '.join(map(str, behind))} know metadata versions up to {known}, and {spec.version} has {wanted}"
            f" (hint: is the image one of Kafka {spec.version}?)"
        )  # fmt: skip


def _behind(s: KafkaState, level: int, left: Collection[int]) -> dict[int, int]:
    """Return the brokers that don't know a level though they restarted for it, each with what it knows."""
    found = {number: s.knows(number) for number in sorted({*s.registered} - {*left})}
    return {number: known for number, known in found.items() if 0 < known < level}


def level_steps(spec: KafkaSpec, s: KafkaState, left: Collection[int], ctx: Context) -> Iterator[KafkaStep]:
    """Yield what raises the level of the cluster's metadata; *left* are brokers that have to restart first."""
    wanted = LEVELS[spec.version]
    if not 0 < s.level < wanted or left or s.behind or not all(s.knows(number) >= wanted for number in s.registered):
        return
    names = ", ".join(slot_of(ctx, number) for number in sorted(s.registered))
    text = f"raise the metadata version of the cluster from {s.level} to {wanted}, which all brokers know ({names}); from then on it can't go back to an older version of Kafka"
    yield KafkaStep(
        Do.RAISE_LEVEL, Why.ROLLING, text, str(wanted), parameters={"level": wanted}, holds={"cluster.level": s.level}
    )  # fmt: skip
