"""What the server and others do to us in the middle of a sync: refusals, storms, outages."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.apply.results import ResultState
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.apply.flow_control import FlowControl, patiently
from kubectl_reconcile.engine.apply.writer import Writer
from kubectl_reconcile.engine.sync.session import Session
from tests.certificates import self_signed
from tests.engine.shop import Shop
from tests.waiting import until

CRDS = Path(__file__).parents[3] / "crds"


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


def many(config_map, count, **data):
    return {f"{at}.yaml": config_map(f"part-{at:03}", **data) for at in range(count)}


async def held(shop):
    items, _ = await shop.session.client.list(f"/api/v1/namespaces/{shop.namespace}/configmaps")
    return {
        item["metadata"]["name"]: item.get("data") for item in items if item["metadata"]["name"].startswith("part-")
    }


# --- a webhook ---------------------------------------------------------------------------------------


@pytest.fixture
async def webhook(session, namespace, tmp_path):
    """An admission webhook for this namespace: it refuses what is labelled so, and quotes it in full; counts what it saw."""
    seen = []

    async def review(request):
        asked = (await request.json())["request"]
        seen.append((asked["object"]["metadata"]["name"], asked["dryRun"]))
        labels = asked["object"]["metadata"].get("labels") or {}
        fine = labels.get("taste") != "bad"
        status = {"message": f"no taste: {asked['object'].get('data')}", "code": 403}
        answer = {"uid": asked["uid"], "allowed": fine, **({} if fine else {"status": status})}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})

    public, private = self_signed(is_authority=False)
    (tmp_path / "both.pem").write_text(private + public)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    app = web.Application()
    app.router.add_post("/", review)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    address = f"https://127.0.0.1:{runner.addresses[0][1]}/"
    path = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{namespace}"
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": "taste.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": address, "caBundle": base64.b64encode(public.encode()).decode()},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["*"],
                        "resources": ["configmaps", "secrets"],
                    }
                ],
            }
        ],
    }
    await session.client.apply(path, configuration)
    yield seen
    await session.client.delete(path)
    for connection in runner.server.connections:
        connection.transport.abort()  # the server keeps them for later, and TLS would wait for it to say farewell
    await runner.cleanup()


def tasteless(manifest):
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {"taste": "bad"}}}


async def until_it_is_asked(shop, webhook, config_map):
    """The server takes a moment to hear of a new webhook."""
    probe, path = config_map("probe"), f"/api/v1/namespaces/{shop.namespace}/configmaps/probe"

    async def is_asked():
        await shop.session.client.apply(path, {**probe, "data": {"n": "0"}}, dry_run=True)
        return webhook

    await until(is_asked, "the server has heard of the webhook")
    webhook.clear()


async def test_a_webhook_refuses_in_the_preview_and_nothing_but_its_object_stays_behind(shop, webhook, config_map):
    await until_it_is_asked(shop, webhook, config_map)
    shop.write({"bad.yaml": tasteless(config_map("bad", color="red")), "good.yaml": config_map("good")})
    made = await shop.plan()
    (bad,) = [change for change in made.changes if change.gate.blocked]
    assert 'admission webhook "taste.example.com" denied the request: no taste' in bad.gate.blocked
    assert {dry for _, dry in webhook} == {True}
    done = await shop.sync()
    assert done.report.reason is ConditionReason.FAILED
    assert await shop.live("ConfigMap", "good")
    assert await shop.live("ConfigMap", "bad") is None
    (refused,) = [each for each in done.results if each.state is ResultState.FAILED]
    assert 'admission webhook "taste.example.com" denied the request: no taste' in str(refused.error)


async def test_what_a_webhook_quotes_of_a_secret_is_told_without_its_values(shop, webhook, config_map):
    await until_it_is_asked(shop, webhook, config_map)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key"},
        "stringData": {"password": "hunter2-hunter2"},
    }
    shop.write({"s.yaml": tasteless(secret)})
    made, done = await shop.plan(), await shop.sync()
    told = (
        repr([change.gate.blocked for change in made.changes])
        + repr([each.error for each in done.results])
        + repr(done.report)
    )
    assert "no taste" in told
    assert "***" in told
    assert "hunter2" not in told
    assert base64.b64encode(b"hunter2-hunter2").decode() not in told


# --- a server that has had enough, and one that dies ---------------------------------------------------


@pytest.fixture
async def narrow(own_sandbox, tmp_path):
    """A shop on a server that takes three requests at once and refuses the rest with 429, for users without privileges."""
    limits = ("--enable-priority-and-fairness=false", "--max-requests-inflight=3", "--max-mutating-requests-inflight=2")
    sandbox = own_sandbox(
        flags={"kube-apiserver": limits}, users={"gardener": ("gardeners",)}, components=("etcd", "kube-apiserver")
    )
    async with Session.open(Access(kubeconfig=str(sandbox.kubeconfig)), tmp_path / "admin") as admin:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "gardeners"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gardeners"}],
        }
        await admin.client.apply("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/gardeners", binding)
        from kubectl_reconcile.engine.commands.install import ensure_crds  # noqa: PLC0415

        await ensure_crds(admin)
    kubeconfig = sandbox.kubeconfig_for("gardener", ("gardeners",))
    async with Session.open(Access(kubeconfig=str(kubeconfig)), tmp_path / "cache") as session:
        yield Shop(session, tmp_path / "shop", "default"), sandbox


async def listening(url):
    """Wait until connections to *url* are taken."""

    async def is_taken():
        with suppress(OSError):
            _, writer = await asyncio.open_connection(url.host, url.port)
            writer.close()
            return True

    await until(is_taken, f"connections to {url} are taken")


async def test_storms_and_outages_are_waited_out(narrow, config_map):
    """One server for three things, since starting one costs more than all of them."""
    shop, sandbox = narrow

    # More at once than it takes: it says 429, we slow down, and everything arrives.
    shop.write(many(config_map, 150, color="red"))
    stormy = Writer(shop.session.client)
    assert (await shop.sync(stormy)).report.reason is ConditionReason.SYNCED
    assert len(await held(shop)) == 150
    assert stormy.pace.limit < 32

    # It is killed in the middle and comes back.
    shop.write(many(config_map, 150, color="blue"))
    syncing = asyncio.create_task(shop.sync())

    async def is_begun():
        return {"color": "blue"} in (await held(shop)).values()

    await until(is_begun, "the first are blue", pause_s=0.02)
    await asyncio.to_thread(sandbox.stop, "kube-apiserver", grace_s=0)
    await asyncio.to_thread(sandbox.start, "kube-apiserver")
    done = await syncing
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems[:3]
    assert set(map(repr, (await held(shop)).values())) == {"{'color': 'blue'}"}
    assert all(change.op is Op.UNCHANGED for change in (await shop.plan()).changes)

    # It is started again while nobody asks: it refuses who comes first, until it has read who may do what.
    await asyncio.to_thread(sandbox.stop, "kube-apiserver", grace_s=0)
    starting = asyncio.create_task(asyncio.to_thread(sandbox.start, "kube-apiserver"))
    await listening(URL(shop.session.client.server))
    async with await Client.connect(
        Access(kubeconfig=str(sandbox.kubeconfig_for("gardener", ("gardeners",))))
    ) as early:
        path = "/api/v1/namespaces/default/configmaps/early"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "early"}, "data": {"color": "blue"}}
        assert (await patiently(lambda: early.apply(path, body), pace=FlowControl()))["data"] == body["data"]
    await starting

    # A deletion whose answer was lost isn't a failure.
    shop.write({f"{at}.yaml": None for at in range(25)})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert len(await held(shop)) == 125
