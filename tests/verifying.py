"""What tests of verification share: something of which plain verdicts say what is signed."""

from __future__ import annotations

from kubectl_reconcile.core.resources.signatures import ObjectType, Signature, SignatureFault, SignatureVerdict
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import VerifySpec
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.verifying import Judged, Verifying

OLD, NEW, OTHER = (f"1.{number}@sha256:{str(number) * 64}" for number in (1, 2, 3))
ALICE = Signature("alice.pub", "ECDSA SHA256:abc")


class Plain(Verifying[frozenset[str]]):
    """Whatever *signed* names is signed by Alice, and *gone* isn't there."""

    made_from = "--from-file=alice.pub"

    def __init__(self, *signed, keeps=None, gone=()):
        self._begin(VerifySpec("Secret", "keys"), "spec.source.oci.verify", "shop", keeps)
        self.signed, self.gone = signed, gone
        self.trust({"alice.pub": "a key"})

    def _keys_in(self, entries):
        if not entries:
            raise KeysError("holds no key")
        return frozenset(entries)

    def _require_there(self, sha):
        if sha in self.gone:
            raise SourceError(SourceFault.NO_SUCH_REF, f"{sha[:3]} is gone")

    def _judged(self, sha, tag):
        if isinstance(self.keys, KeysError):
            return self._unusable_keys(f"artifact {sha[:3]}", ObjectType.ARTIFACT, self.keys)
        if sha in self.signed:
            return Judged(ALICE)
        return self._refused(
            f"artifact {sha[:3]}", ObjectType.ARTIFACT, SignatureVerdict(fault=SignatureFault.NO_SIGNATURE)
        )

    def read(self, sha):
        return self._counted(sha)
