"""Substitution: ``${NAME}`` in what a source asks for becomes the value that the Sync declares for it.

Vocabulary: a *variable* is a name that ``spec.source.substitute`` declares; a *value* is what it stands for; a *use* is a scalar
of an object that has some in it. An *escape* is ``$${NAME}``, which stands for ``${NAME}`` itself.

Rules: only string scalars of parsed objects change, never text that is parsed afterwards, never a key, nor what says which kind
an object is. What a value holds is never substituted again. A scalar stays a string, unless it is nothing but one variable with another
type. Names that aren't declared stay as they are. ConfigMaps, Secrets and CRDs are left alone but for their metadata, unless
declared: what they hold is text for somebody else.

Pure: nothing is mutated; what didn't change is shared with what was given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located, Steps, VariableUse, is_named_by_variables, metadata_faults
from kubectl_reconcile.core.objects import Manifest, Problem, Severity
from kubectl_reconcile.core.rendering.held_values import NO_HELD, HeldValues
from kubectl_reconcile.core.resources.substitute import LEFT_ALONE, MOST_VALUE_BYTES, Expressions, Holder, ValueType

MOST_BYTES: Final = 32 * 1024 * 1024
"""How much text the values may come to in all that one source asks for."""

_PLACE: Final = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WITH_DEFAULT: Final = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?=|:-)([^{}]*))?\}")
_MORE: Final = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*[^A-Za-z0-9_}][^}]*)\}")
"""What has more than a name in its braces, a default or anything else."""
_OTHERS: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)[:/=#%,^?+-][^}]*\}")
"""How shells, and tools that copy them, spell a variable with a default or an edit."""

_KIND_OF: Final = ("apiVersion", "kind")
_SHOWN: Final = 80


class Value(Struct, frozen=True):
    """What a variable stands for. Of a *secret* one the text is never shown. *stamp* tells it from another without giving it away."""

    text: str
    type: ValueType = ValueType.STRING
    secret: bool = False
    stamp: str = ""
    origin: str = ""

    def __repr__(self) -> str:
        return f"Value(of {self.origin or 'the Sync'})"

    def alone(self) -> Any:
        """Return what a scalar becomes that is nothing but this variable."""
        return self.type.value_of(self.text)

    def fault(self) -> str:
        """Return why the text can't be what its type says; empty where it can. The text isn't in it."""
        if len(self.text.encode()) > MOST_VALUE_BYTES:
            return f"it is longer than {MOST_VALUE_BYTES // 1024} KiB"
        try:
            self.alone()
        except ValueError:
            return f"it is no {self.type}"
        return ""


class Values(Struct, frozen=True):
    """What is known of the variables that a Sync declares: *known* by name, and why those that are *unset* have no value.

    *held* are values of a chart, which were read beside them. *versions* are those of the objects that all were read from, by kind and name. *types* are those of the unset ones, for which a default may stand
    where *expressions* have some.
    """

    known: Mapping[str, Value] = field(default_factory=dict)
    unset: Mapping[str, str] = field(default_factory=dict)
    also_in: frozenset[str] = frozenset()
    versions: Mapping[tuple[Holder, str], str] = field(default_factory=dict)
    expressions: Expressions = Expressions.NONE
    types: Mapping[str, ValueType] = field(default_factory=dict)
    held: HeldValues = NO_HELD

    @property
    def has_defaults(self) -> bool:
        """Tell whether a default may stand in braces."""
        return self.expressions is Expressions.DEFAULTS

    @property
    def is_declared(self) -> bool:
        """Tell whether anything is substituted at all."""
        return bool(self.known or self.unset or self.has_defaults)

    def is_same_as(self, other: Values) -> bool:
        """Tell whether both give variables the same values, whatever was written to what they were read from."""
        mine = self.known, self.unset, self.also_in, self.expressions, self.types
        return mine == (other.known, other.unset, other.also_in, other.expressions, other.types)

    def stamp_of(self, names: Iterable[str]) -> str:
        """Return what tells the values of *names* from others, without giving that of a Secret away."""
        said = sorted((name, self.known[name].stamp, self.known[name].type) for name in names)
        return hashlib.sha256(repr(said).encode()).hexdigest()[:32]


NO_VALUES: Final = Values()


class Unresolved(Struct, frozen=True):
    """A scalar with a name that stays as it is: one that is *declared* and has no value, or one that isn't declared."""

    steps: Steps
    name: str
    why: str
    declared: bool


class Substitution(Struct):
    """The substitution of *values* in all that a source asks for; beyond a bound, objects are too large."""

    values: Values
    left_bytes: int = MOST_BYTES
    unresolved: list[Unresolved] = field(default_factory=list)
    _uses: list[VariableUse] = field(default_factory=list)

    def of(self, located: Located) -> Located:
        """Return a manifest with its variables replaced; what isn't is in *unresolved*, which is that of this manifest alone.

        Raises:
            TooLargeError: with what the values come to, it is beyond the bound.
        """
        self.unresolved, self._uses = [], []
        tree = self._manifest(located.manifest)
        if tree is located.manifest:
            return located
        return replace(
            Located.of(tree, located.path, located.line), uses=(*located.uses, *self._uses), drawn=located.drawn
        )

    def _manifest(self, manifest: Manifest) -> Manifest:
        is_left_alone = manifest.get("kind") in LEFT_ALONE - self.values.also_in
        found: dict[str, Any] = {}
        for name, value in manifest.items():
            is_out = name in _KIND_OF or (is_left_alone and name != "metadata")
            found[name] = value if is_out else self._tree(value, (name,))
        return manifest if all(found[name] is value for name, value in manifest.items()) else found

    def _tree(self, value: Any, steps: Steps) -> Any:
        if isinstance(value, str):
            return self._scalar(value, steps) if "${" in value else value
        if isinstance(value, dict):
            below = {name: self._tree(each, (*steps, name)) for name, each in value.items()}
            return value if all(below[name] is each for name, each in value.items()) else below
        if isinstance(value, list):
            items = [self._tree(each, (*steps, index)) for index, each in enumerate(value)]
            return value if all(new is each for new, each in zip(items, value, strict=True)) else items
        return value

    def _scalar(self, text: str, steps: Steps) -> Any:
        names: dict[str, Value] = {}
        put: list[Value] = []
        self._say_what_is_more(text, steps)
        places = _WITH_DEFAULT if self.values.has_defaults else _PLACE

        def replaced(found: re.Match[str]) -> str:
            escape, name = found.group(1, 2)
            if escape:
                return found.group()[1:]
            value = self.values.known.get(name)
            if value is not None:
                names[name] = value
            if found.re is _WITH_DEFAULT and found[3] and not (value and value.text):
                value = self._default(steps, name, found[4])
            elif value is None:
                self._leave(steps, name)
            if value is None:
                return found.group()
            put.append(value)
            self._spend(value.text)
            return value.text

        whole = places.fullmatch(text)
        done = places.sub(replaced, text)
        if names:
            secrets = [value.text for value in names.values() if value.secret]
            texts = tuple(dict.fromkeys([done, *secrets])) if secrets else ()
            self._uses.append(VariableUse(steps, tuple(names), bool(secrets), texts))
        if whole and put:
            return put[0].alone()
        return done if done != text else text

    def _say_what_is_more(self, text: str, steps: Steps) -> None:
        """Note what has more than a name in its braces and can't be replaced."""
        if self.values.has_defaults:
            why = "behind the name there may be a default, as in ${NAME:=text}, and nothing else"
            others = [found[1][:_SHOWN] for found in _MORE.finditer(text) if not _WITH_DEFAULT.fullmatch(found.group())]
            self.unresolved += (Unresolved(steps, each, why, declared=True) for each in others)
            return
        for name in _OTHERS.findall(text):
            if name in self.values.known:
                why = "with more than a name in its braces it is left as it is: set defaults in the Sync"
                self.unresolved.append(Unresolved(steps, name, why, declared=False))

    def _default(self, steps: Steps, name: str, text: str) -> Value | None:
        """Return a default with the type that the Sync declares for its name; None where it can't be of that, which is noted."""
        known = self.values.known.get(name)
        value = Value(text, known.type if known else self.values.types.get(name, ValueType.STRING))
        if not (fault := value.fault()):
            return value
        self.unresolved.append(Unresolved(steps, name, f"of its default, {fault}", declared=True))
        return None

    def _leave(self, steps: Steps, name: str) -> None:
        if (why := self.values.unset.get(name)) is not None:
            self.unresolved.append(Unresolved(steps, name, why, declared=True))
        else:
            self.unresolved.append(
                Unresolved(steps, name, "the Sync doesn't declare it; it is left as it is", declared=False)
            )

    def _spend(self, text: str) -> None:
        self.left_bytes -= len(text)
        if self.left_bytes < 0:
            raise TooLargeError(f"with its variables replaced, the source has more than {MOST_BYTES >> 20} MiB")


class TooLargeError(ValueError):
    """The values come to more text than is taken from one source."""


# --- all of a source ------------------------------------------------------------------------------------------------

LineOf = Callable[[Located, Steps], int]
"""Where a field of a manifest stands in its file; 0 where that isn't known."""


class Substituted(Struct, frozen=True):
    """What a source asks for with values in it, what is wrong with it, and which variables stand in each file."""

    manifests: tuple[Located, ...]
    problems: tuple[Problem, ...] = ()
    names: Mapping[str, frozenset[str]] = field(default_factory=dict)


def substituted(manifests: Iterable[Located], values: Values, line_of: LineOf) -> Substituted:
    """Return *manifests* with *values* in them. One that lacks a value, or can't be an object with it, is left out: its file says why."""
    work = Substitution(values)
    done: list[Located] = []
    problems: list[Problem] = []
    names: dict[str, set[str]] = {}
    said: set[str] = set()
    for located in manifests:
        try:
            new = work.of(located) if values.is_declared else located
        except TooLargeError as error:
            problems.append(
                Problem(located.path, max(located.line, 0), str(error), "use shorter values, or fewer of them")
            )
            continue
        found = list(_problems(located, new, work.unresolved, line_of))
        for each in found:
            if each.is_error or each.message not in said:
                said.add(each.message)
                problems.append(each)
        if not any(each.is_error for each in found):
            done.append(new)
        for use in new.uses[len(located.uses) :]:
            names.setdefault(new.path, set()).update(use.names)
    return Substituted(tuple(done), tuple(problems), {path: frozenset(each) for path, each in names.items()})


def _problems(old: Located, new: Located, unresolved: Iterable[Unresolved], line_of: LineOf) -> Iterator[Problem]:
    for each in unresolved:
        severity = Severity.ERROR if each.declared else Severity.WARNING
        message = f"${{{each.name}}} has no value: {each.why}" if each.declared else f"${{{each.name}}}: {each.why}"
        hint = (
            ""
            if each.declared
            else f"declare it in spec.source.substitute of the Sync, or write $${{{each.name}}} for the literal text"
        )
        yield Problem(old.path, line_of(old, each.steps), message, hint, severity)
    uses = new.uses[len(old.uses) :]
    if any(use.steps[0] == "metadata" for use in uses) or is_named_by_variables(new):
        hidden = {use.steps: use.names for use in uses if use.secret and use.steps[0] == "metadata"}
        for steps, names in hidden.items():
            if steps[1] in _SEEN_BY_ALL:
                said = f"{'.'.join(map(str, steps))} contains the value of a Secret, {' and '.join(names)}, and everybody can see it"
                yield Problem(old.path, line_of(old, steps), said, "use a ConfigMap for names")
        for steps, message, hint in metadata_faults(new.manifest):
            if steps not in hidden:
                yield Problem(old.path, line_of(old, steps), message, hint)


_SEEN_BY_ALL: Final = frozenset({"name", "namespace", "labels"})
"""What of an object's metadata is in URLs, logs and lists."""
