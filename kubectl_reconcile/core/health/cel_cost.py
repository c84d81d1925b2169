"""How long an expression in CEL takes at most, told before it is evaluated: its evaluation can't be interrupted.

As the API server does for the rules of a CRD, each part of an expression gets a bound: the *steps* that it takes, the
*weight* of its value (what copying or comparing it takes) and the *items* that a loop over it runs through. A macro such as
``all`` multiplies the steps of its body by the items of its range, so nested loops multiply, and ``+`` adds weights, so what doubles
in each turn grows as it really does. What comes from the object is as heavy as the whole object. An item of a loop is as heavy as the
average: all bounds are linear in weights, so it doesn't matter how a range's weight is spread over its items.

A step is about 0.3 µs, measured with the library in use; there a field that is looked up is a copy of what it holds.

Nothing else bounds it. The library has no limits of steps, time or memory, tells no syntax tree that could be weighed, and holds the interpreter until it is
done: no alarm is heard meanwhile, and no other thread runs. Nor do sizes tell: eighty characters about a list of a thousand numbers are done at once or take hours, so a limit on
objects or expressions that kept those away would refuse what people write. ``tests/core/health/test_cel_cost.py`` shows it: this module may go when that fails.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any, Final

from msgspec import Struct, field

MOST_STEPS: Final = 300_000
"""What one expression may take for one object: a tenth of a second. The API server gives a rule of a CRD as much."""

_DEEPEST: Final = 32
_BYTES_A_STEP: Final = 2000
_NODES_A_STEP: Final = 3
_READ: Final = 12  # handing an object to the library takes as long as copying it so many times
_MOST_NODES: Final = _NODES_A_STEP * MOST_STEPS // _READ
_MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\r\n]*)
    |(?P<text>[rRbB]{0,2}(?:\"\"\"|'''|"|'))
    |(?P<number>(?:0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE,
)
_BINDS: Final = {
    "||": 1,
    "&&": 2,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 3),
}
_REPEATED: Final = re.compile(r"\{([0-9]*),?([0-9]*)")
_WIDE: Final = re.compile(r"\\[wWpPbB]|\(\?")


class UnreadableError(ValueError):
    """An expression whose cost isn't known; the message says why."""


class Size(Struct, frozen=True):
    """The size of an object: the number of steps to copy it, and the number of items of its largest list or map."""

    weight: float
    items: int

    @classmethod
    def of(cls, value: Any) -> Size:
        """Measure a value. A value that is far too large isn't read to its end."""
        nodes = text = most = 0
        below = [value]
        while below and nodes < _MOST_NODES:
            found = below.pop()
            nodes += 1
            if isinstance(found, str):
                text += len(found)
            elif isinstance(found, Mapping):
                most = max(most, len(found))
                nodes += len(found)
                below += islice(found.values(), _MOST_NODES)
            elif isinstance(found, list | tuple):
                most = max(most, len(found))
                below += islice(found, _MOST_NODES)
        return cls((nodes + len(below)) / _NODES_A_STEP + text / _BYTES_A_STEP, most)

    def rounded(self) -> Size:
        """Return the next size up for which there are bounds already: powers of two."""
        return Size(float(1 << max(0, int(self.weight)).bit_length()), 1 << self.items.bit_length())


USUAL: Final = Size(100.0, 15)
"""An object of some hundred fields."""


def steps(expression: str, size: Size) -> float:
    """Return the steps that *expression* takes at most for an object of that size, handing over object and value included.

    Raises:
        UnreadableError: it is nested too deeply, or more than CEL.
    """
    return _steps(expression, size.rounded())


@lru_cache(maxsize=4096)
def _steps(expression: str, size: Size) -> float:
    whole = _Reader(_tokens(expression), _Bound(0.0, size.weight, size.items)).all_of_it()
    return whole.steps + _READ * (size.weight + whole.weight)


class _Bound(Struct, frozen=True):
    steps: float
    weight: float = 1.0
    items: float = 1.0


class _Token(Struct, frozen=True):
    kind: str
    text: str


def _tokens(expression: str) -> list[_Token]:
    found, at = [], 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise UnreadableError(f"{expression[at]!r} is unknown")
        at = match.end()
        kind = match.lastgroup or ""
        if kind == "text":
            start, at = at, _end_of_text(expression, match[0], at)
            found.append(_Token("text", expression[start : at - len(match[0].lstrip("rRbB"))]))
        elif kind != "blank":
            found.append(_Token(kind, match[0]))
    return [*found, _Token("end", "")]


def _end_of_text(expression: str, beginning: str, at: int) -> int:
    """Return where a text ends that began with a prefix and quotes."""
    quotes = beginning.lstrip("rRbB")
    is_raw = "r" in beginning[: -len(quotes)].lower()
    while at < len(expression):
        if expression.startswith(quotes, at):
            return at + len(quotes)
        at += 2 if expression[at] == "\\" and not is_raw else 1
    raise UnreadableError("a string isn't closed")


class _Reader(Struct):
    """Reads an expression from left to right and adds up what it takes. *names* are the variables of the macros around."""

    tokens: Sequence[_Token]
    input: _Bound
    at: int = 0
    depth: int = 0
    names: dict[str, _Bound] = field(default_factory=dict)

    def all_of_it(self) -> _Bound:
        """Read the whole expression."""
        found = self._expression()
        if self._next.kind != "end":
            raise UnreadableError(f"{self._next.text!r} isn't expected")
        return found

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, sign: str) -> bool:
        taken = self._next == _Token("sign", sign)
        self.at += taken
        return taken

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise UnreadableError(f"{self._next.text!r} where {sign!r} is expected")

    def _expression(self) -> _Bound:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnreadableError(f"it is nested deeper than {_DEEPEST}")
        found = self._operation(1)
        if self._take("?"):
            yes = self._expression()
            self._expect(":")
            no = self._expression()
            taken = found.steps + yes.steps + no.steps + 1
            found = _Bound(taken, yes.weight + no.weight, max(yes.items, no.items))
        self.depth -= 1
        return found

    def _operation(self, least: int) -> _Bound:
        left = self._unary()
        while self._next.kind != "text" and (binds := _BINDS.get(self._next.text, 0)) >= least:
            sign = self._next.text
            self.at += 1
            left = _combined(sign, left, self._operation(binds + 1))
        return left

    def _unary(self) -> _Bound:
        count = 0
        while self._take("!") or self._take("-"):
            count += 1
        found = self._primary()
        while True:
            if self._take("."):
                found = self._selected(found)
            elif self._take("["):
                key = self._expression()
                self._expect("]")
                found = _Bound(found.steps + key.steps + found.weight + 1, found.weight, found.items)
            else:
                return _Bound(found.steps + count, found.weight, found.items)

    def _selected(self, of: _Bound) -> _Bound:
        name = self._name()
        if not self._take("("):
            return _Bound(of.steps + of.weight + 1, of.weight, of.items)
        if name in _MACROS:
            return self._macro(name, of)
        return self._called(name, of, self._arguments())

    def _macro(self, name: str, over: _Bound) -> _Bound:
        """Read a loop: what it runs for each item of *over* is read with the item bound to its name."""
        variable = self._name()
        self._expect(",")
        item = _Bound(0.0, over.weight / max(1.0, over.items), over.items)
        outside, self.names = self.names, {**self.names, variable: item}
        bodies = self._list(")")
        self.names = outside
        each = sum(body.steps + body.weight + 2 for body in bodies)
        taken = over.steps + over.items * each
        if name == "map":
            made = bodies[-1] if bodies else _Bound(0.0)
            found = _Bound(taken, over.items * (made.weight + 1), max(over.items, made.items))
        elif name == "filter":
            found = _Bound(taken, over.weight, over.items)
        else:
            return _Bound(taken)
        # What was made so far is copied for each item that is added.
        return _Bound(taken + over.items * found.weight, found.weight, found.items)

    def _called(self, name: str, of: _Bound | None, given: Sequence[tuple[_Bound, str | None]]) -> _Bound:
        """Return what a function takes: as long as its arguments are heavy, unless it is a regular expression."""
        bounds = [*([of] if of else ()), *(bound for bound, _ in given)]
        weight = sum(bound.weight for bound in bounds)
        taken = sum(bound.steps for bound in bounds) + weight + 1
        if name != "matches":
            return _Bound(taken, weight, max((bound.items for bound in bounds), default=1.0))
        pattern = given[-1][1] if given else None
        if pattern is None:
            raise UnreadableError("the pattern of matches() must be a string")
        return _Bound(taken + _pattern_steps(pattern))

    def _arguments(self) -> list[tuple[_Bound, str | None]]:
        """Read what a function is given; each with its text if it is one."""
        found: list[tuple[_Bound, str | None]] = []
        while not self._take(")"):
            begins = self.at
            bound = self._expression()
            is_text = self.at == begins + 1 and self.tokens[begins].kind == "text"
            found.append((bound, self.tokens[begins].text if is_text else None))
            if not self._take(","):
                self._expect(")")
                break
        return found

    def _list(self, end: str) -> list[_Bound]:
        found = []
        while not self._take(end):
            found.append(self._expression())
            if self._take(":"):
                found.append(self._expression())
            if not self._take(","):
                self._expect(end)
                break
        return found

    def _primary(self) -> _Bound:
        token = self._next
        self.at += 1
        if token.kind == "text":
            return _Bound(1.0, 1 + len(token.text) / _BYTES_A_STEP)
        if token.kind == "number":
            return _Bound(1.0)
        if token.kind == "name":
            return self._named(token.text)
        if token.text == "(":
            found = self._expression()
            self._expect(")")
            return found
        if token.text in {"[", "{"}:
            return _collected(self._list("]" if token.text == "[" else "}"))
        raise UnreadableError(f"{token.text!r} isn't expected" if token.text else "it ends too early")

    def _named(self, name: str) -> _Bound:
        if self._take("("):
            return self._called(name, None, self._arguments())
        found = self.names.get(name, self.input)
        return _Bound(1.0, found.weight, found.items)

    def _name(self) -> str:
        if self._next.kind != "name":
            raise UnreadableError(f"{self._next.text!r} where a name is expected")
        self.at += 1
        return self.tokens[self.at - 1].text


def _combined(sign: str, left: _Bound, right: _Bound) -> _Bound:
    taken = left.steps + right.steps + 1
    if sign == "+":
        weight = left.weight + right.weight
        return _Bound(taken + weight, weight, left.items + right.items)
    if sign == "in":
        return _Bound(taken + right.weight + right.items)
    if _BINDS[sign] == _BINDS["=="]:
        return _Bound(taken + min(left.weight, right.weight))
    return _Bound(taken)


def _collected(parts: Sequence[_Bound]) -> _Bound:
    weight = 1 + sum(part.weight for part in parts)
    items = max([len(parts), *(part.items for part in parts)])
    return _Bound(sum(part.steps for part in parts) + weight, weight, items)


def _pattern_steps(pattern: str) -> float:
    """Return what making a regular expression takes, which happens at each call: repetitions are written out for it."""
    counts = [int(number) for found in _REPEATED.findall(pattern) for number in found[-1:] + found[:1] if number]
    repeated = prod(max(1, min(count, 10_000)) for count in counts)
    return (10 + 30 * len(pattern) + 4000 * len(_WIDE.findall(pattern))) * float(repeated)
