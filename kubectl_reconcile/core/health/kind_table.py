"""Rules of health for popular kinds, read from data: what they look like is told in ``kinds/__init__.py``.

Vocabulary: a *path* leads to values in an object, a *test* asks something of them, a *row* is a verdict and the tests that must all hold
for it. Rows are made ready once for each kind, when an object of it is first judged; a verdict then takes microseconds.

Pure: values in, values out. The data is read when this module is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Self, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.health.health import Health, HealthStatus, status_of
from kubectl_reconcile.core.objects import GroupKind, Manifest, mapping_of, maps_in, metadata_of, number_of

_Found: TypeAlias = tuple[Any, Manifest]
"""A value, and the map that it was found in."""

_ROOTS: Final = frozenset({"spec", "metadata"})
_SEGMENT: Final = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")
_RATIO: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [])


class TableError(ValueError):
    """A rule in the data that can't be meant so."""


# --- paths ----------------------------------------------------------------------------------------------------------------


class Path(Struct, frozen=True):
    """A way to values in an object; prints as the data has it."""

    text: str
    root: str
    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a path.

        Raises:
            TableError: it makes no sense.
        """
        names = tuple(quoted or plain for quoted, plain in _SEGMENT.findall(text))
        if not names or (names[0] in _ROOTS and len(names) == 1):
            raise TableError(f"{text!r} isn't a path")
        return cls(text, names[0], names[1:]) if names[0] in _ROOTS else cls(text, "status", names)

    @property
    def is_of_status(self) -> bool:
        """Tell whether the path looks at what the object's controller says."""
        return self.root == "status"

    def find(self, manifest: Manifest) -> list[_Found]:
        """Return all that is found at the path and isn't empty."""
        found: list[_Found] = [(manifest.get(self.root), manifest)]
        for step in self.steps:
            found = [each for value, _ in found for each in _stepped(value, step)]
            if not found:
                return found
        return [_status_of_condition(each) for each in found if each[0] not in _EMPTY]

    def number(self, manifest: Manifest, otherwise: int) -> int:
        """Return the number at the path, the sum where there are several."""
        numbers = [number for value, _ in self.find(manifest) if (number := number_of(value)) is not None]
        return sum(numbers) if numbers else otherwise

    def texts(self, manifest: Manifest) -> list[str]:
        """Return what is found at the path as text."""
        return [_text(value) for value, _ in self.find(manifest)]


def _stepped(value: Any, step: str) -> Iterable[_Found]:
    if step == "*":
        items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
        return [(item, mapping_of(item)) for item in items]
    if step == "#":
        return [(len(value), {})] if isinstance(value, Mapping | list | tuple) else []
    held = mapping_of(value)
    if step in held:
        return [(held[step], held)]
    if step[0].isupper() or "/" in step:
        # Some add a condition without removing the old one: the last counts.
        return [(each, each) for each in maps_in(held.get("conditions")) if each.get("type") == step][-1:]
    return []


def _status_of_condition(found: _Found) -> _Found:
    """Return the status of a condition where a path ends at one."""
    value, parent = found
    return (value.get("status"), value) if value is parent and "type" in parent and "status" in parent else found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, str | int | float) else "(more)"


# --- tests ----------------------------------------------------------------------------------------------------------------

_Test: TypeAlias = Callable[[Manifest], "Manifest | None"]
"""Returns the map that what was asked for was found in, None where it wasn't found."""


def _one_of(path: Path, wanted: Any, *, is_not: bool = False) -> _Test:
    texts = frozenset(_text(each) for each in (wanted if isinstance(wanted, list) else [wanted]))
    plain = frozenset(text for text in texts if "*" not in text)
    pattern = re.compile("|".join(translate(text) for text in sorted(texts - plain)) or r"(?!)", re.DOTALL)

    def test(manifest: Manifest) -> Manifest | None:
        for value, parent in path.find(manifest):
            text = _text(value)
            if (text in plain or pattern.match(text) is not None) is not is_not:
                return parent
        return None

    return test


def _absent(path: Path) -> _Test:
    return lambda manifest: None if path.find(manifest) else {}


def _compared(path: Path, asked: Mapping[str, Any], *, below: bool) -> _Test:
    other, otherwise = asked["below" if below else "above"], int(asked.get("else", 0))
    other_path = None if isinstance(other, int) else Path.parse(str(other))

    def test(manifest: Manifest) -> Manifest | None:
        number = path.number(manifest, 0)
        limit = int(other) if other_path is None else other_path.number(manifest, otherwise)
        return {} if (number < limit if below else number > limit) else None

    return test


def _same(path: Path, other: Path, *, same: bool) -> _Test:
    return lambda manifest: {} if (path.texts(manifest) == other.texts(manifest)) is same else None


def _older(path: Path) -> _Test:
    def test(manifest: Manifest) -> Manifest | None:
        generation = number_of(metadata_of(manifest).get("generation"))
        numbers = ((number_of(value), parent) for value, parent in path.find(manifest))
        return next(
            (parent for number, parent in numbers if None not in {number, generation} and number != generation), None
        )

    return test


def _short(path: Path) -> _Test:
    def test(manifest: Manifest) -> Manifest | None:
        for value, parent in path.find(manifest):
            ratio = _RATIO.fullmatch(str(value))
            if ratio is not None and int(ratio[1]) < int(ratio[2]):
                return parent
        return None

    return test


_ASKED: Final[Mapping[frozenset[str], Callable[[Path, Mapping[str, Any]], _Test]]] = {
    frozenset({"not"}): lambda path, asked: _one_of(path, asked["not"], is_not=True),
    frozenset({"below"}): lambda path, asked: _compared(path, asked, below=True),
    frozenset({"below", "else"}): lambda path, asked: _compared(path, asked, below=True),
    frozenset({"above"}): lambda path, asked: _compared(path, asked, below=False),
    frozenset({"above", "else"}): lambda path, asked: _compared(path, asked, below=False),
    frozenset({"equals"}): lambda path, asked: _same(path, Path.parse(asked["equals"]), same=True),
    frozenset({"differs"}): lambda path, asked: _same(path, Path.parse(asked["differs"]), same=False),
    frozenset({"older"}): lambda path, _: _older(path),
    frozenset({"short"}): lambda path, _: _short(path),
}


def _test_of(path: Path, asked: Any) -> _Test:
    if asked is None:
        return _absent(path)
    if not isinstance(asked, Mapping):
        return _one_of(path, asked)
    made = _ASKED.get(frozenset(asked))
    if made is None:
        raise TableError(f"{path.text}: {sorted(asked)} can't be asked")
    return made(path, asked)


# --- rows -----------------------------------------------------------------------------------------------------------------


class VerdictRow(Struct, frozen=True):
    """A verdict, what must be found for it, and where its message is."""

    status: HealthStatus
    tests: tuple[tuple[Path, _Test], ...]
    say: Path | None

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Self:
        """Read a row of the data.

        Raises:
            TableError: it has no verdict or more than one, or asks what can't be asked.
        """
        verdicts = [key for key in entry if key != "say"]
        if len(verdicts) != 1 or verdicts[0] not in set(HealthStatus):
            raise TableError(f"a rule needs one verdict, not {verdicts}")
        paths = ((Path.parse(path), asked) for path, asked in entry[verdicts[0]].items())
        say = Path.parse(entry["say"]) if "say" in entry else None
        return cls(HealthStatus(verdicts[0]), tuple((path, _test_of(path, asked)) for path, asked in paths), say)

    @property
    def is_of_status(self) -> bool:
        """Tell whether the row asks anything of the status."""
        return not self.tests or any(path.is_of_status for path, _ in self.tests)

    def judge(self, manifest: Manifest) -> Health | None:
        """Return the verdict if all tests hold, else None."""
        condition: Manifest = {}
        for _, test in self.tests:
            found = test(manifest)
            if found is None:
                return None
            condition = condition if "type" in condition else found
        if "type" in condition and (stale := staleness(manifest, condition)) and self.is_of_status:
            return Health(HealthStatus.IN_PROGRESS, stale)
        return Health(self.status, self._message(manifest, condition))

    def _message(self, manifest: Manifest, condition: Manifest) -> str:
        if self.say is not None:
            return next((str(value) for value, _ in self.say.find(manifest) if isinstance(value, str)), "")
        said = condition.get("message") or condition.get("reason") if "type" in condition else None
        return str(said or "") or self._found(manifest)

    def _found(self, manifest: Manifest) -> str:
        """Return the object's own message, or what was found, in words."""
        message = status_of(manifest).get("message")
        if isinstance(message, str) and message:
            return message
        for path, _ in self.tests:
            found = next((value for value, _ in path.find(manifest) if isinstance(value, str | int)), None)
            if found is not None:
                return f"{path.text} is {found}"
        return ""


def staleness(manifest: Manifest, condition: Manifest) -> str:
    """Return that a condition speaks of an older generation of its object, in words; empty where it doesn't."""
    about, generation = (
        number_of(condition.get("observedGeneration")),
        number_of(metadata_of(manifest).get("generation")),
    )
    if about is None or generation is None or about >= generation:
        return ""
    return f"{condition.get('type')} is about generation {about}, the object is at {generation}"


# --- rules of kinds -------------------------------------------------------------------------------------------------------


class KindRule(Struct, frozen=True):
    """How to tell the health of one kind: *first* whatever its status says, *rows* by its status, *silent* without one."""

    first: tuple[VerdictRow, ...]
    rows: tuple[VerdictRow, ...]
    silent: HealthStatus

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Self:
        """Read the rules of a kind.

        Raises:
            TableError: one of them can't be meant so.
        """
        rows = [VerdictRow.parse(row) for row in entry.get("rules") or ()]
        silent = HealthStatus(entry.get("silent", HealthStatus.IN_PROGRESS))
        return cls(
            tuple(row for row in rows if not row.is_of_status), tuple(row for row in rows if row.is_of_status), silent
        )

    def early(self, manifest: Manifest) -> Health | None:
        """Return what is so whatever the status says."""
        return _first(self.first, manifest)

    def judge(self, manifest: Manifest) -> Health | None:
        """Return what the status says, None where the rules say nothing."""
        if not status_of(manifest):
            words = "its controller hasn't reported on it yet" if self.silent is HealthStatus.IN_PROGRESS else ""
            return Health(self.silent, words)
        return _first(self.rows, manifest)


def _first(rows: Sequence[VerdictRow], manifest: Manifest) -> Health | None:
    for row in rows:
        found = row.judge(manifest)
        if found is not None:
            return found
    return None


_Kinds: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The rules of a group by kind. A kind may be ``*``."""

_GROUPS: Final[Mapping[str, str]] = json.loads(
    files("kubectl_reconcile.core.health.kinds").joinpath("kinds.json").read_text("utf-8")
)
"""The data: by group, which may begin with ``*.``, the JSON of its rules. A cluster has few of these groups, so each is read when it is needed."""


def groups() -> Iterable[str]:
    """Return the groups that there are rules for; one may begin with ``*.``."""
    return _GROUPS.keys()


@lru_cache(maxsize=1024)
def kinds_of(group: str) -> _Kinds:
    """Return the rules of a group by kind, none where it has none."""
    text = _GROUPS.get(group)
    return json.loads(text) if text else {}


@lru_cache(maxsize=4096)
def rule_of(kind: GroupKind) -> KindRule | None:
    """Return the rules of a kind, None where there are none."""
    for group in (kind.group, *_wider(kind.group)):
        kinds = kinds_of(group)
        entry = kinds.get(kind.kind) or kinds.get(_ending(kind.kind, kinds)) or kinds.get("*")
        if entry is not None:
            return KindRule.parse(entry)
    return None


def _ending(kind: str, kinds: Iterable[str]) -> str:
    """Return the pattern among *kinds* that says how a kind ends, as ``*Policy``; empty where none does."""
    return next((each for each in kinds if each[0] == "*" and each != "*" and kind.endswith(each[1:])), "")


def _wider(group: str) -> list[str]:
    """Return the patterns that a group falls under, the narrowest first."""
    names = group[:253].split(".")[:12]
    return [f"*.{'.'.join(names[start:])}" for start in range(1, len(names) - 1)]
