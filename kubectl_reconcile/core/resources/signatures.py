"""What git says of a signature on a commit or tag, parsed: who made it, or why it isn't good.

Vocabulary: a *signed object* is a commit or a tag as git stores it; a *verdict* is what ``git verify-commit --raw`` or
``git verify-tag --raw`` came to: a *signature*, or a *fault*. A *signer* is who a key belongs to by the list of trusted keys, and not who
the commit says that its author is.

Rules: git is the judge. A signature is good only if git's exit status says so *and* its words name one signer and one key; what we read of the
object ourselves serves sentences, and can turn a verdict down but never up. Words of git, gpg and ssh-keygen are in the C
locale. Names of authors are anybody's to choose: they are clipped, and hold no control characters.

Pure: bytes and text in, verdicts out.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from msgspec import Struct

from kubectl_reconcile.core.resources.trusted_keys import TrustedKeys, fingerprint_of

_LONGEST_NAME: Final = 80


class ObjectType(StrEnum):
    """What may be signed."""

    COMMIT = "commit"
    """A commit: the signature covers all files, the message, the authors and all that came before."""
    TAG = "tag"
    """An annotated tag: the signature covers its name, its message and the commit that it points to."""
    ARTIFACT = "artifact"
    """What has a digest in a registry: the signature covers all that the manifest with that digest lists."""


class SignatureFormat(StrEnum):
    """By what something is signed."""

    NONE = ""
    """Nothing."""
    OPENPGP = "OpenPGP"
    """GnuPG and its like."""
    SSH = "SSH"
    """A key as it is used to log in."""
    X509 = "X.509"
    """A certificate (S/MIME), which isn't supported."""


class SignatureFault(StrEnum):
    """Why something isn't verified; the value is the reason of the condition SourceVerified."""

    NO_SIGNATURE = "NoSignature"
    """Nobody signed it."""
    UNKNOWN_KEY = "UnknownKey"
    """It is signed by a key that isn't among those trusted."""
    UNKNOWN_IDENTITY = "UnknownIdentity"
    """It is signed by somebody, proven by a certificate, who isn't among those trusted."""
    UNPROVEN = "UnprovenSignature"
    """A certificate or a log entry that belongs to it isn't proven by the trusted root, or doesn't fit it."""
    EXPIRED_KEY = "ExpiredKey"
    """The key had expired."""
    EARLY_KEY = "KeyNotYetValid"
    """The key isn't valid yet."""
    EXPIRED_SIGNATURE = "ExpiredSignature"
    """The signature itself has an end, which is past."""
    REVOKED_KEY = "RevokedKey"
    """The key was revoked."""
    BAD_SIGNATURE = "BadSignature"
    """What was signed is something else."""
    OTHER_PURPOSE = "KeyNotForGit"
    """The key is trusted for other purposes than git."""
    UNSUPPORTED = "UnsupportedSignature"
    """It is signed in a way that can't be checked here."""
    NO_TAG = "NoTag"
    """A tag is to be verified, and none is followed."""
    LIGHTWEIGHT_TAG = "LightweightTag"
    """The tag is a mere name, which nobody can sign."""
    OTHER_TAG = "OtherTag"
    """The tag was signed under another name, or for another commit."""
    UNUSABLE_KEYS = "KeysUnusable"
    """The trusted keys are missing or can't be read."""
    NO_PROGRAM = "ProgramMissing"
    """What checks such signatures isn't installed where the daemon runs."""
    NOT_ASKED = "VerifyRequired"
    """The daemon wants every Sync to say whose signatures count, and this one doesn't."""
    UNCHECKED = "NotChecked"
    """The check itself failed."""

    @property
    def is_lasting(self) -> bool:
        """Tell whether the same object has the same fault with the same keys, whenever it is looked at."""
        return self not in {SignatureFault.UNUSABLE_KEYS, SignatureFault.NO_PROGRAM, SignatureFault.UNCHECKED}


class Signature(Struct, frozen=True):
    """A good one: who signed by the list of trusted keys, and with which key, by type and fingerprint."""

    signer: str
    key: str

    def __str__(self) -> str:
        return f"{self.signer} ({self.key})"


class SignatureVerdict(Struct, frozen=True):
    """A *signature*, or a *fault*; *detail* is the key that is at fault, or what a program said."""

    signature: Signature | None = None
    fault: SignatureFault | None = None
    detail: str = ""


# --- signed objects -----------------------------------------------------------------------------------------------------


class SignedObject(Struct, frozen=True):
    """What a commit or tag says of itself. *by* is its author or tagger; of a tag, *name* and *target* are its own and what it points to.

    *key* is the fingerprint of the SSH key that it says it is signed by.
    """

    type: ObjectType
    format: SignatureFormat = SignatureFormat.NONE
    by: str = ""
    name: str = ""
    target: str = ""
    key: str = ""

    @classmethod
    def read(cls, type_: ObjectType, data: bytes) -> Self:
        """Read an object as ``git cat-file`` prints it. Never raises: what isn't there is empty."""
        head, _, body = data.partition(b"\n\n")
        signed = _signature_of_commit(head) if type_ is ObjectType.COMMIT else _signature_of_tag(body)
        found = _format_of(signed)
        by = _header(head, b"author" if type_ is ObjectType.COMMIT else b"tagger")
        return cls(
            type_,
            found,
            person(re.sub(r"\s+-?\d+\s+[-+]\d+$", "", by)),
            _header(head, b"tag"),
            _header(head, b"object"),
            _key_of(signed) if found is SignatureFormat.SSH else "",
        )


def person(name: str) -> str:
    """Return the name of an author fit to be shown: on one line, clipped, with nothing in it that a terminal obeys."""
    flat = " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())
    return flat if len(flat) <= _LONGEST_NAME else f"{flat[: _LONGEST_NAME - 1]}…"


def _header(head: bytes, name: bytes) -> str:
    for line in head.split(b"\n"):
        if line.startswith(name + b" "):
            return line[len(name) + 1 :].decode(errors="replace")
    return ""


def _signature_of_commit(head: bytes) -> bytes:
    """Return what the header ``gpgsig`` holds; its further lines begin with a space."""
    found = re.search(rb"^gpgsig(?:-sha256)? (.*(?:\n .*)*)", head, re.MULTILINE)
    return found[1].replace(b"\n ", b"\n") if found else b""


_BEGINNINGS: Final = {
    b"-----BEGIN PGP SIGNATURE-----": SignatureFormat.OPENPGP,
    b"-----BEGIN PGP MESSAGE-----": SignatureFormat.OPENPGP,
    b"-----BEGIN SSH SIGNATURE-----": SignatureFormat.SSH,
    b"-----BEGIN SIGNED MESSAGE-----": SignatureFormat.X509,
}
"""How each format begins, as git's ``gpg-interface.c`` has it."""


def _signature_of_tag(body: bytes) -> bytes:
    """Return the end of a tag's message from the last line on that begins a signature."""
    at = max((body.rfind(b"\n" + each) for each in _BEGINNINGS), default=-1)
    if at >= 0:
        return body[at + 1 :]
    return body if body.startswith(tuple(_BEGINNINGS)) else b""


def _format_of(signature: bytes) -> SignatureFormat:
    return next((form for begin, form in _BEGINNINGS.items() if signature.startswith(begin)), SignatureFormat.NONE)


def _key_of(signature: bytes) -> str:
    """Return the fingerprint of the key in an SSH signature, as ``PROTOCOL.sshsig`` has it: magic, version and key."""
    inner = b"".join(line.strip() for line in signature.split(b"\n") if not line.startswith(b"-----"))
    try:
        blob = base64.b64decode(inner, validate=True)
    except binascii.Error:
        return ""
    length = int.from_bytes(blob[10:14])
    if not blob.startswith(b"SSHSIG") or len(blob) < 14 + length:
        return ""
    return fingerprint_of(blob[14 : 14 + length])


# --- git's words --------------------------------------------------------------------------------------------------------


def verdict_of(found: SignedObject, keys: TrustedKeys, exit_status: int, said: str) -> SignatureVerdict:
    """Return what ``git verify-commit --raw`` or ``verify-tag --raw`` came to, by its exit status and what it said."""
    if found.format is SignatureFormat.OPENPGP:
        return _of_gpg(exit_status, said)
    if found.key in keys.revoked_prints:  # ssh-keygen says of these only that it could not verify
        return SignatureVerdict(fault=SignatureFault.REVOKED_KEY, detail=f"SSH key {found.key}")
    return _of_ssh(found, exit_status, said)


_GOOD_SSH: Final = re.compile(r'Good "git" signature for (.+) with (\S+) key (SHA256:[A-Za-z0-9+/]+)')
_SSH_FAULTS: Final = (
    (r"key has expired", SignatureFault.EXPIRED_KEY),
    (r"key is not yet valid", SignatureFault.EARLY_KEY),
    (r"not permitted for use in signature namespace", SignatureFault.OTHER_PURPOSE),
    (r"revoked", SignatureFault.REVOKED_KEY),
    (r"incorrect signature|invalid format|unsupported", SignatureFault.BAD_SIGNATURE),
    (r"No principal matched", SignatureFault.UNKNOWN_KEY),
    (r"cannot run", SignatureFault.NO_PROGRAM),
)


def _of_ssh(signed: SignedObject, exit_status: int, said: str) -> SignatureVerdict:
    good = [found for line in said.split("\n") if (found := _GOOD_SSH.fullmatch(line.strip()))]
    if exit_status == 0 and len(good) == 1:
        signer, type_, key = good[0].groups()
        return SignatureVerdict(Signature(person(signer), f"{type_} {key}"))
    fault = next((fault for pattern, fault in _SSH_FAULTS if re.search(pattern, said)), SignatureFault.UNCHECKED)
    match fault:
        case SignatureFault.UNCHECKED:
            return SignatureVerdict(fault=fault, detail=_first_line(said))
        case SignatureFault.NO_PROGRAM:
            return SignatureVerdict(fault=fault, detail="ssh-keygen")
    return SignatureVerdict(fault=fault, detail=f"SSH key {signed.key}" if signed.key else "")


_STATUS: Final = "[GNUPG:] "
_SIGNED_BY: Final[Mapping[str, SignatureFault | None]] = {
    "GOODSIG": None,
    "EXPSIG": SignatureFault.EXPIRED_SIGNATURE,
    "EXPKEYSIG": SignatureFault.EXPIRED_KEY,
    "REVKEYSIG": SignatureFault.REVOKED_KEY,
    "BADSIG": SignatureFault.BAD_SIGNATURE,
    "ERRSIG": SignatureFault.UNSUPPORTED,
}
"""The words of gpg of which each signature gets one, after its ``doc/DETAILS``."""
_OF_DATA: Final = {"00", "01"}
"""Classes of signatures on documents; others are on keys."""


def _of_gpg(exit_status: int, said: str) -> SignatureVerdict:
    """Read gpg's status lines. Of several signatures none counts, since which is meant isn't known."""
    lines = [line.removeprefix(_STATUS).split(" ") for line in said.split("\n") if line.startswith(_STATUS)]
    judged = [words for words in lines if words[0] in _SIGNED_BY]
    valid = [words for words in lines if words[0] == "VALIDSIG"]
    if len(judged) != 1:
        return (
            _of_none(said)
            if not judged
            else SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail="it has more than one")
        )
    [words] = judged
    fault = _SIGNED_BY[words[0]]
    signer = person(" ".join(words[2:]))
    if fault is None:
        is_proven = exit_status == 0 and len(valid) == 1 and len(valid[0]) > 10 and valid[0][9] in _OF_DATA
        if is_proven:
            return SignatureVerdict(Signature(signer, f"OpenPGP {valid[0][10]}"))
        return SignatureVerdict(fault=SignatureFault.UNCHECKED, detail="git and gpg disagree about it")
    if words[0] == "ERRSIG":
        return _of_error(words)
    key = valid[0][10] if valid and len(valid[0]) > 10 else words[1]
    return SignatureVerdict(fault=fault, detail=f"OpenPGP {key}{f' of {signer}' if signer else ''}")


def _of_none(said: str) -> SignatureVerdict:
    if "cannot run" in said:
        return SignatureVerdict(fault=SignatureFault.NO_PROGRAM, detail="gpg")
    return SignatureVerdict(fault=SignatureFault.UNCHECKED, detail=_first_line(said))


def _of_error(words: list[str]) -> SignatureVerdict:
    """Read ERRSIG: key id, algorithms, class, time, a code (9: the key is missing, 4: an unknown algorithm), fingerprint."""
    print_ = words[7] if len(words) > 7 and words[7] not in {"", "-"} else words[1] if len(words) > 1 else ""
    if len(words) > 6 and words[6] == "9":
        return SignatureVerdict(fault=SignatureFault.UNKNOWN_KEY, detail=f"OpenPGP {print_}")
    return SignatureVerdict(fault=SignatureFault.UNSUPPORTED, detail=f"OpenPGP {print_}")


_NOT_OUR_MATTER: Final = "can't connect to the agent"
"""What gpg says, and ends with, where an agent's socket would have too long a path: of public keys the agent knows nothing."""


def imported_all(exit_status: int, said: str) -> bool:
    """Tell whether ``gpg --import`` took in all keys that it was given, by its exit status and what it said."""
    counts = [line.split(" ")[2:] for line in said.split("\n") if line.startswith(f"{_STATUS}IMPORT_RES ")]
    if len(counts) != 1 or not all(map(str.isdecimal, counts[0])) or len(counts[0]) < 14:
        return False
    read, nameless, left_out = (int(counts[0][at]) for at in (0, 1, 13))
    return read > 0 and not nameless and not left_out and (exit_status == 0 or _NOT_OUR_MATTER in said)


def _first_line(said: str) -> str:
    told = (line.strip() for line in said.split("\n") if line.strip() and not line.startswith(_STATUS))
    return person(re.sub(r"^(?:error|fatal|gpg): ", "", next(told, "without a reason")))
