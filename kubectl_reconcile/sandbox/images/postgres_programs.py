"""PostgreSQL as it is installed on this machine, by major version."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kubectl_reconcile.sandbox.images.image import Image, Recipe

_DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian keeps a folder per major version, which isn't on PATH."""
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_SOCKETS = "/var/run/postgresql"


def _image(version: str, environ: Mapping[str, str]) -> Image | None:
    """Return the one of this machine with the major version that is asked for, or the newest where none is."""
    found = _folders(environ)
    wanted = version.partition(".")[0]
    major = wanted if wanted.isdigit() else max(found, key=int, default="")
    if major not in found:
        return None
    return Image(
        programs=(found[major],), command=("postgres",), at=f"{_DEBIAN}/{major}/bin",
        environ={"PG_MAJOR": major}, empty=(_SOCKETS,),
    )  # fmt: skip


def _folders(environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the folder of programs of each major version; what PATH has comes first."""
    first = shutil.which("postgres", path=environ.get("PATH", os.defpath))
    folders = [Path(first).resolve().parent] if first else []
    folders += sorted(_DEBIAN.glob("*/bin"))
    found: dict[str, Path] = {}
    for folder in folders:
        if major := _major(folder):
            found.setdefault(major, folder)
    return found


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


def _how(version: str) -> str:
    major = version.partition(".")[0]
    package = f"postgresql-{major}" if major.isdigit() else "postgresql"
    return f"install PostgreSQL on this machine, as in apt install {package}"


POSTGRES = Recipe(_image, _how)
