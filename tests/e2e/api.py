"""Plain requests to a cluster, as somebody sends them who looks at it from outside."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import yaml_text
from tests.kubectl import KubectlError


class RefusedError(KubectlError):
    """The API server answered with an error; the text is its message."""


class Api:
    """Plain requests to one cluster, along one connection: what a look costs must not slow down what is looked at."""

    def __init__(self, kubectl: Any) -> None:
        config = yaml_text.document(Path(kubectl.kubeconfig).read_text())
        context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
        cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == context["cluster"])
        user = next(each["user"] for each in config["users"] if each["name"] == context["user"])
        self._proxy: subprocess.Popen[str] | None = None
        self._headers: dict[str, str] = {}
        if (set(user), set(cluster)) == ({"token"}, {"server", "certificate-authority-data"}):  # a sandbox
            self._headers = {"Authorization": f"Bearer {user['token']}"}
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
            address, trusted = cluster["server"].removeprefix("https://"), ssl.create_default_context(cadata=authority)
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                address, timeout=60, context=trusted
            )
        else:
            self._connection = http.client.HTTPConnection(self._proxied(kubectl), timeout=60)

    def _proxied(self, kubectl: Any) -> str:
        command = [shutil.which("kubectl", path=str(kubectl.folder)) or "kubectl", "proxy", "--port=0"]
        environ = {**os.environ, "KUBECONFIG": kubectl.kubeconfig}
        self._proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
        return self._proxy.stdout.readline().rpartition(" ")[2].strip()

    def ask(self, path: str, *, method: str = "GET", body: Any = None, type_: str = "application/json") -> Any:
        """What the server answers, None where nothing is.

        Raises:
            RefusedError: it refuses.
        """
        text = json.dumps(body) if body is not None else None
        headers = {**self._headers, "Content-Type": type_}
        try:
            answer, content = self._answer(method, path, text, headers)
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):  # a server closes what nobody has used for a while
            answer, content = self._answer(method, path, text, headers)
        if answer.status == 404:
            return None
        if answer.status >= 300:
            raise RefusedError(content.decode(errors="replace"))
        return json.loads(content)

    def _answer(
        self, method: str, path: str, text: str | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            self._connection.request(method, path, text, dict(headers))
            answer = self._connection.getresponse()
            return answer, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()
        if self._proxy:
            self._proxy.terminate()
            self._proxy.wait(30)
            self._proxy.stdout.close()
