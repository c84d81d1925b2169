"""What an overlay refers to elsewhere: repositories of Git, and files of web servers, in the spellings that kustomize knows.

Vocabulary: an entry of ``resources``, ``bases`` or ``components`` is *remote* where kustomize would fetch it. Any other names something of the same repository.

Rules: a URL names a repository where it has ``?ref=``, ``//`` before a path, ``.git`` or ``git::``; then all before that path is the repository, and without any of these marks
the first two steps of its path. Else it must be called as a file of manifests is. Without a ref, that of the default branch is meant. What kustomize reads in more than one way is refused.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.manifests.editing import restated
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.rendering.entries import first_tree, line_of
from kubectl_reconcile.core.rendering.pinned.pins import HEAD, BasePin, FilePin
from kubectl_reconcile.core.resources.fields import SyncSpecError

LISTS: Final = ("resources", "bases", "components")
"""The fields of a kustomization whose entries may be remote."""

_OTHERS: Final = ("generators", "transformers", "validators")
"""Those whose entries may be folders, too, but never remote."""

_MOST: Final = 1000
_SCP: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*@[A-Za-z0-9.-]+:(?!//).+")
_SHORT: Final = re.compile(r"github\.com[:/]")
_FILE: Final = re.compile(r"\.(ya?ml|json)$")
_SHOWN: Final = 80
_STEPS: Final = 2
"""How many steps of a path are the repository where nothing says where that ends: owner and name."""
_KNOWN: Final = frozenset({"ref", "version", "timeout", "submodules"})
"""What a repository's URL may ask for; the last two say how kustomize would fetch it."""
_WRITE: Final = "write https://HOST/REPOSITORY.git//PATH?ref=COMMIT"


class Remote(Struct, frozen=True):
    """What an entry refers to: *wanted*, which is bare, and the folder at *path* of a repository; *field* and *at* are where it stands, and *line*."""

    wanted: BasePin | FilePin
    path: str
    field: str
    at: int
    line: int


class Local(Struct, frozen=True):
    """An entry that names something of the same repository, in that *line*."""

    name: str
    line: int = 0


def entries_of(path: str, data: bytes, problems: list[Problem]) -> Iterator[Remote | Local]:
    """Yield what the entries of the kustomization at *path* refer to. What can't be fetched as it is written goes to *problems*."""
    tree = first_tree(data)
    for field in (*LISTS, *_OTHERS) if isinstance(tree, dict) else ():
        for at, text in enumerate(_strings(tree.get(field))):
            line = line_of(data, (0, field, at)) if text else 0
            if not is_remote(text) or field in _OTHERS:
                yield Local(text, line)
                continue
            try:
                wanted, folder = remote_of(text, f"{field}[{at}]")
            except SyncSpecError as error:
                problems.append(Problem(path, line, str(error), _WRITE))
            else:
                yield Remote(wanted, folder, field, at, line)


def is_remote(text: str) -> bool:
    """Tell whether kustomize would fetch what an entry names."""
    is_url = "://" in text or text.startswith(("git::", "gh:"))
    return "\n" not in text and (is_url or bool(_SHORT.match(text)) or bool(_SCP.fullmatch(text)))


def remote_of(text: str, above: str) -> tuple[BasePin | FilePin, str]:
    """Return what a remote entry refers to, and which folder of it; *above* is what the entry is called in an error.

    Raises:
        SyncSpecError: it can't be fetched, or can be read in more than one way.
    """
    url, _, query = text.removeprefix("git::").partition("?")
    shown = repr(without_credentials(text)[:_SHOWN])
    if url.startswith("gh:"):
        raise SyncSpecError(above, f"{shown} is short for a URL in one tool alone")
    url = f"https://{url[:10]}/{url[11:]}" if _SHORT.match(url) else url
    asked = dict(each.partition("=")[::2] for each in query.split("&")) if query else {}
    parts = _split(url)
    is_web = url.startswith(("https://", "http://"))
    marked = text.startswith("git::") or asked.keys() & {"ref", "version"} or parts is not None
    if is_web and not marked and _FILE.search(url):
        return FilePin.of({"url": text}, above), ""
    if is_web and not marked and not query and len(url.split("/")) != 3 + _STEPS:
        raise SyncSpecError(above, f"{shown} may be a file or a repository")
    if other := sorted(asked.keys() - _KNOWN):
        raise SyncSpecError(above, f"{shown} asks for {other[0][:40]}, which isn't known")
    repository, path = parts if parts is not None else _by_steps(url)
    ref = asked.get("ref") or asked.get("version") or HEAD
    return BasePin.of({"repository": repository, "ref": ref}, above), _plain(path, above)


def _split(url: str) -> tuple[str, str] | None:
    """Return repository and path where a URL says where the one ends; None where it doesn't."""
    start = url.find("://") + 3 if "://" in url else 0
    if (found := re.search(r"/_git/[^/]+", url[start:])) is not None:
        end = start + found.end()
        return url[:end], url[end + 1 :]
    if (at := url.find("//", start)) >= 0:
        return url[:at], url[at + 2 :]
    if found := re.search(r"\.git(/|$)", url[start:]):
        end = start + found.start() + len(".git")
        return url[:end], url[end + 1 :]
    return None


def _by_steps(url: str) -> tuple[str, str]:
    """Return repository and path where nothing says where the one ends."""
    scheme, mark, rest = url.rpartition("://")
    host, after, path = rest.partition("/" if mark else ":")
    steps = path.split("/")
    return f"{scheme}{mark}{host}{after}{'/'.join(steps[:_STEPS])}", "/".join(steps[_STEPS:])


def _plain(path: str, above: str) -> str:
    """Return a path within a repository in its plain form.

    Raises:
        SyncSpecError: it leads out.
    """
    steps = [step for step in path.split("/") if step not in {"", "."}]
    if ".." in steps or not path.isprintable() or "\\" in path:
        raise SyncSpecError(above, f"{path[:80]!r} isn't a path within the repository")
    return "/".join(steps)


def _strings(value: Any) -> list[str]:
    """Return the texts of a list; what is none stands for itself, as an empty one, so that all keep their numbers."""
    return [each if isinstance(each, str) else "" for each in value][:_MOST] if isinstance(value, list) else []


def restating(path: str, data: bytes, remotes: Mapping[Remote, str]) -> bytes:
    """Return the kustomization at *path*, which holds *data*, with paths instead of the entries of *remotes*.

    Raises:
        EditError: it can't be changed so.
    """
    for remote, place in remotes.items():
        data = restated(data, path, (remote.field, remote.at), place)
    return data
