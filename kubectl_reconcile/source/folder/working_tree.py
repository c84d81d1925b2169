"""What Git knows of the working tree that a folder is in: which repository it is of, and what differs from a commit.

Its own configuration counts, as for anybody who runs git in it; nothing that would run another program. All calls block.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from msgspec import Struct

from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.render.reach import root_of
from kubectl_reconcile.source.running.process import QUIET, running

_TIMEOUT_S = 60.0


class WorkingTree(Struct, frozen=True):
    """A working tree, by its folder at the *top*."""

    top: Path

    @classmethod
    def around(cls, place: Path) -> Self | None:
        """Return the working tree that a folder or file is in; None where it is in none."""
        place = place.resolve()
        top = root_of(place if place.is_dir() else place.parent)
        return cls(top) if os.path.lexists(top / ".git") else None

    def path_of(self, place: Path) -> str:
        """Return the path of a folder or file in it, from the top."""
        return place.resolve().relative_to(self.top).as_posix()

    def urls(self) -> frozenset[str]:
        """Return the URLs of the repositories that it is exchanged with.

        Raises:
            SourceError: there is no git.
        """
        _, output, _ = self._git("config", "-z", "--get-regexp", r"^remote\..*\.url$")
        return frozenset(entry.partition("\n")[2] for entry in output.split("\0") if entry)

    def commit(self, revision: str) -> str:
        """Return the commit that *revision* names here: a branch, a tag, ``HEAD~1``, or digits of a hash.

        Raises:
            SourceError: it names none.
        """
        status, output, said = self._git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )
        if status:
            why = f": {said}" if said else ""
            raise SourceError(
                SourceFault.NO_SUCH_REF,
                f"{self.top} has no commit {revision}{why}",
                "has it been fetched? git fetch origin",
            )
        return output.strip()

    def differing(self, sha: str) -> frozenset[str]:
        """Return the paths of files that aren't as in the commit *sha*, those that Git doesn't know included.

        Raises:
            SourceError: git can't tell.
        """
        found: set[str] = set()
        for command in (
            ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "-z", sha, "--"),
            ("ls-files", "--others", "-z"),
        ):
            status, output, said = self._git(*command)
            if status:
                raise SourceError(SourceFault.FAILED, f"{self.top}: git {command[0]} failed: {said}")
            found |= set(output.split("\0")) - {""}
        return frozenset(found)

    def _git(self, *arguments: str) -> tuple[int, str, str]:
        """Return the status of git, what it printed, and what it complained of."""
        command = ["-C", str(self.top), "-c", "core.fsmonitor=false", *arguments]
        with running(command, _environment(), GitLimits(), _TIMEOUT_S) as git:
            output, complaint, excess = git.heard()
        if excess:
            raise SourceError(SourceFault.REFUSED, f"{self.top}: {excess}")
        text = output.decode(errors="surrogateescape")
        return git.popen.returncode, text, one_line(complaint.decode(errors="replace"))


def _environment() -> Mapping[str, str]:
    return {**{name: value for name, value in os.environ.items() if not name.startswith("GIT_")}, **QUIET}
