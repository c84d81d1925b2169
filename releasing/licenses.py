"""Write down the licenses of all that a release ships: ``make licenses``, after ``make lock`` or a change of ``go.mod``.

The bill of materials takes them from ``licenses.json``, so that the same commit makes the same bill on every machine. A package says
its license in its metadata; where it doesn't, or only by a vague word such as *BSD*, and for modules of Go, the text of the license tells.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from releasing.commands import CommandError, run
from releasing.sbom import pinned

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "releasing" / "licenses.json"
PROGRAM = ROOT / "kubectl_reconcile" / "source" / "render" / "program"
_TEXTS = {
    "Apache-2.0": r"Apache License Version 2\.0|apache\.org/licenses/LICENSE-2\.0",
    "MPL-2.0": r"Mozilla Public License,? (Version|v\.) ?2\.0",
    "BSD-3-Clause": r"Redistributions in binary form[\s\S]*(Neither|nor) the names? of",
    "BSD-2-Clause": r"Redistributions in binary form(?![\s\S]*(Neither|nor) the names? of)",
    "MIT": r"Permission is hereby granted, free of charge",
    "ISC": r"Permission to use, copy, modify,? and(/or)? ?distribute this software for any purpose",
    "LGPL-3.0-only": r"GNU LESSER GENERAL PUBLIC LICENSE Version 3",
}
"""What the text of a license says, and of no other."""

_CLASSIFIERS = {"MIT License": "MIT", "Apache Software License": "Apache-2.0", "ISC License (ISCL)": "ISC"}
"""Classifiers that stand for one license; *BSD License* may be several."""

_NOT_HERE = {"colorama": "BSD-3-Clause"}
"""What is locked for Windows alone, and so isn't installed where releases are made, by its own LICENSE.txt."""


def main() -> None:
    """Write the file, or say what isn't known."""
    try:
        known = {"pypi": dict(_of_python()), "golang": dict(_of_go())}
    except CommandError as failure:
        sys.exit(f"error: {failure}")
    unknown = [f"{kind}:{name}" for kind, found in known.items() for name, license_ in found.items() if not license_]
    if unknown:
        sys.exit(
            f"error: no license is known of {', '.join(unknown)}: install what is locked (make venv), or teach releasing/licenses.py"
        )
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def said_by(texts: Iterable[str]) -> str:
    """Return the license that texts state, as an SPDX expression; empty where they state none. Of several, all hold."""
    flat = [" ".join(text.split()) for text in texts]
    found = {name for text in flat for name, pattern in _TEXTS.items() if re.search(pattern, text)}
    return " AND ".join(sorted(found))


def _of_python() -> Iterator[tuple[str, str]]:
    """Yield the packages of the locks, each with its license."""
    locks = (ROOT / name for name in ("requirements.lock", "requirements-image.lock"))
    for name in sorted({each.name for lock in locks for each in pinned(lock.read_text(encoding="utf-8"))}):
        try:
            yield name, _of_package(metadata.distribution(name))
        except metadata.PackageNotFoundError:
            yield name, _NOT_HERE.get(name, "")


def _of_package(package: metadata.Distribution) -> str:
    said = [text for field in ("License-Expression", "License") for text in package.metadata.get_all(field) or ()]
    for text in said:
        with contextlib.suppress(InvalidLicenseExpression):
            return canonicalize_license_expression(text)
    files = [each for each in package.files or () if re.search(r"licen[cs]e|copying", each.name, re.IGNORECASE)]
    texts = [file.read_text() for file in files] or said
    classified = {each.rpartition(" :: ")[2] for each in package.metadata.get_all("Classifier") or ()}
    return said_by(texts) or " OR ".join(sorted(_CLASSIFIERS[each] for each in classified & _CLASSIFIERS.keys()))


def _of_go() -> Iterator[tuple[str, str]]:
    """Yield the modules that are linked into the program that renders, each with its license."""
    folders = {
        each["Path"]: Path(each["Dir"])
        for each in _objects(run("go", "mod", "download", "-json", folder=PROGRAM))
        if "Dir" in each
    }
    wanted = re.findall(r"^(?:require |\t)(\S+) v\d", (PROGRAM / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    for name in sorted(wanted):
        texts = [file.read_text(errors="replace") for file in sorted(folders[name].iterdir()) if _is_license(file)]
        yield name, said_by(texts)
    yield "stdlib", "BSD-3-Clause"


def _is_license(file: Path) -> bool:
    return file.is_file() and re.match(r"licen[cs]e|copying", file.name, re.IGNORECASE) is not None


def _objects(text: str) -> Iterator[dict[str, str]]:
    """Yield the JSON objects that a text has one after the other."""
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        found, end = decoder.raw_decode(text)
        yield found
        text = text[end:].lstrip()


if __name__ == "__main__":
    main()
