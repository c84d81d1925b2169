"""What one commit holds at a path, read from git's object store: which files are manifests, and what is wrong with others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from kubectl_reconcile.core.manifests.files import (
    IGNORE_FILE,
    SourceIgnore,
    is_manifest_path,
    is_renderer_path,
    without_unrendered,
)
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.entries import KUSTOMIZATIONS
from kubectl_reconcile.core.resources.sync import Render
from kubectl_reconcile.source.clone import Clone
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.limits import LONGEST_PATH_BYTES, MEBIBYTE, IgnoreTexts, raising, too_much
from kubectl_reconcile.source.remote import Repository

_FOLDER, _LINK, _SUBMODULE = "040000", "120000", "160000"


def listed(
    clone: Clone,
    repository: Repository,
    sha: str,
    path: str,
    bring: Callable[[Iterable[str]], None],
    render: Render = Render.AUTO,
) -> Revision:
    """Return the revision of the commit *sha*: the manifest files at *path*, and what is wrong with others; or that it is an overlay.

    *bring* is asked once, for the ids of all files that will be read: it fetches those that aren't in the clone.

    Raises:
        SourceError: the commit has nothing at the path, or isn't in the clone.
    """
    when = clone.run(["log", "--max-count=1", "--format=%ct", f"{sha}^{{commit}}"]).decode()
    if _is_overlay(clone, repository, sha, path, render, bring):
        return Revision(sha, rfc3339(when), {}, path=path or ".", overlay=path)
    entries = _below(clone, repository, sha, path)
    above = _ignore_files_above(clone, sha, path)
    bring(blob for mode, blob, file in (*above, *entries) if _is_read(mode, file, path))
    ignore = SourceIgnore(_ignore_files(clone, _where(repository, path), [*above, *entries]))
    files, problems = _select(entries, path, ignore)
    renderers = _renderers(entries, path, ignore)
    if render is Render.RAW:  # its own kustomization says nothing then; those below are other folders' still
        renderers = [each for each in renderers if each.rpartition("/")[0] != path]
    chosen = without_unrendered(files, renderers)
    return Revision(
        sha,
        rfc3339(when),
        chosen.files,
        (*ignore.problems, *chosen.problems, *problems),
        chosen.unrendered,
        path or ".",
    )


def _is_overlay(
    clone: Clone,
    repository: Repository,
    sha: str,
    path: str,
    render: Render,
    bring: Callable[[Iterable[str]], None],
) -> bool:
    """Return whether the folder at *path* is to be rendered: it has a kustomization file that isn't ignored, or is said to be one.

    Raises:
        SourceError: there is no such folder.
    """
    if render is not Render.AUTO:
        if render is Render.KUSTOMIZE:
            _top(clone, repository, sha, path)
        return render is Render.KUSTOMIZE
    prefix = f"{path}/" if path else ""
    names = [f"{prefix}{name}" for name in (*KUSTOMIZATIONS, IGNORE_FILE)]
    there = _entries(clone.run(["ls-tree", "-z", "--full-tree", sha, "--", *names]))
    files = [
        file
        for mode, _, file in there
        if mode != _FOLDER and not file.endswith(f"/{IGNORE_FILE}") and file != IGNORE_FILE
    ]
    if not files:
        return False
    ignoring = [*_ignore_files_above(clone, sha, path), *there]
    bring(blob for mode, blob, file in ignoring if _is_ignore_file(mode, file))
    ignore = SourceIgnore(_ignore_files(clone, _where(repository, path), ignoring))
    return any(not ignore.matches(file) for file in files)


def _top(clone: Clone, repository: Repository, sha: str, path: str) -> tuple[str, str, str]:
    """Return the entry of *path* itself.

    Raises:
        SourceError: there is nothing.
    """
    if not path:
        return _FOLDER, sha, ""
    if found := _entries(clone.run(["ls-tree", "-z", "--full-tree", sha, "--", path])):
        return found[0]
    raise SourceError(
        SourceFault.NO_SUCH_PATH,
        f"{repository}: there is no {path} at {sha[:7]}",
        "paths start at the root of the repository",
    )


def _below(clone: Clone, repository: Repository, sha: str, path: str) -> list[tuple[str, str, str]]:
    """Return mode, id and path of everything below the path that counts for something; of one file if that is what it names.

    Folders are listed too, and counted as they come: a few bytes may be folders of folders without end, with no file in them.

    Raises:
        SourceError: there is nothing at the path, or too much of something.
    """
    top = _top(clone, repository, sha, path)
    if top[0] != _FOLDER:
        return [top]
    below = ["--", f"{path}/"] if path else []
    limits, where, found = clone.limits, _where(repository, path), []
    files, deepest = 0, limits.depth + (path.count("/") + 1 if path else 0)
    with contextlib.closing(clone.pieces(["ls-tree", "-r", "-t", "-z", "--full-tree", sha, *below])) as pieces:
        for count, piece in enumerate(pieces, 1):
            entry = mode, _, file = _entry(piece)
            files += mode != _FOLDER
            if count > limits.entries:
                raise _too_much(where, f"there are more than {limits.entries:,} files and folders", "entries")
            if files > limits.files:
                raise _too_much(where, f"there are more than {limits.files:,} files", "files")
            if file.count("/") > deepest:
                raise _too_much(where, f"{file[:80]}… is below more than {limits.depth} folders", "depth")
            if len(piece) > LONGEST_PATH_BYTES:
                raise _too_much(where, f"{file[:80]}… is no path that a file can have")
            if _counts(mode, file, path):
                found.append(entry)
    return found


def _counts(mode: str, file: str, path: str) -> bool:
    """Return whether an entry is read, is the reason why others aren't, or deserves a word."""
    return mode != _FOLDER and (
        _is_read(mode, file, path) or mode in {_LINK, _SUBMODULE} or is_renderer_path(_inside(file, path))
    )


def _too_much(where: str, what: str, name: str = "") -> SourceError:
    return too_much(where, what, "follow a folder of it by path", raising(name) if name else "")


def _where(repository: Repository, path: str) -> str:
    return f"{repository}, {path}" if path not in {"", "."} else f"{repository}"


def _ignore_files_above(clone: Clone, sha: str, path: str) -> list[tuple[str, str, str]]:
    """Return the entries of what the folders above the path ignore."""
    parts = path.split("/") if path else []
    names = ["/".join([*parts[:length], IGNORE_FILE]) for length in range(len(parts))]
    return _entries(clone.run(["ls-tree", "-z", "--full-tree", sha, "--", *names])) if names else []


def _is_read(mode: str, file: str, path: str) -> bool:
    """Return whether the content of *file* counts when the revision at *path* is read."""
    wanted = file == path or is_manifest_path(_inside(file, path)) or _is_ignore_file(mode, file)
    return wanted and mode not in {_FOLDER, _LINK, _SUBMODULE}


def _ignore_files(clone: Clone, where: str, entries: list[tuple[str, str, str]]) -> dict[str, bytes]:
    """Return the ignore files among *entries* by folder. Many may be the same few bytes in the repository.

    Raises:
        SourceError: they are too many, or too much to be held.
    """
    found = [(file.rpartition("/")[0], blob) for mode, blob, file in entries if _is_ignore_file(mode, file)]
    texts = IgnoreTexts(where)
    with contextlib.closing(clone.objects([blob for _, blob in found])) as contents:
        for (folder, _), data in zip(found, contents, strict=True):
            texts.add(folder, data or b"")
    return texts.by_folder


def _entries(listing: bytes) -> list[tuple[str, str, str]]:
    return [_entry(piece) for piece in listing.split(b"\0") if piece]


def _entry(piece: bytes) -> tuple[str, str, str]:
    """Return mode, id and path of one line of a listing."""
    facts, _, path = piece.decode(errors="surrogateescape").partition("\t")
    mode, _, blob = facts.split(" ")
    return mode, blob, path


def _is_ignore_file(mode: str, path: str) -> bool:
    return path.rpartition("/")[2] == IGNORE_FILE and mode not in {_FOLDER, _LINK, _SUBMODULE}


def _inside(path: str, root: str) -> str:
    """Return *path* as seen from the followed folder; a file that is followed itself goes by its name."""
    return path[len(root) + 1 :] if root and path != root else path.rpartition("/")[2] if root else path


def _renderers(entries: list[tuple[str, str, str]], root: str, ignore: SourceIgnore) -> list[str]:
    """Return the files among *entries* that make their folder the input of a renderer."""
    files = (
        path for mode, _, path in entries if mode not in {_FOLDER, _SUBMODULE} and is_renderer_path(_inside(path, root))
    )
    return [path for path in files if path.isprintable() and not ignore.matches(path)]


def _select(
    entries: list[tuple[str, str, str]], root: str, ignore: SourceIgnore
) -> tuple[dict[str, str], list[Problem]]:
    """Return the manifest files among *entries*, and a problem for each that can't be read as one but may have been meant."""
    files: dict[str, str] = {}
    problems: list[Problem] = []
    for mode, blob, path in entries:
        inside = _inside(path, root)
        chosen = path == root or is_manifest_path(inside)
        if mode in {_LINK, _SUBMODULE}:
            chosen = chosen or (
                "." not in inside.rpartition("/")[2] and not inside.startswith(".") and "/." not in inside
            )
        if not chosen or ignore.matches(path):
            continue
        if not path.isprintable():
            shown = path.encode("utf-8", "backslashreplace").decode("unicode_escape", "ignore")
            problems.append(
                Problem(one_line(shown), 0, "a file name with control characters or not in UTF-8", "rename it")
            )
        elif mode == _LINK:
            problems.append(
                Problem(
                    path, 0, "a symbolic link, which isn't followed", f"commit the file, or list it in {IGNORE_FILE}"
                )
            )
        elif mode == _SUBMODULE:
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


def weighed(clone: Clone, repository: Repository, revision: Revision, known: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of the files of *revision* by their ids, if they aren't too large altogether; those *known* needn't be asked for.

    Raises:
        SourceError: they are.
    """
    blobs, most = list(dict.fromkeys(revision.files.values())), clone.limits.revision_bytes
    new = [blob for blob in blobs if blob not in known]
    sizes = {blob: known[blob] for blob in blobs if blob in known} | dict(zip(new, _sizes(clone, new), strict=True))
    if sum(sizes[blob] for blob in revision.files.values()) > most:
        where = _where(repository, revision.path)
        raise _too_much(where, f"its files take more than {most // MEBIBYTE} MiB", "revision_bytes")
    return sizes


def _sizes(clone: Clone, blob_ids: list[str]) -> list[int]:
    """Return how many bytes each of these files has; of one that isn't here none."""
    if not blob_ids:
        return []
    questions = "".join(f"{blob_id}\n" for blob_id in blob_ids).encode()
    answers = clone.run(["cat-file", "--batch-check=%(objectsize)", "--buffer"], stdin=questions).split(b"\n")
    return [int(answer) if answer.isdigit() else 0 for answer in answers[: len(blob_ids)]]
