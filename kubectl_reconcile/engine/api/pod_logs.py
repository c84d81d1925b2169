"""The end of what a container has printed, as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.messages import Param
from kubectl_reconcile.core.objects import Manifest, map_at, maps_in

LINES = 500
BYTES = 256 * 1024
_LONGEST_LINE = 2000
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Colours and other commands to terminals, and characters that nobody sees."""


class PodLogs(Struct, frozen=True):
    """The last *lines* of *container*, one of *containers*."""

    containers: Sequence[str]
    container: str
    lines: Sequence[str]


async def logs_of(client: Client, pod: Manifest, container: str = "", *, previous: bool = False) -> PodLogs:
    """Return what *container* of a live pod has printed last, its first one where none is named; *previous*: before it was restarted.

    Raises:
        ValueError: the pod has no such container.
        ApiError: the server refuses, doesn't answer, or there is nothing yet.
    """
    names = containers_of(pod)
    chosen = container or next(iter(names), "")
    if chosen not in names:
        raise ValueError(f"the pod has no container {container!r}, but {', '.join(names)}")
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/log"
    params: dict[str, Param] = {"container": chosen, "tailLines": LINES, "limitBytes": BYTES, "previous": previous}
    answer = await client.request("GET", path, params=params, accept="*/*")
    return PodLogs(names, chosen, lines_of(answer.body))


def containers_of(pod: Manifest) -> list[str]:
    """Return the names of a pod's containers, and after them those that run before or beside them."""
    spec = map_at(pod, "spec")
    kinds = ("containers", "initContainers", "ephemeralContainers")
    return [str(each.get("name")) for kind in kinds for each in maps_in(spec.get(kind))]


def lines_of(printed: bytes) -> list[str]:
    """Return what was printed as lines of text, without what is meant for terminals."""
    text = printed[:BYTES].decode(errors="replace").replace("\r\n", "\n")
    lines = text.removesuffix("\n").split("\n")[-LINES:] if text else []
    return [_ESCAPES.sub("", line)[:_LONGEST_LINE] for line in lines]
