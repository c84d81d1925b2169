"""The way to a cluster: kubectl's flags, kubeconfig files, a pod's own account.

Vocabulary: an *access* is what the user asked for (the flags); a *route* is what came of it: address,
TLS material, an authorization header, the default namespace, and how long these may be used.

Rules are kubectl's: ``--kubeconfig`` names one file that must exist; ``$KUBECONFIG`` may name several, the first
that sets a value wins, paths are relative to the file that holds them; without any, a pod's service account.
The kubeconfig's ``user`` may be a token, a token file, a certificate, a password or an exec credential plugin,
which ``kubernetes.aio`` knows how to ask. Resolving again (rotated token, expired credential) yields a new route.

Never: skips TLS verification unless told to by name, writes a private key where it outlives the call,
or treats an empty user to impersonate as nobody to impersonate.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import importlib
import ipaddress
import json
import os
import ssl
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kubectl_reconcile.cluster.errors import KubeconfigError

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ROTATING_TOKEN_S = 60.0
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Access:
    """What kubectl's common flags say about the cluster to talk to. None (or empty) leaves it to the kubeconfig.

    *as_user* alone tells None (no impersonation) from empty (refused, since it would fall back to our own rights).
    """

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None
    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    as_uid: str | None = None
    server: str | None = None
    token: str | None = field(default=None, repr=False)
    certificate_authority: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    request_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS material by value, so that two routes can be compared and nothing depends on files that may go."""

    authority: bytes | None = None
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Build the context. A private key touches the disk for the length of this call, readable by us alone.

        Raises:
            KubeconfigError: the certificates or the key can't be used.
        """
        try:
            found = ssl.create_default_context(cadata=self.authority.decode() if self.authority else None)
            # Clusters sign with home-made authorities; kubectl doesn't ask for RFC 5280 to the letter either.
            found.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if not self.verify:
                found.check_hostname = False
                found.verify_mode = ssl.CERT_NONE
            if self.certificate and self.key:
                self._load_chain(found, self.certificate, self.key)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(
                f"the TLS certificates can't be used: {error}",
                "check certificate-authority, client-certificate and client-key",
            ) from error
        return found

    @staticmethod
    def _load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-") as folder:
            chain, secret = Path(folder, "chain.pem"), Path(folder, "key.pem")
            chain.write_bytes(certificate)
            secret.touch(mode=0o600)
            secret.write_bytes(key)
            # A passphrase would be asked for on the terminal, by OpenSSL, in the middle of anything.
            context.load_cert_chain(chain, secret, password="")


@dataclass(frozen=True, slots=True)
class Route:
    """An access resolved: everything that a request needs besides itself.

    *expires_at_s* is on the monotonic clock; past it, resolve again. *headers* carry authorization and impersonation.
    """

    server: str
    namespace: str
    tls: Tls
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tls_server_name: str = ""
    proxy: str = ""
    expires_at_s: float = _NEVER

    @property
    def near(self) -> bool:
        """Whether the server is on this machine or network, where compressing costs more than sending."""
        host = urllib.parse.urlsplit(self.server).hostname or ""
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return host == "localhost"


async def resolve(access: Access) -> Route:
    """Return the route that *access* asks for, running the credential plugin if the kubeconfig names one.

    Raises:
        KubeconfigError: a file can't be read, a context, cluster or user is missing, a plugin fails, credentials are of a
            kind that isn't supported, or nothing says where the cluster is.
    """
    config = _merged(access)
    if config is None and not access.server and _in_pod():
        return _pod_route(access)
    context = _context(config or {}, access)
    cluster = _with_cluster_flags(_named(config or {}, "cluster", access.cluster or context.get("cluster")), access)
    user = _with_user_flags(_named(config or {}, "user", access.user or context.get("user")), access)
    if not cluster.get("server"):
        raise KubeconfigError(
            "no cluster is configured",
            "set KUBECONFIG or --kubeconfig, choose a --context, or try one on this machine: kubectl reconcile sandbox up",
        )
    user, expires_at_s = await _with_plugin(user)
    return await _kubeconfig_route(access, cluster, user, str(context.get("namespace") or ""), expires_at_s)


def _kubernetes(module: str) -> Any:
    """Import a module of ``kubernetes.aio`` when it is needed: that takes a third of a second, and it has no types."""
    return importlib.import_module(f"kubernetes.aio.{module}")


# --- the kubeconfig files ---------------------------------------------------------------------------------------------


def _merged(access: Access) -> dict[str, Any] | None:
    """Merge the kubeconfig files as kubectl does; None where there is none."""
    if access.kubeconfig:
        return _read(Path(access.kubeconfig).expanduser())
    named = [Path(part).expanduser() for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    paths = [path for path in named or [Path("~/.kube/config").expanduser()] if path.exists()]
    if not paths:
        return None
    merged: dict[str, Any] = {}
    for config in map(_read, paths):
        for key, value in config.items():
            if isinstance(value, dict):
                merged[key] = {**value, **merged.get(key, {})}
            else:
                merged[key] = merged.get(key) or value
    return merged


def _read(path: Path) -> dict[str, Any]:
    """Read one kubeconfig file: its lists as mappings by name, its relative paths made absolute."""
    try:
        loaded = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}  # noqa: S506 - both are safe loaders
    except OSError as error:
        raise KubeconfigError(
            f"kubeconfig {path} can't be read: {error.strerror}", "check --kubeconfig and KUBECONFIG"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise KubeconfigError(
            f"kubeconfig {where} is not YAML: {getattr(error, 'problem', None) or 'unreadable'}"
        ) from error
    if not isinstance(loaded, dict):
        raise KubeconfigError(f"kubeconfig {path} is not a mapping", "it should begin with: apiVersion: v1")
    found: dict[str, Any] = {"current-context": loaded.get("current-context") or ""}
    for plural, singular in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        found[singular] = dict(reversed([_entry(path, plural, singular, entry) for entry in loaded.get(plural) or ()]))
    return found


def _entry(path: Path, plural: str, singular: str, entry: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict) or not entry.get("name") or not isinstance(entry.get(singular) or {}, dict):
        raise KubeconfigError(f"kubeconfig {path}: an entry of {plural} needs a name and a {singular}")
    body = dict(entry.get(singular) or {})
    for key in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
        if body.get(key):
            body[key] = str(path.parent / Path(str(body[key])).expanduser())
    plugin = body.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
        body["exec"] = {**plugin, "command": str(path.parent / str(plugin["command"]))}
    return str(entry["name"]), body


def _context(config: Mapping[str, Any], access: Access) -> dict[str, Any]:
    name = access.context or config.get("current-context")
    return _named(config, "context", name) if name else {}


def _named(config: Mapping[str, Any], singular: str, name: str | None) -> dict[str, Any]:
    if not name:
        return {}
    entries = config.get(singular) or {}
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise KubeconfigError(f"the kubeconfig has no {singular} {name!r}", f"it has: {known}")
    found: dict[str, Any] = dict(entries[name])
    return found


def _with_cluster_flags(cluster: dict[str, Any], access: Access) -> dict[str, Any]:
    if access.server:
        cluster["server"] = access.server
    if access.tls_server_name:
        cluster["tls-server-name"] = access.tls_server_name
    if access.insecure_skip_tls_verify and access.certificate_authority:
        raise KubeconfigError("--insecure-skip-tls-verify and --certificate-authority contradict each other")
    if access.insecure_skip_tls_verify:
        cluster = {key: value for key, value in cluster.items() if not key.startswith("certificate-authority")}
        cluster["insecure-skip-tls-verify"] = True
    if access.certificate_authority:
        cluster.pop("certificate-authority-data", None)
        cluster.update({"certificate-authority": access.certificate_authority, "insecure-skip-tls-verify": False})
    return cluster


def _with_user_flags(user: dict[str, Any], access: Access) -> dict[str, Any]:
    if access.token:
        kept = (
            "as",
            "as-uid",
            "as-groups",
            "as-user-extra",
            "client-certificate",
            "client-certificate-data",
            "client-key",
            "client-key-data",
        )
        user = {key: user[key] for key in kept if key in user} | {"token": access.token}
    for key, value in (("client-certificate", access.client_certificate), ("client-key", access.client_key)):
        if value:
            user.pop(f"{key}-data", None)
            user[key] = value
    if access.as_user is not None:
        user |= {"as": access.as_user, "as-groups": list(access.as_groups), "as-uid": access.as_uid or ""}
    elif access.as_groups or access.as_uid:
        raise KubeconfigError("--as-group and --as-uid need --as", "name the user to impersonate")
    return user


# --- credentials ------------------------------------------------------------------------------------------------------


async def _with_plugin(user: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Run the user's exec credential plugin, if it has one; return the user with what it gave, and its expiry."""
    if user.get("auth-provider"):
        return {**_without(user, "auth-provider"), "token": _provider_token(user["auth-provider"])}, _NEVER
    plugin = user.get("exec")
    if not plugin:
        rotates = bool(user.get("tokenFile"))
        return (_without(user, "token"), time.monotonic() + _ROTATING_TOKEN_S) if rotates else (user, _NEVER)
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
    exec_provider, kube_config = _kubernetes("config.exec_provider"), _kubernetes("config.kube_config")
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
        return _NEVER
    try:
        end = dt.datetime.fromisoformat(str(timestamp))
    except ValueError:
        return _NEVER
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
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).get("exp") or _NEVER)
    except (IndexError, ValueError, AttributeError, binascii.Error):
        return 0.0


# --- the route --------------------------------------------------------------------------------------------------------


async def _kubeconfig_route(
    access: Access, cluster: Mapping[str, Any], user: Mapping[str, Any], namespace: str, expires_at_s: float
) -> Route:
    tls, server = _tls(cluster, user), _server(str(cluster["server"]))
    resolved = _plain(cluster, user, server) or await _resolved(cluster, user, server)
    return Route(
        server=resolved.host,
        namespace=access.namespace or namespace or "default",
        tls=tls,
        headers=(*_authorization(resolved.authorization), *_impersonation(user)),
        tls_server_name=resolved.tls_server_name,
        proxy=_proxy(resolved.host, resolved.proxy),
        expires_at_s=expires_at_s,
    )


@dataclass(frozen=True, slots=True)
class _Resolved:
    """What the cluster and the user of a kubeconfig come to."""

    host: str
    authorization: str
    tls_server_name: str = ""
    proxy: str | None = None


_PLAIN = {"token", "client-certificate", "client-certificate-data", "client-key", "client-key-data"}


def _plain(cluster: Mapping[str, Any], user: Mapping[str, Any], server: str) -> _Resolved | None:
    """Resolve a user who has a token or a certificate and nothing else; None where there is more to it.

    That is most users most of the time, and spares them the third of a second that importing the library takes.
    """
    if any(not (key in _PLAIN or key.startswith("as")) for key in user):
        return None
    token = str(user.get("token") or "").strip()
    name, proxy = cluster.get("tls-server-name") or "", cluster.get("proxy-url")
    return _Resolved(server, f"Bearer {token}" if token else "", str(name), str(proxy) if proxy else None)


async def _resolved(cluster: Mapping[str, Any], user: Mapping[str, Any], server: str) -> _Resolved:
    """Resolve any other user as ``kubernetes.aio`` does: token files, passwords, identity providers."""
    library = _kubernetes("config")
    config = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": {**_without_files(cluster), "server": server}}],
        "users": [{"name": "chosen", "user": _without_files(user)}],
    }
    configuration = _kubernetes("client").Configuration()
    try:
        await library.load_kube_config_from_dict(config, client_configuration=configuration)
    except (library.ConfigException, OSError, ValueError, TypeError) as error:
        raise KubeconfigError(f"the kubeconfig's credentials can't be used: {error}") from error
    authorization = str(configuration.api_key.get("BearerToken") or "").strip()
    return _Resolved(configuration.host, authorization, configuration.tls_server_name or "", configuration.proxy)


def _without_files(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the TLS material: it is held by value, and kubernetes.aio would leave the key in a file."""
    return {key: value for key, value in entry.items() if not key.startswith(("certificate-authority", "client-"))}


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Tls:
    certificate, key = _material(user, "client-certificate"), _material(user, "client-key")
    if bool(certificate) != bool(key):
        raise KubeconfigError("a client certificate needs its key, and the key its certificate")
    return Tls(
        authority=_material(cluster, "certificate-authority"),
        certificate=certificate,
        key=key,
        verify=cluster.get("insecure-skip-tls-verify") is not True,
    )


def _material(entry: Mapping[str, Any], key: str) -> bytes | None:
    data, path = entry.get(f"{key}-data"), entry.get(key)
    try:
        if data:
            return base64.b64decode(data, validate=False)
        return Path(path).expanduser().read_bytes() if path else None
    except (binascii.Error, TypeError, ValueError) as error:
        raise KubeconfigError(f"the kubeconfig's {key}-data is not base64") from error
    except OSError as error:
        raise KubeconfigError(f"the {key} {path} can't be read: {error.strerror}") from error


def _server(text: str) -> str:
    server = text if "://" in text else f"https://{text}"
    try:
        parts = urllib.parse.urlsplit(server)
        good = (
            parts.scheme in {"https", "http"} and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        )
    except ValueError:
        good = False
    if not good:
        raise KubeconfigError(
            "the server's address is not a URL like https://host:6443", "check --server or the cluster's server"
        )
    return server.rstrip("/")


def _authorization(value: str) -> tuple[tuple[str, str], ...]:
    if any(ord(character) < 32 for character in value):
        raise KubeconfigError("the token has line breaks or control characters in it")
    return (("Authorization", value),) if value else ()


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if "as" not in user and not user.get("as-groups") and not user.get("as-uid"):
        return ()
    return impersonation(str(user.get("as") or ""), tuple(user.get("as-groups") or ()), str(user.get("as-uid") or ""))


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


def _proxy(server: str, configured: str | None) -> str:
    parts = urllib.parse.urlsplit(server)
    proxy = configured or ""
    if not proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
        proxies = urllib.request.getproxies()
        proxy = proxies.get(parts.scheme, "")
    if proxy and urllib.parse.urlsplit(proxy).scheme not in {"http", "https"}:
        raise KubeconfigError("only http and https proxies are supported", "check proxy-url and HTTPS_PROXY")
    return proxy


# --- a pod's own account ----------------------------------------------------------------------------------------------


def _in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (_SERVICE_ACCOUNT / "token").is_file()


def _pod_route(access: Access) -> Route:
    library = _kubernetes("config")
    configuration = _kubernetes("client").Configuration()
    try:
        library.load_incluster_config(client_configuration=configuration, try_refresh_token=False)
        authority = Path(configuration.ssl_ca_cert).read_bytes()
    except (library.ConfigException, OSError) as error:
        raise KubeconfigError(f"the pod's service account can't be used: {error}") from error
    user = _with_user_flags({}, access)
    authorization = f"Bearer {access.token or configuration.api_key['BearerToken'].partition(' ')[2].strip()}"
    return Route(
        server=configuration.host,
        namespace=access.namespace or _pod_namespace() or "default",
        tls=Tls(authority=authority),
        headers=(*_authorization(authorization), *_impersonation(user)),
        tls_server_name=access.tls_server_name or "",
        expires_at_s=time.monotonic() + _ROTATING_TOKEN_S,
    )


def _pod_namespace() -> str:
    try:
        return (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return ""
