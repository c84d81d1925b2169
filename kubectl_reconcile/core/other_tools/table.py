"""Every annotation for Helm and Argo CD that is read, what it becomes, and where that differs; ``docs/annotations.md`` is made of it.

Pure: data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubectl_reconcile.core.other_tools.translation import (
    ARGO_COMPARE_OPTIONS,
    ARGO_DELETE_POLICY,
    ARGO_HOOK,
    ARGO_IGNORE_HEALTH,
    ARGO_SYNC_OPTIONS,
    ARGO_WAVE,
    AT_DELETION,
    HELM_DELETE_POLICY,
    HELM_HOOK,
    HELM_LOG_POLICY,
    HELM_RESOURCE_POLICY,
    HELM_WEIGHT,
)


class Meaning(NamedTuple):
    """One value of an annotation: what it *becomes* here, and where that *differs* from what the other tool does."""

    name: str
    value: str
    becomes: str
    differs: str = ""


_LEFT_OUT = "left out, with a warning"
_NOTED = "ignored, with a warning"
_ONCE = "Runs once for each state of the files, not at every sync"


def _rows() -> Iterator[Meaning]:
    yield Meaning(HELM_HOOK, "pre-install,pre-upgrade", "`reconcile.dev/hook: pre-sync`", f"{_ONCE}.")
    yield Meaning(HELM_HOOK, "post-install,post-upgrade", "`reconcile.dev/hook: post-sync`",
        f"{_ONCE}; everything else is healthy by then, as with `helm --wait`.")  # fmt: skip
    yield Meaning(HELM_HOOK, "pre-install", "`pre-sync`, until the Sync has succeeded once",
        "If Helm installed the release, the Sync's first sync still counts as an install.")  # fmt: skip
    yield Meaning(HELM_HOOK, "post-install", "`post-sync`, until the Sync has succeeded once", "As above.")
    yield Meaning(HELM_HOOK, "pre-upgrade", "`pre-sync`, after the Sync has succeeded once", f"{_ONCE}.")
    yield Meaning(HELM_HOOK, "post-upgrade", "`post-sync`, after the Sync has succeeded once", f"{_ONCE}.")
    yield Meaning(HELM_HOOK, "pre-rollback, post-rollback", "ignored if there is an `…-upgrade` too: a rollback is a sync of an earlier state",
        f"Without the upgrade: {_LEFT_OUT}.")  # fmt: skip
    yield Meaning(HELM_HOOK, "pre-delete, post-delete", _LEFT_OUT, f"{AT_DELETION[0].upper()}{AT_DELETION[1:]}.")
    yield Meaning(HELM_HOOK, "test, test-success", _LEFT_OUT, "`helm test` runs them.")
    yield Meaning(
        HELM_HOOK,
        "crd-install",
        "applied like any other CRD, with a warning",
        "Helm 3 and 4 leave it out, and so do we in charts.",
    )
    yield Meaning(HELM_HOOK, "anything else", _LEFT_OUT, "Helm leaves it out silently.")
    yield Meaning(HELM_WEIGHT, "an integer", "`reconcile.dev/wave` among the hooks",
        "Hooks of the same weight run together, Jobs after the objects that they need. Helm runs one after the other.")  # fmt: skip
    yield Meaning(
        HELM_DELETE_POLICY,
        "before-hook-creation",
        "always the case",
        "Objects other than Jobs are updated, not recreated.",
    )
    yield Meaning(HELM_DELETE_POLICY, "hook-succeeded, hook-failed", _NOTED, "The Job is the record that it ran.")
    yield Meaning(HELM_LOG_POLICY, "any", _NOTED)
    yield Meaning(HELM_RESOURCE_POLICY, "keep", '`reconcile.dev/prune: "false"`')
    yield Meaning(ARGO_HOOK, "PreSync, Sync, PostSync, SyncFail", "`reconcile.dev/hook: pre-sync`, `sync`, `post-sync`, `sync-fail`",
        f"{_ONCE}.")  # fmt: skip
    yield Meaning(ARGO_HOOK, "Skip", "left out")
    yield Meaning(ARGO_HOOK, "PreDelete, PostDelete", _LEFT_OUT, f"{AT_DELETION[0].upper()}{AT_DELETION[1:]}.")
    yield Meaning(
        ARGO_DELETE_POLICY,
        "BeforeHookCreation",
        "always the case",
        "Objects other than Jobs are updated, not recreated.",
    )
    yield Meaning(ARGO_DELETE_POLICY, "HookSucceeded, HookFailed", _NOTED, "The Job is the record that it ran.")
    yield Meaning(ARGO_WAVE, "an integer", "`reconcile.dev/wave`")
    yield Meaning(ARGO_SYNC_OPTIONS, "Prune=false, Delete=false", '`reconcile.dev/prune: "false"`',
        "Either one keeps the object both when its file is removed and when the Sync is deleted.")  # fmt: skip
    yield Meaning(ARGO_SYNC_OPTIONS, "Prune=confirm, Delete=confirm", "its deletion is held until `kubectl reconcile approve`",
        "If the Sync itself is deleted, the object stays, because nobody can be asked then.")  # fmt: skip
    yield Meaning(ARGO_SYNC_OPTIONS, "Force=true, also with Replace=true", '`reconcile.dev/replace: "true"`',
        "Recreated only if a changed field is immutable, not at every sync.")  # fmt: skip
    yield Meaning(ARGO_SYNC_OPTIONS, "Replace=true", _NOTED, "Nothing is too large for server-side apply.")
    yield Meaning(ARGO_SYNC_OPTIONS, "ServerSideApply=true, SkipDryRunOnMissingResource=true, PruneLast=true", "always the case",
        "Deletions come last, but don't wait until everything else is healthy.")  # fmt: skip
    yield Meaning(ARGO_SYNC_OPTIONS, "Validate=false, ServerSideApply=false, anything else", _NOTED)
    yield Meaning(ARGO_COMPARE_OPTIONS, "IgnoreExtraneous, ServerSideDiff=true, IncludeMutationWebhook=true", "always the case",
        "Objects that are kept don't count against the Sync. Other objects that are in no file any more are pruned.")  # fmt: skip
    yield Meaning(ARGO_COMPARE_OPTIONS, "anything else", _NOTED)
    yield Meaning(ARGO_IGNORE_HEALTH, "true", _NOTED, "Use `spec.health.rules` of the Sync instead.")


TABLE: Final = tuple(_rows())
"""Every value that is read, in the order of the documentation."""
