"""Keys and certificates of strangers: those that servers show are read, and nobody waits for the others."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from kubectl_reconcile_operators.certificates.keys.given import binary, is_rsa_or_ec, tls_worth
from kubectl_reconcile_operators.certificates.keys.pairs import Subject, authority_fact, certificate_fact, new_authority
from kubectl_reconcile_operators.certificates.keys.reading import UNREADABLE, private_key, public_key

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PRIME, ANOTHER, LARGE = 2**2203 - 1, 2**2281 - 1, 2**9941 - 1
AT_ONCE_S = 1.0
"""Processor time. Unbounded, each of what is put here takes three seconds to minutes."""


# --- forms that no library writes -----------------------------------------------------------------


def tlv(tag, *parts):
    body = b"".join(parts)
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8 or 1)
    return bytes([tag]) + (size if len(body) < 128 else bytes([0x80 | len(size)]) + size) + body


def sequence(*parts):
    return tlv(0x30, *parts)


def integer(number):
    return tlv(2, number.to_bytes(number.bit_length() // 8 + 1))


def bits(body):
    return tlv(3, b"\0", body)


def pem(der, label="PRIVATE KEY"):
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n"


RSA = sequence(bytes.fromhex("06092a864886f70d010101"), b"\x05\x00")
ECDSA = sequence(bytes.fromhex("06082a8648ce3d040302"))
DIFFIE_HELLMAN = sequence(bytes.fromhex("06092a864886f70d010301"), sequence(integer(LARGE), integer(5)))
DSA = sequence(bytes.fromhex("06072a8648ce380401"), sequence(integer(LARGE), integer((LARGE - 1) // 2), integer(5)))


def of(kind, key):
    return sequence(integer(0), kind, tlv(4, key))


def rsa_of(p, q):
    d = pow(65537, -1, (p - 1) * (q - 1))
    numbers = (0, p * q, 65537, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
    return sequence(*map(integer, numbers))


def certificate(kind=DIFFIE_HELLMAN, name=b"db", extensions=b""):
    """One that nobody has signed, for a key of a *kind*."""
    who = sequence(tlv(0x31, sequence(bytes.fromhex("0603550403"), tlv(0x0C, name))))
    times = sequence(*(tlv(0x17, each) for each in (b"250101000000Z", b"450101000000Z")))
    begun = (b"\xa0\x03\x02\x01\x02", integer(7), ECDSA, who, times, who, sequence(kind, bits(integer(LARGE // 7))))
    return pem(sequence(sequence(*begun, extensions), ECDSA, bits(sequence(integer(1), integer(1)))), "CERTIFICATE")


# --- keys -----------------------------------------------------------------------------------------

CURVE, MADE = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)


def text(key, form=PrivateFormat.PKCS8, hidden=None):
    return key.private_bytes(Encoding.PEM, form, hidden or NoEncryption()).decode()


READ = {
    "RSA": text(MADE),
    "RSA, as OpenSSL wrote it": text(MADE, PrivateFormat.TraditionalOpenSSL),
    "a curve": text(CURVE),
    "a curve, as OpenSSL writes it": text(CURVE, PrivateFormat.TraditionalOpenSSL),
    "Ed25519": text(ed25519.Ed25519PrivateKey.generate()),
    "Ed448": text(ed448.Ed448PrivateKey.generate()),
    "after what belongs to it": f"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{text(CURVE)}",
    "RSA whose primes take long to check": pem(of(RSA, rsa_of(PRIME, ANOTHER))),
}
UNREAD = {
    "nothing": "",
    "words": "a key",
    "no form": pem(b"a key"),
    "with a passphrase": text(CURVE, hidden=BestAvailableEncryption(b"secret")),
    "DSA": pem(of(DSA, integer(7))),
    "Diffie-Hellman": pem(of(DIFFIE_HELLMAN, integer(7))),
    "Diffie-Hellman by another name": pem(of(DIFFIE_HELLMAN, integer(7)), "RSA PRIVATE KEY"),
    "Diffie-Hellman before a curve": pem(of(DIFFIE_HELLMAN, integer(7))) + text(CURVE),
    "half of one": text(MADE)[:800],
}


@pytest.mark.parametrize("key", READ.values(), ids=READ)
def test_a_key_of_a_kind_that_servers_show_is_read_at_once(key):
    began_s = time.process_time()
    assert private_key(key).public_key()
    assert time.process_time() - began_s < AT_ONCE_S


@pytest.mark.parametrize("key", UNREAD.values(), ids=UNREAD)
def test_any_other_key_is_refused_at_once(key):
    began_s = time.process_time()
    with pytest.raises(UNREADABLE):
        private_key(key)
    assert time.process_time() - began_s < AT_ONCE_S


def test_java_reads_rsa_and_curves_alone():
    assert [name for name, key in READ.items() if not is_rsa_or_ec(key)] == ["Ed25519", "Ed448"]


# --- certificates ---------------------------------------------------------------------------------

TWICE = tlv(0xA3, sequence(*[sequence(bytes.fromhex("0603551d0e"), tlv(4, tlv(4, b"id")))] * 2))
ODD = {
    "for a key that takes long to check": certificate(),
    "with a name that is no text": certificate(RSA, name=b"\xff\xfe"),
    "with an extension twice": certificate(RSA, extensions=TWICE),
}


def test_a_certificate_for_a_key_of_another_kind_is_refused_at_once():
    began_s = time.process_time()
    with pytest.raises(UNREADABLE):
        public_key(x509.load_pem_x509_certificate(certificate().encode()))
    assert time.process_time() - began_s < AT_ONCE_S


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_whatever_a_secret_holds_it_is_broken_at_once_and_never_a_crash(odd):
    began_s = time.process_time()
    values = {"ca.crt": odd, "tls.crt": odd, "tls.key": text(CURVE)}
    assert authority_fact(values)["state"] == certificate_fact(values, [odd], Subject("db"))["state"] == "broken"
    assert "can't be read" in tls_worth(values, NOW) or "isn't that of" in tls_worth(values, NOW)
    assert binary(odd)
    assert time.process_time() - began_s < AT_ONCE_S


def test_a_certificate_with_something_unreadable_behind_it_is_of_no_use():
    authority = new_authority("db", NOW, 86400.0)
    whole = {"tls.crt": authority.certificate, "tls.key": authority.key}
    assert tls_worth(whole, NOW) == "ok"
    broken = authority.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert "can't be read" in tls_worth({**whole, "tls.crt": broken}, NOW)
