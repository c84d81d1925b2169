"""``spec.source.substitute``: which ``${NAME}`` are replaced in what a source asks for, and where their values come from, as users write it.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct

MOST_VARIABLES: Final = 100
MOST_VALUE_BYTES: Final = 32 * 1024
"""How long one value may be."""

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
OBJECT: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class SubstituteSpecError(ValueError):
    """A field below ``spec.source.substitute`` that can't be meant so; *field* is its path from there."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


class ValueType(StrEnum):
    """What a value is that is held as text: what a scalar becomes that is nothing but one ``${NAME}``, and a single value of a chart."""

    STRING = "String"
    INTEGER = "Integer"
    NUMBER = "Number"
    BOOLEAN = "Boolean"

    def value_of(self, text: str) -> Any:
        """Return the value of this type that a text says.

        Raises:
            ValueError: it says none.
        """
        if self is ValueType.STRING:
            return text
        said = text.strip()
        if self is ValueType.BOOLEAN and said in _BOOLEANS:
            return _BOOLEANS[said]
        if self is not ValueType.BOOLEAN and _INTEGER.fullmatch(said):
            return int(said)
        if self is ValueType.NUMBER and _NUMBER.fullmatch(said):
            return float(said)
        raise ValueError(f"it is no {self}")


_BOOLEANS: Final = {"true": True, "false": False}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?")


class Expressions(StrEnum):
    """``spec.source.substitute.expressions``: what may stand in braces besides a name."""

    NONE = "None"
    """Nothing: what has more in it stays as it is."""
    DEFAULTS = "Defaults"
    """A default, as in ``${NAME:=text}``; what has anything else is a problem."""


class Holder(StrEnum):
    """What holds a value besides the Sync itself."""

    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"  # noqa: S105 - a kind


class ValueSource(Struct, frozen=True, order=True):
    """Where a value is: the *key* of a ConfigMap or a Secret of the Sync's namespace."""

    holder: Holder
    name: str
    key: str


class Variable(Struct, frozen=True):
    """One declared name. Its value is the text given, or what *source* has; *default* is for where that has none."""

    name: str
    type: ValueType = ValueType.STRING
    value: str | None = None
    source: ValueSource | None = None
    default: str | None = None


class SubstituteSpec(Struct, frozen=True):
    """What a Sync declares. *also_in* are kinds whose objects are left alone otherwise."""

    variables: tuple[Variable, ...] = ()
    also_in: frozenset[str] = frozenset()
    expressions: Expressions = Expressions.NONE

    @property
    def holders(self) -> tuple[tuple[Holder, str], ...]:
        """The ConfigMaps and Secrets that hold values, each once, by kind and name."""
        return tuple(sorted({(each.source.holder, each.source.name) for each in self.variables if each.source}))

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Read it from its wire form.

        Raises:
            SubstituteSpecError: a field is malformed; it names the field.
        """
        entries: Sequence[Any] = fields.get("variables") or ()
        if len(entries) > MOST_VARIABLES:
            raise SubstituteSpecError(
                "variables", f"{len(entries)} are too many; you may declare at most {MOST_VARIABLES}"
            )
        variables = tuple(_variable(entry, f"variables[{index}]") for index, entry in enumerate(entries))
        names = [each.name for each in variables]
        if twice := next((name for index, name in enumerate(names) if name in names[:index]), ""):
            raise SubstituteSpecError("variables", f"{twice} is declared twice; keep one")
        also_in = frozenset(fields.get("alsoIn") or ())
        if unknown := also_in - LEFT_ALONE:
            raise SubstituteSpecError("alsoIn", f"{min(unknown)!r} isn't one of {', '.join(sorted(LEFT_ALONE))}")
        try:
            expressions = Expressions(fields.get("expressions") or Expressions.NONE)
        except ValueError:
            said = f"{fields['expressions']!r} isn't one of {', '.join(Expressions)}"
            raise SubstituteSpecError("expressions", said) from None
        return cls(variables, also_in, expressions)


NO_SUBSTITUTION: Final = SubstituteSpec()

LEFT_ALONE: Final = frozenset({"ConfigMap", "Secret", "CustomResourceDefinition"})
"""Kinds that hold other people's text (scripts, templates, schemas), where ``${…}`` is most likely theirs."""


def _variable(entry: Any, field: str) -> Variable:
    name = entry.get("name") or ""
    if not NAME.fullmatch(name):
        raise SubstituteSpecError(
            f"{field}.name", f"{name!r} can't be a name: letters, digits and _, up to 63, no digit first"
        )
    try:
        kind = ValueType(entry.get("type") or ValueType.STRING)
    except ValueError:
        raise SubstituteSpecError(f"{field}.type", f"{entry['type']!r} isn't one of {', '.join(ValueType)}") from None
    value, source = entry.get("value"), _source(entry.get("valueFrom") or {}, name, f"{field}.valueFrom")
    if (value is None) == (source is None):
        raise SubstituteSpecError(field, "give either value or valueFrom")
    default = entry.get("default")
    for text, what in ((value, "value"), (default, "default")):
        if text is not None and (not isinstance(text, str) or len(text.encode()) > MOST_VALUE_BYTES):
            raise SubstituteSpecError(f"{field}.{what}", f"must be text of at most {MOST_VALUE_BYTES // 1024} KiB")
    return Variable(name, kind, value, source, default)


def _source(fields: Mapping[str, Any], variable: str, field: str) -> ValueSource | None:
    named = {holder: fields[key] for key, holder in _REFS.items() if fields.get(key)}
    if not named:
        return None
    if len(named) > 1:
        raise SubstituteSpecError(field, f"{' and '.join(_REFS)} exclude each other; keep one")
    [(holder, ref)] = named.items()
    name, key = ref.get("name") or "", ref.get("key") or variable
    if not OBJECT.fullmatch(name):
        raise SubstituteSpecError(field, f"{name!r} isn't a name of a {holder}")
    if not KEY.fullmatch(key):
        raise SubstituteSpecError(field, f"{key!r} isn't a key of a {holder}")
    return ValueSource(holder, name, key)


_REFS: Final = {"configMapKeyRef": Holder.CONFIG_MAP, "secretKeyRef": Holder.SECRET}
