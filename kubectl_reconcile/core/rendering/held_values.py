"""Values of a chart that ConfigMaps and Secrets hold: what ``spec.source.helm.valuesFrom`` of a Sync comes to.

Vocabulary: an *entry* of the Sync names a key of a *holder*, a ConfigMap or a Secret; what is there is a *part*, a map of values, or one value for a
place among them. Parts are put together in the order of the entries: maps are merged, and later ones win. A part of a Secret is *secret*.

What a chart makes of secret parts is found by rendering it once more with these *altered* (``core.rendering.derived``). Names of values, ``true``,
``false``, ``null`` and empty text are as they were then: a chart asks for these to decide what there is to be, and they tell nothing.

Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.objects import Manifest, Problem, decoded_text, map_at, walk
from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.core.rendering.derived import OTHERS, other_text
from kubectl_reconcile.core.rendering.given_values import over, placed
from kubectl_reconcile.core.rendering.lookups import SHORT_NUMBER, TELLS_NOTHING
from kubectl_reconcile.core.resources.helm import ValuesFrom
from kubectl_reconcile.core.resources.substitute import Holder

MOST_BYTES: Final = 1024 * 1024
"""How much text all entries may name together."""


class Unread(Struct, frozen=True):
    """Why nothing is known of a ConfigMap or a Secret; *is_absent* where there is none, and so no right is missing."""

    why: str
    is_absent: bool = False


class Part(Guarded, frozen=True):
    """What one entry gives: a *value*, which is a map of values where there is no *place* for it.

    *stamp* tells it from another, and gives nothing of a *secret* one away. *holder* is who has it, as people write that.
    """

    hidden: ClassVar = frozenset({"value", "stamp"})

    value: Any
    holder: str
    place: str = ""
    secret: bool = False
    stamp: str = ""


class HeldValues(Struct, frozen=True):
    """All parts in their order, and why some can't be read: then nothing is rendered. *altered* ones stand for others."""

    parts: tuple[Part, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_altered: bool = False

    @property
    def key(self) -> str:
        """What tells these values from others. Nobody can guess a value of a Secret by it."""
        said = [(each.place, each.stamp) for each in self.parts], [str(each) for each in self.problems], self.is_altered
        return hashlib.sha256(repr(said).encode()).hexdigest()

    @property
    def stamp(self) -> str:
        """What tells the secret parts from others, without giving them away; empty where there are none."""
        said = [each.stamp for each in self.parts if each.secret]
        return hashlib.sha256(repr(said).encode()).hexdigest()[:32] if said else ""

    def merged(self) -> dict[str, Any]:
        """Return all values as one map."""
        found: dict[str, Any] = {}
        for each in self.parts:
            found = placed(found, each.place, each.value) if each.place else over(found, each.value)
        return found

    def names(self) -> tuple[str, ...]:
        """Return what people call that which is secret among the values, each once."""
        return tuple(dict.fromkeys(f"valuesFrom {each.holder}" for each in self.parts if each.secret))

    def values(self) -> list[Any]:
        """Return what no message may have of them: what Secrets hold."""
        return [{"secret": each.value} for each in self.parts if each.secret]

    def texts(self) -> frozenset[str]:
        """Return the texts of what Secrets hold that are long enough to tell anything where they stand in others."""
        leaves = (leaf for each in self.parts if each.secret for _, leaf in walk(each.value))
        found = {line.strip() for leaf in leaves if isinstance(leaf, str) for line in (leaf, *leaf.splitlines())}
        return frozenset(each for each in found if len(each) > SHORT_NUMBER and each.lower() not in TELLS_NOTHING)

    def altered(self) -> HeldValues:
        """Return the same with other values in all that is secret, of the same sort: letters for letters, digits for digits."""
        parts = tuple(replace(each, value=_other(each.value)) if each.secret else each for each in self.parts)
        return replace(self, parts=parts, is_altered=True)


NO_HELD: Final = HeldValues()


FIELD: Final = "spec.source.helm.valuesFrom"
_SMALLER: Final = "put what isn't secret into a values file, and name it in valuesFiles"
_OPTIONAL: Final = "set optional: true in the entry"


def held_by(
    entries: Iterable[ValuesFrom], there: Mapping[tuple[Holder, str], Manifest | Unread], namespace: str
) -> HeldValues:
    """Return the values that *entries* name, where *there* are their ConfigMaps and Secrets of a *namespace*, or why one isn't known."""
    parts: list[Part] = []
    problems: list[Problem] = []
    left = MOST_BYTES
    for index, entry in enumerate(entries):
        source = entry.source
        named = _Named(entry, there[source.holder, source.name], f"{source.holder} {namespace}/{source.name}")
        try:
            text = named.text(left)
            if text is not None:
                left -= len(text.encode())
                parts.append(named.part(text))
        except _EntryError as error:
            problems.append(Problem(f"{FIELD}[{index}]", 0, error.message, error.hint))
    return HeldValues(tuple(parts), tuple(problems))


class _EntryError(ValueError):
    """What an entry names can't be used. Nothing of a Secret is in its message."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


class _Named(Struct, frozen=True):
    """What an *entry* names: its *holder* as people write that, and what was *found* of it."""

    entry: ValuesFrom
    found: Manifest | Unread
    holder: str

    @property
    def is_secret(self) -> bool:
        return self.entry.source.holder is Holder.SECRET

    def text(self, most_bytes: int) -> str | None:
        """Return the text of its key; None where there needn't be any.

        Raises:
            _EntryError: there is none, or it has more bytes than that.
        """
        entry, key = self.entry, self.entry.source.key
        if isinstance(self.found, Unread):
            if self.found.is_absent and entry.optional:
                return None
            raise _EntryError(self.found.why, f"create it, or {_OPTIONAL}" if self.found.is_absent else "")
        text = map_at(self.found, "data").get(key)
        if text is None and entry.optional:
            return None
        if text is None:
            raise _EntryError(f"{self.holder} has no key {key}", f"name another in valuesKey, or {_OPTIONAL}")
        try:
            said = decoded_text(text) if self.is_secret else str(text)
        except ValueError:
            raise _EntryError(f"key {key} of {self.holder} isn't text") from None
        if len(said.encode()) > most_bytes:
            raise _EntryError(f"with it, all entries have more than {MOST_BYTES // 1024} KiB of values", _SMALLER)
        return said

    def part(self, text: str) -> Part:
        """Return what the entry gives where its key has this *text*.

        Raises:
            _EntryError: the text can't be meant so.
        """
        entry, of = self.entry, f"key {self.entry.source.key} of {self.holder}"
        if not entry.target:
            return Part(self._map(text, of), self.holder, "", self.is_secret, self._stamp(text))
        try:
            value = entry.type.value_of(text)
        except ValueError:
            raise _EntryError(f"{of} is no {entry.type}") from None
        return Part(value, self.holder, entry.target, self.is_secret, f"{entry.type} {self._stamp(text)}")

    def _map(self, text: str, of: str) -> Mapping[str, Any]:
        documents, problems = yaml_reader.read(text.encode(), of, most_bytes=MOST_BYTES)
        if wrong := next((each for each in problems if each.is_error), None):
            place = f"{of}, line {wrong.line}" if wrong.line else of
            if self.is_secret:
                raise _EntryError(f"{place}: not valid YAML")
            raise _EntryError(f"{place}: {wrong.message}", wrong.hint)
        trees = [each.tree for each in documents if each.tree is not None]
        if len(trees) > 1:
            raise _EntryError(f"{of} has {len(trees)} YAML documents, not one")
        tree = trees[0] if trees else {}
        if not isinstance(tree, Mapping):
            raise _EntryError(f"{of} isn't a map of values", "to set a single value, add targetPath to the entry")
        return tree

    def _stamp(self, text: str) -> str:
        metadata = map_at(self.found, "metadata") if not isinstance(self.found, Unread) else {}
        if not self.is_secret:
            return text
        return f"{metadata.get('uid')}/{metadata.get('resourceVersion')}/{self.entry.source.key}"


# --- other values ------------------------------------------------------------------------------------------------------


def _other(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _other(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [_other(below) for below in value]
    if isinstance(value, str):
        return value if not value.strip() or value.lower() in TELLS_NOTHING else other_text(value)
    if isinstance(value, bool) or value is None:
        return value
    return _other_number(value)


def _other_number(number: float) -> int | float:
    """Return another number. A short one stays close, since a chart may well have bounds for it; of a long one each digit is another."""
    if isinstance(number, float):
        return number / 2 if number else 0.5
    if len(str(abs(number))) <= SHORT_NUMBER:
        return number - 1 if number > 1 else number + 1
    return int(str(number).translate(OTHERS))
