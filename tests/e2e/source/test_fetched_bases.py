"""Bases of overlays in other repositories, and files of web servers, fetched by the lock file; and what neither of them can do to us."""

from __future__ import annotations

import base64

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.objects import errors_among
from kubectl_reconcile.core.rendering.origins import Origins
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.engine.commands.lock import lock
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.fetching import SyncFetching
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.policy import SourcePolicy
from tests.chart_server import serving
from tests.e2e.source.overlays import CONFIG, write

pytestmark = pytest.mark.usefixtures("renders")

UPSTREAM = {
    "config/kustomization.yaml": "resources: [../crd, app.yaml]\n",
    "config/app.yaml": CONFIG % "app",
    "crd/kustomization.yaml": "resources: [crd.yaml]\n",
    "crd/crd.yaml": CONFIG % "crd",
}


def fetching(tmp_path, *secrets, urls=None):
    policy = SourcePolicy.of_person()
    return SyncFetching(tmp_path / "cache", replace(policy, urls=urls) if urls else policy, secrets)


def overlay(tmp_path, *entries, **more):
    """Write an overlay in prod that has these entries, in a working tree."""
    (tmp_path / "tree" / ".git").mkdir(parents=True, exist_ok=True)
    lines = "".join(f"- {each}\n" for each in entries)
    write(tmp_path / "tree", {"prod/kustomization.yaml": f"resources:\n{lines}namePrefix: prod-\n", **more})
    return tmp_path / "tree" / "prod"


def read(folder, fetches):
    reader = ManifestReader(fetching=fetches)
    return reader, reader.read(WorktreeSource(folder))


def names(desired):
    return sorted(each.ref.name for each in desired.manifests)


def refused(work, fault):
    with pytest.raises(SourceError) as caught:
        work()
    assert caught.value.fault is fault
    return str(caught.value)


# -- repositories ------------------------------------------------------------------------------------------------------


def test_a_base_of_another_repository_is_built_at_the_commit_that_is_locked(tmp_path, git_server):
    sha = git_server.push(UPSTREAM, "first")
    folder = overlay(tmp_path, f"{git_server.url}//config?ref=main")
    reader, desired = read(folder, fetching(tmp_path))
    [problem] = errors_among(desired.problems)
    assert (problem.path, problem.line, problem.hint) == ("prod/kustomization.yaml", 2, "kubectl reconcile lock prod")
    assert (desired.manifests, not desired.revision.unrendered) == ((), False)

    [pin] = lock(folder, fetching(tmp_path)).new
    assert pin.commit == sha
    git_server.push({"config/app.yaml": CONFIG % "moved"}, "second")
    reader, desired = read(folder, fetching(tmp_path / "other"))
    assert (names(desired), desired.problems) == (["prod-app", "prod-crd"], ())
    assert all(each.path.startswith("prod/fetched/127.0.0.1/") for each in desired.manifests)
    assert set(reader.consulted()) >= {"prod/kustomization.yaml", "prod/reconcile.lock.yaml"}
    assert not any("fetched/" in path for path in reader.consulted())
    assert reader.read(WorktreeSource(folder)).is_same_as(desired)
    done = lock(folder, fetching(tmp_path))
    assert (done.new, done.kept) == ((), (pin,))


def test_another_commit_in_the_overlay_needs_a_pin_of_its_own(tmp_path, git_server):
    first, second = git_server.push(UPSTREAM, "first"), git_server.push({"config/app.yaml": CONFIG % "moved"}, "second")
    folder = overlay(tmp_path, f"{git_server.url}//config?ref={first}")
    lock(folder, fetching(tmp_path))
    overlay(tmp_path, f"{git_server.url}//config?ref={second}")
    [problem] = errors_among(read(folder, fetching(tmp_path))[1].problems)
    assert f"reconcile.lock.yaml has {first}" in problem.message
    assert [pin.ref for pin in lock(folder, fetching(tmp_path)).gone] == [first]
    assert names(read(folder, fetching(tmp_path))[1]) == ["prod-crd", "prod-moved"]


def test_what_a_base_refers_to_is_pinned_by_the_same_lock_file(tmp_path, git_server, git_host):
    inner = git_host.create(f"inner-{tmp_path.name}".lower().replace("_", "-"))
    inner.push({"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": CONFIG % "inner"}, "inner")
    git_server.push(
        {**UPSTREAM, "crd/kustomization.yaml": f"resources: [crd.yaml, '{inner.url}//?ref=main']\n"}, "outer"
    )
    folder = overlay(tmp_path, f"{git_server.url}//config?ref=main")
    assert {pin.repository for pin in lock(folder, fetching(tmp_path)).new} == {git_server.url, inner.url}
    assert names(read(folder, fetching(tmp_path))[1]) == ["prod-app", "prod-crd", "prod-inner"]


def test_a_component_and_a_base_of_one_repository_are_built_beside_ones_own(tmp_path, git_server):
    git_server.push({
        **UPSTREAM, "labels/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {a: b}\n",
    }, "first")  # fmt: skip
    own = {
        "base/kustomization.yaml": f"resources: [own.yaml, '{git_server.url}//crd?ref=main']\n",
        "base/own.yaml": CONFIG % "own",
    }
    folder = overlay(tmp_path, "../base", **own)
    with (folder / "kustomization.yaml").open("a") as file:
        file.write(f"components: ['{git_server.url}//labels?ref=main']\n")
    assert len(lock(folder, fetching(tmp_path)).new) == 1
    _, desired = read(folder, fetching(tmp_path))
    assert names(desired) == ["prod-crd", "prod-own"]
    assert {each.manifest["metadata"]["annotations"]["a"] for each in desired.manifests} == {"b"}


def test_what_is_wrong_in_the_overlay_keeps_its_line(tmp_path, git_server):
    git_server.push(UPSTREAM, "first")
    folder = overlay(tmp_path, f"{git_server.url}//config?ref=main")
    with (folder / "kustomization.yaml").open("a") as file:
        file.write("images:\n- {name: nobody, newTag: '2'}\n")
    lock(folder, fetching(tmp_path))
    _, desired = read(folder, fetching(tmp_path))
    assert [(each.path, each.line) for each in desired.problems] == [("prod/kustomization.yaml", 5)]


LEADING_OUT = {
    "a base above it": {"config/kustomization.yaml": "resources: [../../../../../../../base]\n"},
    "a transformer above it": {"config/kustomization.yaml": "transformers: [../../../../../../../base]\n"},
}


@pytest.mark.parametrize("files", LEADING_OUT.values(), ids=LEADING_OUT)
def test_what_is_fetched_sees_nothing_of_the_repository_that_it_is_fetched_for(tmp_path, git_server, files):
    git_server.push({**UPSTREAM, **files}, "first")
    own = {"base/kustomization.yaml": "resources: [own.yaml]\n", "base/own.yaml": CONFIG % "own"}
    folder = overlay(tmp_path, f"{git_server.url}//config?ref=main", **own)
    [problem] = lock(folder, fetching(tmp_path)).problems
    assert "leads out of the repository that it was fetched from" in problem.message
    assert not (folder / "reconcile.lock.yaml").exists()


# -- files ---------------------------------------------------------------------------------------------------------------


def test_a_file_of_a_web_server_is_used_as_it_was_locked_and_as_nothing_else(tmp_path):
    pages = {"/install.yaml": (CONFIG % "theirs").encode()}
    with serving(pages) as (url, asked):
        folder = overlay(tmp_path, f"{url}/install.yaml", "own.yaml", **{"prod/own.yaml": CONFIG % "own"})
        assert errors_among(read(folder, fetching(tmp_path))[1].problems)
        assert asked == []
        lock(folder, fetching(tmp_path))
        assert names(read(folder, fetching(tmp_path))[1]) == ["prod-own", "prod-theirs"]
        before = len(asked)
        assert names(read(folder, fetching(tmp_path))[1]) == ["prod-own", "prod-theirs"]
        assert len(asked) == before  # it is known by its digest
        pages["/install.yaml"] = (CONFIG % "changed").encode()
        secret = a_secret(url)  # who asks otherwise is told what the server says
        said = refused(lambda: read(folder, fetching(tmp_path, secret)), SourceFault.UNTRUSTED)
        assert f"{url}/install.yaml: expected sha256:" in said


def test_a_file_that_is_longer_than_any_manifest_is_refused(tmp_path):
    limits = replace(SourcePolicy.of_person().limits, file_bytes=1000)
    with serving({"/install.yaml": b"#" * 1001}) as (url, _):
        folder = overlay(tmp_path, f"{url}/install.yaml")
        fetches = SyncFetching(tmp_path / "cache", replace(SourcePolicy.of_person(), limits=limits))
        refused(lambda: lock(folder, fetches), SourceFault.REFUSED)


# -- who is told what --------------------------------------------------------------------------------------------------------


def a_secret(urls):
    data = {
        name: base64.b64encode(value).decode() for name, value in (("username", b"shop"), ("password", b"pa55word"))
    }
    return {"metadata": {"name": "git", "namespace": "shop", "annotations": {"reconcile.dev/urls": urls}}, "data": data}


def test_credentials_go_to_repositories_that_their_secret_names_and_to_no_other(tmp_path, own_git_server):
    server = own_git_server(username="shop", password="pa55word")
    server.push(UPSTREAM, "first")
    folder = overlay(tmp_path, f"{server.url}//config?ref=main")
    for others in ((), (a_secret("https://git.example.com"),), (a_secret(f"{server.url}-of-others"),)):
        said = refused(lambda secrets=others: lock(folder, fetching(tmp_path, *secrets)), SourceFault.UNAUTHORIZED)
        assert "pa55word" not in said
    secret = a_secret(f"https://git.example.com {server.url}")
    lock(folder, fetching(tmp_path, secret))
    assert names(read(folder, fetching(tmp_path, secret))[1]) == ["prod-app", "prod-crd"]


def test_credentials_of_the_web_go_to_files_that_their_secret_names(tmp_path):
    basic = "Basic " + base64.b64encode(b"shop:pa55word").decode()
    with serving({"/a/install.yaml": (CONFIG % "theirs").encode()}, basic) as (url, asked):
        folder = overlay(tmp_path, f"{url}/a/install.yaml?raw=true")
        refused(lambda: lock(folder, fetching(tmp_path, a_secret(f"{url}/b"))), SourceFault.UNAUTHORIZED)
        assert {who for _, who in asked} == {None}
        with pytest.raises(SourceError):  # the page is served without a query
            lock(folder, fetching(tmp_path, a_secret(f"{url}/a")))
        assert asked[-1] == ("/a/install.yaml?raw=true", basic)


def test_a_base_that_only_an_overlay_names_is_at_no_private_address(tmp_path, git_server):
    git_server.push(UPSTREAM, "first")
    with serving({"/install.yaml": (CONFIG % "theirs").encode()}) as (url, asked):
        for entry in (f"{git_server.url}//config?ref=main", f"{url}/install.yaml"):
            folder = overlay(tmp_path, entry)
            lock(folder, fetching(tmp_path))
            asked.clear()
            elsewhere = fetching(tmp_path / "other", urls=UrlPolicy(states="https://git.example.com/shop"))
            said = refused(lambda policy=elsewhere, where=folder: read(where, policy), SourceFault.REFUSED)
            assert "is a private address, and the Sync states another host" in said
            allowed = UrlPolicy.of([git_server.url, url])
            assert names(
                read(
                    folder, fetching(tmp_path / "third", urls=replace(allowed, states="https://git.example.com/shop"))
                )[1]
            )
            asked.clear()
            others = fetching(tmp_path / "fourth", urls=UrlPolicy.of(["https://git.example.com"]))
            assert "isn't allowed here" in refused(
                lambda policy=others, where=folder: read(where, policy), SourceFault.REFUSED
            )
            assert asked == []


@pytest.mark.parametrize(
    "entry", ["http://169.254.169.254/latest/x.yaml", "http://169.254.169.254/a/b.git//c?ref=main"]
)
def test_link_local_addresses_are_never_asked(tmp_path, entry):
    folder = overlay(tmp_path, entry)
    assert "link-local address" in refused(lambda: lock(folder, fetching(tmp_path)), SourceFault.REFUSED)


def test_fields_come_from_files_of_what_was_fetched(tmp_path, git_server):
    git_server.push(UPSTREAM, "first")
    folder = overlay(tmp_path, f"{git_server.url}//config?ref=main")
    lock(folder, fetching(tmp_path))
    reader, desired = read(folder, fetching(tmp_path))
    source = WorktreeSource(folder)
    with source.tree("") as tree:
        origins = Origins(reader.traced(source, "prod", tree))
    found = {origins.of_object(number).file.partition("config/")[2] for number in range(len(desired.manifests))}
    assert "app.yaml" in found
