"""Charts that a chart depends on, fetched by the lock file from a server of this machine; and what neither they nor the list can do to us."""

from __future__ import annotations

import base64
import hashlib

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.objects import errors_among, warnings_among
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.engine.commands.lock import lock
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.fetching import SyncFetching
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.source.render.mounted import MountedTree, Part
from kubectl_reconcile.source.render.pinned import survey_of
from kubectl_reconcile.source.render.trees import FolderTree
from tests.chart_server import index, serving
from tests.rendering_tools import packed

pytestmark = pytest.mark.usefixtures("renders")

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {size: '{{ .Values.size }}'}\n"
BASIC = "Basic " + base64.b64encode(b"shop:pa55word").decode()


def database(size=1):
    """Return the archive of a chart."""
    return packed({
        "database/Chart.yaml": "apiVersion: v2\nname: database\nversion: 1.2.3\n",
        "database/values.yaml": f"size: {size}\n",
        "database/templates/a.yaml": OBJECT % "database",
    })  # fmt: skip


def pages(packed_chart):
    """Return what a repository answers that has this archive as version 1.2.3."""
    digest = hashlib.sha256(packed_chart).hexdigest()
    return {
        "/charts/index.yaml": index(("1.2.3", digest, "database-1.2.3.tgz"), name="database"),
        "/charts/database-1.2.3.tgz": packed_chart,
    }


def written(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def a_chart(folder, repository, *, version="^1.2.0", **more):
    """Write a chart that depends on the database."""
    written(folder, {
        "Chart.yaml": f"apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies:\n- name: database\n  version: {version}\n  repository: {repository}\n",
        "Chart.lock": f"dependencies:\n- name: database\n  version: 1.2.3\n  repository: {repository}\n",
        "values.yaml": "size: 5\ndatabase: {size: 7}\n",
        "templates/a.yaml": OBJECT % "web",
        **more,
    })  # fmt: skip
    return folder


def fetching(tmp_path, *secrets, urls=None):
    policy = SourcePolicy.of_person()
    return SyncFetching(tmp_path / "cache", replace(policy, urls=urls) if urls else policy, secrets)


def read(folder, fetches):
    reader = ManifestReader(fetching=fetches)
    return reader, reader.read(WorktreeSource(folder))


def sizes(desired):
    return {each.ref.name: each.manifest["data"]["size"] for each in desired.manifests}


def refused(folder, fetches, fault):
    with pytest.raises(SourceError) as caught:
        read(folder, fetches)
    assert caught.value.fault is fault
    return str(caught.value)


# -- by the lock file --------------------------------------------------------------------------------------------------


def test_without_a_digest_nothing_is_fetched_and_nothing_is_rendered(tmp_path):
    with serving(pages(database())) as (url, asked):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        reader, desired = read(folder, fetching(tmp_path))
        assert (desired.manifests, asked) == ((), [])
        [problem] = errors_among(desired.problems)
        assert (problem.path, problem.line) == ("Chart.yaml", 5)
        assert "reconcile.lock.yaml doesn't have it" in problem.message
        assert problem.hint == "kubectl reconcile lock ."
        assert desired.revision.unrendered
        assert reader.fetches


def test_a_dependency_is_rendered_as_if_it_were_vendored_once_it_is_locked(tmp_path):
    with serving(pages(database())) as (url, asked):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        done = lock(folder, fetching(tmp_path))
        assert [str(pin) for pin in done.new] == [f"chart database 1.2.3 of {url}/charts"]
        fetches = fetching(tmp_path)
        reader, desired = read(folder, fetches)
        assert (sizes(desired), desired.problems) == ({"web": "5", "database": "7"}, ())
        assert {each.path for each in desired.manifests} == {
            "templates/a.yaml",
            "charts/database-1.2.3/templates/a.yaml",
        }
        assert [path for path, _ in asked].count("/charts/database-1.2.3.tgz") == 1  # it was kept when it was locked
        assert "reconcile.lock.yaml" in reader.consulted()
        assert not any("database-1.2.3" in path for path in reader.consulted())
        assert reader.read(WorktreeSource(folder)).is_same_as(desired)


def test_another_archive_under_the_version_that_is_locked_is_refused(tmp_path):
    answers = pages(database())
    with serving(answers) as (url, _):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        before = lock(folder, fetching(tmp_path)).new
        answers.update(pages(database(size=666)))
        said = refused(folder, fetching(tmp_path / "other"), SourceFault.UNTRUSTED)
        assert f"expected {before[0].digest}, found sha256:" in said
        again = lock(folder, fetching(tmp_path))
        assert (again.new, again.kept) == ((), before)  # nobody accepts it by the way


def test_an_archive_that_is_not_what_its_own_index_says_is_not_locked(tmp_path):
    answers = {**pages(database()), "/charts/database-1.2.3.tgz": database(size=666)}
    with serving(answers) as (url, _):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        with pytest.raises(SourceError, match="and the index says"):
            lock(folder, fetching(tmp_path))
        assert not (folder / "reconcile.lock.yaml").exists()


def test_a_new_version_in_chart_lock_needs_a_pin_of_its_own(tmp_path):
    with serving(pages(database())) as (url, _):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        lock(folder, fetching(tmp_path))
        text = (folder / "Chart.lock").read_text()
        (folder / "Chart.lock").write_text(text.replace("1.2.3", "1.2.4"))
        _, desired = read(folder, fetching(tmp_path))
        [problem] = errors_among(desired.problems)
        assert "reconcile.lock.yaml has 1.2.3" in problem.message
        assert desired.manifests == ()


def test_a_pin_that_nothing_needs_any_more_is_a_warning_and_lock_removes_it(tmp_path):
    with serving(pages(database())) as (url, _):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        [pin] = lock(folder, fetching(tmp_path)).new
        other = (
            (folder / "reconcile.lock.yaml")
            .read_text()
            .partition("charts:\n")[2]
            .replace("name: database", "name: queue")
        )
        with (folder / "reconcile.lock.yaml").open("a") as file:
            file.write(other)
        _, desired = read(folder, fetching(tmp_path))
        assert [(each.path, each.line) for each in warnings_among(desired.problems)] == [("reconcile.lock.yaml", 8)]
        assert set(sizes(desired)) == {"web", "database"}
        done = lock(folder, fetching(tmp_path))
        assert (done.kept, [each.name for each in done.gone]) == ((pin,), ["queue"])
        assert "queue" not in (folder / "reconcile.lock.yaml").read_text()


def test_a_lock_file_that_cannot_be_read_is_a_problem_and_is_not_written_over(tmp_path):
    folder = a_chart(
        tmp_path / "web", "https://charts.example.com", **{"reconcile.lock.yaml": "version: 1\ncharts: x\n"}
    )
    _, desired = read(folder, fetching(tmp_path))
    assert any("charts isn't a list" in each.message for each in desired.problems)
    assert lock(folder, fetching(tmp_path)).problems
    assert (folder / "reconcile.lock.yaml").read_text() == "version: 1\ncharts: x\n"


def test_what_is_vendored_is_not_fetched(tmp_path):
    folder = a_chart(tmp_path / "web", "https://charts.example.com")
    (folder / "charts").mkdir()
    (folder / "charts" / "database-1.2.3.tgz").write_bytes(database())
    reader, desired = read(folder, None)
    assert (sizes(desired), reader.fetches) == ({"web": "5", "database": "7"}, False)
    assert lock(folder, fetching(tmp_path)).new == ()


def test_a_chart_of_the_same_repository_stands_in_the_other_with_all_that_it_has_fetched(tmp_path):
    with serving(pages(database())) as (url, _):
        (tmp_path / ".git").mkdir()
        a_chart(tmp_path / "common", f"{url}/charts")
        text = (tmp_path / "common" / "Chart.yaml").read_text()
        (tmp_path / "common" / "Chart.yaml").write_text(text.replace("name: web", "name: common"))
        written(tmp_path / "shop", {
            "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n- {name: common, version: '*', repository: 'file://../common'}\n",
            "values.yaml": "common: {size: 8, database: {size: 9}}\n",
        })  # fmt: skip
        assert len(lock(tmp_path / "shop", fetching(tmp_path)).new) == 1
        reader, desired = read(tmp_path / "shop", fetching(tmp_path))
        assert (sizes(desired), desired.problems) == ({"web": "8", "database": "9"}, ())
        assert "common/templates/a.yaml" in reader.consulted()


def test_charts_of_one_repository_that_depend_on_one_another_are_a_problem(tmp_path):
    (tmp_path / ".git").mkdir()
    for name, other in (("a", "b"), ("b", "a")):
        entry = f"{{name: {other}, version: '*', repository: 'file://../{other}'}}"
        written(
            tmp_path / name, {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 0.1.0\ndependencies: [{entry}]\n"}
        )
    _, desired = read(tmp_path / "a", fetching(tmp_path))
    [problem] = desired.problems
    assert problem.message == "dependencies: a depends on itself"


# -- who is told what ------------------------------------------------------------------------------------------------------


def a_secret(urls):
    data = {
        name: base64.b64encode(value).decode() for name, value in (("username", b"shop"), ("password", b"pa55word"))
    }
    return {"metadata": {"name": "git", "namespace": "shop", "annotations": {"reconcile.dev/urls": urls}}, "data": data}


def test_credentials_go_to_the_urls_that_their_secret_names(tmp_path):
    with serving(pages(database()), BASIC) as (url, asked):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        secret = a_secret(f"https://git.example.com/shop {url}/charts")
        lock(folder, fetching(tmp_path, secret))
        _, desired = read(folder, fetching(tmp_path / "other", secret))
        assert set(sizes(desired)) == {"web", "database"}
        assert {who for _, who in asked} == {BASIC}


@pytest.mark.parametrize("named", ["https://git.example.com/shop", "{url}/chart", "{url}/charts-of-others", ""])
def test_credentials_of_a_secret_that_names_something_else_are_never_sent(tmp_path, named):
    with serving(pages(database()), BASIC) as (url, asked):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        with pytest.raises(SourceError) as caught:
            lock(folder, fetching(tmp_path, a_secret(named.format(url=url))))
        assert caught.value.fault is SourceFault.UNAUTHORIZED
        assert asked == [("/charts/index.yaml", None)]
        assert "pa55word" not in repr(fetching(tmp_path, a_secret(named)))


PLACES = {
    "the host that the Sync states": ("{url}/shop.git", None, ""),
    "a private address, where the Sync states another host": ("https://git.example.com/shop", None, "is a private address, and the Sync states another host"),
    "an address within the cluster": ("{url}/shop.git", ("127.0.0.0/16",), "is an address within the cluster"),
}  # fmt: skip


def test_an_archive_that_somebody_states_is_not_given_to_who_only_names_it(tmp_path):
    """What is kept on disk came from an address that another may not ask."""
    with serving(pages(database())) as (url, _):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        lock(folder, fetching(tmp_path))
        assert set(sizes(read(folder, fetching(tmp_path))[1])) == {"web", "database"}
        named = fetching(tmp_path, urls=UrlPolicy(states="https://git.example.com/shop"))
        assert "is a private address" in refused(folder, named, SourceFault.REFUSED)


@pytest.mark.parametrize(("states", "inside", "said"), PLACES.values(), ids=PLACES)
def test_a_repository_that_a_list_names_is_asked_where_any_other_that_is_named_is(tmp_path, states, inside, said):
    with serving(pages(database())) as (url, asked):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        lock(folder, fetching(tmp_path))
        asked.clear()
        policy = UrlPolicy(inside=inside or (), states=states.format(url=url))
        fetches = fetching(tmp_path / "other", urls=policy)
        if not said:
            assert set(sizes(read(folder, fetches)[1])) == {"web", "database"}
            return
        assert said in refused(folder, fetches, SourceFault.REFUSED)
        assert asked == []


def test_a_link_local_address_is_never_asked(tmp_path):
    pin = f"version: 1\ncharts:\n- {{repository: 'http://169.254.169.254/charts', name: database, version: 1.2.3, digest: 'sha256:{'0' * 64}'}}\n"
    folder = a_chart(tmp_path / "web", "http://169.254.169.254/charts", **{"reconcile.lock.yaml": pin})
    for states in ("", "http://169.254.169.254/shop"):
        fetches = fetching(tmp_path, urls=UrlPolicy(states=states))
        assert "link-local address, which is never connected to" in refused(folder, fetches, SourceFault.REFUSED)


def test_only_urls_that_are_allowed_are_asked(tmp_path):
    with serving(pages(database())) as (url, asked):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        lock(folder, fetching(tmp_path))
        asked.clear()
        fetches = fetching(tmp_path / "other", urls=UrlPolicy.of(["https://git.example.com"]))
        assert "isn't allowed here" in refused(folder, fetches, SourceFault.REFUSED)
        assert asked == []


def test_a_chart_that_cannot_be_fetched_here_is_an_error(tmp_path):
    with serving(pages(database())) as (url, _):
        folder = a_chart(tmp_path / "web", f"{url}/charts")
        lock(folder, fetching(tmp_path))
        refused(folder, None, SourceFault.REFUSED)


# -- looking around ------------------------------------------------------------------------------------------------------


def test_a_part_stands_in_a_tree_whatever_that_has_there(tmp_path):
    written(tmp_path, {"a/x.yaml": "own", "b/y.yaml": "other", "b/deep/z.yaml": "deep"})
    tree = FolderTree(tmp_path, 1000)
    mounted = MountedTree(tree)
    mounted.mount("a/charts/b", Part(tree, "b"))
    mounted.mount("a/charts/b/deep/more", Part(tree, "a"))
    assert mounted.names("a") == {"x.yaml": "file", "charts": "folder"}
    assert mounted.names("a/charts") == {"b": "folder"}
    assert mounted.names("a/charts/b/deep") == {"z.yaml": "file", "more": "folder"}
    assert mounted.read("a/charts/b/y.yaml") == b"other"
    assert mounted.read("a/charts/b/deep/more/x.yaml") == b"own"
    assert mounted.look("a/charts").kind == "folder"
    assert mounted.look("a/charts/c").kind == "absent"
    mounted.restate("a/x.yaml", b"restated", b"own")
    assert (mounted.read("a/x.yaml"), mounted.originals) == (b"restated", {"a/x.yaml": b"own"})
    consulted = {path: mounted.look(path) for path in ("a/charts", "a/charts/b/y.yaml", "a/x.yaml")}
    assert mounted.own(consulted) == {path: tree.look(path) for path in ("a/charts", "b/y.yaml", "a/x.yaml")}


def test_a_chart_without_dependencies_is_looked_at_and_nothing_else(tmp_path):
    written(tmp_path, {"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n"})
    survey = survey_of(FolderTree(tmp_path, 1000), "web", GitLimits(), None, is_chart=True)
    assert survey.is_empty
    assert set(survey.consulted) == {f"web/{name}" for name in ("Chart.yaml", "Chart.lock", "requirements.yaml", "requirements.lock", "reconcile.lock.yaml")}  # fmt: skip
