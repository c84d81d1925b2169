"""Rules that leave single fields to whoever has them: ``/spec/replicas``, ``.spec.containers[name=web].image``.

Vocabulary: a rule is a *pattern* of a path, and everything below it; it may name the manager
whose fields it means, and the *target*, which objects it is about. What it leaves to others is all that is asked for (*Always*),
or only what others changed, while what Git itself changes is written (*Drift*). Patterns are JSON pointers (``/spec/replicas``, ``~1`` for a slash, ``*``
for any name) or paths as we print them, where ``[name=web]`` picks a list item by its key,
``[="x"]`` the item of a set and ``[*]`` any item.

Pure: no I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.selector import Selector

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]+) | \["(?P<quoted>(?:[^"\\]|\\.)*)"\] | \[(?P<any>\*)\] | \[=(?P<value>[^\]]*)\]
      | \[(?P<keys>[^\]"*=]+=[^\]]*)\]""",
    re.VERBOSE,
)


class IgnoreFrom(StrEnum):
    """``spec.ignore[].from``: which changes are left alone."""

    ALWAYS = "Always"
    """All: the field is never written once the object is there."""
    DRIFT = "Drift"
    """Those of others: what Git itself changes is written."""


class IgnoreTarget(Struct, frozen=True):
    """``spec.ignore[].target``: objects, by all that is said of them; what isn't said may be anything."""

    group: str | None = None
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: Selector = Selector()

    def means(self, ref: ObjectRef, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these *labels* is meant."""
        return (
            (self.group is None or self.group == ref.group)
            and self.kind in {"", ref.kind}
            and self.namespace in {"", ref.namespace}
            and self.name in {"", ref.name}
            and self.labels.matches(labels)
        )


class IgnoreRule(Struct, frozen=True):
    """Leave alone what *pattern* matches and all below it; with *manager*, only where that one owns it.

    Each step of *pattern* is a set of conditions: pairs of an element's kind and its content. *target* None means all objects, *of* which changes.
    """

    pattern: tuple[tuple[str, Any], ...]
    manager: str = ""
    text: str = ""
    target: IgnoreTarget | None = None
    of: IgnoreFrom = IgnoreFrom.ALWAYS

    def means(self, ref: ObjectRef, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these *labels* is meant."""
        return self.target is None or self.target.means(ref, labels)

    @classmethod
    def parse(cls, text: str, manager: str = "") -> Self:
        """Read a JSON pointer or a path.

        Raises:
            ValueError: *text* is neither.
        """
        steps = tuple(_pointer_steps(text) if text.startswith("/") else _path_steps(text))
        if not steps:
            raise ValueError(f"{text!r} isn't a field: write /spec/replicas or .spec.containers[name=web].image")
        return cls(steps, manager, text)

    @classmethod
    def at(cls, path: FieldPath) -> Self:
        """Return the rule that means just *path* and what is below it."""
        return cls(tuple(_exact_step(element) for element in path), text=str(path))

    def matches(self, path: FieldPath) -> bool:
        """Return whether *path* is at or below what the pattern means."""
        return len(path) >= len(self.pattern) and all(map(_fits, self.pattern, path))

    def touches(self, path: FieldPath) -> bool:
        """Return whether *path* is at, below or above what the pattern means."""
        return all(map(_fits, self.pattern, path))

    def __str__(self) -> str:
        return f"{self.text} ({self.manager})" if self.manager else self.text


def _exact_step(element: str) -> tuple[str, Any]:
    kind, _, body = element.partition(":")
    if kind == "f":
        return "name", body
    return ("keys", tuple(json.loads(body).items())) if kind == "k" else ("value", json.loads(body))


def _pointer_steps(text: str) -> Iterator[tuple[str, Any]]:
    for part in text[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        yield ("any", None) if name == "*" else ("name", name)


def _path_steps(text: str) -> Iterator[tuple[str, Any]]:
    text = text if text.startswith((".", "[")) else f".{text}"
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise ValueError(f"{text!r} can't be read at {text[at:]!r}: write .spec.containers[name=web].image")
        at = match.end()
        if match["name"] is not None:
            yield ("any", None) if match["name"] == "*" else ("name", match["name"])
        elif match["quoted"] is not None:
            yield "name", json.loads(f'"{match["quoted"]}"')
        elif match["any"]:
            yield "any", None
        elif match["value"] is not None:
            yield "value", _scalar(match["value"])
        else:
            yield "keys", tuple(_key(pair) for pair in match["keys"].split(","))


def _key(pair: str) -> tuple[str, Any]:
    name, _, value = pair.partition("=")
    return name.strip(), _scalar(value.strip())


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fits(step: tuple[str, Any], element: str) -> bool:
    kind, wanted = step
    if kind == "any":
        return True
    if kind == "name":
        return element == f"f:{wanted}"
    if kind == "value":
        return element.startswith("v:") and _equal(json.loads(element[2:]), wanted)
    if not element.startswith("k:"):
        return False
    keys = json.loads(element[2:])
    return all(name in keys and _equal(keys[name], value) for name, value in wanted)


def _equal(one: Any, other: Any) -> bool:
    """Return whether a key's value is the one that a rule means; ``[port="80"]`` and ``[port=80]`` are the same to people."""
    return str(one) == str(other)
