"""A chart that many Syncs follow is fetched once, and rendered once for those that say the same of it; looking again costs nothing."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.helm import HelmSpec
from kubectl_reconcile.core.resources.oci.manifest import CHART_CONFIG, CHART_LAYER, OCI_MANIFEST
from kubectl_reconcile.core.resources.oci.reference import OciRepository
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.charts.source import ChartSource
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.chart import RegistryChart
from kubectl_reconcile.source.oci.registry import registry_of
from kubectl_reconcile.source.running.places import TENANT
from tests.chart_server import serving
from tests.e2e.source.pulling import LIMITS
from tests.registry_server import Layer, digest_of
from tests.rendering_tools import packed

SYNCS, DISTINCT = 20, 4
TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {color: "{{ .Values.color }}"}
"""
FILES = {"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n", "web/templates/a.yaml": TEMPLATE}


def spec(number):
    return HelmSpec(values=json.dumps({"color": f"shade {number % DISTINCT}"}))


@pytest.fixture
def pushed():
    """A chart in a registry: its pin, who asks it, and how often each path was asked for."""
    layer = Layer(packed(FILES), CHART_LAYER)
    config = Layer(b"{}", CHART_CONFIG)
    manifest = json.dumps(
        {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config.told(), "layers": [layer.told()]}
    ).encode()
    digest = digest_of(manifest)
    pages = {
        f"/v2/charts/web/manifests/{digest}": manifest,
        f"/v2/charts/web/blobs/{digest_of(layer.data)}": layer.data,
    }
    with serving(pages) as (url, asked):
        host = url.partition("://")[2]
        pin = ChartSpec(f"oci://{host}/charts", "web", "1.2.3", digest)
        yield pin, OciAccess(OciRepository(host, "charts/web", plain=True), LIMITS), pages, asked


def test_twenty_syncs_fetch_a_chart_once_and_render_it_once_for_each_of_their_values(pushed, renderer):
    pin, access, pages, asked = pushed

    def reader(number):
        release = Release("web", "shop", spec(number), chart=pin)
        return ManifestReader(
            release_of=lambda _: release, renderer=renderer, chart=RegistryChart(pin, registry_of(access))
        )

    readers = [reader(number) for number in range(SYNCS)]

    def color(number):
        TENANT.set(f"team-{number}")
        [found] = readers[number].read(ChartSource(pin)).manifests
        return found.manifest["data"]["color"]

    with ThreadPoolExecutor(SYNCS) as threads:
        for _ in range(2):
            assert list(threads.map(color, range(SYNCS))) == [f"shade {number % DISTINCT}" for number in range(SYNCS)]
            assert Counter(path for path, _ in asked) == dict.fromkeys(pages, 1)
            assert renderer.rendered == DISTINCT


@pytest.mark.parametrize("other", [{"name": "api"}, {"namespace": "stock"}, {"kube_version": "v1.30.0"}], ids=str)
def test_a_release_of_another_name_place_or_cluster_is_rendered_by_itself(pushed, renderer, other):
    pin, access, _, asked = pushed
    said = {"name": "web", "namespace": "shop", "spec": spec(0), "chart": pin}
    for count, release in enumerate((Release(**said), Release(**{**said, **other})), 1):
        reader = ManifestReader(
            release_of=lambda _, mine=release: mine, renderer=renderer, chart=RegistryChart(pin, registry_of(access))
        )
        [found] = reader.read(ChartSource(pin)).manifests
        assert found.manifest["metadata"]["name"] == release.name
        assert renderer.rendered == count
    assert len(asked) == 2
