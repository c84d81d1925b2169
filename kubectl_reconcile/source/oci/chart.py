"""A chart of a registry, as ``helm push`` puts it there: one version, and only if it is the one with the digest that is asked for."""

from __future__ import annotations

import time

from msgspec import Struct

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.oci.reference import tag_of
from kubectl_reconcile.source.charts.archive import Archive
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.oci import artifact
from kubectl_reconcile.source.oci.registry import Registry
from kubectl_reconcile.source.oci.verified import VerifiedPin


class RegistryChart(Struct, frozen=True):
    """The version of a chart that *pin* says, in its *registry*; if it has to be signed, as it *is verified*. From any thread."""

    pin: ChartSpec
    registry: Registry
    verified: VerifiedPin | None = None

    def verify(self) -> None:
        """Verify it as of now, where it has to be signed. Blocks.

        Raises:
            UnverifiedError: it isn't verified, and this is for who keeps it up.
            SourceError: nobody can tell.
        """
        if self.verified is not None and self.pin.digest:
            self.verified.verify()

    def files(self) -> Archive:
        """Return the chart's files, pulling it where it isn't here. Blocks.

        Raises:
            SourceError: it can't be read, or isn't the one that is asked for; or nobody waits any more.
        """
        if not self.pin.digest:
            digest = self.registry.resolve(tag_of(self.pin.version), time.monotonic())
            hint = f"if this is the right chart, write digest: {digest}, which the registry has for that version"
            raise SourceError(SourceFault.REFUSED, f"{self.pin}: spec.source.chart.digest is missing", hint)
        return self._of(self.pin.digest)

    def published(self) -> str:
        """Return the digest that the version's tag has now, once the chart was pulled by it. Blocks.

        Raises:
            SourceError: it can't be read, or isn't such a chart; or nobody waits any more.
        """
        digest = self.registry.resolve(tag_of(self.pin.version), time.monotonic())
        self._of(digest)
        return digest

    def _of(self, digest: str) -> Archive:
        """Return the chart with that *digest*.

        Raises:
            SourceError: it can't be read, or is another version.
        """
        found = artifact.chart(self.registry, digest, self.pin.name)
        if (version := _version_in(found)) != self.pin.version:
            said = f"{self.pin}: {digest} is version {version}"
            hint = f"the digest decides what is applied: give that of {self.pin.version}, or the version {version}"
            raise SourceError(SourceFault.UNTRUSTED, said, hint)
        return found


def _version_in(found: Archive) -> str:
    documents, _ = yaml_reader.read(found.files["Chart.yaml"], "Chart.yaml")
    tree = documents[0].tree if documents else None
    return str(tree.get("version")) if isinstance(tree, dict) else ""
