"""Names of what is in registries: ``oci://HOST[:PORT]/NAME[:TAG][@DIGEST]``.

Vocabulary: a *repository* is a name at the host of a registry. A *tag* can be moved, as a branch can; a *digest* is of a manifest's bytes, and stands for
them forever, as a commit does. With both, the digest decides.

Rules: names are those of the distribution specification. A version may have a ``+``, which no tag can have: there it is ``_``, as Helm writes it.
Registries are asked over https; over plain http only where whoever states one says so.

Pure: text in, value out.
"""

from __future__ import annotations

import re
from typing import Final, Self

from msgspec import Struct

SCHEME: Final = "oci://"
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
"""A digest as we check it. Registries may know other algorithms, of which nobody makes use."""

_HOST: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_STEP: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_LONGEST: Final = 255
_SHOWN: Final = 120
_MOST_PORT: Final = 65535


class NoReferenceError(ValueError):
    """A text that names nothing in a registry; the message says why, as a sentence about the text."""


class OciRepository(Struct, frozen=True):
    """The repository *name* at *host*, which may have a port. A *plain* one is asked over http."""

    host: str
    name: str
    plain: bool = False

    @classmethod
    def of(cls, url: str, *, plain: bool = False) -> Self:
        """Return the repository at *url*, which has neither a tag nor a digest.

        Raises:
            NoReferenceError: it isn't one.
        """
        found = OciReference.of(url)
        if found.tag or found.digest:
            raise NoReferenceError(f"{_shown(url)} has a tag or a digest, which are fields of their own")
        return cls(found.repository.host, found.repository.name, plain)

    @property
    def origin(self) -> str:
        """The server's URL."""
        return f"{'http' if self.plain else 'https'}://{self.host}"

    @property
    def base(self) -> str:
        """The URL that all of the repository is below."""
        return f"{self.origin}/v2/{self.name}"

    def below(self, step: str) -> Self:
        """Return the repository *step* below this one, where Helm has the chart of that name.

        Raises:
            NoReferenceError: nothing can be called so.
        """
        if not _STEP.fullmatch(step):
            raise NoReferenceError(
                f"{_shown(step)!r} isn't a name in a registry: lower-case letters, digits, -, _ and ."
            )
        return type(self)(self.host, f"{self.name}/{step}" if self.name else step, self.plain)

    def __str__(self) -> str:
        return f"{SCHEME}{self.host}/{self.name}"


class OciReference(Struct, frozen=True):
    """What is meant in a *repository*: a *tag*, or a *digest*, which decides; or neither."""

    repository: OciRepository
    tag: str = ""
    digest: str = ""

    @classmethod
    def of(cls, url: str) -> Self:
        """Return what *url* names; a tag is returned as the registry has it.

        Raises:
            NoReferenceError: it names nothing.
        """
        if not url.startswith(SCHEME):
            raise NoReferenceError(f"{_shown(url)} doesn't begin with {SCHEME}")
        host, _, rest = url.removeprefix(SCHEME).partition("/")
        if not _HOST.fullmatch(host) or int(_port(host) or 0) > _MOST_PORT:
            raise NoReferenceError(f"{_shown(url)} has no proper host: write {SCHEME}HOST[:PORT]/NAME, without a user")
        rest, at, digest = rest.partition("@")
        name, colon, tag = rest.partition(":")
        if len(name) > _LONGEST or not all(_STEP.fullmatch(step) for step in name.split("/")):
            hint = "lower-case letters, digits, -, _ and . between slashes"
            raise NoReferenceError(f"{_shown(url)} has no proper name of a repository: {hint}")
        if at and not DIGEST.fullmatch(digest):
            raise NoReferenceError(f"{_shown(url)} has no proper digest: sha256: and 64 hexadecimal digits")
        return cls(OciRepository(host.lower(), name), tag_of(tag) if colon else "", digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}{tag}{f'@{self.digest}' if self.digest else ''}"


def tag_of(version: str) -> str:
    """Return the tag that a version has in a registry.

    Raises:
        NoReferenceError: no tag can be called so.
    """
    tag = version.replace("+", "_")
    if not _TAG.fullmatch(tag):
        raise NoReferenceError(f"{_shown(version)!r} isn't a tag: letters, digits, -, _ and ., 128 at most")
    return tag


def version_of(tag: str) -> str:
    """Return the version that a tag was made of by Helm: no version has a ``_``."""
    return tag.replace("_", "+")


def _port(host: str) -> str:
    return host.rpartition(":")[2] if not host.endswith("]") and ":" in host else ""


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text[:_SHOWN])
