"""What git, gpg and ssh-keygen say of a signature: one good one counts, and whatever else is a fault."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.signatures import (
    ObjectType,
    Signature,
    SignatureFault,
    SignatureFormat,
    SignatureVerdict,
    SignedObject,
    imported_all,
    person,
    verdict_of,
)
from kubectl_reconcile.core.resources.trusted_keys import TrustedKeys, fingerprint_of
from kubectl_reconcile.core.resources.verification import (
    Verification,
    VerifyMode,
    not_asked,
    refusal_of,
    subject_of,
)

SSH = SignedObject(ObjectType.COMMIT, SignatureFormat.SSH, key="SHA256:abc")
PGP = SignedObject(ObjectType.COMMIT, SignatureFormat.OPENPGP)
NO_KEYS = TrustedKeys()

GOOD_SSH = (
    'Good "git" signature for alice@example.com with ED25519 key SHA256:6cAb23VVdar9T5BTgoGj57i5MztFuPUKOnbwVeCwRmU'
)
UNMATCHED = 'Good "git" signature with ED25519 key SHA256:6cAb23VVdar9T5BTgoGj57i5MztFuPUKOnbwVeCwRmU\n'
FPR = "F869095111EBDB40242DA3A0D4C23DB58F39AEB6"
GOODSIG = "[GNUPG:] GOODSIG D4C23DB58F39AEB6 Alice <alice@x.org>"
VALIDSIG = f"[GNUPG:] VALIDSIG {FPR} 2026-11-22 1795326601 0 4 0 22 8 00 {FPR}"
GOOD_PGP = f"[GNUPG:] NEWSIG alice@x.org\n{GOODSIG}\n{VALIDSIG}"


def test_a_good_signature_has_a_signer_and_a_key():
    ssh = Signature("alice@example.com", "ED25519 SHA256:6cAb23VVdar9T5BTgoGj57i5MztFuPUKOnbwVeCwRmU")
    assert verdict_of(SSH, NO_KEYS, 0, f"{GOOD_SSH}\n") == SignatureVerdict(ssh)
    assert verdict_of(PGP, NO_KEYS, 0, GOOD_PGP) == SignatureVerdict(Signature("Alice <alice@x.org>", f"OpenPGP {FPR}"))


def test_a_subkey_signs_for_its_primary_key():
    said = GOOD_PGP.replace(f"VALIDSIG {FPR}", f"VALIDSIG {'0' * 40}")
    assert verdict_of(PGP, NO_KEYS, 0, said).signature == Signature("Alice <alice@x.org>", f"OpenPGP {FPR}")


SSH_FAULTS = {
    "unknown": (f"{UNMATCHED}No principal matched.", SignatureFault.UNKNOWN_KEY),
    "expired": (f"{UNMATCHED}/home/as:1: key has expired: verify time 2026 > valid-before 2020\nNo principal matched.", SignatureFault.EXPIRED_KEY),
    "early": (f"{UNMATCHED}/home/as:1: key is not yet valid: verify time\nNo principal matched.", SignatureFault.EARLY_KEY),
    "for files": ('Could not verify signature.\n/home/as:1: key is not permitted for use in signature namespace "git"', SignatureFault.OTHER_PURPOSE),
    "changed": ("Signature verification failed: incorrect signature", SignatureFault.BAD_SIGNATURE),
    "no program": ("error: cannot run ssh-keygen: No such file or directory", SignatureFault.NO_PROGRAM),
    "no user": ("No user exists for uid 65532", SignatureFault.UNCHECKED),
    "nothing": ("", SignatureFault.UNCHECKED),
}  # fmt: skip


@pytest.mark.parametrize(("said", "fault"), SSH_FAULTS.values(), ids=SSH_FAULTS)
def test_each_fault_of_an_ssh_signature_is_told_apart(said, fault):
    assert verdict_of(SSH, NO_KEYS, 1, said).fault is fault


PGP_FAULTS = {
    "unknown": (f"[GNUPG:] ERRSIG 9F147A8425ED52A1 22 8 00 1795326601 9 {FPR}\n[GNUPG:] NO_PUBKEY 9F147A8425ED52A1", SignatureFault.UNKNOWN_KEY),
    "unknown to an old gpg": ("[GNUPG:] ERRSIG 9F147A8425ED52A1 22 8 00 1795326601 9", SignatureFault.UNKNOWN_KEY),
    "algorithm": (f"[GNUPG:] ERRSIG 9F147A8425ED52A1 99 8 00 1795326601 4 {FPR}", SignatureFault.UNSUPPORTED),
    "changed": ("[GNUPG:] BADSIG D4C23DB58F39AEB6 Alice <alice@x.org>", SignatureFault.BAD_SIGNATURE),
    "expired key": (f"[GNUPG:] EXPKEYSIG D4C23DB58F39AEB6 Alice\n{VALIDSIG}", SignatureFault.EXPIRED_KEY),
    "expired signature": (f"[GNUPG:] EXPSIG D4C23DB58F39AEB6 Alice\n{VALIDSIG}", SignatureFault.EXPIRED_SIGNATURE),
    "revoked": (f"[GNUPG:] REVKEYSIG D4C23DB58F39AEB6 Alice\n{VALIDSIG}", SignatureFault.REVOKED_KEY),
    "two": (f"{GOOD_PGP}\n{GOODSIG}", SignatureFault.UNSUPPORTED),
    "good and bad": (f"{GOOD_PGP}\n[GNUPG:] BADSIG D4C23DB58F39AEB6 Alice", SignatureFault.UNSUPPORTED),
    "good and not valid": (GOODSIG, SignatureFault.UNCHECKED),
    "on a key": (GOOD_PGP.replace(" 8 00 ", " 8 10 "), SignatureFault.UNCHECKED),
    "no program": ("error: cannot run gpg: No such file or directory", SignatureFault.NO_PROGRAM),
    "truncated": ("[GNUPG:] ERRSIG", SignatureFault.UNSUPPORTED),
    "nothing": ("", SignatureFault.UNCHECKED),
}  # fmt: skip


@pytest.mark.parametrize(("said", "fault"), PGP_FAULTS.values(), ids=PGP_FAULTS)
def test_each_fault_of_an_openpgp_signature_is_told_apart(said, fault):
    assert verdict_of(PGP, NO_KEYS, 1, said).fault is fault
    assert verdict_of(PGP, NO_KEYS, 0, said).signature is None, "not even where git were content"


DETAILS = {
    "the fingerprint of an unknown key": (PGP_FAULTS["unknown"][0], f"OpenPGP {FPR}"),
    "the id of an unknown key, of an old gpg": (PGP_FAULTS["unknown to an old gpg"][0], "OpenPGP 9F147A8425ED52A1"),
    "the id where there is no fingerprint": ("[GNUPG:] ERRSIG 9F147A8425ED52A1 22 8 00 1795326601 9 -", "OpenPGP 9F147A8425ED52A1"),
    "the id where the words end early": ("[GNUPG:] ERRSIG 9F147A8425ED52A1 22 8 00 1", "OpenPGP 9F147A8425ED52A1"),
    "nothing where there are no words": ("[GNUPG:] ERRSIG", "OpenPGP "),
    "the key and the signer of a bad signature": (PGP_FAULTS["changed"][0], "OpenPGP D4C23DB58F39AEB6 of Alice <alice@x.org>"),
    "the whole key where it is known": (PGP_FAULTS["revoked"][0], f"OpenPGP {FPR} of Alice"),
    "a key of nobody": ("[GNUPG:] BADSIG D4C23DB58F39AEB6", "OpenPGP D4C23DB58F39AEB6"),
    "that there is more than one": (PGP_FAULTS["two"][0], "it has more than one"),
    "that it isn't clear": (GOODSIG, "git and gpg disagree about it"),
    "the program": ("error: cannot run gpg: No such file or directory", "gpg"),
    "what was said first": ("\nfatal: it is odd\nand more", "it is odd"),
    "that nothing was said": ("[GNUPG:] NEWSIG", "without a reason"),
}  # fmt: skip


@pytest.mark.parametrize(("said", "detail"), DETAILS.values(), ids=DETAILS)
def test_a_fault_of_an_openpgp_signature_tells(said, detail):
    assert verdict_of(PGP, NO_KEYS, 1, said).detail == detail


SSH_DETAILS = {
    "the key": (SSH_FAULTS["unknown"][0], "SSH key SHA256:abc"),
    "the program": (SSH_FAULTS["no program"][0], "ssh-keygen"),
    "what was said": ("error: it is odd", "it is odd"),
    "that nothing was said": ("", "without a reason"),
}


@pytest.mark.parametrize(("said", "detail"), SSH_DETAILS.values(), ids=SSH_DETAILS)
def test_a_fault_of_an_ssh_signature_tells(said, detail):
    assert verdict_of(SSH, NO_KEYS, 1, said).detail == detail
    keyless = SignedObject(ObjectType.COMMIT, SignatureFormat.SSH)
    assert verdict_of(keyless, NO_KEYS, 1, "No principal matched.").detail == ""


def test_two_good_ssh_signatures_are_none():
    assert verdict_of(SSH, NO_KEYS, 0, f"{GOOD_SSH}\n{GOOD_SSH}").signature is None


SHORT = {
    "a line that ends before the key": VALIDSIG.rpartition(" ")[0],
    "two lines": f"{VALIDSIG}\n{VALIDSIG}",
}


@pytest.mark.parametrize("valid", SHORT.values(), ids=SHORT)
def test_a_good_signature_has_one_whole_line_that_says_it_is_valid(valid):
    assert verdict_of(PGP, NO_KEYS, 0, f"{GOODSIG}\n{valid}").fault is SignatureFault.UNCHECKED


def test_without_git_nothing_is_good():
    assert verdict_of(SSH, NO_KEYS, 1, GOOD_SSH).signature is None
    assert verdict_of(PGP, NO_KEYS, 1, GOOD_PGP).signature is None


def test_a_revoked_key_is_never_good_whatever_is_said():
    keys = TrustedKeys(revoked_prints=frozenset({"SHA256:abc"}))
    assert verdict_of(SSH, keys, 0, GOOD_SSH) == SignatureVerdict(
        fault=SignatureFault.REVOKED_KEY, detail="SSH key SHA256:abc"
    )


@given(
    st.sampled_from([SSH, PGP]),
    st.integers(1, 255),
    st.text()
    | st.lists(st.sampled_from([*GOOD_PGP.split("\n"), GOOD_SSH, *PGP_FAULTS["unknown"][0].split("\n")])).map(
        "\n".join
    ),
)
def test_whatever_is_said_git_has_the_last_word(found, status, said):
    verdict = verdict_of(found, NO_KEYS, status, said)
    assert verdict.signature is None
    assert verdict.fault is not None
    assert verdict.detail.isprintable()


# -- what an object says of itself -------------------------------------------------------------------------------------


def sshsig(key: bytes) -> str:
    blob = b"SSHSIG" + (1).to_bytes(4) + len(key).to_bytes(4) + key + b"\0\0\0\x03git"
    text = base64.b64encode(blob).decode()
    return f"-----BEGIN SSH SIGNATURE-----\n{text[:70]}\n{text[70:]}\n-----END SSH SIGNATURE-----"


HEAD = "tree 4b825dc\nauthor Bob \x1b[31m <bob@example.com> 1795326601 +0100\ncommitter Eve <e@x> 1 +0000\n"


def test_a_commit_says_who_made_it_and_by_which_key():
    signature = sshsig(b"key").replace("\n", "\n ")
    for header in ("gpgsig", "gpgsig-sha256"):
        found = SignedObject.read(ObjectType.COMMIT, f"{HEAD}{header} {signature}\nencoding x\n\nChange\n".encode())
        assert found == SignedObject(
            ObjectType.COMMIT, SignatureFormat.SSH, "Bob [31m <bob@example.com>", key=fingerprint_of(b"key")
        )


def test_a_key_that_takes_several_lines_is_read_whole():
    key = bytes(range(100))
    signature = sshsig(key).replace("\n", "\n ")
    found = SignedObject.read(ObjectType.COMMIT, f"{HEAD}gpgsig {signature}\n\nChange\n".encode())
    assert found.key == fingerprint_of(key)


DAMAGED = {
    "no base64": "!!!!",
    "no signature": base64.b64encode(b"SSHKEY" + bytes(20)).decode(),
    "a key that ends early": base64.b64encode(b"SSHSIG" + (1).to_bytes(4) + (9).to_bytes(4) + b"key").decode(),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_signature_names_no_key(text):
    signature = f"-----BEGIN SSH SIGNATURE-----\n {text}\n -----END SSH SIGNATURE-----"
    found = SignedObject.read(ObjectType.COMMIT, f"{HEAD}gpgsig {signature}\n\nChange\n".encode())
    assert (found.format, found.key) == (SignatureFormat.SSH, "")


def test_a_tag_of_nothing_but_a_signature_is_signed_and_the_last_signature_counts():
    tag = "object 1234\ntag v1\ntagger Bob <bob@example.com> 1 +0000\n\n"
    pgp = "-----BEGIN PGP SIGNATURE-----\n\nx\n"
    assert SignedObject.read(ObjectType.TAG, f"{tag}{pgp}".encode()).format is SignatureFormat.OPENPGP
    both = SignedObject.read(ObjectType.TAG, f"{tag}{pgp}{sshsig(b'key')}\n".encode())
    assert (both.format, both.key) == (SignatureFormat.SSH, fingerprint_of(b"key"))


def test_a_long_name_is_cut_and_one_of_eighty_letters_isnt():
    assert (person("x" * 80), person("x" * 81)) == ("x" * 80, "x" * 79 + "…")
    assert person(" a\tb\n\x1bc ") == "a b c"


def test_a_signature_in_the_message_of_a_commit_is_none():
    found = SignedObject.read(ObjectType.COMMIT, f"{HEAD}\nChange\ngpgsig {sshsig(b'key')}\n".encode())
    assert found.format is SignatureFormat.NONE


def test_a_tag_says_its_name_and_what_it_points_to():
    head = "object 1234\ntype commit\ntag v1\ntagger Bob <bob@example.com> 1 +0000\n\nRelease\n"
    found = SignedObject.read(ObjectType.TAG, f"{head}-----BEGIN PGP SIGNATURE-----\n\nx\n".encode())
    assert found == SignedObject(ObjectType.TAG, SignatureFormat.OPENPGP, "Bob <bob@example.com>", "v1", "1234")
    assert SignedObject.read(ObjectType.TAG, head.encode()).format is SignatureFormat.NONE
    assert SignedObject.read(ObjectType.TAG, f"{head}see -----BEGIN PGP SIGNATURE-----".encode()).format == ""


@given(
    st.sampled_from(ObjectType),
    st.binary() | st.binary().map(lambda data: HEAD.encode() + b"gpgsig " + data + b"\n\nx"),
)
def test_any_bytes_are_read(type_, data):
    found = SignedObject.read(type_, data)
    assert found.by.isprintable()


@given(st.text())
def test_a_name_is_fit_to_be_shown(name):
    assert person(name).isprintable()
    assert len(person(name)) <= 80


IMPORTS = {
    "one key": (0, "[GNUPG:] IMPORT_RES 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0", True),
    "one twice": (0, "[GNUPG:] IMPORT_RES 2 0 1 0 1 0 0 0 0 0 0 0 0 0 0", True),
    "a path too long for an agent": (2, "[GNUPG:] IMPORT_RES 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0\ngpg: can't connect to the agent: File name too long", True),
    "no key": (2, "[GNUPG:] IMPORT_RES 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", False),
    "a key without a name": (0, "[GNUPG:] IMPORT_RES 2 1 1 0 0 0 0 0 0 0 0 0 0 0 0", False),
    "a key that is left out": (0, "[GNUPG:] IMPORT_RES 2 0 1 0 0 0 0 0 0 0 0 0 0 1 0", False),
    "one that can't be read": (2, "[GNUPG:] IMPORT_RES 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0\ngpg: import failed", False),
    "nothing": (0, "", False),
}  # fmt: skip


@pytest.mark.parametrize(("status", "said", "expected"), IMPORTS.values(), ids=IMPORTS)
def test_all_keys_have_to_be_taken_in(status, said, expected):
    assert imported_all(status, said) is expected


# -- sentences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", SignatureFault, ids=str)
def test_each_fault_has_a_sentence_of_its_own(fault):
    said = {
        each: refusal_of(
            "commit 3f9c2e1 by Bob", ObjectType.COMMIT, SignatureVerdict(fault=each, detail="X"), "Secret shop/keys"
        )[0]
        for each in SignatureFault
    }
    assert said[fault].startswith("commit 3f9c2e1 by Bob")
    assert list(said.values()).count(said[fault]) == 1
    assert "{" not in said[fault]


def test_a_name_with_braces_stays_as_it_is():
    bob = SignedObject(ObjectType.COMMIT, by="{keys.__class__}")
    verdict = SignatureVerdict(fault=SignatureFault.NO_SIGNATURE)
    message, _ = refusal_of(subject_of(bob, "3f9c2e1aaaa"), ObjectType.COMMIT, verdict, "Secret shop/keys")
    assert message == "commit 3f9c2e1 by {keys.__class__} has no signature"


def test_the_key_of_a_forge_is_called_that():
    verdict = SignatureVerdict(
        fault=SignatureFault.UNKNOWN_KEY, detail="OpenPGP 968479A1AFF927E37D1A566BB5690EEEBB952194"
    )
    message, hint = refusal_of("commit 3f9c2e1", ObjectType.COMMIT, verdict, "Secret shop/keys")
    assert "968479A1AFF927E37D1A566BB5690EEEBB952194, which isn't among the keys of Secret shop/keys" in message
    assert hint.startswith("it is GitHub's own, for merges in the browser")


def test_a_tag_alone_will_do_for_some_modes():
    assert [mode for mode in VerifyMode if mode.needs_tag] == [VerifyMode.TAG, VerifyMode.COMMIT_AND_TAG]


SHA, TAG = "a" * 40, "b" * 64


def test_what_a_status_names_is_looked_at_again_if_it_names_a_commit():
    noted = Verification(SHA, TAG, "alice", "ED25519 SHA256:abc").status()
    assert Verification.recorded({"status": {"verified": noted}}) == Verification(SHA, TAG)
    assert Verification.recorded({"status": {"lastAppliedRevision": SHA}}) == Verification(SHA)
    for nonsense in (None, {}, {"status": 1}, {"status": {"verified": {"revision": "--help", "tag": "x\ny"}}}):
        assert Verification.recorded(nonsense) == Verification()
    assert Verification.recorded({"status": {"verified": {"revision": SHA, "tag": "v1\n"}}}) == Verification(SHA)


def test_the_condition_names_signer_and_key_or_why_not():
    good = Verification(SHA, TAG, "alice", "ED25519 SHA256:abc").condition()
    assert (good.status, good.reason) == ("True", "GoodSignature")
    assert good.message == "tag bbbbbbb on commit aaaaaaa is signed by alice (ED25519 SHA256:abc)"
    bad = not_asked("spec.source.git.verify").condition()
    assert (bad.status, bad.reason) == ("False", "VerifyRequired")
    assert bad.message == (
        "what it follows isn't applied: this daemon requires signatures (--require-verify), and the Sync has no spec.source.git.verify "
        "(hint: name a Secret or ConfigMap with the keys in spec.source.git.verify)"
    )
    packed = not_asked("").condition()
    assert (packed.status, packed.reason) == ("False", "VerifyRequired")
    assert packed.message == (
        "what it follows isn't applied: this daemon requires signatures (--require-verify), and a chart of a Helm repository over HTTP has none that can be verified "
        "(hint: take the chart from a registry (oci://…), with spec.source.chart.verify)"
    )


DIGEST = "sha256:" + "6f1a" * 16


@pytest.mark.parametrize("revision", [DIGEST, f"1.4@{DIGEST}", f"1.2.3+linux@{DIGEST}"])
def test_a_status_may_name_an_artifact(revision):
    assert Verification.recorded({"status": {"lastAppliedRevision": revision}}) == Verification(revision)
    noted = Verification(revision, signer="cosign.pub", key="ECDSA SHA256:abc")
    assert Verification.recorded({"status": {"verified": noted.status()}}) == Verification(revision)


@pytest.mark.parametrize(
    "revision", [f"{DIGEST}\n", DIGEST[:-1], f"1.4 {DIGEST}", f"../x@{DIGEST}", f"{'a' * 129}@{DIGEST}"]
)
def test_what_is_neither_a_commit_nor_an_artifact_is_not_looked_for(revision):
    assert Verification.recorded({"status": {"verified": {"revision": revision}}}) == Verification()


def test_an_artifact_is_called_that():
    good = Verification(f"1.4@{DIGEST}", signer="cosign.pub", key="ECDSA SHA256:abc").condition()
    assert good.message == "artifact 1.4@sha256:6f1a6f1 is signed by cosign.pub (ECDSA SHA256:abc)"


ARTIFACTS = {
    "unsigned": (
        SignatureVerdict(fault=SignatureFault.NO_SIGNATURE),
        "artifact 1.4@sha256:6f1a6f1 has no signature", "sign it by its digest (cosign sign)",
    ),
    "signed by somebody else": (
        SignatureVerdict(fault=SignatureFault.UNKNOWN_KEY),
        "artifact 1.4@sha256:6f1a6f1 is signed by a key, which isn't among the keys of Secret shop/keys",
        "if its owner may decide what is applied, add the key to Secret shop/keys",
    ),
    "signed otherwise": (
        SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail="the bundle is of another version"),
        "artifact 1.4@sha256:6f1a6f1 has a signature that can't be checked: the bundle is of another version",
        "sign with cosign, by a key or a certificate, whichever verify names",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("verdict", "message", "hint"), ARTIFACTS.values(), ids=ARTIFACTS)
def test_what_is_wrong_with_an_artifact_is_said_in_its_words(verdict, message, hint):
    assert refusal_of("artifact 1.4@sha256:6f1a6f1", ObjectType.ARTIFACT, verdict, "Secret shop/keys") == (
        message,
        hint,
    )
