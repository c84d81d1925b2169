"""What Jobs of a module tell by their pods: whose pods they are, what keeps them from running, and their last words.

A program of a module's own ends with one line of JSON as the termination message of its container.

Pure: live objects in, values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from kubectl_reconcile.core.objects import Manifest, condition_of, controller_of, labels_of, map_at, mapping_of, maps_in

_JOB_NAME = "batch.kubernetes.io/job-name"
MOST_NESTED: Final = 20
"""How deep last words may be nested."""
_ON_THE_WAY = frozenset({"ContainerCreating", "PodInitializing"})


def pods_of_job(job: Manifest, pods: Iterable[Manifest]) -> list[Manifest]:
    """Return the pods that this live Job controls. A pod that only has its label doesn't count."""
    name, uid = job["metadata"]["name"], job["metadata"].get("uid")
    if not uid:
        return []
    labelled = (pod for pod in pods if labels_of(pod).get(_JOB_NAME) == name)
    return [pod for pod in labelled if (controller_of(pod) or {}).get("uid") == uid]


def container_states(pod: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and the state of each container that a pod reports, in the order in which they run."""
    status = map_at(pod, "status")
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in maps_in(status.get(kind)):
            yield str(each.get("name") or ""), mapping_of(each.get("state"))


def why_waiting(pod: Manifest) -> str:
    """Return what keeps a pod from running, in the words of its node; empty if it runs."""
    words: list[str] = []
    for _, state in container_states(pod):
        words += _words(mapping_of(state.get("waiting")))
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        words += _words(scheduled)
    shown = [word for word in words if word and word not in _ON_THE_WAY]
    return f"its pod waits: {': '.join(shown)}" if shown else ""


def _words(said: Mapping[str, Any]) -> list[str]:
    return [str(said.get("reason") or ""), str(said.get("message") or "")]


def last_words(message: str) -> Mapping[str, Any]:
    """Return the JSON object in a program's termination message; nothing if it isn't a JSON object, or is nested too deeply.

    The result can always be serialised again: numbers are finite, and text consists of whole characters.
    """
    try:
        found = mapping_of(
            orjson.loads(message)
        )  # unlike json it refuses what it couldn't write, and nesting without end
    except ValueError:
        return {}
    return found if _is_shallow(found) else {}


def _is_shallow(tree: object) -> bool:
    layer = [tree]
    for _ in range(MOST_NESTED + 1):
        layer = [each for node in layer for each in _inner(node)]
    return not layer


def _inner(node: object) -> Iterable[object]:
    if isinstance(node, Mapping):
        return node.values()
    return node if isinstance(node, list) else ()


def shortened(text: str, most: int) -> str:
    """Return *text*, cut to *most* characters with an ellipsis if it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"
