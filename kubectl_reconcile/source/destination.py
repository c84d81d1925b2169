"""Where a connection for a repository may go: its host is looked up once, each address is judged, and one that may be is connected to.

Vocabulary: a Sync *states* the URL of its repository; a *destination* is that URL, or one that a server names. Who connects is given
addresses, never the name again: it may lead to another address by then.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable

from msgspec import Struct

from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.credential_scope import NoAddressError, Place
from kubectl_reconcile.core.resources.url_policy import FLAG, UrlPolicy
from kubectl_reconcile.source.errors import SourceError, SourceFault

_ANSWER_S = 4.0
"""How long one of several addresses is tried before the next, in seconds."""


class UnresolvedError(Exception):
    """Nobody knows an address of the host."""


def addresses_of(host: str, port: int) -> tuple[str, ...]:
    """Return all addresses of a host. Blocks, and can't be ended.

    Raises:
        UnresolvedError: there is none.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        found = []
    if not found:
        raise UnresolvedError(f"Could not resolve host: {host}")
    return tuple(dict.fromkeys(str(there[0]) for *_, there in found))


class Destination(Struct, frozen=True):
    """The server of *url*, where a Sync states the URL *stated*. What *may* be connected to is judged by addresses; None for a person's own, of which all is."""

    url: str
    stated: str
    may: UrlPolicy | None = None

    @property
    def place(self) -> Place:
        """Where the server is.

        Raises:
            SourceError: that can be read in more than one way (``REFUSED``).
        """
        try:
            return Place.of(self.url)
        except NoAddressError:
            said = f"{without_credentials(self.url)}: its host can be read in more than one way"
            raise SourceError(
                SourceFault.REFUSED, said, "write https://HOST/PATH, without ? and # before the path"
            ) from None

    def looked_up(self) -> tuple[str, ...]:
        """Return all addresses of the host. Blocks, and can't be ended.

        Raises:
            UnresolvedError: there is none.
        """
        return addresses_of(self.place.host, self.place.port)

    def judged(self, addresses: Iterable[str]) -> tuple[str, ...]:
        """Return those of *addresses* that may be connected to.

        Raises:
            SourceError: none may (``REFUSED``).
        """
        may, why = [], ""
        for each in addresses:
            wrong = self.why_not(each)
            why = why or (wrong and f"{without_credentials(self.url)}: {each} {wrong}")
            may += [] if wrong else [each]
        if not may:
            raise SourceError(SourceFault.REFUSED, why, f"the administrator of the daemon can allow it with {FLAG}")
        return tuple(may)

    def why_not(self, address: str) -> str:
        """Return why an address isn't connected to; empty where it is."""
        return self.may.why_not(address, self.url, self.stated) if self.may is not None else ""

    def one_that_answers(self) -> str:
        """Return the address to connect to: of several the first that answers, else the first.

        Raises:
            UnresolvedError: the host has none.
            SourceError: none may be connected to (``REFUSED``).
        """
        found = self.judged(self.looked_up())
        for each in found if len(found) > 1 else ():
            with contextlib.suppress(OSError), socket.create_connection((each, self.place.port), _ANSWER_S):
                return each
        return found[0]
