"""Signatures on artifacts as cosign makes them, by keys that a test draws."""

from __future__ import annotations

import base64
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from kubectl_reconcile.core.resources.oci.public_keys import PublicKeys
from kubectl_reconcile.core.resources.oci.signed import PAYLOAD, signature_tag
from tests.registry_server import EMPTY, Layer

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT = "application/vnd.in-toto+json"


def drawn(kind="ecdsa"):
    """A private key."""
    if kind == "rsa":
        return rsa.generate_private_key(65537, 2048)
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key({"ecdsa": ec.SECP256R1(), "p384": ec.SECP384R1(), "p521": ec.SECP521R1()}[kind])


def pem(key) -> str:
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, public).decode()


def trusted(*keys) -> PublicKeys:
    return PublicKeys.of({f"key-{number}.pub": pem(each) for number, each in enumerate(keys)})


def signed(key, data, digest=None) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    return key.sign(data, ec.ECDSA(digest or hashes.SHA256()))


def payload(digest, place, **more) -> bytes:
    critical = {"identity": {"docker-reference": place}, "image": {"docker-manifest-digest": digest}, "type": "cosign container image signature"}  # fmt: skip
    return json.dumps({"critical": {**critical, **more}, "optional": None}).encode()


def payload_layer(key, data) -> Layer:
    signature = base64.b64encode(signed(key, data)).decode()
    return Layer(data, PAYLOAD, {"dev.cosignproject.cosign/signature": signature})


def bundle(key, digest, *, predicate="https://sigstore.dev/cosign/sign/v1", kind=STATEMENT, **more) -> bytes:
    subject = [{"digest": {"sha256": digest.removeprefix("sha256:")}}]
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": predicate}
    data = json.dumps(statement).encode()
    text = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(data), data)
    envelope = {"payload": coded(data), "payloadType": kind, "signatures": [{"sig": coded(signed(key, text))}]}
    hint = {"publicKey": {"hint": "whose it says that it is"}}
    return json.dumps({"mediaType": BUNDLE, "verificationMaterial": hint, "dsseEnvelope": envelope, **more}).encode()


def coded(data) -> str:
    return base64.b64encode(data).decode()


def push_payloads(running, name, digest, *layers) -> None:
    """Push signatures of the older layout, all that there are."""
    running.push(name, signature_tag(digest), *layers)


def push_bundle(running, name, digest, data, *, fallback=False) -> None:
    """Push a signature of the newer layout; in *fallback* also the index that a registry without a list of referrers wants."""
    config = Layer(b"{}", EMPTY)
    subject = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": 2}
    made = running.push(name, "", Layer(data, BUNDLE), config=config, subject=subject, artifactType=BUNDLE)
    if fallback:
        entry = {"mediaType": subject["mediaType"], "digest": made, "size": 2, "artifactType": BUNDLE}
        running.push_index(name, digest.replace(":", "-"), [entry])
