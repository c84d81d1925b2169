"""Which programs of this machine an image name stands for.

Vocabulary: an *image* is a folder of programs that come first on PATH, what is run where a container names no command, and the
folders of the machine that can be seen besides the system's own; a *recipe* says how to get the programs of one image.

An image is known by the last part of its repository and by its tag, without the ``v`` and the build that registries add:
``quay.io/coreos/etcd:v3.6.16`` and ``registry.k8s.io/etcd:3.6.16-0`` are both etcd 3.6.16. Digests are refused: nothing here has one.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from kubectl_reconcile.go_programs import GoBuildError, Log
from kubectl_reconcile.sandbox.errors import BuildError
from kubectl_reconcile.sandbox.images.etcd_programs import ETCD_VERSIONS, etcd
from kubectl_reconcile.sandbox.images.image import Image, ImageError, Recipe
from kubectl_reconcile.sandbox.images.kafka_programs import KAFKA_VERSIONS, kafka
from kubectl_reconcile.sandbox.images.postgres_programs import POSTGRES

_REFERENCE = re.compile(r"(?:.*/)?(?P<name>[^/:@]+)(?::(?P<tag>[^/:@]+))?")
_TAG = re.compile(r"v?(\d+(?:\.\d+)*)(?:-\w+)?")


def parsed(reference: str) -> tuple[str, str]:
    """Return the name and the version that an image *reference* means; the version is empty where it has none.

    Raises:
        ImageError: it is no reference that programs can stand for.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ImageError(f"{reference}: process pods find images by name and tag, not by digest")
    tag = match["tag"] or ""
    version = _TAG.fullmatch(tag)
    return match["name"], version[1] if version else tag


def find(reference: str, environ: Mapping[str, str] = os.environ) -> Image:
    """Return the image of *reference*.

    Raises:
        ImageError: its programs aren't there, or nothing here stands for it; the text says how to get them.
    """
    version, recipe = _known(reference)
    if recipe is None:
        known = sorted({":".join(filter(None, key)) for key in recipes()})
        raise ImageError(f"no programs stand in for {reference}; there are some for {', '.join(known)}")
    image = recipe.image(version, environ)
    if image is None:
        raise ImageError(f"the programs for {reference} are missing (hint: {recipe.how(version)})")
    return image


def _known(reference: str) -> tuple[str, Recipe | None]:
    """Return the version that *reference* asks for, and how to get its programs."""
    name, version = parsed(reference)
    return version, recipes().get((name, version)) or recipes().get((name, ""))


def recipes() -> Mapping[tuple[str, str], Recipe]:
    """Return what there are programs for, by name and version; an empty version stands for all that aren't named."""
    return _RECIPES


def build(log: Log, *, only: str = "", environ: Mapping[str, str] = os.environ) -> list[str]:
    """Build the programs of all images that can be built, or of those that *only* names; return which these are.

    Where all are wanted, one that this machine can't make is left out, and *log* hears why.

    Raises:
        BuildError: none has that name, what it takes isn't there, or a build failed.
    """
    wanted = {
        f"{name}:{version}": recipe
        for (name, version), recipe in recipes().items()
        if recipe.build and only in {"", name, f"{name}:{version}"}
    }
    if not wanted:
        _, recipe = _known(only)
        hint = recipe.how(only.partition(":")[2]) if recipe else ""
        raise BuildError(
            f"there is no image {only} that could be built", hint or "leave out the name to build all images"
        )
    return sorted(image for image, recipe in wanted.items() if _is_built(image, recipe, log, environ, must=bool(only)))


def _is_built(image: str, recipe: Recipe, log: Log, environ: Mapping[str, str], *, must: bool) -> bool:
    """Build the programs of one image; return whether they are there, which they *must* be."""
    if lacks := recipe.lacks(environ):
        if must:
            raise BuildError(f"{image} can't be built here: {lacks}", recipe.how(image.partition(":")[2]))
        log(f"{image} isn't built: {lacks}")
    elif recipe.build:
        try:
            recipe.build(log, environ)
        except GoBuildError as error:
            raise BuildError(error.message, error.hint, output=error.output) from None
    return not lacks


def _system(_: str, __: Mapping[str, str]) -> Image:
    return Image(command=("/bin/sh",))


def _python(_: str, __: Mapping[str, str]) -> Image:
    """The interpreter that runs this, with all that is installed beside it."""
    package = Path(__file__).resolve().parents[2]
    packages = {
        found.parent for found in package.parent.glob(f"{package.name}*/__init__.py")
    }  # where they stand in a checkout
    prefixes = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    folders = {*prefixes, *packages} - {Path("/usr")}
    return Image(
        programs=(Path(sysconfig.get_path("scripts")),),
        command=(sys.executable,),
        folders=tuple(sorted(folders)),
        environ={"PYTHONUNBUFFERED": "1"},
    )


def _always_there(_: str) -> str:
    return ""


_RECIPES: Mapping[tuple[str, str], Recipe] = {
    ("system", ""): Recipe(_system, _always_there),
    ("python", ""): Recipe(_python, _always_there),
    **{("etcd", version): etcd(version) for version in ETCD_VERSIONS},
    ("postgres", ""): POSTGRES,
    **{("kafka", version): kafka(version) for version in KAFKA_VERSIONS},
}
