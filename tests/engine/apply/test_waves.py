"""Waves, dependencies, hooks and health on a real cluster, whose kubelet is played by kwok."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from kubectl_reconcile.cluster.errors import NotFound
from kubectl_reconcile.core.apply.results import ResultState
from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import walk
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.modules.registry import KnownModules
from kubectl_reconcile.engine.sync.books import tell
from tests.waiting import steadily_meanwhile, until

NOWHERE = {"nodeSelector": {"no-such": "node"}}
CACHE = {
    "apiVersion": "cache.example.com/v1alpha1",
    "kind": "Memcached",
    "metadata": {"name": "cache"},
    "spec": {"size": 1},
}


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


@pytest.fixture
def deployment(manifests):
    return manifests("deployment")


@pytest.fixture
def job(manifests):
    return manifests("job")


def order(shop):
    return [each.change.ref.name for each in shop.results if each.state is ResultState.SUCCEEDED and each.wrote]


def said(shop):
    return {each.change.ref.name: each.error for each in shop.results if each.error}


# --- everything new at once ---------------------------------------------------------------------------


def widgets(group):
    spec = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}, "note": {"type": "string"}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [version],
        },
    }


def widget(group, name, **spec):
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def stated(manifest):
    """What the server doesn't write by itself, leaf by leaf."""
    ignored = {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"}
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in ignored}
    tree = {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": metadata}
    leaves = dict(walk(tree))
    return {path: value for path, value in leaves.items() if "ownerReferences" not in path and value not in ({}, [])}


async def live_of(shop, change):
    return await shop.session.client.get(change.kind.path(change.ref.namespace, change.ref.name))


async def test_a_namespace_a_kind_and_all_that_needs_them_are_previewed_in_full_and_written_so(shop, deployment):
    place, group = f"{shop.namespace}-new", f"{shop.namespace}.example.com"
    inside = [
        deployment("web"),
        widget(group, "round", note="x"),
        {
            "apiVersion": "cache.example.com/v1alpha1",
            "kind": "Memcached",
            "metadata": {"name": "cache"},
            "spec": {"size": 2},
        },
    ]
    for each in inside:
        each["metadata"]["namespace"] = place
    shop.write({f"{at}.yaml": each for at, each in enumerate(inside)})
    shop.write(
        {"n.yaml": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}, "k.yaml": widgets(group)}
    )
    try:
        made = await shop.plan()
        assert made.problems == ()
        assert {change.op for change in made.changes} == {Op.CREATE}
        assert {change.ref.kind for change in made.changes if change.provenance.owner} == {"Deployment", "Service"}
        (round_one,) = [change for change in made.changes if change.ref.kind == "Widget"]
        assert round_one.after["spec"] == {"note": "x", "size": 3}  # the default of a kind that isn't there yet
        done = await shop.sync()
        assert done.report.reason is ConditionReason.SYNCED, done.report.problems
        for change in made.changes:
            there = stated(await live_of(shop, change))
            wanted = stated(change.after)
            assert {path: there.get(path) for path in wanted} == wanted, change.ref
        again = await shop.plan()
        assert [str(change.ref) for change in again.changes if change.op is not Op.UNCHANGED] == []
    finally:
        for path in (
            f"/api/v1/namespaces/{place}",
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}",
        ):
            await shop.session.client.delete(path)


async def test_a_preview_of_changes_says_field_by_field_what_is_written(shop, config_map, deployment):
    shop.write({"a.yaml": config_map("a", color="red"), "d.yaml": deployment("web")})
    await shop.sync()
    other = deployment("web", replicas=2)
    other["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})
    shop.write({"a.yaml": config_map("a", color="blue", size="5"), "d.yaml": other, "b.yaml": config_map("b")})
    made = await shop.plan()
    await shop.sync()
    for change in made.changes:
        live = stated(await live_of(shop, change))
        # Controllers annotate what they roll out, whenever they come to it.
        assert live == {**stated(change.after), **{path: live[path] for path in live if "annotations" in path}}


# --- waiting -------------------------------------------------------------------------------------------


async def test_a_later_wave_starts_when_the_one_before_is_healthy(shop, config_map, deployment):
    ready = []
    shop.write({"d.yaml": deployment("web", replicas=2), "c.yaml": config_map("after", {"reconcile.dev/wave": "1"})})
    done = await shop.sync()
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    ready.append((await shop.live("Deployment", "web"))["status"]["availableReplicas"])
    assert ready == [2]
    assert order(shop) == ["web", "after"]


async def test_a_wave_that_never_gets_healthy_stops_the_next_and_the_reason_is_told(shop, config_map, deployment):
    shop.write({"d.yaml": deployment("web", **NOWHERE)})
    await shop.sync()

    async def is_observed():
        return "observedGeneration" in (await shop.live("Deployment", "web")).get("status", {})

    await until(is_observed, "its controller has seen the Deployment")
    await shop.settings(timeout="4s")
    shop.write({"c.yaml": config_map("after", {"reconcile.dev/wave": "1"}), "i.yaml": config_map("independent")})
    done = await shop.sync()
    assert done.report.reason is ConditionReason.FAILED
    assert "waits for Deployment.apps" in said(shop)["after"]
    assert "not healthy in time: 0 of 1 replicas" in said(shop)["after"]
    assert await shop.live("ConfigMap", "independent")
    assert await shop.live("ConfigMap", "after") is None
    # The next sync waits for it all the same.
    assert (await shop.sync()).report.reason is ConditionReason.FAILED
    await shop.settings(timeout="5m")
    shop.write({"d.yaml": deployment("web")})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED


async def test_a_rollout_that_fails_says_which_pod_and_why(shop, config_map, deployment):
    await shop.settings(timeout="20s")
    shop.write({"d.yaml": deployment("web", **NOWHERE), "c.yaml": config_map("after", {"reconcile.dev/wave": "1"})})
    syncing = asyncio.create_task(shop.sync())
    pods = f"/api/v1/namespaces/{shop.namespace}/pods"

    async def made():
        return (await shop.session.client.list(pods))[0]

    found = await until(made, "the Deployment has a pod")
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}
    status = {
        "name": "main",
        "image": "web:1",
        "imageID": "",
        "ready": False,
        "restartCount": 4,
        "state": {"waiting": waiting},
    }
    name = found[0]["metadata"]["name"]
    await shop.session.client.patch(f"{pods}/{name}/status", {"status": {"containerStatuses": [status]}})
    await syncing
    assert f"pod {name}: container main: CrashLoopBackOff: back-off 10s" in said(shop)["after"]


async def test_an_object_waits_for_what_it_names_and_its_failure_stops_it_alone(shop, config_map, deployment):
    await shop.settings(timeout="3s")
    needy = {"reconcile.dev/depends-on": "Deployment.apps/web"}
    shop.write({
        "c.yaml": config_map("needy", needy),
        "d.yaml": deployment("web", **NOWHERE),
        "x.yaml": deployment("other", annotations={"reconcile.dev/depends-on": "ConfigMap/base"}),
        "b.yaml": config_map("base"),
    })  # fmt: skip
    done = await shop.sync()
    assert set(said(shop)) == {"needy"}
    assert "it waits for Deployment.apps" in said(shop)["needy"]
    assert done.report.reason is ConditionReason.FAILED
    assert order(shop).index("base") < order(shop).index("other")
    await shop.settings(timeout="5m")
    shop.write({"d.yaml": deployment("web")})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert await shop.live("ConfigMap", "needy")


async def test_a_claim_that_is_bound_only_once_a_pod_uses_it_holds_nobody_up(shop, deployment):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk", "annotations": {"reconcile.dev/wave": "-1"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    shop.write({"p.yaml": claim, "d.yaml": deployment("web")})
    async with asyncio.timeout(250):
        assert (await shop.sync()).report.reason is ConditionReason.SYNCED


async def until_there(shop):
    async def live():
        return await shop.live("Memcached", "cache")

    await until(live, "the custom resource is there")


async def test_a_rule_in_cel_decides_when_a_custom_resource_is_there(shop, config_map):
    rule = {"kind": "Memcached.cache.example.com", "current": "self.metadata.annotations['up'] == 'yes'"}
    await shop.settings(timeout="5m", health={"rules": [rule]})
    shop.write({"m.yaml": CACHE, "c.yaml": config_map("after", {"reconcile.dev/wave": "1"})})
    syncing = asyncio.create_task(shop.sync())
    await until_there(shop)
    assert await shop.live("ConfigMap", "after") is None
    await shop.patch("Memcached", "cache", {"metadata": {"annotations": {"up": "yes"}}})
    assert (await syncing).report.reason is ConditionReason.SYNCED
    assert await shop.live("ConfigMap", "after")


async def test_a_module_says_when_its_custom_resource_is_there(shop, config_map):
    @module(
        api="cache.example.com/v1alpha1", kind="Memcached", owns=[],
        health=[{"Current": {"metadata.annotations.up": "yes"}}, {"InProgress": {}}],
    )  # fmt: skip
    def memcached(_cr, _owned, _facts, _ctx):
        """Make nothing."""
        return Outcome()

    shop.session.modules = KnownModules({memcached.gvk: memcached})
    await shop.settings(timeout="5m")
    shop.write({"m.yaml": CACHE, "c.yaml": config_map("after", {"reconcile.dev/wave": "1"})})
    syncing = asyncio.create_task(shop.sync())
    async with asyncio.timeout(250):
        await until_there(shop)
        # Longer than a resource that says nothing is waited for.
        await steadily_meanwhile(lambda: not syncing.done(), "it is waited for", for_s=3)
        await shop.patch("Memcached", "cache", {"metadata": {"annotations": {"up": "yes"}}})
        assert (await syncing).report.reason is ConditionReason.SYNCED
    assert await shop.live("ConfigMap", "after")


async def test_a_custom_resource_that_says_it_failed_may_take_it_back(shop, config_map):
    """Operators try again, and what they said of the spec before stands until they have seen the new one."""
    rule = {
        "kind": "Memcached.cache.example.com",
        "failed": "self.metadata.annotations['state'] == 'broken'",
        "current": "self.metadata.annotations['state'] == 'up'",
    }
    await shop.settings(timeout="5m", health={"rules": [rule]})
    broken = {**CACHE, "metadata": {"name": "cache", "annotations": {"state": "broken"}}}
    shop.write({"m.yaml": broken, "c.yaml": config_map("after", {"reconcile.dev/wave": "1"})})
    syncing = asyncio.create_task(shop.sync())
    async with asyncio.timeout(250):
        await until_there(shop)
        await steadily_meanwhile(lambda: not syncing.done(), "it is waited for", for_s=1)
        await shop.patch("Memcached", "cache", {"metadata": {"annotations": {"state": "up"}}})
        assert (await syncing).report.reason is ConditionReason.SYNCED
    assert await shop.live("ConfigMap", "after")


LIMITS = {
    "budget.yaml": {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "budget"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "nobody"}}},
    },
    "quota.yaml": {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": {"secrets": "50"}},
    },
    "scaler.yaml": {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "scaler"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"}},
    },
}  # fmt: skip


async def test_a_budget_without_pods_a_quota_and_an_autoscaler_of_nothing_hold_no_wave_up(shop, config_map):
    await shop.settings(timeout="5m", health={"strict": True})
    shop.write({**LIMITS, "c.yaml": config_map("after", {"reconcile.dev/wave": "1"})})
    done = await shop.sync()
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    assert order(shop)[-1] == "after"


@pytest.fixture
async def webhook(shop):
    """A webhook configuration that concerns nobody, served by the Service "hooks"."""
    name = f"{shop.namespace}-hooks"
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "hooks.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "clientConfig": {"service": {"namespace": shop.namespace, "name": "hooks"}},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            }
        ],
    }
    path = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}"
    with suppress(NotFound):
        await shop.session.client.delete(path)


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "hooks"},
    "spec": {"selector": {"app": "hooks"}, "ports": [{"port": 443}]},
}


async def test_a_webhook_waits_for_the_workload_behind_its_own_service_and_for_no_other(shop, deployment, webhook):
    await shop.settings(timeout="5m")
    slow = deployment("slow")
    slow["spec"]["template"]["spec"] |= NOWHERE
    shop.write({**LIMITS, "w.yaml": webhook, "s.yaml": SERVICE, "a.yaml": deployment("hooks"), "b.yaml": slow})
    done = await shop.sync()
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    assert order(shop)[-1] == webhook["metadata"]["name"]
    assert (await shop.live("Deployment", "hooks"))["status"]["availableReplicas"] == 1


async def test_a_webhook_whose_workload_never_comes_up_is_not_configured(shop, deployment, webhook):
    await shop.settings(timeout="5s")
    never = deployment("hooks")
    never["spec"]["template"]["spec"] |= NOWHERE
    shop.write({"w.yaml": webhook, "s.yaml": SERVICE, "a.yaml": never})
    await shop.sync()
    assert "it waits for Deployment.apps" in said(shop)[webhook["metadata"]["name"]]


# --- hooks -----------------------------------------------------------------------------------------------


async def test_hooks_run_once_for_each_state_of_the_files(shop, config_map, job):
    shop.write({
        "pre.yaml": job("migrate", **{"reconcile.dev/hook": "pre-sync"}),
        "post.yaml": job("notify", **{"reconcile.dev/hook": "post-sync"}),
        "fail.yaml": job("alarm", **{"reconcile.dev/hook": "sync-fail"}),
        "c.yaml": config_map("web", color="red"),
    })  # fmt: skip
    done = await shop.sync()
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    assert order(shop) == ["migrate", "web", "notify"]
    first = {name: (await shop.live("Job", name))["metadata"]["uid"] for name in ("migrate", "notify")}
    assert all(change.op is Op.UNCHANGED for change in (await shop.plan()).changes)
    await shop.patch("ConfigMap", "web", {"data": {"color": "blue"}})  # drift alone runs no hook
    await shop.sync()
    assert (await shop.live("Job", "migrate"))["metadata"]["uid"] == first["migrate"]
    shop.write({"c.yaml": config_map("web", color="green")})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert {(await shop.live("Job", name))["metadata"]["uid"] for name in first}.isdisjoint(first.values())
    assert await shop.live("Job", "alarm") is None


async def test_hooks_of_helm_run_by_weight_once_at_the_install_or_at_upgrades(shop, config_map, job):
    noted = {"helm.sh/hook": "pre-install,post-install", "helm.sh/hook-weight": "-5"}
    shop.write({
        "a.yaml": config_map("settings") | {"metadata": {"name": "settings", "annotations": noted}},
        "b.yaml": job("prepare", **{"helm.sh/hook": "pre-install"}),
        "c.yaml": config_map("web", color="red"),
        "d.yaml": job("migrate", **{"helm.sh/hook": "post-upgrade,pre-delete"}),
        "e.yaml": job("try", **{"helm.sh/hook": "test"}),
    })  # fmt: skip
    done = await shop.sync()
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    assert order(shop) == ["settings", "prepare", "web"]
    await tell(shop.session, await shop.target(), done.report)
    assert all(change.op is Op.UNCHANGED for change in (await shop.plan()).changes)
    prepared = (await shop.live("Job", "prepare"))["metadata"]["uid"]
    shop.write({"c.yaml": config_map("web", color="green")})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert order(shop)[3:] == ["web", "migrate"]
    assert (await shop.live("Job", "prepare"))["metadata"]["uid"] == prepared
    assert await shop.live("Job", "try") is None


async def test_a_hook_that_fails_before_stops_all_of_it_and_the_alarm_runs(shop, config_map, job):
    never = job("migrate", **{"reconcile.dev/hook": "pre-sync"})
    never["spec"] |= {"activeDeadlineSeconds": 1}
    never["spec"]["template"]["spec"] |= NOWHERE
    shop.write({
        "pre.yaml": never,
        "fail.yaml": job("alarm", **{"reconcile.dev/hook": "sync-fail"}),
        "post.yaml": job("notify", **{"reconcile.dev/hook": "post-sync"}),
        "c.yaml": config_map("web"),
    })  # fmt: skip
    for _ in range(2):  # the second time the hook has run for these files already, and counts as failed still
        done = await shop.sync()
        assert done.report.reason is ConditionReason.FAILED
        assert "deadline" in said(shop)["web"]
        assert await shop.live("ConfigMap", "web") is None
        assert await shop.live("Job", "notify") is None
        assert await shop.live("Job", "alarm")
    shop.write({"pre.yaml": job("migrate", **{"reconcile.dev/hook": "pre-sync"})})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
