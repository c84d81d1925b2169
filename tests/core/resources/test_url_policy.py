"""Which repositories may be followed: what is at or below an allowed URL, by whole segments, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.resources.url_policy import UrlPolicy

TEAM = UrlPolicy.of(["https://git.example.com/team", "git@git.example.com:shop"])

ALLOWED = [
    "https://git.example.com/team", "https://git.example.com/team/", "https://git.example.com/team/shop.git",
    "https://GIT.example.com:443/team/shop", "git@git.example.com:shop/web.git",
]  # fmt: skip
REFUSED = {
    "a longer segment": "https://git.example.com/team-evil/shop.git",
    "a longer host": "https://git.example.com.evil/team/shop.git",
    "the host as a user": "https://git.example.com@evil.example/team/shop.git",
    "the host as a user with a path": "https://git.example.com%2Fteam@evil.example/shop.git",
    "the host as a user and a password": "https://git.example.com:x@evil.example/team/shop.git",
    "another scheme": "http://git.example.com/team/shop.git",
    "another port": "https://git.example.com:8443/team/shop.git",
    "out of it and in again": "https://git.example.com/team/../evil/shop.git",
    "out of it, encoded": "https://git.example.com/team/%2e%2e/evil/shop.git",
    "a slash, encoded": "https://git.example.com/team%2Fshop.git",
    "a backslash": "https://git.example.com\\@evil.example/team/shop.git",
    "a fragment": "https://evil.example#https://git.example.com/team",
    "above it": "https://git.example.com/",
    "another user of SSH": "root@git.example.com:shop/web.git",
    "a folder of the machine": "file:///srv/git/team",
    "nothing": "",
}  # fmt: skip


@pytest.mark.parametrize("url", ALLOWED)
def test_what_is_at_or_below_an_allowed_url_may_be_followed(url):
    assert TEAM.allows(url)


@pytest.mark.parametrize("url", REFUSED.values(), ids=REFUSED)
def test_what_only_looks_like_it_may_not(url):
    assert not TEAM.allows(url)


def test_without_a_policy_all_may_be_followed():
    assert UrlPolicy.of([]).allows("https://anywhere.example/shop.git")


@pytest.mark.parametrize("prefix", ["git.example.com/team", "https://git.example.com/../team", "file:///srv", ""])
def test_what_is_no_url_of_a_repository_is_no_policy(prefix):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - its text is the prefix
        UrlPolicy.of([prefix])
    assert str(raised.value) == prefix
