"""Which repositories may be followed: what is at or below an allowed URL, by whole segments, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.resources.url_policy import UrlPolicy, networks_around

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


STATED = "https://git.example.com/shop"
INSIDE = networks_around(["10.96.0.1", "10.244.3.7", "fd00:10:96::1", "none"])
PLACES = {
    "a public address": ("8.8.8.8", STATED, (), ""),
    "the metadata of a cloud": ("169.254.169.254", STATED, (), "link-local"),
    "that as IPv6": ("::ffff:169.254.169.254", STATED, (), "link-local"),
    "that by NAT64": ("64:ff9b::a9fe:a9fe", STATED, (), "link-local"),
    "that of another cloud": ("fd00:ec2::254", STATED, (), "link-local"),
    "a link-local address with a zone": ("fe80::1%eth0", STATED, (), "link-local"),
    "no address at all": ("", STATED, (), "link-local"),
    "any address": ("::", STATED, (), "link-local"),
    "a private one that is stated": ("10.0.0.5", STATED, (), ""),
    "its own machine": ("127.0.0.1", STATED, (), ""),
    "its own pod, in a cluster": ("127.0.0.1", STATED, INSIDE, "within the cluster"),
    "a Service": ("10.96.44.5", STATED, INSIDE, "within the cluster"),
    "a pod": ("10.244.200.9", STATED, INSIDE, "within the cluster"),
    "a Service by IPv6": ("fd00:10:96::99", STATED, INSIDE, "within the cluster"),
    "a machine of the company, in a cluster": ("10.1.2.3", STATED, INSIDE, ""),
    "a private one that is named": ("10.0.0.5", "https://elsewhere.example.com/x", (), "another host"),
    "another port of the same host": ("10.0.0.5", "https://git.example.com:6443/x", (), "another host"),
    "the same host without TLS": ("10.0.0.5", "http://git.example.com/x", (), ""),
    "its own machine, named": ("::1", "http://localhost/x", (), "another host"),
    "a public one that is named": ("8.8.8.8", "https://elsewhere.example.com/x?sig=1", (), ""),
}


@pytest.mark.parametrize(("address", "url", "inside", "why"), PLACES.values(), ids=PLACES)
def test_addresses_are_judged_as_they_are_connected_to(address, url, inside, why):
    said = UrlPolicy((), inside).why_not(address, url, STATED)
    assert why in said
    assert bool(why) == bool(said)


def test_what_an_administrator_names_may_be_anywhere_but_where_clouds_keep_their_credentials():
    policy = UrlPolicy.of(["https://git.example.com", "http://charts.shop.svc"], INSIDE)
    assert policy.why_not("10.96.44.5", "http://charts.shop.svc/index.yaml", STATED) == ""
    assert policy.why_not("10.96.44.5", STATED, STATED) == ""
    assert "link-local" in policy.why_not("169.254.169.254", STATED, STATED)


def test_what_files_name_is_stated_only_where_it_is_what_the_sync_states():
    """A chart may depend on one of any URL, and whoever asks for that states it; the Sync doesn't."""
    named = "http://charts.shop.svc/index.yaml"
    assert UrlPolicy().why_not("10.0.0.5", named, named) == ""
    assert "private address" in UrlPolicy(states=STATED).why_not("10.0.0.5", named, named)
    assert UrlPolicy(states=STATED).why_not("93.184.216.34", named, named) == ""
    assert UrlPolicy(states=STATED).why_not("10.0.0.5", STATED, named) == ""
    assert "within the cluster" in UrlPolicy((), INSIDE, STATED).why_not("10.96.44.5", STATED, STATED)
    allowed = UrlPolicy.of(["http://charts.shop.svc"], INSIDE)
    assert UrlPolicy(allowed.addresses, INSIDE, STATED).why_not("10.96.44.5", named, named) == ""
    assert "private address" in UrlPolicy(states="file:///srv/shop").why_not("10.0.0.5", named, named)


@pytest.mark.parametrize("between", ["?@", "#@", "\\@", "?x=", "."])
def test_what_can_be_read_as_another_host_isnt_the_place_that_is_stated(between):
    """Whoever connects may read it as the host in front, whoever judges as the one behind."""
    url = f"http://10.0.0.5{between}charts.example.com/web.tgz".replace("5.charts.example.com", "5.")
    assert "private address" in UrlPolicy().why_not("10.0.0.5", url, "http://charts.example.com/")
    assert "private address" in UrlPolicy().why_not("10.0.0.5", url, url)
