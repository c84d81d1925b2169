"""An admission webhook of a namespace, whose answers a test chooses."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.certificates import self_signed


@contextlib.contextmanager
def admission_webhook(
    folder: Path, answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Serve *answer* to what is asked; yields what configures it for the ConfigMaps of a namespace."""

    class Asked(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            said = {**answer(request), "uid": request["uid"]}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said}
            data = json.dumps(review).encode()
            with contextlib.suppress(OSError):  # whoever asked has gone
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 512

        def handle_error(self, *_: object) -> None:
            """Say nothing of who hung up."""

    public, private = self_signed(is_authority=False)
    (folder / "hook.pem").write_text(private + public)
    server = Server(("127.0.0.1", 0), Asked)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hook.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def configuration(namespace: str) -> dict[str, Any]:
        rules = [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
        ]
        where = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        address = f"https://127.0.0.1:{server.server_port}/"
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": f"of-{namespace}"},
            "webhooks": [
                {
                    "name": "of-a-team.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "timeoutSeconds": 30,
                    "clientConfig": {"url": address, "caBundle": base64.b64encode(public.encode()).decode()},
                    "namespaceSelector": where,
                    "rules": rules,
                }
            ],
        }

    try:
        yield configuration
    finally:
        server.shutdown()
        server.server_close()
