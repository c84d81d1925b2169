"""Pods that run as processes: fixtures for a namespace of them in the shared sandbox, and what to see them by."""

import contextlib
import functools
import http.client
import json
import socket
from dataclasses import dataclass

import pytest

from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.sandbox.runtime.client import unavailable
from tests.kubectl import KubectlError
from tests.shared_cluster import Administrator


@pytest.fixture(scope="session")
def _real_pods(sandbox) -> Sandbox:
    """The shared sandbox, where it can run pods as processes."""
    if not isinstance(sandbox, Sandbox):
        pytest.skip("pods run as processes in a sandbox, and these tests run on a given cluster")
    if reason := unavailable():
        pytest.skip(reason)
    return sandbox


@pytest.fixture
def real(_real_pods, kubectl, namespace, eventually) -> "Real":
    """A namespace whose pods run as processes."""
    found = Real(_real_pods, kubectl, namespace, functools.partial(eventually, timeout_s=240, pause_s=0.1))
    with contextlib.closing(found):
        yield labelled(found)


def labelled(real: "Real") -> "Real":
    """Label the namespace so that its pods run as processes, and return once pods that are made in it do: who admits them hears of labels later."""
    real.kubectl("label", "namespace", real.namespace, "sandbox.reconcile.dev/pods=processes")
    pod = {"metadata": {"name": "tried"}, "spec": {"containers": [{"name": "main", "image": "system"}]}}
    path = f"/api/v1/namespaces/{real.namespace}/pods?dryRun=All"

    def is_sent() -> bool:
        status, body = real.asked("POST", path, pod)
        return status == 201 and "sandbox.reconcile.dev/pods" in json.loads(body)["spec"].get("nodeSelector", {})

    real.eventually(is_sent, "pods of the namespace run as processes")
    return real


@dataclass(frozen=True)
class Real:
    """What a test does with pods of its namespace."""

    sandbox: Sandbox
    kubectl: object
    namespace: str
    eventually: object

    def run(self, *argv, name="main", image="system", **container) -> str:
        """Create a pod with one container; container fields by name, fields of the pod's spec in ``pod=``."""
        spec = container.pop("pod", {})
        one = {"name": "main", "image": image, "command": list(argv), **container}
        self.apply({"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [one], **spec}})
        return name

    def apply(self, *manifests) -> None:
        whole = [{"apiVersion": "v1", **one} for one in manifests]
        for one in whole:
            one["metadata"]["namespace"] = self.namespace
        self.kubectl.apply(whole)

    def pod(self, name="main") -> dict:
        return self.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def get(self, path) -> dict:
        """What is there, {} where nothing is. An API server that has no time is asked again."""

        def answered():
            status, body = self.asked("GET", path)
            if status not in {200, 404}:
                raise KubectlError(f"GET {path}: {status} {body[:300]!r}")
            return status, body

        status, body = self.eventually(answered, f"the API server answers for {path}")
        return json.loads(body) if status == 200 else {}

    @functools.cached_property
    def _administrator(self) -> Administrator:
        return Administrator(self.sandbox)

    def close(self) -> None:
        """Close the connection along which the API server is asked."""
        self._administrator.close()

    def asked(self, method, path, body=None) -> tuple[int, bytes]:
        try:
            return self._administrator.ask(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise KubectlError(f"{method} {path}: {error!r}") from error

    def phase(self, phase, name="main", timeout_s=240.0) -> dict:
        def reached():
            pod = self.pod(name)
            return pod if pod.get("status", {}).get("phase") == phase else None

        return self.eventually(reached, f"{name} is {phase}", timeout_s=timeout_s)

    def ready(self, name="main", *, ready=True, timeout_s=240.0) -> dict:
        def reached():
            pod = self.pod(name)
            return pod if pod and is_ready(pod) is ready else None

        return self.eventually(reached, f"{name} ready={ready}", timeout_s=timeout_s)

    def container(self, name="main", index=0) -> dict:
        found = self.pod(name).get("status", {}).get("containerStatuses", [])
        return found[index] if found else {"state": {}, "restartCount": 0, "ready": False}

    def gone(self, *names) -> None:
        self.eventually(lambda: not any(self.pod(name) for name in names), f"{names} are gone")

    def logs(self, name="main", *arguments) -> list[str]:
        return self.kubectl("logs", name, "-n", self.namespace, *arguments).splitlines()

    def delete(self, name="main", *arguments) -> None:
        self.kubectl("delete", "pod", name, "-n", self.namespace, *arguments)


def is_ready(pod) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
