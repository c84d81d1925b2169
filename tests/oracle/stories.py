"""Random stories: what several managers did to one object, and what we might ask for next."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from random import Random
from typing import Any

from kubectl_reconcile.cluster.client import ApiError, Client, Conflict
from kubectl_reconcile.core.objects import FIELD_MANAGER as US
from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, IgnoreRule
from kubectl_reconcile.core.ssa.typed import fields_of
from oracle.builtins import METADATA
from oracle.judge import SERVERS_OWN, Answer, Step, Subject, ask, ask_create, tell
from oracle.shapes import Shape

APPLIERS = ("m1", "m2", "kustomize-controller")
WRITERS = ("w1", "w2", "kubectl-edit")
CLIENT_SIDE = ("kubectl-client-side-apply", "kubectl-create", "helm")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Story:
    """One object, growing by steps; *last* is what we applied last, None if we never did."""

    def __init__(self, client: Client, subject: Subject, shape: Shape, name: str, rng: Random) -> None:
        self.client, self.subject, self.shape, self.name, self.rng = client, subject, shape, name, rng
        self.steps: list[Step] = []
        self.last: dict[str, Any] | None = None
        self.seed = self.fresh()

    def fresh(self) -> dict[str, Any]:
        return self._named(self.subject.manifest(self.name, self.shape.make(self.rng), METADATA.make(self.rng)))

    def _named(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Give a CRD the names that its own name demands; other kinds stay as they are."""
        names = (manifest.get("spec") or {}).get("names")
        if self.subject.kind != "CustomResourceDefinition" or not isinstance(names, dict):
            return manifest
        plural = self.name.partition(".")[0]
        right = {"plural": plural, "kind": plural.capitalize()}
        if "singular" in names:
            right["singular"] = plural.removesuffix("s")
        return {**manifest, "spec": {**manifest["spec"], "names": {**names, **right}}}

    def varied(self, manifest: Mapping[str, Any], rate: float) -> dict[str, Any]:
        body = {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind", "metadata")}
        metadata = {name: value for name, value in manifest["metadata"].items() if name in METADATA.fields}
        return self._named(
            self.subject.manifest(
                self.name, self.shape.vary(self.rng, body, rate), METADATA.vary(self.rng, metadata, rate)
            )
        )

    async def do(self, verb: str, manager: str, body: dict[str, Any]) -> bool:
        if (
            self.subject.versions
            and verb in {"apply", "force", "create", "update", "patch"}
            and self.rng.random() < 0.3
        ):
            body = {**body, "apiVersion": self.rng.choice(self.subject.versions)}
        step = Step(verb, manager, body)
        done = await tell(self.client, self.subject, self.name, step)
        if done:
            self.steps.append(step)
            if manager == US:
                self.last = body
        return done

    async def live(self) -> dict[str, Any]:
        return await self.client.get(f"{self.subject.path}/{self.name}")

    async def begin(self) -> bool:
        """Create the object, somehow."""
        for _ in range(4):
            way = self.rng.random()
            if way < 0.45:
                done = await self.do("apply", US, self.seed)
            elif way < 0.6:
                done = await self.do("apply", self.rng.choice(APPLIERS), self.seed)
            elif way < 0.8:
                done = await self.do("create", self.rng.choice((*WRITERS, *CLIENT_SIDE)), self.seed)
            else:
                metadata = self.seed["metadata"]
                annotations = {**(metadata.get("annotations") or {}), LAST_APPLIED: json.dumps(self.seed)}
                body = {**self.seed, "metadata": {**metadata, "annotations": annotations}}
                done = await self.do("create", "kubectl-client-side-apply", body)
            if done:
                return True
            self.seed = self.fresh()
        return False

    async def grow(self) -> None:
        """Let one more thing happen."""
        rng, way = self.rng, self.rng.random()
        if way < 0.03:  # as one whose manifests are an export of what is live
            await self.do("force", US, self.exported(await self.live()))
        elif way < 0.25:
            await self.do("force", US, self.varied(self.last or self.seed, 0.2))
        elif way < 0.5:
            await self.do(
                rng.choice(("apply", "force", "force")),
                rng.choice(APPLIERS),
                self.varied(self.seed, rng.choice((0.2, 0.9))),
            )
        elif way < 0.7:
            live = await self.live()
            body = self.varied(live, 0.15)
            kept = {name: value for name, value in live["metadata"].items() if name not in SERVERS_OWN}
            body["metadata"] = {**kept, **body["metadata"]}
            await self.do("update", rng.choice(WRITERS), body)
        elif way < 0.85:
            fresh = self.varied(self.fresh(), 0.5)
            await self.do(
                "patch", rng.choice(WRITERS), {name: value for name, value in fresh.items() if rng.random() < 0.8}
            )
        elif self.subject.scalable and way < 0.95:
            await self.do("scale", "hpa", {"spec": {"replicas": rng.choice((1, 2, 3, 4))}})
        elif self.subject.has_status:
            await self.do(
                "status",
                "controller",
                {"status": {}} if not self.subject.schema.is_custom else {"status": {"phase": "x"}},
            )

    def exported(self, live: Mapping[str, Any]) -> dict[str, Any]:
        """Return all that *live* says, defaults included, but for what is the server's own."""
        metadata = {name: value for name, value in live["metadata"].items() if name not in SERVERS_OWN}
        return {**live, "metadata": metadata}

    def question(self, live: Mapping[str, Any]) -> dict[str, Any]:
        """Return what we might want next."""
        rng, way = self.rng, self.rng.random()
        last = self.last or self.seed
        if way < 0.25:
            return last
        if way < 0.6:
            return self.varied(last, rng.choice((0.02, 0.1, 0.1)))
        if way < 0.75:
            return self.varied(last, 0.5)
        if way < 0.9:
            desired = self.exported(live)
            return desired if rng.random() < 0.5 else self.varied(desired, 0.1)
        return self.fresh()

    async def questions(
        self, number: int
    ) -> AsyncIterator[tuple[dict[str, Any], dict[str, Any] | None, ConflictPolicy, Answer]]:
        """Ask *number* questions, yielding each with its answer."""
        for _ in range(number):
            live = await self.live()
            desired = self.question(live)
            base = self.last if self.rng.random() < 0.7 else None
            policy = ConflictPolicy.YIELD if self.rng.random() < 0.15 else ConflictPolicy.OVERRIDE
            ignores = self.ignores(desired) if self.rng.random() < 0.1 else ()
            answer = await self.undisturbed(desired, base, policy, ignores)
            if answer is not None:
                yield desired, base, policy, answer
        if self.subject.kind != "CustomResourceDefinition":
            desired = {**self.question(live), "metadata": {"name": f"{self.name}-new"}}
            yield desired, None, ConflictPolicy.OVERRIDE, await ask_create(self.client, self.subject, desired)

    async def undisturbed(
        self,
        desired: dict[str, Any],
        base: dict[str, Any] | None,
        policy: ConflictPolicy,
        ignores: tuple[IgnoreRule, ...],
    ) -> Answer | None:
        """Ask until nobody writes in between (the server itself keeps a CRD's status); None if somebody always does.

        A mismatch is only thrown away where the object has changed under the question.
        """
        for _ in range(8):
            try:
                live = await self.live()
                answer = await ask(self.client, self.subject, live, desired, base=base, policy=policy, ignores=ignores)
            except Conflict:
                continue
            if not answer.mismatches or (await self.live())["metadata"]["resourceVersion"] == answer.version:
                return answer
        return None

    def ignores(self, desired: Mapping[str, Any]) -> tuple[IgnoreRule, ...]:
        """Return a rule for one of the fields that *desired* states."""
        stated = [path for path in (fields_of(desired, self.subject.schema.root) - STRIPPED).leaves() if path]
        if not stated:
            return ()
        path = self.rng.choice(stated)
        return (IgnoreRule.parse(str(FieldPath(path[: self.rng.randint(2, len(path))]) if len(path) > 2 else path)),)

    async def end(self) -> None:
        """Delete the object, whatever holds it."""
        try:
            await self.client.patch(f"{self.subject.path}/{self.name}", {"metadata": {"finalizers": None}})
            await self.client.delete(f"{self.subject.path}/{self.name}")
        except ApiError:
            return
