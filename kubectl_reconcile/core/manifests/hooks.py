"""Hooks: Jobs that run at a point of a sync, once for each state of the source.

A hook is a Job with the annotation ``reconcile.dev/hook``, or one that says the same to Helm or Argo CD. ``pre-sync`` runs before
anything is written, and nothing is unless it completes; ``sync`` with everything else; ``post-sync`` once everything is written and
healthy; ``sync-fail`` when something failed. The Job that ran is its own record: it carries a digest of the
manifests that it ran for, so it runs again when those change and only then, however often the daemon starts,
however many commits touch other files. It is deleted and recreated, never corrected. One that Helm would run at an install alone
runs once, as long as no sync has ended well; one for upgrades alone once some has.

Pure.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kubectl_reconcile.core.annotations import HOOK, HOOK_RUN
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, annotations_of
from kubectl_reconcile.core.other_tools.translation import Occasion

_JOB = GroupKind("batch", "Job")


def complaint_of(manifest: Manifest) -> tuple[str, str] | None:
    """Return what keeps an object from being the hook that it asks to be, and what to do about it; None where nothing does."""
    if GroupVersionKind.of(manifest).group_kind != _JOB:
        return "only a Job can be a hook", f"remove {HOOK}, or make it a Job"
    lifetime = (manifest.get("spec") or {}).get("ttlSecondsAfterFinished")
    if lifetime is not None and HOOK in annotations_of(manifest):
        return "a hook can't have ttlSecondsAfterFinished", "remove it: the Job is the record that the hook ran"
    return None


def stamped(manifest: Manifest, revision: Revision) -> Manifest:
    """Return a hook with the digest of the manifests that it runs for, and without an end of its own."""
    metadata: dict[str, Any] = dict(manifest["metadata"])
    metadata["annotations"] = {**annotations_of(manifest), HOOK_RUN: digest_of(revision)}
    spec = {name: value for name, value in (manifest.get("spec") or {}).items() if name != "ttlSecondsAfterFinished"}
    return {**manifest, "metadata": metadata, "spec": spec}


def has_run(live: Manifest | None, wanted: Manifest, occasion: Occasion, *, installed: bool, settled: bool) -> bool:
    """Tell whether a hook has nothing more to do: the *live* Job ran for the manifests that *wanted* is stamped with.

    *installed* tells that some state was synced well before, *settled* that this very one was.
    """
    ran_for = annotations_of(live or {}).get(HOOK_RUN)
    if ran_for is not None and ran_for == annotations_of(wanted).get(HOOK_RUN):
        return True
    if occasion is Occasion.INSTALL:
        return installed or ran_for is not None
    return occasion is Occasion.UPGRADE and (settled or not installed)


def digest_of(revision: Revision) -> str:
    """Return what a hook runs for: the same as long as no manifest file changes."""
    files = json.dumps([*sorted(revision.files.items()), *sorted(revision.stamps.items())])
    return hashlib.sha256(files.encode()).hexdigest()[:32]
