"""Kustomizations: the files that make a folder an overlay, and what is said when one can't be rendered.

Kustomize names files relative to whatever folder it was in, rarely a line, and may quote the values of Secrets. Here its
sentences come to the entry of the kustomization file that they are about, and lose those values.

Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.redaction import redacted, without

KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The names of a file that makes its folder an overlay."""


def kustomization_among(overlay: str, consulted: Iterable[str]) -> str:
    """Return the path of the kustomization file of a folder; the usual one where none was found."""
    names = [posixpath.join(overlay, name) for name in KUSTOMIZATIONS]
    there = frozenset(consulted)
    return next((name for name in names if name in there), names[0])


# --- what is said of a failure ---------------------------------------------------------------------------------

_QUOTES: Final = re.compile(r"['\"`\[\]]")
"""What kustomize has around what it quotes, also within quotes."""
_CONFIG: Final = re.compile(r" with config: `.*`(?=: )| with config:(?!.*`: ).*", re.DOTALL)
_WORDS: Final = range(3, 200)
_REMOTE: Final = re.compile(r"no such program|executable file not found|no 'git' program|rendering has no network")
_HINTS: Final = (
    (_REMOTE, "nothing is fetched while rendering: copy it into the repository and name its folder"),
    (
        re.compile(r"must specify --enable-helm"),
        "charts aren't rendered by kustomize here; commit what helm template prints",
    ),
    (
        re.compile(r"external plugins disabled|unable to load external plugin"),
        "only what is built into kustomize is run",
    ),
    (re.compile(r"is not in or below"), "copy the file into the folder, or make its own folder a base"),
    (re.compile(r"symbolic link"), "commit the file itself"),
    (re.compile(r"cycle detected"), "take one of these entries out"),
)


def failure(message: str, overlay: str, files: Mapping[str, bytes]) -> Problem:
    """Return the problem that an overlay can't be rendered, by kustomize's *message*.

    *files* are those that it read, in that order: one of the kustomization files among them has the entry that is at fault.
    """
    said = without_secrets(message, files)
    path, line = _place(said, overlay, files)
    hint = next((hint for pattern, hint in _HINTS if pattern.search(said)), "")
    return Problem(path, line, f"kustomize can't build it: {_flat(said)}", hint)


def _place(said: str, overlay: str, files: Mapping[str, bytes]) -> tuple[str, int]:
    """Return file and line of the entry that a message is about: the last kustomization that has something it quotes."""
    quoted = [words for each in _QUOTES.split(said) if len(words := each.strip()) in _WORDS]
    kustomizations = [path for path in files if posixpath.basename(path) in KUSTOMIZATIONS]
    for path in reversed(kustomizations):
        lines = files[path].decode(errors="replace").splitlines()
        for words in reversed(quoted):
            for number, line in enumerate(lines, start=1):
                if _states(line, words):
                    return path, number
    return kustomization_among(overlay, kustomizations), 0


def _states(line: str, words: str) -> bool:
    """Tell whether a line of a kustomization names *words* as a whole: as an item, a value or a key."""
    return bool(re.search(rf"(^|[\s:\[,\"'-]){re.escape(words)}($|[\s\],\"':#])", line))


def _flat(said: str) -> str:
    return " ".join(said.split())[:600]


def without_secrets(message: str, files: Mapping[str, bytes]) -> str:
    """Return a message of kustomize's without the values of Secrets that the *files* hold or have generated."""
    said = _CONFIG.sub("", message)
    for path, data in files.items():
        name = posixpath.basename(path)
        if name in KUSTOMIZATIONS:
            said = without(said, _generated(posixpath.dirname(path), data, files))
        elif name.endswith((".yaml", ".yml", ".json")) and b"Secret" in data:
            said = redacted(said, *(each.manifest for each in parse(data, path).manifests))
    return said


def _generated(folder: str, data: bytes, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the values of the Secrets that a kustomization file has generated, or patches."""
    documents, _ = yaml_reader.read(data, KUSTOMIZATIONS[0])
    for document in documents:
        fields = document.tree if isinstance(document.tree, dict) else {}
        for generator in _maps(fields.get("secretGenerator")):
            for literal in _strings(generator.get("literals")):
                yield literal
                yield literal.partition("=")[2]
            named = (
                *_strings(generator.get("files")),
                *_strings(generator.get("envs")),
                str(generator.get("env") or ""),
            )
            for file in named:
                text = files.get(posixpath.normpath(posixpath.join(folder, file.rpartition("=")[2])), b"")
                yield from _parts(text.decode(errors="replace"))
        for patch in (*_maps(fields.get("patches")), *_maps(fields.get("patchesStrategicMerge"))):
            if "Secret" in str(patch):
                yield from _scalars(str(patch.get("patch") or ""))


def _parts(text: str) -> Iterator[str]:
    yield text.strip()
    for line in text.splitlines():
        yield line.strip()
        yield line.partition("=")[2].strip()


def _scalars(text: str) -> Iterator[str]:
    """Yield what stands behind a colon, line by line."""
    for line in text.splitlines():
        yield line.partition(":")[2].strip().strip("\"'")


def _maps(value: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _strings(value: Any) -> Sequence[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
