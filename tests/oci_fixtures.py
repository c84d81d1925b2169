"""Records what the real cosign signs: ``make fixtures COSIGN=…``, with the path of its program (``go install github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3``).

It signs an artifact in a registry of this machine, in both layouts and with a key of each kind, and asks neither a log nor a clock. What it pushed, and the public
keys, are the fixture; the private keys are gone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from kubectl_reconcile.core.resources.oci.signed import BUNDLES, PAYLOAD, Meant, referrers_tag, signature_tag
from kubectl_reconcile.source.oci.registry import Registry
from tests.e2e.source.pulling import flux, nobody
from tests.oci_signing import drawn
from tests.registry_server import build_registry, open_registry

FIXTURE = Path(__file__).parent / "core/resources/oci/cosign.json"
KINDS = ("ecdsa", "p384", "ed25519", "rsa")
_NO_LOG = {"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json", "rekorTlogConfig": {}, "tsaConfig": {}}

_OLD = ("--new-bundle-format=false", "--use-signing-config=false", "--tlog-upload=false")


def main(cosign: str) -> None:
    """Write the fixture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(_NO_LOG))
        environ = {**os.environ, "HOME": name, "DOCKER_CONFIG": name, "COSIGN_PASSWORD": "pa55word"}

        def run(*words: str) -> None:
            subprocess.run(
                [Path(cosign).resolve(), *words], cwd=folder, env=environ, check=True, stdin=subprocess.DEVNULL
            )

        with open_registry(build_registry(print), folder) as running:
            found = []
            for kind in KINDS:
                key = _private(kind)
                (folder / "drawn.pem").write_text(key)
                run("import-key-pair", "--key", "drawn.pem", "--output-key-prefix", kind, "--yes")
                digest = flux(running, f"signed/{kind}")
                place = f"{running.host}/signed/{kind}"
                sign = ["sign", "--key", f"{kind}.key", "--yes", "--allow-http-registry"]
                run(*sign, "--signing-config", "config.json", f"{place}@{digest}")
                run(*sign, *_OLD, f"{place}@{digest}")
                public = (folder / f"{kind}.pub").read_text()
                found.append({"kind": kind, "key": public, **_pushed(nobody(running, f"signed/{kind}"), digest)})
    FIXTURE.write_text(json.dumps(found, indent=1) + "\n")


def _private(kind: str) -> str:
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return drawn(kind).private_bytes(serialization.Encoding.PEM, form, plain).decode()


def _pushed(mine: Registry, digest: str) -> dict:
    """Return what cosign pushed for an artifact, manifests with the contents of their layers."""
    old = mine.tagged(signature_tag(digest))
    index = mine.tagged(referrers_tag(digest))
    meant = Meant(mine.repository, digest)
    bundle = next(
        layer for each in index.manifests for layer in mine.manifest(each.digest).layers if layer.media_type in BUNDLES
    )
    payload = next(each for each in old.layers if each.media_type == PAYLOAD)
    return {
        "host": meant.repository.host, "name": meant.repository.name, "digest": digest, "annotations": dict(payload.annotations),
        "payload": mine.blob(payload).decode(), "bundle": mine.blob(bundle).decode(),
    }  # fmt: skip


if __name__ == "__main__":
    main(shutil.which(sys.argv[1]) or sys.exit(f"{sys.argv[1]} isn't a program"))
