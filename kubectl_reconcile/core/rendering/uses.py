"""Where values of variables stand in what a plan writes, and what nobody may see of them.

Vocabulary: as in ``core.rendering.substitution``. A *secret* use has the value of a Secret in it: wherever its text shows, it is hidden,
and so is what stood in its place before.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from kubectl_reconcile.core.manifests.parse import Located, Steps, VariableUse
from kubectl_reconcile.core.objects import FieldPath, Manifest
from kubectl_reconcile.core.redaction import without_sought
from kubectl_reconcile.core.spellings import Sought


def uses_at(
    uses: Iterable[VariableUse], path: FieldPath | tuple[str, ...], tree: Manifest | None
) -> tuple[VariableUse, ...]:
    """Return those of *uses* that stand at *path*, below it or above it, as far as the path can be found in *tree*."""
    found = tuple(uses)
    if not found or tree is None:
        return ()
    steps = _steps(tree, path)
    return tuple(use for use in found if use.steps[: len(steps)] == steps[: len(use.steps)])


def names_at(uses: Iterable[VariableUse], path: FieldPath | tuple[str, ...], tree: Manifest | None) -> tuple[str, ...]:
    """Return the names of the variables that stand there, each once."""
    return tuple(dict.fromkeys(name for use in uses_at(uses, path, tree) for name in use.names))


def texts_of(uses: Iterable[VariableUse]) -> frozenset[str]:
    """Return what nobody may see: the texts of the secret ones."""
    return frozenset(text for use in uses for text in use.texts if text)


def hiding(tree: Any, texts: Collection[str], hidden: str) -> Any:
    """Return *tree* with *hidden* in place of each scalar that is one of *texts*, and of what spells one in a longer text."""
    if not texts:
        return tree
    return _hiding(tree, texts, Sought.of(text for text in texts if len(text) > _TELLING), hidden)


_TELLING = 6
"""Characters: what isn't longer, as "true", stands in texts that have nothing to do with it."""


def _hiding(tree: Any, texts: Collection[str], telling: Sought, hidden: str) -> Any:
    if isinstance(tree, Mapping):
        return {name: _hiding(value, texts, telling, hidden) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_hiding(value, texts, telling, hidden) for value in tree]
    if _spelled(tree) in texts:
        return hidden
    return without_sought(tree, telling) if isinstance(tree, str) and len(tree) > _TELLING else tree


def hiding_at(tree: Any, paths: Iterable[tuple[str, ...]], hidden: str) -> Any:
    """Return *tree* with *hidden* in place of what stands at *paths*, wherever something does."""
    for path in paths:
        steps = _steps(tree, path)
        if len(steps) == len(path):
            tree = put_at(tree, steps, hidden)
    return tree


def _spelled(value: Any) -> str:
    """Return a scalar as a variable would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _steps(tree: Any, path: Iterable[str]) -> Steps:
    """Return names and indexes of *path* in *tree*, as far as it goes."""
    return tuple(_walk(tree, path))


def _walk(tree: Any, path: Iterable[str]) -> Iterator[int | str]:
    for element in path:
        kind, _, body = element.partition(":")
        step: int | str | None = None
        if kind == "f" and isinstance(tree, Mapping) and body in tree:
            step = body
        elif kind in {"k", "v", "i"} and isinstance(tree, list):
            step = next((at for at, item in enumerate(tree) if _is_at(kind, json.loads(body), at, item)), None)
        if step is None:
            return
        yield step
        tree = tree[step]


def _is_at(kind: str, wanted: Any, at: int, item: Any) -> bool:
    if kind == "i":
        return bool(at == wanted)
    if kind == "v":
        return bool(item == wanted)
    return isinstance(item, Mapping) and all(item.get(name, wanted[name]) == wanted[name] for name in wanted)


def put_at(tree: Any, steps: Steps, value: Any) -> Any:
    """Return *tree* with *value* at these steps, where something stands."""
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if isinstance(tree, list) and isinstance(first, int):
        return [*tree[:first], put_at(tree[first], rest, value), *tree[first + 1 :]]
    return {**tree, first: put_at(tree[first], rest, value)}


def without_secrets(located: Located) -> Manifest:
    """Return a manifest with the names of secret variables in place of what they stand for, as it may be told by a digest."""
    tree: Any = located.manifest
    for use in located.uses:
        if use.secret:
            tree = put_at(tree, use.steps, " ".join(f"${{{name}}}" for name in use.names))
    return tree  # type: ignore[no-any-return]
