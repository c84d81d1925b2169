"""A range of versions, followed: which tag is the newest, by what a server says, and how often it is asked."""

from __future__ import annotations

import subprocess
import time

import pytest

from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.asking.packets import advertised, question, told
from kubectl_reconcile.source.git.followed_ref import FollowedRef
from kubectl_reconcile.source.git.server_refs import Ref, RefsAnswer, RemoteRef
from kubectl_reconcile.source.git.source import GitSource, Repository

ONE, TWO, THREE = ("1" * 40, "2" * 40, "3" * 40)
WEB = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {color: %s}\n"


def tags(**found):
    """Return what a server says of these tags: a commit, or an annotated tag and its commit."""
    said = {}
    for name, at in found.items():
        full = f"refs/tags/{name}"
        said |= {full: at} if isinstance(at, str) else {full: at[0], f"{full}^{{}}": at[1]}
    return said


CHOICES = {
    "the newest": ("1.x", {"v1.2.0": ONE, "v1.10.0": TWO, "v2.0.0": THREE}, RemoteRef("refs/tags/v1.10.0", TWO)),
    "an annotated tag, at its commit": ("*", {"1.0.0": (TWO, ONE)}, RemoteRef("refs/tags/1.0.0", ONE, TWO)),
    "a release before what comes before it": (
        "1.x", {"v1.2.0": ONE, "v1.3.0-rc.1": TWO}, RemoteRef("refs/tags/v1.2.0", ONE),
    ),
    "what comes before a release, where the range names that": (
        ">=1.0.0-0", {"v1.2.0": ONE, "v1.3.0-rc.1": TWO}, RemoteRef("refs/tags/v1.3.0-rc.1", TWO),
    ),
    "of one version spelt twice, the last in the alphabet": (
        "1.x", {"1.2.0": ONE, "v1.2.0": TWO, "1.2.0+b": THREE}, RemoteRef("refs/tags/v1.2.0", TWO),
    ),
    "no tag that isn't a version": ("*", {"nightly": ONE, "web/v1.2.0": TWO, "v1": THREE}, None),
    "none where none is in the range": (">=3", {"v1.2.0": ONE}, None),
    "none where there are none": ("*", {}, None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "found", "expected"), CHOICES.values(), ids=CHOICES)
def test_a_range_leads_to(text, found, expected):
    assert Ref.of(semver=text).among(tags(**found)) == expected


def test_what_a_range_leads_to_is_worked_out_once_for_an_answer_and_those_that_say_the_same():
    ref, asked = Ref.of(semver="1.x"), frozenset(["refs/tags/"])
    first = RefsAnswer().followed_by(1.0, asked, tags(**{"v1.0.0": ONE}))
    second = first.followed_by(2.0, asked, tags(**{"v1.0.0": ONE}))
    third = second.followed_by(3.0, asked, tags(**{"v1.0.0": ONE, "v1.1.0": TWO}))
    assert first.at(ref) is second.at(ref)
    assert (second.begun_s, third.at(ref)) == (2.0, RemoteRef("refs/tags/v1.1.0", TWO))


def packet(text):
    return b"%04x%b" % (len(text) + 4, text.encode())


def test_all_tags_are_asked_for_by_what_their_names_begin_with():
    names = Ref.of(semver="1.x").names()
    assert b"ref-prefix refs/tags/\n" in question(names, "sha1")
    lines = f"{ONE} refs/tags/v1.0.0 peeled:{TWO}\n", f"{THREE} refs/tags/v1.1.0\n", f"{THREE} refs/tagsnot/v1\n"
    found = tags(**{"v1.0.0": (ONE, TWO), "v1.1.0": THREE})
    assert told(b"".join(map(packet, lines)) + b"0000", names) == found


def test_of_a_server_that_lists_all_its_refs_only_tags_are_taken():
    lines = f"{ONE} HEAD\0agent=x\n", f"{ONE} refs/heads/1.0.0\n", f"{ONE} refs/tags/v1\n", f"{TWO} refs/tags/v1^{{}}\n"
    offer = advertised(b"".join(map(packet, lines)) + b"0000", Ref.of(semver="*").names())
    assert offer.refs == tags(v1=(ONE, TWO))


# -- real servers ------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """The questions that were put to servers, as the names that were asked for."""
    seen = []
    put = FollowedRef._question

    def heard(self, names):
        seen.append(list(names))
        return put(self, names)

    monkeypatch.setattr(FollowedRef, "_question", heard)
    return seen


def git(repository, *arguments):
    command = ["git", f"--git-dir={repository.folder}", "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    subprocess.run(command, capture_output=True, check=True, timeout=300)


def following(server, tmp_path, **ref):
    return GitSource(Repository.of(server.url), Ref.of(**ref), cache_dir=tmp_path / "cache")


def test_the_newest_tag_is_read_and_followed_wherever_it_is(git_server, tmp_path, asked):
    first = git_server.push({"web.yaml": WEB % "red"})
    git(git_server, "tag", "-a", "-m", "first", "v1.0.0", first)
    second = git_server.push({"web.yaml": WEB % "blue"})
    one, other = (following(git_server, tmp_path, semver=text) for text in ("1.x", "~1.0"))
    [main] = [following(git_server, tmp_path, branch="main")]
    since_s = time.monotonic()
    for each in (one, other, main):
        each.since_s = since_s
    assert [(each.revision().sha, each.revision().commit.tag) for each in (one, other, main)] == [
        (first, "v1.0.0"), (first, "v1.0.0"), (second, ""),
    ]  # fmt: skip
    assert asked == [["refs/tags/"], ["refs/heads/main"]], "one question for all ranges, and none of it for branches"
    git(git_server, "tag", "v1.1.0", second)
    one.since_s = time.monotonic()
    assert (one.remote_sha(), one.tag_of(second), one.tag_of(first)) == (second, "v1.1.0", "v1.0.0")
    del asked[:]
    one.since_s = other.since_s = time.monotonic()
    assert (one.revision().sha, one.revision().commit.tag) == (second, "v1.1.0")
    assert (other.is_current(since_s), other.revision().sha) == (True, first)
    assert len(asked) == 1
    git(git_server, "tag", "-d", "v1.1.0")
    one.since_s = time.monotonic()
    assert (one.revision().sha, one.revision().commit.tag) == (first, "v1.0.0"), "a tag that is deleted isn't followed"


def test_where_no_tag_is_in_the_range_it_says_what_counts(git_server, tmp_path):
    sha = git_server.push({"web.yaml": WEB % "red"})
    git(git_server, "tag", "v2.0.0-rc.1", sha)
    with pytest.raises(SourceError) as refused:
        following(git_server, tmp_path, semver="2.x").revision()
    assert refused.value.fault is SourceFault.NO_SUCH_REF
    assert 'it has no tag that is a version in "2.x"' in str(refused.value)
    assert "versions before a release count only where the range names one" in str(refused.value)


def test_git_finds_the_same_tags_where_it_puts_the_question(git_server, tmp_path, monkeypatch, gits):
    monkeypatch.setenv("GIT_SSL_VERSION", "tlsv1.3")  # which git alone is asked about
    first = git_server.push({"web.yaml": WEB % "red"})
    git(git_server, "tag", "-a", "-m", "first", "v1.0.0", first)
    git_server.push({"web.yaml": WEB % "blue"}, branch="v1.1.0")
    gits()
    assert following(git_server, tmp_path, semver="1.x").remote_sha() == first
    assert gits() > 0
