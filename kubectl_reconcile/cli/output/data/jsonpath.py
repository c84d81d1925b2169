r"""kubectl's JSONPath templates: ``-o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}'``.

A *template* is text with *actions* in braces: an expression, quoted text, ``range`` … ``end``. Without
any brace the whole template is one expression, as kubectl has it. What an expression finds is
written in JSON, text without its quotes, several values with a space between; a field that isn't there is
nothing, not an error.

kubectl's expressions are older than the standard (RFC 9535) and laxer. They are respelled here,
``.metadata.labels.app\.kubernetes\.io/name`` as ``$['metadata']['labels']['app.kubernetes.io/name']``, and
left to a library that knows the standard.

Pure: text and trees in, text out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import jsonpath
from msgspec import Struct

_ACTION = re.compile(r"""\{((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^{}"'])*)\}""", re.DOTALL)
_WORD = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<path>(?:\[(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\]"'])*\]|[^\s\["'])+)""",
    re.DOTALL,
)
_STEP = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<number>(?<![\w\]])\d+\.\d+)"""
    r"""|(?P<dots>\.\.?)(?P<name>(?:\\.|[^\s.\[\]()?@$,:*"'=!<>&|{}])+)""",
    re.DOTALL,
)


class JsonPathError(ValueError):
    """A template that can't be read; the message says where."""


class _Literal(Struct, frozen=True):
    text: str


class _Find(Struct, frozen=True):
    """An expression; *here* tells that it starts at the item of the range around it, not at the root."""

    path: jsonpath.JSONPath | jsonpath.CompoundJSONPath
    here: bool

    def values(self, root: Any, item: Any) -> list[Any]:
        return self.path.findall(item if self.here else root)


class _Range(Struct, frozen=True):
    over: _Find
    body: tuple[_Part, ...]


_Part: TypeAlias = _Literal | _Find | _Range


class Template(Struct, frozen=True):
    """A template, understood."""

    _parts: tuple[_Part, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template.

        Raises:
            JsonPathError: a brace, a quote or a ``range`` isn't closed, or an expression isn't one.
        """
        if not text:
            raise JsonPathError("a template is missing, as in jsonpath='{.metadata.name}'")
        actions = list(_actions(text))
        parts, rest = _block(actions, inside=False)
        if rest:
            raise JsonPathError("{end} without {range}")
        return cls(parts)

    def fill(self, tree: Any) -> str:
        """Return what the template makes of *tree*, without a line break at its end."""
        return "".join(_written(self._parts, tree, tree))


def _actions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a template: ``text``, ``range``, ``end`` or ``path``, each with what it says."""
    if "{" not in text and "}" not in text:
        yield "path", text.strip()
        return
    at = 0
    for found in _ACTION.finditer(text):
        yield from _outside(text[at : found.start()])
        yield from _words(found[1])
        at = found.end()
    yield from _outside(text[at:])


def _outside(text: str) -> Iterator[tuple[str, str]]:
    if "{" in text or "}" in text:
        raise JsonPathError(f"a brace isn't closed near {text[:20]!r}")
    if text:
        yield "text", text


def _words(action: str) -> Iterator[tuple[str, str]]:
    words = list(_WORD.finditer(action))
    if not words or _WORD.sub("", action).strip():
        raise JsonPathError(f"{{{action}}} isn't an expression")
    ranging = bool(words) and words[0][0] == "range"
    for word in words[1:] if ranging else words:
        if word["text"] is not None:
            yield "text", _unquoted(word["text"])
        elif word["path"] == "end":
            yield "end", ""
        else:
            yield ("range" if ranging else "path"), word["path"]
    if ranging and len(words) != 2:
        raise JsonPathError(f"{{{action}}} needs one expression")


def _unquoted(quoted: str) -> str:
    named = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: named.get(found[1], found[1]), quoted[1:-1], flags=re.DOTALL)


def _block(actions: Sequence[tuple[str, str]], *, inside: bool) -> tuple[tuple[_Part, ...], Sequence[tuple[str, str]]]:
    """Return the parts up to the ``end`` that closes this block, and what comes after it."""
    parts: list[_Part] = []
    while actions:
        (what, said), actions = actions[0], actions[1:]
        if what == "end":
            return tuple(parts), (actions if inside else [("end", ""), *actions])
        if what == "range":
            body, actions = _block(actions, inside=True)
            parts.append(_Range(_find(said), body))
        else:
            parts.append(_Literal(said) if what == "text" else _find(said))
    if inside:
        raise JsonPathError("{range} without {end}")
    return tuple(parts), ()


def _find(expression: str) -> _Find:
    here = not expression.startswith("$")
    text = expression.removeprefix("$") if not here else expression.removeprefix("@")
    text = text if not text or text[0] in ".[" else f".{text}"
    try:
        return _Find(jsonpath.compile(f"${_respelled('' if text == '.' else text)}"), here)
    except jsonpath.JSONPathError as error:
        raise JsonPathError(f"{expression!r} can't be read: {str(error).partition(chr(10))[0]}") from None


def _respelled(expression: str) -> str:
    """Put each ``.name`` into brackets and quotes, where any name may stand."""
    return _STEP.sub(_step, expression)


def _step(found: re.Match[str]) -> str:
    if found["name"] is None:
        return found[0].replace("\\.", ".") if found["text"] else found[0]
    name = re.sub(r"\\(.)", r"\1", found["name"])
    quoted = "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"{'..' if found['dots'] == '..' else ''}[{quoted}]"


def _written(parts: Sequence[_Part], root: Any, item: Any) -> Iterator[str]:
    for part in parts:
        match part:
            case _Literal(text):
                yield text
            case _Find():
                yield " ".join(map(_value, part.values(root, item)))
            case _Range(over, body):
                for each in over.values(root, item):
                    yield from _written(body, root, each)


def _value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
