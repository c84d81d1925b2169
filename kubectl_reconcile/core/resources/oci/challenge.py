"""How a registry asks who we are: the header ``WWW-Authenticate`` (RFC 9110), and the token that its *realm* gives.

Pure: text in, value out.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

_PART: Final = re.compile(r'[\s,]*([A-Za-z][A-Za-z0-9_-]*)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?(?=[\s,]|\Z)')
_LONGEST: Final = 8 * 1024
_USUAL_S: Final = 60
_LONGEST_S: Final = 3600
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,65536}")
_PULL: Final = re.compile(r"repository:[^:\s]+:pull")


class BearerChallenge(Struct, frozen=True):
    """A server wants a token, which the URL *realm* gives for a *service* and a *scope*."""

    realm: str
    service: str = ""
    scope: str = ""

    def scope_for(self, name: str) -> str:
        """Return what a token is asked for: to pull, whatever else the server would like, of the repository *name* unless it has another name for that."""
        return self.scope if _PULL.fullmatch(self.scope) else f"repository:{name}:pull"


class BearerToken(Struct, frozen=True):
    """What a realm gave, and for how many seconds it is good. It is a secret."""

    text: str
    lasts_s: int

    def __repr__(self) -> str:
        return f"BearerToken(lasts_s={self.lasts_s})"


def bearer_of(header: str) -> BearerChallenge | None:
    """Return the first challenge for a token in a header, None where there is none; one header may have several challenges."""
    for scheme, said in _challenges(header):
        if scheme == "bearer" and said.get("realm"):
            return BearerChallenge(said["realm"], said.get("service", ""), said.get("scope", ""))
    return None


def token_of(body: bytes) -> BearerToken | None:
    """Return the token in the answer of a realm, None where there is none that can be shown to a server."""
    try:
        said: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    text = said.get("token") or said.get("access_token")
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        return None
    lasts = said.get("expires_in")
    return BearerToken(text, min(lasts, _LONGEST_S) if isinstance(lasts, int) and lasts > 0 else _USUAL_S)


def _challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    at, text = 0, header[:_LONGEST]
    while part := _PART.match(text, at):
        at = part.end()
        if part[2] is None and part[3] is None:
            found.append((part[1].lower(), {}))
        elif found:
            value = re.sub(r"\\(.)", r"\1", part[2]) if part[2] is not None else part[3]
            found[-1][1].setdefault(part[1].lower(), value)
    return found
