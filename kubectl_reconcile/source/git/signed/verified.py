"""A Git source of which only verified revisions come: commits and tags that are signed by trusted keys.

Vocabulary: the *tip* is the commit that the ref is at; the revision *in force* is the last that was verified.

Rules:

- Only the tip is verified, and the tag that points to it, as whoever signs a commit signs all that it holds and all that came before.
- Whoever keeps up what is in force (*keeps*) is given that while the tip isn't verified. It was verified by this very source, or, when a
  daemon begins, is the one that the Sync's status names, which is verified again: anybody may have written that.
- Whoever looks (a preview) is given the tip in any case, and told. Nobody may apply what ``require_verified`` refuses.
- A verdict is kept by the ids of commit or tag and the digest of the keys: both name the same content forever.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.resources.signatures import (
    ObjectType,
    Signature,
    SignatureFault,
    SignatureVerdict,
    SignedObject,
)
from kubectl_reconcile.core.resources.trusted_keys import KeysError, TrustedKeys
from kubectl_reconcile.core.resources.verification import (
    Verification,
    VerifyMode,
    VerifySpec,
    refusal_of,
    subject_of,
)
from kubectl_reconcile.source.base import Source
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.git.signed.check import judge, read_object
from kubectl_reconcile.source.git.source import GitSource

_MOST_VERDICTS: Final = 4096


class UnverifiedError(SourceError):
    """What was asked for isn't signed as the Sync says; *verification* tells why."""

    def __init__(self, message: str, hint: str, verification: Verification) -> None:
        super().__init__(SourceFault.UNVERIFIED, message, hint)
        self.verification = verification


class Verdicts(Struct):
    """Verdicts that last, for all sources of a process; the oldest are forgotten."""

    _known: OrderedDict[tuple[str, str, str], SignatureVerdict] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def of(
        self, type_: ObjectType, object_id: str, digest: str, judged: Callable[[], SignatureVerdict]
    ) -> SignatureVerdict:
        """Return the verdict on an object by the keys of that *digest*, *judged* where it isn't known."""
        key = (type_.value, object_id, digest)
        with self._guard:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        verdict = judged()
        if verdict.fault is None or verdict.fault.is_lasting:
            with self._guard:
                self._known[key] = verdict
                while len(self._known) > _MOST_VERDICTS:
                    self._known.popitem(last=False)
        return verdict


class _Judged(Struct, frozen=True):
    """What was found of a commit, and of the tag that points to it: who signed, or why it may not be applied."""

    signature: Signature | None = None
    tag: str = ""
    fault: SignatureFault = SignatureFault.UNCHECKED
    message: str = ""
    hint: str = ""

    def refused(self, in_force: Verification) -> Verification:
        """Return what is known then: *in_force* stays."""
        stays = f"; {in_force.revision[:7]} stays in force" if in_force.revision else ""
        return replace(in_force, fault=self.fault, refusal=one_line(f"{self.message}{stays}{_hinted(self.hint)}"))


def _hinted(hint: str) -> str:
    return f" (hint: {hint})" if hint else ""


class VerifiedSource(GitSource):
    """One path of a repository at a ref, as far as it is signed; see the module.

    *verdicts* are shared by all sources. With *keeps*, what that records stays in force once it is verified again.
    """

    def __init__(
        self,
        *arguments: Any,
        spec: VerifySpec,
        namespace: str,
        verdicts: Verdicts,
        keeps: Verification | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._spec, self._verdicts = spec, verdicts
        self.place = f"{spec.kind} {namespace}/{spec.name}"
        self._recorded = keeps
        self._in_force = Verification()
        self._passed: set[str] = set()
        self.keys: TrustedKeys | KeysError = KeysError("were not read")
        self.verification = Verification()

    @property
    def verified(self) -> Self:
        """This very source: what isn't signed doesn't count."""
        return self

    @property
    def is_preview(self) -> bool:
        """Whether this is for who looks, and not for who keeps up what is in force."""
        return self._recorded is None

    def go_on_from(self, earlier: Source) -> None:
        """Keep in force what an earlier source of the same Sync has verified, by whatever keys it had."""
        if isinstance(earlier, VerifiedSource):
            self._in_force = earlier._in_force  # noqa: SLF001 - its own kind
            self._passed |= {self._in_force.revision} - {""}

    def revision(self) -> Revision:
        """Return the newest revision that is verified; to whoever previews, the newest in any case.

        Raises:
            SourceError: as of any source.
            UnverifiedError: none is verified.
        """
        sha = self.fetch()
        judged = self._judged(sha, self.tag)
        if judged.signature is not None:
            self._in_force = self.verification = self._good(sha, judged.tag, judged.signature)
            return self.revision_at(sha)
        if self._recorded is None:
            self.verification = judged.refused(Verification())
            return self.revision_at(sha)
        if not self._in_force.revision:
            self._in_force = self._again(self._recorded, judged)
        self.verification = judged.refused(self._in_force)
        return self.revision_at(self._in_force.revision)

    def require_verified(self, sha: str) -> None:
        """Return if the commit *sha* may be applied.

        Raises:
            UnverifiedError: it isn't verified.
        """
        if sha not in self._passed:
            judged = self._judged(sha, self.tag)
            if judged.signature is None:
                raise UnverifiedError(judged.message, judged.hint, judged.refused(Verification()))

    def _good(self, sha: str, tag: str, signature: Signature) -> Verification:
        self._passed.add(sha)
        return Verification(sha, tag, signature.signer, signature.key)

    def _again(self, recorded: Verification, tip: _Judged) -> Verification:
        """Return what stays in force when a daemon begins: what the status names, if that is verified now.

        Raises:
            UnverifiedError: nothing is.
        """
        why = "nothing was verified before"
        if recorded.revision:
            try:
                self.require(recorded.revision)
                judged = self._judged(recorded.revision, recorded.tag)
            except SourceError as error:
                why = error.message
            else:
                if judged.signature is not None:
                    return self._good(recorded.revision, judged.tag, judged.signature)
                is_same = recorded.revision == self.tip or judged.fault is SignatureFault.UNUSABLE_KEYS
                why = "" if is_same else f"what was applied last isn't verified either: {judged.message}"
        message = f"{tip.message}; nothing is applied, and drift isn't corrected{f', because {why}' if why else ''}"
        raise UnverifiedError(
            message, tip.hint, replace(tip.refused(Verification()), refusal=one_line(f"{message}{_hinted(tip.hint)}"))
        )

    # The verdict -----------------------------------------------------------------------------

    def _judged(self, sha: str, tag: str) -> _Judged:
        """Return what the Sync's mode makes of a commit and the tag that points to it (its id; empty where none does)."""
        match self._spec.mode:
            case VerifyMode.COMMIT:
                return self._of_commit(sha)
            case VerifyMode.TAG:
                return self._of_tag(sha, tag)
            case VerifyMode.COMMIT_AND_TAG:
                found = self._of_commit(sha)
                return found if found.signature is None else self._of_tag(sha, tag)
        found = self._of_tag(sha, tag) if tag else self._of_commit(sha)
        return found if found.signature is not None or not tag else self._either(found, self._of_commit(sha))

    @staticmethod
    def _either(tag: _Judged, commit: _Judged) -> _Judged:
        if commit.signature is not None:
            return commit
        return replace(tag, message=f"{tag.message}, and {commit.message}", hint=tag.hint)

    def _of_commit(self, sha: str) -> _Judged:
        found = read_object(self._clone, ObjectType.COMMIT, sha)
        if found is None:
            missing = SignatureVerdict(fault=SignatureFault.UNCHECKED, detail="it isn't in the local clone")
            return self._refused(subject_of(SignedObject(ObjectType.COMMIT), sha), ObjectType.COMMIT, missing)
        return self._verdict(found, sha)

    def _of_tag(self, sha: str, tag: str) -> _Judged:
        name = self.ref_name.removeprefix("refs/tags/")
        found = read_object(self._clone, ObjectType.TAG, tag) if tag else None
        if found is None:
            is_tag = self.ref_name.startswith("refs/tags/")
            fault = SignatureFault.LIGHTWEIGHT_TAG if is_tag else SignatureFault.NO_TAG
            return self._refused(
                f"{name} at {sha[:7]}" if is_tag else f"commit {sha[:7]}", ObjectType.TAG, SignatureVerdict(fault=fault)
            )
        is_earlier = tag != self.tag and self.ref.may_lead_to(found.name)  # of a range, which leads to another by now
        if (found.name != name and not is_earlier) or not self._points_to(tag, sha):
            elsewhere = f"it is the tag {found.name}" if found.name != name else f"it doesn't point to commit {sha[:7]}"
            wrong = SignatureVerdict(fault=SignatureFault.OTHER_TAG, detail=one_line(elsewhere))
            return self._refused(subject_of(replace(found, name=name), tag), ObjectType.TAG, wrong)
        return self._verdict(found, tag)

    def _points_to(self, tag: str, sha: str) -> bool:
        try:
            return self._clone.run(["rev-parse", "--verify", "--quiet", f"{tag}^{{commit}}"]).decode().strip() == sha
        except SourceError:
            return False

    def _verdict(self, found: SignedObject, object_id: str) -> _Judged:
        keys = self.keys
        if isinstance(keys, KeysError):
            verdict = SignatureVerdict(fault=SignatureFault.UNUSABLE_KEYS, detail=keys.message)
            return replace(self._refused(subject_of(found, object_id), found.type, verdict), hint=keys.hint)
        verdict = self._verdicts.of(
            found.type, object_id, keys.digest, lambda: judge(self._clone, found, object_id, keys)
        )
        if verdict.signature is not None:
            return _Judged(verdict.signature, object_id if found.type is ObjectType.TAG else "")
        return self._refused(subject_of(found, object_id), found.type, verdict)

    def _refused(self, subject: str, type_: ObjectType, verdict: SignatureVerdict) -> _Judged:
        message, hint = refusal_of(subject, type_, verdict, self.place)
        return _Judged(fault=verdict.fault or SignatureFault.UNCHECKED, message=message, hint=hint)
