"""Who has signed an artifact by a certificate, as the library of Sigstore proves it. It is an extra of this package, and is imported only where somebody asks for that.

What is proven: that an authority of the root gave out the certificate, that it stood in a log of certificates, that it held when the signature was noted in the log of
signatures, and that it is this signature. All of it is in the bundle and in the root, so nobody is asked.
"""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from typing import Any, Final

from cryptography import x509

from kubectl_reconcile.core.resources.oci.identities import ROOT_ENTRY, Identities
from kubectl_reconcile.core.resources.oci.signed import Meant, envelope_of, judge_statement, unsupported
from kubectl_reconcile.core.resources.signatures import Signature, SignatureFault, SignatureVerdict
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.source.errors import one_line

EXTRA: Final = "keyless"
_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_FORMER_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_USERNAME: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.7")
_SHOWN: Final = 200


def check_installed() -> None:
    """Return if the library is here; imports nothing of it.

    Raises:
        KeysError: it isn't.
    """
    if importlib.util.find_spec("sigstore") is None:
        hint = f"pip install 'kubectl-reconcile[{EXTRA}]' there; the daemon's image has it"
        raise KeysError("can't be used: the package sigstore isn't installed where signatures are checked", hint)


def judge(bundle: bytes, meant: Meant, trusted: Identities) -> SignatureVerdict:
    """Return the verdict on a signature that a certificate is for. Takes some tenths of a second of one core, and a second the first time.

    Raises:
        KeysError: the root can't be used.
    """
    envelope = envelope_of(bundle)
    if isinstance(envelope, SignatureVerdict):
        return envelope
    if not envelope.certified:
        return unsupported("it is by a key, and only those count whom certificates name")
    verifier, named = _verifier(trusted.root), _Named(trusted)
    from sigstore.models import Bundle  # noqa: PLC0415 - an extra

    try:
        _, payload = verifier.verify_dsse(Bundle.from_json(bundle), named)
    except Exception as error:  # noqa: BLE001 - anybody may have written it, and whatever it breaks is no proof
        if named.other:
            return SignatureVerdict(fault=SignatureFault.UNKNOWN_IDENTITY, detail=named.other)
        return SignatureVerdict(fault=SignatureFault.UNPROVEN, detail=one_line(str(error), _SHOWN))
    if named.signer is None:
        raise AssertionError("its certificate was never looked at")
    return judge_statement(payload, named.signer, meant)


class _Named:
    """What the library asks of a certificate that an authority of the root has given out: whether it names one of those who count."""

    def __init__(self, trusted: Identities) -> None:
        self._trusted = trusted
        self.signer: Signature | None = None
        self.other = ""

    def verify(self, cert: x509.Certificate) -> None:
        """Note whom it names.

        Raises:
            ValueError: it is nobody of those who count.
        """
        issuer, subject = _issuer_in(cert), _subject_in(cert)
        self.signer = self._trusted.signer_of(issuer, subject)
        if self.signer is None:
            self.other = one_line(f"{subject} (by {issuer})", _SHOWN)
            raise ValueError(self.other)


def _issuer_in(cert: x509.Certificate) -> str:
    from cryptography.hazmat import asn1  # noqa: PLC0415 - as new as the library needs it

    by_oid = {each.oid: each.value for each in cert.extensions if isinstance(each.value, x509.UnrecognizedExtension)}
    if _ISSUER in by_oid:
        return asn1.decode_der(str, by_oid[_ISSUER].value)
    return by_oid[_FORMER_ISSUER].value.decode()


def _subject_in(cert: x509.Certificate) -> str:
    """Return the only name that a certificate is for."""
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    [name] = names
    if isinstance(name, x509.OtherName):
        if name.type_id != _USERNAME:
            raise ValueError(f"a name of the kind {name.type_id.dotted_string}")
        from cryptography.hazmat import asn1  # noqa: PLC0415 - the same

        return asn1.decode_der(str, name.value)
    if not isinstance(name, x509.UniformResourceIdentifier | x509.RFC822Name):
        raise ValueError("a name of another kind")  # noqa: TRY004 - of input
    return name.value


@lru_cache(maxsize=8)
def _verifier(root: str) -> Any:
    """Return what proves by a root.

    Raises:
        KeysError: it can't be used.
    """
    check_installed()
    from sigstore.models import ClientTrustConfig  # noqa: PLC0415 - an extra
    from sigstore.verify import Verifier  # noqa: PLC0415 - the same

    try:
        whole = {"mediaType": _CONFIG_TYPE, "trustedRoot": json.loads(root), "signingConfig": _NO_SIGNING}
        return Verifier(trusted_root=ClientTrustConfig.from_json(json.dumps(whole)).trusted_root)
    except Exception as error:  # noqa: BLE001 - somebody has written it, and there is no list of what it may break
        raise KeysError(f"entry {ROOT_ENTRY} can't be used: {one_line(str(error), _SHOWN)}") from None


_CONFIG_TYPE: Final = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"
_NO_SIGNING: Final = {
    "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
    "rekorTlogConfig": {"selector": "ANY"},
    "tsaConfig": {"selector": "ANY"},
}
"""What the library wants beside a root, though nothing is signed here."""
