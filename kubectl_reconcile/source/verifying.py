"""What is alike wherever only verified revisions count, commits or artifacts: what stays in force, and who is given what isn't verified.

Vocabulary: the *tip* is the revision that is asked for; the revision *in force* is the last that was verified.

Rules:

- Whoever keeps up what is in force (*keeps*) is given that while the tip isn't verified. It was verified by this very source, or, when a
  daemon begins, is the one that the Sync's status names, which is verified again: anybody may have written that.
- Whoever looks (a preview) is given the tip in any case, and told. Nobody may apply what ``require_verified`` refuses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.resources.signatures import ObjectType, Signature, SignatureFault, SignatureVerdict
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import Verification, VerifySpec, refusal_of
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.source.base import Verified
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line

K = TypeVar("K")


class UnverifiedError(SourceError):
    """What was asked for isn't signed as the Sync says; *verification* tells why."""

    def __init__(self, message: str, hint: str, verification: Verification) -> None:
        super().__init__(SourceFault.UNVERIFIED, message, hint)
        self.verification = verification


class Judged(Struct, frozen=True):
    """What was found of a revision, and of the *tag* that points to it: who signed, or why it may not be applied."""

    signature: Signature | None = None
    tag: str = ""
    fault: SignatureFault = SignatureFault.UNCHECKED
    message: str = ""
    hint: str = ""

    def refused(self, in_force: Verification) -> Verification:
        """Return what is known then: *in_force* stays."""
        stays = f"; {short_of(in_force.revision)} stays in force" if in_force.revision else ""
        return replace(in_force, fault=self.fault, refusal=one_line(f"{self.message}{stays}{_hinted(self.hint)}"))


def _hinted(hint: str) -> str:
    return f" (hint: {hint})" if hint else ""


class Verifying(ABC, Generic[K]):
    """What counts only as far as it is signed by trusted keys; see the module.

    *field* is where the Sync says whose, *place* where the keys are. Whoever is one calls ``_begin``, and says how a revision is judged.
    """

    _nothing_before: ClassVar[str] = "nothing was verified before"
    """Why nothing stays in force when a daemon begins and no status names a revision."""

    field: str
    place: str
    keys: K | KeysError
    verification: Verification

    def _begin(self, spec: VerifySpec, field: str, namespace: str, keeps: Verification | None) -> None:
        """Begin with no keys. With *keeps*, what that records stays in force once it is verified again."""
        self.field, self.place = field, f"{spec.kind} {namespace}/{spec.name}"
        self._recorded = keeps
        self._in_force = Verification()
        self._passed: set[str] = set()
        self.keys = KeysError("were not read")
        self.verification = Verification()

    @property
    def is_preview(self) -> bool:
        """Whether this is for who looks, and not for who keeps up what is in force."""
        return self._recorded is None

    def trust(self, entries: Mapping[str, str] | KeysError) -> None:
        """Trust from now on the keys in these entries of a Secret or ConfigMap, or none, and say why."""
        try:
            self.keys = entries if isinstance(entries, KeysError) else self._keys_in(entries)
        except KeysError as error:
            self.keys = error

    def check_keys(self) -> None:
        """Return if signatures can be checked here.

        Raises:
            SourceError: the keys can't be used.
        """
        if isinstance(self.keys, KeysError):
            raise SourceError(SourceFault.UNVERIFIED, f"{self.place} {self.keys.message}", self.keys.hint)

    def go_on_from(self, earlier: Verified | None) -> None:
        """Keep in force what was verified *earlier* for the same Sync, by whatever keys there were, if that can still be had."""
        if isinstance(earlier, type(self)) and self._has_what_is_of(earlier):
            self._in_force = earlier._in_force  # noqa: SLF001 - its own kind
            self._passed |= {self._in_force.revision} - {""}
            self.verification = earlier.verification

    def require_verified(self, sha: str) -> None:
        """Return if the revision *sha* may be applied.

        Raises:
            UnverifiedError: it isn't verified.
            SourceError: nobody can tell.
        """
        if sha not in self._passed:
            judged = self._judged(sha, self._tag())
            if judged.signature is None:
                raise UnverifiedError(judged.message, judged.hint, judged.refused(Verification()))

    def _counted(self, sha: str) -> str:
        """Return the revision that counts where the tip is *sha*: that, if it is verified or for who looks, else what is in force.

        Raises:
            UnverifiedError: nothing is verified.
            SourceError: nobody can tell.
        """
        judged = self._judged(sha, self._tag())
        if judged.signature is not None:
            self._in_force = self.verification = self._good(sha, judged.tag, judged.signature)
            return sha
        if self._recorded is None:
            self.verification = judged.refused(Verification())
            return sha
        if not self._in_force.revision:
            self._in_force = self._again(self._recorded, judged, sha)
        self.verification = judged.refused(self._in_force)
        return self._in_force.revision

    def _good(self, sha: str, tag: str, signature: Signature) -> Verification:
        self._passed.add(sha)
        return Verification(sha, tag, signature.signer, signature.key)

    def _again(self, recorded: Verification, tip: Judged, sha: str) -> Verification:
        """Return what stays in force when a daemon begins: what the status names, if that is verified now; the tip, which isn't, is *sha*.

        Raises:
            UnverifiedError: nothing is.
        """
        why = self._nothing_before
        if recorded.revision:
            try:
                self._require_there(recorded.revision)
                judged = self._judged(recorded.revision, recorded.tag)
            except SourceError as error:
                why = error.message
            else:
                if judged.signature is not None:
                    return self._good(recorded.revision, judged.tag, judged.signature)
                is_same = recorded.revision == sha or judged.fault is SignatureFault.UNUSABLE_KEYS
                why = "" if is_same else f"what was applied last isn't verified either: {judged.message}"
        message = f"{tip.message}; nothing is applied, and drift isn't corrected{f', because {why}' if why else ''}"
        raise UnverifiedError(
            message, tip.hint, replace(tip.refused(Verification()), refusal=one_line(f"{message}{_hinted(tip.hint)}"))
        )

    def _unusable_keys(self, subject: str, type_: ObjectType, why: KeysError) -> Judged:
        """Return what is found where there are no keys."""
        verdict = SignatureVerdict(fault=SignatureFault.UNUSABLE_KEYS, detail=why.message)
        return replace(self._refused(subject, type_, verdict), hint=why.hint)

    def _refused(self, subject: str, type_: ObjectType, verdict: SignatureVerdict) -> Judged:
        message, hint = refusal_of(subject, type_, verdict, self.place)
        return Judged(fault=verdict.fault or SignatureFault.UNCHECKED, message=message, hint=hint)

    # --- what each says itself -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def made_from(self) -> str:
        """How ``kubectl create`` is given such keys."""

    def _tag(self) -> str:
        """Return the id of the tag that points to the tip, where one may be signed instead."""
        return ""

    def _has_what_is_of(self, earlier: Self) -> bool:  # noqa: ARG002 - some ask
        """Tell whether what is in force by *earlier* is to be had here."""
        return True

    @abstractmethod
    def _keys_in(self, entries: Mapping[str, str]) -> K:
        """Return the keys in the entries of a Secret or ConfigMap.

        Raises:
            KeysError: they can't be used.
        """

    @abstractmethod
    def _require_there(self, sha: str) -> None:
        """Return if an earlier revision can be read.

        Raises:
            SourceError: it can't.
        """

    @abstractmethod
    def _judged(self, sha: str, tag: str) -> Judged:
        """Return what is found of a revision, and of a *tag* that points to it.

        Raises:
            SourceError: nobody can tell.
        """
