"""The question where refs are, put to a repository's server over HTTP by ourselves; where anything isn't clear, git is to put it.

The rules are those that git is held to (``source.remote``): credentials go to the host of the URL alone, and no redirect is
followed with them, or where the repository is to stay; addresses are judged as they are connected to; certificates are always checked, against the Secret's CA where it gives one; an
answer is bounded in bytes and time. What is refused is said in the words that git's refusals are turned into.

Git puts the question where its own configuration, the machine's proxy, or variables that are meant for git have a say; where a server speaks
another protocol, or says more than is wanted; and where certificates aren't trusted by the system, of which git may know more.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from kubectl_reconcile import __version__
from kubectl_reconcile.core.resources.credential_scope import Address, NoAddressError
from kubectl_reconcile.source.asking.connection import HttpAnswer, LateError, Server, UnreachableError
from kubectl_reconcile.source.asking.kept import KEPT, Whose
from kubectl_reconcile.source.asking.packets import Advertisement, UnclearError, advertised, question, told
from kubectl_reconcile.source.complaints import explained, said_nothing
from kubectl_reconcile.source.destination import Destination
from kubectl_reconcile.source.limits import MOST_REFS_BYTES, GitLimits
from kubectl_reconcile.source.remote import (
    MOVED,
    Credentials,
    Repository,
    Scheme,
    is_behind_proxy,
    refuse_unchecked,
)
from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.tls import reason_of

_LEFT_TO_GIT_S: Final = 3600.0
"""How long git puts the questions to a server that it understood and we didn't, in seconds."""
_LEAST_S: Final = 1.0
_MOST_REDIRECTS: Final = 5
_ADVERTISEMENT: Final = "/info/refs?service=git-upload-pack"
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_TRUSTED_FILE: Final = "GIT_SSL_CAINFO"
"""The variable that has git trust the certificates of a file."""

Asked = Callable[[Sequence[str], float], dict[str, str]]
"""Git's way to put the question: for these names, within so many seconds."""


class Asking(Struct):
    """How one repository is asked, and what its server was found to speak. One thread at a time."""

    repository: Repository
    _object_format: str = ""
    _left_to_git_until_s: float = 0.0

    def refs(self, names: Sequence[str], timeout_s: float, limits: GitLimits, by_git: Asked) -> dict[str, str]:
        """Return where each of *names* is on the server, or what *by_git* finds out.

        Raises:
            SourceError: the server can't be reached or refuses, or nobody waits any more.
        """
        began_s = time.monotonic()
        refuse_unchecked()
        if began_s < self._left_to_git_until_s or not _is_for_us(self.repository):
            return by_git(names, timeout_s)
        try:
            return self._asked(names, began_s + timeout_s)
        except LateError:
            raise said_nothing(self.repository, limits, timeout_s) from None
        except UnreachableError as error:
            raise explained(self.repository, str(error)) from None
        except (UnclearError, OSError) as error:
            self._object_format = ""
            if (why := _why_untrusted(error, self.repository.credentials)) is not None:
                raise explained(self.repository, why) from None
        found = by_git(names, max(began_s + timeout_s - time.monotonic(), _LEAST_S))
        self._left_to_git_until_s = time.monotonic() + _LEFT_TO_GIT_S
        return found

    def _asked(self, names: Sequence[str], deadline_s: float) -> dict[str, str]:
        """Ask at once where the server is known to take a question, else see first what it speaks."""
        url = self.repository.url.rstrip("/")
        if self._object_format:
            answer = self._put(url, names, self._object_format, deadline_s)
            if _is(answer, "result"):
                return told(answer.body, names)
        url, answer = self._advertisement(url, deadline_s)
        MOVED.note(self.repository, url)
        offer = self._understood(answer, names)
        if offer.refs is not None:
            return dict(offer.refs)
        result = self._put(url, names, offer.object_format, deadline_s)
        if not _is(result, "result"):
            self._refused(result.status)
        if url == self.repository.url.rstrip("/"):
            self._object_format = offer.object_format
        return told(result.body, names)

    def _advertisement(self, url: str, deadline_s: float) -> tuple[str, HttpAnswer]:
        """Return what the server advertises, and where that was found, should it have moved."""
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._talk(url, _ADVERTISEMENT, {"Pragma": "no-cache"}, deadline_s)
            if answer.status not in _MOVED:
                return url, answer
            url = self._moved(url, answer)
        raise UnclearError("the server redirects too often")

    def _moved(self, url: str, answer: HttpAnswer) -> str:
        if self.repository.stays or self.repository.credentials.header():
            self._refused(answer.status)
        there = urljoin(url + _ADVERTISEMENT, answer.headers.get("location", ""))
        base = there.removesuffix(_ADVERTISEMENT)
        if base == there or not _is_plain(base) or (url.startswith("https:") and not base.startswith("https:")):
            raise UnclearError("the server redirects to an address that isn't followed")
        return base

    def _put(self, url: str, names: Sequence[str], object_format: str, deadline_s: float) -> HttpAnswer:
        headers = {
            "Content-Type": "application/x-git-upload-pack-request",
            "Accept": "application/x-git-upload-pack-result",
        }
        return self._talk(url, "/git-upload-pack", headers, deadline_s, question(names, object_format))

    def _talk(
        self, url: str, what: str, headers: Mapping[str, str], deadline_s: float, body: bytes | None = None
    ) -> HttpAnswer:
        """Return what the server at *url* answers; one that hung up on a connection that was kept is asked once more on a new one."""
        there = Destination(url, self.repository.url, self.repository.may)
        place, credentials = there.place, self.repository.credentials
        trusted = "" if credentials.ca_bundle else os.environ.get(_TRUSTED_FILE, "")
        server = Server(place.scheme, place.host.strip("[]"), place.port, credentials.ca_bundle, trusted)
        name, _, value = credentials.header().partition(": ")
        own = {name: value} if name else {}
        common = {"User-Agent": f"git/kubectl-reconcile-{__version__}", "Git-Protocol": "version=2"}
        sent = {**common, **own, **headers}
        while True:
            with KEPT.one(Whose(server, credentials), there) as connection, connection.used(ending(), deadline_s):
                was_kept = connection.is_open
                try:
                    return connection.ask(urlsplit(url).path + what, sent, MOST_REFS_BYTES, body)
                except ConnectionError:
                    if not was_kept:
                        raise
                    connection.close()

    def _understood(self, answer: HttpAnswer, names: Sequence[str]) -> Advertisement:
        if not _is(answer, "advertisement"):
            self._refused(answer.status)
        return advertised(answer.body, names)

    def _refused(self, status: int) -> NoReturn:
        """Raise what git makes of a status."""
        url = self.repository.url
        if status == 200:
            raise UnclearError("the server doesn't speak git's protocol")
        if status == 404:
            raise explained(self.repository, f"repository '{url}' not found")
        raise explained(self.repository, f"unable to access '{url}': The requested URL returned error: {status}")


def _is(answer: HttpAnswer, kind: str) -> bool:
    return (
        answer.status == 200
        and answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        == f"application/x-git-upload-pack-{kind}"
        and "content-encoding" not in answer.headers
    )


def _is_for_us(repository: Repository) -> bool:
    """Tell whether nobody but the repository's URL and credentials has a say in how its server is asked."""
    return (
        repository.scheme is Scheme.HTTP
        and not repository.user_config
        and _is_plain(repository.url)
        and not any(name.startswith("GIT_SSL_") and name != _TRUSTED_FILE for name in os.environ)
        and not is_behind_proxy(repository.url)
    )


def _is_plain(url: str) -> bool:
    """Tell whether a URL of HTTP can be read in one way only, and names no user."""
    try:
        return "@" not in url and Address.of(url).scheme in {"http", "https"}
    except NoAddressError:
        return False


def _why_untrusted(error: Exception, credentials: Credentials) -> str | None:
    """Return why a certificate isn't trusted, where the CA was given; of the system's own git may know others."""
    if not isinstance(error, ssl.SSLCertVerificationError) or not credentials.ca_bundle:
        return None
    return reason_of(error) or "SSL certificate problem"
