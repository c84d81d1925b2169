"""A new module, as files: what ``kubectl reconcile modules new`` writes.

The templates beside this page are a complete package: the module, its CRD, an example, tests that pass, and the entry
point by which kubectl-reconcile finds it once the package is installed.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

_TEMPLATES = {
    "pyproject.toml": "pyproject.toml",
    "module.py": "{package}.py",
    "crd.yaml": "crd.yaml",
    "example.yaml": "example.yaml",
    "test_module.py": "test_{package}.py",
    "README.md": "README.md",
}


class ScaffoldError(Exception):
    """A module can't be begun like this; the message says why."""


class Names(Struct, frozen=True):
    """What the new things are called."""

    name: str
    kind: str
    group: str
    version: str

    @classmethod
    def of(cls, name: str, kind: str, api: str) -> Names:
        """Return the names, where they can be used.

        Raises:
            ScaffoldError: one of them can't; it is named.
        """
        if not re.fullmatch(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", name):
            raise ScaffoldError(f"{name!r} can't be a module's name; write lower-case letters, digits and dashes")
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,40}", kind):
            raise ScaffoldError(f"{kind!r} can't be a kind; write it as in CamelCase")
        group, _, version = api.partition("/")
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\.[a-z]+", group) or not re.fullmatch(
            r"v[0-9][a-z0-9]*", version
        ):
            raise ScaffoldError(f"{api!r} can't be an API; write it as example.com/v1alpha1")
        return cls(name, kind, group, version)

    def fill(self, template: str) -> str:
        """Return *template* with the names put in."""
        singular = self.kind.lower()
        values = {
            "NAME": self.name,
            "PACKAGE": self.name.replace("-", "_"),
            "KIND": self.kind,
            "GROUP": self.group,
            "VERSION": self.version,
            "SINGULAR": singular,
            "PLURAL": f"{singular}es" if singular.endswith(("s", "x", "ch", "sh")) else f"{singular}s",
        }
        return re.sub(r"__([A-Z]+)__", lambda found: values[found[1]], template)


def write(names: Names, folder: Path) -> list[Path]:
    """Write a new module into *folder*, and return its files.

    Raises:
        ScaffoldError: something of it already exists; nothing was written.
    """
    package = names.name.replace("-", "_")
    targets = {template: folder / path.format(package=package) for template, path in _TEMPLATES.items()}
    if there := [path for path in targets.values() if path.exists()]:
        raise ScaffoldError(f"{there[0]} exists already")
    folder.mkdir(parents=True, exist_ok=True)
    for template, path in targets.items():
        text = files(__package__).joinpath("templates", f"{template}.txt").read_text()
        path.write_text(names.fill(text))
    return list(targets.values())
