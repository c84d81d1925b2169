"""What a person has done from the page: the same as by the command line, by their own rights, and only as it was shown."""

import asyncio

import pytest

from kubectl_reconcile.cluster.errors import Conflict
from kubectl_reconcile.core.annotations import APPROVED_PLAN, PINNED_FROM, SYNC_REQUESTED_AT
from kubectl_reconcile.engine.commands import suspend_resume
from kubectl_reconcile.views import plan_review
from kubectl_reconcile.web import doings
from kubectl_reconcile.web.errors import answer_of
from tests.waiting import until


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


@pytest.fixture
async def made(followed, config_map):
    """A Sync with two objects in place."""
    await followed.make(maxDeletes=0)
    followed.first = followed.push({f"{name}.yaml": config_map(name) for name in ("a", "b")})
    await followed.sync()
    return followed


async def live(followed):
    path = f"/apis/reconcile.dev/v1alpha1/namespaces/{followed.namespace}/syncs/shop"
    return await followed.session.client.get(path)


async def annotations(followed):
    return (await live(followed))["metadata"].get("annotations", {})


async def test_suspend_and_resume(page, made):
    assert await page.post(f"{made.path}/suspend") == {"said": "suspended"}
    assert (await live(made))["spec"]["suspend"] is True
    assert (await page.get(made.path))["suspended"]
    await page.post(f"{made.path}/resume")
    assert not (await live(made))["spec"].get("suspend")


async def test_a_sync_takes_a_daemon_and_says_so_where_there_is_none(page, made, monkeypatch):
    monkeypatch.setenv("KUBECTL_RECONCILE_NAMESPACE", made.namespace)  # where no daemon keeps its Lease
    refused = await page.post(f"{made.path}/sync", status=409)
    assert "no daemon" in refused["error"]["message"]
    assert SYNC_REQUESTED_AT not in await annotations(made)


async def test_just_what_was_shown_is_approved(page, made):
    made.push({"a.yaml": None})
    shown = (await page.get(f"{made.path}/plan"))["approval"]
    assert shown
    sha = made.push({"b.yaml": None, "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"})
    refused = await page.post(f"{made.path}/approve", {"approval": shown}, status=409)
    assert "have changed" in refused["error"]["message"]
    assert APPROVED_PLAN not in await annotations(made)
    plan = await page.get(f"{made.path}/plan")
    assert plan["revision"] == sha
    await page.post(f"{made.path}/approve", {"approval": plan["approval"]})
    assert (await annotations(made))[APPROVED_PLAN] == plan["approval"]


async def test_a_row_of_the_history_is_gone_back_to_until_it_is_resumed(page, made, config_map):
    made.push({"a.yaml": config_map("a", color="red")})
    await made.sync()
    assert (await page.post(f"{made.path}/rollback", {"revision": made.first}))[
        "said"
    ] == f"goes back to {made.first[:7]}"
    assert (await live(made))["spec"]["source"]["git"]["commit"] == made.first
    assert (await page.get(made.path))["pinned"]
    assert "follows branch main again" in (await page.post(f"{made.path}/resume"))["said"]
    assert PINNED_FROM not in await annotations(made)


async def test_what_was_done_is_told_with_the_name_of_whoever_had_it_done(served, session_of, made, kubectl):
    namespace = made.namespace
    kubectl(
        "create", "role", "writes", "--verb=get,list,watch,patch", "--resource=syncs.reconcile.dev", "-n", namespace
    )
    kubectl("create", "rolebinding", "dora", "--role=writes", "--user=dora", "-n", namespace)
    kubectl("create", "role", "tells", "--verb=list,create", "--resource=events.events.k8s.io", "-n", namespace)
    kubectl("create", "rolebinding", "dora-tells", "--role=tells", "--user=dora", "-n", namespace)
    page = await served(await session_of("dora", namespace))

    async def events():
        async with await page.ask(f"{made.path}/events") as answer:
            return (await answer.json())["events"] if answer.status == 200 else []

    async def told():
        await (await page.ask(f"{made.path}/suspend", method="POST", json={}, headers={"Origin": page.origin})).read()
        return any("dora" in each["message"] for each in await events())

    await until(told, "the authorizer knows of the bindings, and it is told who did it")
    (said,) = {(each["reason"], each["message"]) for each in await events()}
    assert said == ("Suspended", "dora, from the page: suspended")


@pytest.mark.parametrize(
    "body", [{}, {"revision": 7}, {"revision": "main; x"}, {"revision": "0" * 40}, {"revision": ["a"]}]
)
async def test_nothing_else_is_gone_back_to(page, made, body):
    answer = await page.ask(f"{made.path}/rollback", method="POST", json=body, headers={"Origin": page.origin})
    assert answer.status in {400, 409}
    assert "commit" not in (await live(made))["spec"]["source"]["git"]


async def until_let_in(page, path):
    async def is_let_in():
        return (await page.ask(path)).status == 200

    await until(is_let_in, "the authorizer knows of the binding")


async def test_who_may_only_read_may_have_nothing_done(served, session_of, made, kubectl):
    namespace = made.namespace
    kubectl("create", "role", "reads-syncs", "--verb=get,list,watch", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "carol", "--role=reads-syncs", "--user=carol", "-n", namespace)
    page = await served(await session_of("carol", namespace))
    await until_let_in(page, made.path)
    assert not (await page.get(made.path))["mayWrite"]
    for doing in ("suspend", "resume"):
        assert "carol" in (await page.post(f"{made.path}/{doing}", status=403))["error"]["message"]
    assert not (await live(made))["spec"].get("suspend")


async def test_who_may_not_patch_has_nothing_begun(served, session_of, made, kubectl, monkeypatch, plain):
    begun = []

    async def plan(*_):
        begun.append("begun")
        return "done"

    monkeypatch.setitem(doings.DOINGS, "rollback", plan)
    monkeypatch.setattr(doings, "approve_actions", plan)
    namespace = made.namespace
    resources = "--resource=syncs.reconcile.dev,configmaps"
    kubectl("create", "role", "reads", "--verb=get,list,watch", resources, "-n", namespace)
    kubectl("create", "rolebinding", "erin", "--role=reads", "--user=erin", "-n", namespace)
    page = await served(await session_of("erin", namespace))
    await until_let_in(page, made.path)
    for place in (f"{made.path}/rollback", f"{plain}/approve"):
        assert "erin may not patch" in (await page.post(place, status=403))["error"]["message"]
    assert begun == []


async def test_two_things_are_done_at_a_time_for_one_person_and_no_more(page, made, monkeypatch):
    begun, on = asyncio.Queue(), asyncio.Event()

    async def slow(*_):
        begun.put_nowait(None)
        await on.wait()
        return "done"

    monkeypatch.setitem(doings.DOINGS, "rollback", slow)
    asked = [asyncio.create_task(page.post(f"{made.path}/rollback")) for _ in range(2)]
    async with asyncio.timeout(150):
        for _ in asked:
            await begun.get()
        for each in asked:
            each.cancel()  # they are done all the same, and count
        refused = await page.post(f"{made.path}/suspend", status=429)
        assert "still running" in refused["error"]["message"]
        assert not (await live(made))["spec"].get("suspend")
        on.set()

    async def has_room():
        path = f"{made.path}/suspend"
        return (await page.ask(path, method="POST", json={}, headers={"Origin": page.origin})).status != 429

    await until(has_room, "there is room for a third")


WRONG = {
    "no origin": ({}, 403),
    "another site's": ({"Origin": "https://evil.example.com"}, 403),
    "a form": ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    "text": ({"Content-Type": "text/plain"}, 415),
}


@pytest.mark.parametrize(("headers", "status"), WRONG.values(), ids=WRONG)
async def test_what_another_site_could_send_does_nothing(page, made, headers, status):
    own = {} if status == 403 else {"Origin": page.origin}
    answer = await page.ask(f"{made.path}/suspend", method="POST", data=b"{}", headers={**own, **headers})
    assert answer.status == status
    assert not (await live(made))["spec"].get("suspend")


@pytest.mark.parametrize("doing", ["suspend", "resume", "sync", "approve", "rollback"])
async def test_nothing_is_done_by_looking(page, made, doing):
    before = (await live(made))["metadata"]["resourceVersion"]
    assert (await page.ask(f"{made.path}/{doing}")).status in {404, 405}
    assert (await live(made))["metadata"]["resourceVersion"] == before


@pytest.fixture
async def plain(session, namespace):
    """The path of an object that no module handles."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}
    await session.client.create(f"/api/v1/namespaces/{namespace}/configmaps", config_map)
    return f"/api/v1/objects/ConfigMap/{namespace}/plain"


async def test_held_actions_are_approved_by_the_keys_that_were_shown(page, plain):
    place = f"{plain}/approve"
    assert "no module" in (await page.post(place, {"keys": ["x"]}, status=502))["error"]["message"]
    assert (await page.post(place, {"keys": "x"}, status=400))["error"]


async def test_what_another_person_has_it_follow_meanwhile_is_not_lost(made):
    client, seen = made.session.client, await live(made)
    path = f"/apis/reconcile.dev/v1alpha1/namespaces/{made.namespace}/syncs/shop"
    await made.status(lastAppliedRevision="f" * 40)  # what a daemon tells takes nothing from anybody
    pinned = await suspend_resume.pin(client, seen, made.first)
    await client.patch(path, {"spec": {"source": {"git": {"commit": None, "branch": "paint"}}}})
    for steer in (suspend_resume.pin(client, seen, made.first), suspend_resume.resume(client, pinned)):
        with pytest.raises(Conflict, match="follows branch paint") as refused:
            await steer
        assert answer_of(refused.value).status == 409
    assert (await live(made))["spec"]["source"]["git"]["branch"] == "paint"


async def test_nothing_waits_for_plans_that_needs_none_and_a_browser_that_goes_ends_them(page, made, monkeypatch):
    begun, ended = asyncio.Queue(), asyncio.Queue()

    async def endless(*_):
        begun.put_nowait(None)
        try:
            await asyncio.Event().wait()
        finally:
            ended.put_nowait(None)

    monkeypatch.setattr(plan_review, "of_sync", endless)
    plans = [asyncio.create_task(page.ask(f"{made.path}/plan")) for _ in range(2)]
    async with asyncio.timeout(150):
        for _ in plans:
            await begun.get()
        assert await page.post(f"{made.path}/suspend") == {"said": "suspended"}
        for plan in plans:
            plan.cancel()
            await ended.get()


async def test_what_has_begun_is_done_to_its_end_though_the_browser_goes(page, made, monkeypatch):
    begun, on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(*_):
        begun.set()
        await on.wait()
        done.set()
        return "done"

    monkeypatch.setitem(doings.DOINGS, "rollback", slow)
    asked = asyncio.create_task(page.post(f"{made.path}/rollback"))
    async with asyncio.timeout(150):
        await begun.wait()
        asked.cancel()
        await page.get(made.path)  # so that the server has seen it go, or soon will
        on.set()
        await done.wait()
