"""The question where refs are, put to a repository's server over HTTP by ourselves; where anything isn't clear, git is to put it.

The rules are those that git is held to (``source.remote``), and those of our client (``source.http.client``); no redirect is
followed with credentials, or where the repository is to stay. What is refused is said in the words that git's refusals are turned into.

Git puts the question where its own configuration, the machine's proxy, or variables that are meant for git have a say; where a server speaks
another protocol, or says more than is wanted; and where certificates aren't trusted by the system, of which git may know more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from msgspec import Struct

from kubectl_reconcile import __version__
from kubectl_reconcile.core.resources.credential_scope import Address, NoAddressError
from kubectl_reconcile.source.git.asking.packets import Advertisement, UnclearError, advertised, question, told
from kubectl_reconcile.source.git.complaints import explained, said_nothing
from kubectl_reconcile.source.http.client import HttpClient, Redirects
from kubectl_reconcile.source.http.connection import HttpAnswer
from kubectl_reconcile.source.http.errors import HttpError, HttpFault
from kubectl_reconcile.source.http.proxies import proxy_url
from kubectl_reconcile.source.limits import MOST_REFS_BYTES, GitLimits
from kubectl_reconcile.source.remote import MOVED, Repository, Scheme, refuse_unchecked
from kubectl_reconcile.source.tls import reason_of

_LEFT_TO_GIT_S: Final = 3600.0
"""How long git puts the questions to a server that it understood and we didn't, in seconds."""
_LEAST_S: Final = 1.0
_ADVERTISEMENT: Final = "/info/refs?service=git-upload-pack"
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
        except HttpError as error:
            if error.what is HttpFault.LATE:
                raise said_nothing(self.repository, limits, timeout_s) from None
            if error.what is HttpFault.UNREACHABLE:
                raise explained(self.repository, error.why) from None
            if error.verify_code and self.repository.credentials.ca_bundle:  # of the system's own git may know others
                raise explained(self.repository, reason_of(error.verify_code) or "SSL certificate problem") from None
            self._object_format = ""
        except UnclearError:
            self._object_format = ""
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
        answer = self._talk(url, _ADVERTISEMENT, {"Pragma": "no-cache"}, deadline_s)
        base = answer.url.removesuffix(_ADVERTISEMENT)
        if base == answer.url or not _is_plain(base):
            raise UnclearError("the server redirects to an address that isn't followed")
        return base, answer

    def _put(self, url: str, names: Sequence[str], object_format: str, deadline_s: float) -> HttpAnswer:
        headers = {
            "Content-Type": "application/x-git-upload-pack-request",
            "Accept": "application/x-git-upload-pack-result",
        }
        return self._talk(url, "/git-upload-pack", headers, deadline_s, question(names, object_format))

    def _talk(
        self, url: str, what: str, headers: Mapping[str, str], deadline_s: float, body: bytes | None = None
    ) -> HttpAnswer:
        """Return what the server at *url* answers, with where that was."""
        repository = self.repository
        stays = repository.stays or repository.credentials.header()
        redirects, trusted = Redirects.NOWHERE if stays else Redirects.OWN, os.environ.get(_TRUSTED_FILE, "")
        client = HttpClient(repository.url, repository.credentials, repository.may, redirects, trusted)
        common = {"User-Agent": f"git/kubectl-reconcile-{__version__}", "Git-Protocol": "version=2"}
        return client.ask(url + what, MOST_REFS_BYTES, deadline_s, {**common, **headers}, body)

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
        and not proxy_url(repository.url)
    )


def _is_plain(url: str) -> bool:
    """Tell whether a URL of HTTP can be read in one way only, and names no user."""
    try:
        return "@" not in url and Address.of(url).scheme in {"http", "https"}
    except NoAddressError:
        return False
