"""The lock file: by digests and commits, all that a chart or an overlay has fetched.

It stands in the folder that is rendered, and whoever follows that folder fetches what it says and nothing else. A version can be published
again with something else in it, and the digest of ``Chart.lock`` is of the list of dependencies alone; so each entry has the digest of what was
fetched when it was locked: of an archive or a file its SHA-256, in a registry that of the manifest, in Git the commit.

Pure: text in, value out, and back.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.scalars import resolve
from kubectl_reconcile.core.manifests.which_files import LOCK_FILE
from kubectl_reconcile.core.manifests.yaml_reader import Place
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.entries import line_of
from kubectl_reconcile.core.rendering.pinned.pins import FIELDS, Pin, bare, is_alike, list_of, pin_of, version_of
from kubectl_reconcile.core.resources.fields import SyncSpecError, check_fields

MOST_BYTES: Final = 256 * 1024
MOST_PINS: Final = 500
"""How many entries a lock file may have; charts with many dependencies have some dozens."""
_FORMAT: Final = 1
_HEADER: Final = "# Written by kubectl reconcile lock: what is fetched to render this folder, by digests.\n"


class Lock(Struct, frozen=True):
    """What is pinned: *pins*, none of them bare. *places* are the lines of their entries."""

    pins: tuple[Pin, ...] = ()
    places: Mapping[Pin, int] = {}

    def find(self, wanted: Pin) -> Pin | None:
        """Return the entry for what is *wanted*, which is bare; None where there is none."""
        return next((each for each in self.pins if bare(each) == wanted), None)

    def other_version(self, wanted: Pin) -> str:
        """Return another version of the same that is pinned, empty where none is."""
        return next((version_of(each) for each in self.pins if is_alike(each, wanted)), "")


def lock_file(folder: str) -> str:
    """Return the path of the lock file of a *folder*."""
    return posixpath.join(folder, LOCK_FILE)


def command(folder: str) -> str:
    """Return the command that writes the lock file of a *folder*, as it is called from the top of the repository."""
    return f"kubectl reconcile lock {folder or '.'}"


# --- reading --------------------------------------------------------------------------------------------------------


def lock_of(data: bytes, path: str) -> tuple[Lock, tuple[Problem, ...]]:
    """Return what the lock file at *path* says, and what is wrong with it: then it isn't to be used."""
    documents, problems = yaml_reader.read(data, path, most_bytes=MOST_BYTES)
    if problems:
        return Lock(), problems
    tree = documents[0].tree if len(documents) == 1 else None
    if not isinstance(tree, dict):
        return Lock(), (
            Problem(
                path, 0, "isn't a lock file: it must be one document with version, and charts, bases or files", _AGAIN
            ),
        )
    if (form := tree.get("version")) != _FORMAT:
        said = f"has version {form!r}, and {_FORMAT} is the one that is known"
        return Lock(), (Problem(path, line_of(data, (0, "version")), said, "upgrade kubectl-reconcile"),)
    reader = _Reader(path, data)
    reader.try_to((0,), partial(check_fields, tree, ("version", *FIELDS), "the lock file"))
    found = {pin: line for name in FIELDS for pin, line in reader.pins(name, tree.get(name)).items()}
    return (Lock(), tuple(reader.problems)) if reader.problems else (Lock(tuple(found), found), ())


_AGAIN: Final = "kubectl reconcile lock writes it again"


class _Reader:
    """Collects what is wrong with the file at *path*, which holds *data*."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path, self._data = path, data
        self.problems: list[Problem] = []

    def try_to(self, place: Place, work: Callable[[], Any]) -> Any:
        """Return what *work* returns, or note that something at *place* can't be meant so."""
        try:
            return work()
        except SyncSpecError as error:
            self.problems.append(Problem(self._path, line_of(self._data, place), str(error), _AGAIN))
            return None

    def pins(self, name: str, said: Any) -> dict[Pin, int]:
        """Return the pins of the list *name* that is *said*, with their lines."""
        found: dict[Pin, int] = {}
        for at, fields in enumerate(self._items(name, said)):
            place = (0, name, at)
            pin = self.try_to(place, partial(pin_of, name, fields, f"{name}[{at}]"))
            if pin is None:
                continue
            line = line_of(self._data, place)
            if twice := next((each for each in found if bare(each) == bare(pin)), None):
                self.problems.append(Problem(self._path, line, f"{pin} is in line {found[twice]}, too", "remove one"))
            found[pin] = line
        return found

    def _items(self, name: str, said: Any) -> Sequence[Any]:
        """Return the items of a list of entries; none of what isn't one, or is too long."""
        items = [] if said is None else said
        why = "" if isinstance(items, list) else "isn't a list"
        if not why and len(items) > MOST_PINS:
            why = f"has more than {MOST_PINS} entries"
        if why:
            self.problems.append(Problem(self._path, line_of(self._data, (0, name)), f"{name} {why}", _AGAIN))
        return [] if why else items


# --- writing --------------------------------------------------------------------------------------------------------


def text_of(lock: Lock) -> str:
    """Return the text of a lock file that says *lock*, the same for the same whatever order it came in."""
    lists = (line for name in FIELDS for line in _listed(name, [pin for pin in lock.pins if list_of(pin) == name]))
    return "".join((_HEADER, f"version: {_FORMAT}\n", *lists))


def _listed(name: str, pins: Iterable[Pin]) -> Iterable[str]:
    """Yield the lines of a list of entries, in their order by what they name; nothing where there is none."""
    told = sorted({tuple(each.told()[field] for field in FIELDS[name]) for each in pins})
    if told:
        yield f"{name}:\n"
    for values in told:
        fields = [f"{field}: {_scalar(value)}\n" for field, value in zip(FIELDS[name], values, strict=True)]
        yield f"- {'  '.join(fields)}"


def _scalar(text: str) -> str:
    """Return a text as YAML, in quotes where it would be read as something else."""
    return text if _PLAIN.fullmatch(text) and resolve(text) == text else json.dumps(text)


_PLAIN: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/+@~=&%?,-]|:(?=\S))*")
