"""Makes ``core/health/kinds/kinds.json`` from the rules beside it, which people write in YAML: the program reads JSON in a thousandth of a second.

It maps each group to the JSON text of its kinds, so that only the rules of groups that a cluster has are read into memory.

Run as a module with the name of that file, by ``make manifests``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

PACKAGE = "kubectl_reconcile.core.health.kinds"
_READ = ("rules", "silent")


@cache
def sources() -> dict[str, dict[str, Any]]:
    """Return the files of rules as they are written, by name, in order."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = {each.name: each for each in files(PACKAGE).iterdir() if each.name.endswith(".yaml")}
    return {name: yaml.load(found[name].read_text("utf-8"), loader) for name in sorted(found)}  # noqa: S506 - a safe one


def entries() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Yield group, kind, the kind's entry and its file for all kinds that there are rules for."""
    for source in sources().values():
        for entry in source["kinds"]:
            for group in entry.get("groups", source["groups"]):
                for kind in entry["kinds"]:
                    yield group, kind, entry, source


def made() -> str:
    """Return the file that the program reads."""
    table: dict[str, dict[str, Any]] = {}
    for group, kind, entry, _ in entries():
        if kind in table.setdefault(group, {}):
            raise ValueError(f"{kind}.{group} has rules twice")
        table[group][kind] = {key: entry[key] for key in _READ if key in entry}
    texts = {group: json.dumps(kinds, sort_keys=True, separators=(",", ":")) for group, kinds in table.items()}
    return json.dumps(texts, indent=0, sort_keys=True) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(made(), "utf-8")
