"""The files of a revision with folders in them that come from elsewhere, and with some of its own files restated: what a rendering looks at that has things fetched."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kubectl_reconcile.core.manifests.tree import FOLDER, EntryKind, Tree, TreeEntry
from kubectl_reconcile.core.rendering.rendered import Consulted, listing
from kubectl_reconcile.source.git.cloned.folders import NotHereError


class Part(Struct, frozen=True):
    """What stands somewhere else: the folder at *path* of a *tree*."""

    tree: Tree
    path: str = ""

    def place(self, inside: str) -> str:
        """Return where the tree has what is *inside* the folder."""
        return "/".join(filter(None, (self.path, inside)))


class MountedTree:
    """The files of *tree*, and parts at the paths of folders, whatever the tree has there; parts may be within parts."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._parts: dict[str, Part] = {}
        self._above: dict[str, dict[str, EntryKind]] = {}
        self._restated: dict[str, bytes] = {}
        self.originals: dict[str, bytes] = {}
        """What files hold, as they were committed, that are restated."""

    def mount(self, path: str, part: Part) -> None:
        """Have *part* stand at *path*."""
        self._parts[path] = part
        below = path
        while below:
            folder, name = posixpath.split(below)
            self._above.setdefault(folder, {})[name] = EntryKind.FOLDER
            below = folder

    def restate(self, path: str, data: bytes, original: bytes) -> None:
        """Have the file at *path* hold *data* instead of the *original*."""
        self._restated[path], self.originals[path] = data, original

    def root_of(self, path: str) -> str:
        """Return where the inmost part stands that *path* is in; empty for the revision's own."""
        inside = (at for at in self._parts if path == at or path.startswith(f"{at}/"))
        return max(inside, key=len, default="")

    def part_at(self, path: str) -> Part:
        """Return what is in the folder at *path*, to stand elsewhere, too."""
        return Part(*self._found(path))

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        if (data := self._restated.get(path)) is not None:
            digest = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
            return TreeEntry(EntryKind.FILE, digest)
        tree, place = self._found(path)
        if path.strip("/") in self._above:
            return FOLDER
        try:
            return tree.look(place)
        except NotHereError as absent:
            raise NotHereError(self._mounted(path, tree, absent.path)) from None

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path* by name."""
        tree, place = self._found(path)
        return {**tree.names(place), **self._above.get(path.strip("/"), {})}

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* holds; None where it must be brought first."""
        if (data := self._restated.get(path)) is not None:
            return data
        tree, place = self._found(path)
        return tree.read(place)

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch what the files at *paths* hold, each where it comes from."""
        found = [self._found(path) for path in paths if path not in self._restated]
        trees = {id(tree): tree for tree, _ in found}
        for tree in trees.values():
            tree.bring([place for where, place in found if where is tree])

    def own(self, consulted: Consulted) -> Consulted:
        """Return what of the revision itself was *consulted*, by its own paths, with its own listings of folders, and with files as they are committed."""
        return dict(self._own(consulted))

    def _own(self, consulted: Consulted) -> Iterator[tuple[str, TreeEntry]]:
        for path, entry in consulted.items():
            tree, place = self._found(path)
            if tree is not self.tree:
                continue
            if path.endswith("/"):
                yield f"{place}/", listing(tree.names(place)) if path.strip("/") in self._above else entry
            else:
                yield place, tree.look(place) if path in self._above or path in self._restated else entry

    def _mounted(self, path: str, tree: Tree, place: str) -> str:
        """Return where something of the *tree* stands that what is at *path* comes from."""
        if tree is self.tree:
            return place
        at = next((at for at, part in self._parts.items() if part.tree is tree and not part.path), "")
        return "/".join(filter(None, (at or self.root_of(path.strip("/")), place)))

    def _found(self, path: str) -> tuple[Tree, str]:
        """Return where what is at *path* comes from, and its path there."""
        clean = path.strip("/")
        at = self.root_of(clean)
        if not at:
            return self.tree, clean
        part = self._parts[at]
        return part.tree, part.place(clean[len(at) + 1 :])
