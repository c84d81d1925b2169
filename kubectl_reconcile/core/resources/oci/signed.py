"""What was signed of an artifact, and whether that is the one at hand: the two layouts of cosign.

- The older one: a *payload* names the digest and the repository. It is a layer of the manifest at the tag ``sha256-HEX.sig``, with the signature in an annotation.
- The newer one: a *bundle* (Sigstore, version 0.3) holds an envelope (DSSE) with a statement (in-toto), which names the digest alone. It is a layer of a manifest that refers to the
  artifact. So a copy in another repository stays valid, and in the older layout it doesn't.

Only a signature of a trusted key counts, and only on what is at hand: hints in a bundle about its signer prove nothing. Where certificates say who signs, whoever proves them
gives the signer, and what was signed is judged here.

Pure: bytes in, verdicts out.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec
from msgspec import Struct

from kubectl_reconcile.core.resources.oci.manifest import Descriptor, OciManifest
from kubectl_reconcile.core.resources.oci.public_keys import PublicKeys
from kubectl_reconcile.core.resources.oci.reference import OciRepository
from kubectl_reconcile.core.resources.signatures import Signature, SignatureFault, SignatureVerdict

PAYLOAD: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
BUNDLES: Final = frozenset(
    {"application/vnd.dev.sigstore.bundle.v0.3+json", "application/vnd.dev.sigstore.bundle+json;version=0.3"}
)
MOST_BYTES: Final = 256 * 1024
"""How long a payload or a bundle may be."""
MOST_SIGNATURES: Final = 100
"""How many of one artifact are looked at, in each layout."""

_SIGNATURE: Final = "dev.cosignproject.cosign/signature"
_TYPE: Final = "cosign container image signature"
_STATEMENT: Final = "application/vnd.in-toto+json"
_PREDICATE: Final = "https://sigstore.dev/cosign/sign/v1"
_SHOWN: Final = 120


class Meant(Struct, frozen=True):
    """What has to be signed: the manifest with that *digest*, in a *repository*."""

    repository: OciRepository
    digest: str


def signature_tag(digest: str) -> str:
    """Return the tag that signatures of the older layout have."""
    return f"{referrers_tag(digest)}.sig"


def referrers_tag(digest: str) -> str:
    """Return the tag of the index of what refers to a digest, where a registry has no list of that."""
    return digest.replace(":", "-")


def payloads_in(manifest: OciManifest) -> tuple[Descriptor, ...]:
    """Return the layers that are payloads with signatures, the newest first."""
    found = [each for each in manifest.layers if each.media_type == PAYLOAD and _SIGNATURE in each.annotations]
    return tuple(reversed(found))


def bundles_in(manifest: OciManifest, meant: Meant) -> tuple[Descriptor, ...]:
    """Return the layers that are bundles, if the manifest refers to what is meant."""
    if manifest.subject is None or manifest.subject.digest != meant.digest:
        return ()
    return tuple(each for each in manifest.layers if each.media_type in BUNDLES)


def judge_payload(layer: Descriptor, payload: bytes, meant: Meant, keys: PublicKeys) -> SignatureVerdict:
    """Return the verdict on a signature of the older layout."""
    signature = _base64(layer.annotations.get(_SIGNATURE, ""))
    signer = keys.signer_of(signature, payload) if signature else None
    if signer is None:
        return _by_another()
    critical = _mapping(_json(payload), "critical")
    digest = _mapping(critical, "image").get("docker-manifest-digest")
    place = _mapping(critical, "identity").get("docker-reference")
    if critical.get("type") != _TYPE:
        return _other(f"the payload is of type {_clipped(critical.get('type'))}")
    if digest != meant.digest:
        return _other(f"the signature is on {_clipped(digest)}")
    if place != f"{meant.repository.host}/{meant.repository.name}":
        return _other(f"the signature is for {_clipped(place)}")
    return SignatureVerdict(signer)


def judge_bundle(bundle: bytes, meant: Meant, keys: PublicKeys) -> SignatureVerdict:
    """Return the verdict on a signature of the newer layout."""
    envelope = envelope_of(bundle)
    if isinstance(envelope, SignatureVerdict):
        return envelope
    signer = keys.signer_of(envelope.signature, _encoded(_STATEMENT, envelope.payload))
    return _by_another() if signer is None else judge_statement(envelope.payload, signer, meant)


def judge_statement(payload: bytes, signer: Signature, meant: Meant) -> SignatureVerdict:
    """Return the verdict on a statement that *signer* has signed."""
    statement = _json(payload)
    if not isinstance(statement, dict) or statement.get("predicateType") != _PREDICATE:
        return _other("the statement is no signature of an image")
    subjects = statement.get("subject")
    digests = [_mapping(each, "digest").get("sha256") for each in subjects] if isinstance(subjects, list) else []
    if meant.digest.removeprefix("sha256:") not in digests:
        return _other(f"the signature is on {_clipped(digests[0] if digests else None)}")
    return SignatureVerdict(signer)


class Envelope(Struct, frozen=True):
    """What a bundle holds: a *payload*, and the *signature* on it; *certified* tells whether a certificate in the bundle says whose."""

    payload: bytes
    signature: bytes
    certified: bool


def envelope_of(bundle: bytes) -> Envelope | SignatureVerdict:
    """Return what a bundle holds, or the verdict on one that holds nothing that can be checked."""
    said = _json(bundle)
    if not isinstance(said, dict) or said.get("mediaType") not in BUNDLES:
        return unsupported("the bundle is of another version")
    envelope = _mapping(said, "dsseEnvelope")
    signatures = envelope.get("signatures")
    single = signatures[0] if isinstance(signatures, list) and len(signatures) == 1 else None
    payload, signature = (
        _base64(envelope.get("payload")),
        _base64(single.get("sig") if isinstance(single, dict) else ""),
    )
    if not payload or not signature:
        return unsupported("the bundle has no envelope with one signature")
    if envelope.get("payloadType") != _STATEMENT:
        return unsupported(f"the envelope holds {_clipped(envelope.get('payloadType'))}")
    return Envelope(payload, signature, "certificate" in _mapping(said, "verificationMaterial"))


def worst_of(verdicts: list[SignatureVerdict]) -> SignatureVerdict:
    """Return the one of several bad verdicts that says most; that there is no signature where there are none."""
    for fault in _BY_WEIGHT:
        for each in verdicts:
            if each.fault is fault:
                return each
    return SignatureVerdict(fault=SignatureFault.NO_SIGNATURE)


_BY_WEIGHT: Final = (
    SignatureFault.BAD_SIGNATURE,
    SignatureFault.UNKNOWN_IDENTITY,
    SignatureFault.UNPROVEN,
    SignatureFault.UNKNOWN_KEY,
    SignatureFault.UNSUPPORTED,
)


def too_many() -> SignatureVerdict:
    """Return the verdict where there are more signatures than are looked at, and none of these is good."""
    return unsupported(f"there are more than {MOST_SIGNATURES}, of which no more are looked at")


def _encoded(kind: str, payload: bytes) -> bytes:
    """Return what is signed of an envelope: the pre-authentication encoding of DSSE."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _by_another() -> SignatureVerdict:
    return SignatureVerdict(fault=SignatureFault.UNKNOWN_KEY)


def _other(detail: str) -> SignatureVerdict:
    return SignatureVerdict(fault=SignatureFault.BAD_SIGNATURE, detail=detail)


def unsupported(detail: str) -> SignatureVerdict:
    """Return the verdict on what can't be checked, with why."""
    return SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail=detail)


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _mapping(said: Any, name: str) -> dict[str, Any]:
    found = said.get(name) if isinstance(said, dict) else None
    return found if isinstance(found, dict) else {}


def _base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def _clipped(said: Any) -> str:
    text = said if isinstance(said, str) else "something else"
    return "".join(char if char.isprintable() else "?" for char in text[:_SHOWN])
