"""An admission webhook of a namespace, whose answers a test chooses."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.certificates import self_signed
from tests.security.servers import Quiet, serving


@contextlib.contextmanager
def admission_webhook(
    folder: Path, answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Serve *answer* to what is asked; yields what configures it for the ConfigMaps of a namespace."""

    class Asked(Quiet):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802 - what http.server calls
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            said = {**answer(request), "uid": request["uid"]}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": said}
            with contextlib.suppress(OSError):  # whoever asked has gone
                self.answer(200, json.dumps(review).encode(), Content_Type="application/json")

    public, private = self_signed(is_authority=False)
    (folder / "hook.pem").write_text(private + public)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hook.pem")
    with serving(Asked, context) as address:

        def configuration(namespace: str) -> dict[str, Any]:
            rule = {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps"],
            }
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
                        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                        "rules": [rule],
                    }
                ],
            }

        yield configuration
