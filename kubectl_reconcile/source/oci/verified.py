"""Artifacts of registries, and charts there, of which only those count that are signed by trusted keys, or by those whom certificates name.

A signature is on a digest, and what has been verified is pulled by that digest alone. It says nothing about the tag: whoever may move that can go back to an earlier
artifact that was signed. What stays in force while the newest isn't verified is decided as for all that is verified (``source.verifying``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.resources.oci.identities import ROOT_ENTRY, Identities, OidcIdentity
from kubectl_reconcile.core.resources.oci.public_keys import PublicKeys
from kubectl_reconcile.core.resources.oci.reference import DIGEST
from kubectl_reconcile.core.resources.signatures import ObjectType
from kubectl_reconcile.core.resources.trusted_keys import KeysError
from kubectl_reconcile.core.resources.verification import Verification, VerifySpec
from kubectl_reconcile.core.revisions import digest_in, short_of
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.oci.certified import check_installed
from kubectl_reconcile.source.oci.registry import Registry
from kubectl_reconcile.source.oci.signatures import Trusted, verdict_on
from kubectl_reconcile.source.oci.source import OciSource
from kubectl_reconcile.source.verifying import Judged, Verifying


class InRegistry(Verifying[Trusted]):
    """What is verified in a *registry*: by public keys, or by certificates that name one of the *identities*."""

    called = "artifact"
    """What it is in sentences."""
    registry: Registry
    since_s: float
    identities: tuple[OidcIdentity, ...]

    @property
    def made_from(self) -> str:
        """How ``kubectl create`` is given the keys, or the root."""
        return f"--from-file={ROOT_ENTRY if self.identities else 'cosign.pub'}"

    def _keys_in(self, entries: Mapping[str, str]) -> Trusted:
        if not self.identities:
            return PublicKeys.of(entries)
        check_installed()
        return Identities.of(entries, self.identities)

    def _require_there(self, sha: str) -> None:
        self.registry.artifact_manifest(_digest_of(sha))

    def _judged(self, sha: str, tag: str) -> Judged:  # noqa: ARG002 - tags of registries aren't signed
        subject, keys = f"{self.called} {short_of(sha)}", self.keys
        if isinstance(keys, KeysError):
            return self._unusable_keys(subject, ObjectType.ARTIFACT, keys)
        try:
            verdict = verdict_on(self.registry, _digest_of(sha), keys, min(self.since_s, time.monotonic()))
        except KeysError as error:
            return self._unusable_keys(subject, ObjectType.ARTIFACT, error)
        if verdict.signature is not None:
            return Judged(verdict.signature)
        return self._refused(subject, ObjectType.ARTIFACT, verdict)


def _digest_of(sha: str) -> str:
    if not DIGEST.fullmatch(digest := digest_in(sha)):
        raise SourceError(SourceFault.NO_SUCH_REF, f"{short_of(sha)} is no artifact of a registry")
    return digest


class VerifiedArtifact(InRegistry, OciSource):
    """One path of an artifact, as far as it is signed; see the module. With *keeps*, what that records stays in force once it is verified again."""

    def __init__(
        self, *arguments: Any, spec: VerifySpec, namespace: str, keeps: Verification | None = None, **options: Any
    ) -> None:
        OciSource.__init__(self, *arguments, **options)
        self.identities = spec.identities
        self._begin(spec, "spec.source.oci.verify", namespace, keeps)

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
        tip = self.remote_sha()
        found = self._read(self._counted(tip))
        self.tip = tip
        return found

    def _has_what_is_of(self, earlier: Self) -> bool:
        return earlier.registry.repository == self.registry.repository


class VerifiedPin(InRegistry):
    """A chart as its Sync pins it: *called* so, the *revision* of a *registry*.

    For whoever *keeps* it up it counts once it is verified, and stays in force then. There is no earlier one to keep up: that is another pin.
    """

    _nothing_before = ""

    def __init__(
        self, registry: Registry, called: str, revision: str, spec: VerifySpec, namespace: str, *, keeps: bool
    ) -> None:
        self.registry, self.called, self.pinned, self.since_s = registry, called, revision, float("inf")
        self.identities = spec.identities
        self._begin(spec, "spec.source.chart.verify", namespace, Verification() if keeps else None)

    def verify(self) -> None:
        """Verify it as of now.

        Raises:
            UnverifiedError: it isn't verified, and this is for who keeps it up.
            SourceError: nobody can tell.
        """
        self._counted(self.pinned)

    def require_verified(self, sha: str) -> None:  # noqa: ARG002 - it may be of the files beside the chart
        """Return if the chart may be applied, whatever the revision beside it.

        Raises:
            UnverifiedError: it isn't verified.
            SourceError: nobody can tell.
        """
        super().require_verified(self.pinned)

    def _has_what_is_of(self, earlier: Self) -> bool:
        return (earlier.registry.repository, earlier.pinned) == (self.registry.repository, self.pinned)
