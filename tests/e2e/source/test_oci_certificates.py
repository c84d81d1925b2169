"""Artifacts that are signed without a key: who signs is proven by a certificate and by logs, from the bundle and the root alone."""

from __future__ import annotations

import base64
import copy
import datetime as dt
import json
import socket
import subprocess
import sys

import pytest

from kubectl_reconcile.core.resources.oci.identities import Identities, OidcIdentity
from kubectl_reconcile.core.resources.oci.reference import OciRepository
from kubectl_reconcile.core.resources.oci.signed import Meant
from kubectl_reconcile.core.resources.signatures import Signature, SignatureFault
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import Verification, VerifySpec
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.oci import certified
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.registry import registry_of
from kubectl_reconcile.source.oci.signatures import verdict_on
from kubectl_reconcile.source.oci.verified import VerifiedArtifact
from tests.e2e.source.pulling import LIMITS, flux, nobody
from tests.keyless import ISSUER, NOW, SUBJECT, Sigstore
from tests.oci_signing import bundle, drawn, payload, payload_layer, push_bundle, push_payloads

pytest.importorskip("sigstore", reason="the extra keyless isn't installed")

DIGEST, OTHER = f"sha256:{'ab' * 32}", f"sha256:{'cd' * 32}"
MEANT = Meant(OciRepository("registry.example.com", "team/shop"), DIGEST)
WHO = (OidcIdentity(ISSUER, "https://forge.example.com/team/.*"),)
GOOD = Signature(SUBJECT, ISSUER)


@pytest.fixture(scope="module")
def mine():
    """A Sigstore that is trusted."""
    return Sigstore()


@pytest.fixture(scope="module")
def others():
    """One that isn't."""
    return Sigstore()


@pytest.fixture
def no_network(monkeypatch):
    """Nobody can be asked, not even for an address."""

    def refused(*_, **__):
        pytest.fail("somebody was asked")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


def trusted(sigstore, who=WHO):
    return Identities.of({"trusted_root.json": sigstore.root}, who)


def judged(said, sigstore, who=WHO):
    return certified.judge(
        said if isinstance(said, bytes) else json.dumps(said).encode(), MEANT, trusted(sigstore, who)
    )


def changed(said, *path, to):
    """A copy with another value at a path."""
    made = copy.deepcopy(said)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return made


@pytest.mark.usefixtures("no_network")
def test_a_signature_is_proven_without_anybody_being_asked(mine):
    assert judged(mine.signed(DIGEST), mine).signature == GOOD
    assert judged(mine.signed(DIGEST), mine, (OidcIdentity("x", "y"), *WHO)).signature == GOOD


NOT_THEY = {
    "another subject": {"subject": "https://forge.example.com/evil/shop"},
    "a subject that has theirs in it": {"subject": f"https://evil.example.com/{SUBJECT}"},
    "another issuer": {"issuer": "https://evil.example.com/oidc"},
}


@pytest.mark.parametrize("who", NOT_THEY.values(), ids=NOT_THEY)
def test_somebody_else_is_named(mine, who):
    verdict = judged(mine.signed(DIGEST, **who), mine)
    assert verdict.fault is SignatureFault.UNKNOWN_IDENTITY
    assert who.get("subject", SUBJECT) in verdict.detail
    assert who.get("issuer", ISSUER) in verdict.detail


ENTRY = ("verificationMaterial", "tlogEntries", 0)
UNPROVEN = {
    "an altered signature": lambda said, _: changed(said, "dsseEnvelope", "signatures", 0, "sig", to=base64.b64encode(b"x" * 70).decode()),
    "an altered statement": lambda said, _: changed(said, "dsseEnvelope", "payload", to=base64.b64encode(b"{}").decode()),
    "no entry of the log": lambda said, _: changed(said, "verificationMaterial", "tlogEntries", to=[]),
    "two entries": lambda said, _: changed(said, "verificationMaterial", "tlogEntries", to=said["verificationMaterial"]["tlogEntries"] * 2),
    "another entry of the log": lambda said, mine: changed(said, *ENTRY, to=mine.signed(DIGEST)["verificationMaterial"]["tlogEntries"][0]),
    "no promise": lambda said, _: changed(said, *ENTRY, "inclusionPromise", to=None),
    "no proof": lambda said, _: changed(said, *ENTRY, "inclusionProof", to=None),
    "a proof of something else": lambda said, _: changed(said, *ENTRY, "inclusionProof", "rootHash", to=base64.b64encode(b"x" * 32).decode()),
    "another time": lambda said, _: changed(said, *ENTRY, "integratedTime", to=str(int(NOW.timestamp()) + 1)),
    "another's certificate": lambda said, mine: changed(
        said, "verificationMaterial", "certificate", to=mine.signed(DIGEST)["verificationMaterial"]["certificate"]
    ),
    "a certificate that is none": lambda said, _: changed(said, "verificationMaterial", "certificate", "rawBytes", to="AAAA"),
    "a certificate of another type": lambda said, _: changed(said, "verificationMaterial", "certificate", to=7),
    "logged after the certificate's end": lambda _, mine: mine.signed(DIGEST, at=NOW + dt.timedelta(hours=1)),
    "logged before it began": lambda _, mine: mine.signed(DIGEST, at=NOW - dt.timedelta(hours=1)),
}  # fmt: skip


@pytest.mark.parametrize("wrong", UNPROVEN.values(), ids=UNPROVEN)
def test_a_signature_is_not_proven_by(mine, wrong):
    verdict = judged(wrong(mine.signed(DIGEST), mine), mine)
    assert (verdict.signature, verdict.fault) == (None, SignatureFault.UNPROVEN)
    assert verdict.detail


PARTS = ("authority", "certificates_log", "log")


@pytest.mark.parametrize("part", [*PARTS, "all"])
def test_what_another_authority_or_log_has_vouched_for_is_not_proven(mine, others, part):
    mixed = Sigstore()
    for each in PARTS:
        setattr(mixed, each, getattr(others if part in {each, "all"} else mine, each))
    mixed.certificate = others.certificate if part in {"authority", "all"} else mine.certificate
    assert judged(mixed.signed(DIGEST), mixed).signature == GOOD
    assert judged(mixed.signed(DIGEST), mine).fault is SignatureFault.UNPROVEN


def test_a_signature_on_something_else_is_bad(mine):
    assert "signature is on" in judged(mine.signed(OTHER), mine).detail
    assert judged(mine.signed(OTHER), mine).fault is SignatureFault.BAD_SIGNATURE
    verdict = judged(mine.signed(DIGEST, predicate="https://example.com/sbom"), mine)
    assert (verdict.fault, verdict.detail) == (
        SignatureFault.BAD_SIGNATURE,
        "the statement is no signature of an image",
    )


def test_keys_count_for_nothing_where_certificates_do(mine):
    verdict = judged(bundle(drawn(), DIGEST), mine)
    assert (verdict.fault, verdict.detail) == (
        SignatureFault.UNSUPPORTED,
        "it is by a key, and only those count whom certificates name",
    )


def test_a_root_in_which_something_is_wrong_is_said(mine):
    root = json.dumps({**json.loads(mine.root), "tlogs": []})
    with pytest.raises(KeysError, match=r"entry trusted_root\.json can't be used"):
        certified.judge(
            json.dumps(mine.signed(DIGEST)).encode(), MEANT, Identities.of({"trusted_root.json": root}, WHO)
        )


def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sigstore", None)
    with pytest.raises(KeysError) as missing:
        certified.check_installed()
    assert "the package sigstore isn't installed where signatures are checked" in str(missing.value)
    assert "pip install 'kubectl-reconcile[keyless]'" in missing.value.hint


def test_the_library_is_not_imported_before_somebody_asks_for_it():
    text = "import sys, kubectl_reconcile.source.oci.verified, kubectl_reconcile.source.oci.certified as c; c.check_installed(); print('sigstore.models' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- in registries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", [True, False], ids=["without the referrers API", "with it"])
def test_signatures_are_found_in_a_registry(registry, with_referrers, mine, others, fallback):
    running = registry if fallback else with_referrers
    name = "certificates/shop"
    digest = flux(running, name)
    place = nobody(running, name)
    assert verdict_on(place, digest, trusted(mine)).fault is SignatureFault.NO_SIGNATURE
    push_payloads(running, name, digest, payload_layer(drawn(), payload(digest, f"{running.host}/{name}")))
    assert verdict_on(place, digest, trusted(mine)).fault is SignatureFault.UNSUPPORTED
    push_bundle(running, name, digest, json.dumps(mine.signed(digest)).encode(), fallback=fallback)
    assert verdict_on(place, digest, trusted(others)).fault is SignatureFault.UNPROVEN
    assert (
        verdict_on(place, digest, trusted(mine, (OidcIdentity(ISSUER, "x"),))).fault is SignatureFault.UNKNOWN_IDENTITY
    )
    assert verdict_on(place, digest, trusted(mine)).signature == GOOD


def test_what_somebody_else_signs_is_told_and_what_was_verified_stays_in_force(registry, mine, others):
    def push(color, sigstore=None, **who):
        digest = flux(registry, "certificates/moved", files={"web.yaml": f"color: {color}\n"})
        if sigstore is not None:
            push_bundle(
                registry,
                "certificates/moved",
                digest,
                json.dumps(sigstore.signed(digest, **who)).encode(),
                fallback=True,
            )
        return f"v1@{digest}"

    place = registry_of(OciAccess(registry.repository("certificates/moved"), LIMITS))
    spec = VerifySpec("Secret", "sigstore", identities=WHO)
    followed = VerifiedArtifact(place, "v1", spec=spec, namespace="shop", keeps=Verification())
    followed.trust({"cosign.pub": "x"})
    good = push("red", mine)
    with pytest.raises(SourceError, match=r"can't be verified: Secret shop/sigstore has no entry trusted_root\.json"):
        followed.revision()
    with pytest.raises(SourceError, match=r"Secret shop/sigstore has no entry trusted_root\.json"):
        followed.check_keys()
    followed.trust({"trusted_root.json": json.dumps({**json.loads(mine.root), "tlogs": []})})
    with pytest.raises(SourceError, match=r"Secret shop/sigstore entry trusted_root\.json can't be used"):
        followed.revision()
    assert followed.made_from == "--from-file=trusted_root.json"
    followed.trust({"trusted_root.json": mine.root})
    assert followed.revision().sha == good
    assert followed.verification == Verification(good, signer=SUBJECT, key=ISSUER)
    for sigstore, who, fault in (
        (mine, {"subject": "https://forge.example.com/evil"}, SignatureFault.UNKNOWN_IDENTITY),
        (others, {}, SignatureFault.UNPROVEN),
        (None, {}, SignatureFault.NO_SIGNATURE),
    ):
        evil = push(str(fault), sigstore, **who)
        assert followed.revision().sha == good
        assert (followed.tip, followed.verification.revision, followed.verification.fault) == (evil, good, fault)
        with pytest.raises(SourceError):
            followed.require_verified(evil)
