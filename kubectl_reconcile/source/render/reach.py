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
