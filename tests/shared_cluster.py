"""The cluster that all tests share: one that somebody else runs, or the run's sandbox and its administrator.

Set KUBECTL_RECONCILE_TEST_KUBECONFIG to a disposable cluster's kubeconfig to use that cluster instead of a sandbox.
"""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kubectl_reconcile.sandbox.controlplane import Sandbox
from tests import yaml_text
from tests.waiting import eventually

CLUSTER = "KUBECTL_RECONCILE_TEST_KUBECONFIG"


@dataclass(frozen=True)
class GivenCluster:
    """A cluster that somebody else runs."""

    kubeconfig: Path

    def kubeconfig_for(self, user, groups=(), *, namespace="") -> Path:
        config = yaml_text.document(self.kubeconfig.read_text())
        context = next(one["context"] for one in config["contexts"] if one["name"] == config["current-context"])
        context["namespace"] = namespace or "default"
        entry = next(one["user"] for one in config["users"] if one["name"] == context["user"])
        entry |= {"as": user, "as-groups": list(groups)}
        path = self.kubeconfig.with_name(f"{secrets.token_hex(8)}.kubeconfig")
        path.touch(0o600)
        path.write_text(yaml.safe_dump(config))
        return path


@dataclass
class Administrator:
    """Requests to the shared sandbox along one connection: a new one costs both ends more than most requests."""

    sandbox: Sandbox
    _connection: http.client.HTTPSConnection | None = None
    _headers: Mapping[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and body of what the API server answers."""
        for attempt in (1, 2):  # a server closes what nobody has used for a while
            try:
                connection = self._connection or self._connect()
                connection.request(method, path, None if body is None else json.dumps(body), dict(self._headers))
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                self.close()
                if attempt == 2:
                    raise
        raise AssertionError

    def new_namespace(self, name: str) -> str:
        """The name of a new namespace, which is ready for pods."""
        namespaces = "/api/v1/namespaces"
        wanted = {"metadata": {"name": name}}
        # Nobody else has a namespace of this name: if it already exists, the answer to a first try was lost.
        eventually(lambda: self.ask("POST", namespaces, wanted)[0] in {201, 409}, "the namespace is created")
        account = f"{namespaces}/{name}/serviceaccounts/default"
        eventually(lambda: self.ask("GET", account)[0] == 200, "the namespace has its ServiceAccount")
        return name

    def _connect(self) -> http.client.HTTPSConnection:
        config = yaml_text.document(self.sandbox.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        address = cluster["server"].removeprefix("https://")
        self._connection = http.client.HTTPSConnection(
            address, timeout=60, context=ssl.create_default_context(cadata=authority)
        )
        return self._connection

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None
