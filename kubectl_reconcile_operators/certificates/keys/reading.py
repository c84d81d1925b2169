"""Keys and certificates that anybody may have written, read without the work that whoever wrote them chose.

To load a key is to check it, and all else in this process waits meanwhile: Diffie-Hellman parameters of nine hundred characters take ten
seconds (observed), and so do the primes of a long RSA key. So only kinds that servers show are loaded at all, told by the first bytes of their
form (PKCS#8, RFC 5958; PKCS#1; RFC 5915), and of RSA the primes aren't checked: whether a key is that of its certificate is asked anyway.
"""

from __future__ import annotations

import base64
import re

from cryptography import x509
from cryptography.exceptions import InternalError, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes, PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509.oid import PublicKeyAlgorithmOID

UNREADABLE = (
    ValueError, TypeError, UnsupportedAlgorithm, InternalError, x509.InvalidVersion, x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)  # fmt: skip
"""What is raised about a key or a certificate that is of no use."""

_KINDS = {
    PublicKeyAlgorithmOID.RSAES_PKCS1_v1_5: bytes.fromhex("06092a864886f70d010101"),
    PublicKeyAlgorithmOID.EC_PUBLIC_KEY: bytes.fromhex("06072a8648ce3d0201"),
    PublicKeyAlgorithmOID.ED25519: bytes.fromhex("06032b6570"),
    PublicKeyAlgorithmOID.ED448: bytes.fromhex("06032b6571"),
}
"""The kinds that are read, each as a certificate names it and as its bytes are."""
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..)"
_FORMS = (
    rb"\x02\x01[\x00\x01]\x30" + _LENGTH + b"(?:" + b"|".join(map(re.escape, _KINDS.values())) + b")",  # PKCS#8
    rb"\x02\x01\x00\x02",  # PKCS#1, of RSA
    rb"\x02\x01\x01\x04",  # RFC 5915, of elliptic curves
)
_KEY = re.compile(rb"\x30" + _LENGTH + b"(?:" + b"|".join(_FORMS) + b")", re.DOTALL)
_PEM = re.compile(r"-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----([A-Za-z0-9+/=\s]+)-----END \1-----")


def private_key(pem: str) -> PrivateKeyTypes:
    """Return the first key of a PEM file, without a passphrase: RSA, one of an elliptic curve, Ed25519 or Ed448.

    Raises:
        UNREADABLE: there is none, or it can't be read.
    """
    found = _PEM.search(pem)
    form = base64.b64decode("".join(found[2].split()), validate=True) if found else b""
    if not _KEY.match(form):
        raise ValueError("no key of a kind that is read")
    return load_der_private_key(form, password=None, unsafe_skip_rsa_key_validation=True)


def public_key(certificate: x509.Certificate) -> CertificatePublicKeyTypes:
    """Return the key that a certificate is for, of the same kinds.

    Raises:
        UNREADABLE: it is of another kind, or can't be read.
    """
    if certificate.public_key_algorithm_oid not in _KINDS:
        raise ValueError("a key of a kind that isn't read")
    return certificate.public_key()
