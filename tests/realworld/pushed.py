"""Charts in a registry of this machine, as whoever publishes charts puts them there: packed and pushed by Helm's own program, and pulled as a Sync pulls them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml
from msgspec import Struct

from kubectl_reconcile.core.rendering.charts import CHART_FILE
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.oci.reference import OciRepository, tag_of
from kubectl_reconcile.source.charts.archive import Archive
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.chart import RegistryChart
from kubectl_reconcile.source.oci.registry import Registry
from tests.registry_server import RunningRegistry

_NOW = float("inf")
"""The registry is asked, whatever it said before."""


class Pushed(Struct, frozen=True):
    """A chart at *url* of a registry over plain http, in this *version*."""

    url: str
    version: str
    access: OciAccess

    def pulled(self) -> Archive:
        """Return its files, pulled by the digest of its manifest.

        Raises:
            SourceError: it can't be.
        """
        registry = Registry(self.access)
        above, _, name = self.url.rpartition("/")
        digest = registry.resolve(tag_of(self.version), _NOW)
        return RegistryChart(ChartSpec(above, name, self.version, digest), registry).files()


def pushed(
    run: Callable[..., tuple[str, str]], helm: Path, chart: Path, registry: RunningRegistry, below: str
) -> tuple[Pushed | None, str]:
    """Return the chart of a folder, packed and pushed by *helm* to the repositories *below* a path; or why Helm doesn't. Programs are *run*."""
    with tempfile.TemporaryDirectory() as place:
        _, refusal = run(helm, "package", chart, "--destination", place)
        if refusal:
            return None, refusal
        (archive,) = Path(place).iterdir()
        _, refusal = run(helm, "push", archive, f"oci://{registry.host}/{below}", "--plain-http")
    if refusal:
        return None, refusal
    said = yaml.safe_load((chart / CHART_FILE).read_text(encoding="utf-8"))
    repository = OciRepository(registry.host, below, plain=True).below(said["name"])
    access = OciAccess(repository, GitLimits())
    return Pushed(f"oci://{registry.host}/{below}/{said['name']}", str(said["version"]), access), ""
