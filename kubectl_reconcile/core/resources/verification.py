"""Whether what a Sync follows is signed as it asks, in sentences, in its status, and what follows from that.

Vocabulary: a *revision* is a commit, or an artifact of a registry, such as a chart; the *revision in force* is the one that is kept up in the cluster; the *refusal* is
why a newer one isn't. A Sync that verifies has both, one, or none of them.

Rules: each fault has a sentence of its own, which says what is unsigned, who made it where that is known, and what to do. What stands in a status is no
proof of anything: it says where to look, and is verified again.

Pure: values in, sentences out.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import Condition, Manifest, mapping_of
from kubectl_reconcile.core.resources.fields import SyncSpecError, check_fields
from kubectl_reconcile.core.resources.oci.identities import OidcIdentity, identities_of
from kubectl_reconcile.core.resources.signatures import ObjectType, SignatureFault, SignatureVerdict, SignedObject
from kubectl_reconcile.core.revisions import is_packed, short_of

CONDITION: Final = "SourceVerified"
"""The condition that reports signatures, on Syncs that ask for them; named as Flux has it."""


class VerifyMode(StrEnum):
    """``spec.source.git.verify.mode``: what must be signed by a trusted key."""

    COMMIT = "Commit"
    """The commit that is followed. Flux calls it HEAD."""
    TAG = "Tag"
    """The tag that is followed."""
    COMMIT_OR_TAG = "CommitOrTag"
    """Either of them."""
    COMMIT_AND_TAG = "CommitAndTag"
    """Both. Flux calls it TagAndHEAD."""

    @property
    def needs_tag(self) -> bool:
        """Tell whether nothing but a tag can be verified so."""
        return self in {VerifyMode.TAG, VerifyMode.COMMIT_AND_TAG}


class VerifySpec(Struct, frozen=True):
    """``verify`` of a source: what must be signed, and the Secret or ConfigMap (its *kind*) of the Sync's namespace with the keys.

    Where *identities* count, certificates name who signs, and the Secret holds the root that these are trusted by.
    """

    kind: str
    name: str
    mode: VerifyMode = VerifyMode.COMMIT
    identities: tuple[OidcIdentity, ...] = ()

    @classmethod
    def of(cls, found: Manifest | None, at: str, *, modes: bool = False, certificates: bool = False) -> Self | None:
        """Read it from its wire form, which is at the field *at*; None where nothing has to be signed.

        *modes* tells whether there are several things that may be, and *certificates* whether these may name who signs.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        if found is None:
            return None
        certified = (_IDENTITIES, _ROOT) if certificates else ()
        check_fields(found, (*_KEPT_IN, *certified, *(("mode",) if modes else ())), at)
        if certificates and any(found.get(name) for name in certified):
            return cls._by_certificates(found, at)
        named = {kind: name for key, kind in _KEPT_IN.items() if (name := (found.get(key) or {}).get("name"))}
        if len(named) != 1:
            raise SyncSpecError(at, f"{' and '.join(_KEPT_IN)} exclude each other; give one, which holds the keys")
        [(kind, name)] = named.items()
        text = found.get("mode", VerifyMode.COMMIT)
        try:
            mode = VerifyMode(text)
        except ValueError:
            raise SyncSpecError(f"{at}.mode", f"{text!r} isn't one of {', '.join(VerifyMode)}") from None
        return cls(kind, name, mode)

    @classmethod
    def _by_certificates(cls, found: Manifest, at: str) -> Self:
        if any(found.get(name) for name in _KEPT_IN):
            raise SyncSpecError(
                at,
                f"{', '.join(_KEPT_IN)} and {_IDENTITIES} exclude each other; give one, which says whose signatures count",
            )
        root = (found.get(_ROOT) or {}).get("name")
        if not root:
            raise SyncSpecError(
                f"{at}.{_ROOT}",
                f"is required beside {_IDENTITIES}: it names the Secret with the root that certificates are trusted by",
            )
        return cls("Secret", root, identities=identities_of(found.get(_IDENTITIES), f"{at}.{_IDENTITIES}"))


_IDENTITIES: Final = "matchOIDCIdentity"
_ROOT: Final = "trustedRootSecretRef"
_KEPT_IN: Final = {"secretRef": "Secret", "configMapRef": "ConfigMap"}
"""Where the keys may be whose signatures are trusted."""
_ID: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PACKED: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}@)?sha256:[0-9a-f]{64}")


class Verification(Struct, frozen=True):
    """What is known of the signatures of what a Sync follows.

    *revision* is the one in force, verified, with *signer* and *key*, and of a commit with the annotated *tag* (its id) if that was what was signed; empty where
    none is. *refusal* is why the newest isn't in force, with its *fault*, empty where it is.
    """

    revision: str = ""
    tag: str = ""
    signer: str = ""
    key: str = ""
    fault: SignatureFault | None = None
    refusal: str = ""

    @property
    def is_refused(self) -> bool:
        """Tell whether the newest revision may not be applied."""
        return bool(self.refusal)

    @classmethod
    def recorded(cls, sync: Manifest | None) -> Self:
        """Return what the status of a live Sync says was verified last, which is yet to be verified again."""
        status = mapping_of((sync or {}).get("status"))
        noted = mapping_of(status.get("verified"))
        revision, tag = str(noted.get("revision") or ""), str(noted.get("tag") or "")
        if not _is_revision(revision):  # a pass before signatures were asked for, or none
            revision, tag = str(status.get("lastAppliedRevision") or ""), ""
        return cls(revision if _is_revision(revision) else "", tag if _ID.fullmatch(tag) else "")

    def status(self) -> dict[str, Any]:
        """Return what is noted of it in the status of its Sync."""
        found = {"revision": self.revision, "tag": self.tag, "signer": self.signer, "key": self.key}
        return {name: value for name, value in found.items() if value}

    def condition(self) -> Condition:
        """Return the condition that reports it."""
        if self.refusal:
            return Condition(CONDITION, "False", (self.fault or SignatureFault.UNCHECKED).value, self.refusal)
        what = f"{'artifact' if is_packed(self.revision) else 'commit'} {short_of(self.revision)}"
        what = f"tag {self.tag[:7]} on {what}" if self.tag else what
        return Condition(CONDITION, "True", "GoodSignature", f"{what} is signed by {self.signer} ({self.key})")


def _is_revision(text: str) -> bool:
    return bool(_ID.fullmatch(text) or _PACKED.fullmatch(text))


# --- sentences ----------------------------------------------------------------------------------------------------------

_SIGN_AGAIN: Final = "sign it again with a valid key"
_WHO: Final = "ask who pushed it"

_SENTENCES: Final = {
    SignatureFault.NO_SIGNATURE: ("{subject} has no signature", "{sign}"),
    SignatureFault.UNKNOWN_KEY: ("{subject} is signed by {key}, which isn't among the keys of {keys}", "{unknown}"),
    SignatureFault.UNKNOWN_IDENTITY: (
        "{subject} is signed by {detail}, whom matchOIDCIdentity doesn't name",
        "if they may decide what is applied, add them to verify.matchOIDCIdentity",
    ),
    SignatureFault.UNPROVEN: (
        "{subject} has a signature that isn't proven{of}",
        "see whether {keys} holds the root of those who sign",
    ),
    SignatureFault.EXPIRED_KEY: (
        "{subject} is signed by a key that has expired{of}",
        f"{_SIGN_AGAIN}, or put the renewed key into {{keys}}",
    ),
    SignatureFault.EARLY_KEY: ("{subject} is signed by a key that isn't valid yet{of}", "see valid-after in {keys}"),
    SignatureFault.EXPIRED_SIGNATURE: ("{subject} has a signature that has expired{of}", _SIGN_AGAIN),
    SignatureFault.REVOKED_KEY: ("{subject} is signed by a key that was revoked{of}", f"{_WHO}, and {_SIGN_AGAIN}"),
    SignatureFault.BAD_SIGNATURE: (
        "{subject} isn't what was signed{of}",
        f"somebody changed it after it was signed: {_WHO}",
    ),
    SignatureFault.OTHER_PURPOSE: (
        "{subject} is signed by a key that isn't for git{of}",
        'namespaces="git" in {keys} would allow it',
    ),
    SignatureFault.LIGHTWEIGHT_TAG: (
        "{subject} is a lightweight tag, which has no signature",
        "recreate it with git tag -s -f, and push it",
    ),
    SignatureFault.NO_TAG: (
        "{subject} isn't followed as a tag, and only tags are verified",
        "follow a tag (spec.source.git.tag or semver), or set spec.source.git.verify.mode to Commit",
    ),
    SignatureFault.OTHER_TAG: (
        "{subject} was signed for something else: {detail}",
        f"somebody moved it: {_WHO}, and sign a tag of that name",
    ),
    SignatureFault.UNUSABLE_KEYS: ("{subject} can't be verified: {keys} {detail}", ""),
    SignatureFault.NO_PROGRAM: (
        "{subject} can't be verified: {detail} isn't installed where it is checked",
        "install it there; the daemon's image has it",
    ),
    SignatureFault.UNSUPPORTED: (
        "{subject} has a signature that can't be checked{of}",
        "sign with {by}",
    ),
    SignatureFault.NOT_ASKED: (
        "{subject} isn't applied: this daemon requires signatures (--require-verify), and the Sync has no {detail}",
        "name a Secret or ConfigMap with the keys in {detail}",
    ),
    SignatureFault.UNCHECKED: ("{subject} could not be verified: {detail}", "it will be retried"),
}
"""Why something isn't verified, and what to do about it."""

_SIGN: Final = {
    ObjectType.COMMIT: "push a signed commit after it (git commit -S), or revert it by one",
    ObjectType.TAG: "sign it (git tag -s -f) and push it",
    ObjectType.ARTIFACT: "sign it by its digest (cosign sign)",
}
_BY: Final = {
    ObjectType.COMMIT: "an SSH or OpenPGP key",
    ObjectType.TAG: "an SSH or OpenPGP key",
    ObjectType.ARTIFACT: "cosign, by a key or a certificate, whichever verify names",
}

_FORGES: Final = {
    "4AEE18F83AFDEB23": ("GitHub", "https://github.com/web-flow.gpg"),
    "B5690EEEBB952194": ("GitHub", "https://github.com/web-flow.gpg"),
}
"""Keys by which forges sign what is merged or edited in the browser, by the last 16 digits of their fingerprints."""


def subject_of(found: SignedObject, object_id: str) -> str:
    """Return what a signed object is called in a sentence: ``commit 3f9c2e1 by Bob <bob@example.com>``."""
    name = f" {found.name}" if found.type is ObjectType.TAG and found.name else ""
    return f"{found.type}{name} {object_id[:7]}{f' by {found.by}' if found.by else ''}"


_NO_SIGNATURES: Final = (
    "what it follows isn't applied: this daemon requires signatures (--require-verify), and a chart of a Helm repository over HTTP has none that can be verified",
    "take the chart from a registry (oci://…), with spec.source.chart.verify",
)


def not_asked(field: str) -> Verification:
    """Return the refusal of a Sync that asks for no signatures, where all have to; *field* is where it would ask, empty where nothing of it can be verified."""
    fault = SignatureFault.NOT_ASKED
    verdict = SignatureVerdict(fault=fault, detail=field)
    message, hint = refusal_of("what it follows", ObjectType.COMMIT, verdict, "") if field else _NO_SIGNATURES
    return Verification(fault=fault, refusal=f"{message} (hint: {hint})")


def refusal_of(subject: str, type_: ObjectType, verdict: SignatureVerdict, keys: str) -> tuple[str, str]:
    """Return why *subject* isn't verified by *keys* (as in ``Secret shop/keys``), and what to do about it."""
    detail = verdict.detail
    told = {
        "subject": subject, "keys": keys, "detail": detail, "of": f": {detail}" if detail else "",
        "key": detail or "a key", "sign": _SIGN[type_], "by": _BY[type_], "unknown": _unknown(detail, keys),
    }  # fmt: skip
    message, hint = _SENTENCES[verdict.fault or SignatureFault.UNCHECKED]
    return message.format_map(told), hint.format_map(told)


def _unknown(detail: str, keys: str) -> str:
    """Return what to do about a key that isn't trusted; the keys of forges stand for whoever may merge there."""
    forge = _FORGES.get(detail[-16:])
    if forge is None:
        return f"if its owner may decide what is applied, add the key to {keys}"
    name, url = forge
    return (
        f"it is {name}'s own, for merges in the browser: add {url} to {keys} if all who may merge there may decide, "
        "otherwise merge on your own machine"
    )
