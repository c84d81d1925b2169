"""Signatures on artifacts: which keys are trusted, and what has to be signed."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519

from kubectl_reconcile.core.resources.oci.manifest import Descriptor, Kind, OciManifest
from kubectl_reconcile.core.resources.oci.public_keys import PublicKeys
from kubectl_reconcile.core.resources.oci.reference import OciRepository
from kubectl_reconcile.core.resources.oci.signed import (
    PAYLOAD,
    Meant,
    bundles_in,
    judge_bundle,
    judge_payload,
    referrers_tag,
    signature_tag,
    worst_of,
)
from kubectl_reconcile.core.resources.signatures import SignatureFault, SignatureVerdict
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from tests.oci_signing import BUNDLE, bundle, coded, drawn, payload, payload_layer, pem, signed, trusted

DIGEST, OTHER = "sha256:" + "0a" * 32, "sha256:" + "0b" * 32
HERE = OciRepository("registry.example.com", "team/shop")
PLACE = "registry.example.com/team/shop"
MEANT = Meant(HERE, DIGEST)
KEY, STRANGER = drawn(), drawn()
KEYS = trusted(KEY)


def judged(layer, keys=KEYS):
    told = layer.told()
    described = Descriptor(told["mediaType"], told["digest"], told["size"], told.get("annotations", {}))
    return judge_payload(described, layer.data, MEANT, keys)


@pytest.mark.parametrize("kind", ["ecdsa", "p384", "p521", "ed25519", "rsa"])
def test_a_signature_of_each_kind_of_key_is_good_in_both_layouts(kind):
    key = drawn(kind)
    keys = trusted(STRANGER, key)
    for verdict in (
        judged(payload_layer(key, payload(DIGEST, PLACE)), keys),
        judge_bundle(bundle(key, DIGEST), MEANT, keys),
    ):
        assert verdict.fault is None
        assert verdict.signature.signer == "key-1.pub"
        assert " SHA256:" in verdict.signature.key


def test_a_longer_curve_may_hash_with_what_is_as_long():
    key = drawn("p384")
    assert trusted(key).signer_of(signed(key, b"x", hashes.SHA384()), b"x")
    assert not trusted(key).signer_of(signed(key, b"x", hashes.SHA512()), b"x")


PAYLOADS = {
    "of another key": (payload_layer(STRANGER, payload(DIGEST, PLACE)), SignatureFault.UNKNOWN_KEY, ""),
    "of another digest": (payload_layer(KEY, payload(OTHER, PLACE)), SignatureFault.BAD_SIGNATURE, f"is on {OTHER}"),
    "of another repository": (
        payload_layer(KEY, payload(DIGEST, "registry.example.com/other")),
        SignatureFault.BAD_SIGNATURE,
        "is for registry.example.com/other",
    ),
    "for another purpose": (
        payload_layer(KEY, payload(DIGEST, PLACE, type="a")),
        SignatureFault.BAD_SIGNATURE,
        "of type a",
    ),
    "of no payload": (payload_layer(KEY, b"[]"), SignatureFault.BAD_SIGNATURE, "something else"),
    "of no JSON": (payload_layer(KEY, b"[" * 100_000), SignatureFault.BAD_SIGNATURE, "something else"),
    "that would be obeyed by a terminal": (
        payload_layer(KEY, payload("\x1b[2J", PLACE)),
        SignatureFault.BAD_SIGNATURE,
        "is on ?[2J",
    ),
}


@pytest.mark.parametrize(("layer", "fault", "detail"), PAYLOADS.values(), ids=PAYLOADS)
def test_a_signature_of_the_older_layout_is_bad(layer, fault, detail):
    verdict = judged(layer)
    assert (verdict.signature, verdict.fault) == (None, fault)
    assert detail in verdict.detail


@pytest.mark.parametrize("text", ["", "%%%", coded(b"x"), coded(b"\0" * 5000), "ä"])
def test_a_signature_that_can_not_be_read_is_none(text):
    layer = Descriptor(PAYLOAD, DIGEST, 2, {"dev.cosignproject.cosign/signature": text})
    assert judge_payload(layer, payload(DIGEST, PLACE), MEANT, KEYS).fault is SignatureFault.UNKNOWN_KEY


def test_what_was_signed_and_then_changed_is_bad():
    layer = payload_layer(KEY, payload(OTHER, PLACE))
    changed = layer.data.replace(OTHER.encode(), DIGEST.encode())
    told = layer.told()
    described = Descriptor(told["mediaType"], told["digest"], told["size"], told["annotations"])
    assert judge_payload(described, changed, MEANT, KEYS).fault is SignatureFault.UNKNOWN_KEY


def changed_bundle(**envelope):
    said = json.loads(bundle(KEY, DIGEST))
    said["dsseEnvelope"] |= envelope
    return json.dumps(said).encode()


BUNDLES = {
    "of another key": (bundle(STRANGER, DIGEST), SignatureFault.UNKNOWN_KEY),
    "of another digest": (bundle(KEY, OTHER), SignatureFault.BAD_SIGNATURE),
    "of another predicate": (bundle(KEY, DIGEST, predicate="https://slsa.dev/v1"), SignatureFault.BAD_SIGNATURE),
    "of another type": (bundle(KEY, DIGEST, kind="text/plain"), SignatureFault.UNSUPPORTED),
    "of another version": (bundle(KEY, DIGEST, mediaType="x"), SignatureFault.UNSUPPORTED),
    "without an envelope": (bundle(KEY, DIGEST, dsseEnvelope=None), SignatureFault.UNSUPPORTED),
    "with another payload": (changed_bundle(payload=coded(b"{}")), SignatureFault.UNKNOWN_KEY),
    "with a type that is said afterwards": (changed_bundle(payloadType="x"), SignatureFault.UNSUPPORTED),
    "with no signature": (changed_bundle(signatures=[]), SignatureFault.UNSUPPORTED),
    "with two": (changed_bundle(signatures=[{"sig": coded(b"x")}] * 2), SignatureFault.UNSUPPORTED),
    "with one that is text": (changed_bundle(signatures=["x"]), SignatureFault.UNSUPPORTED),
    "that is no JSON": (b"[" * 100_000, SignatureFault.UNSUPPORTED),
}


@pytest.mark.parametrize(("data", "fault"), BUNDLES.values(), ids=BUNDLES)
def test_a_signature_of_the_newer_layout_is_bad(data, fault):
    verdict = judge_bundle(data, MEANT, KEYS)
    assert (verdict.signature, verdict.fault) == (None, fault)


def test_a_bundle_that_refers_to_something_else_is_not_looked_at():
    layer = Descriptor(BUNDLE, OTHER, 2)

    def manifest(subject):
        return OciManifest(OTHER, "", Kind.ARTIFACT, layers=(layer, Descriptor("x", OTHER, 2)), subject=subject)

    assert bundles_in(manifest(Descriptor("", DIGEST, 2)), MEANT) == (layer,)
    assert bundles_in(manifest(Descriptor("", OTHER, 2)), MEANT) == ()
    assert bundles_in(manifest(None), MEANT) == ()


COSIGN = {each["kind"]: each for each in json.loads(Path(__file__).with_name("cosign.json").read_text())}
"""What the real cosign has signed; ``tests.oci_fixtures`` recorded it."""


def judgements(made, keys, *, digest="", name=""):
    """The verdicts on both signatures that cosign made of one artifact."""
    meant = Meant(OciRepository(made["host"], name or made["name"]), digest or made["digest"])
    layer = Descriptor(PAYLOAD, DIGEST, 2, made["annotations"])
    old = judge_payload(layer, made["payload"].encode(), meant, keys)
    return old, judge_bundle(made["bundle"].encode(), meant, keys)


@pytest.mark.parametrize("made", COSIGN.values(), ids=COSIGN)
def test_what_cosign_signs_is_good_in_both_layouts(made):
    keys = PublicKeys.of({"cosign.pub": made["key"]})
    for verdict in judgements(made, keys):
        assert verdict.signature.signer == "cosign.pub"
    assert {each.fault for each in judgements(made, KEYS)} == {SignatureFault.UNKNOWN_KEY}
    assert {each.fault for each in judgements(made, keys, digest=OTHER)} == {SignatureFault.BAD_SIGNATURE}
    old, new = judgements(made, keys, name="copied")
    assert (old.fault, new.fault) == (SignatureFault.BAD_SIGNATURE, None), "the newer layout names no repository"


def test_tags_of_signatures_are_those_of_the_specifications():
    assert signature_tag(DIGEST) == f"sha256-{'0a' * 32}.sig"
    assert referrers_tag(DIGEST) == f"sha256-{'0a' * 32}"


def test_of_several_bad_verdicts_the_one_is_told_that_says_most():
    one, other = (
        SignatureVerdict(fault=SignatureFault.UNKNOWN_KEY),
        SignatureVerdict(fault=SignatureFault.BAD_SIGNATURE),
    )
    assert worst_of([one, other, one]) is other
    assert worst_of([]).fault is SignatureFault.NO_SIGNATURE


NO_KEYS = {
    "none": ({}, "holds no key"),
    "a private key": ({"cosign.key": "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----"}, "holds a private key"),
    "a certificate": ({"a": "-----BEGIN CERTIFICATE-----"}, "entry a holds no public key"),
    "a key beside something else": ({"a": pem(KEY), "b": "x"}, "entry b holds no public key"),
    "a key that can't be read": (
        {"a": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"},
        "that can't be read",
    ),
    "a short key": ({"a": pem(rsa.generate_private_key(65537, 1024))}, "of a kind that isn't used"),  # noqa: S505 - which is why it is refused
    "a curve of others": ({"a": pem(ec.generate_private_key(ec.SECP256K1()))}, "of a kind that isn't used"),
    "another kind": ({"a": pem(x25519.X25519PrivateKey.generate())}, "of a kind that isn't used"),
    "very many": ({f"{number}": pem(KEY) for number in range(21)}, "more than 20 keys"),
    "very long text": ({"a": " " * 300_000}, "more than 256 KiB"),
}


@pytest.mark.parametrize(("entries", "why"), NO_KEYS.values(), ids=NO_KEYS)
def test_keys_that_can_not_be_meant_are_refused_as_a_whole(entries, why):
    with pytest.raises(KeysError) as caught:
        PublicKeys.of(entries)
    assert why in str(caught.value)


def test_keys_have_another_digest_whenever_a_key_is_another_one():
    assert trusted(KEY).digest == trusted(KEY).digest != trusted(STRANGER).digest
    assert len(PublicKeys.of({"all.pub": pem(KEY) + pem(STRANGER)}).keys) == 2
