"""How strict a process is with what it follows: one record, passed whole, of which nothing has a default."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from msgspec import Struct

from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.limits import GitLimits


class SourcePolicy(Struct, frozen=True):
    """What holds for all sources of a process.

    *limits* is what any of them may make the process hold, and *urls* which may be followed. *folder* is the one of this machine below which repositories may be
    followed, None for none. One that *requires_verify* follows only what says whose signatures count. A *guarded* one works for several parties: what one of
    them had fetched is shown to another only once the server has let in that one's credentials, too.
    """

    limits: GitLimits
    urls: UrlPolicy
    folder: Path | None
    requires_verify: bool
    guarded: bool

    @classmethod
    def of_person(cls) -> Self:
        """The policy of who looks from their own machine, which they may read, and connect from, anyway; the ceilings are those of the environment."""
        return cls(GitLimits.of_environment(), UrlPolicy(), folder=None, requires_verify=False, guarded=False)
