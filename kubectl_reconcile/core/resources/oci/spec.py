"""``spec.source.oci``: an artifact in a registry, as users write it.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

from typing import Any, Final, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.resources.fields import SyncSpecError, check_fields
from kubectl_reconcile.core.resources.oci.reference import DIGEST, NoReferenceError, OciRepository, tag_of
from kubectl_reconcile.core.resources.semver import RangeError, VersionRange
from kubectl_reconcile.core.resources.verification import VerifySpec

_AT: Final = "spec.source.oci"
_FIELDS: Final = ("url", "tag", "semver", "digest", "interval", "layerSelector", "secretRef", "verify")
_LATEST: Final = "latest"


class OciSpec(Struct, frozen=True):
    """The artifact of the repository at *url* that has *digest*, else that *tag* is at, or the newest tag in the range *semver*.

    Of several layers *media_type* chooses; *secret* names the Secret with credentials. It must be signed as *verify* says.
    """

    url: str
    tag: str = ""
    digest: str = ""
    media_type: str = ""
    secret: str = ""
    semver: str = ""
    verify: VerifySpec | None = None

    @property
    def repository(self) -> OciRepository:
        """Where it is."""
        return OciRepository.of(self.url)

    @classmethod
    def of(cls, fields: Manifest) -> Self:
        """Read it from its wire form.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        check_fields(fields, _FIELDS, _AT)
        url, tag, digest, semver = (_text(fields, name) for name in ("url", "tag", "digest", "semver"))
        if not url:
            raise SyncSpecError(f"{_AT}.url", "is required")
        try:
            OciRepository.of(url)
        except NoReferenceError as error:
            raise SyncSpecError(f"{_AT}.url", str(error)) from None
        if digest and not DIGEST.fullmatch(digest):
            raise SyncSpecError(f"{_AT}.digest", "isn't a digest: write sha256: and 64 hexadecimal digits")
        try:
            tag = tag_of(tag) if tag else "" if digest or semver else _LATEST
        except NoReferenceError as error:
            raise SyncSpecError(f"{_AT}.tag", str(error)) from None
        if semver:
            _check_range(semver, tag)
        chosen = fields.get("layerSelector") or {}
        check_fields(chosen, ("mediaType",), f"{_AT}.layerSelector")
        return cls(
            url,
            tag,
            digest,
            chosen.get("mediaType", ""),
            (fields.get("secretRef") or {}).get("name", ""),
            semver,
            VerifySpec.of(fields.get("verify"), f"{_AT}.verify", certificates=True),
        )


def _check_range(semver: str, tag: str) -> None:
    """Return if a range of versions is one, and no tag is beside it.

    Raises:
        SyncSpecError: it isn't, or one is.
    """
    if tag:
        raise SyncSpecError(_AT, "tag and semver are both set; keep one")
    try:
        VersionRange.of(semver)
    except RangeError as error:
        raise SyncSpecError(f"{_AT}.semver", str(error)) from None


def _text(fields: Manifest, name: str) -> str:
    found: Any = fields.get(name) or ""
    if not isinstance(found, str):
        raise SyncSpecError(f"{_AT}.{name}", "isn't text")
    return found
