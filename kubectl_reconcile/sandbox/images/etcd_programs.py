"""etcd, etcdctl and etcdutl, built from source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.go_programs import GoProgram, Log
from kubectl_reconcile.sandbox.images.image import Image, Recipe

_ETCD = Path(__file__).with_name("etcd")
_FLAGS = ("-trimpath", "-ldflags", "-s -w")
_ETCD_PARTS = ("etcd", "etcdctl", "etcdutl")


def etcd(version: str) -> Recipe:
    """Return how to get the programs of this *version*."""
    program = etcd_program(version)

    def home(environ: Mapping[str, str]) -> Path:
        return cache_dir(environ) / "images" / "etcd"

    def image(_: str, environ: Mapping[str, str]) -> Image | None:
        folder = home(environ) / f"build-{program.digest(_FLAGS)}"
        return Image(programs=(folder,), command=("etcd",), at="/usr/local/bin") if folder.is_dir() else None

    def make(log: Log, environ: Mapping[str, str]) -> None:
        program.built(home(environ), _FLAGS, log, environ, name="all-of-etcd", finish=_name_parts)

    how = f"kubectl reconcile sandbox build --image etcd:{version}, some minutes the first time"
    return Recipe(image, lambda _: how, make)


def etcd_program(version: str) -> GoProgram:
    """Return the program that all parts of this *version* are."""
    folder = _ETCD / f"v{version.replace('.', '_')}"
    return GoProgram(f"etcd {version}", folder, ("go.mod", "go.sum", "../main.go"), "or use an etcd of another version")


def _name_parts(folder: Path) -> None:
    for part in _ETCD_PARTS:
        (folder / part).symlink_to("all-of-etcd")


ETCD_VERSIONS = ("3.5.35", "3.6.16")
"""Two minors, so that an upgrade can be tried."""
