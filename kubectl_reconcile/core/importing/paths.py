"""Words of other tools about fields and expressions, in ours.

Pure: text in, text out.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

_JQ_STEP: Final = re.compile(
    r"""\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)\??  |  \.?\[(?P<quoted>"(?:[^"\\]|\\.)*")\]\??  |  \.?(?P<any>\[\d*\])\??  |
        \.(?P<bare>"(?:[^"\\]|\\.)*")\??""",
    re.VERBOSE,
)


def path_of_jq(text: str) -> str:
    """Return a plain path of jq as a rule of a Sync writes it; empty where it is more than a path. An item by its number is any item."""
    at, found = 0, []
    text = text.strip()
    while at < len(text):
        match = _JQ_STEP.match(text, at)
        if match is None:
            return ""
        at = match.end()
        if match["any"]:
            found.append("[*]")
        else:
            name = match["name"] or json.loads(match["quoted"] or match["bare"])
            found.append(f".{name}" if re.fullmatch(r"[^.\[\]\"]+", name) else f"[{json.dumps(name)}]")
    return "".join(found)


ALL_ITEMS: Final = "an item by its number, for which the rule means all of the list; [name=web] in its place means one"
"""What is said of a path that counts items."""


def any_item(pointer: str) -> str:
    """Return a JSON pointer in which the numbers of items stand for any."""
    return re.sub(r"/\d+(?=/|$)", "/*", pointer)


def whole_text(pattern: str) -> str:
    """Return an expression that matches a whole text where *pattern* matches any part of it."""
    return pattern if pattern.startswith("^") and pattern.endswith("$") and "|" not in pattern else f".*(?:{pattern}).*"


_CEL_WORDS: Final = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>(?<![.\w])(?:apiVersion|kind|metadata|spec|status|data)\b(?!\s*\())"""
)


def cel_of_self(text: str) -> str:
    """Return an expression over the fields of an object as one over ``self``."""
    return _CEL_WORDS.sub(lambda found: found["text"] or f"self.{found['word']}", text)


# --- variables -----------------------------------------------------------------------------------------------------------

_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER: Final = re.compile(r"[-+]?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?")


def variable_type(text: str) -> str | None:
    """Return the type that a reader of YAML would take *text* for; None for text."""
    if _INTEGER.fullmatch(text):
        return "Integer"
    if _NUMBER.fullmatch(text):
        return "Number"
    return "Boolean" if text in {"true", "false"} else None


# --- images of kustomize ----------------------------------------------------------------------------------------------------


def image_of(text: str) -> dict[str, Any]:
    """Return an entry of images, of the text that ``kustomize edit set image`` takes: ``name=new:tag@digest``, and parts of it."""
    name, equals, new = text.partition("=")
    name, new = (name, new) if equals else ("", name)
    new, _, digest = new.partition("@")
    head, colon, tag = new.rpartition(":")
    if not colon or "/" in tag:
        head, tag = new, ""
    found = {"name": name or head, "newName": head if name and head != name else "", "newTag": tag, "digest": digest}
    return {key: value for key, value in found.items() if value}


def exact_version(text: str) -> bool:
    """Tell whether *text* names one version, not a range."""
    return bool(re.fullmatch(r"v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", text))


def is_range(text: str) -> bool:
    """Tell whether *text* is a range of versions: it has a sign of one, or an x in the place of a number."""
    if re.search(r"[<>^~*|, ]", text):
        return True
    return bool(re.fullmatch(r"v?\d+(\.\d+)?\.[xX]", text))
