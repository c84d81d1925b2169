"""Who a kubeconfig's user is to the server: tokens, credential plugins, and the headers that carry them.

The ``user`` may be a token, a token file, a certificate, a password or an exec credential plugin, which
``kubernetes.aio`` knows how to ask. What a plugin gives is put into the user; when it runs out, it is asked again.

Never: treats an empty user to impersonate as nobody to impersonate.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import importlib
import json
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kubectl_reconcile.cluster.errors import KubeconfigError

ROTATING_TOKEN_S = 60.0
"""How often a token file is read again."""

NEVER = float("inf")


def kubernetes(module: str) -> Any:
    """Import a module of ``kubernetes.aio`` when it is needed: that takes a third of a second, and it has no types."""
    return importlib.import_module(f"kubernetes.aio.{module}")


async def with_plugin(user: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Run the user's exec credential plugin, if it has one; return the user with what it gave, and its expiry.

    That is on the monotonic clock.

    Raises:
        KubeconfigError: the plugin fails or gives nothing, or credentials are of a kind that isn't supported.
    """
    if user.get("auth-provider"):
        return {**_without(user, "auth-provider"), "token": _provider_token(user["auth-provider"])}, NEVER
    plugin = user.get("exec")
    if not plugin:
        rotates = bool(user.get("tokenFile"))
        return (_without(user, "token"), time.monotonic() + ROTATING_TOKEN_S) if rotates else (user, NEVER)
    status = await _run_plugin(plugin)
    user = _without(user, "exec")
    if status.get("token"):
        user["token"] = status["token"]
    if status.get("clientCertificateData") and status.get("clientKeyData"):
        user["client-certificate-data"] = base64.b64encode(status["clientCertificateData"].encode()).decode()
        user["client-key-data"] = base64.b64encode(status["clientKeyData"].encode()).decode()
    elif not status.get("token"):
        raise KubeconfigError(
            f"the credential plugin {plugin.get('command')} gave neither a token nor a certificate with its key"
        )
    return user, _expiry_s(status.get("expirationTimestamp"))


async def _run_plugin(plugin: Mapping[str, Any]) -> Mapping[str, Any]:
    exec_provider, kube_config = kubernetes("config.exec_provider"), kubernetes("config.kube_config")
    command = plugin.get("command")
    try:
        status: Mapping[str, Any] = await exec_provider.ExecProvider(kube_config.ConfigNode("exec", dict(plugin))).run()
    except FileNotFoundError as error:
        hint = str(plugin.get("installHint") or "install it, or put its folder on PATH")
        raise KubeconfigError(f"the credential plugin {command} isn't installed", hint) from error
    except (exec_provider.ConfigException, OSError) as error:
        raise KubeconfigError(
            f"the credential plugin {command} failed: {error}", "run it by hand to see why"
        ) from error
    return status if isinstance(status, dict) else {}


def _expiry_s(timestamp: Any) -> float:
    """Return when to ask the plugin again: a little before *timestamp* (RFC 3339), on the monotonic clock."""
    if not timestamp:
        return NEVER
    try:
        end = dt.datetime.fromisoformat(str(timestamp))
    except ValueError:
        return NEVER
    left_s = (end - dt.datetime.now(dt.UTC)).total_seconds()
    return time.monotonic() + left_s - min(30.0, max(left_s, 0.0) * 0.1)


def _without(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}


def _provider_token(provider: Mapping[str, Any]) -> str:
    """Return an OIDC token that is still good. Renewing one is a plugin's job; kubectl dropped the other providers."""
    name, config = provider.get("name"), provider.get("config") or {}
    token = str(config.get("id-token") or "")
    if name == "oidc" and _jwt_expiry(token) > time.time():
        return token
    raise KubeconfigError(
        f"the kubeconfig's auth-provider {name!r} has no valid token",
        "use an exec credential plugin, such as kubelogin for OIDC",
    )


def _jwt_expiry(token: str) -> float:
    try:
        body = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).get("exp") or NEVER)
    except (IndexError, ValueError, AttributeError, binascii.Error):
        return 0.0


def authorization(value: str) -> tuple[tuple[str, str], ...]:
    """Return the header that carries *value*, none where that is empty.

    Raises:
        KubeconfigError: it has control characters in it.
    """
    if any(ord(character) < 32 for character in value):
        raise KubeconfigError("the token has line breaks or control characters in it")
    return (("Authorization", value),) if value else ()


def impersonation_of(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the headers for whom a kubeconfig's *user* acts as, none where that is nobody else.

    Raises:
        KubeconfigError: there are groups or a uid but no name.
    """
    if "as" not in user and not user.get("as-groups") and not user.get("as-uid"):
        return ()
    return impersonation(str(user.get("as") or ""), tuple(user.get("as-groups") or ()), str(user.get("as-uid") or ""))


@lru_cache(maxsize=4096)
def impersonation(user: str, groups: tuple[str, ...] = (), uid: str = "") -> tuple[tuple[str, str], ...]:
    """Return the headers that make the server act as *user*.

    Raises:
        KubeconfigError: *user* is empty, which would silently mean ourselves, or something has line breaks in it.
    """
    if not user:
        raise KubeconfigError("the user to impersonate is empty", "name one, or don't impersonate")
    if any(ord(character) < 32 for character in "".join((user, uid, *groups))):
        raise KubeconfigError("the user to impersonate has control characters in it")
    headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
    return (*headers, ("Impersonate-Uid", uid)) if uid else tuple(headers)
