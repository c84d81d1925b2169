"""The page as a daemon serves it: people with tokens of the cluster, who see and do what these may, and nothing else."""

import asyncio
import json
import logging
import re
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from kubectl_reconcile.web import in_cluster
from kubectl_reconcile.web.addresses import origins_of
from kubectl_reconcile.web.asking import Asker, tenant_of
from kubectl_reconcile.web.people import people, seen_fleet, sign_in
from kubectl_reconcile.web.rate_limit import RateLimit
from tests.security.tarpit import tarpit
from tests.waiting import until
from tests.web.site import ORIGIN, site_of

ABOUT, SYNCS = "/api/v1/about", "/api/v1/syncs"
SYNC = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "shop"}, "spec": {"suspend": True}}


@pytest.fixture
async def shop(session, namespace):
    """A Sync of the test's namespace."""
    return await session.client.create(f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs", SYNC)


def names(found):
    return {(row["namespace"], row["name"]) for row in found["rows"]}


async def test_people_see_the_syncs_that_their_own_rights_let_them_see(
    site, token_of, allow, shop, session, namespace, kubectl
):
    other = f"{namespace}-b"
    kubectl("create", "namespace", other)
    try:
        await session.client.create(f"/apis/reconcile.dev/v1alpha1/namespaces/{other}/syncs", SYNC)
        allow("alice", "get,list,watch")
        allow("bob", "list", where=other)
        alice, bob = await token_of("alice"), await token_of("bob")
        assert names(await site.until(SYNCS, alice, lambda found: found["rows"])) == {(namespace, "shop")}
        found = await site.until(SYNCS, bob, lambda found: found["rows"])
        assert (names(found), found["namespaces"], found["total"]) == ({(other, "shop")}, [other], 1)
        refused = await site.get(SYNCS, await token_of("carol"), status=403)
        assert "no Sync that you may list" in refused["error"]["message"]
        path = f"{SYNCS}/{namespace}/shop"
        assert (await site.get(path, alice))["name"] == "shop"
        assert "bob" in (await site.get(path, bob, status=403))["error"]["message"]
        assert (await site.ask(f"{path}/resume", method="POST", token=alice, json={})).status == 403
    finally:
        kubectl("delete", "namespace", other, "--wait=false")


async def test_a_right_that_is_gone_counts_no_more(site, token_of, allow, shop, namespace, kubectl, monkeypatch):
    monkeypatch.setattr(seen_fleet, "REVIEWED_S", -1.0)
    allow("alice", "list")
    alice = await token_of("alice")
    await site.until(SYNCS, alice, lambda found: found["rows"])
    kubectl("delete", "rolebinding", "alice-list", "-n", namespace)

    async def is_refused():
        return (await site.ask(SYNCS, token=alice)).status == 403

    await until(is_refused, "the right is gone for the page, too")


async def test_only_changes_that_somebody_may_see_are_pushed(site, token_of, allow, shop, session, namespace):
    allow("alice", "list")
    alice = await token_of("alice")
    await site.until(SYNCS, alice, lambda found: found["rows"])
    async with told(site, alice) as events:
        assert (await anext(events))[0] == "again"
        path = f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs/shop"
        await session.client.patch(path, {"spec": {"suspend": False}})
        kind, data = await anext(events)
        assert kind == "syncs"
        assert names(data) == {(namespace, "shop")}


@asynccontextmanager
async def told(site, token):
    headers = {"Authorization": f"Bearer {token}"}
    async with asyncio.timeout(150), site.browser.get(f"{site.origin}/api/v1/stream", headers=headers) as answer:
        yield events_of(answer)


async def events_of(answer):
    kind = ""
    async for line in answer.content:
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            kind = value
        if name == "data":
            yield kind, json.loads(value)


WRONG = {
    "none": {},
    "one that the cluster doesn't know": {"Authorization": "Bearer nobody-s-token"},
    "no token at all": {"Authorization": "Bearer "},
    "something else": {"Authorization": "Bearer a b"},
    "a password": {"Authorization": "Basic YWRtaW46YWRtaW4="},
    "a name": {"X-Remote-User": "sandbox-admin", "X-Remote-Group": "system:masters"},
    "a name to act as": {"Impersonate-User": "sandbox-admin", "Impersonate-Group": "system:masters"},
    "what proxies say": {"X-Forwarded-User": "sandbox-admin", "X-Auth-Request-Email": "admin@example.com"},
    "a cookie that nobody was given": {"Cookie": "kubectl-reconcile-80=x; __Host-reconcile=x"},
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
async def test_nobody_else_is_let_in(site, headers):
    for path in (ABOUT, SYNCS, "/api/v1/stream"):
        answer = await site.ask(path, headers=headers)
        assert answer.status == 401
        assert (await answer.json())["error"]["enter"] == "/start"
        assert "Set-Cookie" not in answer.headers
    assert (await site.ask("/", headers=headers)).status == 200  # the page itself tells nothing


async def test_who_has_a_token_is_whoever_the_cluster_says_whatever_else_is_said(site, token_of, namespace):
    alice = await token_of("alice")
    forged = {
        "Impersonate-User": "sandbox-admin", "Impersonate-Group": "system:masters", "X-Remote-User": "sandbox-admin",
        "X-Remote-Group": "system:masters", "X-Forwarded-User": "sandbox-admin",
    }  # fmt: skip
    answer = await site.ask(ABOUT, token=alice, headers=forged)
    assert (await answer.json())["name"] == f"system:serviceaccount:{namespace}:alice"
    assert (await site.ask(SYNCS, token=alice, headers=forged)).status == 403


async def test_a_browser_keeps_a_key_and_not_the_token(site, token_of, namespace):
    alice = await token_of("alice")
    answer = await site.sign_in(alice, "/syncs/shop/web?x=1")
    assert (answer.status, answer.headers["Location"]) == (303, "/syncs/shop/web?x=1")
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert alice not in cookie
    key = cookie.partition(";")[0]
    assert (await (await site.ask(ABOUT, key=key)).json())["name"].endswith(":alice")
    assert "alice" in await (await site.ask("/start", key=key)).text()
    refused = await site.ask(ABOUT, key=key, headers={"Authorization": "Bearer nobody-s-token"})
    assert refused.status == 401  # a token counts before a cookie
    left = await site.ask("/start", method="POST", key=key, data={"leave": "yes"})
    assert (left.status, left.headers["Location"]) == (303, "/start")
    assert (await site.ask(ABOUT, key=key)).status == 401


async def test_behind_a_proxy_the_cookie_is_bound_to_the_host(site, token_of):
    headers = {"Host": "sync.example.com", "Origin": ORIGIN}
    answer = await site.ask("/start", method="POST", headers=headers, data={"token": await token_of("alice")})
    assert answer.headers["Set-Cookie"].startswith("__Host-reconcile=")
    assert "Secure" in answer.headers["Set-Cookie"]


OTHERS = {
    "a name that somebody points here": {"Host": "rebound.example.com"},
    "a name that ends so": {"Host": "x.sync.example.com"},
    "the name at another port": {"Host": "sync.example.com:81"},
    "a page of another site": {"Origin": "https://evil.example.com"},
    "a page at this machine": {"Host": "sync.example.com", "Origin": "http://sync.example.com"},
    "a page without an origin": {"Origin": "null"},
    "a script of another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS)
async def test_other_sites_and_names_get_nothing_even_with_the_token(site, token_of, headers):
    assert (await site.ask(ABOUT, token=await token_of("alice"), headers=headers)).status == 403


async def test_no_other_site_signs_anybody_in_or_out(site, token_of):
    token = await token_of("alice")
    for data in ({"token": token}, {"leave": "yes"}):
        for headers in ({"Origin": "https://evil.example.com"}, {"Origin": "null"}):
            answer = await site.ask("/start", method="POST", headers=headers, data=data)
            assert answer.status == 403
            assert "Set-Cookie" not in answer.headers


async def test_the_form_says_what_is_wrong_and_after_many_wrong_tokens_others_are_looked_at_slowly(
    site, token_of, monkeypatch
):
    monkeypatch.setattr(people, "_WRONG_PER_S", 0.0)
    monkeypatch.setattr(people, "_REFUSED_S", 3000.0)
    key = (await site.sign_in(await token_of("alice"))).headers["Set-Cookie"].partition(";")[0]
    for number in range(int(people._WRONG_AT_ONCE)):
        answer = await site.sign_in(f"wrong-{number}")
        assert answer.status == 401
        assert "accept this token" in await answer.text()
    again = await site.sign_in("wrong-0")
    assert again.status == 401  # it is known to be wrong
    assert (await site.sign_in("wrong-x")).status == 401  # after a while
    assert (await site.sign_in(await token_of("bob"))).status == 303  # from the same address, as behind a proxy
    monkeypatch.setattr(people, "_LATE_AT_MOST", 0)
    assert (await site.sign_in("wrong-y")).status == 429
    assert (await site.ask(ABOUT, token="wrong-z")).status == 429
    assert (await site.ask(ABOUT, key=key)).status == 200  # who is in stays in


async def test_those_whom_nobody_knows_take_nothing_from_who_is_known(token_of, session, crds, monkeypatch):
    monkeypatch.setattr(in_cluster, "_BURST", 20.0)
    monkeypatch.setattr(in_cluster, "_PER_S", 0.0)
    async with site_of(session) as site:
        assert [(await site.ask("/start")).status for _ in range(21)] == [200] * 20 + [429]
        assert (await site.ask(ABOUT, token=await token_of("alice"))).status == 200


async def test_all_tokens_of_a_person_ask_as_fast_as_one(site, token_of, monkeypatch):
    monkeypatch.setattr(RateLimit, "admits", counted := _Counted())
    for _ in range(3):
        assert (await site.ask(ABOUT, token=await token_of("alice"))).status == 200
    assert (await site.ask(ABOUT, token=await token_of("bob"))).status == 200  # an account of the same namespace
    assert len(counted.limits) == 2  # theirs, and that of all people


class _Counted:
    """Admits everybody, and remembers by which limits."""

    def __init__(self):
        self.limits = {}

    def __get__(self, limit, _kind):
        self.limits[id(limit)] = limit
        return lambda _now_s: True


async def test_a_token_is_in_no_log_and_no_answer(site, token_of, caplog, namespace):
    caplog.set_level(logging.DEBUG)
    alice, wrong = await token_of("alice"), "nobody-s-token"
    texts = []
    for token in (alice, wrong):
        paths = (ABOUT, SYNCS, f"{SYNCS}/{namespace}/shop", "/start")
        texts += [await (await site.ask(path, token=token)).text() for path in paths]
        texts.append(await (await site.sign_in(token)).text())
    for malformed in (f": Bearer {alice}\x01", f" : Bearer {alice}", f": Bearer {alice}{'x' * 17_000}"):
        answer = await answered_to(site, f"Authorization{malformed}")
        assert b"this request can't be read" in answer
        assert b"nosniff" in answer
        texts.append(answer.decode())
    said = caplog.text + repr([record.__dict__ for record in caplog.records])
    assert "signed in" in said
    assert "token refused" in said
    assert said.count("request not answered") >= 3
    for token in (alice[:40], wrong):
        assert token not in said
        assert not any(token in text for text in texts)


async def sent(site, *headers):
    """The status that is answered to headers as they stand, however malformed."""
    return int((await answered_to(site, *headers)).split()[1])


async def answered_to(site, *headers):
    """All that is answered to headers as they stand."""
    host, _, port = site.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        named = [*headers, *([] if any(each.startswith("Host") for each in headers) else [f"Host: {site.address}"])]
        lines = [f"GET {ABOUT} HTTP/1.1", *named, "Connection: close"]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        async with asyncio.timeout(150):
            return await reader.read()
    finally:
        writer.close()


NONSENSE = {
    "a host that is none": ("Host: [", 403),
    "a port that is none": ("Host: localhost:abc", 403),
    "a port that there isn't": ("Host: localhost:99999", 403),
    "a token that isn't text": ("Authorization: Bearer \xff", 401),
    "a cookie that isn't text": ("Cookie: kubectl-reconcile-80=\xff", 401),
    "a header that is none": ("Author ization: Bearer x", 400),
    "a header without an end": (f"X: {'x' * 17_000}", 400),
}


@pytest.mark.parametrize(("header", "status"), NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_is_refused_and_no_fault_of_ours(site, header, status):
    assert await sent(site, header) == status


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=x"])
async def test_a_form_that_is_no_text_is_refused(site, kind):
    headers = {"Content-Type": kind}
    assert (await site.ask("/start", method="POST", headers=headers, data=b"token=\xff")).status == 400


async def test_a_long_token_is_looked_at(site):
    assert await sent(site, f"Authorization: Bearer {'x' * 12_000}") == 401


async def test_the_newest_keys_of_a_person_count(site, token_of, monkeypatch):
    monkeypatch.setattr(people, "MOST_OF_ONE", 3)
    alice = await token_of("alice")
    keys = [(await site.sign_in(alice)).headers["Set-Cookie"].partition(";")[0] for _ in range(8)]
    assert [(await site.ask(ABOUT, key=key)).status for key in keys] == [401] * 5 + [200] * 3


async def test_a_token_that_the_cluster_accepts_no_more_is_forgotten(site, token_of, session, namespace):
    alice = await token_of("alice")
    key = (await site.sign_in(alice)).headers["Set-Cookie"].partition(";")[0]
    await session.client.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/alice")

    async def is_nobody():
        return (await site.ask(f"{SYNCS}/{namespace}/shop", key=key)).status == 401

    await until(is_nobody, "the server has forgotten the token, which it remembers for some seconds")
    assert (await site.ask(ABOUT, key=key)).status == 401


async def test_so_many_sessions_of_one_person_and_the_oldest_goes(site, token_of, monkeypatch):
    monkeypatch.setattr(people, "MOST_OF_ONE", 2)
    keys = [(await site.sign_in(await token_of("alice"))).headers["Set-Cookie"].partition(";")[0] for _ in range(3)]
    assert [(await site.ask(ABOUT, key=key)).status for key in keys] == [401, 200, 200]


async def test_who_makes_many_accounts_signs_out_none_but_these(monkeypatch):
    monkeypatch.setattr(people, "MOST", 4)
    known = people.People(None, None)
    for name in ("ada", "system:serviceaccount:shop:ci", *(f"system:serviceaccount:evil:{at}" for at in range(9))):
        known._welcome(name.encode(), people.Person(Asker(None, None, None, name, guest=True)))
    assert [each.asker.name.rpartition(":")[2] for each in known._known.values()] == ["ada", "ci", "7", "8"]


TENANTS = {
    "a person is one by themselves": ("ada@example.com", "ada@example.com"),
    "an account is its namespace": ("system:serviceaccount:shop:ci", "system:serviceaccount:shop"),
    "what only begins so is a person": ("system:serviceaccount:shop", "system:serviceaccount:shop"),
    "a node is one by itself": ("system:node:a", "system:node:a"),
}


@pytest.mark.parametrize(("name", "expected"), TENANTS.values(), ids=TENANTS)
def test_who_is_behind_a_name(name, expected):
    assert tenant_of(name) == expected


async def test_so_many_people_and_who_was_away_for_longest_goes(site, token_of, monkeypatch):
    monkeypatch.setattr(people, "MOST", 2)
    keys = [(await site.sign_in(await token_of(name))).headers["Set-Cookie"].partition(";")[0] for name in ("a", "b")]
    assert (await site.ask(ABOUT, key=keys[0])).status == 200
    await site.sign_in(await token_of("c"))
    assert [(await site.ask(ABOUT, key=key)).status for key in keys] == [200, 401]


async def test_nobody_is_known_for_longer_than_half_a_day(site, token_of, monkeypatch):
    keys = []
    for longest_s in (people.LONGEST_S, -1.0):
        monkeypatch.setattr(people, "LONGEST_S", longest_s)
        token = await token_of("alice")
        keys.append((await site.sign_in(token)).headers["Set-Cookie"].partition(";")[0])
    assert [(await site.ask(ABOUT, key=key)).status for key in keys] == [200, 401]


async def test_other_revisions_take_the_right_to_update_the_sync(site, token_of, allow, followed, namespace, manifests):
    await followed.make()
    followed.push({"a.yaml": manifests("config_map")("a")})
    allow("alice", "get,list")
    alice, path = await token_of("alice"), f"{followed.path}/plan?revision=main"
    await site.until(followed.path, alice, bool)
    assert "without the right to update" in (await site.get(path, alice, status=403))["error"]["message"]
    allow("alice", "update")

    async def may_update():
        return "without the right to update" not in await (await site.ask(path, token=alice)).text()

    await until(may_update, "the right to update counts")


@pytest.fixture
def patient(session):
    """The daemon waits for Git servers for an hour."""
    session.sources = replace(session.sources, limits=replace(session.sources.limits, seconds=3600))


LOOKS = {"plan": "{sync}/plan", "history": "{sync}/history"}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
async def test_nobody_waits_for_a_git_server_once_the_browser_has_gone(
    patient, site, token_of, allow, session, namespace, look
):
    allow("alice", "get,list")
    alice, path = await token_of("alice"), f"{SYNCS}/{namespace}/hangs"
    with tarpit() as hanging:
        await hanging_sync(session, namespace, hanging.urls[0])
        await site.until(path, alice, bool)
        asked = asyncio.create_task(site.ask(look.format(sync=path), token=alice))
        await until(lambda: hanging.waiting, "the Git server is asked")
        asked.cancel()
        await until(lambda: not hanging.waiting, "nobody waits for the Git server any more")


async def hanging_sync(session, namespace, url):
    """A Sync of a repository at *url*, which has been applied as far as anybody can tell."""
    place = f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs"
    spec = {"source": {"git": {"url": url, "branch": "main"}}, "timeout": "1h"}
    await session.client.create(place, {**SYNC, "metadata": {"name": "hangs"}, "spec": spec})
    row = {"revision": "f" * 40, "time": "2026-01-01T00:00:00Z", "result": "Succeeded"}
    await session.client.patch(f"{place}/hangs/status", {"status": {"history": [row]}})


ONWARD = {
    "a Sync": ("/syncs/shop/web", "/syncs/shop/web"),
    "a search": ("/?q=a%20b&state=Failed", "/?q=a%20b&state=Failed"),
    "another site": ("https://evil.example.com", "/"),
    "another site without a scheme": ("//evil.example.com", "/"),
    "another site as browsers read it": ("/\\evil.example.com", "/"),
    "a header": ("/a\r\nSet-Cookie: x=y", "/"),
    "the form": ("/start?next=/", "/"),
    "nothing": ("", "/"),
}


@pytest.mark.parametrize(("asked", "expected"), ONWARD.values(), ids=ONWARD)
def test_signing_in_leads_to_pages_of_this_site(asked, expected):
    assert sign_in.onward(asked) == expected


def test_what_somebody_sends_is_text_in_the_form():
    text = sign_in.form('/"><script>', wrong="<b>").text
    assert not re.search("<script|<b>", text)


@pytest.mark.parametrize(
    "url", ["http://a.example.com", "https://", "https://a/b", "https://u:p@a", "a.example.com", "https://a?x"]
)
def test_a_page_is_at_https_and_a_host_alone(url):
    with pytest.raises(ValueError, match=re.escape(url)):
        origins_of([url])


def test_the_origin_is_as_browsers_spell_it():
    assert origins_of(["https://Sync.Example.com/"]) == (ORIGIN,)
