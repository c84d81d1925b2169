"""Manifests that a Sync changes before they are applied: as what the program that renders takes, and by which files they are known."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterable, Iterator
from typing import Final, Protocol

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.tree import EntryKind, Tree
from kubectl_reconcile.core.manifests.which_files import IGNORE_FILE, matters
from kubectl_reconcile.core.rendering.rendered import Consulted, PlainObjects, RenderedObject, listing
from kubectl_reconcile.core.resources.decryption import Decryption
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.git.cloned.folders import NotHereError
from kubectl_reconcile.source.limits import GitLimits

_MOST_LOOKS: Final = 20_000
_MOST_LINKS: Final = 100


class ReadFile(Protocol):
    """A file whose objects are known."""

    @property
    def manifests(self) -> tuple[Located, ...]:
        """Its objects."""


def stated(files: Iterable[tuple[str, ReadFile]]) -> tuple[RenderedObject, ...]:
    """Return the objects of *files*, each as text of its own."""
    return tuple(RenderedObject(json.dumps(each.manifest), path) for path, file in files for each in file.manifests)


def plain_at(tree: Tree, paths: Collection[str], limits: GitLimits, decryption: Decryption) -> PlainObjects:
    """Return the objects that those of *paths* hold which are files of *tree*, as of an earlier revision. Blocks.

    Raises:
        SourceError: the tree can't be read.
    """
    there = [path for path in paths if tree.look(path).kind is EntryKind.FILE]
    tree.bring([path for path in there if tree.read(path) is None])
    files = [(path, contents.manifests(tree.read(path) or b"", path, limits, decryption)) for path in there]
    return PlainObjects(stated(files), {})


def manifests_below(tree: Tree, folder: str) -> Consulted:
    """Return what decides which manifests there are in *folder*, and what they say; nothing where that is too much to remember. Blocks.

    Raises:
        SourceError: the tree can't be read.
    """
    for _ in range(_MOST_LINKS):
        try:
            found = {}
            for path in _above(folder):
                found[path] = tree.look(path)
            waiting = [folder]
            while waiting and len(found) < _MOST_LOOKS:
                at = waiting.pop()
                names = tree.names(at)
                found[f"{at}/"] = listing(names)
                for name, kind in names.items():
                    path = posixpath.join(at, name)
                    if kind is EntryKind.FOLDER and not name.startswith("."):
                        waiting.append(path)
                    elif kind is EntryKind.FILE and matters(name):
                        found[path] = tree.look(path)
        except NotHereError as missing:
            tree.bring([missing.path])
        else:
            return {} if waiting else found
    return {}


def _above(folder: str) -> Iterator[str]:
    """Yield where files may stand that ignore something of a folder."""
    while folder:
        folder = posixpath.dirname(folder)
        yield posixpath.join(folder, IGNORE_FILE)
