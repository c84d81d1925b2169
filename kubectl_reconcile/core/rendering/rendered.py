"""What a rendering gives: objects, each with the file that it comes from, problems, and what was consulted for it.

What was looked at, read or missed in a *tree*, the files of one revision, is *consulted*; as long as all of that is the same,
so is what it renders to.

Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located, Parsed, parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import EntryKind, Tree, TreeEntry
from kubectl_reconcile.core.objects import Problem, Severity, errors_among
from kubectl_reconcile.core.rendering.unstable import RandomNameError, drawn_between, shown, with_placeholders
from kubectl_reconcile.core.resources.helm import Unstable

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


class RenderedObject(Struct, frozen=True):
    """One object as YAML, and the file that it comes from; *again* is what a second rendering gave, where that is something else."""

    text: str
    file: str
    again: str = ""


class Draw(Struct):
    """What a rendering drew by chance or from the clock; *used* tells that somebody may have applied it."""

    used: bool = False


class Rendering(Struct, frozen=True):
    """What an overlay or a chart renders to, or the problem that it doesn't, and what that depends on. *lookups* are those of a chart, *decrypted* the files that were."""

    objects: tuple[RenderedObject, ...]
    problems: tuple[Problem, ...]
    consulted: Consulted
    draw: Draw = field(default_factory=Draw)
    lookups: tuple[str, ...] = ()
    decrypted: tuple[str, ...] = ()


class PlainObjects(Struct, frozen=True):
    """Objects as manifests state them, each as text with its file, and what tells that there are still the same files."""

    objects: tuple[RenderedObject, ...]
    consulted: Consulted

    @property
    def key(self) -> str:
        """What names them."""
        return _hash("".join(f"{each.file}\0{each.text}\n" for each in self.objects))


_API_VERSION: Final = re.compile(r"^apiVersion: [\"']?(?:([^/\s\"']*)/)?", re.MULTILINE)
_KIND: Final = re.compile(r"^kind: [\"']?([^\s\"']+)", re.MULTILINE)


def kind_of(text: str) -> tuple[str, str]:
    """Return group and kind of a rendered object, without reading all of it; empty where it has none."""
    version, kind = _API_VERSION.search(text), _KIND.search(text)
    return (version[1] or "" if version else ""), (kind[1] if kind else "")


def paired(objects: Sequence[RenderedObject], again: Sequence[RenderedObject]) -> tuple[RenderedObject, ...] | None:
    """Return *objects* with what a second rendering gave; None where that has others."""
    if [each.file for each in objects] != [each.file for each in again]:
        return None
    both = zip(objects, again, strict=True)
    return tuple(replace(one, again=other.text if other.text != one.text else "") for one, other in both)


def objects_of(rendering: Rendering, policy: Unstable = Unstable.KEEP) -> Parsed:
    """Return what a rendering asks for, and all its problems. No file holds the objects as they are, so none has a line to show.

    Fields that were drawn are there as the *policy* says.
    """
    manifests: list[Located] = []
    problems = list(rendering.problems)
    for each in rendering.objects:
        parsed = parse(each.text.encode(), _AS_YAML)
        found = parsed.manifests
        if each.again:
            found, told = _drawn(parsed, parse(each.again.encode(), _AS_YAML), policy)
            problems += (replace(problem, path=each.file) for problem in told)
        first = -len(manifests) - 1
        manifests += (replace(located, path=each.file, line=first - more) for more, located in enumerate(found))
        problems += (replace(problem, path=each.file, line=0) for problem in parsed.problems)
    return Parsed(tuple(manifests), tuple(problems))


def _drawn(first: Parsed, second: Parsed, policy: Unstable) -> tuple[tuple[Located, ...], list[Problem]]:
    """Return the objects of one text, of which a second rendering has another, and what is to be said of them."""
    if len(first.manifests) != len(second.manifests):
        return (), [Problem("", 0, "the set of its objects differs at each rendering", _FIXED)]
    found: list[Located] = []
    told: list[Problem] = []
    for one, other in zip(first.manifests, second.manifests, strict=True):
        try:
            drawn = drawn_between(one.manifest, other.manifest)
        except RandomNameError as error:
            told.append(Problem("", 0, f"{one.ref.kind}: its {error} differs at each rendering", _FIXED))
            continue
        if not drawn:
            found.append(one)
            continue
        said = f"{one.ref}: {', '.join(shown(each.path) for each in drawn)} {'is' if len(drawn) == 1 else 'are'} generated again at each rendering"
        if policy is Unstable.FAIL:
            told.append(Problem("", 0, said, "set a value for it, or set spec.source.helm.unstable to Keep"))
            continue
        kept = "the live value is kept" if policy is Unstable.KEEP else "a different one is applied each time"
        told.append(Problem("", 0, f"{said}; {kept}", severity=Severity.WARNING))
        found.append(with_placeholders(one, drawn) if policy is Unstable.KEEP else one)
    return tuple(found), told


_FIXED: Final = "set the random values, so that it is the same object each time"


def revision_of(revision: Revision, rendering: Rendering, found: Parsed) -> Revision:
    """Return the *revision* of an overlay as its *rendering* shows it: the files that objects come from, with ids of what came from each.

    One of a folder has the digest of what was consulted for its sha. Where something is wrong, any object may be missing: then
    nothing counts as gone, and what was consulted is told apart: another try may fail in the same words.
    """
    texts: dict[str, list[str]] = {}
    for each in rendering.objects:
        texts.setdefault(each.file, []).append(each.text)
    for file in {each.file for each in rendering.objects if each.again}:  # what it asks for may still be the same
        texts[file] = [json.dumps(each.manifest, sort_keys=True) for each in found.manifests if each.path == file]
    files = {path: f"rendered-{_hash('---'.join(text))}" for path, text in sorted(texts.items())}
    sha = f"worktree-{digest_of_consulted(rendering.consulted)}" if revision.is_of_folder else revision.sha
    is_wrong = bool(errors_among(found.problems))
    return replace(
        revision,
        sha=sha,
        files=files,
        problems=found.problems,
        unrendered=("",) if is_wrong else (),
        tried=digest_of_consulted(rendering.consulted) if is_wrong else "",
    )


def digest_of_consulted(consulted: Consulted) -> str:
    """Return what tells all that was consulted from something else."""
    said = "".join(f"{path}\0{entry.kind}\0{entry.blob_id}\n" for path, entry in sorted(consulted.items()))
    return _hash(said)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]
