"""Values as the API server stores them: when are two JSON values the same one?

Vocabulary: a value's *stored form* is how the server writes it back after reading it. Built-in
kinds are Go structs, so a quantity, a time or base64 bytes come back in their canonical
spelling (``1000m`` returns as ``1``); custom resources are kept as they were written.

Rules: numbers compare by value (``1`` is ``1.0``), never with booleans (``1`` is not ``true``,
though Python says so), and strings never with numbers.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_UP, Decimal, InvalidOperation, localcontext
from enum import StrEnum
from functools import lru_cache
from typing import Any


class Form(StrEnum):
    """How the server respells a scalar of a built-in kind when it stores it."""

    QUANTITY = "quantity"
    """``resource.Quantity``: canonical suffix, no fraction, no factor of 1000 (or 1024) left."""
    TIME = "time"
    """``metav1.Time``: RFC 3339 in UTC, whole seconds."""
    MICRO_TIME = "micro-time"
    """``metav1.MicroTime``: RFC 3339 in UTC, six decimals."""
    BYTES = "bytes"
    """``[]byte``: standard base64 without line breaks."""


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal to the server: ``1 == 1.0``, but ``1 != true``."""
    kind = type(one)
    if kind is dict:
        if type(other) is not dict or len(one) != len(other):
            return False
        return all(name in other and same(value, other[name]) for name, value in one.items())
    if kind is list:
        if type(other) is not list or len(one) != len(other):
            return False
        return all(map(same, one, other))
    return bool(one == other) and (kind is bool) is (type(other) is bool)


def is_zero(value: Any) -> bool:
    """Return whether *value* is what Go calls zero: null, ``""``, ``0``, ``false``, ``{}`` or ``[]``."""
    return not value


def number(value: Any) -> Any:
    """Return *value* as JSON prints it: a float without a fraction becomes an int."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def stored(value: Any, form: Form) -> Any:
    """Return a scalar as a built-in kind stores it; what can't be parsed comes back as it is."""
    readable = isinstance(value, str) or (form is Form.QUANTITY and type(value) in (int, float))
    canonical = _CANONICAL[form](value) if readable else None
    return value if canonical is None else canonical


_QUANTITY = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?([A-Za-z]*[+-]?\d*)")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}
_LARGEST = Decimal(2**63 - 1)
_PRECISION = 120


@lru_cache(maxsize=4096)
def quantity(value: str | float) -> str | None:
    """Return the canonical spelling of a quantity (``0.5`` is ``500m``, ``1024Mi`` is ``1Gi``), or None if it's none.

    The rules are those of ``resource.Quantity``: the suffix family that was written stays
    (binary, decimal, exponent), values are rounded up to nano, and a binary quantity below
    1024 or with a fraction turns decimal.
    """
    with localcontext() as context:
        context.prec = _PRECISION
        found = _measured(value)
        if found is None:
            return None
        amount, suffix = found
        if suffix in _DECIMAL:
            return _spell_decimal(amount, _DECIMAL_SUFFIX.__getitem__, 18)
        if suffix in _BINARY:
            return _spell_binary(amount)
        return _spell_decimal(amount, lambda exponent: f"e{exponent}" if exponent else "", 300)


def amount_of(value: str | float) -> Decimal | None:
    """Return how much a quantity is, to be compared with others, or None if it's none."""
    with localcontext() as context:
        context.prec = _PRECISION
        found = _measured(value)
    return found[0] if found else None


def _measured(value: str | float) -> tuple[Decimal, str] | None:
    """Return how much a quantity is, and the suffix that it is written with."""
    text = str(number(value)) if isinstance(value, int | float) else value.strip()
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        return None
    suffix, amount = match[4], Decimal(f"{match[1]}{match[2] or '0'}.{match[3] or '0'}")
    if suffix in _DECIMAL:
        return amount.scaleb(_DECIMAL[suffix]), suffix
    if suffix in _BINARY:
        return amount * (1 << _BINARY[suffix]), suffix
    is_exponent = re.fullmatch(r"[eE][+-]?\d{1,3}", suffix)
    return (amount.scaleb(int(suffix[1:])), suffix) if is_exponent else None


def _spell_decimal(amount: Decimal, suffix: Callable[[int], str], largest: int) -> str:
    if not amount:
        return "0"
    nanos = int(amount.quantize(Decimal("1e-9"), rounding=ROUND_UP).scaleb(9))
    return _spell(nanos, 1000, 3, largest, suffix, start=-9)


def _spell_binary(amount: Decimal) -> str:
    amount = min(amount, _LARGEST)
    if abs(amount) < 1024 or amount != amount.to_integral_value():
        return _spell_decimal(amount, _DECIMAL_SUFFIX.__getitem__, 18)
    return _spell(int(amount), 1024, 10, 60, lambda exponent: _BINARY_SUFFIX[exponent] if exponent else "")


def _spell(whole: int, base: int, step: int, largest: int, suffix: Callable[[int], str], *, start: int = 0) -> str:
    exponent = start
    while whole % base == 0 and exponent < largest:
        whole //= base
        exponent += step
    return f"{whole}{suffix(exponent)}"


def _instant(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None


def _time(value: str) -> str | None:
    moment = _instant(value)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def _micro_time(value: str) -> str | None:
    moment = _instant(value)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment else None


def _bytes(value: str) -> str | None:
    try:
        return base64.b64encode(base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)).decode()
    except (binascii.Error, ValueError):
        return None


def _quantity(value: Any) -> str | None:
    try:
        return quantity(value)
    except (InvalidOperation, OverflowError):
        return None


_CANONICAL: dict[Form, Callable[[Any], str | None]] = {
    Form.QUANTITY: _quantity,
    Form.TIME: _time,
    Form.MICRO_TIME: _micro_time,
    Form.BYTES: _bytes,
}
