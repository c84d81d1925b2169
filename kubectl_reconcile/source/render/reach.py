"""How far an overlay of a local folder sees: the working tree that it is in, or what it names beside its folder where there is none."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from kubectl_reconcile.core.rendering.entries import KUSTOMIZATIONS
from kubectl_reconcile.source.limits import MEBIBYTE

_UPWARDS: Final = re.compile(r"""(?:^|(?<=[\s"'\[,]))\.\.(?:/[^\s"',\]}#]*)?(?=[\s"',\]}]|$)""", re.MULTILINE)
"""What a kustomization names beside or above its folder."""

_MOST_REACHED: Final = 100
_MOST_READ: Final = MEBIBYTE


def root_of(folder: Path) -> Path:
    """Return the top of the working tree that a folder is in, beyond which an overlay in it sees nothing.

    Where there is none it is the current folder, if that is above; else the folder itself.
    """
    for above in (folder, *folder.parents):
        if os.path.lexists(above / ".git"):
            return above
    here = Path.cwd().resolve()
    return here if folder.is_relative_to(here) else folder


def reached_from(folder: Path) -> Path:
    """Return the folder in which all is that is named from a folder's kustomization upwards, and from those that it names so.

    Never the root of the file system; then it is the folder itself. Nothing but kustomizations is read for that.
    """
    top, waiting, seen = folder, [folder], {folder}
    while waiting:
        at = waiting.pop()
        for name in _UPWARDS.findall(_kustomization_in(at)):
            place = Path(os.path.normpath(at / name))
            if not place.exists() or place in seen or len(seen) >= _MOST_REACHED:
                continue
            seen.add(place)
            waiting += [place] if place.is_dir() else []
            top = Path(os.path.commonpath([top, place if place.is_dir() else place.parent]))
    return folder if top == Path(top.anchor) else top


def _kustomization_in(folder: Path) -> str:
    for name in KUSTOMIZATIONS:
        if (folder / name).is_file():
            with suppress(OSError), (folder / name).open("rb") as file:
                return file.read(_MOST_READ).decode(errors="replace")
    return ""


_BESIDE: Final = re.compile(r"(?<![\w./-])\.\.(?:/[^\s\"',\]}#]*)?")
"""What any file names beside or above its folder."""


def places_read(folder: Path) -> frozenset[Path] | None:
    """Return the folders and files that manifests, an overlay or a chart at *folder* are made of, as far as its files name them by relative paths.

    None where that isn't known: a link leads elsewhere, or there are too many files that name others.
    """
    found, waiting = {folder}, [folder]
    while waiting:
        place = waiting.pop()
        for at, folders, files in os.walk(place) if place.is_dir() else ():
            if any(Path(at, name).is_symlink() for name in (*folders, *files)):
                return None
            for name in {*KUSTOMIZATIONS, "Chart.yaml"} & set(files):
                named = {Path(os.path.normpath(Path(at, each))) for each in _beside_in(Path(at, name))}
                new = {each for each in named if each not in found and not each.is_relative_to(folder)}
                found |= new
                waiting += new
        if len(found) > _MOST_REACHED:
            return None
    return frozenset(found)


def _beside_in(file: Path) -> list[str]:
    with suppress(OSError):
        return _BESIDE.findall(file.read_bytes()[:_MOST_READ].decode(errors="replace"))
    return []
