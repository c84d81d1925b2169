"""Who is let in: whoever shows the ticket, once; only from the page's own address, and from its own pages."""

import pytest

from kubectl_reconcile.web.rate_limit import RateLimit

ABOUT = "/api/v1/about"


async def test_the_ticket_counts_once_and_the_cookie_from_then_on(served, session):
    page = await served(session, entered=False)
    assert (await page.ask(ABOUT)).status == 401
    entered = await page.enter()
    assert (entered.status, "url=/" in await entered.text()) == (200, True)
    cookie = entered.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert (await page.get(ABOUT))["server"] == session.client.server
    assert (await page.enter()).status == 200  # whoever is in goes on
    page.browser.cookie_jar.clear()
    assert (await page.enter()).status == 401
    assert (await page.ask(ABOUT)).status == 401


@pytest.mark.parametrize("ticket", ["", "x", "%00", "caf%C3%A9"])
async def test_no_other_ticket_counts(served, session, ticket):
    page = await served(session, entered=False)
    assert (await page.ask(f"/start?ticket={ticket}")).status == 401
    assert (await page.ask("/")).status == 401
    assert (await page.enter()).status == 200  # the right one counts all the same


async def test_a_browser_finds_an_icon_beside_every_answer_also_where_it_isnt_let_in(served, session):
    page = await served(session, entered=False)
    async with await page.ask("/favicon.ico") as answer:
        assert (answer.status, answer.content_type) == (200, "image/svg+xml")


OTHERS = {
    "a name that somebody points here": {"Host": "rebound.example.com"},
    "another port": {"Host": "127.0.0.1:1"},
    "a name that ends so": {"Host": "x.localhost"},
    "a page of another site": {"Origin": "https://evil.example.com"},
    "a page without an origin": {"Origin": "null"},
    "another port's page": {"Origin": "http://127.0.0.1:1"},
    "a script of another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "a page of another port, which is the same site": {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS)
async def test_nobody_else_is_answered_even_with_the_cookie(page, headers):
    assert (await page.ask(ABOUT, headers=headers)).status == 403


async def test_what_changes_something_needs_the_origin_too(page):
    assert (await page.ask("/api/v1/syncs/a/b/suspend", method="POST", json={})).status == 403


async def test_every_answer_tells_browsers_to_load_nothing_else(served, session):
    page = await served(session, entered=False)
    await page.enter()
    for path in ("/", "/assets/app.js", ABOUT, "/nowhere", "/api/v1/syncs?sort=age"):
        async with await page.ask(path) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cache-Control"] in {"no-store", "no-cache"}


async def test_a_file_that_a_browser_has_isnt_sent_again(page):
    first = await page.ask("/assets/page.css")
    again = await page.ask("/assets/page.css", headers={"If-None-Match": first.headers["ETag"]})
    assert (first.status, again.status, await again.read()) == (200, 304, b"")


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "vendor/LICENSES.txt", "index", ""])
async def test_no_other_file_is_sent(page, name):
    assert (await page.ask(f"/assets/{name}")).status == 404


async def test_nobody_asks_faster_than_a_person(served, session):
    page = await served(session, limit=RateLimit(burst=20, per_s=0.0))
    statuses = [(await page.ask("/assets/app.js")).status for _ in range(25)]
    assert statuses[0] == 200
    assert statuses[-1] == 429


async def test_a_large_body_is_refused(page):
    headers = {"Origin": page.origin, "Content-Type": "application/json"}
    answer = await page.ask("/api/v1/syncs/a/b/suspend", method="POST", data=b"1" * 100_000, headers=headers)
    assert answer.status == 413


def test_a_limit_lets_a_burst_through_and_then_so_many_a_second():
    limit = RateLimit(burst=2, per_s=1)
    assert [limit.admits(100.0) for _ in range(3)] == [True, True, False]
    assert [limit.admits(now) for now in (100.5, 101.0, 101.5, 102.0)] == [False, True, False, True]
