"""What one commit holds at a path, read from git's object store: which files are manifests, and what is wrong with others."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Commit, Revision
from kubectl_reconcile.core.manifests.which_files import (
    IGNORE_FILE,
    RENDERER_FILES,
    SourceIgnore,
    is_manifest_path,
    is_renderer_path,
    without_unrendered,
)
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.ways import TELLING, undecided, way
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.cloned.entries import (
    NOWHERE,
    NOWHERE_HINT,
    Entry,
    Linked,
    counts,
    inside,
    is_ignore_file,
    is_read,
    where_of,
)
from kubectl_reconcile.source.git.cloned.folders import (
    FOLDER_MODE,
    LINK_MODE,
    NOTHING,
    SUBMODULE_MODE,
    CommitFolders,
)
from kubectl_reconcile.source.limits import LONGEST_PATH_BYTES, MEBIBYTE, Counted, IgnoreTexts, raising, too_much


class ListedFiles(Struct, frozen=True):
    """The *revision* of a commit at a path, and what those of others are told by: the folder that is there, and ignore files *above* it.

    *is_plain*: no file in it says anything of another. It has so many *entries*, folders with them, and so many *files*. *links* are the paths of
    links that are followed: what is read of them may be beyond the path.
    """

    revision: Revision
    top: Entry
    above: tuple[Entry, ...]
    is_plain: bool = False
    entries: int = 0
    files: int = 0
    links: tuple[str, ...] = ()


def listed(
    clone: Clone, sha: str, path: str, bring: Callable[[Iterable[str]], None], render: Render = Render.AUTO
) -> ListedFiles:
    """Return the manifest files that the commit *sha* has at *path*, and what is wrong with others; or that it is to be rendered.

    *bring* is asked once, for the ids of all files that will be read: it fetches those that aren't in the clone.

    Raises:
        SourceError: the commit has nothing at the path, or isn't in the clone.
    """
    folders = CommitFolders(clone, sha, bring)
    commit = commit_of(clone, sha)
    when = commit.committed_at
    top = _top(clone, folders, sha, path)
    above = _ignore_files_above(folders, path)
    goes = _way(clone, folders, top, render, above, bring)
    if goes is Render.AUTO:
        return ListedFiles(
            Revision(sha, when, {}, (undecided(path),), ("",), path or ".", commit=commit), top, (*above,)
        )
    if goes is not Render.RAW:
        rendered = Revision(sha, when, {}, path=path or ".", overlay=path, is_chart=goes is Render.HELM, commit=commit)
        return ListedFiles(rendered, top, (*above,))
    counted = _counted(clone, path)
    own = _below(folders, top, counted)
    ignoring = _Ignoring(clone, where_of(clone, path), bring, above)
    linked = Linked.of(folders, own, path, counted, ignoring)
    entries = list(linked.entries)
    bring(blob for mode, blob, file in (*above, *entries) if is_read(mode, file, path))
    ignore = ignoring([]) if linked.links else ignoring(own)
    files, problems = _select(entries, path, ignore)
    renderers = _renderers(entries, path, ignore)
    if render is Render.RAW:  # its own renderer's file says nothing then; those below are other folders' still
        renderers = [each for each in renderers if each.rpartition("/")[0] != path]
    chosen = without_unrendered(files, renderers)
    found = (*ignore.problems, *chosen.problems, *problems)
    folder = posixpath.dirname(path) if top[0].startswith("100") else path
    revision = Revision(sha, when, chosen.files, found, chosen.unrendered, path or ".", folder=folder, commit=commit)
    ignores = any(is_ignore_file(mode, file) for mode, _, file in (*above, *entries))
    is_plain = top[0] == FOLDER_MODE and not (ignores or renderers or any(mode == LINK_MODE for mode, _, _ in own))
    return ListedFiles(revision, top, (*above,), is_plain, counted.entries, counted.files, linked.links)


def listed_after(
    before: ListedFiles, clone: Clone, sha: str, path: str, bring: Callable[[Iterable[str]], None]
) -> ListedFiles | None:
    """Return the same of the commit *sha* by what is another than in the listing *before*; None where it has to be read whole.

    That is where something else changed than manifest files, or what says nothing about them; and where much did.

    Raises:
        SourceError: a folder of the commit can't be read.
    """
    folders, was = CommitFolders(clone, sha), before.revision
    top = (*folders.at(path), path)
    if not before.is_plain or top[0] != FOLDER_MODE or _ignore_files_above(folders, path):
        return None
    files, is_longer, entries, count = dict(was.files), False, before.entries, before.files
    changed = folders.difference(before.top[1], top[1], f"{path}/" if path else "")
    fresh: list[str] = []
    for number, (file, one, other) in enumerate(changed):
        sides = [each for each in (one, other) if each != NOTHING]
        if number >= _MOST_CHANGED or not all(_says_nothing_of_others(clone, mode, file, path) for mode, _ in sides):
            return None
        entries += (other != NOTHING) - (one != NOTHING)
        count += (other[0] not in {"", FOLDER_MODE}) - (one[0] not in {"", FOLDER_MODE})
        if not is_manifest_path(inside(file, path)):
            continue
        if other[0] in {"", FOLDER_MODE}:
            files.pop(file, None)
        else:
            is_longer = is_longer or file not in files
            files[file] = other[1]
            fresh.append(other[1])
    if entries > clone.limits.entries or count > clone.limits.files:
        return None
    bring(fresh)
    if is_longer:
        files = dict(sorted(files.items(), key=_in_order_of_git))
    commit = commit_of(clone, sha)
    revision = replace(was, sha=sha, committed_at=commit.committed_at, commit=commit, files=files)
    return ListedFiles(revision, top, (), is_plain=True, entries=entries, files=count)


_MOST_CHANGED: Final = 2_000
"""Beyond so many entries that changed, reading all of them is no more work."""


def _says_nothing_of_others(clone: Clone, mode: str, file: str, path: str) -> bool:
    """Return whether an entry counts for itself alone: it is a folder or a file of a usual name, and no link, ignore file or renderer's."""
    deepest = clone.limits.depth + (path.count("/") + 1 if path else 0)
    is_usual = file.isprintable() and len(file) <= LONGEST_PATH_BYTES and file.count("/") <= deepest
    is_special = mode in {LINK_MODE, SUBMODULE_MODE} or is_ignore_file(mode, file)
    return is_usual and not is_special and file.rpartition("/")[2] not in {*RENDERER_FILES, *TELLING}


def _in_order_of_git(file: tuple[str, str]) -> bytes:
    return file[0].encode(errors="surrogateescape")


def read_at(clone: Clone, folders: CommitFolders, path: str) -> Iterator[str]:
    """Yield the ids of all files that are read of a commit's *folders* at *path* where they are plain manifests; nothing where there is nothing.

    Raises:
        SourceError: the commit isn't in the clone, or has too much at the path.
    """
    mode, found = folders.at(path)
    if mode:
        entries = (*_ignore_files_above(folders, path), *_below(folders, (mode, found, path), _counted(clone, path)))
        yield from (blob for mode, blob, file in entries if is_read(mode, file, path))


def differs(clone: Clone, one: str, other: str, path: str, links: Iterable[str] = ()) -> bool:
    """Tell whether two commits have something else at *path*, other ignore files above it, or something else behind the *links* there: where they don't, they list the same files.

    Only folders on the way are read, as far as they aren't the same.

    Raises:
        SourceError: a commit isn't in the clone.
    """
    was, now = CommitFolders(clone, one), CommitFolders(clone, other)
    before, after = (FOLDER_MODE, was.top()), (FOLDER_MODE, now.top())
    for name in filter(None, path.split("/")):
        if before == after or before[0] != FOLDER_MODE or after[0] != FOLDER_MODE:
            break
        old, new = was.folder(before[1]), now.folder(after[1])
        if old.get(IGNORE_FILE) != new.get(IGNORE_FILE):
            return True
        before, after = old.get(name, NOTHING), new.get(name, NOTHING)
    if before != after:
        return True
    through = (path, *links) if links or before[0] == LINK_MODE else ()
    return any(was.at(each) != now.at(each) for each in through)


def way_inputs_at(clone: Clone, sha: str, path: str) -> tuple[Entry, ...]:
    """Return all that decides which way the folder *path* goes in the commit *sha*: its ignore files, and which files there are that tell.

    Raises:
        SourceError: the commit isn't in the clone.
    """
    folders, prefix = CommitFolders(clone, sha), f"{path}/" if path else ""
    telling = ((folders.at(f"{prefix}{name}")[0], "", name) for name in TELLING)
    own = (*folders.at(f"{prefix}{IGNORE_FILE}"), IGNORE_FILE)
    return (*_ignore_files_above(folders, path), own, *telling)


def commit_of(clone: Clone, sha: str) -> Commit:
    """Return who made a commit, when and why.

    Raises:
        SourceError: the commit can't be read.
    """
    if (known := _COMMITS.get((clone.folder, sha))) is not None:
        return known
    found = clone.reader.ask(f"{sha}^{{commit}}", _MOST_COMMIT_BYTES)
    head, _, message = (found.data if found else b"").partition(b"\n\n")
    when = re.search(rb"^committer .*> (\d{1,11}) [+-]\d{4}$", head, re.MULTILINE)
    if when is None:
        raise SourceError(SourceFault.CORRUPT, f"{clone.repository}: the commit {sha[:7]} can't be read")
    author = re.search(rb"^author (.*?) ?<", head, re.MULTILINE)
    if len(_COMMITS) >= _MOST_COMMITS:
        _COMMITS.clear()
    subject = message.lstrip(b"\n").partition(b"\n")[0]
    words = (one_line(text.decode(errors="replace"))[:_MOST_SHOWN] for text in (author[1] if author else b"", subject))
    commit = _COMMITS[clone.folder, sha] = Commit(sha, next(words), rfc3339(when[1].decode()), next(words))
    return commit


_COMMITS: Final[dict[tuple[Path, str], Commit]] = {}
"""Who made commits and when, by clone: all who follow a repository ask for the same."""
_MOST_COMMITS: Final = 256
_MOST_SHOWN: Final = 200


_MOST_COMMIT_BYTES = 4 * MEBIBYTE
"""How much is read of a commit; its committer stands near the beginning."""


def _way(
    clone: Clone,
    folders: CommitFolders,
    top: Entry,
    render: Render,
    above: Sequence[Entry],
    bring: Callable[[Iterable[str]], None],
) -> Render:
    """Return which way the folder *top* goes, by those of its files that tell and aren't ignored.

    Raises:
        SourceError: the folder can't be read.
    """
    if render is not Render.AUTO:
        return render
    mode, found, path = top
    if mode != FOLDER_MODE:
        return Render.RAW
    own, prefix = folders.folder(found), f"{path}/" if path else ""
    files = [f"{prefix}{name}" for name in TELLING if own.get(name, NOTHING)[0] not in {"", FOLDER_MODE}]
    if not files:
        return Render.RAW
    ignore = _Ignoring(clone, where_of(clone, path), bring, above)(
        [(*own.get(IGNORE_FILE, NOTHING), f"{prefix}{IGNORE_FILE}")]
    )
    return way(render, (file for file in files if not ignore.matches(file)))


def _top(clone: Clone, folders: CommitFolders, sha: str, path: str) -> Entry:
    """Return the entry of *path* itself.

    Raises:
        SourceError: there is nothing.
    """
    mode, found = folders.at(path)
    parent = folders.at(path.rpartition("/")[0])[0] if path else FOLDER_MODE
    if mode and parent == FOLDER_MODE:
        return mode, found, path
    raise SourceError(
        SourceFault.NO_SUCH_PATH,
        f"{clone.repository}: there is no {path} at {sha[:7]}",
        "paths start at the root of the repository",
    )


def _below(folders: CommitFolders, top: Entry, counted: Counted) -> list[Entry]:
    """Return mode, id and path of everything below *top* that counts for something; it is one file if that is what *top* is.

    All of it is *counted* as it comes.

    Raises:
        SourceError: there is too much of something.
    """
    if top[0] != FOLDER_MODE:
        counted.take(top[2], is_folder=False)
        return [top]
    path, found = top[2], []
    for entry in folders.below(top[1], f"{path}/" if path else ""):
        mode, _, file = entry
        counted.take(file, is_folder=mode == FOLDER_MODE)
        if counts(mode, file, path):
            found.append(entry)
    return found


def _counted(clone: Clone, path: str) -> Counted:
    """Return what counts all that a commit has at *path*."""
    where = where_of(clone, path)
    return Counted(clone.limits, path, lambda what, name: _too_much(where, what, name))


def _too_much(where: str, what: str, name: str = "") -> SourceError:
    return too_much(where, what, "follow a folder of it by path", raising(name) if name else "")


def _ignore_files_above(folders: CommitFolders, path: str) -> list[Entry]:
    """Return the entries of what the folders above the path ignore; links are none."""
    parts, found = path.split("/") if path else [], list[Entry]()
    for length in range(len(parts)):
        above = "/".join(parts[:length])
        mode, folder = folders.at(above)
        own = folders.folder(folder).get(IGNORE_FILE, NOTHING) if mode == FOLDER_MODE else NOTHING
        name = f"{above}/{IGNORE_FILE}" if above else IGNORE_FILE
        found += [(*own, name)] if is_ignore_file(own[0], name) else []
    return found


class _Ignoring:
    """The ignore files of a commit as they are met, with those *above* it, and texts of links; *bring* fetches both, all that are met at once.

    Many may be the same few bytes in the repository.
    """

    def __init__(
        self, clone: Clone, where: str, bring: Callable[[Iterable[str]], None], above: Sequence[Entry] = ()
    ) -> None:
        self._clone, self._bring = clone, bring
        self._texts, self._waiting = IgnoreTexts(where), [*above]
        self._ignore = SourceIgnore({})

    def __call__(self, entries: Sequence[Entry]) -> SourceIgnore:
        """Take in what is among *entries*, and return what is left out by now.

        Raises:
            SourceError: there are too many, or too much to be held.
        """
        met = [*self._waiting, *(each for each in entries if each[0] == LINK_MODE or is_ignore_file(each[0], each[2]))]
        self._waiting = []
        self._bring(blob for _, blob, _ in met)
        before = len(self._texts.by_folder)
        for mode, blob, file in met:
            if is_ignore_file(mode, file):
                content = self._clone.reader.ask(blob)
                self._texts.add(file.rpartition("/")[0], content.data if content else b"")
        if len(self._texts.by_folder) > before:
            self._ignore = SourceIgnore(dict(self._texts.by_folder))
        return self._ignore


def _renderers(entries: list[tuple[str, str, str]], root: str, ignore: SourceIgnore) -> list[str]:
    """Return the files among *entries* that make their folder the input of a renderer."""
    files = (
        path
        for mode, _, path in entries
        if mode not in {FOLDER_MODE, SUBMODULE_MODE} and is_renderer_path(inside(path, root))
    )
    return [path for path in files if path.isprintable() and not ignore.matches(path)]


def _select(
    entries: list[tuple[str, str, str]], root: str, ignore: SourceIgnore
) -> tuple[dict[str, str], list[Problem]]:
    """Return the manifest files among *entries*, and a problem for each that can't be read as one but may have been meant."""
    files: dict[str, str] = {}
    problems: list[Problem] = []
    for mode, blob, path in entries:
        seen = inside(path, root)
        chosen = path == root or is_manifest_path(seen)
        if mode in {LINK_MODE, SUBMODULE_MODE}:
            chosen = chosen or ("." not in seen.rpartition("/")[2] and not seen.startswith(".") and "/." not in seen)
        if not chosen or ignore.matches(path):
            continue
        if not path.isprintable():
            shown = path.encode("utf-8", "backslashreplace").decode("unicode_escape", "ignore")
            problems.append(
                Problem(one_line(shown), 0, "a file name with control characters or not in UTF-8", "rename it")
            )
        elif mode == LINK_MODE:
            problems.append(Problem(path, 0, NOWHERE, NOWHERE_HINT))
        elif mode == SUBMODULE_MODE:
            problems.append(
                Problem(
                    path,
                    0,
                    "a submodule, which isn't followed",
                    f"follow it by its own Sync, or list it in {IGNORE_FILE}",
                )
            )
        else:
            files[path] = blob
    return files, problems


def blobs_at(clone: Clone, path: str, shas: Sequence[str]) -> list[str]:
    """Return the id of the file at *path* in each of these commits; empty where it isn't there, or the commit isn't.

    Read from the folders that hold it, since git tells a file that isn't in the clone from one that never was in no other way
    for many commits at once.
    """
    folder, _, name = path.rpartition("/")
    trees = clone.objects([f"{sha}:{folder}" for sha in shas], kind=b"tree")
    return [_blob_in(tree or b"", name.encode(), len(sha) // 2) for sha, tree in zip(shas, trees, strict=True)]


def _blob_in(tree: bytes, name: bytes, id_bytes: int) -> str:
    """Return the id of the file *name* in a folder as git stores it: mode, space, name, zero byte, id, and the next."""
    at = 0
    while (end := tree.find(b"\0", at)) >= 0:
        mode, _, found = tree[at:end].partition(b" ")
        at = end + 1 + id_bytes
        if found == name and mode not in {b"40000", b"160000"}:
            return tree[end + 1 : at].hex()
    return ""


def rfc3339(epoch_s: str) -> str:
    """Return git's seconds since 1970 as RFC 3339 in UTC."""
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def weighed(clone: Clone, revision: Revision, known: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of the files of *revision* by their ids, if they aren't too large altogether; those *known* needn't be asked for.

    Raises:
        SourceError: they are.
    """
    blobs, most = dict.fromkeys(revision.files.values(), 0), clone.limits.revision_bytes
    new = [blob for blob in blobs if blob not in known]
    found = {blob: facts.size if facts else 0 for blob, facts in zip(new, clone.reader.facts(new), strict=True)}
    sizes = {**dict(zip(blobs, map(known.get, blobs, blobs.values()), strict=True)), **found}
    if sum(map(sizes.__getitem__, revision.files.values())) > most:
        where = where_of(clone, revision.path)
        raise _too_much(where, f"its files take more than {most // MEBIBYTE} MiB", "revision_bytes")
    return sizes
