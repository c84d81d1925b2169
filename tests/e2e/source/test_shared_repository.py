"""Many who follow one repository: its server is asked once for all, and only those are looked at whose manifests moved."""

from __future__ import annotations

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.sandbox.gitserver import GitServer
from kubectl_reconcile.source.git.cloned import objects
from kubectl_reconcile.source.git.followed_ref import FollowedRef
from kubectl_reconcile.source.git.source import Credentials, GitSource, Ref, Repository, SourceError, SourceFault

MAIN = Ref.of(branch="main")
WEB = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {color: %s}\n"
PATHS = ("", "apps", "apps/web", "apps/db", "base")
FILES = ("web.yaml", "apps/web/web.yaml", "apps/db/db.yaml", "base/all.yaml", "apps/notes.txt", "docs/page.md")
IGNORES = (".reconcileignore", "apps/.reconcileignore", "apps/db/.reconcileignore")


@pytest.fixture
def asked(monkeypatch):
    """The requests that git has sent to servers, as their command lines; they are sent all the same."""
    seen = []
    talk = FollowedRef._question

    def heard(self, names):
        seen.append(list(names))
        return talk(self, names)

    monkeypatch.setattr(FollowedRef, "_question", heard)
    return seen


@pytest.fixture
def followers(git_server, tmp_path):
    """Sources of paths of the test's repository, as one process has them: followers("apps", …)."""

    def make(*paths, ref=MAIN, credentials=None):
        repository = Repository.of(git_server.url, credentials)
        return [GitSource(repository, ref, path, cache_dir=tmp_path / "cache") for path in paths]

    return make


def test_one_question_answers_all_who_accept_what_was_said_since(git_server, followers, asked):
    sha = git_server.push({"apps/web.yaml": WEB % "red", "base/web.yaml": WEB % "red"})
    sources = followers("apps", "base", "")
    since_s = time.monotonic()
    for source in sources:
        source.since_s = since_s
    assert [source.revision().sha for source in sources] == [sha] * 3
    assert len(asked) == 1
    sources[0].since_s = time.monotonic()
    assert sources[0].fetch() == sha
    assert len(asked) == 2


def test_who_accepts_no_older_answer_asks_alone(git_server, followers, asked):
    git_server.push({"apps/web.yaml": WEB % "red"})
    [source] = followers("apps")
    first, second = source.fetch(), git_server.push({"apps/web.yaml": WEB % "blue"})
    assert (source.fetch(), first != second, len(asked)) == (second, True, 2)


def test_refs_of_all_are_in_one_question(git_server, followers, asked):
    main, stable = git_server.push({"a.yaml": WEB % "red"}), git_server.push({"a.yaml": WEB % "blue"}, branch="stable")
    [one], [other] = followers(""), followers("", ref=Ref.of(branch="stable"))
    assert (one.fetch(), other.fetch()) == (main, stable)
    one.since_s = other.since_s = time.monotonic()
    assert (one.fetch(), other.fetch()) == (main, stable)
    assert [sorted(names) for names in asked] == [
        ["refs/heads/main"], ["refs/heads/main", "refs/heads/stable"], ["refs/heads/main", "refs/heads/stable"],
    ]  # fmt: skip


def test_those_who_come_together_wait_for_one_answer_and_one_fetch(git_server, followers, asked):
    sha = git_server.push({f"apps/{at}/web.yaml": WEB % "red" for at in range(8)})
    sources = followers(*(f"apps/{at}" for at in range(8)))
    since_s, together = time.monotonic(), threading.Barrier(8)

    def read(source):
        source.since_s = since_s
        together.wait(200)
        return source.revision()

    with ThreadPoolExecutor(8) as threads:
        revisions = list(threads.map(read, sources))
    assert {revision.sha for revision in revisions} == {sha}
    assert len(asked) == 1


def test_a_failure_is_everybodys_and_is_asked_about_again_by_who_wants_a_later_answer(git_server, followers, asked):
    git_server.push({"apps/web.yaml": WEB % "red"})
    sources = followers("apps", "base")
    since_s = time.monotonic()
    git_server.server.stop()
    for source in sources:
        source.since_s = since_s
        with pytest.raises(SourceError) as failed:
            source.fetch()
        assert failed.value.fault is SourceFault.UNREACHABLE
    assert len(asked) == 1
    git_server.server.start()
    sources[1].since_s = time.monotonic()
    assert sources[1].fetch() == git_server.sha()


def test_who_has_other_credentials_is_told_nothing_that_the_server_said_to_others(git_server, followers, asked):
    git_server.push({"apps/web.yaml": WEB % "red"})
    [one], [other] = followers("apps"), followers("apps", credentials=Credentials("mallory", "guessed"))
    assert one.server is not other.server
    one.fetch()
    other.since_s = 0.0
    assert not other.is_current(0.0)
    other.fetch()
    assert len(asked) == 2


def test_a_source_is_current_while_the_last_answer_is_young_enough_and_says_what_was_read(git_server, followers):
    git_server.push({"apps/web.yaml": WEB % "red"})
    one, other = followers("apps", "base")
    assert not one.is_current(0.0)
    began_s = time.monotonic()
    one.fetch()
    assert one.is_current(began_s)
    assert not one.is_current(time.monotonic())
    assert not other.is_current(0.0), "it was never read"
    git_server.push({"apps/web.yaml": WEB % "blue"})
    other.fetch()
    assert not one.is_current(0.0)


def test_readers_of_a_clone_end_when_nobody_asks_for_a_while(git_server, followers, eventually, monkeypatch):
    monkeypatch.setattr(objects, "_IDLE_S", 1000.0)
    git_server.push({"apps/web.yaml": WEB % "red"})
    [source] = followers("apps")
    source.revision()
    reader = source._clone.reader
    assert reader.is_open
    monkeypatch.setattr(objects, "_IDLE_S", 0.1)
    assert eventually(lambda: not reader.is_open, "the reader ends")
    assert source.commit(source.tip).sha == source.tip


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("file"), st.sampled_from(FILES), st.sampled_from(["red", "blue", None])),
        st.tuples(st.just("ignore"), st.sampled_from(IGNORES), st.sampled_from(["*.txt\n", "db/\n", "web.yaml\n", None])),
        st.tuples(st.just("rename"), st.sampled_from(FILES), st.sampled_from(FILES)),
        st.tuples(st.just("down"), st.just(""), st.none()),
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with GitServer(tmp_path_factory.mktemp("shared")) as server:
        yield server


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_is_pushed_ignored_renamed_and_removed_all_are_looked_at_whose_objects_changed_and_none_whose_inputs_did_not(
    server, steps
):
    """One of the followers asks after each step; each other is held to what it would have read itself."""
    with tempfile.TemporaryDirectory() as folder:
        repository = server.create(f"history-{Path(folder).name}")
        there: dict[str, str | None] = dict.fromkeys(FILES, WEB % "green")
        repository.push(there)
        sources = [GitSource(Repository.of(repository.url), MAIN, path, cache_dir=Path(folder)) for path in PATHS]
        readers = [ManifestReader() for _ in PATHS]
        asking, followed = sources[-1], list(zip(sources, readers, strict=True))[:-1]
        read = [_state(reader, source) for source, reader in followed]
        for kind, path, content in steps:
            if kind == "down":  # a poll fails, and the next push is heard of all the same
                server.stop()
                with pytest.raises(SourceError):
                    asking.fetch()
                server.start()
                continue
            if kind == "rename":
                edit = {path: None, content: there.get(path) or there.get(content)}
            else:
                edit = {path: None if content is None else WEB % content if kind == "file" else content}
            before, there = there, there | edit
            repository.push(edit)
            asking.fetch()
            for at, (source, reader) in enumerate(followed):
                could_be_read = not isinstance(read[at], SourceFault)
                moved = reader.has_moved(source) or not could_be_read  # which is tried again in any case
                now = _state(ManifestReader(), _fresh(source, folder))
                assert moved or now == read[at], "its objects changed, and nobody looks"
                same = could_be_read and _inputs(before, source.path) == _inputs(there, source.path)
                assert not (moved and same), "it is looked at for nothing"
                if moved:
                    read[at] = _state(reader, source)


def _inputs(there, path):
    """All files that have a say in what a path asks for: its own, and what is ignored by the folders above it."""
    parts = path.split("/") if path else []
    above = {"/".join([*parts[:length], ".reconcileignore"]) for length in range(len(parts))}
    return {
        name: text
        for name, text in there.items()
        if text is not None and (name in above or not path or name == path or name.startswith(f"{path}/"))
    }


def _state(reader, source):
    try:
        desired = reader.read(source)
    except SourceError as error:
        return error.fault
    return desired.digest, desired.problems


def _fresh(source, folder):
    return GitSource(source.repository, MAIN, source.path, cache_dir=Path(folder))


@pytest.mark.parametrize(
    "credentials", [None, Credentials(username="robot", password="guessed")], ids=["none", "wrong"]
)
def test_what_others_fetched_is_shown_to_nobody_whom_the_server_doesnt_let_in(own_git_server, tmp_path, credentials):
    private = own_git_server(username="robot", password="pa55word")
    sha = private.push({"web.yaml": WEB % "secret"}, message="the secret plan")

    def asking(of):
        repository = Repository.of(private.url, of)
        return GitSource(repository, MAIN, cache_dir=tmp_path / "cache", guarded=True)

    owner = asking(Credentials(username="robot", password="pa55word"))
    assert owner.revision().sha == sha
    assert owner.commit(sha).subject == "the secret plan"
    for stranger in (
        asking(credentials),
        GitSource(
            Repository.of(private.url, credentials), Ref.of(commit=sha), cache_dir=tmp_path / "cache", guarded=True
        ),
    ):
        for _ in range(2):  # before it asks, and after it was refused
            assert (stranger.commit(sha), stranger.resolve(sha[:8])) == (None, "")
            assert (stranger.read_at(sha, "web.yaml"), *stranger.versions("web.yaml", [sha])) == (None, None)
            assert stranger.commits_touching("web.yaml", sha) == ()
            for look in (stranger.revision, lambda: stranger.revision_at(sha), lambda: stranger.tree(sha)):  # noqa: B023 - called at once
                with pytest.raises(SourceError):
                    look()
    assert owner.read_at(sha, "web.yaml") == (WEB % "secret").encode()
