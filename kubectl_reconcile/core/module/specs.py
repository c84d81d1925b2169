"""Typed views on the spec of a custom resource, and the error that names the field.

A *view* is a frozen dataclass whose fields are the wire's in snake case (``container_port`` reads
``containerPort``); its defaults stand for what is absent. A field may be ``int``, ``float``, ``str``,
``bool``, ``Mapping``, a ``Literal`` of texts, another view, ``tuple[…, ...]`` of any of these, or one of them ``| None``; ``Annotated``
with `Between` bounds a number. Fields that a view doesn't name are left alone, null is absent, and
``true`` isn't a number.

Pure: nothing is changed, nothing is kept but what was learned of a view's fields.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest

_View = TypeVar("_View")
_SHOWN_MAX = 63


class SpecError(Exception):
    """A field of the CR is invalid; *field* is its path, such as ``.spec.size``.

    The message is shown after the field: ``must be 0 or more, not -1``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class Between(Struct, frozen=True):
    """Bounds of a number in a view, both included: ``Annotated[int, Between(0, 1000)]``."""

    least: float
    most: float


def spec_of(cr: Manifest, view: Callable[..., _View]) -> _View:
    """Return ``.spec`` of *cr* as the dataclass *view*, whose defaults stand for absent fields.

    Raises:
        SpecError: a field is missing, of another type, or out of bounds; it is named.
    """
    found: _View = _viewed(cr.get("spec") or {}, view, ".spec")
    return found


def _viewed(tree: Any, view: Any, where: str) -> Any:
    if not isinstance(tree, Mapping):
        raise SpecError(where, f"must be an object, not {_shown(tree)}")
    values = {}
    for one in _fields_of(view):
        value = tree.get(one.wire_name)
        if value is not None:
            values[one.name] = _checked(one.hint, value, f"{where}.{one.wire_name}")
        elif one.required:
            raise SpecError(f"{where}.{one.wire_name}", "is required")
    return view(**values)


class _Field(Struct, frozen=True):
    name: str
    wire_name: str
    hint: Any
    required: bool


@cache
def _fields_of(view: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(view, include_extras=True)
    return tuple(_field_of(one, hints[one.name]) for one in dataclasses.fields(view))


def _field_of(one: dataclasses.Field[Any], hint: Any) -> _Field:
    head, *rest = one.name.split("_")
    required = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
    return _Field(one.name, head + "".join(word.capitalize() for word in rest), hint, required)


def _checked(hint: Any, value: Any, where: str) -> Any:
    """Return *value* as the type that *hint* says."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(arguments, value, where)
    if origin is types.UnionType:  # of a view and None, which an absent field is
        return _checked(next(each for each in arguments if each is not types.NoneType), value, where)
    if origin is Literal:
        return _chosen(arguments, value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise SpecError(where, f"must be a list, not {_shown(value)}")
        return tuple(_checked(arguments[0], each, f"{where}[{at}]") for at, each in enumerate(value))
    if dataclasses.is_dataclass(hint):
        return _viewed(value, hint, where)
    return _plain(origin or hint, value, where)


def _bounded(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    checked = _checked(arguments[0], value, where)
    bounds = next((extra for extra in arguments[1:] if isinstance(extra, Between)), None)
    if bounds is not None and not bounds.least <= checked <= bounds.most:
        raise SpecError(where, f"must be between {bounds.least} and {bounds.most}, not {value}")
    return checked


def _chosen(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, str) or value not in choices:
        raise SpecError(where, f"must be one of {', '.join(choices)}, not {_shown(value)}")
    return value


_TYPE_WORDS: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    Mapping: "an object",
}


def _plain(type_: type, value: Any, where: str) -> Any:
    accepted = (int, float) if type_ is float else type_
    if not isinstance(value, accepted) or (isinstance(value, bool) and type_ is not bool):
        raise SpecError(where, f"must be {_TYPE_WORDS[type_]}, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"
