"""What people tell a Sync: stay as you are, go on, go back to a commit.

Vocabulary: a Sync is *suspended* by ``spec.suspend``: the cluster stays as it is. It is *pinned* where a person
took it back to a commit: that commit is what it follows, drift included, and an annotation remembers what
it followed before. To *resume* ends both.

Each is one patch of the Sync, so a daemon learns of it at once by its watch, and whoever may patch a
Sync may steer it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.annotations import PINNED_FROM, RESUME_REQUESTED_AT, names_of
from kubectl_reconcile.core.objects import Manifest, annotations_of, labels_of, map_at
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.engine.api.sync_requests import SYNCS

_MANAGER = "kubectl-reconcile-cli"
_REFS = ("branch", "tag", "commit")


async def suspend(client: Client, live: Manifest) -> Manifest:
    """Tell a Sync to leave the cluster as it is, and return it as it is then.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    return await _patch(client, live, {"spec": {"suspend": True}})


async def resume(client: Client, live: Manifest) -> Manifest:
    """Tell a Sync to go on: no longer suspended, no longer pinned, and what made the daemon stop is forgotten.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    spec: dict[str, Any] = {"suspend": None}
    annotations = _resuming()
    if is_pinned(live):
        spec["source"] = {"git": {**dict.fromkeys(_REFS), **followed_before(live)}}
        annotations[PINNED_FROM] = None
    return await _patch(client, live, {"metadata": {"annotations": annotations}, "spec": spec})


async def pin(client: Client, live: Manifest, sha: str) -> Manifest:
    """Have a Sync follow the commit *sha* until it is resumed, and return it as it is then.

    What it followed before the first pin is remembered, however often it is pinned again.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    before = followed_before(live) if is_pinned(live) else ref_of(live)
    body = {
        "metadata": {"annotations": {**_resuming(), PINNED_FROM: json.dumps(before, sort_keys=True)}},
        "spec": {"suspend": None, "source": {"git": {**dict.fromkeys(_REFS), "commit": sha}}},
    }
    return await _patch(client, live, body)


def is_pinned(live: Manifest) -> bool:
    """Tell whether a person took this Sync back to a commit, where it still is."""
    return PINNED_FROM in annotations_of(live) and bool(ref_of(live).get("commit"))


def ref_of(live: Manifest) -> dict[str, str]:
    """Return which ref a Sync follows, as its spec says it; empty for the default branch."""
    git = map_at(live, "spec", "source", "git")
    return {name: str(git[name]) for name in _REFS if git.get(name)}


def followed_before(live: Manifest) -> dict[str, str]:
    """Return which ref a pinned Sync goes back to; what somebody wrote there that is no ref is the default branch."""
    try:
        found = json.loads(annotations_of(live).get(PINNED_FROM, ""))
    except ValueError:
        return {}
    known = found if isinstance(found, Mapping) else {}
    return {name: known[name] for name in _REFS if isinstance(known.get(name), str)}


def ref_text(ref: Mapping[str, str]) -> str:
    """Return a ref as people say it: ``branch main``, ``commit 3f9c2e1``."""
    for name in _REFS:
        if name in ref:
            return f"{name} {ref[name][:7] if name == 'commit' else ref[name]}"
    return "the default branch"


def is_kept_by_another(live: Manifest) -> bool:
    """Tell whether the Sync is itself a member of a set, whose source will put back what is changed here."""
    return PART_OF in labels_of(live)


async def _patch(client: Client, live: Manifest, body: Manifest) -> Manifest:
    metadata = live["metadata"]
    path = f"{SYNCS}/namespaces/{metadata['namespace']}/syncs/{metadata['name']}"
    return await client.patch(path, body, manager=_MANAGER)


def _resuming() -> dict[str, str | None]:
    """Return the annotations by which what made the daemon stop is forgotten; a former name goes."""
    name, *former = names_of(RESUME_REQUESTED_AT)
    return {**dict.fromkeys(former), name: _now()}


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
