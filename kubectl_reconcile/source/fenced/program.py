"""Where a fenced program is: beside the package that calls it, in packages that bring it, else built from its sources and kept.

Wheels of a platform bring it. Others bring its sources, and so does a checkout: building takes minutes the first time, so only
commands of somebody who sees that build it by the way; a daemon never does.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.go_programs import DIGEST, GoBuildError, GoProgram, Log

SHARED: Final = (
    "../../fenced/go/pipe.go", "../../fenced/go/fence_linux.go", "../../fenced/go/fence_linux_amd64.go",
    "../../fenced/go/fence_linux_arm64.go", "../../fenced/go/fence_other.go",
)  # fmt: skip
"""The sources that all fenced programs share, from the folder of one's own."""


class FencedProgram(Struct, frozen=True):
    """A program called *name*, made of *sources* with *tags*, kept in the folder *home* of the cache; *places* are where packages bring it."""

    name: str
    sources: GoProgram
    home: str
    places: tuple[Path, ...]
    tags: str = ""

    @property
    def what(self) -> str:
        """What sentences call it."""
        return self.sources.what

    def version(self) -> str:
        """Return the version of the program that belongs to these sources: their digest, which it says itself."""
        return _digest(self)

    def find(self, environ: Mapping[str, str] = os.environ) -> Path | None:
        """Return where the program is; None where it wasn't built yet."""
        kept = self._folder(environ) / f"build-{self.version()}"
        places = (folder / self.name for folder in (*self.places, kept))
        return next((place for place in places if os.access(place, os.X_OK)), None)

    def build(self, log: Log, *, environ: Mapping[str, str] = os.environ, platform: str = "") -> Path:
        """Return the program, building it first if it isn't there; that takes minutes the first time, and *log* hears of it.

        It is for this machine, or for another *platform*, as in ``linux_arm64``.

        Raises:
            GoBuildError: there is no Go that can build it, or the build failed.
        """
        if not platform and (found := self.find(environ)) is not None:
            return found
        static = {**environ, "CGO_ENABLED": "0"}
        home = self._folder(environ) / platform
        return self.sources.built(home, self.flags, log, static, name=self.name, platform=platform) / self.name

    def at_hand(self, build_log: Log | None, missing: str) -> Path:
        """Return where the program is; where it isn't there it is built if *build_log* is set, which hears of it. Else it is *missing*, in a sentence.

        Raises:
            GoBuildError: it isn't there, and can't be built or isn't to be.
        """
        if (found := self.find()) is not None:
            return found
        if build_log is None:
            raise GoBuildError(missing)
        return self.build(build_log)

    def main(self) -> int:
        """Build it and say where it is; the exit status is 1 where that can't be done."""
        try:
            place = self.build(lambda line: print(line, file=sys.stderr))  # noqa: T201 - it talks on the terminal
        except GoBuildError as error:
            print(f"error: {error}\n{error.output}".rstrip(), file=sys.stderr)  # noqa: T201
            return 1
        print(place)  # noqa: T201
        return 0

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that it is built with."""
        tags = ("-tags", self.tags) if self.tags else ()
        return (*tags, "-trimpath", "-ldflags", f"-s -w -X main.version={DIGEST}")

    def _folder(self, environ: Mapping[str, str]) -> Path:
        return cache_dir(environ) / self.home


@functools.cache
def _digest(program: FencedProgram) -> str:
    return program.sources.digest(program.flags)
