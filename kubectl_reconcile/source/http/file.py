"""One file of a web server, known by the SHA-256 of what it holds. Kept in memory within the budget that registries have, for those alone who ask in the same way."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.charts.archive import Archive
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.http.client import HttpClient, Redirects
from kubectl_reconcile.source.http.errors import shown
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.remote import Credentials
from kubectl_reconcile.source.running.kept import KEPT
from kubectl_reconcile.source.running.memory import FETCHES

_MOST_SECONDS: Final = 120.0
_NAME: Final = "file"


class WebFile(Struct, frozen=True):
    """The file at *url*, asked for with *credentials* where the addresses *may* be. From any thread."""

    url: str
    limits: GitLimits
    credentials: Credentials = field(default_factory=Credentials)
    may: UrlPolicy | None = None

    def read(self, digest: str) -> bytes:
        """Return what the file holds that has that *digest*, fetching it where it isn't here. Blocks.

        Raises:
            SourceError: it can't be read, or isn't the one that is asked for; or nobody waits any more.
        """
        key = (self, digest, _NAME)
        if (known := KEPT.find(key, Archive)) is not None:
            return known.files[_NAME]
        data = self._fetched()
        if (found := _digest(data)) != digest:
            said = f"{shown(self.url)}: expected {digest}, found {found}"
            raise SourceError(SourceFault.UNTRUSTED, said, "somebody has changed it since it was locked; it isn't used")
        KEPT.keep(key, Archive.of({_NAME: data}), len(data))
        return data

    def published(self) -> str:
        """Return the digest of what the file holds now. Blocks.

        Raises:
            SourceError: it can't be read; or nobody waits any more.
        """
        return _digest(self._fetched())

    def _fetched(self) -> bytes:
        deadline_s = time.monotonic() + min(_MOST_SECONDS, self.limits.seconds)
        client = HttpClient(self.url, self.credentials, self.may, Redirects.BARE)
        with FETCHES.one():
            answer = client.ask(self.url, self.limits.file_bytes, deadline_s, {"User-Agent": "kubectl-reconcile"})
        if answer.status == 200:
            return answer.body
        said = f"{shown(answer.url)}: the server answers {answer.status}"
        if answer.status in {401, 403}:
            hint = "have the Secret of the Sync's source name this URL, if its credentials are for it"
            raise SourceError(SourceFault.UNAUTHORIZED, said, hint)
        raise SourceError(SourceFault.NO_SUCH_PATH if answer.status == 404 else SourceFault.UNREACHABLE, said)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
