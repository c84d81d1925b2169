"""One version of a chart in a Helm repository or an OCI registry, as users write it.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

import re
from typing import Any, Final, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.oci.reference import SCHEME, NoReferenceError, OciRepository, tag_of
from kubectl_reconcile.core.resources.verification import VerifySpec

_LONGEST: Final = 1024
_REPOSITORY: Final = re.compile(r"oci://.+|https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9._]{0,251}[a-z0-9])?")
_EXACT: Final = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class ChartSpec(Struct, frozen=True):
    """One version of a chart in a Helm *repository*, a URL, and the *digest* of its archive. In a registry, that is the digest of its manifest.

    Without a digest nothing is rendered, but the digest can be told. *secret* names the Secret with credentials. One in a registry must be signed as *verify* says.
    """

    repository: str
    name: str
    version: str
    digest: str = ""
    secret: str = ""
    verify: VerifySpec | None = None

    @property
    def registry(self) -> OciRepository | None:
        """Where in a registry it is; None where it is in a Helm repository."""
        return OciRepository.of(self.repository).below(self.name) if self.repository.startswith(SCHEME) else None

    @property
    def revision(self) -> str:
        """What it is as a revision: ``1.2.3@sha256:…``, or its version alone where nobody has said which archive that is."""
        return revision_of(self.version, self.digest)

    @property
    def file(self) -> str:
        """What the archive is called."""
        return f"{self.name}-{self.version}.tgz"

    def __str__(self) -> str:
        return f"chart {self.name} {self.version} of {self.repository}"

    @classmethod
    def of(cls, fields: Manifest, above: str) -> Self:
        """Read it from its wire form, which is at the field *above*.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        what = "isn't the URL of a Helm repository, such as https://charts.example.com or oci://registry.example.com/charts"
        url = _text(fields, above, "repository", _REPOSITORY, what).rstrip("/")
        name = _text(fields, above, "name", _NAME, "isn't a name of a chart: lower-case letters, digits, - and .")
        version = _text(fields, above, "version", _EXACT, "isn't an exact version, such as 1.2.3")
        if url.startswith(SCHEME):
            _check_registry(url, name, version, above)
        digest = fields.get("digest") or ""
        if digest and (not isinstance(digest, str) or not _DIGEST.fullmatch(digest)):
            message = "isn't a digest: write sha256: and the 64 hexadecimal digits that sha256sum prints for the .tgz"
            raise SyncSpecError(f"{above}.digest", message)
        verify = VerifySpec.of(fields.get("verify"), f"{above}.verify", certificates=True)
        if verify is not None and not url.startswith(SCHEME):
            message = "is for charts of registries (oci://…): of a chart of a Helm repository over HTTP no signature can be verified, only its digest"
            raise SyncSpecError(f"{above}.verify", message)
        return cls(url, name, version, digest, (fields.get("secretRef") or {}).get("name", ""), verify)

    def told(self) -> dict[str, Any]:
        """Return in wire form which chart it is, without what is empty; whose signatures count is no part of that."""
        found = {
            "repository": self.repository, "name": self.name, "version": self.version, "digest": self.digest,
            "secretRef": {"name": self.secret} if self.secret else None,
        }  # fmt: skip
        return {name: value for name, value in found.items() if value}


def _check_registry(url: str, name: str, version: str, above: str) -> None:
    """Return if a registry can have such a chart.

    Raises:
        SyncSpecError: it can't.
    """
    try:
        OciRepository.of(url).below(name)
    except NoReferenceError as error:
        raise SyncSpecError(f"{above}.repository", str(error)) from None
    try:
        tag_of(version)
    except NoReferenceError as error:
        raise SyncSpecError(f"{above}.version", str(error)) from None


def revision_of(version: str, digest: str) -> str:
    """Return what a version of a chart is called as a revision; *digest* is empty where nobody has said which archive that is."""
    return f"{version}@{digest}" if digest else version


def _text(fields: Manifest, above: str, field: str, pattern: re.Pattern[str], what: str) -> str:
    text = fields.get(field)
    if text is None or text == "":
        raise SyncSpecError(f"{above}.{field}", "is required")
    if not isinstance(text, str) or len(text) > _LONGEST or not pattern.fullmatch(text):
        raise SyncSpecError(f"{above}.{field}", f"{str(text)[:80]!r} {what}")
    return text
