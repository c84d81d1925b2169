"""What a refusal is worth, by what the server says of itself."""

from __future__ import annotations

import pytest

from kubectl_reconcile.cluster import readiness
from kubectl_reconcile.cluster.readiness import Readiness


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(readiness, "_REMEMBERED_S", -1)
    monkeypatch.setattr(readiness, "_PAUSE_S", 0)


def telling(*statuses):
    """A server that answers /readyz so, one after the other, the last one for ever."""
    left = list(statuses)

    async def ask():
        return left.pop(0) if len(left) > 1 else left[0]

    return Readiness(ask)


@pytest.mark.parametrize("status", [0, 500, 503])
async def test_a_server_that_is_not_ready_may_refuse_what_it_allows_later(status):
    assert await telling(status).is_starting()


@pytest.mark.parametrize("status", [200, 404, 401])
async def test_the_refusal_of_a_server_that_is_ready_or_that_does_not_know_the_question_is_its_last_word(status):
    assert not await telling(status).is_starting()


async def test_one_that_is_too_busy_to_answer_or_does_not_know_us_yet_is_asked_again():
    assert await telling(403, 429, 500).is_starting()
    assert not await telling(403, 429, 200).is_starting()


async def test_one_that_told_before_and_refuses_to_tell_has_forgotten_who_we_are():
    server = telling(200, 403)
    assert not await server.is_starting()
    assert await server.is_starting()


async def test_where_even_that_question_is_forbidden_for_good_it_is_asked_no_more(monkeypatch):
    monkeypatch.setattr(readiness, "_UNCLEAR_S", 0.05)
    server = telling(*[403] * 3, 403)
    assert not await server.is_starting()
    monkeypatch.setattr(readiness, "_UNCLEAR_S", 1e9)
    assert not await server.is_starting()


async def test_an_answer_holds_for_a_moment(monkeypatch):
    monkeypatch.setattr(readiness, "_REMEMBERED_S", 1e9)
    server = telling(200, 500)
    assert not await server.is_starting()
    assert not await server.is_starting()
