"""What is believed of a Git server's word, and what it is about."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from kubectl_reconcile.core.daemon.webhook_signature import concerns, is_genuine
from kubectl_reconcile.core.resources.sync import GitSpec

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
