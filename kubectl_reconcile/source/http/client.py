"""The one client of HTTP for sources: it asks the server of a URL that a Sync states, and those that this server names.

Vocabulary: a Sync *states* a URL; others are *named*, by a redirect or by what a server answers. An *origin* is a scheme, a host and a port; a server's
*own* is that of the stated URL. A *challenge* is an answer that asks who we are (401).

Rules, for whoever asks:

- Credentials, and headers that say who we are, go to the server's own origin and to no other, and never along a redirect to another.
- Where https is stated, nothing is asked over http. Certificates are always checked.
- A URL is asked only where the policy allows it, and only at an address that was judged as it is connected to.
- A redirect is followed as `Redirects` says, five times at most. What is sent with a body is never sent on.
- An answer is bounded in bytes, and all that it takes in time, redirects and a challenge included; whoever drips is left like whoever is silent.
- Connections are kept, for those alone who ask with the same credentials.
- The proxy that the environment names is asked to connect, see ``proxies``.

Answers of any status are answers: a conditional request (``If-None-Match`` among the headers) gets its 304. What is no answer is an `HttpError`, in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final
from urllib.parse import urljoin

from msgspec import Struct, field

from kubectl_reconcile.core.resources.url_policy import FLAG, UrlPolicy
from kubectl_reconcile.source.destination import Destination
from kubectl_reconcile.source.http.connection import HttpAnswer, Server
from kubectl_reconcile.source.http.errors import HttpError, HttpFault, parts_of, shown
from kubectl_reconcile.source.http.kept import KEPT, Whose
from kubectl_reconcile.source.http.proxies import proxy_of
from kubectl_reconcile.source.remote import Credentials
from kubectl_reconcile.source.running.ending import ending

_MOST_REDIRECTS: Final = 5
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_PORTS: Final = {"https": 443, "http": 80}
_AGENT: Final = {"User-Agent": "kubectl-reconcile"}
"""What asks, unless whoever calls says it otherwise."""
_WHO_WE_ARE: Final = frozenset({"authorization", "cookie"})


class Redirects(StrEnum):
    """Where a redirect is followed to."""

    NOWHERE = "nowhere"
    """It is an answer like any other."""
    OWN = "own"
    """With credentials within the server's own origin, else anywhere."""
    BARE = "bare"
    """Anywhere; at another origin nobody is told who we are. For what is checked by its digest."""


Challenged = Callable[[HttpAnswer], Mapping[str, str]]
"""Returns the headers with which the same is asked once more after a challenge; none where nothing helps."""


class HttpClient(Struct, frozen=True):
    """Asks on behalf of whoever has *credentials* for the URL *stated*, of whose authorities those in *ca_file* are trusted where the credentials name none."""

    stated: str
    credentials: Credentials = field(default_factory=Credentials)
    may: UrlPolicy | None = None
    redirects: Redirects = Redirects.OWN
    ca_file: str = ""
    challenged: Challenged | None = None

    def ask(
        self,
        url: str,
        most_bytes: int,
        deadline_s: float,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        head: bool = False,
    ) -> HttpAnswer:
        """Return what is answered for *url* by *deadline_s* (monotonic), at most so many bytes: to a GET, with a *body* to a POST, or to a HEAD. Blocks.

        Raises:
            HttpError: there is no answer, or it mustn't be asked for.
            SourceError: nobody waits any more (``ENDED``), or the host has no address that may be connected to (``REFUSED``).
        """
        more: Mapping[str, str] = headers or {}
        method = "HEAD" if head else "GET" if body is None else "POST"
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._once(method, url, most_bytes, deadline_s, more, body)
            if answer.status == 401 and self.challenged and self._is_own(url) and (found := self.challenged(answer)):
                more = {**more, **found}
                answer = self._once(method, url, most_bytes, deadline_s, more, body)
            if answer.status not in _MOVED or body is not None or self.redirects is Redirects.NOWHERE:
                return answer
            url = self._moved(url, answer.headers.get("location", ""))
        raise HttpError(HttpFault.NOT_FOLLOWED, url, f"more than {_MOST_REDIRECTS} redirects")

    def named(self, base: str, url: str) -> str:
        """Return where *url*, which a server names, leads from *base*.

        Raises:
            HttpError: it is no URL (``NOT_FOLLOWED``).
        """
        parts_of(url)
        return urljoin(base, url)

    def check(self, url: str) -> None:
        """Return if *url* is one that may be asked.

        Raises:
            HttpError: it isn't (``NOT_FOLLOWED``).
        """
        parts = parts_of(url)
        if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
            raise _not_followed(url, "only https and http are followed, without a user in the URL")
        if parts.scheme == "http" and parts_of(self.stated).scheme == "https":
            raise _not_followed(url, "the repository is https, and this isn't")
        if self.may is not None and not self.may.allows(_without_query(url)):
            hint = f"the administrator of the daemon can allow more with {FLAG}"
            raise _not_followed(url, f"isn't allowed here; allowed are only URLs below: {self.may}", hint)

    def _moved(self, url: str, location: str) -> str:
        there = self.named(url, location)
        has_credentials = bool(self.credentials.header())
        if not location or (self.redirects is Redirects.OWN and has_credentials and _origin(there) != _origin(url)):
            raise _not_followed(url, f"it redirects to {shown(there)}, which isn't followed with credentials")
        return there

    def _is_own(self, url: str) -> bool:
        return _origin(url) == _origin(self.stated)

    def _once(
        self, method: str, url: str, most_bytes: int, deadline_s: float, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        """Return what the server at *url* answers; one that hung up on a connection that was kept is asked once more on a new one."""
        self.check(url)
        place, trusted = Destination(url, self.stated).place, self.credentials.ca_bundle
        there = Destination(_without_query(url), self.stated, self.may)
        host, ca_file = place.host.strip("[]"), "" if trusted else self.ca_file
        server = Server(place.scheme, host, place.port, trusted, ca_file, proxy_of(url))
        whose, sent = Whose(server, self.credentials), self._headers(url, headers)
        while True:
            with KEPT.one(whose, there) as connection, connection.used(ending(), deadline_s):
                was_kept = connection.is_open
                try:
                    return connection.ask(method, url, sent, most_bytes, body)
                except ConnectionError as error:
                    if not was_kept:
                        raise HttpError(HttpFault.BROKEN, url, str(error) or type(error).__name__) from None
                    connection.close()

    def _headers(self, url: str, given: Mapping[str, str]) -> dict[str, str]:
        if not self._is_own(url):
            return {**_AGENT, **{name: value for name, value in given.items() if name.lower() not in _WHO_WE_ARE}}
        name, _, value = self.credentials.header().partition(": ")
        return {**_AGENT, **({name: value} if name else {}), **given}


def _without_query(url: str) -> str:
    """Return what is judged of a URL: a query names no other place."""
    return url.partition("?")[0]


def _origin(url: str) -> tuple[str, str, int]:
    parts = parts_of(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


def _not_followed(url: str, why: str, hint: str = "") -> HttpError:
    return HttpError(HttpFault.NOT_FOLLOWED, url, why, hint)
