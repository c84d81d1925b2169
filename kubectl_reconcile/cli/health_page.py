"""Makes the second half of ``docs/health.md``: the words of the general rule, and the rules of popular kinds, from the data.

What people wrote stays as it is, up to the line that says so. Run as a module with the name of that page, by ``make manifests``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kubectl_reconcile.cli import health_kinds
from kubectl_reconcile.core.health import general_rule
from kubectl_reconcile.core.health.health import HealthStatus

MADE = "<!-- What follows is made by make manifests. -->\n"

_WORDS = """
## Words

| what | words |
|---|---|
| conditions where all is well | {positive} |
| conditions where something is wrong | {negative} |
"""
_KINDS = """
## Rules of kinds

Each rule is a small table in `kubectl_reconcile/core/health/kinds`. There is a file for each API group or operator, with a link to the API's
documentation and with examples, which are its tests. To add a rule, write a file as described in that folder's `__init__.py`, and run `make manifests`.

The first rule that matches decides, otherwise the general rule. A name that begins with a capital letter is a condition and its status. Any other name is a
field of the status, unless it begins with `spec` or `metadata`.

| kinds | rules |
|---|---|
"""


def page(now: str) -> str:
    """Return the page as it must be: what is written by hand in *now*, and the rest written again."""
    written = now.partition(MADE)[0]
    words = _WORDS.format(positive=_coded(general_rule.POSITIVE), negative=_coded(general_rule.NEGATIVE))
    said = "".join(f"| `phase` and the like: `{status}` | {_coded(each)} |\n" for status, each in _said())
    return "".join([written, MADE, words, said, _KINDS, *(f"{row}\n" for row in _rows())])


def _said() -> Iterator[tuple[HealthStatus, tuple[str, ...]]]:
    yield from general_rule.WORDS.items()


def _rows() -> Iterator[str]:
    for source in health_kinds.sources().values():
        for entry in source["kinds"]:
            groups, docs = entry.get("groups", source["groups"]), entry.get("docs", source["docs"])
            kinds = ", ".join("all others" if kind == "*" else f"`{kind}`" for kind in entry["kinds"])
            yield f"| {kinds} of [{_coded(groups)}]({docs}) | {'; '.join(_rules(entry))} |"


def _rules(entry: Mapping[str, Any]) -> Iterator[str]:
    if silent := entry.get("silent"):
        yield f"{silent} without a status"
    for row in entry.get("rules", ()):
        [(verdict, tests)] = ((key, asked) for key, asked in row.items() if key != "say")
        found = " and ".join(_test(path, asked) for path, asked in tests.items())
        yield f"{verdict}: {found}" if found else f"else {verdict}"
    if not entry.get("rules"):
        yield "by the general rule"


_ASKED = {
    "not": "`{path}` is there, but not {value}",
    "below": "`{path}` below {value}",
    "above": "`{path}` above {value}",
    "equals": "`{path}` as {value}",
    "differs": "`{path}` other than {value}",
    "older": "`{path}` another than the object's",
    "short": "`{path}` short of all",
}


def _test(path: str, asked: Any) -> str:
    if asked is None:
        return f"no `{path}`"
    if isinstance(asked, Mapping):
        name = next(each for each in asked if each != "else")
        return _ASKED[name].format(path=path, value=_value(asked[name]))
    return f"any `{path}`" if asked == "*" else f"`{path}` {_value(asked)}"


def _value(value: Any) -> str:
    return " or ".join(f"`{each}`" for each in (value if isinstance(value, list) else [value]))


def _coded(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(page(file.read_text("utf-8")), "utf-8")
