"""JSON as browsers are sent it: nothing in it turns the direction of text, or can't be seen."""

from __future__ import annotations

import re
from typing import Any

import orjson

from kubectl_reconcile.views.document import Document, plain

_TURNING = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""Characters that nobody sees, or that turn the direction of text: by them a name can look like another."""


def _plain(value: Any) -> Any:
    """Return a document as JSON knows it, and anything else that JSON doesn't know as text."""
    return plain(value) if isinstance(value, Document) else str(value)


def as_json(document: Any) -> str:
    """Return *document* as JSON on one line, in which such characters are spelt out."""
    text = orjson.dumps(document, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    return _TURNING.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)
