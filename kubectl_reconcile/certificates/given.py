"""Certificates of servers, as people put them in Secrets, as pods hold them, and as servers show them."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Mapping
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from kubectl_reconcile.module_api import SECRET_EXPIRED, SECRET_OK, PodStream

PEM_MAX = 1 << 16
_PIECE = 1 << 14


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
    return SECRET_OK if now < until else f"{SECRET_EXPIRED} {until:%Y-%m-%d}"


def binary(pem: str) -> bytes:
    """Return the DER of a certificate in PEM, empty where it is none."""
    try:
        return x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)
    except ValueError:
        return b""


async def shown_on(stream: PodStream) -> bytes:
    """Return the certificate that a server shows as soon as it is spoken to, in DER. It isn't verified, only looked at: nothing is said to who shows it.

    Raises:
        SilentPodError: nobody answers, or what answers speaks no TLS.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(received, to_send)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            await stream.write(to_send.read())
            received.write(await stream.read(_PIECE))
        else:
            found = tls.getpeercert(binary_form=True) or b""
            with contextlib.suppress(ssl.SSLError):  # it has to be said; who answers isn't waited for
                tls.unwrap()
            await stream.write(to_send.read())
            return found
