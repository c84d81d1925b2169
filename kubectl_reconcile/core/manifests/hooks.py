"""Hooks: Jobs that run at a point of a sync, once for each state of the source.

A hook is a Job with the annotation ``reconcile.dev/hook``. ``pre-sync`` runs before anything is written,
and nothing is unless it completes; ``post-sync`` once everything is written and healthy;
``sync-fail`` when something failed. The Job that ran is its own record: it carries a digest of the
manifests that it ran for, so it runs again when those change and only then, however often the daemon starts,
however many commits touch other files. It is deleted and recreated, never corrected.

Pure.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kubectl_reconcile.core.annotations import HOOK, HOOK_RUN
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, annotations_of

_JOB = GroupKind("batch", "Job")


def complaint_of(manifest: Manifest) -> tuple[str, str] | None:
    """Return what keeps an object from being the hook that it asks to be, and what to do about it; None where nothing does."""
    if GroupVersionKind.of(manifest).group_kind != _JOB:
        return "only a Job can be a hook", f"remove {HOOK}, or make it a Job"
    if (manifest.get("spec") or {}).get("ttlSecondsAfterFinished") is not None:
        return "a hook can't have ttlSecondsAfterFinished", "remove it: the Job is the record that the hook ran"
    return None


def stamped(manifest: Manifest, revision: Revision) -> Manifest:
    """Return a hook with the digest of the manifests that it runs for."""
    metadata: dict[str, Any] = dict(manifest["metadata"])
    metadata["annotations"] = {**annotations_of(manifest), HOOK_RUN: _digest(revision)}
    return {**manifest, "metadata": metadata}


def has_run(live: Manifest, wanted: Manifest) -> bool:
    """Tell whether the live Job ran for the manifests that *wanted* is stamped with."""
    return annotations_of(live).get(HOOK_RUN) == annotations_of(wanted).get(HOOK_RUN)


def _digest(revision: Revision) -> str:
    files = json.dumps(sorted(revision.files.items()))
    return hashlib.sha256(files.encode()).hexdigest()[:32]
