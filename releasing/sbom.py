"""The software bill of materials of a release: all that it ships besides our own code, as CycloneDX JSON.

Packages of Python come from the locks, with who needs them; modules of Go from the ``go.mod`` of the program that renders, whose
requirements are just what is linked into it; what the page is drawn with from the note that lies beside it. Licenses come from
``licenses.json``, which `releasing.licenses` writes.

Pure: the same texts make the same bytes.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.markers import Marker

PROJECT: Final = "kubectl-reconcile"
SCHEMA: Final = SchemaVersion.V1_6
_WHERE_IT_RUNS: Final = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
}
"""Markers of packages that are shipped hold here; the others are of Windows, or of another Python."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """One package of a lock: its version, where it is needed, and the packages that need it."""

    name: str
    version: str
    marker: str
    needed_by: tuple[str, ...]

    @property
    def shipped(self) -> bool:
        """Return whether it is installed where the program runs."""
        return not self.marker or Marker(self.marker).evaluate(_WHERE_IT_RUNS)


@dataclass(frozen=True, slots=True)
class Materials:
    """The texts that a bill is made from, and the version of Go's own library; empty where it isn't known."""

    lock: str
    image_lock: str
    go_mod: str
    vendored: str
    licenses: str = "{}"
    go: str = ""

    def license_of(self, kind: str, name: str) -> list[LicenseExpression]:
        """Return the license of a package; nothing where none is known."""
        found = json.loads(self.licenses).get(kind, {}).get(name)
        return [LicenseExpression(found)] if found else []


def pinned(lock: str) -> list[Pinned]:
    """Return the packages of a lock that uv wrote.

    Raises:
        ValueError: a package has no note of who needs it, or the text is no lock.
    """
    found = []
    for block in re.split(r"^(?=\w)", lock, flags=re.MULTILINE)[1:]:
        match = re.match(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?==(?P<version>\S+)(?: ; (?P<marker>[^\\\n]+))?", block)
        needed_by = tuple(re.findall(r"^ +#(?: via)? +(?!via$)([\w.-]+)", block, re.MULTILINE))
        if not match or not needed_by:
            raise ValueError(f"this isn't a lock that uv wrote with notes of who needs what: {block.splitlines()[0]}")
        found.append(Pinned(match["name"], match["version"], (match["marker"] or "").strip(), needed_by))
    return found


def modules(go_mod: str) -> list[tuple[str, str]]:
    """Return the modules that a ``go.mod`` requires, and their versions."""
    return re.findall(r"^(?:require |\t)(\S+) (v\d\S*)", go_mod, re.MULTILINE)


def bill(version: str, materials: Materials, epoch_s: int) -> str:
    """Return the bill of a version of ours, as JSON; it bears the time that is given."""
    ours = Component(
        name=PROJECT, version=version, type=ComponentType.APPLICATION, purl=PackageURL("pypi", None, PROJECT, version),
        licenses=[LicenseExpression("Apache-2.0")],
    )  # fmt: skip
    metadata = BomMetaData(component=ours, timestamp=datetime.fromtimestamp(epoch_s, UTC))
    bom = Bom(metadata=metadata)
    bom.register_dependency(ours, [*_python(bom, materials), _program(bom, version, materials), *_page(bom, materials)])
    # Derived from what is listed, for a serial number by chance would differ each time.
    listed = "\n".join(sorted(str(each.purl) for each in [ours, *bom.components]))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, listed)
    for component in [ours, *bom.components]:
        component.bom_ref.value = str(component.purl)
    return make_outputter(bom, OutputFormat.JSON, SCHEMA).output_as_string(indent=2) + "\n"


def _python(bom: Bom, materials: Materials) -> Sequence[Component]:
    """Add the packages of Python; return those that we ask for ourselves."""
    always = {(each.name, each.version) for each in pinned(materials.lock) if each.shipped}
    packages = {(each.name, each.version): each for each in [*pinned(materials.lock), *pinned(materials.image_lock)]}
    components = {
        key: Component(
            name=each.name, version=each.version, purl=PackageURL("pypi", None, each.name, each.version),
            scope=ComponentScope.REQUIRED if key in always else ComponentScope.OPTIONAL,
            licenses=materials.license_of("pypi", each.name),
        )
        for key, each in sorted(packages.items())
    }  # fmt: skip
    bom.components.update(components.values())

    def needed_by(name: str) -> list[Component]:
        return [components[key] for key, each in packages.items() if name in each.needed_by]

    for component in components.values():
        bom.register_dependency(component, needed_by(component.name))
    return needed_by(PROJECT)


def _program(bom: Bom, version: str, materials: Materials) -> Component:
    """Add the program that renders and what is linked into it; return the program."""
    path = re.search(r"^module (\S+)", materials.go_mod, re.MULTILINE)
    if not path:
        raise ValueError("go.mod of the program that renders names no module")
    linked = [*modules(materials.go_mod), *([("stdlib", materials.go)] if materials.go else [])]
    components = [
        Component(name=name, version=number, purl=_go(name, number), licenses=materials.license_of("golang", name))
        for name, number in linked
    ]
    program = Component(
        name="reconcile-render", version=version, type=ComponentType.APPLICATION, purl=_go(path[1], f"v{version}"),
        licenses=[LicenseExpression("Apache-2.0")],
    )  # fmt: skip
    bom.components.update([program, *components])
    bom.register_dependency(program, components)
    return program


def _go(path: str, version: str) -> PackageURL:
    """Return the address of a module of Go, in lower case as the scheme of such addresses wants it."""
    namespace, _, name = path.lower().rpartition("/")
    return PackageURL("golang", namespace or None, name, version)


def _page(bom: Bom, materials: Materials) -> Iterable[Component]:
    """Add what the page is drawn with, and what that contains; return it."""
    for note in json.loads(materials.vendored).values():
        whole = _vendored(note)
        parts = [_vendored(part) for part in note.get("contains", ())]
        bom.components.update([whole, *parts])
        bom.register_dependency(whole, parts)
        yield whole


def _vendored(note: Mapping[str, Any]) -> Component:
    """Return what a note tells of a file, or of a part of one, which has no digest of its own."""
    kind, _, package = note["from"].partition(":")
    name, _, version = package.rpartition("@")
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=note["sha256"])] if "sha256" in note else []
    return Component(
        name=name, version=version, purl=PackageURL(kind, None, name, version), description=note["what"],
        hashes=hashes, licenses=[LicenseExpression(note["license"])], copyright=note["copyright"],
    )  # fmt: skip
