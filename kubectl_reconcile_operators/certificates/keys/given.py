"""Certificates of servers, as people put them in Secrets, as pods hold them, and as servers show them."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Mapping
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from kubectl_reconcile.module_api import PodStream
from kubectl_reconcile_operators.certificates.keys.reading import UNREADABLE, private_key, public_key
from kubectl_reconcile_operators.certificates.worth import SECRET_EXPIRED, SECRET_OK

PEM_MAX, _KEY_MAX = 1 << 16, 1 << 14
"""The characters of a certificate with all that signed it, and of a key."""
_PIECE = 1 << 14


def tls_worth(values: Mapping[str, str], now: datetime) -> str:
    """Return what a Secret with a certificate is worth: ok, or what is wrong with it."""
    certificate, key = values.get("tls.crt", ""), values.get("tls.key", "")
    for name, value in (("tls.crt", certificate), ("tls.key", key)):
        if not value:
            return f"lacks the key {name}"
    if len(certificate) > PEM_MAX or len(key) > _KEY_MAX:
        return "has a certificate or a key that is too long"
    try:
        found, *_ = x509.load_pem_x509_certificates(certificate.encode())
        is_pair = private_key(key).public_key() == public_key(found)
        until = found.not_valid_after_utc
    except UNREADABLE:
        return "has a certificate or a key that can't be read (hint: PEM, without a passphrase; RSA, EC or Ed25519)"
    if not is_pair:
        return "has a key that isn't that of its certificate"
    return SECRET_OK if now < until else f"{SECRET_EXPIRED} {until:%Y-%m-%d}"


def is_rsa_or_ec(pem: str) -> bool:
    """Tell whether a key is of RSA or of an elliptic curve, which is all that Java reads; so it is of one that was read."""
    return isinstance(private_key(pem), rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)


def binary(pem: str) -> bytes:
    """Return the DER of a certificate in PEM, empty where it is none."""
    try:
        return x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)
    except UNREADABLE:
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
