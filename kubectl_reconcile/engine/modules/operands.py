"""Pods that a custom resource owns, as its module reaches them: by name and port, over HTTP and HTTPS, within limits.

A module names a pod, never an address. The pod must be controlled by the CR, by uid: what merely carries a label, or stands in a spec or
a status, leads nowhere, and neither do addresses of the machine itself or of its link.

There are two ways. In a pod of the cluster, the daemon connects to the pod's address: that needs no right, costs the API server nothing, and
goes on while that is away. Anywhere else the API server carries the connection, as for ``kubectl port-forward``, by the rights of who asks. It
isn't ``pods/proxy``: that ends TLS at the API server, which trusts any certificate and shows none. Either way the bytes are the pod's own
from end to end.

Each call has a time limit and an answer a greatest size. A pod that let a call time out isn't asked again for a while, which doubles up to half
a minute, so that one that hangs doesn't keep its CR from being looked at; actions ignore that.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
import orjson
from msgspec import Struct, field
from yarl import URL

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, Forbidden, Unreachable
from kubectl_reconcile.cluster.tunnel import PodTunnel
from kubectl_reconcile.core.module.api import Answer, PodTls, SilentPodError
from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile.core.module.workloads import is_ready
from kubectl_reconcile.core.objects import Manifest, mapping_of
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.retry import SILENT_POD
from kubectl_reconcile.engine.modules.pod_stream import OpenPodStream
from kubectl_reconcile.engine.modules.pod_tls import context_of

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler

_T = TypeVar("_T")

VARIABLE = "KUBECTL_RECONCILE_REACH_PODS"
"""``directly`` or ``api-server``; unset, directly from inside of a cluster."""

_CALL_S = 3.0
_LARGEST = 1 << 20
_MOST_SILENCES = 10_000
_UNHEARD_SHOWN = 5
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class NoWayError(Exception):
    """Pods can't be reached from here, whichever they are; what somebody else found out may be known."""


class _Silence(Struct, frozen=True):
    """A pod that let a call time out: it isn't asked before *until_s*."""

    until_s: float
    times: int


class Operands(Struct):
    """How this process reaches pods, and which of them don't answer. One for all looks and actions.

    *recalls* tells that this process looks once, as a preview does: what somebody else noted on a CR will do where pods can't be reached, and
    it is told which of those that are ready weren't heard.
    """

    directly: bool = field(default_factory=lambda: reaches_directly(os.environ))
    recalls: bool = True
    _silences: dict[tuple[str, int], _Silence] = field(default_factory=dict)

    def pause_s(self, uid: str, port: int) -> float:
        """Return for how long a pod isn't asked yet, 0 if it may be."""
        known = self._silences.get((uid, port))
        return max(0.0, known.until_s - time.monotonic()) if known else 0.0

    def fell_silent(self, uid: str, port: int) -> None:
        """Note that a pod let a call time out."""
        if len(self._silences) >= _MOST_SILENCES:
            self._silences.clear()
        known = self._silences.get((uid, port))
        times = known.times + 1 if known else 1
        self._silences[uid, port] = _Silence(time.monotonic() + SILENT_POD.pause_s(times), times)

    def answered(self, uid: str, port: int) -> None:
        """Note that a pod answers."""
        self._silences.pop((uid, port), None)


def reaches_directly(environ: Mapping[str, str]) -> bool:
    """Tell whether pods are reached at their own addresses.

    Raises:
        NoWayError: the variable says something else than it may.
    """
    said = environ.get(VARIABLE, "")
    if said not in {"", "directly", "api-server"}:
        raise NoWayError(f"{VARIABLE} is {said!r} (hint: directly, or api-server)")
    return said == "directly" if said else bool(environ.get("KUBERNETES_SERVICE_HOST")) and _SERVICE_ACCOUNT.exists()


class PodConnections(aiohttp.BaseConnector):
    """Connections to pods of one CR: the host of a URL is a pod's name."""

    def __init__(self, operands: Operands, client: Client, pods: Mapping[str, Manifest]) -> None:
        super().__init__(limit_per_host=2)
        self._operands, self._client, self._pods = operands, client, pods
        self._tunnels: dict[str, PodTunnel] = {}

    def fault(self, pod: str) -> str:
        """Return what the far side of the way to a pod said went wrong, if it did."""
        tunnel = self._tunnels.get(pod)
        return tunnel.fault if tunnel else ""

    async def end(self) -> None:
        """Close all connections, and what carries them."""
        await self.close()
        await asyncio.gather(*(tunnel.close() for tunnel in self._tunnels.values()))

    async def _create_connection(
        self, req: aiohttp.ClientRequest, _traces: Any, _timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        pod, port = self._pods[str(req.url.host)], int(req.url.port or 80)
        end = await self.opened_to(pod, port)
        context = req.ssl if isinstance(req.ssl, ssl.SSLContext) else None
        name = req.server_hostname if context else None
        _, protocol = await asyncio.get_running_loop().create_connection(
            self._factory, sock=end, ssl=context, server_hostname=name
        )
        return protocol

    async def opened_to(self, pod: Manifest, port: int) -> socket.socket:
        """Return an open connection to *port* of *pod*.

        Raises:
            ApiError: the server refuses to carry it, or doesn't answer.
            OSError: the pod has no address, or refuses.
        """
        return await (self._direct(pod, port) if self._operands.directly else self._carried(pod, port))

    async def _carried(self, pod: Manifest, port: int) -> socket.socket:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        tunnel = await PodTunnel.open(self._client, namespace, name, port)
        before = self._tunnels.get(name)
        self._tunnels[name] = tunnel
        if before is not None:
            await before.close()
        return tunnel.socket

    @staticmethod
    async def _direct(pod: Manifest, port: int) -> socket.socket:
        address = _address_of(pod)
        made = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(made, (str(address), port))
        except BaseException:
            made.close()
            raise
        return made


def _address_of(pod: Manifest) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return a pod's own address, which a machine's loopback or link can't be.

    Raises:
        OSError: it has none (yet).
    """
    said = str(mapping_of(pod.get("status")).get("podIP") or "")
    try:
        found = ipaddress.ip_address(said)
    except ValueError:
        raise OSError(f"the pod has no address{f' but {said!r}' if said else ''}") from None
    if found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified:
        raise OSError(f"{found} can't be the address of a pod")
    return found


class PodsOfCr:
    """The pods of one CR during one look or action; *acts* where more than questions may be put to them."""

    def __init__(self, operands: Operands, client: Client, owned: Owned, *, acts: bool) -> None:
        self._operands, self._client, self._acts = operands, client, acts
        self._pods = {pod["metadata"]["name"]: pod for pod in owned.of("Pod")}
        self._connections: PodConnections | None = None
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, asyncio.Task[ssl.SSLContext]] = {}
        self._answered: set[tuple[str, int]] = set()
        self._unheard: dict[str, str] = {}

    @property
    def unheard(self) -> str:
        """Why nothing was heard of the first pods that are ready and let a call time out, and how many more there are. Empty where there are none."""
        return first_few((self._unheard[name] for name in sorted(self._unheard)), _UNHEARD_SHOWN, "; ")

    def pod(self, name: str, port: int, tls: PodTls | None) -> OwnedPod:
        """Return how to reach a pod.

        Raises:
            SilentPodError: the CR controls no pod of that name.
        """
        if name not in self._pods:
            raise SilentPodError(f"pod {name}: the custom resource controls no pod of that name")
        return OwnedPod(self, self._pods[name], port, tls)

    async def close(self) -> None:
        """End all connections."""
        for task in self._contexts.values():
            task.cancel()
        if self._session is not None:
            await self._session.close()
        if self._connections is not None:
            await self._connections.end()

    @asynccontextmanager
    async def stream(self, pod: Manifest, port: int, tls: PodTls | None) -> AsyncIterator[OpenPodStream]:
        """Lend an open connection to a pod, over TLS if that is asked for. Unless something is done there, each read and write has the limit of a call.

        Raises:
            SilentPodError: nobody listens, or it didn't answer when it was asked last.
            NoWayError: no pod can be reached from here.
        """
        self._heed_silence(pod, port)
        limit_s = None if self._acts else _CALL_S
        reader, writer = await self._limited(pod, port, self._opened(pod, port, tls), _CALL_S)
        try:
            yield OpenPodStream(
                reader, writer, lambda what: self._limited(pod, port, what, limit_s), lambda: self._heard(pod, port)
            )
        finally:
            writer.transport.abort()

    async def _opened(
        self, pod: Manifest, port: int, tls: PodTls | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = await self._context(pod["metadata"]["namespace"], tls) if tls else None
        end = await self._connected().opened_to(pod, port)
        if tls is None:
            return await asyncio.open_connection(sock=end)
        return await asyncio.open_connection(sock=end, ssl=context, server_hostname=tls.server_name)

    async def request(
        self, pod: Manifest, port: int, tls: PodTls | None, method: str, path: str, body: Any, *,
        changes_within_s: float = 0.0,
    ) -> Answer:  # fmt: skip
        """Send one request to a pod and return the answer, whatever its status; what changes something may take longer.

        Raises:
            SilentPodError: it doesn't answer, or didn't when it was asked last.
            NoWayError: no pod can be reached from here.
        """
        if changes_within_s and not self._acts:
            name = pod["metadata"]["name"]
            raise SilentPodError(f"pod {name}: observe must change nothing, but {method} {path} would")
        self._heed_silence(pod, port)
        limit_s = changes_within_s or _CALL_S
        found = await self._limited(pod, port, self._exchange(pod, port, tls, method, path, body), limit_s)
        self._heard(pod, port)
        return found

    def _heard(self, pod: Manifest, port: int) -> None:
        """Note that a pod answers."""
        key = pod["metadata"]["uid"], port
        self._answered.add(key)
        self._operands.answered(*key)

    def _heed_silence(self, pod: Manifest, port: int) -> None:
        """Raise a SilentPodError where a pod isn't to be asked yet."""
        if not self._acts and (pause_s := self._operands.pause_s(pod["metadata"]["uid"], port)):
            raise self._timed_out(pod, f"didn't answer; it is asked again in {pause_s:.0f} s")

    async def _limited(self, pod: Manifest, port: int, what: Coroutine[Any, Any, _T], limit_s: float | None) -> _T:
        """Return the result of *what*, which takes so many seconds at most.

        Raises:
            SilentPodError: it takes longer, or fails.
            NoWayError: no pod can be reached from here.
        """
        name, key = pod["metadata"]["name"], (pod["metadata"]["uid"], port)
        try:
            async with asyncio.timeout(limit_s):
                return await what
        except TimeoutError as error:
            if key not in self._answered:
                self._operands.fell_silent(*key)
            raise self._timed_out(pod, f"no answer at port {port} within {limit_s or _CALL_S:g} s") from error
        except (Forbidden, Unreachable) as error:
            raise NoWayError(f"pods can't be reached from here: {error}{_right_for(error, pod)}") from error
        except (ApiError, aiohttp.ClientError, OSError) as error:
            fault = self._connections.fault(name) if self._connections else ""
            raise SilentPodError(f"pod {name}: no answer at port {port}: {fault or _why(error)}") from error

    def _timed_out(self, pod: Manifest, how: str) -> SilentPodError:
        """Return the error of a pod that let a call time out, and note that where it should have answered."""
        said = f"pod {pod['metadata']['name']}: {how}"
        if is_ready(pod):
            self._unheard[pod["metadata"]["name"]] = said
        return SilentPodError(said)

    def _connected(self) -> PodConnections:
        if self._connections is None:
            self._connections = PodConnections(self._operands, self._client, self._pods)
        return self._connections

    async def _exchange(
        self, pod: Manifest, port: int, tls: PodTls | None, method: str, path: str, body: Any
    ) -> Answer:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=self._connected(), cookie_jar=aiohttp.DummyCookieJar())
        context = await self._context(pod["metadata"]["namespace"], tls) if tls else None
        url = URL.build(scheme="https" if tls else "http", host=pod["metadata"]["name"], port=port).join(
            URL(path, encoded=True)
        )
        data = None if body is None else orjson.dumps(body)
        async with self._session.request(
            method, url, data=data, allow_redirects=False, ssl=context or True,
            headers={"Accept": "application/json", **({"Content-Type": "application/json"} if data else {})},
            server_hostname=tls.server_name if tls else None,
        ) as response:  # fmt: skip
            content = await _bounded(response)
            return Answer(response.status, _json(content), content.decode(errors="replace"))

    async def _context(self, namespace: str, tls: PodTls) -> ssl.SSLContext:
        """Return what a TLS connection is made with; a Secret is read once for all pods."""
        if tls.secret not in self._contexts:
            self._contexts[tls.secret] = asyncio.create_task(context_of(self._client, namespace, tls))
        return await asyncio.shield(self._contexts[tls.secret])


class OwnedPod(Struct, frozen=True):
    """One port of one pod."""

    pods: PodsOfCr
    manifest: Manifest
    port: int
    tls: PodTls | None

    async def ask(self, path: str, body: Any = None) -> Answer:
        """Ask something that changes nothing: by GET, or by POST with *body*.

        Raises:
            SilentPodError: the pod doesn't answer.
            NoWayError: no pod can be reached from here.
        """
        method = "GET" if body is None else "POST"
        return await self.pods.request(self.manifest, self.port, self.tls, method, path, body)

    async def send(self, method: str, path: str, body: Any = None, *, within_s: float = _CALL_S) -> Answer:
        """Have the pod do something, within so many seconds.

        Raises:
            SilentPodError: this is a look and no action, or the pod doesn't answer.
            NoWayError: no pod can be reached from here.
        """
        return await self.pods.request(
            self.manifest, self.port, self.tls, method, path, body, changes_within_s=within_s
        )

    def connect(self) -> AbstractAsyncContextManager[OpenPodStream]:
        """Open a connection for the time of a block.

        Raises:
            SilentPodError: nobody listens, or the pod doesn't answer.
            NoWayError: no pod can be reached from here.
        """
        return self.pods.stream(self.manifest, self.port, self.tls)


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    content = await response.content.read(_LARGEST + 1)
    while len(content) <= _LARGEST and (more := await response.content.read(_LARGEST)):
        content += more
    if len(content) > _LARGEST:
        raise OSError("it answers with more than 1 MiB")
    return content


def _right_for(error: ApiError, pod: Manifest) -> str:
    if not isinstance(error, Forbidden):
        return ""
    place = pod["metadata"]["namespace"]
    return f" (hint: this needs the rights get and create on pods/portforward in namespace {place})"


def _why(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(error.os_error.strerror or error.os_error)
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


def _json(content: bytes) -> Any:
    try:
        return orjson.loads(content) if content else None
    except ValueError:
        return None
