"""Logins of registries as Docker and Kubernetes keep them: the file ``config.json``, or a Secret of type ``kubernetes.io/dockerconfigjson``.

Which registries a login is for the file itself says: its keys are hosts, or a host and the beginning of a name. Of several that match, the longest is used.

Pure: text in, value out.
"""

from __future__ import annotations

import base64
import re
from typing import Any, ClassVar, Final

import msgspec

from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.core.resources.oci.reference import OciRepository

KEY: Final = ".dockerconfigjson"
"""The key of such a Secret."""
TYPE: Final = "kubernetes.io/dockerconfigjson"
"""The type of such a Secret."""

_API: Final = re.compile(r"/v[12]/?\Z")


class LoginError(ValueError):
    """A file that isn't one of logins, or a login that can't be read; the message is a sentence about it, and shows nothing of it."""


class Login(Guarded, frozen=True):
    """How to log in: with a *username* and a *password*, or with a *token*. Nothing of it shows in a ``repr``."""

    hidden: ClassVar = frozenset({"username", "password", "token"})

    username: str = ""
    password: str = ""
    token: str = ""


def login_of(text: str, repository: OciRepository) -> Login | None:
    """Return the login for a repository among those in *text*, None where none is for it.

    Raises:
        LoginError: it isn't such a file, or the login can't be read.
    """
    try:
        said: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise LoginError("isn't JSON") from None
    logins = said.get("auths") if isinstance(said, dict) else None
    if not isinstance(logins, dict):
        raise LoginError("has no auths")
    matching = [(len(key), entry) for key, entry in logins.items() if _is_for(key, repository)]
    if not matching:
        return None
    _, best = max(matching, key=lambda each: each[0])
    return _login(best)


def _login(entry: Any) -> Login:
    if not isinstance(entry, dict) or not all(isinstance(each, str) for each in entry.values()):
        raise LoginError("has a login that isn't one")
    if token := entry.get("registrytoken"):
        return Login(token=token)
    if entry.get("auth"):
        try:
            username, colon, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
        except ValueError:
            raise LoginError("has a login whose auth isn't base64") from None
        if colon:
            return Login(username, password.rstrip("\0"))
    if entry.get("username") or entry.get("password"):
        return Login(entry.get("username", ""), entry.get("password", ""))
    raise LoginError("has a login without a username and a password")


def _is_for(key: str, repository: OciRepository) -> bool:
    place = _API.sub("", re.sub(r"\Ahttps?://", "", key)).rstrip("/")
    host, _, path = place.partition("/")
    steps = path.split("/") if path else []
    return _is_host(host.lower(), repository.host) and repository.name.split("/")[: len(steps)] == steps


def _is_host(pattern: str, host: str) -> bool:
    """Tell whether a host is meant; ``*`` stands for one label of its name."""
    wanted, given = pattern.split("."), host.split(".")
    return len(wanted) == len(given) and all(one in ("*", other) for one, other in zip(wanted, given, strict=True))
