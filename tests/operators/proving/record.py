"""``PROVEN.json``: when each operator was proven, on which commit, in what time, and with which parts."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.closure import TREE

PROVEN = TREE / "tests/operators/PROVEN.json"
_FEW = 3
"""How many parts are named before the others are counted."""


@dataclass(frozen=True)
class Proof:
    """All real tests of an operator passed: *when* (UTC), on which *commit*, with which *parts*, in how many *minutes*."""

    commit: str
    when: str
    minutes: float
    result: str
    parts: Mapping[str, str]

    def changed(self, parts: Mapping[str, str]) -> list[str]:
        """The parts that are others than *parts*, that are new and that are gone."""
        return sorted(part for part in self.parts.keys() | parts.keys() if self.parts.get(part) != parts.get(part))


def read(file: Path = PROVEN) -> dict[str, Proof]:
    """The proof of each operator that has one."""
    if not file.exists():
        return {}
    return {
        name: Proof(
            **{key: value for key, value in one.items() if key != "parts"},
            parts={_joined(folder, part): each for folder, held in one["parts"].items() for part, each in held.items()},
        )
        for name, one in json.loads(file.read_text(encoding="utf-8")).items()
    }


def write(proofs: Mapping[str, Proof], file: Path = PROVEN) -> None:
    """Write all *proofs*: one line of *file* is what a folder holds."""
    tree = {}
    for name, proof in sorted(proofs.items()):
        parts: dict[str, dict[str, str]] = {}
        for part, each in sorted(proof.parts.items()):
            folder, _, base = part.rpartition(" " if " " in part else "/")
            parts.setdefault(folder, {})[base] = each
        tree[name] = {
            "commit": proof.commit, "when": proof.when, "minutes": proof.minutes, "result": proof.result, "parts": parts,
        }  # fmt: skip
    text = json.dumps(tree, indent=1)
    innermost = re.compile(r"\{[^{}]*\}")
    file.write_text(innermost.sub(lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text) + "\n", encoding="utf-8")


def _joined(folder: str, part: str) -> str:
    return f"{folder} {part}" if folder.endswith(".lock") else posixpath.join(folder, part)


def in_short(parts: Sequence[str]) -> str:
    """The first few of *parts*, without what all begin with, and how many more there are."""
    names = [part.removeprefix("kubectl_reconcile/") for part in parts[:_FEW]]
    return ", ".join([*names, *([f"{len(parts) - _FEW} more"] if len(parts) > _FEW else [])])
