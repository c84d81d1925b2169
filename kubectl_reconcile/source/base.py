"""The port of sources: what all else may ask one for, without knowing which it is.

Any source has revisions that can be read (`core.manifests.revision.ReadableSource`). The rest are *capabilities*, each None where a source lacks it:

- ``followed``: a server moves it, and is asked whether it did (a ref of a Git repository);
- ``past``: it tells what a file held in an earlier revision;
- ``history``: it remembers who changed which file, and when;
- ``commits``: its revisions are commits, which somebody made, and which can be called by their first digits;
- ``verified``: only what is signed may be applied;
- ``folder``: it is a folder of this machine, which can be watched and written to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kubectl_reconcile.core.manifests.revision import Commit, History, ReadableSource, Revision
from kubectl_reconcile.core.manifests.tree import Tree, TreeEntry
from kubectl_reconcile.core.rendering.pinned.pins import BasePin, FilePin, Pin
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.source.charts.archive import Archive

if TYPE_CHECKING:
    from kubectl_reconcile.source.folder.watch import Consulted, Watch


class Source(ReadableSource, Protocol):
    """Where desired state comes from; see the module."""

    @property
    def followed(self) -> Followed | None:
        """This source as one that a server moves."""

    @property
    def past(self) -> Past | None:
        """This source as one of which earlier revisions can be read."""

    @property
    def history(self) -> History | None:
        """This source as one that remembers."""

    @property
    def commits(self) -> Commits | None:
        """This source as one of which each revision is a commit."""

    @property
    def verified(self) -> Verified | None:
        """This source as one of which only signed revisions count."""

    @property
    def folder(self) -> LocalFolder | None:
        """This source as a folder of this machine."""


class Followed(ReadableSource, Protocol):
    """What a server moves. What it was heard to say is shared by all who follow the same."""

    since_s: float
    """How old an answer may be that somebody else was given: from then on (monotonic)."""

    @property
    def tip(self) -> str:
        """The revision that it was at when the server was asked last; empty before that."""

    @property
    def server(self) -> object:
        """Who answers: one and the same for all who ask the same repository with the same credentials."""

    def remote_sha(self) -> str:
        """Ask the server at which revision it is now. Fetches nothing.

        Raises:
            SourceError: there is no answer, or nothing of the kind.
        """

    def tag_of(self, sha: str) -> str:
        """Return the tag by which a range of versions led to a revision that doesn't say it; empty otherwise. Asks nobody."""

    def is_current(self, since_s: float) -> bool:
        """Tell whether somebody was told since then (monotonic) that it is where it was read. Asks nobody."""

    def tells_of_move(self) -> bool:
        """Tell whether nobody has told the others yet of what the server said last: of one answer one tells, the first who asks here."""

    def has_moved(self, read: Revision, consulted: Mapping[str, TreeEntry]) -> bool:
        """Tell whether something else is asked for than the revision *read*, by what the server was heard to say; asks nobody. Blocks.

        What was rendered hangs on all that was *consulted* for it. Where that isn't known, it may have moved. Where it hasn't, the newest revision counts as read.
        """

    def differs(self, one: str, other: str) -> bool:
        """Tell whether something that decides which manifests there are isn't the same in two revisions.

        Raises:
            SourceError: one isn't here.
        """

    def bring(self, sha: str) -> None:
        """Fetch what an earlier revision holds, as far as it can be read."""

    def revision_at(self, sha: str) -> Revision:
        """Return an earlier revision.

        Raises:
            SourceError: it isn't here.
        """


class Past(Protocol):
    """What earlier revisions held."""

    def read_at(self, sha: str, path: str, *, offline: bool = False) -> bytes | None:
        """Return what the file at *path* held in the revision *sha*, None where either can't be read; *offline* asks no server."""


class Commits(Protocol):
    """What is made of commits."""

    def fetch(self) -> str:
        """Bring what is here up to what is followed, and return the newest commit.

        Raises:
            SourceError: the server can't be reached or refuses, or has nothing of the kind.
        """

    def commit(self, sha: str) -> Commit | None:
        """Return who made the commit *sha*, when and why; None where it isn't here."""

    def resolve(self, text: str) -> str:
        """Return the full hash of the commit that *text*, its first digits, means among those that are here; empty if none.

        Raises:
            SourceError: there are several (``REFUSED``).
        """


class Verified(Protocol):
    """What counts only as far as it is signed by trusted keys."""

    field: str
    """Where the Sync says whose signatures count."""
    place: str
    """Where the keys are."""
    verification: Verification
    """What was found when it was read last."""

    @property
    def made_from(self) -> str:
        """How ``kubectl create`` is given such keys."""

    @property
    def is_preview(self) -> bool:
        """Whether this is for who looks, and not for who keeps up what is in force."""

    def trust(self, entries: Mapping[str, str] | KeysError) -> None:
        """Trust from now on the keys in these entries of a Secret or ConfigMap, or none, and say why."""

    def check_keys(self) -> None:
        """Return if signatures can be checked here.

        Raises:
            SourceError: they can't.
        """

    def go_on_from(self, earlier: Verified | None) -> None:
        """Keep in force what was verified *earlier* for the same Sync."""

    def require_verified(self, sha: str) -> None:
        """Return if the revision *sha* may be applied.

        Raises:
            UnverifiedError: it isn't verified.
            SourceError: nobody can tell.
        """


class Chart(Protocol):
    """A chart that is rendered with the files of a source beside it, wherever it comes from: the one version that *pin* says."""

    @property
    def pin(self) -> ChartSpec:
        """Which one it is."""

    @property
    def verified(self) -> Verified | None:
        """This chart as one that only counts if it is signed."""

    def verify(self) -> None:
        """Verify it as of now, where it has to be signed. Blocks.

        Raises:
            UnverifiedError: it isn't verified, and this is for who keeps it up; who looks is given it in any case.
            SourceError: nobody can tell.
        """

    def files(self) -> Archive:
        """Return its files, fetching it where it isn't here. Blocks.

        Raises:
            SourceError: it can't be read, or isn't the one that is asked for; or nobody waits any more.
        """

    def published(self) -> str:
        """Return the digest that its version has in its repository now, once it was fetched and looked at. Blocks.

        Raises:
            SourceError: it can't be read, or is no chart; or nobody waits any more.
        """


class Fetching(Protocol):
    """Fetches what files of a source refer to elsewhere."""

    def chart(self, pin: ChartSpec) -> Chart:
        """Return the chart that *pin* says, which is fetched when it is first needed."""

    def base(self, pin: BasePin) -> Tree:
        """Return the files of a repository at the commit that *pin* says; those that aren't here are fetched when they are brought. Blocks.

        Raises:
            SourceError: it can't be read, or has no such commit; or nobody waits any more.
        """

    def file(self, pin: FilePin) -> bytes:
        """Return what the file holds that *pin* says. Blocks.

        Raises:
            SourceError: it can't be read, or isn't the one that is asked for; or nobody waits any more.
        """

    def pinned(self, wanted: Pin) -> Pin:
        """Return what is *wanted*, which is bare, with the digest or the commit that it has now. Blocks.

        Raises:
            SourceError: it can't be fetched; or nobody waits any more.
        """


class LocalFolder(Protocol):
    """What lies on this machine, at *location*."""

    location: Path

    def watch(self, callback: Callable[[], None], *, quiet_s: float = 0.1, consulted: Consulted = dict) -> Watch:
        """Call *callback* (in another thread) after files changed and then rested for *quiet_s*. Close the watch to end it."""

    def place_of(self, path: str, *, rendered: bool = False) -> Path:
        """Return where the file is that revisions call *path*; what is *rendered* is called from the top of the tree.

        Raises:
            SourceError: the path leads out of it.
        """
