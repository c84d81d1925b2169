"""``lock`` on the command line: what a folder fetches is pinned, and rendered by that; no cluster is needed."""

from __future__ import annotations

import hashlib

import yaml

from tests.chart_server import index, serving
from tests.registry_server import BASIC, PASSWORD, USER
from tests.rendering_tools import packed

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
DATABASE = packed({
    "database/Chart.yaml": "apiVersion: v2\nname: database\nversion: 1.2.3\n",
    "database/templates/a.yaml": OBJECT % "database",
})  # fmt: skip


def test_a_chart_is_locked_and_rendered_by_its_lock_file(plugin, tmp_path):
    pages = {
        "/index.yaml": index(("1.2.3", hashlib.sha256(DATABASE).hexdigest(), "database-1.2.3.tgz"), name="database"),
        "/database-1.2.3.tgz": DATABASE,
    }
    nowhere = ("--kubeconfig", str(tmp_path / "none"))
    with serving(pages) as (url, _):
        web = tmp_path / "web"
        (web / "templates").mkdir(parents=True)
        (web / "templates" / "a.yaml").write_text(OBJECT % "web")
        entry = f"dependencies: [{{name: database, version: ^1.0.0, repository: '{url}'}}]\n"
        (web / "Chart.yaml").write_text(f"apiVersion: v2\nname: web\nversion: 0.1.0\n{entry}")
        told = plugin("lock", str(web))
        assert (told.status, "helm dependency update writes Chart.lock" in " ".join(told.err.split())) == (4, True), (
            told
        )
        (web / "Chart.lock").write_text(entry.replace("^1.0.0", "1.2.3"))
        told = plugin("render", "-f", str(web), *nowhere)
        assert (told.status, "kubectl reconcile lock" in told.err, told.out) == (4, True, ""), told
        told = plugin("lock", str(web))
        digest = f"sha256:{hashlib.sha256(DATABASE).hexdigest()}"
        assert (told.status, told.out.splitlines()) == (
            0,
            [f"pinned chart database 1.2.3 of {url} to {digest}", f"wrote {web.resolve()}/reconcile.lock.yaml"],
        ), told
        told = plugin("render", "-f", str(web), *nowhere)
        names = [each["metadata"]["name"] for each in yaml.safe_load_all(told.out)]
        assert (told.status, sorted(names)) == (0, ["database", "web"]), told
        assert plugin("lock", str(web)).out == f"kept chart database 1.2.3 of {url} at {digest}\n"
        (web / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 0.1.0\n")
        told = plugin("lock", str(web))
        assert f"removed chart database 1.2.3 of {url}, which nothing needs" in told.out, told


def test_what_only_a_secret_lets_in_is_pinned_with_it_and_for_the_urls_that_it_names_alone(plugin, cluster, tmp_path):
    def secret(name, url):
        metadata = {"name": name, "annotations": {"reconcile.dev/urls": url}}
        login = {"username": USER, "password": PASSWORD}
        cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": login})

    pages = {
        "/index.yaml": index(("1.2.3", hashlib.sha256(DATABASE).hexdigest(), "database-1.2.3.tgz"), name="database"),
        "/database-1.2.3.tgz": DATABASE,
    }
    with serving(pages, BASIC) as (url, asked):
        entry = f"dependencies: [{{name: database, version: 1.2.3, repository: '{url}'}}]\n"
        (tmp_path / "Chart.yaml").write_text(f"apiVersion: v2\nname: web\nversion: 0.1.0\n{entry}")
        secret("mine", url)
        secret("others", "https://charts.example.com")
        for given in ((), ("--secret", "others")):
            told = plugin("lock", str(tmp_path), *given)
            assert (told.status, "answers 401" in told.err, told.out) == (4, True, ""), told
        assert {shown for _, shown in asked} == {None}
        told = plugin("lock", str(tmp_path), "--secret", "others", "--secret", "mine")
        assert (told.status, told.out.startswith("pinned chart database 1.2.3")) == (0, True), told
        told = plugin("lock", str(tmp_path), "--secret", "nowhere")
        assert (told.status, f"there is no Secret {cluster.namespace}/nowhere" in told.err) == (4, True), told


def test_a_folder_that_fetches_nothing_is_left_as_it_is(plugin, tmp_path):
    (tmp_path / "a.yaml").write_text(OBJECT % "a")
    told = plugin("lock", str(tmp_path))
    assert (told.status, told.out) == (0, "nothing has to be pinned: nothing is fetched to render it\n"), told
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]
