"""What an image is here: programs of this machine, and how to get them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubectl_reconcile.go_programs import Log


class ImageError(Exception):
    """The programs of an image aren't there; the text says how to get them."""


@dataclass(frozen=True, slots=True)
class Image:
    """Programs of this machine that stand in for an image."""

    programs: tuple[Path, ...] = ()
    """Folders that come first on PATH, seen at the same place in the container."""
    command: tuple[str, ...] = ()
    """What runs where the container names no command."""
    folders: tuple[Path, ...] = ()
    """More of the machine that can be read in the container."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables that the image sets."""
    at: str = ""
    """Where its programs are in the image that they stand in for, for those who call them by their path."""
    empty: tuple[str, ...] = ()
    """Folders that the image has for its programs to write to."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to get the programs of one image."""

    image: Callable[[str, Mapping[str, str]], Image | None]
    """Return it at a version, None where its programs aren't there."""
    how: Callable[[str], str]
    """Say what to do where they aren't there at a version."""
    build: Callable[[Log, Mapping[str, str]], object] | None = None
    """Makes them; None where nothing can be done here."""
    lacks: Callable[[Mapping[str, str]], str] = lambda _: ""
    """Say which program of this machine it takes to make them and isn't there."""
