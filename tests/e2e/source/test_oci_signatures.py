"""Signatures in real registries, with and without a list of referrers: what counts, and what whoever may push can't do."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.resources.signatures import SignatureFault
from kubectl_reconcile.source.oci.artifact import artifact
from kubectl_reconcile.source.oci.registry import Registry
from kubectl_reconcile.source.oci.signatures import verdict_on
from tests.e2e.source.pulling import READ, flux, nobody
from tests.oci_signing import (
    bundle,
    drawn,
    payload,
    payload_layer,
    push_bundle,
    push_payloads,
    trusted,
)
from tests.registry_server import EMPTY, Layer

KEY, STRANGER = drawn(), drawn()
KEYS = trusted(KEY)


@pytest.fixture(params=["registry", "with_referrers"])
def running(request, registry, with_referrers):
    """A registry without a list of referrers, and one that has it."""
    return {"registry": registry, "with_referrers": with_referrers}[request.param]


def push_signed(running, name, key, digest, signed_digest=""):
    data = bundle(key, signed_digest or digest)
    push_bundle(running, name, digest, data, fallback=not running.lists_referrers)


def test_what_is_not_signed_is_told(running):
    digest = flux(running, "none")
    assert verdict_on(nobody(running, "none"), digest, KEYS).fault is SignatureFault.NO_SIGNATURE


def test_a_signature_of_the_older_layout_is_found(running):
    digest = flux(running, "old")
    good = payload_layer(KEY, payload(digest, f"{running.host}/old"))
    push_payloads(running, "old", digest, payload_layer(STRANGER, good.data), good)
    mine = nobody(running, "old")
    assert verdict_on(mine, digest, KEYS).signature.signer == "key-0.pub"
    assert verdict_on(mine, digest, trusted(drawn())).fault is SignatureFault.UNKNOWN_KEY
    assert artifact(mine, digest).files == READ


def test_a_signature_of_the_newer_layout_is_found(running):
    digest = flux(running, "new")
    push_signed(running, "new", KEY, digest)
    mine = nobody(running, "new")
    assert verdict_on(mine, digest, KEYS).signature.signer == "key-0.pub"
    assert verdict_on(mine, digest, trusted(drawn())).fault is SignatureFault.UNKNOWN_KEY


def test_a_signature_of_another_digest_or_repository_is_none(running):
    digest, other = flux(running, "replayed"), flux(running, "replayed", "v2", {"x": "1"})
    elsewhere = payload_layer(KEY, payload(digest, f"{running.host}/elsewhere"))
    push_payloads(
        running, "replayed", digest, payload_layer(KEY, payload(other, f"{running.host}/replayed")), elsewhere
    )
    push_signed(running, "replayed", KEY, digest, other)
    assert verdict_on(nobody(running, "replayed"), digest, KEYS).fault is SignatureFault.BAD_SIGNATURE


def test_one_that_can_not_be_read_hides_no_good_one(running):
    digest = flux(running, "unreadable")
    push_payloads(running, "unreadable", digest, Layer(b"{", "text/plain"), Layer(b"x" * 10))
    push_signed(running, "unreadable", KEY, digest)
    assert verdict_on(nobody(running, "unreadable"), digest, KEYS).signature is not None


def test_of_very_many_signatures_some_are_looked_at(registry, monkeypatch):
    digest = flux(registry, "many")
    many = [payload_layer(STRANGER, payload(digest, str(number))) for number in range(5)]
    push_payloads(registry, "many", digest, *many)
    monkeypatch.setattr("kubectl_reconcile.source.oci.signatures.MOST_SIGNATURES", 3)
    mine = nobody(registry, "many")
    asked = []
    blob = mine.blob
    monkeypatch.setattr(mine, "blob", lambda layer: asked.append(layer) or blob(layer))
    assert verdict_on(mine, digest, KEYS).signature is None
    assert len(asked) == 3


def test_a_list_of_ten_thousand_signatures_is_not_read(registry):
    digest = flux(registry, "heaps")
    layer = payload_layer(STRANGER, payload(digest, "x"))
    registry.push_blob("heaps", b"{}")
    registry.push_blob("heaps", layer.data)
    said = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": Layer(b"{}", EMPTY).told(),
        "layers": [layer.told()] * 10_000,
    }  # fmt: skip
    registry.push_manifest("heaps", f"{digest.replace(':', '-')}.sig", said)
    verdict = verdict_on(nobody(registry, "heaps"), digest, KEYS)
    assert verdict.fault is SignatureFault.UNSUPPORTED
    assert "more than 1,000" in verdict.detail


def test_a_good_verdict_is_remembered_for_those_keys_and_a_bad_one_is_looked_at_again(registry, monkeypatch):
    digest = flux(registry, "again")
    mine = nobody(registry, "again")
    assert verdict_on(mine, digest, KEYS).signature is None
    push_payloads(registry, "again", digest, payload_layer(KEY, payload(digest, f"{registry.host}/again")))
    assert verdict_on(mine, digest, KEYS).signature is not None
    monkeypatch.setattr(Registry, "_get", lambda *_, **__: pytest.fail("it was asked again"))
    assert verdict_on(mine, digest, KEYS).signature is not None
    with pytest.raises(pytest.fail.Exception):
        verdict_on(mine, digest, trusted(STRANGER))


def test_what_was_verified_is_what_is_pulled(registry):
    """The tag is moved between the verification and the pull: what is pulled is still what was verified."""
    digest = flux(registry, "swapped")
    mine = nobody(registry, "swapped")
    push_payloads(registry, "swapped", digest, payload_layer(KEY, payload(digest, f"{registry.host}/swapped")))
    followed = mine.resolve("v1", float("inf"))
    assert verdict_on(mine, followed, KEYS).signature is not None
    flux(registry, "swapped", files={"apps/evil.yaml": ""})
    assert artifact(mine, followed).files == READ
