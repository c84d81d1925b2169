"""JSON trees as YAML for people: the lines that a diff compares.

Written the way kubectl writes it: keys in order, list items flush with their key, text of several
lines as a block. What a block can't hold (control characters) is quoted and escaped, so a line of
output is a line on the screen, and reading it back gives the same tree.

A dumper of our own, since one that knows only JSON is both faster and more legible than the
general one, which quotes any text with a tab in it and folds long lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_reconcile.views.text import clean, is_clean

# Text that no YAML reader, 1.1 or 1.2, takes for anything else: begins with a letter, a slash or an
# underscore and holds no colon or hash where these mean something; or begins with a number that its unit
# (100m, 64Mi) or a second point (1.2.3) keeps from being one.
_PLAIN = re.compile(
    r"[A-Za-z_/](?:[\w./@%+=,~()-]|:(?! |$)| (?! |$))*"
    r"|\d+(?:\.\d+)?(?:[acdf-np-wyzACDF-NP-WYZ]|\.\d+\.)[\w./-]*",
    re.ASCII,
)
_IDENTITY = ("apiVersion", "kind", "metadata")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def dump(tree: Any) -> list[str]:
    """Return *tree* as lines of YAML, without their ends."""
    if isinstance(tree, Mapping) and tree:
        return list(_mapping(tree, ""))
    if isinstance(tree, list | tuple) and tree:
        return list(_list(tree, ""))
    return [_scalar(tree)]


def dump_object(manifest: Mapping[str, Any]) -> list[str]:
    """Return an object as lines of YAML, its identity first, as people write it."""
    order = [name for name in _IDENTITY if name in manifest]
    return [
        text
        for name in (*order, *(name for name in manifest if name not in order))
        for text in dump({name: manifest[name]})
    ]


def _mapping(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key in sorted(tree):
        yield from _entry(f"{indent}{_text(key)}:", tree[key], indent)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield head
        yield from _mapping(value, indent + "  ")
    elif isinstance(value, list | tuple) and value:
        yield head
        yield from _list(value, indent)
    elif isinstance(value, str) and (lines := _block(value)):
        yield f"{head} {lines[0]}"
        yield from (f"{indent}  {line}" if line else "" for line in lines[1:])
    else:
        yield f"{head} {_scalar(value)}"


def _list(items: list[Any] | tuple[Any, ...], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping | list | tuple) and item:
            inner = indent + "  "
            lines = _mapping(item, inner) if isinstance(item, Mapping) else _list(item, inner)
            yield f"{indent}- {next(lines)[len(inner) :]}"
            yield from lines
        else:
            yield from _entry(f"{indent}-", item, indent)


def _block(text: str) -> list[str] | None:
    """Return the head and the lines of a literal block, or None where *text* can't be one."""
    if "\n" not in text:
        return None
    lines = text.split("\n")
    if not all(map(is_clean, lines)) or not text.strip(" \t\n"):
        return None
    kept = "-" if lines[-1] else ""
    if not lines[-1]:
        lines.pop()
        if not lines[-1]:
            kept = "+"
    # Where the text itself begins with white space, a reader couldn't tell how deep the block stands.
    shift = "2" if text[0] in " \t\n" else ""
    return [f"|{shift}{kept}", *lines]


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        # YAML 1.1 takes 1e+16 for text: its numbers have a point.
        text = json.dumps(value)
        return re.sub(r"^(-?\d+)e", r"\1.0e", text)
    return json.dumps(value)


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return clean(json.dumps(text, ensure_ascii=False))
