"""The law of deletions: what is gone after a sync is what its plan named and a person approved, no less and no more.

A *world* is drawn: members of a Sync and objects of others, in a namespace of their own and one that the Sync makes; some own others, a
StatefulSet has claims, and a kind of its own has resources of the Sync and of others. A *commit* is drawn: files go, fields change that can't, owners come and go, replicas are taken away, and
what somebody has deleted and a finalizer keeps is let go. The plan
is made, all that it holds is approved, and it is carried out. Then the cluster's garbage collector, its StatefulSet controller and its
namespace controller have their say, and what is gone by its uid is compared with what was named.

What the server may yet delete or keep isn't drawn: nothing here has a finalizer but the claims, which no pod uses in the end, and what is let go.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubectl_reconcile.cluster.errors import ApiError, NotFound
from kubectl_reconcile.core.objects import ObjectRef, map_at
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.engine.api import sync_requests
from kubectl_reconcile.engine.sync.session import Session
from tests.engine.shop import Shop
from tests.waiting import until

KINDS = {
    "ConfigMap": ("v1", "configmaps"),
    "Secret": ("v1", "secrets"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "StatefulSet": ("apps/v1", "statefulsets"),
}
REPLACE = {"reconcile.dev/replace": "true"}
KEEP = "example.com/keep"
PATIENCE_S = 90.0
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def path_of(kind: str, namespace: str, name: str = "", kinds: Mapping[str, tuple[str, str]] = KINDS) -> str:
    """Return the path of an object of one of *kinds*, or of its collection."""
    api_version, plural = kinds[kind]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}{f'/{name}' if name else ''}"


class World:
    """One world, and what becomes of it."""

    def __init__(self, session: Session, folder: Path, namespace: str, seed: str) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - a seed must give the same world again
        self.shop = Shop(session, folder, namespace)
        self.client, self.namespace, self.inner = session.client, namespace, f"{namespace}-in"
        self.files: dict[str, dict[str, Any]] = {}
        self.kinds = dict(KINDS)
        self.drawn: list[str] = []

    # --- how it begins -----------------------------------------------------------------------------

    async def begin(self) -> None:
        """Make the namespace, sync the members, and have others make objects of theirs."""
        await self.client.create("/api/v1/namespaces", _named("Namespace", self.namespace))
        places = [self.namespace] * 3
        if self.draw.random() < 0.4:
            self.files["inner"] = _named("Namespace", self.inner)
            places.append(self.inner)
        for at in range(self.draw.randint(2, 5)):
            self.files[f"m{at}"] = self._member(f"m{at}", self.draw.choice(places))
        if self.draw.random() < 0.4:
            self.files["kept"] = self._member("kept", self.namespace)
            self.files["kept"]["metadata"]["finalizers"] = [KEEP]
        if self.draw.random() < 0.5:
            self.files["db"] = _stateful_set(self.namespace, self.draw)
        if self.draw.random() < 0.4:
            group = f"{self.namespace}.example.com"
            self.files["kind"] = _crd(group)
            self.kinds["Widget"] = f"{group}/v1", "widgets"
            self.files["w0"] = {**_named("Widget", "w0", self.draw.choice(places)), "apiVersion": f"{group}/v1"}
        await self._sync()
        if "db" in self.files:
            await until(self._has_claims, "the claims of the StatefulSet", timeout_s=PATIENCE_S)
        if "kind" in self.files:
            await self._collector_knows("Widget")
        for at in range(self.draw.randint(1, 5)):
            await self._make(f"f{at}", self.draw.choice(places))

    def _member(self, name: str, place: str) -> dict[str, Any]:
        if self.draw.random() < 0.25:
            spec = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}},
                "storageClassName": "none",
            }
            return {**_named("PersistentVolumeClaim", name, place, REPLACE), "spec": spec}
        return {**_named("ConfigMap", name, place, REPLACE), "immutable": True, "data": {"a": "1"}}

    async def _make(self, name: str, place: str) -> None:
        """Make an object of somebody else's, most often one that others of the place own."""
        kind = self.draw.choice(["ConfigMap", "Secret", "PersistentVolumeClaim", list(self.kinds)[-1]])
        kind = "ConfigMap" if kind == "StatefulSet" else kind
        near = [each for each in await self._objects() if each["metadata"]["namespace"] == place]
        chosen = self.draw.sample(near, min(len(near), self.draw.choice([0, 1, 1, 1, 2])))
        body = {**_named(kind, name, place), "apiVersion": self.kinds[kind][0]}
        body["metadata"]["ownerReferences"] = [_reference(each) for each in chosen]
        if kind == "PersistentVolumeClaim":
            body["spec"] = self._member("x", place).get("spec") or {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": "none",
            }  # fmt: skip
        await self.client.create(path_of(kind, place, kinds=self.kinds), body, manager="somebody")

    async def _has_claims(self) -> bool:
        """Tell whether the claims of the StatefulSet are there, and owned as its policy has it."""
        spec = self.files["db"]["spec"]
        owned = spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
        found = [each for each in await self._objects() if each["metadata"]["name"].startswith("data-db-")]
        ready = [each for each in found if bool(each["metadata"].get("ownerReferences")) is owned]
        return len(ready) == spec["replicas"]

    # --- what a commit does ------------------------------------------------------------------------

    async def commit(self) -> None:
        """Change some of what the source asks for."""
        names = list(self.files)
        for name in self.draw.sample(names, self.draw.randint(1, min(3, len(names)))):
            self.drawn += [f"{what} {name}" async for what in self._changed(name)]

    async def _changed(self, name: str) -> Any:
        body = self.files[name]
        if name == "kept":
            await self._let_go(body)
            yield "let"
            return
        choices = ["drop", "drop", "replace", "own", "own"] if name.startswith("m") else ["drop"]
        choices += ["replace", "scale", "scale"] if name == "db" else ["own"] if name.startswith("w") else []
        what = self.draw.choice(choices)
        if what == "drop":
            del self.files[name]
        elif what == "scale":
            self.files[name] = {
                **body,
                "spec": {**body["spec"], "replicas": self.draw.randint(0, body["spec"]["replicas"])},
            }
        elif what == "replace":
            self.files[name] = _with_other_contents(body)
        else:
            self.files[name] = {**body, "metadata": {**body["metadata"], "ownerReferences": await self._owners(body)}}
        yield what

    async def _let_go(self, body: dict[str, Any]) -> None:
        """Have somebody delete an object that a finalizer keeps, and its manifest state that no more."""
        await self.client.delete(path_of(body["kind"], self.namespace, "kept"))
        metadata = {name: value for name, value in body["metadata"].items() if name != "finalizers"}
        self.files["kept"] = {**body, "metadata": metadata}

    async def _owners(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return owners for a member: some that are there, and some that aren't."""
        metadata = body["metadata"]
        near = [
            each for each in await self._objects()
            if each["metadata"]["namespace"] == metadata["namespace"] and each["metadata"]["name"] != metadata["name"]
        ]  # fmt: skip
        found = [_reference(each) for each in self.draw.sample(near, min(len(near), self.draw.choice([0, 1, 1, 2])))]
        if self.draw.random() < 0.4:
            nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody"}
            found.append({**nobody, "uid": f"00000000-0000-4000-8000-{self.draw.randrange(10**12):012d}"})
        return found

    # --- what is compared --------------------------------------------------------------------------

    async def judge(self) -> str:
        """Carry out the commit, all of it approved; return how what is gone differs from what was named, nothing where it doesn't."""
        self._write()
        before = await self._uids()
        held = await self.shop.plan()
        if held.holds:
            await sync_requests.approve(self.client, (await self.shop.target()).sync, held.approval)
        made = await self.shop.plan()
        named = set(self._named(made, before))
        if made.holds:
            return f"still held once it was approved: {made.holds}"
        if unheld := [
            each
            for each in self._named(held, before)
            if before[each].kind == "PersistentVolumeClaim" and not self._is_held(held, before[each])
        ]:
            return f"a claim would have gone unasked: {[str(before[each]) for each in unheld]}"
        await self.shop.sync()
        try:
            await until(lambda: self._are_gone(named), "what was named is gone", timeout_s=PATIENCE_S)
        except AssertionError:
            left = named & (await self._uids()).keys()
            return f"named, and still there: {sorted(str(before[uid]) for uid in left)}"
        await self._collector_has_looked()
        gone = before.keys() - (await self._uids()).keys()
        return "" if gone == named else f"gone, and never named: {sorted(str(before[uid]) for uid in gone - named)}"

    @staticmethod
    def _named(made: Plan, before: Mapping[str, ObjectRef]) -> Iterator[str]:
        for change in made.changes:
            uid = map_at(change.before or {}, "metadata").get("uid")
            if _ends(change) and uid in before:
                yield str(uid)

    @staticmethod
    def _is_held(made: Plan, ref: ObjectRef) -> bool:
        return any(ref in (*hold.refs, *hold.along) for hold in made.holds)

    async def _are_gone(self, uids: set[str]) -> bool:
        return not uids & (await self._uids()).keys()

    async def _collector_has_looked(self) -> None:
        """Wait until the garbage collector has removed something that came last: what it should remove of all else, it has."""
        for at in range(2):
            await self._collected("ConfigMap", f"last-{at}")

    async def _collector_knows(self, kind: str) -> None:
        """Wait until the garbage collector looks at a kind that is new: before that, what its objects own would stay for ever."""
        await self._collected(kind, "known")

    async def _collected(self, kind: str, name: str) -> None:
        """Make an object whose owner isn't there, and wait until the garbage collector has removed it."""
        body = {**_named(kind, name, self.namespace), "apiVersion": self.kinds[kind][0]}
        nobody = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "nobody",
            "uid": "11111111-0000-4000-8000-000000000000",
        }
        body["metadata"]["ownerReferences"] = [nobody]
        made = await self.client.create(path_of(kind, self.namespace, kinds=self.kinds), body, manager="somebody")
        uid = made["metadata"]["uid"]
        await until(lambda: self._are_gone({uid}), f"{kind} {name} is collected", timeout_s=PATIENCE_S)

    # --- the cluster -------------------------------------------------------------------------------

    async def _objects(self) -> list[dict[str, Any]]:
        lists = await asyncio.gather(
            *(self._list(kind, place) for kind in self.kinds for place in (self.namespace, self.inner))
        )
        return [each for some in lists for each in some]

    async def _list(self, kind: str, place: str) -> list[dict[str, Any]]:
        """Return the objects of a kind; none where the kind itself has gone."""
        named = {"apiVersion": self.kinds[kind][0], "kind": kind}
        try:
            items, _ = await self.client.list(path_of(kind, place, kinds=self.kinds))
        except NotFound:
            return []
        return [{**each, **named} for each in items if each["metadata"]["name"] != "kube-root-ca.crt"]

    async def _uids(self) -> dict[str, ObjectRef]:
        """Return what is there; a claim that a pod still uses is on its way."""
        return {each["metadata"]["uid"]: ObjectRef.of(each) for each in await self._objects()}

    def _write(self) -> None:
        self.shop.folder.mkdir(parents=True, exist_ok=True)
        for path in self.shop.folder.iterdir():
            path.unlink()
        stays = {**_named("ConfigMap", "stays", self.namespace), "data": {}}
        self.shop.write({f"{name}.yaml": body for name, body in {**self.files, "stays": stays}.items()})

    async def _sync(self) -> None:
        self._write()
        done = await self.shop.sync()
        faults = [f"{each.change.ref}: {each.error}" for each in done.results if each.error]
        if faults:
            raise AssertionError(f"the world could not be made: {faults}")

    async def end(self) -> None:
        """Remove what is left."""
        for kind in ("ConfigMap", "PersistentVolumeClaim"):
            with suppress(ApiError):
                await self.client.patch(path_of(kind, self.namespace, "kept"), {"metadata": {"finalizers": None}})
        for name in (self.namespace, self.inner):
            with suppress(ApiError):
                await self.client.delete(f"/api/v1/namespaces/{name}")
        if "Widget" in self.kinds:
            with suppress(ApiError):
                await self.client.delete(f"{CRDS}/widgets.{self.namespace}.example.com")


def _ends(change: Change) -> bool:
    """Tell whether a plan says that an object ends, now or along with another."""
    return change.op in {Op.DELETE, Op.REPLACE} and not change.gate.blocked


def _named(kind: str, name: str, namespace: str = "", annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= {"annotations": dict(annotations)} if annotations else {}
    return {"apiVersion": KINDS.get(kind, ("v1", ""))[0], "kind": kind, "metadata": metadata}


def _reference(owner: Mapping[str, Any]) -> dict[str, Any]:
    metadata = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}


def _crd(group: str) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {
        **_named("CustomResourceDefinition", f"widgets.{group}"),
        "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [version],
        },
    }


def _stateful_set(namespace: str, draw: random.Random) -> dict[str, Any]:
    container = {"name": "a", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    policy = {"whenDeleted": draw.choice(["Delete", "Retain"]), "whenScaled": draw.choice(["Delete", "Retain"])}
    return {
        **_named("StatefulSet", "db", namespace, REPLACE),
        "spec": {
            "serviceName": "db",
            "replicas": draw.randint(1, 3),
            "podManagementPolicy": "Parallel",
            "persistentVolumeClaimRetentionPolicy": policy,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }


def _with_other_contents(body: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest that differs in what can't change."""
    if body["kind"] == "ConfigMap":
        return {**body, "data": {"a": "2"}}
    if body["kind"] == "PersistentVolumeClaim":
        return {**body, "spec": {**body["spec"], "storageClassName": "another"}}
    return {**body, "spec": {**body["spec"], "serviceName": "another"}}


async def one(session: Session, folder: Path, namespace: str, seed: str) -> tuple[str, list[str], float]:
    """Return what is wrong with one world, what was done to it, and how long that took."""
    world, started_s = World(session, folder, namespace, seed), time.monotonic()
    try:
        await world.begin()
        await world.commit()
        return await world.judge(), world.drawn, time.monotonic() - started_s
    except (ApiError, AssertionError) as error:
        return f"{type(error).__name__}: {error}", world.drawn, time.monotonic() - started_s
    finally:
        await world.end()


async def many(session: Session, folder: Path, prefix: str, seed: str, number: int, at_once: int) -> list[str]:
    """Return what is wrong with *number* worlds, one sentence each; *prefix* begins the names of their namespaces."""
    slots, faults, did = asyncio.Semaphore(at_once), list[str](), Counter[str]()

    async def ask(at: int) -> None:
        async with slots:
            wrong, drawn, _ = await one(session, folder / str(at), f"{prefix}-{at}", f"{seed}/{at}")
        did.update(what.split()[0] for what in drawn)
        if wrong:
            faults.append(f"{seed}/{at} ({', '.join(drawn)}): {wrong}")

    await asyncio.gather(*map(ask, range(number)))
    print(f"{number} worlds: {dict(did)}")  # noqa: T201 - it tells what was tried
    return faults
