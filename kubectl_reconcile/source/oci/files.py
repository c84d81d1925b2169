"""The files of an artifact: which of them are manifests at a path, and all of them as a tree.

Archives have neither links nor submodules, so a path is where it is. Ignore files count from the root of the artifact on, as in a repository.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kubectl_reconcile.core.manifests.revision import Commit, Revision
from kubectl_reconcile.core.manifests.tree import EntryKind, TreeEntry
from kubectl_reconcile.core.manifests.which_files import (
    IGNORE_FILE,
    SourceIgnore,
    is_manifest_path,
    is_renderer_path,
    without_unrendered,
)
from kubectl_reconcile.core.rendering.ways import undecided, way
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.source.charts.archive import Archive
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import Counted, GitLimits, IgnoreTexts, too_much


class Place(Struct, frozen=True):
    """What of an artifact is read, and how: the folder or file at *path*, within *limits*; *where* is what errors call the artifact."""

    where: str
    path: str
    render: Render
    limits: GitLimits


def listed(found: Archive, sha: str, place: Place, made: Commit | None) -> Revision:
    """Return the manifest files that an artifact has at a place, and what is wrong with others; or that it is to be rendered. *made* tells of what.

    Raises:
        SourceError: it has nothing there, or too much.
    """
    path, when = place.path, made.committed_at if made else ""
    shown = path or "."
    entry = found.look(path)
    if entry.kind is EntryKind.FILE:
        return Revision(sha, when, {path: entry.blob_id}, path=shown, folder=posixpath.dirname(path), commit=made)
    if entry.kind is not EntryKind.FOLDER:
        raise SourceError(
            SourceFault.NO_SUCH_PATH, f"{place.where}: there is no {path} in it", "check spec.source.path"
        )
    below = {each: _inside(each, path) for each in found.files if not path or each.startswith(f"{path}/")}
    ignore = _ignored(found, place)
    own = (name for name in found.names(path) if not ignore.matches(posixpath.join(path, name)))
    goes = way(place.render, own)
    if goes is Render.AUTO:
        return Revision(sha, when, {}, (undecided(path),), ("",), shown, commit=made)
    if goes is not Render.RAW:
        return Revision(sha, when, {}, path=shown, overlay=path, is_chart=goes is Render.HELM, commit=made)
    _check(found, below, place)
    files = {
        each: found.look(each).blob_id for each, inside in sorted(below.items()) if is_manifest_path(inside) and not ignore.matches(each)
    }  # fmt: skip
    renderers = [each for each, inside in below.items() if is_renderer_path(inside) and not ignore.matches(each)]
    if place.render is Render.RAW:  # its own renderer's file says nothing then; those below are other folders' still
        renderers = [each for each in renderers if posixpath.dirname(each) != path]
    chosen = without_unrendered(files, renderers)
    problems = (*ignore.problems, *chosen.problems)
    return Revision(sha, when, chosen.files, problems, chosen.unrendered, shown, folder=path, commit=made)


def _inside(file: str, path: str) -> str:
    return file.removeprefix(f"{path}/") if path else file


def _ignored(found: Archive, place: Place) -> SourceIgnore:
    """Return what is left out at a place: what the ignore files say that are in it, above or below."""
    texts = IgnoreTexts(place.where)
    for file, data in sorted(found.files.items()):
        folder, name = posixpath.split(file)
        if name == IGNORE_FILE and (_is_in(place.path, folder) or _is_in(folder, place.path)):
            texts.add(folder, data)
    return SourceIgnore(texts.by_folder)


def _is_in(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _check(found: Archive, below: Mapping[str, str], place: Place) -> None:
    """Return if no more is at a place than may be.

    Raises:
        SourceError: there is.
    """
    counted = Counted(place.limits, place.path, lambda what, _: too_much(place.where, what, "give a path in it"))
    total = 0
    for file, inside in below.items():
        counted.take(file, is_folder=False)
        total += len(found.files[file]) if is_manifest_path(inside) else 0
    if total > place.limits.revision_bytes:
        raise too_much(
            place.where, f"its manifests have more than {place.limits.revision_bytes:,} bytes", "give a path in it"
        )


class ArtifactTree(Struct, frozen=True):
    """All files of an artifact."""

    found: Archive

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        return self.found.look(_clean(path))

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path* by name; nothing where none is there."""
        return self.found.names(_clean(path))

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* holds.

        Raises:
            SourceError: there is none.
        """
        data = self.found.files.get(_clean(path))
        if data is None:
            raise SourceError(SourceFault.NO_SUCH_PATH, f"there is no file {path}")
        return data

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch nothing: all of it is here."""


def _clean(path: str) -> str:
    clean = posixpath.normpath(path).strip("/")
    return "" if clean == "." else clean
