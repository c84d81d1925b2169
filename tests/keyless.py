"""A Sigstore of one's own, in memory: an authority that certifies who somebody is, a log of certificates, one of signatures, and the root that names all three.

It makes what ``cosign sign`` makes without a key, a bundle (version 0.3) with an envelope (DSSE), so that each part can be made wrong by itself. Nothing is asked over a network.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import struct
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ISSUER = "https://forge.example.com/oidc"
SUBJECT = "https://forge.example.com/team/shop/.ci/release.yaml@refs/tags/v1.2.3"
NOW = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"

_ISSUER_V2 = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_SCTS = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_STATEMENT = "application/vnd.in-toto+json"
_ECDSA = ec.ECDSA(hashes.SHA256())


class Sigstore:
    """One that nobody else knows; *root* is what whoever trusts it has of it."""

    def __init__(self) -> None:
        self.authority, self.certificates_log, self.log = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        self.certificate = self._authority()

    @property
    def root(self) -> str:
        """The trusted root, as JSON."""
        start = {"start": "2026-01-01T00:00:00Z"}
        return json.dumps(
            {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [_log(self.log, "https://log.example.com", start)],
                "ctlogs": [_log(self.certificates_log, "https://certificates.example.com", start)],
                "certificateAuthorities": [
                    {
                        "subject": {"organization": "example.com", "commonName": "authority"},
                        "uri": "https://authority.example.com",
                        "certChain": {"certificates": [{"rawBytes": _base64(_der(self.certificate))}]},
                        "validFor": start,
                    }
                ],
                "timestampAuthorities": [],
            }
        )

    def signed(
        self,
        digest: str,
        *,
        issuer: str = ISSUER,
        subject: str = SUBJECT,
        at: dt.datetime = NOW,
        predicate: str = "https://sigstore.dev/cosign/sign/v1",
    ) -> dict[str, Any]:
        """The bundle of whoever *issuer* calls *subject*, who signs the artifact with that *digest*; the log hears of it *at* a time."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certified(key, issuer, subject)
        statement = {
            "_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": {},
            "subject": [{"digest": {"sha256": digest.removeprefix("sha256:")}}],
        }  # fmt: skip
        payload = json.dumps(statement).encode()
        signature = key.sign(
            b"DSSEv1 %d %s %d %s" % (len(_STATEMENT), _STATEMENT.encode(), len(payload), payload), _ECDSA
        )
        pem = _base64(certificate.public_bytes(serialization.Encoding.PEM))
        body = {
            "apiVersion": "0.0.1", "kind": "dsse",
            "spec": {
                "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
                "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
                "signatures": [{"signature": _base64(signature), "verifier": pem}],
            },
        }  # fmt: skip
        return {
            "mediaType": BUNDLE,
            "verificationMaterial": {"certificate": {"rawBytes": _base64(_der(certificate))}, "tlogEntries": [self._logged(body, at)]},
            "dsseEnvelope": {"payload": _base64(payload), "payloadType": _STATEMENT, "signatures": [{"sig": _base64(signature)}]},
        }  # fmt: skip

    def _authority(self) -> x509.Certificate:
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "example.com"),
                x509.NameAttribute(NameOID.COMMON_NAME, "authority"),
            ]
        )
        public = self.authority.public_key()
        return (
            x509.CertificateBuilder(name, name, public, x509.random_serial_number(), NOW - dt.timedelta(300), NOW + dt.timedelta(300))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self.authority, hashes.SHA256())
        )  # fmt: skip

    def _certified(self, key: ec.EllipticCurvePrivateKey, issuer: str, subject: str) -> x509.Certificate:
        """A certificate that holds for ten minutes, with the promise of the log of certificates in it."""
        text = issuer.encode()
        builder = (
            x509.CertificateBuilder(
                self.certificate.subject, x509.Name([]), key.public_key(), x509.random_serial_number(), NOW - dt.timedelta(minutes=5), NOW + dt.timedelta(minutes=5)
            )
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority.public_key()), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(subject)]), critical=True)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_V2, bytes([0x0C, len(text)]) + text), critical=False)
        )  # fmt: skip
        before = builder.sign(self.authority, hashes.SHA256()).tbs_certificate_bytes
        milliseconds = int((NOW - dt.timedelta(minutes=4)).timestamp() * 1000)
        entry = _key_id(self.authority) + len(before).to_bytes(3, "big") + before
        signed = self.certificates_log.sign(struct.pack("!BBQH", 0, 0, milliseconds, 1) + entry + b"\0\0", _ECDSA)
        promise = (
            b"\0"
            + _key_id(self.certificates_log)
            + struct.pack("!QH", milliseconds, 0)
            + b"\4\3"
            + struct.pack("!H", len(signed))
            + signed
        )
        listed = struct.pack("!HH", len(promise) + 2, len(promise)) + promise
        return builder.add_extension(
            x509.UnrecognizedExtension(_SCTS, bytes([0x04, len(listed)]) + listed), critical=False
        ).sign(self.authority, hashes.SHA256())

    def _logged(self, body: dict[str, Any], at: dt.datetime) -> dict[str, Any]:
        """The entry of a log in which nothing else is."""
        data, seconds, name = json.dumps(body).encode(), int(at.timestamp()), _key_id(self.log)
        promised = {"body": _base64(data), "integratedTime": seconds, "logID": name.hex(), "logIndex": 0}
        promise = self.log.sign(json.dumps(promised, separators=(",", ":"), sort_keys=True).encode(), _ECDSA)
        leaf = _base64(hashlib.sha256(b"\0" + data).digest())
        note = f"log.example.com\n1\n{leaf}\n"
        checkpoint = f"{note}\n\u2014 log.example.com {_base64(name[:4] + self.log.sign(note.encode(), _ECDSA))}\n"
        return {
            "logIndex": "0", "logId": {"keyId": _base64(name)}, "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(seconds), "inclusionPromise": {"signedEntryTimestamp": _base64(promise)},
            "inclusionProof": {"logIndex": "0", "rootHash": leaf, "treeSize": "1", "hashes": [], "checkpoint": {"envelope": checkpoint}},
            "canonicalizedBody": _base64(data),
        }  # fmt: skip


def _log(key: ec.EllipticCurvePrivateKey, url: str, valid: dict[str, str]) -> dict[str, Any]:
    public = {"rawBytes": _base64(_public(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid}
    return {"baseUrl": url, "hashAlgorithm": "SHA2_256", "publicKey": public, "logId": {"keyId": _base64(_key_id(key))}}


def _usage(**used: bool) -> x509.KeyUsage:
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign",
        "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{**dict.fromkeys(names, False), **used})


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _key_id(key: ec.EllipticCurvePrivateKey) -> bytes:
    return hashlib.sha256(_public(key)).digest()


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
