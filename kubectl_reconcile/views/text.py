"""Text for people: pieces that stand out for a reason, and nothing that could harm whoever reads them.

Vocabulary: a *span* is a piece of text with a *tone*, the reason why it stands out; a *line* is a few spans.

Pure. Imports nothing that takes time, for help and completion use it.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

# Controls; surrogates; what YAML calls unprintable; and characters that are invisible or turn the
# direction of text, by which a name can look like another. A tab moves the cursor and no more: it stays.
_UNSAFE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r"}


def clean(text: str) -> str:
    r"""Return *text* as one line that can do a terminal no harm; what could is spelt as an escape (``\x1b``)."""
    return _UNSAFE.sub(_escaped, text) if _UNSAFE.search(text) else text


def is_clean(text: str) -> bool:
    """Tell whether *text* can be shown as it is, on one line."""
    return _UNSAFE.search(text) is None


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if named := _NAMED.get(character):
        return named
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Tone(Enum):
    """Why a piece of text stands out."""

    PLAIN = "plain"
    """It doesn't."""
    ADDED = "added"
    """It will be there."""
    REMOVED = "removed"
    """It won't be there any more."""
    PLACE = "place"
    """It says where in an object one looks."""
    TITLE = "title"
    """It begins something."""
    ASIDE = "aside"
    """It may be passed over."""
    GOOD = "good"
    """All is well."""
    WARNING = "warning"
    """It deserves a look before going on."""
    BAD = "bad"
    """It is wrong."""


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]
"""One line, without its end."""

EMPTY: Line = ()


def line(text: str, tone: Tone = Tone.PLAIN) -> Line:
    """Return a line of one tone."""
    return (Span(text, tone),)
