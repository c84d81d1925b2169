"""What files of a source refer to elsewhere, fetched by the same ways as sources themselves.

A Sync may come from a repository that somebody else writes to, and so may what that refers to. So the Sync's own Secrets are used, each for the URLs that it
names and for no other; and an address counts as stated only where it is that of the Sync's source (``core.resources.url_policy``).
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from msgspec import field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.core.rendering.pinned.pins import HEAD, BasePin, FilePin, Pin
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.credential_scope import CredentialScope
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.credentials import (
    KeptUp,
    chart_of,
    credentials_in,
    fetched,
    login_for,
    require_allowed,
    scope_of,
    secret_of,
)
from kubectl_reconcile.engine.sync.decryption import decryption_of
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.base import Chart
from kubectl_reconcile.source.git.source import GitSource, Ref, RefKind
from kubectl_reconcile.source.http.file import WebFile
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.source.remote import Credentials, Repository


class SyncFetching(Guarded, frozen=True):
    """Fetches as *sources* allow it, with what one of the *secrets* holds that names the URL; archives and clones are kept below *cache_dir*.

    A *person's* own has the credentials that their Git is configured with. A server is asked once for each commit: whether it lets in these credentials.
    """

    hidden: ClassVar = frozenset({"secrets", "asked"})

    cache_dir: Path
    sources: SourcePolicy
    secrets: tuple[Manifest, ...] = ()
    person: bool = False
    asked: dict[BasePin, GitSource] = field(default_factory=dict)

    def chart(self, pin: ChartSpec) -> Chart:
        """Return the chart that *pin* says, which is fetched when it is first needed.

        Raises:
            SourceError: a Secret that names the URL can't be used.
        """
        found = (login_for(pin, secret) for secret in self.secrets)
        credentials, scope = next((each for each in found if each is not None), (Credentials(), CredentialScope()))
        return fetched(pin, self.cache_dir, self.sources, credentials, scope)

    def base(self, pin: BasePin) -> Tree:
        """Return the files of a repository at the commit that *pin* says; those that aren't here are fetched when they are brought. Blocks.

        Raises:
            SourceError: it can't be read, or has no such commit; or nobody waits any more.
        """
        source = self.asked.get(pin) or self._repository(pin.repository, Ref(RefKind.COMMIT, pin.commit))
        self.asked[pin] = source
        with source.tree(source.fetch()) as tree:
            return tree

    def file(self, pin: FilePin) -> bytes:
        """Return what the file holds that *pin* says. Blocks.

        Raises:
            SourceError: it can't be read, or isn't the one that is asked for; or nobody waits any more.
        """
        return self._file(pin).read(pin.digest)

    def pinned(self, wanted: Pin) -> Pin:
        """Return what is *wanted*, which is bare, with the digest or the commit that it has now. Blocks.

        Raises:
            SourceError: it can't be fetched; or nobody waits any more.
        """
        if isinstance(wanted, BasePin):
            ref = Ref(RefKind.ANY, "" if wanted.ref == HEAD else wanted.ref)
            return replace(wanted, commit=self._repository(wanted.repository, ref).fetch())
        if isinstance(wanted, FilePin):
            return replace(wanted, digest=self._file(wanted).published())
        return replace(wanted, digest=self.chart(wanted).published())

    def _file(self, pin: FilePin) -> WebFile:
        return WebFile(pin.url, self.sources.limits, self._credentials(pin.url.partition("?")[0]), self.sources.urls)

    def _repository(self, url: str, ref: Ref) -> GitSource:
        require_allowed(self.sources, url)
        repository = Repository.of(url, self._credentials(url), user_config=self.person)
        if not self.person:
            repository = replace(repository, stays=bool(self.sources.urls.addresses), may=self.sources.urls)
        policy = self.sources
        folder = self.cache_dir / "git"
        return GitSource(repository, ref, cache_dir=folder, limits=policy.limits, guarded=policy.guarded)

    def _credentials(self, url: str) -> Credentials:
        """Return what the first Secret holds that names *url*; nothing where none does."""
        return next((credentials_in(each) for each in self.secrets if scope_of(each).covers(url)), Credentials())


async def equip(session: Session, sync: Sync, reader: ManifestReader, keeps: KeptUp | None = None) -> None:
    """Have *reader* read as *sync* says, with the credentials of now: the chart that it names, the keys for its files, and what these refer to.

    A chart that has to be signed is for who looks, or for who *keeps* it up. Where files refer to nothing, the Secrets aren't read again.

    Raises:
        SourceError: a URL or a Secret can't be used, or a Secret isn't for its URL.
        ApiError: the server refuses, or doesn't answer.
    """
    reader.chart = await chart_of(session, sync, keeps)
    if session.decryption is not None or sync.source is not None:
        reader.decrypt_with(session.decryption or await decryption_of(session, sync))
    source = sync.source
    if source is None or (reader.fetching is not None and not reader.fetches):
        return
    names = dict.fromkeys(each.secret for each in (source.git, source.oci, source.chart) if each and each.secret)
    secrets = [await secret_of(session, sync.namespace, name) for name in names]
    policy = session.sources
    if policy.guarded:
        policy = replace(policy, urls=replace(policy.urls, states=source.address))
    reader.fetching = SyncFetching(session.cache_dir, policy, tuple(secrets))
