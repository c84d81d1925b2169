"""Signatures as real git judges them, with keys that real ssh-keygen and gpg made."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from kubectl_reconcile.core.resources.signatures import ObjectType, SignatureFault
from kubectl_reconcile.core.resources.trusted_keys import TrustedKeys
from kubectl_reconcile.core.resources.verification import Verification, VerifyMode, VerifySpec
from kubectl_reconcile.source.git import followed_ref
from kubectl_reconcile.source.git.signed import check
from kubectl_reconcile.source.git.signed.verified import Verdicts, VerifiedSource
from kubectl_reconcile.source.git.source import Ref, Repository
from kubectl_reconcile.source.verifying import UnverifiedError
from tests.signing import NOBODY, SignedRepository, gpg_home, needs_gpg, ssh_signer
from tests.waiting import eventually

MAIN = Ref.of(branch="main")
V1 = Ref.of(tag="v1")
APP = {"a.yaml": "a: 1"}


@pytest.fixture
def source(repository, tmp_path):
    """The source of the test's repository that trusts these keys: source(allowed_signers=…)."""

    def make(ref=MAIN, *, mode=VerifyMode.COMMIT, keeps=None, verdicts=None, url=repository.url, **entries):
        made = VerifiedSource(
            Repository.of(url), ref, "", cache_dir=tmp_path / "cache", spec=VerifySpec("Secret", "keys", mode),
            namespace="shop", verdicts=verdicts or Verdicts(), keeps=keeps,
        )  # fmt: skip
        made.keys = TrustedKeys.of({name.replace("__", "."): text for name, text in entries.items()})
        return made

    return make


def refusal(source) -> Verification:
    source.revision()
    assert source.verification.refusal
    return source.verification


def trusting(*signers) -> str:
    return "".join(f"{each.line}\n" for each in signers)


# -- commits signed with SSH -------------------------------------------------------------------------------------------


def test_a_commit_by_a_trusted_key_is_verified_and_its_signer_and_key_are_known(repository, source, alice, bob):
    sha = repository.push(APP, alice)
    found = source(allowed_signers=trusting(bob, alice))
    assert found.revision().sha == sha
    assert found.verification == Verification(sha, "", "alice@example.com", f"ED25519 {alice.print}")


@pytest.mark.parametrize("type_", ["rsa", "ecdsa"])
def test_other_types_of_keys_do_as_well(repository, source, tmp_path, type_):
    carol = ssh_signer(tmp_path, "carol", type_)
    repository.push(APP, carol)
    found = source(allowed_signers=trusting(carol))
    found.revision()
    assert found.verification.key == f"{type_.upper()} {carol.print}"


def test_a_commit_without_a_signature_is_refused_with_its_author(repository, source, alice):
    sha = repository.push(APP)
    found = refusal(source(allowed_signers=trusting(alice)))
    assert found.fault is SignatureFault.NO_SIGNATURE
    assert f"commit {sha[:7]} by nobody <nobody@example.com> has no signature" in found.refusal
    assert "git commit -S" in found.refusal


def test_a_commit_by_an_unknown_key_is_refused_with_the_key(repository, source, alice, mallory):
    repository.push(APP, mallory)
    found = refusal(source(allowed_signers=trusting(alice)))
    assert found.fault is SignatureFault.UNKNOWN_KEY
    assert mallory.print in found.refusal
    assert "Secret shop/keys" in found.refusal


def test_a_commit_that_was_changed_after_it_was_signed_is_refused(repository, source, alice):
    sha = repository.push(APP, alice)
    text = repository.git("cat-file", "commit", sha).replace("Change", "Changed")
    forged = repository.git("hash-object", "-w", "-t", "commit", "--stdin", stdin=f"{text}\n")
    repository.git("update-ref", "refs/heads/main", forged)
    found = refusal(source(allowed_signers=trusting(alice)))
    assert found.fault is SignatureFault.BAD_SIGNATURE
    assert "isn't what was signed" in found.refusal


LIMITS = {
    "it had expired": ('valid-before="20200101"', SignatureFault.EXPIRED_KEY),
    "it isn't valid yet": ('valid-after="20990101"', SignatureFault.EARLY_KEY),
    "it is for files": ('namespaces="file"', SignatureFault.OTHER_PURPOSE),
    "it is a CA's": ("cert-authority", SignatureFault.UNKNOWN_KEY),
}


@pytest.mark.parametrize(("option", "fault"), LIMITS.values(), ids=LIMITS)
def test_a_key_counts_only_as_far_as_its_line_says(repository, source, alice, option, fault):
    repository.push(APP, alice)
    signers = trusting(alice).replace(" ", f" {option} ", 1)
    assert refusal(source(allowed_signers=signers)).fault is fault


def test_a_key_that_is_for_git_and_valid_now_counts(repository, source, alice):
    repository.push(APP, alice)
    signers = trusting(alice).replace(" ", ' namespaces="git,file",valid-after="20200101" ', 1)
    found = source(allowed_signers=signers)
    found.revision()
    assert found.verification.signer == "alice@example.com"


def test_a_signature_made_for_another_purpose_is_none_for_git(repository, source, alice, tmp_path):
    sha = repository.push(APP)
    text = f"{repository.git('cat-file', 'commit', sha)}\n"
    (tmp_path / "text").write_text(text)
    subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-n", "file", "-f", alice.settings["user.signingKey"], str(tmp_path / "text")],
        check=True, timeout=300, capture_output=True,
    )  # fmt: skip
    signature = (tmp_path / "text.sig").read_text().strip().replace("\n", "\n ")
    head, _, body = text.partition("\n\n")
    forged = repository.git(
        "hash-object", "-w", "-t", "commit", "--stdin", stdin=f"{head}\ngpgsig {signature}\n\n{body}"
    )
    repository.git("update-ref", "refs/heads/main", forged)
    assert refusal(source(allowed_signers=trusting(alice))).fault is not None


def test_a_revoked_key_is_refused_though_it_is_among_the_allowed(repository, source, alice):
    repository.push(APP, alice)
    found = refusal(source(allowed_signers=trusting(alice), revoked_keys=alice.public))
    assert found.fault is SignatureFault.REVOKED_KEY
    assert alice.print in found.refusal


def test_a_ssh_signature_where_only_openpgp_keys_are_trusted_names_its_key(repository, source, alice):
    repository.push(APP, alice)
    armour = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n=\n-----END PGP PUBLIC KEY BLOCK-----\n"
    found = refusal(source(release__asc=armour))
    assert found.fault is SignatureFault.UNKNOWN_KEY
    assert alice.print in found.refusal


def test_signatures_by_certificates_are_not_asked_of_anybody(repository, source, alice):
    sha = repository.push(APP)
    head, _, body = f"{repository.git('cat-file', 'commit', sha)}\n".partition("\n\n")
    signature = "-----BEGIN SIGNED MESSAGE-----\n AAAA\n -----END SIGNED MESSAGE-----"
    made = repository.git("hash-object", "-w", "-t", "commit", "--stdin", stdin=f"{head}\ngpgsig {signature}\n\n{body}")
    repository.git("update-ref", "refs/heads/main", made)
    assert refusal(source(allowed_signers=trusting(alice))).fault is SignatureFault.UNSUPPORTED


def test_only_the_tip_is_verified(repository, source, alice):
    repository.push(APP)
    sha = repository.push({"b.yaml": "b: 1"}, alice)
    assert source(allowed_signers=trusting(alice)).revision().sha == sha


def test_a_merge_that_the_forge_signs_counts_as_the_forges(repository, source, alice, bob):
    web = bob  # the key of a forge, for merges in the browser
    base = repository.push(APP, alice)
    branch = repository.commit({"b.yaml": "b: 1"}, NOBODY)
    tree = repository.git("rev-parse", f"{branch}^{{tree}}")
    merge = repository.git("commit-tree", "-S", "-p", base, "-p", branch, "-m", "Merge", tree, signer=web)
    repository.git("update-ref", "refs/heads/main", merge)
    assert refusal(source(allowed_signers=trusting(alice))).fault is SignatureFault.UNKNOWN_KEY
    found = source(allowed_signers=trusting(alice, web))
    found.revision()
    assert found.verification.signer == "bob@example.com"


# -- commits signed with OpenPGP ---------------------------------------------------------------------------------------


@pytest.fixture
def gpg():
    with gpg_home() as home:
        yield home


@needs_gpg
def test_openpgp_keys_verify_and_are_named_by_fingerprint(repository, source, gpg, mallory):
    carol, dave = gpg.signer("carol"), gpg.signer("dave")
    sha = repository.push(APP, carol)
    found = source(dave__asc=dave.public, carol__asc=carol.public, allowed_signers=trusting(mallory))
    assert found.revision().sha == sha
    assert found.verification == Verification(sha, "", "carol <carol@example.com>", f"OpenPGP {carol.print}")
    refused = refusal(source(dave__asc=dave.public))
    assert refused.fault is SignatureFault.UNKNOWN_KEY
    assert carol.print in refused.refusal


@needs_gpg
def test_an_openpgp_signature_where_only_ssh_keys_are_trusted_names_its_key(repository, source, gpg, alice):
    carol = gpg.signer("carol")
    repository.push(APP, carol)
    refused = refusal(source(allowed_signers=trusting(alice)))
    assert refused.fault is SignatureFault.UNKNOWN_KEY
    assert carol.print in refused.refusal


@needs_gpg
def test_an_expired_or_revoked_openpgp_key_is_told_as_such(repository, source, gpg):
    carol, dave = gpg.signer("carol"), gpg.signer("dave")
    repository.push(APP, carol)
    expired = gpg.expire(carol)
    eventually(lambda: "\npub:e:" in f"\n{gpg('--with-colons', '--list-keys', carol.print)}", "the key has expired")
    assert refusal(source(carol__asc=expired)).fault is SignatureFault.EXPIRED_KEY
    repository.push({"b.yaml": "b: 1"}, dave)
    refused = refusal(source(dave__asc=gpg.revoke(dave)))
    assert refused.fault is SignatureFault.REVOKED_KEY
    assert dave.print in refused.refusal


@needs_gpg
def test_a_changed_openpgp_commit_is_refused(repository, source, gpg):
    carol = gpg.signer("carol")
    sha = repository.push(APP, carol)
    text = repository.git("cat-file", "commit", sha).replace("Change", "Changed")
    forged = repository.git("hash-object", "-w", "-t", "commit", "--stdin", stdin=f"{text}\n")
    repository.git("update-ref", "refs/heads/main", forged)
    assert refusal(source(carol__asc=carol.public)).fault is SignatureFault.BAD_SIGNATURE


@needs_gpg
def test_openpgp_keys_that_gpg_can_not_read_are_said(repository, source, gpg):
    carol = gpg.signer("carol")
    repository.push(APP, carol)
    damaged = carol.public.replace(carol.public.splitlines()[3], "A" * 64)
    assert refusal(source(carol__asc=damaged)).fault is SignatureFault.UNUSABLE_KEYS


@needs_gpg
@pytest.mark.parametrize("name", ["t", "long" * 25], ids=["short", "too long for an agent's socket"])
def test_no_agent_outlives_a_check_and_no_folder_stays(repository, source, gpg, monkeypatch, name):
    carol = gpg.signer("carol")
    repository.push(APP, carol)
    place = gpg.home / name
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    found = source(carol__asc=carol.public)
    found.revision()
    assert found.verification.signer
    assert list(place.iterdir()) == []
    helpers = ("gpg-agent", "keyboxd", "dirmngr", "scdaemon")
    left = [
        each.info["cmdline"] or [] for each in psutil.process_iter(["name", "cmdline"]) if each.info["name"] in helpers
    ]
    assert [words for words in left if str(place) in " ".join(words)] == []


# -- whoever runs us has no say ----------------------------------------------------------------------------------------


@needs_gpg
def test_keys_and_settings_of_whoever_runs_us_do_not_count(repository, source, gpg, alice, tmp_path, monkeypatch):
    carol = gpg.signer("carol")
    monkeypatch.setenv("GNUPGHOME", str(gpg.home))
    (tmp_path / "allowed").write_text(trusting(alice))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(
        f'[gpg]\n\tprogram = true\n[gpg "ssh"]\n\tallowedSignersFile = {tmp_path / "allowed"}\n\tprogram = true\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    nobody_known = "nobody@example.com " + " ".join(ssh_signer(tmp_path, "other").public.split()[:2])
    for signer in (carol, alice):
        repository.push({"a.yaml": f"a: {signer.name}"}, signer)
        assert refusal(source(allowed_signers=nobody_known)).fault is SignatureFault.UNKNOWN_KEY


def test_a_config_in_the_repository_has_no_say(repository, source, alice, mallory):
    repository.push({".gitconfig": "[gpg]\n\tprogram = true\n", **APP}, mallory)
    assert refusal(source(allowed_signers=trusting(alice))).fault is SignatureFault.UNKNOWN_KEY


def test_without_the_program_that_checks_it_says_which(repository, source, alice, tmp_path, monkeypatch):
    repository.push(APP, alice)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(shutil.which(name))
    made = source(allowed_signers=trusting(alice))
    made.fetch()
    monkeypatch.setenv("PATH", str(tools))
    found = refusal(made)
    assert found.fault is SignatureFault.NO_PROGRAM
    assert "ssh-keygen isn't installed" in found.refusal


def test_keys_lie_where_only_we_can_read_them(alice):
    keys = TrustedKeys.of({"allowed_signers": trusting(alice)})
    with check._home(check.SignatureFormat.SSH, keys) as environment:
        home = Path(environment["HOME"])
        modes = {path.name: path.stat().st_mode & 0o777 for path in [home, *home.iterdir()]}
    assert set(modes.values()) == {0o700, 0o600}
    assert modes["allowed_signers"] == 0o600
    assert not home.exists()


# -- tags --------------------------------------------------------------------------------------------------------------


def test_a_signed_tag_is_verified_whoever_made_the_commit(repository, source, alice):
    sha = repository.push(APP)
    tag = repository.tag("v1", sha, alice)
    found = source(V1, mode=VerifyMode.TAG, allowed_signers=trusting(alice))
    assert found.revision().sha == sha
    assert found.verification == Verification(sha, tag, "alice@example.com", f"ED25519 {alice.print}")


def test_a_tag_and_its_commit_are_not_the_same(repository, source, alice, bob):
    sha = repository.push(APP, alice)
    repository.tag("v1", sha, bob)
    signers = trusting(alice)
    refused = refusal(source(V1, mode=VerifyMode.TAG, allowed_signers=signers))
    assert refused.fault is SignatureFault.UNKNOWN_KEY
    assert "tag v1" in refused.refusal
    assert bob.print in refused.refusal
    for mode in (VerifyMode.COMMIT, VerifyMode.COMMIT_OR_TAG):
        found = source(V1, mode=mode, allowed_signers=signers)
        found.revision()
        assert found.verification.revision == sha, mode
    assert (
        refusal(source(V1, mode=VerifyMode.COMMIT_AND_TAG, allowed_signers=signers)).fault is SignatureFault.UNKNOWN_KEY
    )
    both = source(V1, mode=VerifyMode.COMMIT_AND_TAG, allowed_signers=trusting(alice, bob))
    both.revision()
    assert both.verification.signer == "bob@example.com"


def test_lightweight_unsigned_and_missing_tags_each_have_a_sentence(repository, source, alice):
    sha = repository.push(APP, alice)
    repository.git("tag", "light", sha)
    repository.tag("plain", sha)
    found = refusal(source(Ref.of(tag="light"), mode=VerifyMode.TAG, allowed_signers=trusting(alice)))
    assert found.fault is SignatureFault.LIGHTWEIGHT_TAG
    assert "light" in found.refusal
    found = refusal(source(Ref.of(tag="plain"), mode=VerifyMode.TAG, allowed_signers=trusting(alice)))
    assert found.fault is SignatureFault.NO_SIGNATURE
    assert "tag plain" in found.refusal
    assert "git tag -s" in found.refusal
    assert refusal(source(mode=VerifyMode.TAG, allowed_signers=trusting(alice))).fault is SignatureFault.NO_TAG


def test_of_a_range_the_last_verified_tag_stays_in_force_also_for_a_daemon_that_begins(repository, source, alice):
    old = repository.push(APP)
    first = repository.tag("v1.0.0", old, alice)
    followed = source(Ref.of(semver="1.x"), mode=VerifyMode.TAG, keeps=Verification(), allowed_signers=trusting(alice))
    assert followed.revision().sha == old
    new = repository.push({"a.yaml": "a: 2"})
    repository.tag("v1.1.0", new)
    known = Verification(old, first)
    for each in (
        followed,
        source(Ref.of(semver="1.x"), mode=VerifyMode.TAG, keeps=known, allowed_signers=trusting(alice)),
    ):
        found = each.revision()
        assert (found.sha, found.commit.tag) == (old, "")
        assert (each.verification.revision, each.verification.fault) == (old, SignatureFault.NO_SIGNATURE)
        assert "tag v1.1.0" in each.verification.refusal
    beyond = source(Ref.of(semver=">=1.1"), mode=VerifyMode.TAG, keeps=known, allowed_signers=trusting(alice))
    with pytest.raises(UnverifiedError):
        beyond.revision()


def test_a_range_leads_to_no_tag_that_was_signed_under_another_name(repository, source, alice):
    old = repository.push(APP)
    tag = repository.tag("v1.0.0", old, alice)
    repository.git("update-ref", "refs/tags/v1.9.0", tag)
    found = refusal(source(Ref.of(semver="1.x"), mode=VerifyMode.TAG, allowed_signers=trusting(alice)))
    assert found.fault is SignatureFault.OTHER_TAG


def test_a_tag_that_was_signed_under_another_name_is_refused(repository, source, alice):
    old = repository.push(APP)
    tag = repository.tag("v0", old, alice)
    repository.git("update-ref", "refs/tags/v1", tag)
    found = refusal(source(V1, mode=VerifyMode.TAG, allowed_signers=trusting(alice)))
    assert found.fault is SignatureFault.OTHER_TAG
    assert "it is the tag v0" in found.refusal


def test_somebody_who_tags_the_same_commit_anew_is_noticed(repository, source, alice, mallory):
    sha = repository.push(APP)
    repository.tag("v1", sha, alice)
    found = source(V1, mode=VerifyMode.TAG, keeps=Verification(), allowed_signers=trusting(alice))
    assert found.revision().sha == sha
    repository.tag("v1", sha, mallory)
    assert found.revision().sha == sha
    assert found.verification.fault is SignatureFault.UNKNOWN_KEY
    repository.git("tag", "-f", "v1", sha)
    found.revision()
    assert found.verification.fault is SignatureFault.LIGHTWEIGHT_TAG
    repository.tag("v1", sha, alice)
    found.revision()
    assert not found.verification.refusal


def test_a_tag_moved_to_another_commit_stays_where_it_was(repository, source, alice, mallory):
    old = repository.push(APP)
    repository.tag("v1", old, alice)
    found = source(V1, mode=VerifyMode.TAG, keeps=Verification(), allowed_signers=trusting(alice))
    found.revision()
    new = repository.push({"a.yaml": "a: evil"}, mallory)
    repository.tag("v1", new, mallory)
    assert found.revision().sha == old
    assert f"{old[:7]} stays in force" in found.verification.refusal


def test_a_tag_of_a_tag_counts_by_its_outer_signature(repository, source, alice, bob):
    sha = repository.push(APP)
    inner = repository.tag("inner", sha, bob)
    repository.tag("v1", inner, alice)
    found = source(V1, mode=VerifyMode.TAG, allowed_signers=trusting(alice))
    assert found.revision().sha == sha
    assert refusal(source(V1, mode=VerifyMode.TAG, allowed_signers=trusting(bob))).fault is SignatureFault.UNKNOWN_KEY


@needs_gpg
def test_tags_signed_with_openpgp_do_as_well(repository, source, gpg):
    carol = gpg.signer("carol")
    sha = repository.push(APP)
    repository.tag("v1", sha, carol)
    found = source(V1, mode=VerifyMode.TAG, carol__asc=carol.public)
    found.revision()
    assert found.verification.key == f"OpenPGP {carol.print}"


# -- what stays in force -----------------------------------------------------------------------------------------------


def test_an_unverified_commit_leaves_the_last_good_one_in_force(repository, source, alice, mallory):
    good = repository.push(APP, alice)
    found = source(keeps=Verification(), allowed_signers=trusting(alice))
    found.revision()
    for signer in (NOBODY, mallory):
        bad = repository.push({"a.yaml": f"a: {signer.name}"}, signer)
        assert found.revision().sha == good
        assert found.verification.is_refused
        assert bad[:7] in found.verification.refusal
        assert found.verification.revision == good
    newer = repository.push({"a.yaml": "a: 4"}, alice)
    assert found.revision().sha == newer
    assert not found.verification.refusal


@pytest.mark.parametrize("again_s", [600.0, 0.0], ids=["packs are gone", "packs are cut short, a while ago"])
def test_a_damaged_clone_is_no_reason_to_refuse_a_commit(repository, source, alice, tmp_path, monkeypatch, again_s):
    monkeypatch.setattr(followed_ref, "_LOOKS_AGAIN_S", again_s)
    good = repository.push(APP, alice)
    found = source(keeps=Verification(), allowed_signers=trusting(alice))
    found.revision()
    found._clone.reader.close()  # as after a while without a question
    for pack in (tmp_path / "cache").glob("*.git/objects/pack/*"):
        if again_s:
            pack.unlink()
        else:
            pack.chmod(0o600)
            pack.write_bytes(pack.read_bytes()[:20])
    assert found.revision().sha == good
    assert not found.verification.refusal


def test_who_begins_anew_verifies_again_what_the_status_names(repository, source, alice, mallory):
    good = repository.push(APP, alice)
    forged = repository.push({"a.yaml": "a: 2"}, mallory)
    repository.push({"a.yaml": "a: 3"})
    signers = trusting(alice)
    again = source(keeps=Verification(good), allowed_signers=signers)
    assert again.revision().sha == good
    assert again.verification.signer == "alice@example.com"
    for recorded in (Verification(forged), Verification("0" * 40), Verification()):
        with pytest.raises(UnverifiedError, match="nothing is applied, and drift isn't corrected"):
            source(keeps=recorded, allowed_signers=signers).revision()


def test_a_rotated_key_leaves_in_force_what_was_verified_by_it(repository, source, alice, bob):
    sha = repository.push(APP, alice)
    before = source(keeps=Verification(), allowed_signers=trusting(alice))
    before.revision()
    after = source(keeps=Verification(sha), allowed_signers=trusting(bob))
    after.go_on_from(before)
    assert after.revision().sha == sha
    assert after.verification.fault is SignatureFault.UNKNOWN_KEY
    assert f"{sha[:7]} stays in force" in after.verification.refusal
    after.require_verified(sha)
    with pytest.raises(UnverifiedError):
        source(keeps=Verification(sha), allowed_signers=trusting(bob)).revision()


def test_nobody_may_apply_what_a_preview_shows(repository, source, mallory, alice):
    sha = repository.push(APP, mallory)
    found = source(allowed_signers=trusting(alice))
    assert found.revision().sha == sha
    with pytest.raises(UnverifiedError):
        found.require_verified(sha)


# -- each is judged once -----------------------------------------------------------------------------------------------


def test_git_is_asked_once_for_each_commit_and_set_of_keys(repository, source, alice, bob, monkeypatch):
    asked = []
    judge = check.judge
    monkeypatch.setattr(
        "kubectl_reconcile.source.git.signed.verified.judge", lambda *given: asked.append(given[2]) or judge(*given)
    )
    verdicts, sha = Verdicts(), repository.push(APP, alice)
    for _ in range(3):
        source(verdicts=verdicts, allowed_signers=trusting(alice)).revision()
    assert asked == [sha]
    source(verdicts=verdicts, allowed_signers=trusting(alice, bob)).revision()
    assert asked == [sha, sha]
    other = repository.push({"a.yaml": "a: 2"})
    for _ in range(3):
        source(verdicts=verdicts, allowed_signers=trusting(alice)).revision()
    assert asked == [sha, sha, other]


def test_a_missing_program_is_looked_for_again():
    verdicts, asked = Verdicts(), []

    def judged():
        asked.append(1)
        return check.SignatureVerdict(fault=SignatureFault.NO_PROGRAM)

    for _ in range(2):
        verdicts.of(ObjectType.COMMIT, "a", "b", judged)
    assert len(asked) == 2


def test_many_verdicts_are_not_kept_for_ever():
    verdicts = Verdicts()
    for number in range(5000):
        verdicts.of(
            ObjectType.COMMIT, str(number), "", lambda: check.SignatureVerdict(fault=SignatureFault.NO_SIGNATURE)
        )
    asked = []
    verdicts.of(
        ObjectType.COMMIT, "0", "", lambda: asked.append(1) or check.SignatureVerdict(fault=SignatureFault.NO_SIGNATURE)
    )
    assert asked


# -- clones ------------------------------------------------------------------------------------------------------------


def test_a_server_with_a_shallow_clone_will_do(repository, source, alice, own_git_server, tmp_path):
    repository.push(APP, alice)
    sha = repository.push({"a.yaml": "a: 2"}, alice)
    shallow = own_git_server()
    shutil.rmtree(shallow.folder)
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--depth=1", repository.url, str(shallow.folder)],
        check=True, timeout=300, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
    )  # fmt: skip
    found = source(url=shallow.url, allowed_signers=trusting(alice))
    assert found.revision().sha == sha
    assert found.verification.revision == sha


@pytest.mark.parametrize("signs", [True, False], ids=["signed", "unsigned"])
def test_a_repository_that_names_objects_by_sha256_will_do(own_git_server, source, alice, signs):
    served = own_git_server()
    shutil.rmtree(served.folder)
    subprocess.run(
        ["git", "init", "-q", "--bare", "--object-format=sha256", "--initial-branch=main", str(served.folder)],
        check=True, timeout=300,
    )  # fmt: skip
    repository = SignedRepository(served)
    sha = repository.push(APP, alice if signs else NOBODY)
    assert len(sha) == 64
    found = source(url=served.url, allowed_signers=trusting(alice))
    assert found.revision().sha == sha
    assert found.verification.revision == (sha if signs else "")
    repository.tag("v1", sha, alice)
    tagged = source(V1, mode=VerifyMode.TAG, url=served.url, allowed_signers=trusting(alice))
    assert tagged.revision().files
    assert tagged.verification.signer == "alice@example.com"
    [(_, content)] = tagged.read_many(tagged.revision().files.values())
    assert content == b"a: 1"


def test_a_server_whose_repository_was_recreated_by_sha256_is_followed(own_git_server, source, alice):
    served = own_git_server()
    repository = SignedRepository(served)
    repository.push(APP, alice)
    assert source(url=served.url, allowed_signers=trusting(alice)).revision().files
    shutil.rmtree(served.folder)
    subprocess.run(
        ["git", "init", "-q", "--bare", "--object-format=sha256", "--initial-branch=main", str(served.folder)],
        check=True, timeout=300,
    )  # fmt: skip
    sha = repository.push(APP, alice)
    assert source(url=served.url, allowed_signers=trusting(alice)).revision().sha == sha


def test_a_server_that_gives_everything_at_once_will_do(own_git_server, source, alice):
    repository = SignedRepository(own_git_server(config={"uploadpack.allowFilter": "false"}))
    sha = repository.push(APP, alice)
    found = source(url=repository.url, allowed_signers=trusting(alice))
    assert found.revision().sha == sha
    assert found.verification.revision == sha
