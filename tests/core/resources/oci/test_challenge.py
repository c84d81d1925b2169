"""How registries ask who we are, as they write it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.oci.challenge import BearerChallenge, bearer_of, token_of

HEADERS = {
    "a realm, a service and a scope": (
        'Bearer realm="https://auth.example.com/token",service="reg",scope="repository:a/b:pull"',
        BearerChallenge("https://auth.example.com/token", "reg", "repository:a/b:pull"),
    ),
    "spaces between, other letters, no quotes": (
        'bearer Realm="https://auth.example.com/t" , Service=reg',
        BearerChallenge("https://auth.example.com/t", "reg"),
    ),
    "after another": (
        'Basic realm="it, is", Bearer realm="https://auth.example.com/t"',
        BearerChallenge("https://auth.example.com/t"),
    ),
    "a quote in it": (r'Bearer realm="https://a.example.com/\"x\""', BearerChallenge('https://a.example.com/"x"')),
    "the first of two": ('Bearer realm="https://a", Bearer realm="https://b"', BearerChallenge("https://a")),
    "said twice": ('Bearer realm="https://a",realm="https://b"', BearerChallenge("https://a")),
    "basic alone": ('Basic realm="test"', None),
    "no realm": ('Bearer service="reg"', None),
    "a quote that never ends": ('Bearer realm="https://a', None),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("header", "found"), HEADERS.values(), ids=HEADERS)
def test_a_challenge_is_read(header, found):
    assert bearer_of(header) == found


SCOPES = {
    "what is asked for": ("repository:a/b:pull", "repository:a/b:pull"),
    "a name that the registry has for it": ("repository:library/b:pull", "repository:library/b:pull"),
    "pushing, too": ("repository:a/b:pull,push", "repository:a/b:pull"),
    "all of the registry": ("registry:catalog:*", "repository:a/b:pull"),
    "two": ("repository:a/b:pull repository:c:pull", "repository:a/b:pull"),
    "nothing": ("", "repository:a/b:pull"),
}


@pytest.mark.parametrize(("said", "asked"), SCOPES.values(), ids=SCOPES)
def test_a_token_is_asked_for_to_pull_and_for_nothing_else(said, asked):
    assert BearerChallenge("https://a", "", said).scope_for("a/b") == asked


TOKENS = {
    "as Docker says it": (b'{"token": "abc", "expires_in": 300}', ("abc", 300)),
    "as OAuth says it": (b'{"access_token": "abc"}', ("abc", 60)),
    "one that lasts too long": (b'{"token": "abc", "expires_in": 1e9}', ("abc", 60)),
    "one that lasts for days": (b'{"token": "abc", "expires_in": 999999}', ("abc", 3600)),
    "one that is over": (b'{"token": "abc", "expires_in": -1}', ("abc", 60)),
    "one with a line end": (b'{"token": "abc\\r\\nX: y"}', None),
    "none": (b"{}", None),
    "no object": (b"[]", None),
    "no JSON": (b"<html>", None),
    "deep JSON": (b"[" * 100_000, None),
}


@pytest.mark.parametrize(("body", "found"), TOKENS.values(), ids=TOKENS)
def test_a_token_is_read(body, found):
    token = token_of(body)
    assert (token and (token.text, token.lasts_s)) == found


def test_a_token_does_not_show():
    assert "abc" not in repr(token_of(b'{"token": "abc"}'))


@given(st.text(alphabet=' ,="\\aB\n', max_size=200))
def test_no_header_breaks_the_reader(header):
    bearer_of(f"Bearer {header}")


@pytest.mark.parametrize("piece", [" ", ",", '"', "\\", "a", "a=", '"\\'])
def test_a_long_header_takes_no_long_time(piece):
    begun = time.process_time()
    bearer_of("Bearer " + piece * 60_000)
    assert time.process_time() - begun < 1
