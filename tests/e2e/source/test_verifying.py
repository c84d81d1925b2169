"""What stays in force while the newest isn't verified, and who is given what, whatever is verified: decided by plain verdicts."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.resources.signatures import SignatureFault
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.verifying import UnverifiedError
from tests.verifying import ALICE, NEW, OLD, OTHER, Plain


def refused(action) -> Verification:
    with pytest.raises(UnverifiedError) as caught:
        action()
    assert caught.value.fault is SourceFault.UNVERIFIED
    return caught.value.verification


def test_what_is_signed_counts_for_everybody():
    for keeps in (None, Verification(), Verification(OLD)):
        mine = Plain(NEW, keeps=keeps)
        assert mine.read(NEW) == NEW
        assert mine.verification == Verification(NEW, signer="alice.pub", key=ALICE.key)
        assert not mine.verification.is_refused
        mine.require_verified(NEW)


def test_who_looks_is_shown_what_is_not_signed_and_may_not_apply_it():
    mine = Plain(OLD)
    assert (mine.read(NEW), mine.is_preview) == (NEW, True)
    assert mine.verification.refusal == "artifact 1.2 has no signature (hint: sign it by its digest (cosign sign))"
    assert refused(lambda: mine.require_verified(NEW)).fault is SignatureFault.NO_SIGNATURE
    mine.require_verified(OLD)


def test_who_keeps_up_is_given_what_was_verified_before():
    mine = Plain(OLD, keeps=Verification())
    assert (mine.read(OLD), mine.is_preview) == (OLD, False)
    assert mine.read(NEW) == OLD
    assert (mine.verification.revision, mine.verification.fault) == (OLD, SignatureFault.NO_SIGNATURE)
    assert "artifact 1.2 has no signature; 1.1@sha256:1111111 stays in force" in mine.verification.refusal
    mine.require_verified(OLD)
    refused(lambda: mine.require_verified(NEW))
    mine.signed = (OLD, NEW)
    assert (mine.read(NEW), mine.verification.refusal) == (NEW, "")


def test_who_begins_verifies_again_what_the_status_names():
    mine = Plain(OLD, keeps=Verification(OLD))
    assert mine.read(NEW) == OLD
    assert mine.verification.signer == "alice.pub"


NOTHING = {
    "nothing was": (Verification(), (), "because nothing was verified before"),
    "that isn't signed": (Verification(OTHER), (), "because what was applied last isn't verified either: artifact 1.3 has no signature"),
    "that is gone": (Verification(OLD), (OLD,), "because 1.1 is gone"),
    "that is the newest": (Verification(NEW), (), "drift isn't corrected (hint:"),
}  # fmt: skip


@pytest.mark.parametrize(("recorded", "gone", "said"), NOTHING.values(), ids=NOTHING)
def test_nothing_is_in_force_where_the_status_names_nothing_that_counts(recorded, gone, said):
    mine = Plain(OLD, keeps=recorded, gone=gone)
    found = refused(lambda: mine.read(NEW))
    assert found.revision == ""
    assert found.refusal.startswith("artifact 1.2 has no signature; nothing is applied, and drift isn't corrected")
    assert said in found.refusal


def test_other_keys_leave_in_force_what_was_verified_by_those_of_before():
    before, after = Plain(NEW, keeps=Verification()), Plain(keeps=Verification(NEW))
    before.read(NEW)
    after.go_on_from(before)
    assert after.read(NEW) == NEW
    assert after.verification.is_refused
    after.require_verified(NEW)
    after.go_on_from(None)
    assert after.read(NEW) == NEW
    refused(lambda: Plain(keeps=Verification(NEW)).read(NEW))


def test_without_keys_nothing_counts_and_it_says_why():
    mine = Plain(OLD, NEW, keeps=Verification())
    mine.read(OLD)
    mine.trust(KeysError("isn't there", "make it"))
    assert mine.read(NEW) == OLD
    assert mine.verification.fault is SignatureFault.UNUSABLE_KEYS
    assert mine.verification.refusal.startswith("artifact 1.2 can't be verified: Secret shop/keys isn't there; 1.1@")
    with pytest.raises(SourceError, match="Secret shop/keys isn't there"):
        mine.check_keys()
    mine.trust({})
    with pytest.raises(SourceError, match="Secret shop/keys holds no key"):
        mine.check_keys()
    mine.trust({"alice.pub": "a key"})
    mine.check_keys()
    assert mine.read(NEW) == NEW
