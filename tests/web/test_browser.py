"""The page in a real browser: what is shown is what is there, as text, live, and reached by keys."""

import stat

from kubectl_reconcile.cli.verbs.operate import ui
from kubectl_reconcile.core.annotations import FOLLOWS, SYNC_REQUESTED_AT
from kubectl_reconcile.engine.api.sync_requests import DAEMON_LABEL, now_text
from kubectl_reconcile.views import tree
from kubectl_reconcile.views.syncs import RowDocument
from kubectl_reconcile.web.fleet_feed import FleetFeed
from tests.e2e.cluster import until_may
from tests.web import browser

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


async def test_a_browser_comes_in_by_a_file_that_nobody_else_may_read(port, served, session, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    page = await served(session, entered=False)
    async with browser.tab_of(port) as tab:
        with ui.leading_to(page.door.url) as address:
            (file,) = tmp_path.glob("*/*")
            assert page.door.ticket not in address
            assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]
            await tab.tell("Page.navigate", url=address)
            await tab.sees("Syncs", "h1")
        assert not list(tmp_path.iterdir())


async def test_a_person_finds_what_is_broken_why_and_who_did_it(tab, followed, manifests):
    await followed.make()
    followed.push({"settings.yaml": manifests("config_map")("settings", color="red")})
    await followed.sync()
    sha = followed.push(
        {"settings.yaml": manifests("config_map")("settings", color="blue")}, "Paint it", author="Ada <ada@localhost>"
    )
    await followed.status(problems=[f"apps/web.yaml:41: {HOSTILE}"])
    await tab.open(f"{tab.origin}/?namespace={followed.namespace}")
    await tab.sees(f"{followed.namespace}/shop")
    await tab.press("j")
    await tab.until("document.activeElement?.innerText.endsWith('shop')")
    await tab.value("document.activeElement.click()")
    await tab.sees("settings", "[role=tree]")
    await tab.sees(HOSTILE, ".card.bad")
    await tab.press("p")
    await tab.sees("color: blue", ".come")
    await tab.sees(f"{sha[:7]} by Ada", ".fields")
    await tab.value("document.querySelector('.links a').click()")
    await tab.sees("color: red", "pre")
    assert not await tab.value("document.querySelector('main img, main script')")
    assert "taken" not in await tab.value("document.title")


async def test_a_change_is_seen_without_a_reload(tab, followed):
    await followed.make()
    await tab.open(f"{tab.origin}/?namespace={followed.namespace}")
    await tab.sees("shop", "[role=table]")
    await tab.sees("live", ".live.is")
    await tab.value("window.stillHere = true")
    path = f"/apis/reconcile.dev/v1alpha1/namespaces/{followed.namespace}/syncs/shop"
    await followed.session.client.patch(path, {"spec": {"suspend": True}})
    await tab.sees("Suspended", "[role=table]")
    assert await tab.value("window.stillHere")


async def test_what_somebody_changes_of_an_object_by_hand_is_seen_without_a_reload(tab, followed, manifests):
    await followed.make()
    followed.push({"settings.yaml": manifests("config_map")("settings", color="red")})
    await followed.sync()
    await tab.open(f"{tab.origin}/objects/ConfigMap/{followed.namespace}/settings")
    await tab.sees("color: red", "pre")
    await tab.value("window.stillHere = true")
    path = f"/api/v1/namespaces/{followed.namespace}/configmaps/settings"
    await followed.session.client.patch(path, {"data": {"color": "black"}}, manager="somebody")
    await tab.sees("color: black", "pre")
    await tab.sees("drift", ".owners")
    await tab.sees("somebody", ".owners")
    assert await tab.value("window.stillHere")


async def test_what_is_to_be_done_is_said_first_and_seen_once_it_is(tab, followed):
    await followed.make()
    await tab.open(f"{tab.origin}/syncs/{followed.namespace}/shop")
    await tab.sees("Suspend", "header.title")
    await tab.value(
        "[...document.querySelectorAll('header.title button')].find(each => each.innerText === 'Suspend').click()"
    )
    await tab.sees("left as it is", "dialog")
    await tab.value("document.querySelector('dialog .button').click()")
    await tab.sees("Suspended", "header.title .state")
    await tab.sees("Resume", "header.title")


async def test_only_rows_in_sight_are_there_however_many_syncs_there_are(tab, monkeypatch):
    rows = [row(at) for at in range(10_000)]

    async def all_of_them(_feed):
        return rows

    monkeypatch.setattr(FleetFeed, "rows", all_of_them)
    await tab.open(f"{tab.origin}/?sort=name")
    await tab.sees("sync-00000")
    await tab.until(
        "scrollTo(0, document.body.scrollHeight), document.querySelector('main').innerText.includes('sync-09999')"
    )
    assert await tab.value("document.querySelectorAll('[role=row]').length") < 100
    await tab.press("/")
    await tab.until("document.activeElement.type === 'search'")
    await tab.tell("Input.insertText", text="sync-04242")
    await tab.sees("1 of 10,000", "h1")
    assert "q=sync-04242" in await tab.value("location.search")


async def test_a_person_signs_in_where_they_wanted_to_go_and_out_again(port, site, token_of, allow, namespace, session):
    sync = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "shop"},
        "spec": {"suspend": True},
    }
    await session.client.create(f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs", sync)
    allow("alice", "get,list,watch")
    token, path = await token_of("alice"), f"/?namespace={namespace}"
    await site.until("/api/v1/syncs", token, lambda found: found["rows"])
    async with browser.tab_of(port) as tab:
        await tab.open(f"{site.origin}{path}")
        await tab.until("location.pathname === '/start'")
        await tab.sees("Token of the cluster", "form")
        await tab.value("document.querySelector('#token').focus()")
        await tab.tell("Input.insertText", text="nobody-s-token")
        await tab.value("document.querySelector('form').requestSubmit()")
        await tab.sees("accept this token", "#wrong")
        await tab.value("document.querySelector('#token').focus()")
        await tab.tell("Input.insertText", text=token)
        await tab.value("document.querySelector('form').requestSubmit()")
        await tab.sees(f"{namespace}/shop", "[role=table]")
        assert await tab.value("location.pathname + location.search") == path
        await tab.sees("live", ".live.is")
        await tab.sees("alice", "header.top")
        assert not await tab.value("document.cookie")
        await tab.value("document.querySelector('header.top a[href=\"/start\"]').click()")
        await tab.until("!!document.querySelector('button[name=leave]')")
        await tab.value("document.querySelector('button[name=leave]').click()")
        await tab.sees("Token of the cluster", "form")
        await tab.open(f"{site.origin}/")
        await tab.until("location.pathname === '/start'")


async def test_of_a_large_tree_only_rows_in_sight_are_drawn(tab, followed, monkeypatch):
    async def large(*_):
        root = node("Sync", "shop")
        root["children"] = [
            {
                **node("Deployment", f"web-{at:02}"),
                "children": [node("Pod", f"web-{at:02}-{pod:03}") for pod in range(99)],
            }
            for at in range(50)
        ]
        return {"root": root, "unseen": []}

    monkeypatch.setattr(tree, "of_sync", large)
    await followed.make()
    await tab.open(f"{tab.origin}/syncs/{followed.namespace}/shop")
    await tab.sees("web-00", "[role=tree]")
    await tab.value(
        "[...document.querySelectorAll('.tools button')].find(each => each.innerText === 'Unfold all').click()"
    )
    await tab.sees("web-00-000", "[role=tree]")
    await tab.until(
        "scrollTo(0, document.body.scrollHeight), document.querySelector('main').innerText.includes('web-49-098')"
    )
    assert await tab.value("document.querySelectorAll('[role=treeitem]').length") < 100


def node(kind, name):
    return {
        "apiVersion": "apps/v1", "kind": kind, "namespace": "", "name": name, "uid": name, "createdAt": "", "health": "Current",
        "message": "", "children": [],
    }  # fmt: skip


def row(at):
    return RowDocument(
        namespace=f"team-{at % 50:02}", name=f"sync-{at:05}", state="Ready", grade="good", revision="3f9c2e1", ref="",
        url="https://git.example.com/shop.git", path=".", objects=1, health={}, changed_at="", message="well",
    )  # fmt: skip


async def test_a_page_whose_server_is_dead_says_so_in_a_sentence_that_is_all_there(port, served, session):
    page = await served(session, entered=False)
    async with browser.tab_of(port) as tab:
        await tab.tell("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
        await tab.open(page.door.url)
        await tab.sees("live", ".live.is")
        await page.server.close()
        await tab.sees("not live", ".live:not(.is)")
        await tab.value("document.querySelector('.home').click(); history.pushState(null, '', '/syncs/a/b')")
        await tab.value("dispatchEvent(new PopStateEvent('popstate'))")
        await tab.sees("t answer", ".trouble")
        assert await tab.value("(each => each.scrollWidth <= each.clientWidth)(document.querySelector('.trouble'))")


async def test_a_sync_that_never_applied_anything_shows_no_health(tab, followed):
    await followed.make()
    await followed.status(health={"counts": {"Current": 0}, "unhealthy": []})
    await tab.open(f"{tab.origin}/syncs/{followed.namespace}/shop")
    await tab.sees("Health", ".facts")
    assert "Current" not in await tab.value("document.querySelector('.facts').innerText")


async def test_what_would_go_along_though_git_asks_for_it_is_named(tab, followed, manifests):
    place = f"{followed.namespace}-inner"
    inner = manifests("config_map")("inside")
    inner["metadata"]["namespace"] = place
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    await followed.make()
    followed.push({"space.yaml": space, "inside.yaml": inner})
    await followed.sync()
    followed.push({"space.yaml": None})
    await tab.open(f"{tab.origin}/syncs/{followed.namespace}/shop/plan")
    await tab.sees("1 object of these Git still asks for", ".card.warn")
    headings = "[...document.querySelectorAll('.card.warn h3')]"
    said = f"{headings}.find(each => each.innerText.includes('asks for')).nextElementSibling.innerText"
    assert f"ConfigMap/{place}/inside" in await tab.value(said)


async def test_each_object_says_whether_it_is_in_sync_and_is_found_by_that(tab, followed, manifests, kubectl):
    def settings(name, color):
        return manifests("config_map")(name, color=color)

    place, account = f"-n{followed.namespace}", f"system:serviceaccount:{followed.namespace}:kubectl-reconcile"
    kubectl("create", "rolebinding", "all", "--clusterrole=admin", f"--user={account}", place)
    until_may(kubectl, account, "patch", "configmaps", followed.namespace)
    await followed.make()
    followed.push({f"{name}.yaml": settings(name, "red") for name in ("same", "drifting", "painted", "going")})
    await followed.sync()
    followed.push({"painted.yaml": settings("painted", "blue"), "going.yaml": None, "new.yaml": settings("new", "red")})
    path = f"/api/v1/namespaces/{followed.namespace}/configmaps/drifting"
    await followed.session.client.patch(path, {"data": {"color": "black"}}, manager="somebody")
    await tab.open(f"{tab.origin}/syncs/{followed.namespace}/shop")
    await tab.sees("drifted", "[role=tree]")
    rows = "[...document.querySelectorAll('[role=treeitem]')]"
    said = await tab.value(
        f"{rows}.map(each => [each.querySelector('a').innerText, each.querySelector('.n-sync').innerText])"
    )
    words = {name.rpartition("/")[2]: word.strip("✓▲✕○\n ") for name, word in said}
    assert words == {"same": "in sync", "drifting": "drifted", "painted": "changed in Git", "going": "to delete"}
    await tab.sees("1 object that the source asks for", ".note")
    lefts = await tab.value(
        f"[...new Set({rows}.map(each => each.querySelector('.n-sync').getBoundingClientRect().left))]"
    )
    assert len(lefts) == 1, "columns stand below one another"
    await tab.value("document.querySelector('.tools input').focus()")
    await tab.tell("Input.insertText", text="drifted")
    await tab.until(f"{rows}.length === 1")
    await tab.sees("drifting", "[role=tree]")


async def test_back_leads_to_the_place_that_was_left_and_a_tab_of_a_sync_has_an_address(tab, followed, manifests):
    await followed.make()
    followed.push({f"{at:03}.yaml": manifests("config_map")(f"settings-{at:03}") for at in range(60)})
    await followed.sync()
    await tab.open(f"{tab.origin}/syncs/{followed.namespace}/shop")
    await tab.sees("settings-000", "[role=tree]")
    await tab.until(
        "scrollTo(0, 900), scrollY > 800 && document.querySelector('main').innerText.includes('settings-030')"
    )
    place = await tab.value("scrollY")
    await tab.value(
        "[...document.querySelectorAll('[role=treeitem] a')].find(each => each.innerText.includes('settings-030')).click()"
    )
    await tab.sees("Current", "main p .state")
    await tab.sees(f"Sync {followed.namespace}/shop", ".links")
    await tab.value("history.back()")
    await tab.until(f"Math.abs(scrollY - {place}) < 2")
    await tab.value("location.hash = '#conditions'")
    await tab.until("document.querySelector('[role=tab][aria-selected=true]').innerText === 'Conditions'")


async def test_what_no_page_answers_is_a_sentence_to_read_at_a_browser_and_json_for_a_program(port, served, session):
    page = await served(session, entered=False)
    html = {"Accept": "text/html,application/xhtml+xml"}
    async with await page.ask("/syncs", headers=html) as answer:
        text = await answer.text()
        assert (answer.status, answer.content_type) == (401, "text/html")
    assert "You aren&#x27;t signed in" in text
    await page.enter()
    async with await page.ask("/nowhere/<b>", headers=html) as answer:
        assert (answer.status, answer.content_type) == (404, "text/html")
        assert "&lt;b&gt;" in await answer.text()
    for path, headers in (("/api/v1/nowhere", html), ("/nowhere", {})):
        async with await page.ask(path, headers=headers) as answer:
            assert (answer.status, answer.content_type) == (404, "application/json")


async def test_a_sync_that_was_asked_for_says_when_it_has_ended(tab, followed, manifests, session):
    await followed.make()
    followed.push({"settings.yaml": manifests("config_map")("settings")})
    await followed.sync()
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 3600, "renewTime": now_text()}
    labels = dict([DAEMON_LABEL.split("=")], **{FOLLOWS: followed.namespace})
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "one", "labels": labels},
        "spec": {**spec, "renewTime": spec["renewTime"].replace("Z", ".000000Z")},
    }
    await session.client.create(f"/apis/coordination.k8s.io/v1/namespaces/{followed.namespace}/leases", lease)
    await tab.open(f"{tab.origin}/syncs/{followed.namespace}/shop")
    await tab.sees("Sync now", "header.title")
    await tab.value(
        "[...document.querySelectorAll('header.title button')].find(each => each.innerText === 'Sync now').click()"
    )
    await tab.sees("reads the source once more", "dialog")
    await tab.value("document.querySelector('dialog .button').click()")
    await tab.sees("A sync is running", "header.title")
    path = f"/apis/reconcile.dev/v1alpha1/namespaces/{followed.namespace}/syncs/shop"
    asked = (await session.client.get(path))["metadata"]["annotations"][SYNC_REQUESTED_AT]
    await followed.status(lastHandledSyncAt=asked)
    await tab.sees("The sync has ended", "header.title")
