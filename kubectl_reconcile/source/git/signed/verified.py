"""A Git source of which only verified revisions come: commits and tags that are signed by trusted keys.

Only the tip is verified, and the tag that points to it, as whoever signs a commit signs all that it holds and all that came before. What stays in force otherwise is
decided as for all that is verified (``source.verifying``). A verdict is kept by the ids of commit or tag and the digest of the keys: both name the same content forever.
"""

from __future__ import annotations

import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.resources.signatures import (
    ObjectType,
    SignatureFault,
    SignatureFormat,
    SignatureVerdict,
    SignedObject,
)
from kubectl_reconcile.core.resources.trusted_keys import KeysError, TrustedKeys
from kubectl_reconcile.core.resources.verification import Verification, VerifyMode, VerifySpec, subject_of
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.git.signed.check import PROGRAMS, judge, read_object
from kubectl_reconcile.source.git.source import GitSource
from kubectl_reconcile.source.verifying import Judged, Verifying

_MOST_VERDICTS: Final = 4096


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


class VerifiedSource(Verifying[TrustedKeys], GitSource):
    """One path of a repository at a ref, as far as it is signed; see the module.

    *verdicts* are shared by all sources. With *keeps*, what that records stays in force once it is verified again.
    """

    made_from = "--from-file=allowed_signers, or --from-file=KEY.asc"

    def __init__(
        self,
        *arguments: Any,
        spec: VerifySpec,
        namespace: str,
        verdicts: Verdicts,
        keeps: Verification | None = None,
        **options: Any,
    ) -> None:
        GitSource.__init__(self, *arguments, **options)
        self._begin(spec, "spec.source.git.verify", namespace, keeps)
        self._spec, self._verdicts = spec, verdicts

    @property
    def verified(self) -> Self:
        """This very source: what isn't signed doesn't count."""
        return self

    def revision(self) -> Revision:
        """Return the newest revision that is verified; to whoever previews, the newest in any case.

        Raises:
            SourceError: as of any source.
            UnverifiedError: none is verified.
        """
        return self.revision_at(self._counted(self.fetch()))

    def check_keys(self) -> None:
        """Return if signatures can be checked here.

        Raises:
            SourceError: the keys can't be used, or a program is missing that checks signatures by them.
        """
        super().check_keys()
        if isinstance(keys := self.keys, KeysError):
            return
        wanted = {SignatureFormat.SSH: keys.allowed_signers, SignatureFormat.OPENPGP: keys.openpgp}
        missing = [program for form, program in PROGRAMS.items() if wanted[form] and not shutil.which(program)]
        if missing:
            text = f"{' and '.join(missing)} not on PATH, which check signatures by the keys of {self.place}"
            raise SourceError(SourceFault.UNVERIFIED, text, "install it; where the daemon runs it is needed too")

    def _keys_in(self, entries: Mapping[str, str]) -> TrustedKeys:
        return TrustedKeys.of(entries)

    def _tag(self) -> str:
        return self.tag

    def _require_there(self, sha: str) -> None:
        self.require(sha)

    # The verdict -----------------------------------------------------------------------------

    def _judged(self, sha: str, tag: str) -> Judged:
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
    def _either(tag: Judged, commit: Judged) -> Judged:
        if commit.signature is not None:
            return commit
        return replace(tag, message=f"{tag.message}, and {commit.message}", hint=tag.hint)

    def _of_commit(self, sha: str) -> Judged:
        found = read_object(self._clone, ObjectType.COMMIT, sha)
        if found is None:
            missing = SignatureVerdict(fault=SignatureFault.UNCHECKED, detail="it isn't in the local clone")
            return self._refused(subject_of(SignedObject(ObjectType.COMMIT), sha), ObjectType.COMMIT, missing)
        return self._verdict(found, sha)

    def _of_tag(self, sha: str, tag: str) -> Judged:
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

    def _verdict(self, found: SignedObject, object_id: str) -> Judged:
        keys = self.keys
        if isinstance(keys, KeysError):
            return self._unusable_keys(subject_of(found, object_id), found.type, keys)
        verdict = self._verdicts.of(
            found.type, object_id, keys.digest, lambda: judge(self._clone, found, object_id, keys)
        )
        if verdict.signature is not None:
            return Judged(verdict.signature, object_id if found.type is ObjectType.TAG else "")
        return self._refused(subject_of(found, object_id), found.type, verdict)
