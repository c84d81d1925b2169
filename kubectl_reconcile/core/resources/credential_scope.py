"""Which repositories a Secret's credentials are for: the URLs that the Secret itself names.

Vocabulary: an *address* is a repository's URL taken apart; its *steps* are the segments of its path. One address *covers*
another that is the same place or below it: same scheme, host and port, and all its steps, each in full. A *scope* is the addresses that
one Secret names.

Rules: what can't be read in one way only isn't an address, so it covers nothing and nothing covers it. Host names have no case, paths have. A port
that is the scheme's own may be left out. A user counts with SSH alone, where an address without one covers all.
``host:shop`` is below the home folder there, as ``ssh://host/~/shop`` is; ``ssh://host/shop`` is not. ``oci://host/shop`` is what a registry has
of that name: it is ``https://host/v2/shop``.

Pure: text in, verdict out.
"""

from __future__ import annotations

import re
from typing import Final, Self

from msgspec import Struct

_URL: Final = re.compile(
    r"(?P<scheme>https?|ssh|oci)://(?:(?P<user>[^@/?#\\\s]*)@)?(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9-])?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{0,5}))?(?P<path>(?:/.*)?)",
    re.IGNORECASE | re.ASCII,
)
_SCP: Final = re.compile(
    r"(?:(?P<user>[a-z0-9_][a-z0-9_.+-]*)@)?(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9-])?):(?P<path>(?!//)[^:-].*)",
    re.IGNORECASE | re.ASCII,
)
_PORTS: Final = {"https": 443, "http": 80, "ssh": 22}
_AMBIGUOUS: Final = re.compile(r"[^!-~]|[\\?#]")
"""Characters that readers of URLs take differently, or that end a path."""


class NoAddressError(ValueError):
    """A text that names no repository, or not in one way only."""


class Place(Struct, frozen=True):
    """Where a server is: *host* in lower case, an IPv6 address in brackets."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Self:
        """Return where the server of the URL *text* is. Whatever its path, whoever reads the URL connects there.

        Raises:
            NoAddressError: it names no server, or not in one way only.
        """
        found = _found(text)
        scheme = _scheme_of(found)
        return cls(scheme, found["host"].lower(), int(found.groupdict().get("port") or _PORTS[scheme]))


def _found(text: str) -> re.Match[str]:
    """Return the parts of a URL.

    Raises:
        NoAddressError: it is none.
    """
    found = _URL.fullmatch(text) or ("://" not in text and _SCP.fullmatch(text))
    if not found:
        raise NoAddressError(text)
    return found


def _scheme_of(found: re.Match[str]) -> str:
    scheme: str = (found.groupdict().get("scheme") or "ssh").lower()
    return "https" if scheme == "oci" else scheme


class Address(Struct, frozen=True):
    """A repository's URL, or a prefix of such URLs, taken apart. *user* is empty where none is given or it doesn't count."""

    scheme: str
    user: str
    host: str
    port: int
    steps: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the address that *text* is.

        Raises:
            NoAddressError: it is none.
        """
        if _AMBIGUOUS.search(text):
            raise NoAddressError(text)
        found, place = _found(text), Place.of(text)
        if found.re is _SCP:
            path = found["path"] if found["path"].startswith(("/", "~")) else f"~/{found['path']}"
            return cls("ssh", found["user"] or "", place.host, place.port, _steps(path, encoded=False))
        user = _decoded(found["user"] or "") if place.scheme == "ssh" else ""
        if ":" in user:  # a password, which SSH can't take, and which isn't to be shown
            raise NoAddressError(text)
        above = ("v2",) if found["scheme"].lower() == "oci" else ()
        return cls(place.scheme, user, place.host, place.port, above + _steps(found["path"]))

    def covers(self, other: Address) -> bool:
        """Return whether *other* is this place or below it."""
        place, there = (self.scheme, self.host, self.port), (other.scheme, other.host, other.port)
        return place == there and self.user in {"", other.user} and other.steps[: len(self.steps)] == self.steps

    def __str__(self) -> str:
        user = f"{_encoded(self.user)}@" if self.user else ""
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return "/".join([f"{self.scheme}://{user}{self.host}{port}", *map(_encoded, self.steps)])


def _steps(path: str, *, encoded: bool = True) -> tuple[str, ...]:
    """Return the segments of a path; a slash at its end says nothing.

    Raises:
        NoAddressError: a segment leads elsewhere, or may be read as several.
    """
    segments = path.removeprefix("/").removesuffix("/").split("/")
    if segments == [""]:
        return ()
    steps = tuple(_decoded(segment) if encoded else segment for segment in segments)
    if any(step in {"", ".", ".."} or re.search(r"[/\\%]", step) for step in steps):
        raise NoAddressError(path)
    return steps


def _decoded(text: str) -> str:
    """Return *text* without percent encoding, of which there may be one layer.

    Raises:
        NoAddressError: what it stands for can't be printed.
    """
    try:
        decoded = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode()).decode()
    except UnicodeDecodeError:
        raise NoAddressError(text) from None
    if not decoded.isprintable():
        raise NoAddressError(text)
    return decoded


def _encoded(text: str) -> str:
    """Return *text* as it stands within a URL."""
    return re.sub(r"[^A-Za-z0-9._~+,=-]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)


class CredentialScope(Struct, frozen=True):
    """The addresses that a Secret names; *unusable* is how many of its entries are none."""

    addresses: tuple[Address, ...] = ()
    unusable: int = 0

    @classmethod
    def of(cls, *texts: str) -> Self:
        """Return what *texts* name, in which white space separates entries. Never raises."""
        addresses, unusable = [], 0
        for entry in " ".join(texts).split():
            try:
                addresses.append(Address.of(entry))
            except NoAddressError:
                unusable += 1
        return cls(tuple(addresses), unusable)

    def covers(self, url: str) -> bool:
        """Return whether credentials of this scope may be sent to *url*."""
        try:
            asked = Address.of(url)
        except NoAddressError:
            return False
        return any(address.covers(asked) for address in self.addresses)
