"""The keys whose signatures a Sync trusts, as they stand in a Secret or ConfigMap.

Vocabulary: an *entry* is one key of that object and its text. Entry ``allowed_signers`` holds SSH keys and whose each is, as
ssh-keygen(1) has it under ALLOWED SIGNERS; ``revoked_keys`` SSH keys that count no more, one a line; any other entry holds
OpenPGP public keys in ASCII armour, whatever it is called.

ssh-keygen passes over a line that it can't read, and git then says that nobody signed. So lines are read here first, and
what is wrong with one is said. Whatever can't be meant is refused as a whole: half a list of keys is nobody's wish.

Pure: text in, keys out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Final, Self

from msgspec import Struct

ALLOWED_SIGNERS: Final = "allowed_signers"
REVOKED_KEYS: Final = "revoked_keys"

MOST_BYTES: Final = 256 * 1024
"""How much text all entries may have together."""
MOST_KEYS: Final = 1000
"""How many SSH keys, and how many blocks of OpenPGP keys, there may be."""

_ARMOUR: Final = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_ARMOUR_END: Final = "-----END PGP PUBLIC KEY BLOCK-----"
_TYPES: Final = frozenset(
    {
        "ssh-ed25519", "ssh-rsa", "ssh-dss", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)  # fmt: skip
_WORD: Final = re.compile(r'(?:"[^"]*"|[^\s"])+')
_OPTION: Final = re.compile(r'(?:cert-authority|(?:namespaces|valid-after|valid-before)="[^"]*")', re.IGNORECASE)


class KeysError(ValueError):
    """Keys that can't be used: *message* says which and why, *hint* what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(f"{message} (hint: {hint})" if hint else message)


class TrustedKeys(Struct, frozen=True):
    """Keys that were read. *allowed_signers* and *revoked* are as ssh-keygen takes them, *openpgp* as gpg does.

    *revoked_prints* are the fingerprints of those revoked. *digest* is another one whenever a key is another one.
    """

    allowed_signers: str = ""
    revoked: str = ""
    openpgp: str = ""
    revoked_prints: frozenset[str] = frozenset()
    digest: str = ""

    @classmethod
    def of(cls, entries: Mapping[str, str]) -> Self:
        """Read the entries of a Secret or ConfigMap.

        Raises:
            KeysError: one can't be meant so, or there is no key at all.
        """
        if sum(map(len, entries.values())) > MOST_BYTES:
            raise KeysError(f"holds more than {MOST_BYTES // 1024} KiB", "keep only the keys of people who sign")
        for name, text in entries.items():
            _check_text(name, text)
        signers, revoked = entries.get(ALLOWED_SIGNERS, ""), entries.get(REVOKED_KEYS, "")
        blocks = [_blocks(name, text) for name, text in sorted(entries.items()) if name not in _BY_SSH]
        counted = sum(1 for _ in _signers(signers))
        prints = frozenset(_revoked(revoked))
        if not (counted or blocks):
            hint = f"put SSH keys into {ALLOWED_SIGNERS}, or OpenPGP keys (gpg --export --armor) under any other name"
            raise KeysError("holds no key", hint)
        digest = hashlib.sha256(repr(sorted(entries.items())).encode()).hexdigest()
        return cls(_ended(signers) if counted else "", _ended(revoked), "".join(blocks), prints, digest)


_BY_SSH: Final = frozenset({ALLOWED_SIGNERS, REVOKED_KEYS})


def fingerprint_of(blob: bytes) -> str:
    """Return the fingerprint of an SSH key as ssh-keygen prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _check_text(name: str, text: str) -> None:
    """Refuse entries that aren't public keys.

    Raises:
        KeysError: it is a private key, or no text.
    """
    if "PRIVATE KEY" in text:
        hint = "keep only public keys there; anyone who could read this one can sign as its owner, so replace that key"
        raise KeysError(f"entry {name} holds a private key", hint)
    if any(not (letter.isprintable() or letter in "\n\r\t") for letter in text):
        raise KeysError(f"entry {name} isn't text", "give OpenPGP keys in ASCII armour: gpg --export --armor")


def _blocks(name: str, text: str) -> str:
    """Return the armoured blocks of an entry, and nothing around them.

    Raises:
        KeysError: it has none, or one that doesn't end.
    """
    lines, kept, inside, count = text.replace("\r", "").split("\n"), [], False, 0
    for each in lines:
        inside = inside or each.rstrip() == _ARMOUR
        if inside:
            count += each.rstrip() == _ARMOUR
            kept.append(each)
        inside = inside and each.rstrip() != _ARMOUR_END
    if not count:
        hint = f"SSH keys go into {ALLOWED_SIGNERS}, one a line: alice@example.com ssh-ed25519 AAAA…"
        raise KeysError(f"entry {name} holds no OpenPGP public key in ASCII armour", hint)
    if inside:
        raise KeysError(f"entry {name} has an incomplete key", f"the last line of each is {_ARMOUR_END}")
    if count > MOST_KEYS:
        raise KeysError(f"entry {name} holds more than {MOST_KEYS} blocks of keys")
    return "\n".join([*kept, ""])


# --- SSH ----------------------------------------------------------------------------------------------------------------


def _lines(text: str, entry: str) -> Iterator[tuple[str, list[str]]]:
    """Yield where each line stands, and its words; comments and empty lines are left out.

    Raises:
        KeysError: there are too many.
    """
    count = 0
    for number, each in enumerate(text.split("\n"), 1):
        line = each.strip()
        if line and not line.startswith("#"):
            count += 1
            if count > MOST_KEYS:
                raise KeysError(f"entry {entry} holds more than {MOST_KEYS} keys")
            yield f"entry {entry}, line {number}", _WORD.findall(line)


def _signers(text: str) -> Iterator[str]:
    """Yield the fingerprint of each key of ``allowed_signers``.

    Raises:
        KeysError: a line can't be read.
    """
    for place, words in _lines(text, ALLOWED_SIGNERS):
        if words and words[0] in _TYPES:
            raise KeysError(
                f"{place}: doesn't say whose key it is", f"begin the line with it: alice@example.com {words[0]} …"
            )
        at = 1 if len(words) > 1 and words[1] in _TYPES else 2
        if at == 2 and len(words) > 1:
            _check_options(place, words[1])
        if len(words) < at + 2:
            raise KeysError(f"{place}: has no SSH key", "write it as: alice@example.com ssh-ed25519 AAAA…")
        yield fingerprint_of(_blob(place, words[at], words[at + 1]))


def _revoked(text: str) -> Iterator[str]:
    """Yield the fingerprint of each key of ``revoked_keys``.

    Raises:
        KeysError: a line can't be read.
    """
    for place, words in _lines(text, REVOKED_KEYS):
        if len(words) < 2:
            raise KeysError(f"{place}: has no SSH key", "write it as in the .pub file: ssh-ed25519 AAAA…")
        yield fingerprint_of(_blob(place, words[0], words[1]))


def _check_options(place: str, options: str) -> None:
    for option in re.findall(r'(?:"[^"]*"|[^,"])+', options):
        if not _OPTION.fullmatch(option):
            known = 'cert-authority, namespaces="git", valid-after="…" and valid-before="…"'
            raise KeysError(f"{place}: {option[:40]!r} is neither an option nor a type of key", f"options are {known}")


def _blob(place: str, type_: str, text: str) -> bytes:
    """Return an SSH key as bytes.

    Raises:
        KeysError: it is none, or of another type than the line says.
    """
    if type_ not in _TYPES:
        raise KeysError(
            f"{place}: {type_[:40]!r} isn't a type of an SSH key",
            "types are ssh-ed25519, ssh-rsa, ecdsa-sha2-… and sk-…",
        )
    try:
        blob = base64.b64decode(text, validate=True)
    except binascii.Error:
        blob = b""
    length = int.from_bytes(blob[:4])
    if blob[4 : 4 + length] != type_.encode() or len(blob) <= 4 + length:
        raise KeysError(f"{place}: the key is damaged", "copy the line of the .pub file exactly")
    return blob
