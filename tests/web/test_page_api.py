"""What the page is told: of Syncs, their trees, histories and plans, and of objects; by the rights of whoever looks."""

import base64
import json
from types import SimpleNamespace

import pytest

from kubectl_reconcile.engine.api import pod_logs
from kubectl_reconcile.engine.telemetry.events import Events
from kubectl_reconcile.web import asking, stream
from kubectl_reconcile.web.errors import Refused, answer_of
from tests.waiting import until

SECRET = "correct-horse-battery"
ENCODED = base64.b64encode(SECRET.encode()).decode()
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\u2066"


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


def lines(change):
    return [row[0] + row[3].strip() for row in change["rows"] if row[0] in "+-"]


async def test_a_sync_is_told_with_its_state_history_and_tree(page, followed, config_map):
    await followed.make()
    sha = followed.push(
        {"settings.yaml": config_map("settings", color="red")}, "Paint it red", author="Ada <ada@example.com>"
    )
    await followed.sync()
    sync = await page.get(followed.path)
    assert (sync["state"], sync["applied"]) == ("Ready", sha)
    assert {"type": "Ready", "status": "True"}.items() <= next(
        one for one in sync["conditions"] if one["type"] == "Ready"
    ).items()
    history = await page.get(f"{followed.path}/history")
    assert [(each["revision"], each["current"], each["commit"]["author"]) for each in history["entries"]] == [
        (sha, True, "Ada")
    ]
    tree = await page.get(f"{followed.path}/tree")
    assert [(each["kind"], each["name"], each["health"]) for each in tree["root"]["children"]] == [
        ("ConfigMap", "settings", "Current")
    ]
    assert (await page.get(f"{followed.path}/events")) == {"events": []}


async def test_a_plan_reads_like_a_review(page, followed, config_map):
    await followed.make()
    followed.push({"settings.yaml": config_map("settings", color="red")})
    await followed.sync()
    sha = followed.push(
        {"settings.yaml": config_map("settings", color="blue")}, "Paint it blue", author="Ada <ada@example.com>"
    )
    plan = await page.get(f"{followed.path}/plan")
    (change,) = plan["changes"]
    assert (plan["revision"], change["op"], change["object"]["name"]) == (sha, "update", "settings")
    assert lines(change) == ["-color: red", "+color: blue"]
    (field,) = change["fields"]
    assert (field["path"], field["reason"], field["commit"], field["author"]) == (".data.color", "git", sha, "Ada")
    followed.push({"settings.yaml": config_map("settings", color="green")}, branch="paint")
    other = await page.get(f"{followed.path}/plan?revision=paint")
    assert "+color: green" in lines(other["changes"][0])
    refused = await page.get(f"{followed.path}/plan?revision=nowhere", status=422)
    assert "nowhere" in refused["error"]["message"]


async def test_an_object_is_told_with_the_owners_of_its_fields(page, followed, session, namespace, config_map):
    await followed.make()
    followed.push({"settings.yaml": config_map("settings", color="red")})
    await followed.sync()
    path = f"/api/v1/namespaces/{namespace}/configmaps/settings"
    await session.client.patch(path, {"data": {"color": "black"}}, manager="somebody")
    found = await page.get(f"/api/v1/objects/ConfigMap/{namespace}/settings")
    assert found["asker"].startswith(f"member of Sync {namespace}/shop")
    field = next(each for each in found["fields"] if each["path"] == ".data.color")
    assert (field["state"], field["live"], field["wanted"]) == ("drift", "black", "red")
    assert [owner["manager"] for owner in field["owners"]] == ["somebody"]
    assert "  color: black" in found["live"]


async def test_values_of_secrets_never_leave_the_server(page, followed, session, namespace):
    manifest = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "annotations": {"copy": json.dumps({"data": ENCODED})}},
        "stringData": {"password": SECRET},
    }  # fmt: skip
    await followed.make()
    followed.push({"login.yaml": manifest})
    planned = json.dumps(await page.get(f"{followed.path}/plan"))
    await followed.sync()
    followed.push({"login.yaml": {**manifest, "stringData": {"password": f"{SECRET}-2"}}})
    told = [planned, json.dumps(await page.get(f"{followed.path}/plan"))]
    assert "changed" in told[1]
    paths = [followed.path, f"{followed.path}/tree", f"{followed.path}/history", f"{followed.path}/events"]
    paths += ["/api/v1/syncs", f"/api/v1/objects/Secret/{namespace}/login"]
    told += [json.dumps(await page.get(path)) for path in paths]
    assert "login" in told[-1]
    for text in told:
        assert SECRET not in text
        assert ENCODED not in text


def workload(name):
    """A Deployment with a password from a variable, which is scaled to nothing."""
    container = {"name": "x", "image": "registry.invalid/x:1", "env": [{"name": "PASSWORD", "value": "${PASSWORD}"}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


async def test_values_of_secrets_that_variables_bring_are_shown_nowhere_below(page, followed, session, namespace):
    held = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "held"}, "stringData": {"password": SECRET}}
    await session.client.create(f"/api/v1/namespaces/{namespace}/secrets", held)
    variable = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "held", "key": "password"}}}
    git = {"url": followed.repository.url, "branch": "main"}
    await followed.make(source={"git": git, "substitute": {"variables": [variable]}})
    followed.push({"web.yaml": workload("web")})
    await followed.sync()
    web = await session.client.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": web["metadata"]["uid"],
        "controller": True,
    }
    below = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "below", "ownerReferences": [owner]},
        "data": {"x": SECRET, "color": "plain"},
    }
    await session.client.create(f"/api/v1/namespaces/{namespace}/configmaps", below)
    for kind, name in (("Deployment", "web"), ("ConfigMap", "below")):
        found = await page.get(f"/api/v1/objects/{kind}/{namespace}/{name}")
        assert "***" in json.dumps(found["live"])
        assert SECRET not in json.dumps(found)
    assert "  color: plain" in found["live"]
    await session.client.patch(
        f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs/shop",
        {"spec": {"source": {"git": {"branch": "gone"}}}},
    )
    for kind, name in (("Deployment", "web"), ("ConfigMap", "below")):
        found = await page.get(f"/api/v1/objects/{kind}/{namespace}/{name}")
        assert found["live"] == []
        assert "values of Secrets" in found["trouble"]
        assert SECRET not in json.dumps(found)


async def test_what_turns_text_round_is_spelt_out_and_markup_stays_text(page, followed):
    await followed.make()
    await followed.status(conditions=[{
        "type": "Ready", "status": "False", "reason": "Failed", "message": HOSTILE, "lastTransitionTime": "2026-01-01T00:00:00Z",
    }], problems=[f"apps/web.yaml:41: {HOSTILE}"])  # fmt: skip
    async with await page.ask(followed.path) as answer:
        assert answer.content_type == "application/json"
        text = await answer.text()
    assert not set("\u202e\u2066") & set(text)
    sync = json.loads(text)
    assert sync["message"] == r"<img src=x onerror=alert(1)>\u202egnp.exe\u2066"
    assert sync["problems"][0]["place"] == "apps/web.yaml:41"


def test_errors_and_events_spell_it_out_too():
    error = answer_of(Refused(409, HOSTILE, HOSTILE)).text
    event = stream._event("syncs", 1, SimpleNamespace(era="x"), {"rows": [HOSTILE]}).decode()
    for text in (error, event):
        assert not set("\u202e\u2066") & set(text)
        assert r"\\u202egnp.exe" in text


@pytest.mark.parametrize("name", ["a%2F..%2F..%2Fsecrets", "%2e%2e", "a%3Fwatch", "x" * 254, "caf%C3%A9", "a%0d%0ab"])
async def test_a_name_leads_nowhere_else(page, namespace, name):
    found = await page.ask(f"/api/v1/objects/Secret/{namespace}/{name}")
    assert found.status in {400, 404}
    assert (await page.ask(f"/api/v1/syncs/{namespace}/{name}")).status in {400, 404}


async def test_what_isnt_there_is_said_in_a_sentence(page, followed, namespace):
    await followed.make()
    refused = await page.get(f"/api/v1/syncs/{namespace}/shopp", status=404)
    assert "did you mean shop" in refused["error"]["message"]
    assert (await page.get(f"/api/v1/objects/Nonsense/{namespace}/x", status=404))["error"]["hint"]
    assert "sort by" in (await page.get("/api/v1/syncs?sort=age", status=400))["error"]["message"]


async def test_what_to_do_is_said_to_somebody_at_a_page(page, session, namespace, followed):
    await followed.make()
    refused = (await page.get(f"/api/v1/syncs/{namespace}-elsewhere/shop", status=404))["error"]
    assert "-n" not in refused.get("hint", "").split()


POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"},
    "spec": {
        "containers": [{"name": "web", "image": "registry.invalid/x:1"}, {"name": "side", "image": "registry.invalid/x:1"}],
        "schedulerName": "nobody",
    },
}  # fmt: skip


async def test_a_pod_tells_its_events_and_what_it_has_printed(page, session, namespace):
    made = await session.client.create(f"/api/v1/namespaces/{namespace}/pods", POD)
    place = f"/api/v1/objects/Pod/{namespace}/waits"
    assert (await page.get(f"{place}/events"))["events"] == []
    await Events(session.client).warning(made, "Stuck", "nobody schedules it", action="Look")
    (event,) = (await page.get(f"{place}/events"))["events"]
    assert (event["reason"], event["message"], event["type"]) == ("Stuck", "nobody schedules it", "Warning")
    assert await page.get(f"{place}/logs") == {"containers": ["web", "side"], "container": "web", "lines": []}
    assert "web, side" in (await page.get(f"{place}/logs?container=x", status=404))["error"]["message"]
    assert (
        "only pods"
        in (await page.get(f"/api/v1/objects/ConfigMap/{namespace}/kube-root-ca.crt/logs", status=404))["error"][
            "message"
        ]
    )


async def test_logs_take_the_right_to_read_them(served, session_of, session, namespace, kubectl):
    await session.client.create(f"/api/v1/namespaces/{namespace}/pods", POD)
    kubectl("create", "role", "sees-pods", "--verb=get", "--resource=pods", "-n", namespace)
    kubectl("create", "rolebinding", "erin", "--role=sees-pods", "--user=erin", "-n", namespace)
    page, place = await served(await session_of("erin", namespace)), f"/api/v1/objects/Pod/{namespace}/waits"

    async def said() -> str:
        text = await (await page.ask(f"{place}/logs")).text()
        return text if "pods/log" in text else ""

    assert "erin" in await until(said, "the authorizer knows of the binding")


PRINTED = {
    "lines stay lines": (b"a\n\n b\n", ["a", "", " b"]),
    "the last line may be unfinished": (b"a\nb", ["a", "b"]),
    "what colours terminals is left out": (b"\x1b[31mred\x1b[0m \x1b]0;title\x07x\r\n", ["red x"]),
    "what isn't text is shown as such": (b"\xff\x00a\n", ["\ufffda"]),
    "tabs stay": (b"a\tb\n", ["a\tb"]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("printed", "lines"), PRINTED.values(), ids=PRINTED)
def test_what_was_printed_is_text(printed, lines):
    assert pod_logs.lines_of(printed) == lines


def test_of_what_was_printed_only_the_end_counts():
    assert pod_logs.lines_of(b"a\n" * 10_000 + b"end\n")[-2:] == ["a", "end"]
    assert len(pod_logs.lines_of(b"a\n" * 10_000)) == pod_logs.LINES
    assert len(pod_logs.lines_of(b"a" * 100_000)[0]) == 2000


async def test_the_fleet_is_as_it_is_now(page, followed):
    await followed.make(suspend=True)
    query = f"/api/v1/syncs?namespace={followed.namespace}"
    found = await page.until(query, lambda found: found["rows"], "the Sync is seen")
    assert [(row["name"], row["state"], row["grade"]) for row in found["rows"]] == [("shop", "Suspended", "warn")]
    await followed.session.client.delete(f"/apis/reconcile.dev/v1alpha1/namespaces/{followed.namespace}/syncs/shop")
    await page.until(query, lambda found: not found["rows"], "the Sync is gone")


async def test_everybody_sees_what_they_may_and_no_more(served, session_of, followed, namespace, kubectl):
    await followed.make()
    kubectl("create", "role", "sees-syncs", "--verb=get,list,watch", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "alice", "--role=sees-syncs", "--user=alice", "-n", namespace)
    alice, bob = await session_of("alice", namespace), await session_of("bob", namespace)
    page, others = await served(alice), await served(bob)
    path = "/api/v1/syncs"

    async def seen():
        async with await page.ask(path) as answer:
            return await answer.json() if answer.status == 200 else None

    found = await until(seen, "the authorizer knows of the binding")
    assert found["only"] == namespace
    assert [row["name"] for row in found["rows"]] == ["shop"]
    refused = await others.get(path, status=403)
    assert "bob" in refused["error"]["message"]
    assert (await others.ask(followed.path)).status == 403
    assert (await page.ask(f"/api/v1/objects/ConfigMap/{namespace}/kube-root-ca.crt")).status == 403


async def test_kinds_that_come_while_the_page_is_open_are_known(page, followed, kubectl, monkeypatch):
    group = f"{followed.namespace}.page-room.test"
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"lamps.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    }  # fmt: skip
    place = f"/api/v1/objects/Lamp.{group}/{followed.namespace}/one"
    assert "no kind" in (await page.get(place, status=404))["error"]["message"]
    kubectl.apply(crd)
    kubectl("wait", "--for=condition=Established", "--timeout=300s", f"crd/lamps.{group}")
    monkeypatch.setattr(asking, "_KINDS_S", 0.0)

    async def known():
        async with await page.ask(place) as answer:
            return "no kind" not in await answer.text()

    await until(known, "the server lists the kind")
    kubectl("delete", f"crd/lamps.{group}", "--wait=false")
