"""Charts of Helm repositories: fetched by version and digest from a server of this machine, and what a repository can't do to us."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import socket
import tarfile
import threading
import time
import tracemalloc
import weakref

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.outlook.origins import moved_chart
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.helm import HelmSpec
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.charts import archive
from kubectl_reconcile.source.charts.archive import unpacked
from kubectl_reconcile.source.charts.repository import ChartAccess, PinnedChart, chart_of
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.remote import Credentials
from tests.certificates import self_signed
from tests.chart_server import dripping, forever, index, serving
from tests.core.planning.changes import a_change
from tests.rendering_tools import packed, silence

LIMITS = GitLimits()
BASIC = Credentials(username="shop", password="pa55word")
CHART = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    "web/values.yaml": "color: red\nsize: 1\n",
    "web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
    'data: {color: "{{ .Values.color }}", size: "{{ .Values.size }}"}\n',
}
WEB = packed(CHART)
DIGEST = f"sha256:{hashlib.sha256(WEB).hexdigest()}"


INDEX = index(("2.0.0", "0" * 64, "web-2.0.0.tgz"), ("1.2.3", DIGEST.removeprefix("sha256:"), "files/web-1.2.3.tgz"))


PAGES = {"/charts/index.yaml": INDEX, "/charts/files/web-1.2.3.tgz": WEB}


def repository(url, tmp_path, *, version="1.2.3", digest=DIGEST, **more):
    pin = ChartSpec(f"{url}/charts", "web", version, digest)
    return PinnedChart(ChartAccess(pin, tmp_path / "charts", LIMITS, **more))


def refused(chart, fault):
    with pytest.raises(SourceError) as caught:
        chart.files()
    assert caught.value.fault is fault
    return str(caught.value)


def test_a_chart_is_fetched_once_and_looked_at_again_before_it_is_used(tmp_path):
    with serving(PAGES, "Basic " + base64.b64encode(b"shop:pa55word").decode()) as (url, asked):
        assert (
            repository(url, tmp_path, credentials=BASIC).files().files["templates/a.yaml"]
            == CHART["web/templates/a.yaml"].encode()
        )
        assert [path for path, _ in asked] == ["/charts/index.yaml", "/charts/files/web-1.2.3.tgz"]
        assert repository(url, tmp_path, credentials=BASIC).files().files
        assert len(asked) == 2
        [kept] = (tmp_path / "charts").glob("*/*")
        assert (kept.name, kept.stat().st_mode & 0o077) == (f"{DIGEST.removeprefix('sha256:')}.tgz", 0)
        kept.write_bytes(b"something else")
        assert repository(url, tmp_path, credentials=BASIC).files().files
        assert len(asked) == 4
        said = refused(repository(url, tmp_path / "x"), SourceFault.UNAUTHORIZED)
        assert "/charts/index.yaml: the server answers 401" in said
        assert "pa55word" not in said


def test_who_knows_the_digest_of_a_chart_that_is_kept_still_needs_its_credentials(tmp_path):
    with serving(PAGES, "Basic " + base64.b64encode(b"shop:pa55word").decode()) as (url, _):
        assert repository(url, tmp_path, credentials=BASIC).files().files
        for others in (Credentials(), Credentials(username="shop", password="guessed")):
            refused(repository(url, tmp_path, credentials=others), SourceFault.UNAUTHORIZED)
        refused(
            repository(url, tmp_path, credentials=BASIC, may=UrlPolicy.of(["https://git.example"])), SourceFault.REFUSED
        )


def test_all_who_ask_for_a_chart_in_the_same_way_share_its_files(tmp_path):
    with serving(PAGES) as (url, asked):
        access = repository(url, tmp_path).access
        mine, another = chart_of(access), chart_of(replace(access))
        assert mine.files() is another.files()
        assert len(asked) == 2
        assert chart_of(replace(access, credentials=BASIC)) is not mine


def test_a_charts_files_are_in_memory_only_while_somebody_holds_them(tmp_path):
    with serving(PAGES) as (url, asked):
        chart = repository(url, tmp_path)
        files = weakref.ref(chart.files())
        assert files() is None
        assert chart.files().files
        assert len(asked) == 2


@pytest.mark.parametrize("bad", ["https://charts.example:99999/web.tgz", "https://[x/web.tgz"])
def test_what_is_no_url_is_refused_wherever_it_stands(tmp_path, bad):
    with serving({"/charts/index.yaml": index(("1.2.3", DIGEST.removeprefix("sha256:"), bad))}) as (url, _):
        assert f"{bad}: this is no URL" in refused(repository(url, tmp_path), SourceFault.REFUSED)
    with serving({"/charts/index.yaml": bad}) as (url, _):
        assert f"{bad}: this is no URL" in refused(repository(url, tmp_path), SourceFault.REFUSED)
    assert "this is no URL" in refused(repository(bad, tmp_path), SourceFault.REFUSED)


def test_an_index_of_very_many_lines_takes_hardly_more_memory_than_itself(tmp_path):
    many = b"entries:\n" + b"  \n" * 400_000 + INDEX.partition(b"entries:\n")[2]
    with serving({**PAGES, "/charts/index.yaml": many}) as (url, _):
        tracemalloc.start()
        try:
            assert repository(url, tmp_path).files().files
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8 * MEBIBYTE
    with serving({"/charts/index.yaml": b"entries:\n" + b"\n" * 3_000_000}) as (url, _):
        assert "has more than 3,000,000 lines" in refused(repository(url, tmp_path / "x"), SourceFault.REFUSED)


def test_another_digest_is_an_error_that_says_which_was_expected_and_found(tmp_path):
    other = "sha256:" + "1" * 64
    with serving(PAGES) as (url, _):
        said = refused(repository(url, tmp_path, digest=other), SourceFault.UNTRUSTED)
        assert f"chart web 1.2.3 of {url}/charts: expected {other}, found {DIGEST}" in said
        assert not (tmp_path / "charts").exists()
        said = refused(repository(url, tmp_path, digest=""), SourceFault.REFUSED)
        assert "spec.source.chart.digest is missing" in said
        assert f"write digest: {DIGEST}" in said
        assert "there is 2.0.0, 1.2.3" in refused(repository(url, tmp_path, version="3.0.0"), SourceFault.NO_SUCH_REF)
    with serving({"/charts/index.yaml": index(name="else")}) as (url, _):
        assert "has no chart web" in refused(repository(url, tmp_path), SourceFault.NO_SUCH_PATH)
    with serving({}) as (url, _):
        assert "answers 404" in refused(repository(url, tmp_path), SourceFault.NO_SUCH_REPOSITORY)


def test_credentials_and_redirects_go_nowhere_else(tmp_path):
    with silence() as (port, heard):
        elsewhere = f"http://127.0.0.1:{port}/web-1.2.3.tgz"
        with serving({"/charts/index.yaml": INDEX, "/charts/files/web-1.2.3.tgz": elsewhere}) as (url, _):
            assert "isn't followed with credentials" in refused(
                repository(url, tmp_path, credentials=BASIC), SourceFault.REFUSED
            )
            only_here = UrlPolicy.of([f"{url}/charts"])
            assert "isn't allowed here" in refused(repository(url, tmp_path, may=only_here), SourceFault.REFUSED)
        absolute = index(("1.2.3", DIGEST.removeprefix("sha256:"), elsewhere))
        with serving({"/charts/index.yaml": absolute}) as (url, _):
            refused(repository(url, tmp_path, may=UrlPolicy.of([url])), SourceFault.REFUSED)
        for location in ("file:///etc/passwd", "ftp://127.0.0.1/x", "http://user:word@127.0.0.1/x"):
            with serving({"/charts/index.yaml": location}) as (url, _):
                assert "only https and http are followed, without a user in the URL" in refused(
                    repository(url, tmp_path), SourceFault.REFUSED
                )
        assert heard == []
    with serving({"/charts/index.yaml": INDEX, "/charts/files/web-1.2.3.tgz": "/charts/files/web-1.2.3.tgz"}) as (
        url,
        _,
    ):
        assert "more than 5 redirects" in refused(repository(url, tmp_path), SourceFault.REFUSED)
    with serving({**PAGES, "/elsewhere.tgz": WEB, "/charts/files/web-1.2.3.tgz": "/elsewhere.tgz"}) as (url, _):
        assert repository(url, tmp_path, credentials=BASIC).files().files  # the same server gets them
    # An archive at another address is fetched without them.
    with serving({"/web.tgz": WEB}) as (other, asked):
        pages = {"/charts/index.yaml": index(("1.2.3", "", f"{other}/web.tgz"))}
        with serving(pages) as (url, _):
            both = UrlPolicy.of([url, other])
            assert repository(url, tmp_path / "y", credentials=BASIC, may=both).files().files
        assert asked == [("/web.tgz", None)]


NAMED_BY = {
    "an index": lambda there: {"/charts/index.yaml": index(("1.2.3", "", f"{there}/web.tgz"))},
    "a redirect of the index": lambda there: {"/charts/index.yaml": f"{there}/index.yaml"},
    "a redirect of the archive": lambda there: {
        "/charts/index.yaml": INDEX,
        "/charts/files/web-1.2.3.tgz": f"{there}/web.tgz",
    },
}


@pytest.mark.parametrize("pages", NAMED_BY.values(), ids=NAMED_BY)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f000001", "127.1"])
def test_what_a_repository_names_leads_to_no_private_address_but_its_own(tmp_path, pages, host):
    with silence() as (port, heard), serving(pages(f"http://{host}:{port}")) as (url, _):
        said = refused(repository(url, tmp_path), SourceFault.REFUSED)
        assert "is a private address, and the Sync states another host" in said
        assert heard == []


def test_certificates_are_checked_and_plain_http_is_no_way_on_from_https(tmp_path):
    certificate, key = self_signed()
    (tmp_path / "both.pem").write_text(certificate + key)
    with serving(PAGES, certificate=tmp_path / "both.pem") as (url, _):
        assert "certificate" in refused(repository(url, tmp_path), SourceFault.UNTRUSTED)
        assert repository(url, tmp_path, credentials=Credentials(ca_bundle=certificate)).files().files
        assert "certificate" in refused(
            repository(url, tmp_path / "x", credentials=Credentials(ca_bundle=self_signed()[0])), SourceFault.UNTRUSTED
        )
    with silence() as (port, heard):
        pages = {"/charts/index.yaml": f"http://127.0.0.1:{port}/index.yaml"}
        with serving(pages, certificate=tmp_path / "both.pem") as (url, _):
            said = refused(
                repository(url, tmp_path / "y", credentials=Credentials(ca_bundle=certificate)), SourceFault.REFUSED
            )
        assert "the repository is https, and this isn't" in said
        assert heard == []


def silent(handler):
    handler.connection.recv(1)  # until who asks hangs up


def short(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x")


SERVERS = {
    "one that never ends": (forever, SourceFault.REFUSED, "the answer has more than 32 MiB"),
    "one that drips": (dripping, SourceFault.UNREACHABLE, "it takes too long to answer"),
    "one that says nothing": (silent, SourceFault.UNREACHABLE, "it takes too long to answer"),
    "one that ends early": (short, SourceFault.UNREACHABLE, ""),
}


@pytest.mark.parametrize(("page", "fault", "said"), SERVERS.values(), ids=SERVERS)
def test_a_server_is_left_after_a_while(tmp_path, page, fault, said):
    with serving({"/charts/index.yaml": page}) as (url, _):
        seconds = 200.0 if page is forever else 1.0
        began = time.monotonic()
        assert said in refused(repository(url, tmp_path, most_seconds=seconds), fault)
        assert time.monotonic() - began < seconds + 100


def test_a_server_that_draws_out_shaking_hands_is_left_too(tmp_path):
    """Each byte is in time for a timeout of the socket."""

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(bytes([0x16, 3, 3, 0x40, 0]))  # a record of 16 KiB begins
            for _ in range(900):
                time.sleep(0.1)
                connection.sendall(b"\2")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip)
        dripping.start()
        began = time.monotonic()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        assert "it takes too long to answer" in refused(
            repository(url, tmp_path, most_seconds=1.0), SourceFault.UNREACHABLE
        )
        assert time.monotonic() - began < 80, "it drips for a minute and a half"
        dripping.join(100)


def test_where_no_time_is_left_nobody_is_asked(tmp_path):
    with silence() as (port, heard):
        late = repository(f"http://127.0.0.1:{port}", tmp_path, most_seconds=0.0)
        assert "it takes too long to answer" in refused(late, SourceFault.UNREACHABLE)
        assert heard == []


# --- archives -------------------------------------------------------------------------------------------------


def with_entry(name, kind=tarfile.REGTYPE, size=0, link=""):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as made:
        chart = tarfile.TarInfo("web/Chart.yaml")
        chart.size = 4
        made.addfile(chart, io.BytesIO(b"a: b"))
        entry = tarfile.TarInfo(name)
        entry.type, entry.size, entry.linkname = kind, size, link
        made.addfile(entry, io.BytesIO(b"\0" * size) if size else None)
    return gzip.compress(raw.getvalue())


def sparse_file():
    """A chart with a file of nine megabytes, of which the archive holds nothing (GNU's sparse format 0.1)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as made:
        entry = tarfile.TarInfo("web/x")
        entry.pax_headers = {"GNU.sparse.size": "9000000", "GNU.sparse.map": "0,0"}
        made.addfile(entry)
    return gzip.compress(raw.getvalue())


ARCHIVES = {
    "a path that leads out": (with_entry("web/../../etc/passwd"), "which isn't one within it"),
    "a path that leads out at once": (with_entry("../web/x"), "which isn't one within it"),
    "an absolute path": (with_entry("/etc/passwd"), "which isn't one within it"),
    "a path of another system": (with_entry("web\\..\\x"), "which isn't one within it"),
    "a path that a terminal would obey": (with_entry("web/\x1b[2J"), "which isn't one within it"),
    "another chart": (with_entry("other/x.yaml"), "which isn't below web/"),
    "a symbolic link": (
        with_entry("web/x", tarfile.SYMTYPE, link="/etc/passwd"),
        "which is a link or a device, not a file",
    ),
    "a hard link": (
        with_entry("web/x", tarfile.LNKTYPE, link="web/Chart.yaml"),
        "which is a link or a device, not a file",
    ),
    "a device": (with_entry("web/x", tarfile.CHRTYPE), "which is a link or a device, not a file"),
    "a file twice": (with_entry("web/Chart.yaml"), "has 'web/Chart.yaml' twice"),
    "a file below a file": (with_entry("web/Chart.yaml/x"), "below a file"),
    "names that differ by case": (with_entry("web/chart.yaml"), "which differ by case alone"),
    "a sparse file": (sparse_file(), "which is a link or a device, not a file"),
    "a large file": (with_entry("web/x", size=11 * 2**20), "of more than 10 MiB"),
    "no chart": (packed({"web/values.yaml": ""}), "has no web/Chart.yaml"),
    "no archive": (b"<html>", "isn't a gzipped tar archive"),
    "an archive cut off": (WEB[:-40], "isn't a gzipped tar archive"),
}


@pytest.mark.parametrize(("data", "said"), ARCHIVES.values(), ids=ARCHIVES)
def test_an_archive_is_refused_as_a_whole_for(data, said):
    with pytest.raises(SourceError) as caught:
        unpacked(data, "web", LIMITS)
    assert said in str(caught.value)


def test_an_archive_that_unpacks_without_end_is_left_where_it_is_too_much(monkeypatch):
    bomb = gzip.compress(b"\0" * 2**20) * 200  # two hundred MiB of emptiness in two hundred KiB
    many = packed({f"web/{number}": "" for number in range(300)})
    with pytest.raises(SourceError, match="has no web/Chart"):  # what is read ends where the archive does
        unpacked(bomb, "web", LIMITS)
    with pytest.raises(SourceError, match="unpacks to more than 64 MiB"):
        unpacked(packed({f"web/{number}": b"\0" * (9 * 2**20) for number in range(8)}), "web", LIMITS)
    monkeypatch.setattr(archive, "MOST_UNPACKED_BYTES", 2**20)
    with pytest.raises(SourceError, match="unpacks to more than 1 MiB"):
        unpacked(with_entry("web/x", size=2 * 2**20), "web", LIMITS)
    monkeypatch.setattr(archive, "MOST_ENTRIES", 200)
    with pytest.raises(SourceError, match="has more than 200 entries"):
        unpacked(many, "web", LIMITS)


# --- rendered -------------------------------------------------------------------------------------------------


def test_a_chart_is_rendered_with_values_files_of_the_folder(tmp_path, renders):
    (tmp_path / "repo/apps").mkdir(parents=True)
    (tmp_path / "repo/.git").mkdir()
    (tmp_path / "repo/apps/prod.yaml").write_text("color: blue\n")
    (tmp_path / "repo/apps/stray.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stray}\n")
    with serving(PAGES) as (url, _):
        pin = ChartSpec(f"{url}/charts", "web", "1.2.3", DIGEST)
        spec = HelmSpec(values_files=("prod.yaml",), values='{"size": 7}')
        reader = ManifestReader(
            release_of=lambda _: Release("shop", "shop", spec, chart=pin), chart=repository(url, tmp_path)
        )
        desired = reader.read(WorktreeSource(tmp_path / "repo", "apps", render=Render.HELM))
        assert desired.problems == ()
        [located] = desired.manifests
        assert (located.manifest["metadata"]["name"], located.manifest["data"]) == (
            "shop",
            {"color": "blue", "size": "7"},
        )
        assert located.path == "apps/web-1.2.3.tgz/templates/a.yaml"
        bad = ManifestReader(
            release_of=lambda _: Release("shop", "shop", spec, chart=pin),
            chart=repository(url, tmp_path / "x", digest="sha256:" + "1" * 64),
        )
        with pytest.raises(SourceError, match="can't be fetched here"):
            bad.read(WorktreeSource(tmp_path / "repo", "apps", render=Render.HELM))


def test_a_preview_says_that_the_pin_moves():
    def moved(before, after):
        live = {"metadata": {"annotations": {"reconcile.dev/source": before}}}
        return list(moved_chart(a_change(ObjectRef("", "ConfigMap", "a", "b"), Op.UPDATE, before=live, file=after)))

    here = "apps/web-1.2.3.tgz/templates/a.yaml"
    assert moved(here, "apps/web-1.3.0.tgz/templates/a.yaml") == ["chart web 1.2.3 → 1.3.0"]
    assert moved(here, here) == moved("apps/a.yaml", here) == moved(here, "apps/a.yaml") == []


FIELDS = {"repository": "https://charts.example.com/stable/", "name": "web", "version": "1.2.3", "digest": DIGEST}
REFUSED = {
    "a range": ({"version": "^1.2"}, "chart.version: '^1.2' isn't an exact version, such as 1.2.3"),
    "a wildcard": ({"version": "1.2.x"}, "isn't an exact version"),
    "the newest": ({"version": ""}, "chart.version: is required"),
    "no digest of the kind": ({"digest": "md5:abc"}, "write sha256: and the 64 hexadecimal digits"),
    "a user in the URL": ({"repository": "https://a:b@charts.example.com"}, "isn't the URL of a Helm repository"),
    "a file": ({"repository": "file:///charts"}, "isn't the URL of a Helm repository"),
    "a name that leads out": ({"name": "../web"}, "isn't a name of a chart"),
}


@pytest.mark.parametrize(("changed", "said"), REFUSED.values(), ids=REFUSED)
def test_a_pin_is_refused_by_its_field_for(changed, said):
    def sync(fields, **more):
        source = {"git": {"url": "https://g/x"}, "chart": fields, **more}
        return Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": {"source": source}})

    assert sync(FIELDS).source.render is Render.HELM
    assert str(sync(FIELDS).source.chart) == "chart web 1.2.3 of https://charts.example.com/stable"
    with pytest.raises(SyncSpecError) as caught:
        sync({**FIELDS, **changed})
    assert str(caught.value).startswith("spec.source.chart.")
    assert said in str(caught.value)
    with pytest.raises(SyncSpecError, match="exclude each other"):
        sync(FIELDS, render="Raw")
