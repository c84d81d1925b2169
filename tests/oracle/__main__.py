"""`make oracle N=…`: ask N questions to the API server and to `three_way`; exit 1 if an answer differs."""

# ruff: noqa: S311, T201 - a seed must give the same case again; a command line prints

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kubectl_reconcile.cluster.client import Access, ApiError, Client
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.ssa.schema import Schema, schema_of_crd, schemas_of_document
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox
from oracle.builtins import KINDS as EVERYDAY
from oracle.crds import GROUP, random_crd
from oracle.infrastructure import INFRASTRUCTURE
from oracle.judge import Subject
from oracle.shapes import Shape
from oracle.shrink import shrunk
from oracle.stories import Story

GROUP_VERSION = f"{GROUP}/v1"
KINDS = EVERYDAY + INFRASTRUCTURE
QUESTIONS = 5
MOST_UNSURE = 0.02
"""The share of verdicts that may be left to the server; a run says about 0.1 %."""
AT_ONCE = 8


@dataclass
class Tally:
    """What came out so far."""

    questions: int = 0
    stories: int = 0
    refused: int = 0
    false_same: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    never_begun: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)
    mismatches: list[dict[str, Any]] = field(default_factory=list)
    phantoms: list[str] = field(default_factory=list)

    @property
    def is_too_unsure(self) -> bool:
        """Whether too much is left to the server: a merge that is never sure is never wrong, and worth nothing."""
        return self.verdicts["unsure"] > MOST_UNSURE * max(50, sum(self.verdicts.values()))


async def subjects(client: Client, seed: str, crds: int, namespace: str) -> list[tuple[Subject, Shape, int]]:
    """Return the kinds to ask about: built-in ones, and *crds* random ones that are installed first."""
    documents: dict[str, Any] = {}
    found: list[tuple[Subject, Shape, int]] = []
    for kind in KINDS:
        root = "api" if kind.api_version == "v1" else "apis"
        place = f"/openapi/v3/{root}/{kind.api_version}"
        if place not in documents:
            documents[place] = schemas_of_document(await client.get(place))
        schema: Schema = documents[place][GroupVersionKind.parse(kind.api_version, kind.kind)]
        subject = Subject(
            kind.api_version, kind.kind, kind.collection(namespace), schema, kind.has_status, kind.scalable
        )
        found.append((subject, kind.shape, kind.weight))
    weight = max(1, sum(kind.weight for kind in KINDS) // max(1, crds))
    tag = namespace.rpartition("-")[2]
    custom: list[tuple[Subject, Shape, int]] = []
    for index in range(crds * 3):
        if len(custom) == crds:
            break
        name = f"R{tag}x{index}"
        crd, shape = random_crd(random.Random(f"{seed}/crd/{index}"), name)
        try:
            await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        except ApiError as error:
            if error.status != 422:
                raise
            continue
        path = f"/apis/{GROUP_VERSION}/namespaces/{namespace}/{crd['spec']['names']['plural']}"
        schema = schema_of_crd(crd, "v1")
        versions = tuple(f"{GROUP}/{entry['name']}" for entry in crd["spec"]["versions"])
        subject = Subject(GROUP_VERSION, name, path, schema, schema.has_status, versions=versions[1:])
        custom.append((subject, shape, weight))
    for subject, _, _ in found + custom:
        await _until_served(client, subject.path)
    discovered = await _discovered(client, [GroupVersionKind.parse(GROUP_VERSION, each.kind) for each, _, _ in custom])
    return found + [(replace(each, discovered=discovered[each.kind]), shape, weight) for each, shape, weight in custom]


async def _discovered(client: Client, kinds: list[GroupVersionKind]) -> dict[str, Schema]:
    """Return the schemas of *kinds* as production finds them, once the server has published them all."""
    deadline = time.monotonic() + 60
    while True:
        found = await (await Discovery.load(client)).schemas(kinds)
        if all(schema.known for schema in found.values()):
            return {gvk.kind: schema for gvk, schema in found.items()}
        if time.monotonic() > deadline:
            raise TimeoutError(f"not published: {[str(gvk) for gvk, schema in found.items() if not schema.known]}")
        await asyncio.sleep(0.2)


async def _until_served(client: Client, path: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            await client.get(path, limit=1)
        except ApiError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)
        else:
            return


async def one_story(
    client: Client, subject: Subject, shape: Shape, seed: str, name: str, tally: Tally, questions: int
) -> None:
    rng = random.Random(seed)
    story = Story(client, subject, shape, name, rng)
    if not await story.begin():
        tally.never_begun["custom" if subject.schema.is_custom else subject.kind] += 1
        return
    try:
        for _ in range(rng.choice((0, 1, 1, 2, 3, 4))):
            await story.grow()
        tally.stories += 1
        async for desired, base, policy, answer in story.questions(questions):
            tally.questions += 1
            kind = "custom" if subject.schema.is_custom else subject.kind
            tally.kinds[kind] += 1
            tally.refused += answer.refused
            tally.false_same += answer.false_same
            if answer.verdict:
                tally.verdicts[answer.verdict] += 1
            if answer.verdict == "unsure":
                tally.unsure[kind] += 1
            tally.phantoms += [f"{kind}, seed {seed}: {one.what}: {one.predicted}" for one in answer.phantoms]
            if answer.mismatches:
                tally.mismatches.append(
                    {
                        "seed": seed,
                        "kind": subject.kind,
                        "subject": subject,
                        "found": [vars(mismatch) for mismatch in answer.mismatches],
                        "steps": list(story.steps),
                        "base": base,
                        "policy": policy,
                        "ignores": answer.ignores,
                        "desired": desired,
                    }
                )
    finally:
        await story.end()


async def run(
    cases: int,
    seed: str,
    crds: int,
    kubeconfig: str,
    *,
    only: str = "",
    at_once: int = AT_ONCE,
    story: int | None = None,
    shrink: int = 3,
    most_s: float = float("inf"),
) -> Tally:
    """Ask *cases* questions and return what came out; the first *shrink* mismatches are shrunk."""
    tally = Tally()
    namespace = f"oracle-{random.SystemRandom().randrange(16**8):08x}"
    async with await Client.connect(Access(kubeconfig=kubeconfig)) as client:
        await client.create(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        found = [
            entry
            for entry in await subjects(client, seed, crds, namespace)
            if only in ("", "custom" if entry[0].schema.is_custom else entry[0].kind)
        ]
        weights = [weight for _, _, weight in found]
        numbers = iter([story] if story is not None else range(10**9))

        deadline = time.monotonic() + most_s

        async def worker() -> None:
            while tally.questions < cases and time.monotonic() < deadline:
                number = next(numbers, None)
                if number is None:
                    return
                story_seed = f"{seed}/{number}"
                subject, shape, _ = random.Random(f"{story_seed}/kind").choices(found, weights)[0]
                name = f"o{number}-{namespace}"
                if subject.kind == "CustomResourceDefinition":
                    name = f"p{number}s.nested.example.com"
                await one_story(client, subject, shape, story_seed, name, tally, QUESTIONS)

        try:
            await asyncio.gather(*(worker() for _ in range(at_once)))
            for mismatch in tally.mismatches[:shrink]:
                mismatch["test"] = await shrunk(client, mismatch)
        finally:
            for subject, _, _ in found:
                if subject.schema.is_custom:
                    await client.delete(
                        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{subject.path.rpartition('/')[2]}.{GROUP}"
                    )
            await client.delete(f"/api/v1/namespaces/{namespace}")
    return tally


@contextlib.contextmanager
def cluster(kubeconfig: str) -> Iterator[str]:
    """Yield *kubeconfig*, or that of a control plane made for this run: no controllers, so that stories stay as told."""
    if kubeconfig:
        yield kubeconfig
        return
    sandbox = Sandbox(f"oracle-{random.SystemRandom().randrange(16**6):06x}")
    flags = ("--disable-admission-plugins=ServiceAccount", "--enable-priority-and-fairness=false")
    print(f"starting sandbox {sandbox.name}", file=sys.stderr)
    try:
        sandbox.up(Options(components=("etcd", "kube-apiserver"), flags={"kube-apiserver": flags}))
        yield str(sandbox.kubeconfig)
    finally:
        sandbox.down()


def show(mismatch: dict[str, Any]) -> str:
    """Return a mismatch in short; its seed gives all of it again."""
    found = (f"{one['what']}: predicted {one['predicted']}, actual {one['actual']}"[:1200] for one in mismatch["found"])
    return "\n  ".join((f"{mismatch['kind']}, seed {mismatch['seed']}", *found))


def main() -> int:
    """Ask, print what came out, and say by the exit status whether every answer was the same."""
    parser = argparse.ArgumentParser(prog="oracle", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many questions (default: %(default)s)")
    parser.add_argument("--seed", default="", help="default: a fresh one")
    parser.add_argument("--crds", type=int, default=20, help="how many random CRDs (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="KIND", help="one built-in kind, or custom")
    parser.add_argument("--story", type=int, help="only this story of the seed")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="stories at the same time (default: %(default)s)")
    parser.add_argument(
        "--kubeconfig", default="", help="a disposable cluster without controllers; default: a new sandbox"
    )
    parser.add_argument("--show", type=int, default=5, help="mismatches to show (default: %(default)s)")
    parser.add_argument("--most-s", type=float, default=float("inf"), metavar="SECONDS", help="stop asking after this")
    parser.add_argument("--no-shrink", action="store_true", help="show mismatches as they were found")
    chosen = parser.parse_args()
    seed = chosen.seed or f"{random.SystemRandom().randrange(16**8):08x}"
    with cluster(chosen.kubeconfig) as kubeconfig:
        began = time.monotonic()
        tally = asyncio.run(
            run(
                chosen.cases,
                seed,
                chosen.crds,
                kubeconfig,
                only=chosen.only,
                at_once=chosen.at_once,
                story=chosen.story,
                shrink=0 if chosen.no_shrink else chosen.show,
                most_s=chosen.most_s,
            )
        )
        seconds = time.monotonic() - began
    for mismatch in tally.mismatches[: chosen.show]:
        print(show(mismatch))
        if "test" in mismatch:
            print(mismatch["test"])
    verdicts = {str(verdict): count for verdict, count in tally.verdicts.items()}
    unsure = 100 * verdicts.get("unsure", 0) / max(1, sum(verdicts.values()))
    print(f"seed {seed}: {tally.questions} cases of {tally.stories} stories in {seconds:.0f} s; {dict(tally.kinds)}")
    print(f"verdicts {verdicts}, refused by the server {tally.refused}, unsure {unsure:.2f} % {dict(tally.unsure)}")
    print(f"objects that could not be made {dict(tally.never_begun)}")
    unasked = {kind.kind for kind in KINDS} - set(tally.kinds)
    if unasked and not chosen.only and chosen.story is None:
        print(f"kinds that nothing was asked about: {', '.join(sorted(unasked))}")
    for phantom in tally.phantoms[: chosen.show]:
        print(phantom)
    print(
        f"mismatches {len(tally.mismatches)}, false unchanged {tally.false_same}, phantom changes {len(tally.phantoms)}"
    )
    return 1 if tally.mismatches or tally.is_too_unsure or tally.phantoms else 0


if __name__ == "__main__":
    sys.exit(main())
