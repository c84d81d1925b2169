"""What changed in a file of SOPS, for whoever has no key to it.

SOPS keeps the ciphertext of values that didn't change, and the names of all. So two versions of a file tell which keys were added, removed or changed, and nothing
about what they hold. Once its data key was rotated every value has another ciphertext: then nobody without a key knows which changed.

Pure: bytes in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.encrypted import SEALED, SopsFormat, format_of
from kubectl_reconcile.core.objects import map_at, walk

_MOST_NAMED: Final = 10
_ENTRY: Final = re.compile(r"^\s*([^#;=\s][^=]*?)\s*=\s*(.*)$")
_SECTION: Final = re.compile(r"^\[(.*)\]\s*$")
_KEY: Final = re.compile(r"-----BEGIN (?:AGE ENCRYPTED FILE|PGP MESSAGE)-----(.*?)-----END", re.DOTALL)


class SealedChange(Struct, frozen=True):
    """Which keys of a file were *added*, *removed* or *changed*; *is_rotated* tells that all was encrypted again, so that any may have changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    is_rotated: bool = False

    def __str__(self) -> str:
        """Return it as people say it."""
        said = [
            f"{_named(names)} {what}"
            for names, what in ((self.changed, "changed"), (self.added, "added"), (self.removed, "removed"))
            if names
        ]
        if self.is_rotated:
            said.insert(0, "re-encrypted, contents unknown")
        return ", ".join(said)


def sealed_change(before: bytes, after: bytes, path: str) -> SealedChange:
    """Return what changed between two versions of the file at *path*, of which either may be plain or empty."""
    old, new = dict(_leaves(before, path)), dict(_leaves(after, path))
    both = [name for name in new if name in old]
    sealed = [name for name in both if _is_sealed(old[name]) and _is_sealed(new[name])]
    differ = [name for name in both if old[name] != new[name]]
    mine, theirs = _keys(before), _keys(after)
    is_rotated = bool(sealed and mine and theirs) and set(sealed) <= set(differ) and not mine & theirs
    changed = [name for name in differ if not (is_rotated and name in sealed)]
    added, removed = (tuple(name for name in one if name not in other) for one, other in ((new, old), (old, new)))
    return SealedChange(added, removed, tuple(changed), is_rotated)


def _named(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown


def _is_sealed(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(SEALED)


def _keys(data: bytes) -> frozenset[str]:
    """Return the data key as it is encrypted, for each that it is encrypted for."""
    text = data.decode("utf-8", "replace").replace("\\n", "\n")
    return frozenset("".join(each.split()) for each in _KEY.findall(text))


def _leaves(data: bytes, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each value with its path, but for what SOPS notes for itself."""
    match format_of(path, data):
        case SopsFormat.DOTENV | SopsFormat.INI:
            yield from _entries(data.decode("utf-8", "replace"))
        case _:
            documents, _ = yaml_reader.read(data, path)
            for at, document in enumerate(documents):
                where = f"{_name_of(document.tree, at)}: " if len(documents) > 1 else ""
                tree = document.tree
                shown = {key: each for key, each in tree.items() if key != "sops"} if isinstance(tree, dict) else tree
                yield from ((f"{where}{'.'.join(map(str, steps))}", leaf) for steps, leaf in walk(shown))


def _name_of(tree: Any, at: int) -> str:
    """Return what a document is called among several."""
    found = tree if isinstance(tree, Mapping) else {}
    kind, name = found.get("kind"), map_at(found, "metadata").get("name")
    return f"{kind} {name}" if kind and name and not _is_sealed(name) else f"document {at + 1}"


def _entries(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.splitlines():
        if found := _SECTION.match(line):
            section = f"{found[1]}."
        elif section != "sops." and (found := _ENTRY.match(line)) and not found[1].startswith("sops_"):
            yield f"{section}{found[1]}", found[2]
