"""OCI registries, real ones of this machine: how they are asked, as whom, and how often; and what they can't do to us."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time

import pytest

from kubectl_reconcile.core.resources.credential_scope import CredentialScope
from kubectl_reconcile.core.resources.oci.manifest import CHART_CONFIG, CHART_LAYER, OCI_MANIFEST, Kind
from kubectl_reconcile.core.resources.oci.reference import OciRepository, tag_of
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.oci.access import OciAccess
from kubectl_reconcile.source.oci.artifact import artifact, chart
from kubectl_reconcile.source.oci.registry import Registry, registry_of
from kubectl_reconcile.source.remote import Credentials
from kubectl_reconcile.source.running.ending import ENDING, Ending
from kubectl_reconcile.source.running.kept import KEPT, KeptByDigest
from kubectl_reconcile.source.running.places import TENANT
from tests.certificates import self_signed
from tests.chart_server import dripping, forever, serving
from tests.e2e.source.pulling import FILES, LIMITS, READ, at, flux, nobody
from tests.registry_server import BASIC, FLUX_LAYER, PASSWORD, TAR_GZIP, USER, Layer, digest_of
from tests.rendering_tools import packed, silence

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NEVER, NOW = float("-inf"), float("inf")
IMAGE_CONFIG = "application/vnd.oci.image.config.v1+json"
TAR_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"


def refused(action, fault) -> str:
    with pytest.raises(SourceError) as caught:
        action()
    assert caught.value.fault is fault, caught.value
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


# --- artifacts, as they are pushed -------------------------------------------------------------------------------


def test_what_flux_pushes_is_read_with_what_it_was_made_of(registry):
    pushed = flux(registry, "as/flux", revision="main@sha1:abc", source="https://git.example.com/x")
    mine = nobody(registry, "as/flux")
    digest = mine.resolve("v1", NOW)
    assert digest == pushed
    manifest = mine.manifest(digest)
    assert (manifest.revision, manifest.source) == ("main@sha1:abc", "https://git.example.com/x")
    assert artifact(mine, digest).files == READ


def plain_tar(files):
    return gzip.decompress(packed(files))


ARTIFACTS = {
    "a folder by ORAS": ([Layer(packed(FILES), TAR_GZIP, {"org.opencontainers.image.title": "x", "io.deis.oras.content.unpack": "true"})], READ),
    "one file by ORAS": ([Layer.file("apps/a.yaml", READ["apps/a.yaml"])], {"apps/a.yaml": READ["apps/a.yaml"]}),
    "several files by ORAS": ([Layer.file(path, data) for path, data in READ.items()], READ),
    "an archive that ORAS takes for a file": ([Layer.file("all.tar.gz", packed(FILES))], READ),
    "a tar layer": ([Layer(plain_tar(FILES), "application/vnd.oci.image.layer.v1.tar")], READ),
    "a gzipped tar layer": ([Layer(packed(FILES))], READ),
    "a tar layer packed by zstd": ([Layer(zstd.compress(plain_tar(FILES)), TAR_ZSTD)], READ),
    "an archive packed by zstd that ORAS takes for a file": ([Layer.file("all.tar.zst", zstd.compress(plain_tar(FILES)), TAR_ZSTD)], READ),
    "folders with entries of their own, below .": ([Layer(packed({f"./{path}": text for path, text in FILES.items()}))], READ),
}  # fmt: skip


@pytest.mark.parametrize(("layers", "files"), ARTIFACTS.values(), ids=ARTIFACTS)
def test_an_artifact_is_read(registry, layers, files):
    digest = registry.push("as/others", "v1", *layers)
    assert artifact(nobody(registry, "as/others"), digest).files == files


def test_a_tar_that_tar_makes_of_a_folder_is_read(registry, tmp_path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    made = subprocess.run(["tar", "-C", tmp_path, "-czf", "-", "."], capture_output=True, check=True).stdout
    digest = registry.push("as/tar", "v1", Layer(made))
    assert artifact(nobody(registry, "as/tar"), digest).files == READ


def test_of_several_layers_the_media_type_chooses(registry):
    digest = registry.push("as/layers", "v1", Layer(packed({"x": ""})), Layer(packed(FILES), FLUX_LAYER))
    mine = nobody(registry, "as/layers")
    assert artifact(mine, digest, FLUX_LAYER).files == READ
    said = refused(lambda: artifact(mine, digest), SourceFault.REFUSED)
    assert f"oci://{registry.host}/as/layers@{digest} has 2 layers, of which one is to be chosen" in said
    assert "layerSelector.mediaType" in said


RUNS = json.dumps({"config": {"Entrypoint": ["/run"]}}).encode()
IMAGES = {
    "one of two layers": [Layer(packed({"bin/x": "1"})), Layer(packed({"etc/y": "1"}))],
    "one of one layer": [Layer(packed({"bin/x": "1"}))],
}


@pytest.mark.parametrize("layers", IMAGES.values(), ids=IMAGES)
def test_a_container_image_is_one_clear_sentence(registry, layers):
    digest = registry.push("as/image", "v1", *layers, config=Layer(RUNS, IMAGE_CONFIG))
    said = refused(lambda: artifact(nobody(registry, "as/image"), digest), SourceFault.REFUSED)
    assert "is a container image" in said
    assert "push the manifests by themselves" in said


def test_an_archive_with_the_config_of_an_image_that_runs_nothing_is_read(registry):
    config = Layer(b'{"architecture": "", "os": "", "config": {}, "rootfs": {}}', IMAGE_CONFIG)
    digest = registry.push("as/crane", "v1", Layer(packed(FILES)), config=config)
    assert artifact(nobody(registry, "as/crane"), digest).files == READ


def test_an_index_is_read_through_to_its_only_manifest(registry):
    one, other = flux(registry, "as/index"), flux(registry, "as/index", "v2", {"c.yaml": ""})
    entries = [{"mediaType": OCI_MANIFEST, "digest": each, "size": 2} for each in (one, other)]
    single = registry.push_index("as/index", "single", entries[:1])
    double = registry.push_index("as/index", "double", entries)
    mine = nobody(registry, "as/index")
    assert mine.manifest(single).kind is Kind.INDEX
    assert artifact(mine, single).files == READ
    assert "is an index of 2 manifests" in refused(lambda: artifact(mine, double), SourceFault.REFUSED)


CHART = {"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3+b.5\n", "web/values.yaml": "a: b\n"}


def test_a_chart_is_pulled_by_its_manifests_digest(registry):
    layer = Layer(packed(CHART), CHART_LAYER)
    signed = Layer(b"signed", "application/vnd.cncf.helm.chart.provenance.v1.prov")
    digest = registry.push("charts/web", "1.2.3_b.5", signed, layer, config=Layer(b"{}", CHART_CONFIG))
    mine = nobody(registry, "charts/web")
    assert mine.resolve("1.2.3_b.5", NOW) == digest
    assert set(chart(mine, digest, "web").files) == {"Chart.yaml", "values.yaml"}
    assert set(artifact(mine, digest).files) == set(CHART)
    assert "isn't below other/" in refused(lambda: chart(mine, digest, "other"), SourceFault.REFUSED)
    other = flux(registry, "charts/web", "v1")
    assert "isn't a chart" in refused(lambda: chart(mine, other, "web"), SourceFault.REFUSED)


def test_what_helm_pushes_is_the_chart_that_it_packed(helm, with_passwords, tmp_path):
    """Helm's own program pushes, as whoever publishes charts does."""
    for path, text in CHART.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "ca.crt").write_text(with_passwords.ca)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    login = ["--ca-file", "ca.crt", "--username", USER, "--password", PASSWORD]
    for command in (["package", "web"], ["push", "web-1.2.3+b.5.tgz", f"oci://{with_passwords.host}/charts", *login]):
        subprocess.run([helm, *command], cwd=tmp_path, env=environ, check=True, capture_output=True, timeout=120)
    mine = at(with_passwords, str(OciRepository(with_passwords.host, "charts").below("web").name))
    digest = mine.resolve(tag_of("1.2.3+b.5"), NOW)
    assert mine.manifest(digest).kind is Kind.CHART
    assert chart(mine, digest, "web").files["values.yaml"] == CHART["web/values.yaml"].encode()


# --- as whom ---------------------------------------------------------------------------------------------------------


def test_a_password_is_shown_where_it_is_wanted(with_passwords):
    digest = flux(with_passwords, "shop")
    mine = at(with_passwords, "shop")
    assert mine.resolve("v1", NOW) == digest
    assert artifact(mine, digest).files == READ
    said = refused(lambda: nobody(with_passwords, "shop").resolve("v1", NOW), SourceFault.UNAUTHORIZED)
    assert "the registry answers 401 UNAUTHORIZED" in said
    assert "name a Secret with credentials" in said
    refused(lambda: at(with_passwords, "shop", password="guessed").resolve("v1", NOW), SourceFault.UNAUTHORIZED)


def test_who_knows_a_digest_that_others_pulled_still_needs_credentials(with_passwords):
    digest = flux(with_passwords, "others")
    assert artifact(at(with_passwords, "others"), digest).files == READ
    refused(lambda: artifact(nobody(with_passwords, "others"), digest), SourceFault.UNAUTHORIZED)


def test_certificates_are_checked(with_passwords):
    flux(with_passwords, "shop")
    repository = with_passwords.repository("shop")
    for ca in ("", self_signed()[0]):
        stranger = Registry(OciAccess(repository, LIMITS, Credentials(username=USER, password=PASSWORD, ca_bundle=ca)))
        assert "certificate" in refused(lambda: stranger.resolve("v1", NOW), SourceFault.UNTRUSTED)  # noqa: B023


def test_a_token_is_asked_for_once_where_the_secret_names_who_gives_it(with_tokens):
    digest = flux(with_tokens, "team/shop")
    with_tokens.asked.clear()
    mine = at(with_tokens, "team/shop", named=[with_tokens.realm])
    assert mine.resolve("v1", NOW) == digest
    assert artifact(mine, digest).files == READ
    assert mine.resolve("v1", NOW) == digest
    assert with_tokens.asked == [("repository:team/shop:pull", BASIC)]


def test_a_realm_on_another_host_gets_no_credentials_unless_the_secret_names_it(with_tokens):
    flux(with_tokens, "team/shop")
    with_tokens.asked.clear()
    mine = at(with_tokens, "team/shop", named=[f"{with_tokens.origin}"])
    said = refused(lambda: mine.resolve("v1", NOW), SourceFault.UNAUTHORIZED)
    assert with_tokens.asked == [("repository:team/shop:pull", None)]
    assert f"add {with_tokens.realm} to its annotation reconcile.dev/urls" in said


def test_what_everybody_may_read_is_read_without_credentials(with_tokens):
    digest = flux(with_tokens, "public/shop")
    with_tokens.asked.clear()
    assert artifact(nobody(with_tokens, "public/shop"), digest).files == READ
    assert with_tokens.asked == [("repository:public/shop:pull", None)]


def test_wrong_credentials_are_tried_once(with_tokens):
    flux(with_tokens, "team/shop")
    with_tokens.asked.clear()
    mine = at(with_tokens, "team/shop", password="guessed", named=[with_tokens.realm])
    assert "which gives its tokens, answers 401" in refused(lambda: mine.resolve("v1", NOW), SourceFault.UNAUTHORIZED)
    assert len(with_tokens.asked) == 1


# --- how often -------------------------------------------------------------------------------------------------------


def test_a_tag_is_asked_for_once_for_all_who_follow_it(registry, monkeypatch):
    digest = flux(registry, "often/tag")
    access = nobody(registry, "often/tag").access
    mine = registry_of(access)
    asked = counted(mine, monkeypatch)
    begun = time.monotonic()
    found = []
    followers = [
        threading.Thread(target=lambda: found.append(registry_of(access).resolve("v1", begun))) for _ in range(50)
    ]
    for each in followers:
        each.start()
    for each in followers:
        each.join(60)
    assert found == [digest] * 50
    assert asked == [("manifests/v1", False)]
    asked.clear()
    assert mine.resolve("v1", NOW) == digest
    assert asked == [("manifests/v1", True)], "where nothing moved the question is for headers alone"
    moved = flux(registry, "often/tag", files={"c.yaml": ""})
    assert mine.heard("v1") == digest
    assert mine.resolve("v1", NOW) == moved
    assert mine.heard("v1") == moved
    asked.clear()
    assert mine.resolve("v1", mine.heard_s("v1")) == moved
    assert asked == []


def counted(mine, monkeypatch):
    """What a registry is asked for from now on, and whether for headers alone."""
    asked = []
    ask = mine._get

    def get(url, *rest, head=False):
        asked.append((url.removeprefix(f"{mine.repository.base}/"), head))
        return ask(url, *rest, head=head)

    monkeypatch.setattr(mine, "_get", get)
    return asked


def test_a_thousand_who_want_one_artifact_download_it_once(registry, monkeypatch):
    digest = flux(registry, "often/pulled")
    access = nobody(registry, "often/pulled").access
    mine = registry_of(access)
    asked = counted(mine, monkeypatch)
    found = []
    pulling = [threading.Thread(target=lambda: found.append(artifact(registry_of(access), digest))) for _ in range(20)]
    for each in pulling:
        each.start()
    for each in pulling:
        each.join(60)
    for _ in range(1000):
        assert artifact(registry_of(access), digest) is found[0]
    assert len({id(each) for each in found}) == 1
    assert [path.partition("/")[0] for path, _ in asked] == ["manifests", "blobs"]


def test_tags_are_listed_page_by_page(registry, monkeypatch):
    digest = flux(registry, "often/tags", "v0")
    said = json.loads(
        nobody(registry, "often/tags")._get(f"{registry.repository('often/tags').base}/manifests/{digest}", 10**6).body
    )
    for number in range(1, 5):
        registry.push_manifest("often/tags", f"v{number}", said)
    monkeypatch.setattr("kubectl_reconcile.source.oci.registry._PAGE", 2)
    mine = nobody(registry, "often/tags")
    asked = counted(mine, monkeypatch)
    assert sorted(mine.tags(NOW)) == ["v0", "v1", "v2", "v3", "v4"]
    assert len(asked) >= 3
    assert sorted(mine.tags(NEVER)) == ["v0", "v1", "v2", "v3", "v4"]
    monkeypatch.setattr("kubectl_reconcile.source.oci.registry._MOST_PAGES", 1)
    assert "has more than 1 pages of tags" in refused(lambda: mine.tags(NOW), SourceFault.REFUSED)
    refused(lambda: nobody(registry, "often/none").tags(NOW), SourceFault.NO_SUCH_REPOSITORY)


def test_a_tag_that_vanishes_is_told_and_what_was_heard_stays(registry):
    digest = flux(registry, "often/gone")
    mine = nobody(registry, "often/gone")
    assert mine.resolve("v1", NOW) == digest
    registry.delete("often/gone", digest)
    said = refused(lambda: mine.resolve("v1", NOW), SourceFault.NO_SUCH_REF)
    assert said == f"oci://{registry.host}/often/gone: there is no tag v1, or no such repository for these credentials"
    assert mine.heard("v1") == digest


def test_a_failure_is_everybodys_until_somebody_wants_to_know_again():
    with silence() as (port, heard):
        mine = Registry(OciAccess(OciRepository(f"127.0.0.1:{port}", "shop", plain=True), LIMITS))
        since = time.monotonic()
        refused(lambda: mine.resolve("v1", since), SourceFault.UNREACHABLE)
        came = len(heard)
        refused(lambda: mine.resolve("v1", since), SourceFault.UNREACHABLE)
        assert len(heard) == came
        refused(lambda: mine.resolve("v1", NOW), SourceFault.UNREACHABLE)
    assert len(heard) > came


# --- what is held in memory -------------------------------------------------------------------------------------


def test_who_pulls_much_makes_others_fetch_nothing_again(registry):
    access = nobody(registry, "kept").access

    def keep(kept, tenant, name, size):
        token = TENANT.set(tenant)
        try:
            kept.keep((access, name, "x"), Held(), size)
        finally:
            TENANT.reset(token)

    kept = KeptByDigest(100)
    keep(kept, "quiet", "q", 30)
    for number in range(10):
        keep(kept, "greedy", f"g{number}", 40)
        assert kept.held_bytes <= 100
    assert kept.find((access, "q", "x"), Held) is not None
    assert kept.find((access, "g9", "x"), Held) is not None
    assert kept.find((access, "g0", "x"), Held) is None
    keep(kept, "greedy", "huge", 1000)
    assert kept.held_bytes == 30, "what is larger than all there is isn't held"


class Held:
    """Something."""


def test_what_somebody_holds_is_found_though_there_is_no_room_for_it(registry):
    access, kept, mine = nobody(registry, "kept").access, KeptByDigest(10), Held()
    kept.keep((access, "a", "x"), mine, 100)
    assert kept.held_bytes == 0
    assert kept.find((access, "a", "x"), Held) is mine
    del mine
    assert kept.find((access, "a", "x"), Held) is None


# --- what a registry can't do to us ------------------------------------------------------------------------------


def written(pages):
    """A server that gives these answers: a registry of bad will."""
    return serving(pages)


def manifest_for(*layers, **more):
    told = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": [each.told() for each in layers], **more}
    return json.dumps(told).encode()


def bad(url, **more):
    host = url.partition("://")[2]
    return Registry(OciAccess(OciRepository(host, "shop", plain=True), LIMITS, **more))


def test_a_digest_that_is_not_the_contents_is_refused():
    layer, other = Layer(packed(FILES)), Layer(packed({"x": "1"}))
    manifest = manifest_for(layer)
    digest = digest_of(manifest)
    pages = {f"/v2/shop/manifests/{digest}": manifest_for(other)}
    with written(pages) as (url, _):
        said = refused(lambda: bad(url).manifest(digest), SourceFault.UNTRUSTED)
        assert f"expected {digest}, found {digest_of(manifest_for(other))}" in said
    swapped = packed({"apps/a.yaml": "x" * 15, "b.yaml": "y" * 16})
    assert len(swapped) != len(layer.data)
    for content in (swapped, layer.data[:-1] + b"\1"):
        pages = {f"/v2/shop/manifests/{digest}": manifest, f"/v2/shop/blobs/{digest_of(layer.data)}": content}
        with written(pages) as (url, _):
            with pytest.raises(SourceError) as caught:
                artifact(bad(url), digest)
            assert caught.value.fault in {SourceFault.UNTRUSTED, SourceFault.REFUSED}


def test_a_registry_that_says_nothing_changed_of_another_tag_is_read():
    """What the header says of a digest is worth something only where it is the one that we know."""
    manifest = manifest_for(Layer(packed(FILES)))

    def page(handler):
        handler.send_response(200)
        handler.send_header("Docker-Content-Digest", "sha256:" + "0" * 64)
        handler.send_header("Content-Length", str(len(manifest)))
        handler.end_headers()
        handler.wfile.write(manifest)

    with written({"/v2/shop/manifests/v1": page}) as (url, _):
        assert bad(url).resolve("v1", NOW) == digest_of(manifest)


def test_a_redirect_of_a_blob_gets_no_authorization():
    layer = Layer(packed(FILES))
    manifest = manifest_for(layer)
    digest = digest_of(manifest)
    with serving({"/blob": layer.data}) as (store, stored):
        pages = {f"/v2/shop/manifests/{digest}": manifest, f"/v2/shop/blobs/{digest_of(layer.data)}": f"{store}/blob"}
        with written(pages) as (url, asked):
            mine = bad(url, credentials=Credentials(username=USER, password=PASSWORD))
            assert artifact(mine, digest).files == READ
    assert {shown for _, shown in asked} == {BASIC}
    assert stored == [("/blob", None)]


def test_a_redirect_from_https_to_http_is_refused(tmp_path):
    certificate, key = self_signed()
    (tmp_path / "both.pem").write_text(certificate + key)
    layer = Layer(packed(FILES))
    manifest = manifest_for(layer)
    digest = digest_of(manifest)
    with silence() as (port, heard):
        pages = {
            f"/v2/shop/manifests/{digest}": manifest,
            f"/v2/shop/blobs/{digest_of(layer.data)}": f"http://127.0.0.1:{port}/x",
        }
        with serving(pages, certificate=tmp_path / "both.pem") as (url, _):
            repository = OciRepository(url.partition("://")[2], "shop")
            mine = Registry(OciAccess(repository, LIMITS, Credentials(ca_bundle=certificate)))
            assert "the repository is https" in refused(lambda: artifact(mine, digest), SourceFault.REFUSED)
        assert heard == []


def challenging(realm):
    def page(handler):
        handler.send_response(401)
        handler.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="x"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return page


def test_a_realm_over_http_is_not_asked_by_who_asks_over_https(tmp_path):
    certificate, key = self_signed()
    (tmp_path / "both.pem").write_text(certificate + key)
    with silence() as (port, heard):
        realm = f"http://127.0.0.1:{port}/token"
        pages = {"/v2/shop/manifests/v1": challenging(realm)}
        with serving(pages, certificate=tmp_path / "both.pem") as (url, _):
            repository = OciRepository(url.partition("://")[2], "shop")
            mine = Credentials(username=USER, password=PASSWORD, ca_bundle=certificate)
            asking = Registry(OciAccess(repository, LIMITS, mine, CredentialScope.of(realm)))
            assert "the repository is https" in refused(lambda: asking.resolve("v1", NOW), SourceFault.REFUSED)
        assert heard == []


REALMS = {
    "a private address": "http://127.0.0.1:{port}/token",
    "a link-local address": "http://169.254.169.254/latest/meta-data",
    "a file": "file:///etc/passwd",
    "a user in the URL": "http://me:word@127.0.0.1:{port}/token",
    "no URL": "http://[x/token",
}


@pytest.mark.parametrize("realm", REALMS.values(), ids=REALMS)
def test_a_realm_leads_nowhere_that_a_server_may_not_name(realm):
    with silence() as (port, heard):
        pages = {"/v2/shop/manifests/v1": challenging(realm.format(port=port))}
        with written(pages) as (url, _):
            refused(lambda: bad(url, may=UrlPolicy()).resolve("v1", NOW), SourceFault.REFUSED)
        assert heard == []


def test_link_local_addresses_are_always_refused_and_those_of_the_cluster_unless_they_are_named():
    link_local = Registry(OciAccess(OciRepository("169.254.169.254", "shop"), LIMITS, may=UrlPolicy()))
    assert "is a link-local address" in refused(lambda: link_local.resolve("v1", NOW), SourceFault.REFUSED)
    manifest = manifest_for(Layer(packed(FILES)))
    with written({"/v2/shop/manifests/v1": manifest}) as (url, asked):
        inside = ["127.0.0.0/8"]
        said = refused(lambda: bad(url, may=UrlPolicy.of([], inside)).resolve("v1", NOW), SourceFault.REFUSED)
        assert "is an address within the cluster" in said
        assert "--allow-url-prefix" in said
        assert asked == []
        allowed = UrlPolicy.of([f"{url}/v2/shop"], inside)
        assert bad(url, may=allowed).resolve("v1", NOW) == digest_of(manifest)


def test_a_registry_that_is_allowed_may_be_asked_for_its_own_tokens():
    manifest = manifest_for(Layer(packed(FILES)))

    def page(handler):
        if handler.headers.get("Authorization") == "Bearer t0ken":
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(manifest)))
            handler.end_headers()
            handler.wfile.write(manifest)
            return
        challenging(f"http://{handler.headers['Host']}/token")(handler)

    pages = {
        "/v2/shop/manifests/v1": page,
        "/token?service=x&scope=repository%3Ashop%3Apull": b'{"token": "t0ken"}',
    }
    with written(pages) as (url, _):
        assert bad(url, may=UrlPolicy.of([f"{url}/v2/shop"])).resolve("v1", NOW) == digest_of(manifest)
        mine = bad(url, may=UrlPolicy.of([f"{url}/v2/other"]))
        assert "isn't allowed here" in refused(lambda: mine.resolve("v1", NOW), SourceFault.REFUSED)


def test_tags_lead_to_no_other_server_and_not_round_in_circles(monkeypatch):
    def linking(there):
        def page(handler):
            handler.send_response(200)
            handler.send_header("Link", f'<{there}>; rel="next"')
            handler.send_header("Content-Length", "2")
            handler.end_headers()
            handler.wfile.write(b"{}")

        return page

    first = "/v2/shop/tags/list?n=1000"
    with silence() as (port, heard):
        with written({first: linking(f"http://127.0.0.1:{port}/v2/shop/tags/list")}) as (url, _):
            said = refused(lambda: bad(url).tags(NOW), SourceFault.REFUSED)
            assert f"http://127.0.0.1:{port}/v2/shop/tags/list, which isn't followed" in said
        assert heard == []
    monkeypatch.setattr("kubectl_reconcile.source.oci.registry._MOST_PAGES", 7)
    with written({first: linking(first)}) as (url, asked):
        assert "has more than 7 pages of tags" in refused(lambda: bad(url).tags(NOW), SourceFault.REFUSED)
        assert len(asked) == 7


def test_only_manifests_are_asked_for_by_their_media_types():
    layer, heard = Layer(packed(FILES)), []
    manifest = manifest_for(layer)
    digest = digest_of(manifest)

    def page(data):
        def answer(handler):
            heard.append(handler.headers["Accept"])
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

        return answer

    pages = {
        f"/v2/shop/manifests/{digest}": page(manifest),
        f"/v2/shop/blobs/{digest_of(layer.data)}": page(layer.data),
    }
    with written(pages) as (url, _):
        assert artifact(bad(url), digest).files == READ
    assert OCI_MANIFEST in heard[0]
    assert heard[1:] == ["*/*"]


def test_no_more_is_read_than_a_manifest_says():
    layer = Layer(packed(FILES))
    manifest = manifest_for(layer)
    digest = digest_of(manifest)

    for pages in (
        {f"/v2/shop/manifests/{digest}": forever},
        {f"/v2/shop/manifests/{digest}": manifest, f"/v2/shop/blobs/{digest_of(layer.data)}": forever},
    ):
        with written(pages) as (url, _):
            assert "the answer has more than" in refused(lambda: artifact(bad(url), digest), SourceFault.REFUSED)


def test_what_says_that_it_is_very_long_is_not_asked_for():
    told = {**Layer(b"").told(), "size": 2**40}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": [told]}).encode()
    digest = digest_of(manifest)
    with written({f"/v2/shop/manifests/{digest}": manifest}) as (url, asked):
        assert "and 16 are the most" in refused(lambda: artifact(bad(url), digest), SourceFault.REFUSED)
        assert len(asked) == 1


def test_a_registry_that_drips_is_left_and_whoever_is_not_waited_for_ends():
    with written({"/v2/shop/manifests/v1": dripping}) as (url, _):
        begun = time.monotonic()
        refused(lambda: bad(url, most_seconds=1.0).resolve("v1", NOW), SourceFault.UNREACHABLE)
        assert time.monotonic() - begun < 30
        ended = Ending()
        threading.Timer(0.5, ended.end).start()
        token = ENDING.set(ended)
        try:
            refused(lambda: bad(url).resolve("v1", NOW), SourceFault.ENDED)
        finally:
            ENDING.reset(token)
        assert time.monotonic() - begun < 60


STATUSES = {
    "too many requests": (429, SourceFault.UNREACHABLE, "it wants fewer requests"),
    "a failure of its own": (503, SourceFault.UNREACHABLE, "the registry answers 503 UNAVAILABLE"),
    "forbidden": (403, SourceFault.UNAUTHORIZED, "the registry answers 403"),
    "not found": (404, SourceFault.NO_SUCH_REF, "there is no tag v1"),
    "something else": (418, SourceFault.NO_SUCH_REPOSITORY, "the registry answers 418"),
}


@pytest.mark.parametrize(("status", "fault", "why"), STATUSES.values(), ids=STATUSES)
def test_what_a_registry_answers_instead_is_said(status, fault, why):
    def page(handler):
        body = b'{"errors": [{"code": "UNAVAILABLE\\u001b[2J", "message": "x"}]}'
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with written({"/v2/shop/manifests/v1": page}) as (url, _):
        said = refused(lambda: bad(url).resolve("v1", NOW), fault)
        assert why in said
        assert "\x1b" not in said


# --- archives, refused as a whole --------------------------------------------------------------------------------


def with_entry(name, kind=tarfile.REGTYPE, size=0, link=""):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as made:
        first = tarfile.TarInfo("a.yaml")
        first.size = 4
        made.addfile(first, io.BytesIO(b"a: b"))
        entry = tarfile.TarInfo(name)
        entry.type, entry.size, entry.linkname = kind, size, link
        made.addfile(entry, io.BytesIO(b"\0" * size) if size else None)
    return gzip.compress(raw.getvalue())


ARCHIVES = {
    "a path that leads out": ([Layer(with_entry("x/../../etc/passwd"))], "isn't one within it"),
    "an absolute path": ([Layer(with_entry("/etc/passwd"))], "isn't one within it"),
    "a symbolic link": ([Layer(with_entry("x", tarfile.SYMTYPE, link="/etc/passwd"))], "which is a link or a device"),
    "a hard link": ([Layer(with_entry("x", tarfile.LNKTYPE, link="a.yaml"))], "which is a link or a device"),
    "a device": ([Layer(with_entry("x", tarfile.CHRTYPE))], "which is a link or a device"),
    "a pipe": ([Layer(with_entry("x", tarfile.FIFOTYPE))], "which is a link or a device"),
    "a file twice": ([Layer(with_entry("a.yaml"))], "has 'a.yaml' twice"),
    "a file twice, written in two ways": ([Layer(with_entry("./a.yaml"))], "has 'a.yaml' twice"),
    "names that differ by case": ([Layer(with_entry("A.yaml"))], "which differ by case alone"),
    "folders that differ by case": ([Layer(packed({"x/a": "", "X/b": ""}))], "which differ by case alone"),
    "a file that is a folder": ([Layer(with_entry("a.yaml", tarfile.DIRTYPE))], "has 'a.yaml' twice"),
    "a file below a file": ([Layer(with_entry("a.yaml/x"))], "below a file"),
    "a large file": ([Layer(with_entry("x", size=11 * 2**20))], "of more than 10 MiB"),
    "no archive": ([Layer(b"<html>")], "isn't a tar archive"),
    "an archive cut off": ([Layer(packed(FILES)[:-30])], "isn't a gzipped tar archive"),
    "a title that leads out": ([Layer.file("../a.yaml", b"")], "isn't one within it"),
    "an absolute title": ([Layer.file("/a.yaml", b"")], "isn't one within it"),
    "two titles": ([Layer.file("a.yaml", b"1"), Layer.file("a.yaml", b"2")], "has 'a.yaml' twice"),
    "titles that differ by case": ([Layer.file("a.yaml", b"1"), Layer.file("A.yaml", b"2")], "differ by case alone"),
    "a title below another": ([Layer.file("a", b"1"), Layer.file("a/b", b"2")], "below a file"),
    "a large file with a title": ([Layer.file("a", b"\0" * (11 * 2**20))], "of more than 10 MiB"),
}  # fmt: skip


@pytest.mark.parametrize(("layers", "why"), ARCHIVES.values(), ids=ARCHIVES)
def test_an_artifact_is_refused_as_a_whole_for(layers, why):
    manifest = manifest_for(*layers)
    pages = {f"/v2/shop/blobs/{digest_of(each.data)}": each.data for each in layers}
    digest = digest_of(manifest)
    with written({f"/v2/shop/manifests/{digest}": manifest, **pages}) as (url, _):
        assert why in refused(lambda: artifact(bad(url), digest), SourceFault.REFUSED)
        assert KEPT.find((bad(url).access, digest, "files "), object) is None


BOMBS = {
    "of emptiness": (lambda: packed({str(number): b"\0" * (9 * 2**20) for number in range(8)}), "unpacks to more than 64 MiB"),
    "of entries": (lambda: packed({str(number): "" for number in range(10_001)}), "has more than 10,000 entries"),
    "of a header": (lambda: with_entry("x" * (70 * 2**20)), "unpacks to more than 64 MiB"),
}  # fmt: skip


@pytest.mark.parametrize(("made", "why"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_left_where_it_is_too_much(made, why):
    layer = Layer(made())
    assert len(layer.data) < 2**20
    manifest = manifest_for(layer)
    digest = digest_of(manifest)
    with written({f"/v2/shop/manifests/{digest}": manifest, f"/v2/shop/blobs/{digest_of(layer.data)}": layer.data}) as (
        url,
        _,
    ):
        begun = time.monotonic()
        assert why in refused(lambda: artifact(bad(url), digest), SourceFault.REFUSED)
        assert time.monotonic() - begun < 60
