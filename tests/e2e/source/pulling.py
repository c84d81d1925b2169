"""What tests of OCI registries share: an artifact to push, and how it is pulled."""

from __future__ import annotations

from kubectl_reconcile.core.resources.credential_scope import CredentialScope
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.registry import Registry
from kubectl_reconcile.source.remote import Credentials
from tests.registry_server import FLUX_CONFIG, FLUX_LAYER, PASSWORD, USER, Layer
from tests.rendering_tools import packed

LIMITS = GitLimits()
FILES = {"apps/a.yaml": "apiVersion: v1\n", "b.yaml": "kind: ConfigMap\n"}
READ = {path: text.encode() for path, text in FILES.items()}


def at(running, name, *, username=USER, password=PASSWORD, named=(), may=None, seconds=60.0):
    """The repository *name* of a registry, as whoever has these credentials sees it."""
    mine = Credentials(username=username, password=password, ca_bundle=running.ca)
    named = CredentialScope.of(*named)
    return Registry(OciAccess(running.repository(name), LIMITS, mine, named, may, most_seconds=seconds))


def nobody(running, name, **more):
    """The same, as who has no credentials."""
    return at(running, name, username="", password="", **more)


def flux(running, name, tag="v1", files=FILES, **annotations):
    """Push files as Flux does, and return the digest."""
    made = {f"org.opencontainers.image.{key}": value for key, value in annotations.items()}
    return running.push(name, tag, Layer(packed(files), FLUX_LAYER), config=Layer(b"{}", FLUX_CONFIG), annotations=made)
