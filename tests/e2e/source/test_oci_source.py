"""An artifact of a real registry as a source: what a tag is at, what had another digest, and which of its files are manifests."""

from __future__ import annotations

import time

import pytest

from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.oci.manifest import CHART_CONFIG, CHART_LAYER
from kubectl_reconcile.core.resources.semver import VersionRange
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.oci import artifact
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.chart import RegistryChart
from kubectl_reconcile.source.oci.registry import registry_of
from kubectl_reconcile.source.oci.source import OciSource
from kubectl_reconcile.source.running.kept import KEPT, MOST_BYTES
from tests.registry_server import FLUX_CONFIG, FLUX_LAYER, Layer
from tests.rendering_tools import packed

LIMITS = GitLimits()


def config_map(name, color="red"):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{color: {color}}}\n"


def pushed(registry, name, files, tag="v1", **said):
    told = {f"org.opencontainers.image.{key}": value for key, value in said.items()}
    return registry.push(
        name, tag, Layer(packed(files), FLUX_LAYER), config=Layer(b"{}", FLUX_CONFIG), annotations=told
    )


def source(registry, name, tag="v1", digest="", path="", **more):
    return OciSource(registry_of(OciAccess(registry.repository(name), LIMITS)), tag, digest, path, **more)


def names(desired):
    return sorted(each.ref.name for each in desired.manifests)


def refused(action, fault):
    with pytest.raises(SourceError) as caught:
        action()
    assert caught.value.fault is fault, caught.value
    return str(caught.value)


def test_a_tag_is_followed_and_what_it_was_at_can_still_be_read(registry):
    old = pushed(registry, "is/followed", {"a.yaml": config_map("a"), "b.yaml": config_map("b")})
    mine, reader = source(registry, "is/followed"), ManifestReader(limits=LIMITS)
    before = reader.read(mine)
    assert (names(before), before.revision.sha, mine.tip) == (["a", "b"], f"v1@{old}", f"v1@{old}")
    assert mine.is_current(0.0)
    assert not mine.is_current(time.monotonic())
    new = pushed(registry, "is/followed", {"a.yaml": config_map("a", "blue")})
    assert not mine.has_moved(before.revision, {})  # nobody has asked
    assert mine.remote_sha() == f"v1@{new}"
    assert mine.has_moved(before.revision, {})
    after = reader.read(mine)
    assert (names(after), after.revision.short) == (["a"], f"v1@{new[:14]}")
    assert mine.differs(before.revision.sha, after.revision.sha)
    assert mine.read_at(f"v1@{old}", "b.yaml", offline=True) == config_map("b").encode()
    assert mine.read_at(f"v1@{old}", "c.yaml") is None
    assert mine.read_at("0" * 40, "a.yaml") is None
    pinned = source(registry, "is/followed", digest=old)
    assert (names(reader.read(pinned)), pinned.is_current(float("inf"))) == (["a", "b"], True)
    bare = source(registry, "is/followed", tag="", digest=old)
    assert reader.read(bare).revision.sha == old


def test_of_a_range_the_newest_version_is_followed(registry):
    def push(tag):
        return f"{tag}@{pushed(registry, 'is/ranged', {'a.yaml': config_map(f'of-{tag[0]}')}, tag)}"

    for tag in ("1.0.0", "2.0.0", "1.2.0-rc.1", "latest"):
        push(tag)
    newest = push("1.1.0")
    mine = source(registry, "is/ranged", "", versions=VersionRange.of("1.x"))
    read = mine.revision()
    assert (read.sha, mine.is_current(0.0)) == (newest, False)
    assert mine.revision() is read
    newer = push("1.10.0_build")
    assert mine.revision().sha == newer
    none = source(registry, "is/ranged", "", versions=VersionRange.of(">=3"))
    assert "no tag is a version in >=3" in refused(none.revision, SourceFault.NO_SUCH_REF)
    pinned = source(registry, "is/ranged", "1.1.0", newest.partition("@")[2], versions=VersionRange.of("1.x"))
    assert (pinned.revision().sha, pinned.is_current(float("inf"))) == (newest, True)


def test_what_is_where_it_was_is_not_pulled_again(registry):
    """Else who is beyond the budget of memory had the registry give everything at each look."""
    digest = pushed(registry, "is/listed", {"a.yaml": config_map("a")})
    mine = source(registry, "is/listed")
    before = mine.revision()
    KEPT.keep((mine.registry.access, "another", "thing"), mine.registry.manifest(digest), MOST_BYTES + 1)
    assert artifact.held(mine.registry, digest) is None
    assert mine.revision() is before
    assert artifact.held(mine.registry, digest) is None
    assert mine.read(before.files["a.yaml"]) == config_map("a").encode()


def test_what_is_not_there_is_told(registry):
    pushed(registry, "is/there", {"prod/a.yaml": config_map("a")})
    assert "there is no tag v2" in refused(source(registry, "is/there", "v2").revision, SourceFault.NO_SUCH_REF)
    gone = source(registry, "is/there", digest=f"sha256:{'0' * 64}")
    assert "has no manifest sha256:" in refused(gone.revision, SourceFault.NO_SUCH_REF)
    said = refused(source(registry, "is/there", path="test").revision, SourceFault.NO_SUCH_PATH)
    assert said == f"oci://{registry.host}/is/there:v1: there is no test in it (hint: check spec.source.path)"
    mine = source(registry, "is/there")
    refused(lambda: mine.read("0" * 40), SourceFault.NO_SUCH_PATH)
    refused(lambda: source(registry, "is/there", path="../x"), SourceFault.REFUSED)


AT = {
    "all of it": ("", ["a", "c", "z"]),
    "a folder": ("prod", ["c", "z"]),
    "a file": ("prod/c.yaml", ["c"]),
}


@pytest.mark.parametrize(("path", "found"), AT.values(), ids=AT)
def test_files_are_chosen_as_in_a_repository(registry, path, found):
    files = {
        "a.yaml": config_map("a"), ".hidden.yaml": config_map("hidden"), "notes.txt": "no manifest", "b.yaml": config_map("b"),
        ".reconcileignore": "b.yaml\n", "prod/c.yaml": config_map("c"), "prod/d/.reconcileignore": "e.yaml\n",
        "prod/d/e.yaml": config_map("e"), "prod/d/z.yaml": config_map("z"), "prod/b.yaml": config_map("also"),
    }  # fmt: skip
    pushed(registry, "is/chosen", files)
    assert names(ManifestReader(limits=LIMITS).read(source(registry, "is/chosen", path=path))) == found


@pytest.mark.usefixtures("renders")
def test_overlays_and_charts_in_it_are_rendered(registry, renderer):
    files = {
        "base/a.yaml": config_map("a"), "base/kustomization.yaml": "resources: [a.yaml]\n",
        "prod/kustomization.yaml": "resources: [../base]\nnamePrefix: x-\n",
        "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/templates/a.yaml": config_map("of-a-chart"),
        "raw/a.yaml": config_map("r"), "raw/kustomization.yaml": "resources: [a.yaml]\n",
    }  # fmt: skip
    pushed(registry, "is/rendered", files)
    for path, more, found in (
        ("prod", {}, ["x-a"]), ("web", {}, ["of-a-chart"]), ("raw", {"render": Render.RAW}, ["r"]), ("", {}, []),
    ):  # fmt: skip
        desired = ManifestReader(limits=LIMITS, renderer=renderer).read(
            source(registry, "is/rendered", path=path, **more)
        )
        assert names(desired) == found, (path, desired.problems)
    assert desired.revision.unrendered == ("base", "prod", "raw", "web")


def test_who_pushed_it_says_of_what_it_was_made(registry):
    digest = pushed(
        registry, "is/made", {"a.yaml": config_map("a")}, revision="main@sha1:3f9c2e1", created="2026-11-20T23:43:10Z",
        source="https://me:secret@git.example.com/shop",
    )  # fmt: skip
    made = source(registry, "is/made").revision().commit
    assert (made.sha, made.subject, made.committed_at) == (f"v1@{digest}", "main@sha1:3f9c2e1", "2026-11-20T23:43:10Z")
    assert made.author == "https://git.example.com/shop"
    pushed(registry, "is/made", {"b.yaml": config_map("b")})
    assert source(registry, "is/made").revision().commit is None


# --- charts -----------------------------------------------------------------------------------------------------------


def pushed_chart(registry, version, says=""):
    files = {
        "web/Chart.yaml": f"apiVersion: v2\nname: web\nversion: {says or version}\n",
        "web/templates/a.yaml": config_map("a"),
    }
    return registry.push(
        "charts/web", version.replace("+", "_"), Layer(packed(files), CHART_LAYER), config=Layer(b"{}", CHART_CONFIG)
    )


def chart_at(registry, version, digest=""):
    pin = ChartSpec(f"oci://{registry.host}/charts", "web", version, digest)
    return RegistryChart(pin, registry_of(OciAccess(registry.repository("charts/web"), LIMITS)))


def test_a_chart_is_the_one_with_the_digest_and_the_version(registry):
    digest, other = pushed_chart(registry, "1.2.3+a"), pushed_chart(registry, "1.3.0")
    assert "templates/a.yaml" in chart_at(registry, "1.2.3+a", digest).files().files
    said = refused(chart_at(registry, "1.2.3+a").files, SourceFault.REFUSED)
    assert "spec.source.chart.digest is missing" in said
    assert f"write digest: {digest}, which the registry has for that version" in said
    said = refused(chart_at(registry, "1.2.3+a", other).files, SourceFault.UNTRUSTED)
    assert f"{other} is version 1.3.0" in said
    assert "there is no tag 9.9.9" in refused(chart_at(registry, "9.9.9").files, SourceFault.NO_SUCH_REF)


def test_a_sync_changes_what_an_artifact_holds_with_components_of_it(registry, renders):
    part = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -s\n"
    pushed(registry, "is/changed", {"apps/a.yaml": config_map("a"), "part/kustomization.yaml": part})
    said = {"components": ["../part"], "namePrefix": "p-"}
    spec = {"source": {"git": {"url": "https://git.example.com/shop.git"}, "kustomize": said}}
    sync = Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": spec})
    for path in ("apps", "apps/a.yaml"):
        desired = ManifestReader(limits=LIMITS).read(source(registry, "is/changed", path=path), sync)
        assert (names(desired), desired.problems) == (["p-a-s"], ())
