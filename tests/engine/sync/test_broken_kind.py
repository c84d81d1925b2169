"""A kind whose conversion webhook is down is nobody else's trouble: it is told, and all else is planned, written and followed."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.errors import ServerError
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.daemon.views import followed
from kubectl_reconcile.engine.sync.session import Session
from tests.certificates import self_signed
from tests.engine.shop import Shop
from tests.kubectl import Kubectl
from tests.waiting import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OURS = Path(__file__).parents[3] / "crds" / "syncs.reconcile.dev.yaml"
ANY = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "broken.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"kind": "Broken", "plural": "broken", "singular": "broken"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": ANY},
            {"name": "v2", "served": True, "storage": False, "schema": ANY},
        ],
    },
}
DOWN = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "gone", "namespace": "default"}},
    },
}
WITHIN_S = 20.0
"""Far less than the minute for which a list that never comes used to be waited for."""


def broken(version, name="one"):
    return {"apiVersion": f"example.org/{version}", "kind": "Broken", "metadata": {"name": name}, "spec": {"a": 1}}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture(scope="module")
def broken_kind(module_sandbox, binaries):
    """A cluster with a kind of which an object is stored as v1, and can't be read as v2."""
    kubectl = Kubectl(str(module_sandbox.kubeconfig), binaries.folder)
    kubectl("apply", "--server-side", "-f", str(OURS))
    kubectl.apply(CRD)
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/broken.example.org", "crd/syncs.reconcile.dev")
    kubectl.apply({**broken("v1"), "metadata": {"name": "one", "namespace": "default"}})
    kubectl("patch", "crd", "broken.example.org", "--type=merge", "-p", json.dumps({"spec": {"conversion": DOWN}}))
    return module_sandbox


@pytest.fixture
async def shop(broken_kind, tmp_path):
    access = Access(kubeconfig=str(broken_kind.kubeconfig), namespace="default")
    async with Session.open(access, tmp_path / "cache") as session:
        await _until_unreadable(session)
        yield Shop(session, tmp_path / "shop", "default", tmp_path.name.replace("_", "-").lower())


async def _until_unreadable(session):
    """Wait until the server has taken up that the kind is converted by somebody who isn't there."""

    async def is_unreadable():
        try:
            await session.client.list("/apis/example.org/v2/namespaces/default/broken")
        except ServerError:
            return True
        return False

    await until(is_unreadable, "the kind can't be read")


def blocked(made):
    return {each.ref.kind: each.gate.blocked for each in made.changes if each.gate.blocked}


async def test_an_object_that_cant_be_read_is_told_and_those_beside_it_are_written(shop):
    shop.write({"a.yaml": broken("v2"), "b.yaml": config_map("beside", a="1")})
    made = await shop.plan()
    assert set(blocked(made)) == {"Broken"}
    assert "it can't be read: conversion webhook" in blocked(made)["Broken"]
    done = await shop.sync()
    assert done.report.reason is ConditionReason.FAILED
    assert (await shop.live("ConfigMap", "beside"))["data"] == {"a": "1"}


async def test_many_of_them_are_told_as_well(shop):
    shop.write({f"{at}.yaml": broken("v2", f"many-{at}") for at in range(12)} | {"b.yaml": config_map("beside-many")})
    made = await shop.plan()
    assert len([each for each in made.changes if each.gate.blocked]) == 12
    assert [each.ref.name for each in made.acting() if each.op is Op.CREATE] == ["beside-many"]


async def test_a_namespace_goes_on_waiting_where_its_contents_cant_be_counted_and_all_else_is_written(shop):
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "place-to-go"}}
    shop.write({"n.yaml": place, "c.yaml": config_map("other", a="1")})
    await shop.sync()
    shop.write({"n.yaml": None, "c.yaml": config_map("other", a="2")})
    made = await shop.plan()
    (hold,) = made.holds
    assert "Broken.example.org" in hold.message
    await shop.sync()
    assert (await shop.live("ConfigMap", "other"))["data"] == {"a": "2"}
    assert await shop.live("Namespace", "place-to-go")


async def test_a_daemon_doesnt_wait_for_the_watch_of_such_a_kind(shop):
    session, cache = shop.session, Cache(shop.session.client)
    feeds = [Feed(session.discovery.find(*each)) for each in (("v1", "ConfigMap"), ("example.org/v2", "Broken"))]
    began_s = time.monotonic()
    try:
        failures = await followed(cache, feeds)
        assert [feed.resource.gvk.kind for feed in failures] == ["Broken"]
        assert time.monotonic() - began_s < WITHIN_S
    finally:
        await cache.close()


async def test_what_an_injector_left_in_a_map_that_git_drops_is_named_with_its_owner(shop):
    names = {"kind": "Hook", "plural": "hooks", "singular": "hook"}
    crd = {**CRD, "metadata": {"name": "hooks.example.org"}, "spec": {**CRD["spec"], "names": names}}
    shop.write({"a.yaml": {**crd, "spec": {**crd["spec"], "conversion": DOWN}}})
    await shop.sync()
    authority = base64.b64encode(self_signed()[0].encode()).decode()
    injected = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": authority}}}}}
    await shop.session.client.patch(f"{CRDS}/hooks.example.org", injected, manager="cainjector")
    shop.write({"a.yaml": {**crd, "spec": {**crd["spec"], "conversion": {"strategy": "None"}}}})
    why = blocked(await shop.plan())["CustomResourceDefinition"]
    assert "Git drops .spec.conversion.webhook, and .spec.conversion.webhook.clientConfig.caBundle is left" in why
    assert "belongs to cainjector" in why
    patch = [{"op": "remove", "path": "/spec/conversion/webhook"}, {"op": "replace", "path": "/spec/conversion/strategy", "value": "None"}]  # fmt: skip
    await shop.session.client.patch(f"{CRDS}/hooks.example.org", patch, manager="somebody")
    assert blocked(await shop.plan()) == {}
