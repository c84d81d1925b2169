"""Who asks a registry for what: all that decides which answer they get."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.resources.credential_scope import CredentialScope
from kubectl_reconcile.core.resources.oci.reference import OciRepository
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.remote import Credentials

_MOST_SECONDS: Final = 120.0


class OciAccess(Struct, frozen=True):
    """A *repository*, and the *credentials* that it is asked with, of a Secret that is for the URLs *named*.

    Those who call this check that the Secret names the repository. What *may* be connected to is judged by addresses; None for a person's own, of which all is.
    Authorities in *ca_file* are trusted where the credentials have none. One answer may take *most_seconds*.
    """

    repository: OciRepository
    limits: GitLimits
    credentials: Credentials = field(default_factory=Credentials)
    named: CredentialScope = field(default_factory=CredentialScope)
    may: UrlPolicy | None = None
    ca_file: str = ""
    most_seconds: float = _MOST_SECONDS
