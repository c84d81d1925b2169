"""Manifests of files that were decrypted: which values came out of it, and where they stand in the file as it is committed.

Vocabulary: a *sealed* file is encrypted with SOPS. Its *plain* bytes are what it says; its *other* bytes are the same with other values in place of all that are
encrypted. Where the two differ, a value was encrypted: it is marked as the value of a Secret is, and shown to nobody.

An overlay or a chart is rendered twice then, from plain and from other bytes, and the same holds for what they render to.

SOPS writes a file again as it decrypts it, so lines are those of the sealed one: the documents of both are the same in number and order.

Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from kubectl_reconcile.core.manifests.encrypted import SEALED
from kubectl_reconcile.core.manifests.parse import Located, Parsed, parse, stated
from kubectl_reconcile.core.objects import GroupVersionKind, Problem, errors_among, walk
from kubectl_reconcile.core.rendering.derived import has_same_names, marks_between, with_marks

_NAMES: Final = (
    ("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "generateName"),
)  # fmt: skip
_VALUES_ONLY: Final = "encrypt values alone, as with --encrypted-regex '^(data|stringData)$'"
_UNSAID: Final = "what is wrong with it depends on an encrypted value, and isn't shown"


def with_seals(parsed: Parsed, plain: bytes, other: bytes, sealed: bytes, path: str) -> Parsed:
    """Return what was *parsed* of the *plain* bytes of the file at *path*, with marks at what was encrypted and the lines of the *sealed* bytes.

    An object that is called by an encrypted value is left out.
    """
    mine, others, lines = stated(plain, path), stated(other, path), _Lines(plain, sealed, path)
    pairs = zip(mine, others if len(others) == len(mine) else [({}, 0)] * len(mine), strict=True)
    found: list[Located] = []
    problems: list[Problem] = []
    for located, beside in _matched(parsed.manifests, [(tree, twin) for (tree, _), (twin, _) in pairs]):
        line = lines.of(located.line)
        if named := _sealed_name(located.manifest, beside):
            said = f"{named} is encrypted, and what an object is called isn't secret: everybody who sees the cluster sees it"
            problems.append(Problem(path, line, said, _VALUES_ONLY))
            continue
        uses = tuple(marks_between(located.manifest, beside, (), (name_of(path),)))
        found.append(replace(located, line=line, uses=(*located.uses, *uses)))
    same = {(each.message, each.hint) for each in parse(other, path).problems}
    for each in parsed.problems:
        told = each if (each.message, each.hint) in same else replace(each, message=_UNSAID, hint="")
        problems.append(replace(told, line=lines.of(each.line)))
    return replace(parsed, manifests=tuple(found), problems=tuple(problems))


def name_of(path: str) -> str:
    """Return what people call that which the file at *path* has encrypted."""
    return f"{_SOPS}{path}"


def is_name_of_file(name: str) -> bool:
    """Tell whether a mark of that *name* is of what a file has encrypted."""
    return name.startswith(_SOPS)


_SOPS: Final = "SOPS "


def _matched(manifests: Sequence[Located], pairs: Sequence[tuple[Any, Any]]) -> Iterator[tuple[Located, Any]]:
    """Yield each manifest with what the other bytes have in its place; those that can't be objects are among the pairs, too."""
    left = iter(pairs)
    for each in manifests:
        yield each, next((twin for tree, twin in left if tree == each.manifest), None)


def _sealed_name(tree: Any, other: Any) -> str:
    """Return the first field by which an object is called that is encrypted; empty where none is."""
    return next((".".join(steps) for steps in _NAMES if _at(tree, steps) != _at(other, steps)), "")


def _at(tree: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


class _Lines:
    """Where lines of the plain bytes are among the sealed ones, as exactly as documents and what follows their beginnings tell."""

    def __init__(self, plain: bytes, sealed: bytes, path: str) -> None:
        mine, theirs = ([line for _, line in stated(data, path)] for data in (plain, sealed))
        self._pairs = sorted(set(zip(mine, theirs, strict=False)))

    def of(self, line: int) -> int:
        """Return the line among the sealed ones; 0 stays 0."""
        begun = [pair for pair in self._pairs if pair[0] <= line]
        return begun[-1][1] + line - begun[-1][0] if begun and line > 0 else line


# --- what is rendered from sealed files ------------------------------------------------------------------------------


def with_seals_of(first: Parsed, second: Parsed, files: Iterable[str]) -> Parsed:
    """Return the *first* rendering with marks at what came out of sealed *files*: what the *second*, by other values, has otherwise.

    What is called by an encrypted value is left out, with a problem. A suffix that a generator makes of what it holds may be another.
    """
    names = tuple(name_of(path) for path in sorted(set(files)))
    if first.manifests and not second.manifests and (failed := errors_among(second.problems)):
        said = f"it can't be rendered with other values in place of the encrypted ones, so nobody can tell where they are in it ({', '.join(names)})"
        return Parsed((), (*with_marks(first, second, names).problems, Problem(failed[0].path, 0, said, _FREER)))
    beside = _with_same_suffixes(first, second)
    told = with_marks(first, beside, names)
    others = defaultdict(list)
    for each in beside.manifests:
        others[each.gvk, each.ref].append(each.manifest)
    shown: list[Located] = []
    unseen: dict[str, Problem] = {}
    for each in told.manifests:
        there = others[each.gvk, each.ref]
        if has_same_names(each.manifest, there.pop(0) if there else None):
            shown.append(each)
        else:
            unseen[each.path] = Problem(each.path, 0, f"{_CALLED} ({', '.join(names)})", _VALUES_ONLY)
    return replace(told, manifests=tuple(shown), problems=(*told.problems, *unseen.values()))


_FREER: Final = "let its schema and its templates accept any text in place of what is encrypted, or encrypt less"
_CALLED: Final = (
    "what an object in it, or an entry of one, is called depends on an encrypted value, and everybody would see that"
)

_SUFFIX: Final = re.compile(r"-[2456789bcdfghkmt]{10}$")
"""What kustomize appends to the names of what generators made: a hash of what they hold, in letters and digits that make no words."""


def _with_same_suffixes(first: Parsed, second: Parsed) -> Parsed:
    """Return the *second* rendering with the suffixes that generators made in the *first*, where nothing else of a name differs."""
    left = Counter((each.gvk, each.ref) for each in second.manifests)
    renamed: dict[tuple[GroupVersionKind, str, str], list[str]] = defaultdict(list)
    for each in first.manifests:
        if left[each.gvk, each.ref] > 0:
            left[each.gvk, each.ref] -= 1
        elif _SUFFIX.search(each.ref.name):
            renamed[each.gvk, each.ref.namespace, _SUFFIX.sub("", each.ref.name)].append(each.ref.name)
    kept = {(each.gvk, each.ref) for each in first.manifests}
    found: list[Located] = []
    for each in second.manifests:
        names = renamed[each.gvk, each.ref.namespace, _SUFFIX.sub("", each.ref.name)]
        if (each.gvk, each.ref) not in kept and names and _SUFFIX.search(each.ref.name):
            metadata = {**each.manifest["metadata"], "name": names.pop(0)}
            located = Located.of({**each.manifest, "metadata": metadata}, each.path, each.line)
            found.append(replace(located, uses=each.uses, drawn=each.drawn))
        else:
            found.append(each)
    return replace(second, manifests=tuple(found))


def unsealed(parsed: Parsed) -> Parsed:
    """Return what was *parsed* without objects that have an encrypted value in them: no server is to see one."""
    bad = [each for each in parsed.manifests if any(_is_sealed(leaf) for _, leaf in walk(each.manifest))]
    if not bad:
        return parsed
    told = (
        Problem(each.path, max(each.line, 0), f"{each.ref} has a value in it that is encrypted", _DECRYPT)
        for each in bad
    )
    kept = tuple(each for each in parsed.manifests if each not in bad)
    return replace(parsed, manifests=kept, problems=(*parsed.problems, *told))


_DECRYPT: Final = (
    "it was taken out of its file of SOPS, where alone it can be decrypted: use the file as it was encrypted"
)


def _is_sealed(leaf: object) -> bool:
    return isinstance(leaf, str) and leaf.startswith(SEALED)
