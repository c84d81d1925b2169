"""What a rendering gives: objects, each with the file that it comes from, problems, and what was consulted for it.

What was looked at, read or missed in a *tree*, the files of one revision, is *consulted*; as long as all of that is the same,
so is what it renders to.

Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubectl_reconcile.core.manifests.parse import Located, Parsed, parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import EntryKind, Tree, TreeEntry
from kubectl_reconcile.core.objects import Problem, errors_among

_AS_YAML = "rendered.yaml"
"""Rendered text is YAML, whatever the file is that it comes from."""

Consulted = Mapping[str, TreeEntry]
"""What a rendering looked at, by path; by that of a folder and a slash, which names are in it."""


def still_holds(consulted: Consulted, tree: Tree) -> bool:
    """Tell whether *tree* has at all these paths what was found there."""
    return all(_found(path, tree) == entry for path, entry in consulted.items())


def _found(path: str, tree: Tree) -> TreeEntry:
    return listing(tree.names(path[:-1])) if path.endswith("/") else tree.look(path)


def listing(names: Mapping[str, EntryKind]) -> TreeEntry:
    """Return what stands for the names in a folder: it is the same for the same names and kinds."""
    return TreeEntry(EntryKind.FOLDER, _hash("".join(f"{name}\0{kind}\n" for name, kind in sorted(names.items()))))


@dataclass(frozen=True, slots=True)
class RenderedObject:
    """One object as YAML, and the file that it comes from."""

    text: str
    file: str


@dataclass(frozen=True, slots=True)
class Rendering:
    """What an overlay or a chart renders to, or the problem that it doesn't, and what that depends on."""

    objects: tuple[RenderedObject, ...]
    problems: tuple[Problem, ...]
    consulted: Consulted


_API_VERSION: Final = re.compile(r"^apiVersion: [\"']?(?:([^/\s\"']*)/)?", re.MULTILINE)
_KIND: Final = re.compile(r"^kind: [\"']?([^\s\"']+)", re.MULTILINE)


def kind_of(text: str) -> tuple[str, str]:
    """Return group and kind of a rendered object, without reading all of it; empty where it has none."""
    version, kind = _API_VERSION.search(text), _KIND.search(text)
    return (version[1] or "" if version else ""), (kind[1] if kind else "")


def objects_of(rendering: Rendering) -> Parsed:
    """Return what a rendering asks for, and all its problems. No file holds the objects as they are, so none has a line to show."""
    manifests: list[Located] = []
    problems = list(rendering.problems)
    for each in rendering.objects:
        parsed = parse(each.text.encode(), _AS_YAML)
        first = -len(manifests) - 1
        manifests += (
            replace(located, path=each.file, line=first - more) for more, located in enumerate(parsed.manifests)
        )
        problems += (replace(problem, path=each.file, line=0) for problem in parsed.problems)
    return Parsed(tuple(manifests), tuple(problems))


def revision_of(revision: Revision, rendering: Rendering, problems: Sequence[Problem]) -> Revision:
    """Return the *revision* of an overlay as its *rendering* shows it: the files that objects come from, with ids of what came from each.

    One of a folder has the digest of what was consulted for its sha. Where something is wrong, any object may be missing: then
    nothing counts as gone.
    """
    texts: dict[str, list[str]] = {}
    for each in rendering.objects:
        texts.setdefault(each.file, []).append(each.text)
    files = {path: f"rendered-{_hash('---'.join(text))}" for path, text in sorted(texts.items())}
    sha = revision.sha if revision.committed_at else f"worktree-{_digest(rendering.consulted)}"
    return replace(
        revision, sha=sha, files=files, problems=tuple(problems), unrendered=("",) if errors_among(problems) else ()
    )


def _digest(consulted: Consulted) -> str:
    said = "".join(f"{path}\0{entry.kind}\0{entry.blob_id}\n" for path, entry in sorted(consulted.items()))
    return _hash(said)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]
