"""Where a value of the cluster is written when a chart is to ask for it: into a values file, where one value sets the field.

Which value sets a field can't be seen in a template. What is proposed is each value that is now what the field is now; by rendering
with another it is seen which of them it is, and whether it sets more than that.

Pure: bytes in, bytes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.manifests.editing import EditError, restated
from kubectl_reconcile.core.manifests.parse import Steps
from kubectl_reconcile.core.rendering.accepting import Proposal
from kubectl_reconcile.core.rendering.entries import first_tree
from kubectl_reconcile.core.ssa.values import same

_MOST_PROPOSALS: Final = 30
"""So many values are tried: each takes one rendering."""


class ValuesFile(Struct, frozen=True):
    """A file of values and what it holds; *is_default* is that of the chart itself, which others may render too."""

    path: str
    data: bytes
    is_default: bool = False


def proposals(files: Sequence[ValuesFile], now: Any, value: Any) -> Iterator[Proposal]:
    """Yield what values files may become so that a field which is *now* gets *value*: the file that counts most comes first.

    A default that is to be another is stated in the last of the Sync's own files, if it has any, and left where it is.
    """
    own = next((each for each in files if not each.is_default), None)
    count = 0
    for file in files:
        for steps, stated in _values(first_tree(file.data)):
            for new in _instead(stated, now, value):
                into = own if file.is_default and own is not None else file
                try:
                    data = _set(into, steps, new)
                except EditError:
                    continue
                yield Proposal({into.path: data}, into.path)
                count += 1
                if count >= _MOST_PROPOSALS:
                    return


def _values(tree: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Yield every value of a file with where it stands, also whole maps and lists."""
    if steps:
        yield steps, tree
    below = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, value in below:
        yield from _values(value, (*steps, step))


def _instead(stated: Any, now: Any, value: Any) -> Iterator[Any]:
    """Yield what a value is to be instead, if it can be what sets the field: all of it, or the one part of an image that differs."""
    if same(stated, now) or (_is_scalar(stated) and _is_scalar(now) and _text(stated) == _text(now)):
        yield _text(value) if isinstance(stated, str) and _is_scalar(value) else value
    elif isinstance(now, str) and isinstance(value, str):
        parts, others = now.rpartition(":"), value.rpartition(":")
        for part, other, rest, other_rest in (
            (parts[2], others[2], parts[0], others[0]),
            (parts[0], others[0], parts[2], others[2]),
        ):
            if part and other and part != other and rest == other_rest and _is_scalar(stated) and _text(stated) == part:
                yield other


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _set(file: ValuesFile, steps: Steps, value: Any) -> bytes:
    """Return a file with a value at *steps*; the maps above it are made where they aren't there.

    Raises:
        EditError: it can't be set there, as where an item of a list would have to be made.
    """
    tree: Any = first_tree(file.data)
    depth = 0
    if not isinstance(tree, dict):
        raise EditError(f"{file.path}: it holds no values")
    while depth < len(steps) - 1 and _has(tree, steps[depth]):
        tree = tree[steps[depth]]
        depth += 1
    for step in reversed(steps[depth + 1 :]):
        if not isinstance(step, str):
            raise EditError(f"{file.path}: a list can only be set as a whole")
        value = {step: value}
    return restated(file.data, file.path, steps[: depth + 1], value)


def _has(tree: Any, step: int | str) -> bool:
    if isinstance(tree, Mapping):
        return step in tree
    return isinstance(tree, list) and isinstance(step, int) and step < len(tree)
