"""Label selectors, judged here as the server judges them.

Vocabulary is kubectl's ``-l``: comma-separated requirements, all of which must hold: ``app=web``, ``tier!=front``,
``env in (dev,test)``, ``env notin (prod)``, ``managed`` (is set), ``!managed`` (isn't).

Pure: text and mappings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Self

from msgspec import Struct

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9_.-]*"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!\s*)?(?P<key>{_NAME})"
    rf"(?:\s*(?P<op>==|=|!=)\s*(?P<value>{_VALUE})|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,(?=.)|$)"
)


class _Requirement(Struct, frozen=True):
    """A key with the values it may have: *negated* turns that around; *values* None stands for any."""

    key: str
    values: frozenset[str] | None
    negated: bool

    def holds(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        met = found is not None and (self.values is None or found in self.values)
        return met != self.negated


class Selector(Struct, frozen=True):
    """A parsed selector; the empty one selects everything."""

    requirements: tuple[_Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a selector as kubectl writes it.

        Raises:
            ValueError: *text* is no selector.
        """
        return cls(tuple(_requirements(text)))

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the labels that it asks about."""
        return frozenset(each.key for each in self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these *labels* is selected."""
        return all(requirement.holds(labels) for requirement in self.requirements)


def _requirements(text: str) -> Iterator[_Requirement]:
    position = 0
    while text[position:].strip():
        found = _REQUIREMENT.match(text, position)
        if not found or (found["absent"] and (found["op"] or found["set"])):
            raise ValueError(f"not a label selector: {text!r} (hint: key=value,key in (a,b),key,!key)")
        position = found.end()
        if found["op"]:
            yield _Requirement(found["key"], frozenset({found["value"]}), negated=found["op"] == "!=")
        elif found["set"]:
            values = frozenset(value.strip() for value in found["values"].split(","))
            yield _Requirement(found["key"], values, negated=found["set"] == "notin")
        else:
            yield _Requirement(found["key"], None, negated=bool(found["absent"]))
