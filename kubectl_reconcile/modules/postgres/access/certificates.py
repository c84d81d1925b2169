"""Certificates of servers, as people put them in Secrets and as pods hold them.

Pure. It loads cryptography, which takes megabytes: who needs it for some databases alone imports this where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from kubectl_reconcile.modules.postgres.steps import EXPIRED, OK

PEM_MAX = 1 << 16


def tls_worth(values: Mapping[str, str], now: datetime) -> str:
    """Return what a Secret with a certificate is worth: ok, or what is wrong with it."""
    certificate, key = values.get("tls.crt", ""), values.get("tls.key", "")
    for name, value in (("tls.crt", certificate), ("tls.key", key)):
        if not value:
            return f"lacks the key {name}"
    if max(len(certificate), len(key)) > PEM_MAX:
        return "has a certificate or a key that is too long"
    try:
        found = x509.load_pem_x509_certificate(certificate.encode())
        is_pair = load_pem_private_key(key.encode(), password=None).public_key() == found.public_key()
        until = found.not_valid_after_utc
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
        return "has a certificate or a key that can't be read (hint: PEM, without a passphrase)"
    if not is_pair:
        return "has a key that isn't that of its certificate"
    return OK if now < until else f"{EXPIRED} {until:%Y-%m-%d}"


def binary(pem: str) -> bytes:
    """Return the DER of a certificate in PEM, empty where it is none."""
    try:
        return x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)
    except ValueError:
        return b""
