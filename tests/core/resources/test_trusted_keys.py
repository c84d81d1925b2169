"""Keys in a Secret or ConfigMap: what can be meant is read, and what can't says where and why."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.trusted_keys import MOST_BYTES, KeysError, TrustedKeys, fingerprint_of


def ssh_key(type_: str = "ssh-ed25519", rest: bytes = b"\0\0\0\x20" + b"k" * 32) -> str:
    blob = len(type_).to_bytes(4) + type_.encode() + rest
    return f"{type_} {base64.b64encode(blob).decode()}"


KEY = ssh_key()
PRINT = fingerprint_of(base64.b64decode(KEY.split()[1]))
ARMOUR = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"

GOOD = {
    "one signer": f"alice@example.com {KEY}",
    "a comment after the key": f"alice@example.com {KEY} alice's laptop",
    "comments and empty lines": f"# ours\n\n  alice@example.com {KEY}\n",
    "several names": f"alice@example.com,alice@example.org {KEY}",
    "a pattern": f"*@example.com cert-authority {KEY}",
    "a name in quotes": f'"alice of ours" {KEY}',
    "options": f'alice namespaces="git,file",valid-after="20250101",valid-before="20990101Z" {KEY}',
    "options of any case": f'alice Namespaces="git" {KEY}',
    "spaces in an option": f'alice namespaces="git, file" {KEY}',
    "lines that end as in Windows": f"alice {KEY}\r\nbob {KEY}\r\n",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_allowed_signers_are_read(text):
    assert TrustedKeys.of({"allowed_signers": text}).allowed_signers == (text if text.endswith("\n") else f"{text}\n")


BAD = {
    "no name": (KEY, "entry allowed_signers, line 1: doesn't say whose key it is"),
    "no key": ("alice@example.com", "line 1: has no SSH key"),
    "no key after options": ('alice namespaces="git" ssh-ed25519', "line 1: has no SSH key"),
    "a damaged key": (f"# ours\nalice {KEY[:-4]}!!!!", "line 2: the key is damaged"),
    "a key of another type": (f"alice ssh-rsa {KEY.split()[1]}", "line 1: the key is damaged"),
    "an empty key": (f"alice {ssh_key(rest=b'')}", "line 1: the key is damaged"),
    "an unknown option": (f"alice no-touch {KEY}", "'no-touch' is neither an option nor a type of key"),
    "an option without quotes": (f"alice namespaces=git {KEY}", "'namespaces=git' is neither"),
    "words without quotes": (f"alice of ours {KEY}", "'of' is neither"),
    "control characters": (f"alice\x1b[2J {KEY}", "entry allowed_signers isn't text"),
    "another separator of lines": (f"alice {KEY}\u2028bob {KEY}", "entry allowed_signers isn't text"),
    "too many": ("\n".join([f"alice {KEY}"] * 1001), "holds more than 1000 keys"),
    "too much": ("#" * (MOST_BYTES + 1), "holds more than 256 KiB"),
    "nothing": ("# none yet\n", "holds no key"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_what_can_not_be_meant_says_where_and_why(text, said):
    with pytest.raises(KeysError) as raised:
        TrustedKeys.of({"allowed_signers": text})
    assert said in str(raised.value)
    assert str(raised.value).isprintable()


WRITTEN, COPIED = "write it as: alice@example.com ssh-ed25519 AAAA…", "copy the line of the .pub file exactly"
OPTIONS = 'options are cert-authority, namespaces="git", valid-after="…" and valid-before="…"'
TYPES = "types are ssh-ed25519, ssh-rsa, ecdsa-sha2-… and sk-…"
ELSEWHERE = "put SSH keys into allowed_signers, or OpenPGP keys (gpg --export --armor) under any other name"
WHOLE = {
    "no name": (
        {"allowed_signers": KEY}, "entry allowed_signers, line 1: doesn't say whose key it is",
        "begin the line with it: alice@example.com ssh-ed25519 …",
    ),
    "no key": ({"allowed_signers": "alice"}, "entry allowed_signers, line 1: has no SSH key", WRITTEN),
    "a damaged key": ({"allowed_signers": "alice ssh-rsa AAAA"}, "entry allowed_signers, line 1: the key is damaged", COPIED),
    "an unknown option": (
        {"allowed_signers": f"alice {'x' * 41} {KEY}"},
        f"entry allowed_signers, line 1: '{'x' * 40}' is neither an option nor a type of key", OPTIONS,
    ),
    "an unknown type after options": (
        {"allowed_signers": f'alice namespaces="git" {"x" * 41} AAAA'},
        f"entry allowed_signers, line 1: '{'x' * 40}' isn't a type of an SSH key", TYPES,
    ),
    "no text": (
        {"allowed_signers": "a\x00"}, "entry allowed_signers isn't text", "give OpenPGP keys in ASCII armour: gpg --export --armor",
    ),
    "too much": ({"a": "#" * (MOST_BYTES + 1)}, "holds more than 256 KiB", "keep only the keys of people who sign"),
    "too much in all": ({"a": "#" * MOST_BYTES, "b": "#"}, "holds more than 256 KiB", "keep only the keys of people who sign"),
    "nothing": ({}, "holds no key", ELSEWHERE),
    "a private key": (
        {"id": "PRIVATE KEY"}, "entry id holds a private key",
        "keep only public keys there; anyone who could read this one can sign as its owner, so replace that key",
    ),
    "no armour": (
        {"README": "our keys"}, "entry README holds no OpenPGP public key in ASCII armour",
        "SSH keys go into allowed_signers, one a line: alice@example.com ssh-ed25519 AAAA…",
    ),
    "no end": (
        {"alice.asc": ARMOUR[:40]}, "entry alice.asc has an incomplete key",
        "the last line of each is -----END PGP PUBLIC KEY BLOCK-----",
    ),
    "too many blocks": ({"a.asc": ARMOUR * 1001}, "entry a.asc holds more than 1000 blocks of keys", ""),
    "too many keys": ({"allowed_signers": f"alice {KEY}\n" * 1001}, "entry allowed_signers holds more than 1000 keys", ""),
    "too many revoked keys": (
        {"allowed_signers": f"alice {KEY}", "revoked_keys": f"{KEY}\n" * 1001}, "entry revoked_keys holds more than 1000 keys", "",
    ),
    "a revoked key that is none": (
        {"allowed_signers": f"alice {KEY}", "revoked_keys": "alice"}, "entry revoked_keys, line 1: has no SSH key",
        "write it as in the .pub file: ssh-ed25519 AAAA…",
    ),
    "a revoked key of no type": (
        {"allowed_signers": f"alice {KEY}", "revoked_keys": "rsa AAAA"},
        "entry revoked_keys, line 1: 'rsa' isn't a type of an SSH key", TYPES,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "message", "hint"), WHOLE.values(), ids=WHOLE)
def test_what_can_not_be_meant_says_what_to_do(entries, message, hint):
    with pytest.raises(KeysError) as raised:
        TrustedKeys.of(entries)
    assert (raised.value.message, raised.value.hint) == (message, hint)
    assert str(raised.value) == (f"{message} (hint: {hint})" if hint else message)


def test_as_many_keys_as_are_allowed_are_read():
    many = TrustedKeys.of(
        {"allowed_signers": f"alice {KEY}\n" * 1000, "a.asc": ARMOUR * 1000, "revoked_keys": f"{KEY}\n" * 1000}
    )
    assert many.openpgp == ARMOUR * 1000
    assert many.allowed_signers == f"alice {KEY}\n" * 1000
    assert TrustedKeys.of({"allowed_signers": f"alice {KEY}\n#".ljust(MOST_BYTES, "#")}).revoked == ""


def test_revoked_keys_are_handed_on_with_a_last_line_that_ends():
    found = TrustedKeys.of({"a.asc": ARMOUR, "revoked_keys": KEY})
    assert (found.revoked, found.allowed_signers) == (f"{KEY}\n", "")


def test_a_fingerprint_is_that_of_ssh_keygen():
    # printf key | openssl dgst -sha256 -binary | base64 | tr -d =
    assert fingerprint_of(b"key") == "SHA256:LHDhK3oGRvkiefQnx7OOczTY5Tic/xZ6HcMOc/gmtoM"


def test_a_private_key_is_refused_and_not_shown():
    for kind in ("OPENSSH", "PGP"):
        with pytest.raises(KeysError, match="holds a private key") as raised:
            TrustedKeys.of({"id": f"-----BEGIN {kind} PRIVATE KEY-----\nhunter2\n"})
        assert "hunter2" not in str(raised.value)


def test_openpgp_keys_may_have_any_name_and_words_around_them():
    keys = TrustedKeys.of({"alice.asc": f"Alice:\n{ARMOUR}\nthat was it\n", "bob": ARMOUR.replace("\n", "\r\n")})
    assert keys.openpgp == ARMOUR * 2


def test_an_entry_that_is_no_key_is_said():
    with pytest.raises(KeysError, match=r"entry README holds no OpenPGP public key"):
        TrustedKeys.of({"alice.asc": ARMOUR, "README": "our keys"})
    with pytest.raises(KeysError, match=r"entry alice\.asc has an incomplete key"):
        TrustedKeys.of({"alice.asc": ARMOUR[:40]})
    with pytest.raises(KeysError, match="holds no key"):
        TrustedKeys.of({})
    with pytest.raises(KeysError, match="holds no key"):
        TrustedKeys.of({"revoked_keys": KEY})


def test_revoked_keys_are_known_by_their_fingerprints():
    keys = TrustedKeys.of({"allowed_signers": f"alice {KEY}", "revoked_keys": f"# lost\n{KEY} alice's laptop\n"})
    assert keys.revoked_prints == {PRINT}
    with pytest.raises(KeysError, match="entry revoked_keys, line 1: has no SSH key"):
        TrustedKeys.of({"allowed_signers": f"alice {KEY}", "revoked_keys": "alice"})


@pytest.mark.parametrize("line", ['"', '""'])
def test_a_line_of_quotes_alone_has_no_key(line):
    with pytest.raises(KeysError, match="entry allowed_signers, line 1: has no SSH key"):
        TrustedKeys.of({"allowed_signers": line})


@given(
    st.dictionaries(
        st.sampled_from(["allowed_signers", "revoked_keys", "a.asc", "b"]),
        st.text() | st.sampled_from([ARMOUR, f"a {KEY}", KEY]),
    )
)
def test_any_text_is_read_or_refused_in_a_sentence(entries):
    try:
        keys = TrustedKeys.of(entries)
    except KeysError as error:
        said = str(error)
    else:
        said = ""
        assert keys.allowed_signers or keys.openpgp
        assert keys.digest == TrustedKeys.of(dict(reversed(entries.items()))).digest
    assert said.isprintable()


@given(st.text(alphabet="abc \n"), st.text(alphabet="abc \n"))
def test_other_keys_have_another_digest(one, other):
    first, second = ({"allowed_signers": f"a {KEY}", "a.asc": f"{text}\n{ARMOUR}"} for text in (one, other))
    assert (TrustedKeys.of(first).digest == TrustedKeys.of(second).digest) == (one == other)
