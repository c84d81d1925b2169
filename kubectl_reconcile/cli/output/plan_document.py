"""A plan as plain JSON, for programs: versioned, unchanged objects counted and not listed.

Structural deltas take a library that is slow to import: import this page only where a document is asked for.

Pure: plans in, trees out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deepdiff import DeepDiff

from kubectl_reconcile.cli.output import findings
from kubectl_reconcile.core.objects import API_GROUP, Manifest, ObjectRef
from kubectl_reconcile.core.planning.outlook.rollouts import rollout_of
from kubectl_reconcile.core.planning.plan import Change, Op, Plan, fingerprint
from kubectl_reconcile.core.rendering.uses import names_at
from kubectl_reconcile.core.ssa.csa_upgrade import taken_from
from kubectl_reconcile.core.ssa.merge import FieldChange, FieldConflict
from kubectl_reconcile.views.changes import PlanView, counts_of, in_order, without_noise


def document(plan: Plan, view: PlanView) -> dict[str, Any]:
    """Return a plan as plain JSON, versioned. Unchanged objects are counted, not listed."""
    return {
        "apiVersion": f"{API_GROUP}/v1alpha1",
        "kind": "Plan",
        "sync": None if plan.sync is None else {"namespace": plan.sync.namespace, "name": plan.sync.name},
        "revision": plan.revision,
        "hash": plan.hash,
        "confirmed": plan.confirmed,
        "partial": plan.partial,
        "approval": plan.approval,
        "summary": {str(what): count for what, count in sorted(counts_of(plan).items())},
        "changes": [_change(view.of(change), view, fingerprint(change)) for change, _ in in_order(plan)],
        "problems": [
            {
                "path": one.path,
                "line": one.line,
                "severity": one.severity.value,
                "message": one.message,
                "hint": one.hint,
            }
            for one in plan.problems
        ],
        "observed": [
            {
                "object": _ref(ref),
                "facts": seen.facts,
                "error": seen.error,
                **({"asOf": seen.as_of} if seen.as_of else {}),
            }
            for ref, seen in sorted(plan.outcomes.observed.items())
        ],
        "unhealthy": [
            {"object": _ref(one.ref), "health": one.health.status.value, "message": one.health.message}
            for one in plan.unhealthy
        ],
        "holds": [
            {
                "reason": hold.reason,
                "message": hold.message,
                "objects": [_ref(ref) for ref in hold.refs],
                "along": [_ref(ref) for ref in hold.along],
                **({"asked": [_ref(ref) for ref in hold.asked]} if hold.asked else {}),
            }
            for hold in plan.holds
        ],
        **({"scan": findings.document(plan, view.scan)} if view.scan else {}),
    }


def _change(change: Change, view: PlanView, digest: str) -> dict[str, Any]:
    full: dict[str, Any] = {
        "op": change.op.value,
        "object": _ref(change.ref),
        "fingerprint": digest,
        "apiVersion": change.kind.gvk.api_version if change.kind else None,
        "owner": None if change.provenance.owner is None else _ref(change.provenance.owner),
        "module": change.module,
        "file": change.provenance.file,
        "line": max(change.provenance.line, 0),
        "wave": change.gate.wave,
        "hook": change.gate.hook,
        "fields": [_field(field, change) for field in change.fields],
        "variables": sorted({name for use in change.provenance.uses for name in use.names}),
        "conflicts": [_conflict(conflict) for conflict in change.conflicts],
        "takenOverFrom": list(taken_from(change.before or {"metadata": {}}, change.takeover)),
        "before": None if change.before is None else _tidy(change.before, view),
        "after": None if change.after is None else _tidy(change.after, view),
        "delta": _delta(change, view),
        "rollout": rollout_of(change),
        "unsure": change.unsure,
        "cascade": change.gate.cascade,
        "waits": change.gate.waits,
        "action": _action(change),
        "held": change.gate.held,
        "belongsTo": change.provenance.foreign,
        "blocked": change.gate.blocked,
        "denied": change.gate.denied,
    }
    kept = {"op", "object", "before", "after"}
    return {key: value for key, value in full.items() if key in kept or value not in (None, "", 0, False, [])}


def _delta(change: Change, view: PlanView) -> dict[str, Any] | None:
    """Return what is structurally different between before and after, as DeepDiff spells it."""
    if change.before is None or change.after is None or change.op is Op.UNCHANGED:
        return None
    before, after = without_noise(change.before, view), without_noise(change.after, view)
    found: dict[str, Any] = json.loads(DeepDiff(before, after, verbose_level=2).to_json())
    return found or None


def _action(change: Change) -> dict[str, Any] | None:
    action = change.action
    if action is None:
        return None
    return {
        "key": action.key,
        "verb": action.verb,
        "summary": action.summary,
        "parameters": action.parameters,
        "precondition": action.precondition,
        "needsApproval": action.needs_approval,
    }


def _tidy(manifest: Manifest, view: PlanView) -> Manifest:
    if view.show_managed_fields or not isinstance(manifest.get("metadata"), Mapping):
        return manifest
    return {
        **manifest,
        "metadata": {key: value for key, value in manifest["metadata"].items() if key != "managedFields"},
    }


def _ref(ref: ObjectRef) -> dict[str, str]:
    return {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _field(field: FieldChange, change: Change) -> dict[str, Any]:
    tree = change.after if change.after is not None else change.intent
    names = names_at(change.provenance.uses, field.path, tree)
    full = {
        **({"variables": list(names)} if names else {}),
        "path": str(field.path),
        "op": str(field.op),
        "reason": field.reason.value,
        "before": field.before,
        "after": field.after,
        "manager": field.manager,
        "time": field.time,
        "commit": field.commit,
        "author": field.author,
        "origin": field.origin,
    }
    return {key: value for key, value in full.items() if value not in ("", None)}


def _conflict(conflict: FieldConflict) -> dict[str, Any]:
    return {"path": str(conflict.path), "manager": conflict.manager, "live": conflict.live, "desired": conflict.desired}
