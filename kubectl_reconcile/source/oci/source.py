"""Desired state in an artifact of a registry: one path of what a tag is at, the newest of a range of versions for one, or of what has a digest.

A *revision* is ``TAG@DIGEST``; of a digest alone, that. The registry is asked where the tag is, by all who follow it together (``registry``), and what has the digest is
pulled once for them (``artifact``). No more of it is held here than names: it is pulled again sooner than memory runs out.

All calls block but those that ask nobody, and may be made from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, Self

from kubectl_reconcile.core.manifests.revision import Commit, Revision
from kubectl_reconcile.core.manifests.tree import Tree, TreeEntry
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.oci.reference import DIGEST, version_of
from kubectl_reconcile.core.resources.semver import VersionRange
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.core.revisions import digest_in, tag_in
from kubectl_reconcile.source.base import Verified
from kubectl_reconcile.source.charts.archive import Archive
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.oci import artifact
from kubectl_reconcile.source.oci.files import ArtifactTree, Place, listed
from kubectl_reconcile.source.oci.registry import Registry
from kubectl_reconcile.source.remote import check_path


class OciSource:
    """One path of an artifact in a *registry*: that which has *digest*, else that which *tag* is at, or the newest of *versions*. Of several layers *media_type* chooses; see the module.

    Raises:
        SourceError: the path is none.
    """

    def __init__(
        self,
        registry: Registry,
        tag: str,
        digest: str = "",
        path: str = "",
        *,
        versions: VersionRange | None = None,
        media_type: str = "",
        render: Render = Render.AUTO,
    ) -> None:
        self.registry, self.tag, self.digest, self._media_type = registry, tag, digest, media_type
        self._versions = versions
        where = f"{registry.repository}{f':{tag}' if tag else ''}{f'@{digest}' if digest else ''}"
        self._place = Place(where, check_path(path), render, registry.access.limits)
        self.since_s = float("inf")
        """How old an answer of the registry may be that somebody else was given: from then on (monotonic); by default, none will do."""
        self.tip = ""
        """The revision that it was at when the registry was asked last."""
        self._listed: Revision | None = None
        self._blobs: dict[str, tuple[str, str]] = {}
        """Where each file of the newest revision is: the revision, and the path in it."""

    @property
    def followed(self) -> Self:
        """This very source: a registry moves the tag."""
        return self

    @property
    def past(self) -> Self:
        """This very source: what has another digest can be read, too."""
        return self

    @property
    def history(self) -> None:
        """None: an artifact doesn't tell who changed which file."""

    @property
    def commits(self) -> Self:
        """This very source: who pushed an artifact may have said of what commit it was made."""
        return self

    @property
    def verified(self) -> Verified | None:
        """None: nobody asks for signatures."""
        return None

    @property
    def folder(self) -> None:
        """None: it isn't a folder."""

    # --- what a registry moves ----------------------------------------------------------------------------------------

    @property
    def server(self) -> object:
        """Who answers: one and the same for all who ask the same repository with the same credentials."""
        return self.registry

    def remote_sha(self) -> str:
        """Ask the registry at which revision it is now, and return that. Pulls nothing but a manifest.

        Raises:
            SourceError: there is no answer, or no such tag, or no such digest.
        """
        if self.digest:
            self.registry.artifact_manifest(self.digest)
            return self._called(self.digest)
        since_s = min(self.since_s, time.monotonic())
        tag = self.tag if self._versions is None else self._newest(self._versions, since_s)
        return f"{tag}@{self.registry.resolve(tag, since_s)}"

    def tag_of(self, sha: str) -> str:  # noqa: ARG002 - a revision has its tag
        """Return nothing: a revision says its tag itself."""
        return ""

    def is_current(self, since_s: float) -> bool:
        """Tell whether somebody was told since then (monotonic) that the tag is where it was read; a digest always is. Asks nobody."""
        if not self.tip or (self._versions is not None and not self.digest):
            return False
        return bool(self.digest) or self.registry.is_at(self.tag, digest_in(self.tip), since_s)

    def tells_of_move(self) -> bool:
        """Tell nobody: who follows the same tag is told the same when their own interval is over."""
        return False

    def has_moved(self, read: Revision, consulted: Mapping[str, TreeEntry]) -> bool:  # noqa: ARG002 - a digest is of all files
        """Tell whether the tag isn't at what was *read* any more, by what the registry was heard to say; asks nobody."""
        return not self.digest and self.registry.heard(tag_in(read.sha)) != digest_in(read.sha)

    def _newest(self, versions: VersionRange, since_s: float) -> str:
        tag = versions.newest(self.registry.tags(since_s), version_of)
        if not tag:
            said = f"{self._place.where}: no tag is a version in {versions.text}"
            raise SourceError(
                SourceFault.NO_SUCH_REF, said, "versions before a release count only where the range names one"
            )
        return tag

    def differs(self, one: str, other: str) -> bool:
        """Tell whether two revisions aren't the same artifact."""
        return digest_in(one) != digest_in(other)

    def bring(self, sha: str) -> None:
        """Pull an earlier revision, if the registry still has it."""
        with suppress(SourceError):
            self._files(sha)

    # --- what it holds ------------------------------------------------------------------------------------------------

    def revision(self) -> Revision:
        """Return what the tag, or the digest, is at now, pulling it where it isn't here.

        Raises:
            SourceError: the registry can't be asked, or refuses; or the artifact can't be used, or has nothing at the path.
        """
        found = self._read(self.remote_sha())
        self.tip = found.sha
        return found

    def _read(self, sha: str) -> Revision:
        """Return a revision whose files are those that are read from now on."""
        found = self._listed
        if found is None or found.sha != sha:
            found = self._listed = self.revision_at(sha)
            self._blobs = {blob_id: (sha, path) for path, blob_id in found.files.items()}
        return found

    def revision_at(self, sha: str) -> Revision:
        """Return an earlier revision, as far as the registry still has it.

        Raises:
            SourceError: it hasn't, or has nothing at the path.
        """
        return listed(self._files(sha), sha, self._place, self.commit(sha))

    def read(self, blob_id: str) -> bytes:
        """Return the content that the newest revision lists as *blob_id*.

        Raises:
            SourceError: it lists no such file, or it can't be pulled again.
        """
        if blob_id not in self._blobs:
            raise SourceError(
                SourceFault.NO_SUCH_PATH, f"{self._place.where}: no file {blob_id} is in what was read last"
            )
        sha, path = self._blobs[blob_id]
        return self._files(sha).files[path]

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each of *blob_ids* with its content.

        Raises:
            SourceError: as ``read``.
        """
        for each in blob_ids:
            yield each, self.read(each)

    def tree(self, sha: str) -> AbstractContextManager[Tree]:
        """Return all files of a revision, for the time of a block.

        Raises:
            SourceError: it can't be pulled.
        """
        return nullcontext(ArtifactTree(self._files(sha)))

    def read_at(self, sha: str, path: str, *, offline: bool = False) -> bytes | None:
        """Return what the file at *path* held in the revision *sha*, None where either can't be read; *offline* asks no registry."""
        try:
            found = artifact.held(self.registry, digest_in(sha), self._media_type) if offline else self._files(sha)
        except SourceError:
            return None
        return found.files.get(path) if found is not None else None

    def _files(self, sha: str) -> Archive:
        digest = digest_in(sha)
        if not DIGEST.fullmatch(digest):
            raise SourceError(
                SourceFault.NO_SUCH_REF, f"{self._place.where}: {one_line(sha, 80)} isn't one of its revisions"
            )
        return artifact.artifact(self.registry, digest, self._media_type)

    # --- what it was made of ------------------------------------------------------------------------------------------

    def fetch(self) -> str:
        """Return the revision that it is at now.

        Raises:
            SourceError: the registry can't be asked, or refuses.
        """
        return self.remote_sha()

    def commit(self, sha: str) -> Commit | None:
        """Return of what a revision was made, and when, as whoever pushed it says; None where nothing is said, or the registry hasn't got it any more."""
        try:
            manifest = self.registry.artifact_manifest(digest_in(sha))
        except SourceError:
            return None
        if not (manifest.revision or manifest.source or manifest.created):
            return None
        source, revision = one_line(without_credentials(manifest.source), _SAID), one_line(manifest.revision, _SAID)
        return Commit(sha, source, one_line(manifest.created, _SAID), revision)

    def resolve(self, text: str) -> str:
        """Return the revision that a whole digest means; empty for anything else."""
        return self._called(text) if DIGEST.fullmatch(text) else ""

    def _called(self, digest: str) -> str:
        return f"{self.tag}@{digest}" if self.tag else digest


_SAID: Final = 200
"""How much of what somebody says of an artifact is shown."""
