"""Delete and recreate: when a server's refusal calls for it, and how the old object is restored.

A refusal counts only if every fault that the server names is that a field can't change. One fault of
another kind, a bad value or an unknown field, means that the new object is wrong, and then
deleting the old one would only make things worse.

Pure: words and copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kubectl_reconcile.core.annotations import REPLACE
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, condition_of, text_at
from kubectl_reconcile.core.planning.kinds import CLAIM
from kubectl_reconcile.core.planning.plan import Change
from kubectl_reconcile.core.ssa.values import amount_of

_REASONS = frozenset({"FieldValueInvalid", "FieldValueForbidden"})
_IMMUTABLE = re.compile(
    r"\bimmutable\b|may not change once set|may not be changed|may not change fields|cannot change roleRef"
    r"|field can not be less than previous value|field can not be less than status\.capacity|cannot be changed|updates? to .*\bforbidden\b|is not allowed to change",
    re.IGNORECASE,
)
_SERVER_WRITES = ("uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "deletionTimestamp",
                  "deletionGracePeriodSeconds")  # fmt: skip
_JOB = GroupKind("batch", "Job")
_JOB_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")


class RefusalCause(Protocol):
    """One cause of a refusal, as servers name it."""

    @property
    def reason(self) -> str:
        """One word for programs."""

    @property
    def message(self) -> str:
        """A sentence for people."""


def is_immutable(causes: Iterable[RefusalCause]) -> bool:
    """Tell whether all that a server has against an update is that fields can't change."""
    found = list(causes)
    return bool(found) and all(
        cause.reason in _REASONS and _IMMUTABLE.search(cause.message) is not None for cause in found
    )


_LOSSES: Mapping[GroupKind, str] = {
    GroupKind(
        "", "PersistentVolumeClaim"
    ): "the data of its volume is lost, unless the volume's reclaim policy is Retain",
    GroupKind("", "PersistentVolume"): "its data may be lost, depending on its reclaim policy",
    GroupKind("", "Namespace"): "everything in it is deleted, too",
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): "all custom resources of its kind are deleted, too",
}


def loss_of(manifest: Manifest) -> str:
    """Return what is lost when an object is deleted and recreated; empty where that is nothing but time."""
    kind = GroupVersionKind.of(manifest).group_kind
    if kind == GroupKind("apps", "StatefulSet") and (manifest.get("spec") or {}).get("volumeClaimTemplates"):
        policy = (manifest["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get("whenDeleted")
        claims = "its claims and their data are deleted, too" if policy == "Delete" else "its claims stay"
        return f"all its pods are deleted at once, and {claims}"
    return _LOSSES.get(kind, "")


def advice_of(manifest: Manifest) -> str:
    """Return what to do about an object whose changed field can't be changed in place."""
    if loss := loss_of(manifest):
        return f'undo the change in the source, or move its data first; with {REPLACE}: "true" it is deleted and recreated: {loss}'
    return f'annotate it with {REPLACE}: "true" to delete and recreate it'


def advice_on(change: Change) -> str:
    """Return what to do about a change that can't be made in place; a claim that was grown in the cluster needn't, and can't, shrink again."""
    if change.ref.group_kind == CLAIM and change.before is not None:
        live = text_at(change.before, "spec", "resources", "requests", "storage")
        there, wanted = (
            amount_of(text_at(each, "spec", "resources", "requests", "storage"))
            for each in (change.before, change.intent or {})
        )
        is_smaller = there is not None and wanted is not None and wanted < there
        if is_smaller and all(each.path[:3] == _REQUESTS for each in change.fields):
            return f"a claim can't shrink, and this one has {live} in the cluster: write {live} into the source, which kubectl reconcile accept does"
    return advice_of(change.before or change.intent or {})


_REQUESTS = ("f:spec", "f:resources", "f:requests")


def as_restored(before: Manifest) -> dict[str, Any]:
    """Return a deleted object as it can be created once more.

    A Job that had ended comes back suspended: its record returns, its work isn't done twice.
    """
    metadata = {name: value for name, value in before["metadata"].items() if name not in _SERVER_WRITES}
    body = {**{name: value for name, value in before.items() if name != "status"}, "metadata": metadata}
    return _job(body, before) if GroupVersionKind.of(before).group_kind == _JOB else body


def _job(body: dict[str, Any], before: Manifest) -> dict[str, Any]:
    spec = dict(body["spec"])
    if not spec.get("manualSelector"):  # the server chose the selector by the old uid, and will choose another
        spec.pop("selector", None)
        spec["template"] = _without_labels(spec["template"])
    ended = any((condition_of(before, type_) or {}).get("status") == "True" for type_ in ("Complete", "Failed"))
    if ended:
        spec["suspend"] = True
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "metadata": {**metadata, "labels": _kept(metadata.get("labels"))}, "spec": spec}


def _without_labels(template: Manifest) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    return {**template, "metadata": {**metadata, "labels": _kept(metadata.get("labels"))}}


def _kept(labels: Manifest | None) -> dict[str, Any]:
    return {name: value for name, value in (labels or {}).items() if name not in _JOB_LABELS}
