"""What single values mean to Kubernetes: plain YAML scalars, numbers, keys; and how messages show them.

The rules are those of go-yaml and of sigs.k8s.io/yaml, which kubectl reads with: YAML 1.1, but for what go-yaml reads its
own way (``0o17`` is octal, dates and ``1:30`` are text).

Pure.
"""

from __future__ import annotations

import json
import math
import re
import struct
from decimal import Decimal
from typing import Any

_INTEGER = re.compile(r"([-+]?)(?:0[bB]([01]+)|0[oO]?([0-7]+)|0[xX]([0-9a-fA-F]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_STRAY_UNDERSCORE = re.compile(r"(?<![0-9])_|_(?![0-9])")
STARTS_NUMBER = frozenset("+-.0123456789")

WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{f"{sign}{word}": math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NO_WORD = object()


def resolve(text: str) -> Any:
    """Return what a plain YAML scalar means to Kubernetes: null, a boolean, a number, or text.

    Infinity and not-a-number come back as such; no JSON can hold them.
    """
    word = WORDS.get(text, _NO_WORD)
    if word is not _NO_WORD:
        return word
    return _number(text) if text[0] in STARTS_NUMBER else text


def _number(text: str) -> int | float | str:
    bare = text.replace("_", "")
    match = _INTEGER.fullmatch(bare)
    if match:
        integer = _integer(match)
        if integer is not None:
            return integer
    if _FLOAT.fullmatch(bare) and not (text[0] == "." and _STRAY_UNDERSCORE.search(text)):
        number = float(bare)
        return text if math.isinf(number) else number
    return text


def _integer(match: re.Match[str]) -> int | None:
    """Return the integer, or None beyond 64 bits: signed for all, unsigned for those without a sign."""
    sign, *digits = match.groups()
    which = next(index for index, group in enumerate(digits) if group is not None)
    if len(digits[which]) > 64:
        return None
    value = int(sign + digits[which], (2, 8, 16, 10)[which])
    return value if -(2**63) <= value < (2**63 if sign else 2**64) else None


def number_of_server(value: float) -> int | float:
    """Return *value* as the API server holds it: whole numbers within 64 bits as integers, others as floats.

    Raises:
        OverflowError: a float cannot hold it.
    """
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else float(value)
    if math.isinf(value):
        raise OverflowError("a number is too large for 64 bits")
    if not value.is_integer():
        return value
    whole = int(Decimal(repr(value)))  # the digits that a JSON encoder writes, not all that the float has
    return whole if -(2**63) <= whole < 2**63 else value


def key_text(key: Any) -> str | None:
    """Return the text that kubectl makes of a key which is none; None for null, lists and maps, which it refuses.

    A float is written as Go's ``FormatFloat(key, 'g', -1, 32)`` writes it (sigs.k8s.io/yaml), with the shortest digits that
    make the same 32-bit float.
    """
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return _float_text(key)
    return str(key) if isinstance(key, int) and key < 2**63 else None


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        single = math.inf
    if math.isinf(single):
        return ".inf" if value > 0 else "-.inf"
    digits = next(text for length in range(9) if _single(text := f"{single:.{length}e}") == single)
    exponent = int(digits.partition("e")[2])
    return f"{Decimal(digits):f}" if -4 <= exponent < 6 else digits


def _single(text: str) -> float:
    found: float = struct.unpack("f", struct.pack("f", float(text)))[0]
    return found


# ------------------------------------------------------------------------------------- in messages


def shown(value: object) -> str:
    """Return *value* as a message may show it: quoted, clipped, free of control characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    clipped = text if len(text) <= 60 else f"{text[:57]}..."
    safe = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in clipped)
    return f'"{safe}"' if isinstance(value, str) else safe


def printable(text: str) -> str:
    """Return *text* with a space for each character that a terminal might obey."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def written(line: str, key: str, value: bool | float) -> str:  # noqa: FBT001 - a boolean of YAML is a value like others
    """Return how *value* is written after *key* in a *line* of a file: ``y`` is true and ``1.10`` is 1.1, and neither is meant."""
    for match in re.finditer(rf"""(?:^|[\s{{,"'-]){re.escape(key)}["']?\s*:\s+(?P<text>[^\s,}}\]#]+)""", line):
        found = resolve(match["text"])
        if type(found) is type(value) and found == value:
            return match["text"]
    return json.dumps(value)
