"""What comes after the next sync: further passes, simulated until nothing is left to do.

Each pass is planned as any other, on the cluster as it would be after the one before: objects are as they were written,
workloads have rolled out and their pods are ready, Jobs are complete, actions had the effect that their module predicts. Actions that wait for
approval, and what follows them, stay undone, and so does all that follows for a CR one of whose pods is ready and wasn't heard. It is a guess about everybody else's behaviour, and says so.

Pure: a plan and its inputs in, plans out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress
from kubectl_reconcile.core.module.adoption import with_owner_uid
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef, annotations_of, map_at
from kubectl_reconcile.core.planning.children import ADD_FINALIZER, ENGINE_VERBS
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.module_call import BY_DAEMON, owned_view
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.planning.snapshot import Moment, Objects, Snapshot, Stored
from kubectl_reconcile.core.ssa.merge import three_way

_MOST = 120
"""Passes that are looked ahead; an etcd without volumes that grows from two members to seven and then goes on to another minor takes some seventy."""


def passes(inputs: Inputs, plan: Plan, build: Callable[[Inputs], Plan]) -> Iterator[Plan]:
    """Yield the plans of the passes that follow *plan*, which was made of *inputs*."""
    for _ in range(_MOST):
        if not (any(map(_happens, plan.changes)) or plan.outcomes.statuses):
            return
        inputs = after(inputs, plan)
        plan = build(inputs)
        if any(change.writes for change in plan.changes):
            yield plan


def after(inputs: Inputs, plan: Plan) -> Inputs:
    """Return what would be known once *plan* has been carried out and everything has settled."""
    future = _Future(inputs)
    for change in plan.changes:
        if _happens(change) or (change.gate.cascade and not change.gate.held):
            future.take(change)
    for status in plan.outcomes.statuses:
        if (live := future.get(status.ref)) is not None:
            future.put(status.ref, {**live, "status": status.after["status"]})
    future.settle()
    written = Objects(each for each in future.written.values() if each)
    ahead = Ahead(inputs.live, written, frozenset(future.written))
    foreseen = dict(_foreseen(inputs, ahead, future.observed))
    return replace(inputs, live=ahead).observing(foreseen).remembering(verdicts={})


def _happens(change: Change) -> bool:
    """Tell whether somebody makes this change next: whoever carries out the plan, or the daemon, which sees more."""
    return change.writes or (change.op is not Op.UNCHANGED and change.gate.waits == BY_DAEMON)


def _foreseen(
    inputs: Inputs, ahead: Ahead, observed: Mapping[ObjectRef, Observation]
) -> Iterator[tuple[ObjectRef, Observation]]:
    """Yield what would be observed of each CR once its children run."""
    for ref, seen in observed.items():
        stored = ahead.stored(ref)
        module = inputs.modules.by_kind.get(GroupVersionKind.of(stored.manifest())) if stored else None
        if module is None or stored is None or module.foresee is None or seen.error:
            yield ref, seen
            continue
        cr = stored.manifest()
        yield ref, Observation(module.foresee(cr, owned_view(ahead, module, cr), seen.facts))


def _as_far_as_heard(seen: Observation) -> Observation:
    """Return what to go on from: nothing where a pod that should have answered wasn't heard, since a guess at what it would have said shows steps that nobody takes."""
    return Observation(error=seen.unheard) if seen.unheard else seen


class Ahead(Struct, frozen=True):
    """A view with some objects *written* or *gone*; *touched* are all of these."""

    below: Snapshot
    written: Objects
    touched: frozenset[ObjectRef]

    def stored(self, ref: ObjectRef) -> Stored | None:
        """Return the object, or None."""
        return self.written.stored(ref) if ref in self.touched else self.below.stored(ref)

    def owned_by(self, uid: str) -> Sequence[Stored]:
        """Return the objects whose controller has this uid."""
        return (*self._untouched(self.below.owned_by(uid)), *self.written.owned_by(uid))

    def labelled(self, key: str, value: str) -> Sequence[Stored]:
        """Return the objects that carry a label with this value."""
        return (*self._untouched(self.below.labelled(key, value)), *self.written.labelled(key, value))

    def of_kind(self, kind: GroupKind, namespace: str) -> Sequence[Stored]:
        """Return the objects of *kind* in *namespace*."""
        return (*self._untouched(self.below.of_kind(kind, namespace)), *self.written.of_kind(kind, namespace))

    def moment(self, kinds: Iterable[GroupKind]) -> Moment | None:  # noqa: ARG002 - of none
        """Return nothing: a guess is compared with nothing."""
        return None

    def changed_since(self, moment: Moment) -> Collection[ObjectRef] | None:  # noqa: ARG002 - of none
        """Return nothing: anything may be as it wasn't."""
        return None

    def _untouched(self, found: Sequence[Stored]) -> Iterator[Stored]:
        return (each for each in found if each.ref not in self.touched)


class _Future:
    """The objects that a plan changes, as they would be; None for those that would be gone."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.written: dict[ObjectRef, Manifest | None] = {}
        self.observed = {ref: _as_far_as_heard(seen) for ref, seen in inputs.modules.observed.items()}

    def get(self, ref: ObjectRef) -> Manifest | None:
        if ref in self.written:
            return self.written[ref]
        stored = self._inputs.live.stored(ref)
        return stored.manifest() if stored else None

    def put(self, ref: ObjectRef, manifest: Manifest | None) -> None:
        self.written[ref] = manifest

    def take(self, change: Change) -> None:
        """Carry out one change."""
        if change.op is Op.DELETE:
            self.put(change.ref, None)
        elif change.op is Op.ACT:
            self._act(change)
        elif change.kind is not None and change.intent is not None:
            self.put(change.ref, self._stored(change))

    def _stored(self, change: Change) -> Manifest:
        """Return the object as the server would hold it."""
        owner = self.get(change.provenance.owner) if change.provenance.owner else None
        body = with_owner_uid(change.intent or {}, owner["metadata"]["uid"]) if owner else change.intent or {}
        live = _handed_over(change) if change.op is not Op.REPLACE else None
        schema = change.kind.schema if change.kind else None
        if schema is None:
            return body
        merge = three_way(desired=body, live=live, schema=schema, manager=change.provenance.manager)
        known: Mapping[str, Any] = (live or {}).get("metadata") or {}
        entry = {
            "manager": change.provenance.manager,
            "operation": "Apply",
            "apiVersion": body["apiVersion"],
            "fieldsType": "FieldsV1",
            "fieldsV1": merge.owned.to_wire(),
        }
        others = [each for each in known.get("managedFields") or () if each.get("manager") != change.provenance.manager]
        metadata = {
            **merge.merged["metadata"],
            "uid": known.get("uid") or f"planned {change.ref}",
            "resourceVersion": f"{known.get('resourceVersion', '')}+",
            "generation": known.get("generation", 0) + 1,
            "creationTimestamp": known.get("creationTimestamp") or self._inputs.now,
            "managedFields": [*others, entry],
        }
        return {**merge.merged, "metadata": metadata}

    def _act(self, change: Change) -> None:
        action, owner = change.action, change.provenance.owner
        cr = self.get(owner) if owner else None
        if action is None or owner is None or cr is None or change.kind is None:
            return
        module = self._inputs.modules.by_kind[change.kind.gvk]
        metadata = dict(cr["metadata"])
        if action.verb in ENGINE_VERBS:
            others = [each for each in metadata.get("finalizers") or () if each != module.finalizer]
            metadata["finalizers"] = [*others, module.finalizer] if action.verb == ADD_FINALIZER else others
        else:
            journal = ActionJournal.of(cr).ended(action, self._inputs.now, ActionProgress.DONE)
            metadata["annotations"] = {**annotations_of(cr), ACTIONS: journal.text()}
            seen = self.observed.get(owner, Observation())
            if module.predict is not None and not seen.error:
                self.observed[owner] = Observation(module.predict(cr, seen.facts, action))
        self.put(owner, {**cr, "metadata": metadata})

    def settle(self) -> None:
        """Let other controllers do their work: workloads roll out, pods become ready, Jobs complete."""
        for ref, manifest in list(self.written.items()):
            if manifest is None:
                self._release_claims(ref)
            elif ref.kind in {"Deployment", "StatefulSet"} and ref.group == "apps":
                self.put(ref, _rolled_out(manifest))
                for pod in _pods_of(manifest):
                    self.put(ObjectRef.of(pod), pod)
            elif ref.kind == "Pod" and not ref.group:
                self.put(ref, {**manifest, "status": _READY})
            elif ref.kind == "Job" and ref.group == "batch" and not manifest["spec"].get("suspend"):
                self.put(ref, {**manifest, "status": _COMPLETE})

    def _release_claims(self, ref: ObjectRef) -> None:
        """Let the volume claims go that were deleted, and that only this pod has kept."""
        pod = self._inputs.live.stored(ref) if ref.kind == "Pod" and not ref.group else None
        volumes = (pod.manifest().get("spec") or {}).get("volumes") or () if pod else ()
        for name in (map_at(each, "persistentVolumeClaim").get("claimName") for each in volumes):
            claim = ObjectRef("", "PersistentVolumeClaim", ref.namespace, str(name))
            metadata = (self.get(claim) or {}).get("metadata") or {}
            if metadata.get("deletionTimestamp") and set(metadata.get("finalizers") or ()) <= {_IN_USE}:
                self.put(claim, None)


def _handed_over(change: Change) -> Manifest | None:
    """Return what a change finds, once what other tools owned of it is handed over."""
    if change.before is None or not change.takeover:
        return change.before
    metadata = {**change.before["metadata"], "managedFields": change.takeover[0]["value"]}
    return {**change.before, "metadata": metadata}


_IN_USE = "kubernetes.io/pvc-protection"
_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_COMPLETE = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}


def _rolled_out(workload: Manifest) -> Manifest:
    replicas = workload["spec"].get("replicas", 1)
    counts = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "currentReplicas")
    status = {
        **dict.fromkeys(counts, replicas),
        "observedGeneration": workload["metadata"].get("generation"),
        "currentRevision": "planned",
        "updateRevision": "planned",
        "conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    }
    return {**workload, "status": status}


def _pods_of(workload: Manifest) -> Iterator[Manifest]:
    """Yield the pods that a workload would have; their names are guesses."""
    metadata, template = workload["metadata"], workload["spec"].get("template") or {}
    for number in range(workload["spec"].get("replicas", 1)):
        name = f"{metadata['name']}-{number}"
        labels = (template.get("metadata") or {}).get("labels") or {}
        place = {"name": name, "labels": labels, "uid": f"planned {name}", "resourceVersion": "+"}
        if metadata.get("namespace"):
            place["namespace"] = metadata["namespace"]
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": place,
            "spec": template.get("spec") or {},
            "status": _READY,
        }
