"""How fast a plan is built where (nearly) nothing changed. Needs no cluster: `python benchmarks/plan_speed.py`.

Ten thousand objects, as a daemon has them between two passes: files parsed, live objects in its cache, verdicts of
the pass before at hand. Prints one line per figure with its budget, and exits 1 if one is exceeded.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import FIELD_MANAGER, GroupKind, GroupVersionKind, ObjectRef, labels_of
from kubectl_reconcile.core.planning.inputs import Inputs, Memory
from kubectl_reconcile.core.planning.kinds import kinds_of_crd
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.planning.planner import build, build_on
from kubectl_reconcile.core.resources.applyset import applyset_id, member
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.merge import three_way

COUNT = 10_000
CHANGED = 10
SYNC = Sync(name="shop", namespace="shop")
SET_ID = applyset_id(SYNC.ref)
TEXT = {"type": "string"}
SPEC = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}, "owner": TEXT, "options": {
    "type": "object", "additionalProperties": TEXT}}}  # fmt: skip
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "caches.bench.example.com"},
    "spec": {
        "group": "bench.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Cache", "plural": "caches"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}
KINDS = kinds_of_crd(CRD)
(KIND,) = KINDS.values()


class Held:
    """A live object as the cluster's cache holds it: bytes, parsed when somebody asks."""

    __slots__ = ("labels", "raw", "ref", "resource_version", "uid", "version")

    def __init__(self, body: dict[str, Any]) -> None:
        """Take the object as it came."""
        self.ref, self.uid = ObjectRef.of(body), body["metadata"]["uid"]
        self.labels = labels_of(body)
        self.resource_version, self.raw = body["metadata"]["resourceVersion"], orjson.dumps(body)
        self.version = f"{self.uid}/{self.resource_version}"

    def manifest(self) -> dict[str, Any]:
        """Return the object, parsed."""
        found: dict[str, Any] = orjson.loads(self.raw)
        return found


class View:
    """A snapshot of such objects."""

    def __init__(self, bodies: list[dict[str, Any]]) -> None:
        """Index what a planner asks for."""
        self._by_ref = {(held := Held(body)).ref: held for body in bodies}
        self._members = tuple(self._by_ref[ObjectRef.of(body)] for body in bodies if labels_of(body))

    def stored(self, ref: ObjectRef) -> Held | None:
        """Return the live object, or None."""
        return self._by_ref.get(ref)

    def owned_by(self, _uid: str) -> tuple[Held, ...]:
        """Return nothing: there are no children here."""
        return ()

    def labelled(self, _key: str, _value: str) -> tuple[Held, ...]:
        """Return the members."""
        return self._members

    def of_kind(self, _kind: GroupKind, _namespace: str) -> tuple[Held, ...]:
        """Return nothing: no module reads here."""
        return ()

    def moment(self, _kinds: Iterable[GroupKind]) -> View:
        """Return itself: it never changes."""
        return self

    def changed_since(self, moment: object) -> frozenset[ObjectRef] | None:
        """Return that nothing has changed in it."""
        return frozenset() if moment is self else None


def desired(number: int, size: int = 5) -> Located:
    """Return one manifest, from a file of its own."""
    spec = {"size": size, "owner": "bench", "options": {f"key{at}": "value" for at in range(8)}}
    metadata = {"name": f"cache-{number}", "namespace": "shop", "labels": {"app": "bench", "tier": "gold"}}
    manifest = {"apiVersion": "bench.example.com/v1", "kind": "Cache", "metadata": metadata, "spec": spec}
    return Located.of(manifest, f"caches/{number}.yaml", 1)


def live(located: Located) -> dict[str, Any]:
    """Return the object as the server holds it after a sync."""
    marked = member(located.manifest, set_id=SET_ID, source=located.path)
    merge = three_way(desired=marked, live=None, schema=KIND.schema)
    entry = {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "apiVersion": "bench.example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": merge.owned.to_wire(),
    }
    facts = {"uid": f"uid-{located.path}", "resourceVersion": "7", "generation": 1, "managedFields": [entry]}
    return {**merge.merged, "metadata": {**merge.merged["metadata"], **facts}}


def inputs(manifests: list[Located], view: View, verdicts: Any) -> Inputs:
    """Return everything known."""
    files = {each.path: f"blob of {each.path} {each.manifest['spec']['size']}" for each in manifests}
    revision = Revision("c" * 40, "2026-11-20T12:00:00Z", files)
    kinds: dict[GroupVersionKind, Any] = dict(KINDS)
    return Inputs(SYNC, revision, manifests, view, kinds, "2026-11-20T12:00:00Z", memory=Memory(verdicts))


def best_s(work: Callable[[], Plan], rounds: int = 5) -> tuple[float, Plan]:
    """Return the shortest of several rounds, in seconds of this processor, and the plan: other programs don't count."""
    times = []
    for _ in range(rounds):
        gc.collect()
        began = time.process_time()
        made = work()
        times.append(time.process_time() - began)
    return min(times), made


def main() -> int:
    """Measure, and tell whether all budgets were kept."""
    manifests = [desired(number) for number in range(COUNT)]
    view = View([live(each) for each in manifests])
    kept = True

    def told(what: str, taken_s: float, budget_s: float) -> None:
        nonlocal kept
        kept = kept and taken_s <= budget_s
        print(f"{what:<58} {taken_s:6.3f} s   (budget {budget_s} s)")

    cold_s, first = best_s(lambda: build(inputs(manifests, view, {})), rounds=2)
    told(f"{COUNT} unchanged objects, no verdicts", cold_s, 3.0)
    warm_s, again = best_s(lambda: build(inputs(manifests, view, first.verdicts)))
    told(f"{COUNT} unchanged objects, warm verdicts", warm_s, 1.0)
    kept = kept and again.counts() == {Op.UNCHANGED: COUNT}
    changed = [desired(number, size=6) if number < CHANGED else each for number, each in enumerate(manifests)]
    some_s, some = best_s(lambda: build(inputs(changed, view, first.verdicts)))
    told(f"{COUNT} objects of which {CHANGED} changed, warm verdicts", some_s, 1.1)
    kept = kept and some.counts() == {Op.UNCHANGED: COUNT - CHANGED, Op.UPDATE: CHANGED}
    _, footing = build_on(inputs(manifests, view, first.verdicts), None)
    known = inputs(changed, view, first.verdicts)
    by_difference_s, same = best_s(lambda: build_on(known, footing)[0])
    told(f"{COUNT} objects of which {CHANGED} changed, by difference", by_difference_s, 0.15)
    kept = kept and same == some
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
