"""The way to a cluster, resolved: address, TLS material, headers, the default namespace, and how long these may be used.

Rules are kubectl's: the kubeconfig with the flags put over it (``kubeconfig.py``, ``credentials.py``); without any, a pod's service account.
Resolving again (rotated token, expired credential) yields a new route.

Never: skips TLS verification unless told to by name, or writes a private key where it outlives the call.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import ssl
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.access import kubeconfig
from kubectl_reconcile.cluster.access.credentials import (
    NEVER,
    ROTATING_TOKEN_S,
    authorization,
    impersonation_of,
    kubernetes,
    with_plugin,
)
from kubectl_reconcile.cluster.access.flags import Access
from kubectl_reconcile.cluster.errors import KubeconfigError, NoClusterConfigured
from kubectl_reconcile.core.records import Guarded

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Tls(Guarded, frozen=True):
    """TLS material by value, so that two routes can be compared and nothing depends on files that may go."""

    hidden: ClassVar = frozenset({"certificate", "key"})

    authority: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
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


class Route(Guarded, frozen=True):
    """An access resolved: everything that a request needs besides itself.

    *context* is what the kubeconfig calls it, empty where none does. *expires_at_s* is on the monotonic clock; past it, resolve again. *headers* carry authorization and impersonation.
    """

    hidden: ClassVar = frozenset({"headers"})

    server: str
    namespace: str
    tls: Tls
    headers: tuple[tuple[str, str], ...] = ()
    tls_server_name: str = ""
    proxy: str = ""
    expires_at_s: float = NEVER
    context: str = ""

    @property
    def near(self) -> bool:
        """Whether the server is on this machine or network, where compressing costs more than sending."""
        host = urllib.parse.urlsplit(self.server).hostname or ""
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return host == "localhost"

    def nameless(self) -> Route:
        """Return the way to the same server that tells nothing of who we are: no header, and no certificate of ours."""
        return replace(self, headers=(), tls=replace(self.tls, certificate=None, key=None))


async def resolve(access: Access) -> Route:
    """Return the route that *access* asks for, running the credential plugin if the kubeconfig names one.

    Raises:
        KubeconfigError: a file can't be read, a context, cluster or user is missing, a plugin fails, credentials are of a
            kind that isn't supported, or nothing says where the cluster is.
    """
    config = kubeconfig.read(access)
    if config is None and not access.server and _in_pod():
        return _pod_route(access)
    context = kubeconfig.context_of(config or {}, access)
    cluster = kubeconfig.cluster_of(config or {}, access, context)
    user = kubeconfig.user_of(config or {}, access, context)
    if not cluster.get("server"):
        raise NoClusterConfigured
    user, expires_at_s = await with_plugin(user)
    route = await _kubeconfig_route(access, cluster, user, str(context.get("namespace") or ""), expires_at_s)
    return replace(route, context=access.context or str((config or {}).get("current-context") or ""))


async def _kubeconfig_route(
    access: Access, cluster: Mapping[str, Any], user: Mapping[str, Any], namespace: str, expires_at_s: float
) -> Route:
    tls, server = _tls(cluster, user), _server(str(cluster["server"]))
    resolved = _plain(cluster, user, server) or await _resolved(cluster, user, server)
    return Route(
        server=resolved.host,
        namespace=access.namespace or namespace or "default",
        tls=tls,
        headers=(*authorization(resolved.authorization), *impersonation_of(user)),
        tls_server_name=resolved.tls_server_name,
        proxy=_proxy(resolved.host, resolved.proxy),
        expires_at_s=expires_at_s,
    )


class _Resolved(Struct, frozen=True):
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
    library = kubernetes("config")
    config = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": {**_without_files(cluster), "server": server}}],
        "users": [{"name": "chosen", "user": _without_files(user)}],
    }
    configuration = kubernetes("client").Configuration()
    try:
        await library.load_kube_config_from_dict(config, client_configuration=configuration)
    except (library.ConfigException, OSError, ValueError, TypeError) as error:
        raise KubeconfigError(f"the kubeconfig's credentials can't be used: {error}") from error
    bearer = str(configuration.api_key.get("BearerToken") or "").strip()
    return _Resolved(configuration.host, bearer, configuration.tls_server_name or "", configuration.proxy)


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
    library = kubernetes("config")
    configuration = kubernetes("client").Configuration()
    try:
        library.load_incluster_config(client_configuration=configuration, try_refresh_token=False)
        authority = Path(configuration.ssl_ca_cert).read_bytes()
    except (library.ConfigException, OSError) as error:
        raise KubeconfigError(f"the pod's service account can't be used: {error}") from error
    user = kubeconfig.with_user_flags({}, access)
    bearer = f"Bearer {access.token or configuration.api_key['BearerToken'].partition(' ')[2].strip()}"
    return Route(
        server=configuration.host,
        namespace=access.namespace or _pod_namespace() or "default",
        tls=Tls(authority=authority),
        headers=(*authorization(bearer), *impersonation_of(user)),
        tls_server_name=access.tls.tls_server_name or "",
        expires_at_s=time.monotonic() + ROTATING_TOKEN_S,
    )


def _pod_namespace() -> str:
    try:
        return (_SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return ""
