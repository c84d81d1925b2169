"""Keys and certificates as Secrets hold them: drawn, signed, and read again. Here alone is randomness; the time is an argument.

Vocabulary as in ``certificates.state``. Keys are of the curve P-256. What a Secret holds may be anything, and says no more than that it is broken.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubectl_reconcile_operators.certificates.decision import BACKDATED_S
from kubectl_reconcile_operators.certificates.keys.reading import UNREADABLE, private_key, public_key
from kubectl_reconcile_operators.certificates.state import SecretState

TRUSTED, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
_MOST_AUTHORITIES, _LONGEST, _LONGEST_KEY = 16, 1 << 14, 1 << 10
"""What is looked at of a Secret, in certificates and characters."""
_AUTHORITY = re.compile(rf"-----BEGIN CERTIFICATE-----[^-]{{,{_LONGEST}}}-----END CERTIFICATE-----")


class CertificateError(Exception):
    """What a Secret holds is of no use; the message says what is wrong, and never what it holds."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as PEM."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a certificate is for: a name for people and for programs, and the hosts that it shows itself as; none for who only connects."""

    name: str
    hosts: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def alternatives(self) -> list[x509.GeneralName]:
        """The hosts, as a certificate has them."""
        addresses = (x509.IPAddress(ipaddress.ip_address(each)) for each in self.addresses)
        return [*(x509.DNSName(each) for each in self.hosts), *addresses]


# --- issuing --------------------------------------------------------------------------------------


def new_authority(name: str, now: dt.datetime, lasts_s: float) -> KeyPair:
    """Return an authority that signs itself, good for so many seconds."""
    key, serial = ec.generate_private_key(ec.SECP256R1()), x509.random_serial_number()
    subject = _named(f"{name[:50]} {serial:x}"[:60])
    builder = _begun(subject, subject, key.public_key(), serial, now, now + dt.timedelta(seconds=lasts_s))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).add_extension(
        _usage(signs=True), critical=True
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(signer: KeyPair, subject: Subject, now: dt.datetime, lasts_s: float) -> KeyPair:
    """Return a certificate for *subject*, good for so many seconds but never for longer than its signer.

    Raises:
        CertificateError: the signer is of no use.
    """
    authority, authority_key = _read_pair(signer.certificate, signer.key)
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + dt.timedelta(seconds=lasts_s), authority.not_valid_after_utc)
    builder = _begun(_named(subject.name), authority.subject, key.public_key(), x509.random_serial_number(), now, until)
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if subject.hosts else [])]
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(_key_of(authority), critical=False)
    )
    if subject.alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(subject.alternatives), critical=False)
    return _pair(builder.sign(authority_key, hashes.SHA256()), key)


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    serial: int,
    now: dt.datetime,
    until: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial)
        .not_valid_before(now - dt.timedelta(seconds=BACKDATED_S))
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_of(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        known = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs, crl_sign=signs, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return KeyPair(_pem(certificate), text.decode())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


# --- reading --------------------------------------------------------------------------------------


def authorities_in(bundle: str, now: dt.datetime | None = None) -> dict[str, str]:
    """Return the first authorities of a ``ca.crt`` by fingerprint, as PEM; given *now*, without those that have ended. What can't be read is none."""
    return {
        fingerprint(each): _pem(each) for each in _read_all(bundle) if now is None or each.not_valid_after_utc > now
    }


def fingerprint(certificate: x509.Certificate) -> str:
    """Return what a certificate is known by."""
    return certificate.fingerprint(hashes.SHA256()).hex()[:16]


def fingerprint_of(pem: str) -> str:
    """Return what a certificate is known by, as PEM.

    Raises:
        CertificateError: it can't be read.
    """
    try:
        return fingerprint(x509.load_pem_x509_certificate(pem.encode()))
    except UNREADABLE as error:
        raise CertificateError("a certificate can't be read") from error


def authority_fact(values: Mapping[str, str]) -> dict[str, Any]:
    """Return what is to be known of an authority's Secret: no key, nor whether one resembles another."""
    trusted = authorities_in(values.get(TRUSTED, ""))
    try:
        signer = _read_pair(values[CERTIFICATE], values[KEY])[0] if values.get(CERTIFICATE) else None
        coming = _read_pair(values[NEXT_CERTIFICATE], values[NEXT_KEY])[0] if values.get(NEXT_CERTIFICATE) else None
    except KeyError as error:
        return _broken(f"it lacks the key {error.args[0]}", trusted)
    except CertificateError as error:
        return _broken(str(error), trusted)
    found = {name: fingerprint(each) for name, each in (("signer", signer), ("upcoming", coming)) if each is not None}
    if not found:
        return _broken(f"it lacks the key {CERTIFICATE}", trusted)
    if not set(found.values()) <= trusted.keys():
        return _broken(f"its own certificate isn't in its {TRUSTED}", trusted)
    until = _text(signer.not_valid_after_utc) if signer else ""
    return {"state": SecretState.OK.value, **found, "until": until, "trusted": sorted(trusted)}


def certificate_fact(values: Mapping[str, str], authorities: Iterable[str], subject: Subject) -> dict[str, Any]:
    """Return what is to be known of a certificate's Secret, that is to be for *subject* and of one of these authorities or of those that it names itself."""
    trusted = authorities_in(values.get(TRUSTED, ""))
    if missing := [key for key in (TRUSTED, CERTIFICATE, KEY) if not values.get(key)]:
        return _broken(f"it lacks the key {missing[0]}", trusted)
    try:
        found, _ = _read_pair(values[CERTIFICATE], values[KEY])
        is_meant = found.subject == _named(subject.name) and _alternatives_of(found) == set(subject.alternatives)
    except CertificateError as error:
        return _broken(str(error), trusted)
    if not is_meant:
        return _broken("it is for other names", trusted)
    known = [*_read_all(values[TRUSTED]), *(each for one in authorities for each in _read_all(one))]
    issuer = next((fingerprint(each) for each in known if _has_signed(each, found)), "")
    if not issuer:
        return _broken("none of the authorities has signed it", trusted)
    return {
        "state": SecretState.OK.value, "fingerprint": fingerprint(found), "issuer": issuer, "since": _text(found.not_valid_before_utc),
        "until": _text(found.not_valid_after_utc), "trusted": sorted(trusted),
    }  # fmt: skip


def _broken(why: str, trusted: Iterable[str]) -> dict[str, Any]:
    return {"state": SecretState.BROKEN.value, "why": why, "trusted": sorted(trusted)}


def _read_pair(certificate: str, key: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return a certificate and its key.

    Raises:
        CertificateError: they can't be read, or aren't of one another.
    """
    if len(certificate) > _LONGEST or len(key) > _LONGEST_KEY:
        raise CertificateError("its certificate or its key is too long")
    try:
        found = x509.load_pem_x509_certificate(certificate.encode())
        _ = found.subject, found.extensions  # else they are read no sooner than somebody asks
        own = private_key(key)
        is_pair = isinstance(own, ec.EllipticCurvePrivateKey) and own.public_key() == public_key(found)
    except UNREADABLE as error:
        raise CertificateError("its certificate or its key can't be read") from error
    if not is_pair or not isinstance(own, ec.EllipticCurvePrivateKey):
        raise CertificateError("its key isn't that of its certificate")
    return found, own


def _read_all(bundle: str) -> list[x509.Certificate]:
    found = []
    for each in _AUTHORITY.findall(bundle)[:_MOST_AUTHORITIES]:
        with suppress(*UNREADABLE):
            found.append(x509.load_pem_x509_certificate(each.encode()))
    return found


def _alternatives_of(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        if not isinstance(public_key(authority), ec.EllipticCurvePublicKey):  # ours are; other signatures may take long
            return False
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, *UNREADABLE):
        return False
    return True


def _text(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
