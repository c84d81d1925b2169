"""The parts of a control plane: how each is started, where it keeps its things, how it says that it is well.

Vocabulary: a *component* is one process of the control plane; a *layout* names the files of one sandbox; *ports* are
loopback ports, one per component; *options* are what a user of the sandbox may change.

Everything listens on the loopback interface only. The API server makes its own certificate, which stands in the
kubeconfig as the authority, and signs service accounts with the same key: nothing has to be generated beforehand, so
the sandbox needs no cryptography of its own. Hence etcd asks for no client certificate either, and needs none: what it
stores it tells over a Unix socket in the sandbox's folder, which is its owner's alone; on its port it says how it is, and
nothing else.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.build import Binaries
from kubectl_reconcile.sandbox.runtime.client import python


class Component(StrEnum):
    """One process of the control plane, by the name of its program."""

    ETCD = "etcd"
    """Storage."""
    API_SERVER = "kube-apiserver"
    """The only one that clients talk to."""
    CONTROLLERS = "kube-controller-manager"
    """Deployments, ReplicaSets, Jobs, garbage collection, namespaces."""
    SCHEDULER = "kube-scheduler"
    """Binds pods to nodes."""
    KWOK = "kwok"
    """Plays the kubelets: a node and pods that become Ready without a container."""
    NODELET = "nodelet"
    """Runs the pods of labelled namespaces as processes, where the machine can do that."""


_STORAGE, _PEERS = "etcd.sock", "etcd-peers.sock"
"""Sockets in the sandbox's folder, in which its components run: a path of one name is never too long for a socket."""

NODE = "sandbox"
"""Name of the one node."""


@dataclass(frozen=True, slots=True)
class Options:
    """What may differ from one sandbox to the next."""

    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """More command-line flags by component; the last of two equal flags counts."""
    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Users with a token of their own, and the groups of each."""
    components: tuple[str, ...] = tuple(Component)
    """What to run. etcd and kube-apiserver are needed."""

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return {"flags": dict(self.flags), "users": dict(self.users), "components": list(self.components)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Options:
        """Return the options that :meth:`to_json` wrote."""
        return cls(
            flags={name: tuple(flags) for name, flags in value["flags"].items()},
            users={name: tuple(groups) for name, groups in value["users"].items()},
            components=tuple(value["components"]),
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of one sandbox are."""

    folder: Path

    @property
    def record(self) -> Path:
        """What runs, and how it was started."""
        return self.folder / "sandbox.json"

    @property
    def kubeconfig(self) -> Path:
        """Access for the administrator."""
        return self.folder / "kubeconfig"

    @property
    def tokens(self) -> Path:
        """The API server's list of tokens and users."""
        return self.folder / "tokens.csv"

    @property
    def data(self) -> Path:
        """What etcd stores."""
        return self.folder / "etcd"

    @property
    def storage(self) -> Path:
        """The socket at which etcd tells what it stores, to whoever may open files of this folder."""
        return self.folder / _STORAGE

    @property
    def authority(self) -> Path:
        """What the API server's certificate is verified with."""
        return self.certificate(Component.API_SERVER)

    def certificate(self, component: Component) -> Path:
        """Return the certificate that *component* shows."""
        if component in {Component.API_SERVER, Component.NODELET}:  # which answers by the name of the API server
            return self.folder / "pki" / Component.API_SERVER / "apiserver.crt"
        return self.folder / "pki" / component / f"{component}.crt"

    @property
    def pods(self) -> Path:
        """The folders of process pods, and what they run in."""
        return self.folder / "pods"

    @property
    def logs(self) -> Path:
        """What the components say."""
        return self.folder / "logs"

    def log(self, component: str) -> Path:
        """Return the file that *component* logs to."""
        return self.logs / f"{component}.log"


def command(
    component: Component, layout: Layout, ports: Mapping[Component, int], options: Options, binaries: Binaries
) -> list[str]:
    """Return the program and arguments that run *component*."""
    if component is Component.NODELET:
        return python("kubectl_reconcile.sandbox.pods", str(ports[component]))
    flags = _FLAGS[component](layout, ports, binaries)
    return [str(binaries.path(component)), *flags, *options.flags.get(component, ())]


def complaint(component: Component, layout: Layout, port: int, token: str) -> str:
    """Ask *component* how it is; return what it complains of, or ``""`` if it is ready to work."""
    path, has_certificate = _PROBES[component]
    try:
        status, body = request(
            port, path, authority=layout.certificate(component) if has_certificate else None, token=token
        )
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {error}"
    return "" if status == http.client.OK else f"HTTP {status}: {_first_complaint(body)}"


def request(
    port: int,
    path: str,
    *,
    authority: Path | None,
    token: str = "",
    method: str = "GET",
    body: Mapping[str, Any] | None = None,
) -> tuple[int, bytes]:
    """Ask a component over HTTP, or HTTPS verified with *authority*; return the status and the body.

    Raises:
        OSError, http.client.HTTPException: there was no answer within 5 s, or it isn't the component that answered.
    """
    connection: http.client.HTTPConnection
    if authority is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    else:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=5, context=ssl.create_default_context(cafile=str(authority))
        )
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json", **headers}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _first_complaint(body: bytes) -> str:
    lines = body.decode(errors="replace").strip().splitlines() or ["no more is known"]
    return next((line for line in lines if line.startswith("[-]")), lines[0])[:200]


def _etcd(layout: Layout, ports: Mapping[Component, int], _: Binaries) -> list[str]:
    url = f"http://127.0.0.1:{ports[Component.ETCD]}"
    return [
        "--name=sandbox",
        f"--data-dir={layout.data}",
        f"--listen-client-urls=unix://{_STORAGE}",
        f"--advertise-client-urls={url}",  # asked by nobody, but etcd wants one with a port
        f"--listen-peer-urls=unix://{_PEERS}",
        f"--listen-metrics-urls={url}",
        "--unsafe-no-fsync",  # a power cut may cost the sandbox; every write would cost milliseconds
        "--log-level=warn",
    ]


def _api_server(layout: Layout, ports: Mapping[Component, int], _: Binaries) -> list[str]:
    signing_key = layout.authority.with_suffix(".key")
    return [
        f"--etcd-servers=unix://{_STORAGE}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",  # else it looks for a default route, and a laptop may have none
        "--endpoint-reconciler-type=none",  # a loopback address can't be an endpoint of the Service "kubernetes"
        f"--secure-port={ports[Component.API_SERVER]}",
        f"--cert-dir={layout.authority.parent}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={signing_key}",
        f"--service-account-signing-key-file={signing_key}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged",
        "--profiling=false",
    ]


def _controllers(layout: Layout, ports: Mapping[Component, int], _: Binaries) -> list[str]:
    return [
        *_client_of_the_api_server(Component.CONTROLLERS, layout, ports),
        f"--service-account-private-key-file={layout.authority.with_suffix('.key')}",
        f"--root-ca-file={layout.authority}",
        "--use-service-account-credentials",
        "--kube-api-qps=500",  # as shipped it waits between requests, which a busy test would wait for in turn
        "--kube-api-burst=1000",
    ]


def _scheduler(layout: Layout, ports: Mapping[Component, int], _: Binaries) -> list[str]:
    return [
        *_client_of_the_api_server(Component.SCHEDULER, layout, ports),
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def _client_of_the_api_server(component: Component, layout: Layout, ports: Mapping[Component, int]) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[component]}",
        f"--cert-dir={layout.certificate(component).parent}",
        "--leader-elect=false",
        "--profiling=false",
    ]


_STAGES = Path(__file__).with_name("stages.yaml")
"""What simulated pods do besides what kwok has them do."""


def _kwok(layout: Layout, ports: Mapping[Component, int], binaries: Binaries) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig}",
        f"--config={binaries.stages}",
        f"--config={_STAGES}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",  # the other is the nodelet's
        f"--server-address=127.0.0.1:{ports[Component.KWOK]}",
    ]


_FLAGS = {
    Component.ETCD: _etcd,
    Component.API_SERVER: _api_server,
    Component.CONTROLLERS: _controllers,
    Component.SCHEDULER: _scheduler,
    Component.KWOK: _kwok,
}

# Component: where it says how it is, and whether it makes a certificate for that.
_PROBES = {
    Component.ETCD: ("/health", False),
    Component.API_SERVER: ("/readyz", True),
    Component.CONTROLLERS: ("/healthz", True),
    Component.SCHEDULER: ("/readyz", True),
    Component.KWOK: ("/healthz", False),
    Component.NODELET: ("/healthz", True),
}
