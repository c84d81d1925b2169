"""What one commit holds at a path, read from git's object store: which files are manifests, and what is wrong with others."""

from __future__ import annotations

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
from kubectl_reconcile.source.clone import Clone
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.remote import Repository

_FOLDER, _LINK, _SUBMODULE = "040000", "120000", "160000"


def listed(clone: Clone, repository: Repository, sha: str, path: str) -> Revision:
    """Return the revision of the commit *sha*: the manifest files at *path*, and what is wrong with others.

    Raises:
        SourceError: the commit has nothing at the path, or isn't in the clone.
    """
    when = clone.run(["show", "--no-patch", "--format=%ct", f"{sha}^{{commit}}"]).decode()
    entries = _below(clone, repository, sha, path)
    ignore = SourceIgnore(_ignore_files(clone, sha, path, entries))
    files, problems = _select(entries, path, ignore)
    chosen = without_unrendered(files, _renderers(entries, path, ignore))
    return Revision(
        sha,
        rfc3339(when),
        chosen.files,
        (*ignore.problems, *chosen.problems, *problems),
        chosen.unrendered,
        path or ".",
    )


def _below(clone: Clone, repository: Repository, sha: str, path: str) -> list[tuple[str, str, str]]:
    """Return mode, id and path of everything below the path; of one file if that is what it names."""
    if path:
        top = _entries(clone.run(["ls-tree", "-z", "--full-tree", sha, "--", path]))
        if not top:
            message = f"{repository}: there is no {path} at {sha[:7]}"
            raise SourceError(SourceFault.NO_SUCH_PATH, message, "paths start at the root of the repository")
        if top[0][0] != _FOLDER:
            return top
    below = ["--", f"{path}/"] if path else []
    return _entries(clone.run(["ls-tree", "-r", "-z", "--full-tree", sha, *below]))


def _ignore_files(clone: Clone, sha: str, path: str, entries: list[tuple[str, str, str]]) -> dict[str, bytes]:
    parts = path.split("/") if path else []
    above = ["/".join(parts[:length]) for length in range(len(parts))]
    names = [f"{sha}:{folder}/{IGNORE_FILE}" if folder else f"{sha}:{IGNORE_FILE}" for folder in above]
    found = [(folder, data) for folder, data in zip(above, clone.objects(names), strict=True) if data is not None]
    inside = [(file.rpartition("/")[0], blob) for mode, blob, file in entries if _is_ignore_file(mode, file)]
    contents = clone.objects([blob for _, blob in inside])
    found += [(folder, data or b"") for (folder, _), data in zip(inside, contents, strict=True)]
    return dict(found)


def _entries(listing: bytes) -> list[tuple[str, str, str]]:
    entries = []
    for line in listing.decode(errors="surrogateescape").split("\0"):
        if line:
            facts, _, path = line.partition("\t")
            mode, _, blob = facts.split(" ")
            entries.append((mode, blob, path))
    return entries


def _is_ignore_file(mode: str, path: str) -> bool:
    return path.rpartition("/")[2] == IGNORE_FILE and mode not in {_LINK, _SUBMODULE}


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


def rfc3339(epoch_s: str) -> str:
    """Return git's seconds since 1970 as RFC 3339 in UTC."""
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
