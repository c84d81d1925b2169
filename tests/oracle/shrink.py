"""Shrinks a mismatch and writes it as a test: fewer steps and fewer fields, as long as it stays one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kubectl_reconcile.cluster.client import ApiError, Client
from oracle.judge import Step, Subject, ask, tell

MOST_TRIES = 150
KEPT = {"apiVersion", "kind", "metadata", "name"}
_numbers = itertools.count(1)


async def shrunk(client: Client, mismatch: Mapping[str, Any]) -> str:
    """Return the smallest story found that still shows *mismatch*, as the text of a test."""
    case = (list(mismatch["steps"]), mismatch["desired"], mismatch["base"])
    if not await _shows(client, mismatch, case):
        return "(told again, the story shows no mismatch)"
    tries = 0
    progress = True
    while progress and tries < MOST_TRIES:
        progress = False
        for smaller in _smaller(case):
            tries += 1
            if tries >= MOST_TRIES:
                break
            if await _shows(client, mismatch, smaller):
                case, progress = smaller, True
                break
    return _as_test(mismatch, case)


Case = tuple[list[Step], dict[str, Any], dict[str, Any] | None]


async def _shows(client: Client, mismatch: Mapping[str, Any], case: Case) -> bool:
    subject: Subject = mismatch["subject"]
    steps, desired, base = case
    name = f"shrink-{next(_numbers)}"
    try:
        for step in steps:
            await tell(client, subject, name, step)
        live = await client.get(f"{subject.path}/{name}")
        wanted = {**desired, "metadata": {**desired["metadata"], "name": name}}
        answer = await ask(
            client, subject, live, wanted, base=base, policy=mismatch["policy"], ignores=mismatch["ignores"]
        )
        await client.patch(f"{subject.path}/{name}", {"metadata": {"finalizers": None}})
        await client.delete(f"{subject.path}/{name}")
    except ApiError:
        return False
    return any(
        one.what.partition(" at ")[0] == mismatch["found"][0]["what"].partition(" at ")[0] for one in answer.mismatches
    )


def _smaller(case: Case) -> Iterator[Case]:
    steps, desired, base = case
    for index in range(len(steps)):
        yield [*steps[:index], *steps[index + 1 :]], desired, base
    for index, step in enumerate(steps):
        for body in _cuts(step.body):
            yield [*steps[:index], replace(step, body=body), *steps[index + 1 :]], desired, base
    for body in _cuts(desired):
        yield steps, body, base
    if base is not None:
        yield steps, desired, None


def _cuts(tree: Any) -> Iterator[Any]:
    """Yield *tree* with one part left out, large parts first."""
    if isinstance(tree, dict):
        for name in tree:
            if name not in KEPT:
                yield {key: value for key, value in tree.items() if key != name}
        for name, below in tree.items():
            yield from ({**tree, name: cut} for cut in _cuts(below))
    elif isinstance(tree, list):
        for index in range(len(tree)):
            yield [*tree[:index], *tree[index + 1 :]]
        for index, below in enumerate(tree):
            yield from ([*tree[:index], cut, *tree[index + 1 :]] for cut in _cuts(below))


def _as_test(mismatch: Mapping[str, Any], case: Case) -> str:
    steps, desired, base = case
    lines = [
        f"async def test_{mismatch['kind'].lower()}_(world):",
        f'    one = await world("{mismatch["kind"]}")',
        *(f"    await one.do({step.manager!r}, {step.verb!r}, {_body(step.body)!r})" for step in steps),
        f"    await one.ask(base={_body(base) if base else None!r}, {_settings(mismatch)}**{_body(desired)!r})",
    ]
    return "\n".join(lines)


def _settings(mismatch: Mapping[str, Any]) -> str:
    rules = [f"IgnoreRule.parse({rule.text!r}, {rule.manager!r})" for rule in mismatch["ignores"]]
    ignores = f"ignores=[{', '.join(rules)}], " if rules else ""
    return f"policy={mismatch['policy']}, {ignores}"


def _body(manifest: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {
        name: value for name, value in (manifest.get("metadata") or {}).items() if name not in ("name", "namespace")
    }
    body = {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind", "metadata")}
    return {**({"metadata": metadata} if metadata else {}), **body}
