"""What is believed of a Git server's word, and what it is about."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from kubectl_reconcile.core.daemon.webhook_signature import HeardWords, Word, concerns, is_genuine
from kubectl_reconcile.core.resources.source import GitSpec

BODY = b'{"ref": "refs/heads/main"}'
SECRET = "s3cret"
PROOF = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()

GENUINE = {
    "GitHub": {"X-Hub-Signature-256": f"sha256={PROOF}"},
    "Gitea": {"X-Gitea-Signature": PROOF},
    "Forgejo": {"X-Forgejo-Signature": PROOF, "X-Hub-Signature-256": f"sha256={PROOF}"},
    "GitLab": {"X-Gitlab-Token": SECRET},
    "anything of one's own": {"x-signature-256": PROOF},
}

FORGED = {
    "nothing": {},
    "an empty signature": {"X-Hub-Signature-256": ""},
    "a mere prefix": {"X-Hub-Signature-256": "sha256="},
    "the signature of another body": {"X-Hub-Signature-256": f"sha256={'0' * 64}"},
    "the older, weaker hash": {"X-Hub-Signature": "sha1=" + hmac.new(SECRET.encode(), BODY, "sha1").hexdigest()},
    "a wrong token": {"X-Gitlab-Token": "s3cre"},
    "an empty token": {"X-Gitlab-Token": ""},
    "letters that are none": {"X-Gitlab-Token": "s3cret\u00e9", "X-Gitea-Signature": "\u00ff"},
}


@pytest.mark.parametrize("headers", GENUINE.values(), ids=GENUINE)
def test_who_knows_the_secret_is_believed(headers):
    assert is_genuine(headers, BODY, SECRET)
    assert not is_genuine(headers, BODY + b" ", SECRET) or "X-Gitlab-Token" in headers


@pytest.mark.parametrize("headers", [*FORGED.values(), *GENUINE.values()], ids=[*FORGED, *GENUINE])
def test_who_does_not_is_not(headers):
    assert not is_genuine(headers, BODY, "another")
    assert not is_genuine(headers, BODY, "")


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED)
def test_a_forgery_is_not_believed(headers):
    assert not is_genuine(headers, BODY, SECRET)


ABOUT = {
    "the branch": ("refs/heads/main", {"branch": "main"}, True),
    "another branch": ("refs/heads/main", {"branch": "next"}, False),
    "any branch, where the default is followed": ("refs/heads/main", {}, True),
    "a tag, where a branch is followed": ("refs/tags/v1", {"branch": "main"}, False),
    "the tag": ("refs/tags/v1", {"tag": "v1"}, True),
    "a tag in the range": ("refs/tags/v1.4.2", {"semver": "1.x"}, True),
    "a tag beyond the range": ("refs/tags/v2.0.0", {"semver": "1.x"}, False),
    "a tag that is no version, where a range is followed": ("refs/tags/nightly", {"semver": "*"}, False),
    "a branch, where a range is followed": ("refs/heads/1.2.3", {"semver": "1.x"}, False),
    "a branch, where a commit is followed": ("refs/heads/main", {"commit": "ab" * 20}, False),
    "something else": ("refs/notes/x", {"branch": "main"}, True),
    "a number": (7, {"branch": "main"}, True),
}


@pytest.mark.parametrize(("ref", "git", "expected"), ABOUT.values(), ids=ABOUT)
def test_a_push_concerns_who_follows_what_was_pushed(ref, git, expected):
    assert concerns(json.dumps({"ref": ref}).encode(), GitSpec("https://git.example.com/shop", **git)) is expected


@pytest.mark.parametrize("body", [b"", b"payload=%7B%7D", b"[]", b"[" * 100_000, b"\xff"])
def test_a_body_that_says_nothing_may_concern_anybody(body):
    assert concerns(body, GitSpec("https://git.example.com/shop", branch="main"))


def word(body=BODY, **headers):
    made = Word(headers, SECRET)
    made.take(body)
    return made


def test_a_word_that_comes_in_pieces_is_the_same_word():
    made = Word(GENUINE["GitHub"], SECRET)
    for byte in BODY:
        assert not made.is_genuine
        made.take(bytes([byte]))
    assert made.is_genuine


@pytest.mark.parametrize("headers", GENUINE.values(), ids=GENUINE)
def test_a_body_is_read_only_of_what_bears_a_proof(headers):
    assert Word(headers, SECRET).may_be_genuine
    assert not Word(headers, "").may_be_genuine
    assert not Word({}, SECRET).may_be_genuine


def test_a_word_heard_before_is_known_by_its_number_and_by_its_body():
    heard = HeardWords()
    first = word(**{"X-GitHub-Delivery": "1"})
    assert not heard.is_replay("a/b", first)
    heard.remember("a/b", first)
    assert heard.is_replay("a/b", first)
    assert heard.is_replay("a/b", word(**{"X-GitHub-Delivery": "2"})), "numbers aren't signed"
    assert heard.is_replay("a/b", word(b"{}", **{"X-GitHub-Delivery": "1"}))
    assert not heard.is_replay("a/b", word(b"{}", **{"X-GitHub-Delivery": "2"}))
    assert not heard.is_replay("a/c", first), "another hook"


def test_words_without_a_number_are_all_new():
    heard = HeardWords()
    heard.remember("a/b", word())
    assert not heard.is_replay("a/b", word())


def test_memory_of_words_is_bounded_and_one_hook_does_not_make_another_forget():
    heard = HeardWords(most=4, most_hooks=3)
    kept = word(**{"X-GitHub-Delivery": "kept"})
    heard.remember("quiet", kept)
    loud = [word(b"%d" % number, **{"X-GitHub-Delivery": str(number)}) for number in range(10)]
    for each in loud:
        heard.remember("loud", each)
    assert heard.is_replay("quiet", kept)
    assert [heard.is_replay("loud", each) for each in loud] == [False] * 6 + [True] * 4
    for hook in "abc":
        heard.remember(hook, kept)
    assert not heard.is_replay("quiet", kept)
