"""Owners at versions that the server can't use any more: the object is applied nevertheless, and the preview says what comes."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.apply.object_writer import write_status
from kubectl_reconcile.engine.sync import reconcile, targets
from kubectl_reconcile.engine.sync.books import tell
from kubectl_reconcile.engine.sync.reconcile import perform
from tests.waiting import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = {"type": "string"}
STATUS = {"type": "object", "properties": {"ready": TEXT, "phase": TEXT}}


def version(name, *fields, stored):
    spec = {"type": "object", "properties": dict.fromkeys(fields, TEXT)}
    return {
        "name": name, "served": True, "storage": stored, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": STATUS}}},
    }  # fmt: skip


@pytest.fixture
def gizmos(session, namespace):
    """A kind of the test's own; call it with the versions that it has from now on."""
    group, there = f"{namespace}.example.com", []

    async def become(*versions):
        names = {"kind": "Gizmo", "plural": "gizmos", "singular": "gizmo"}
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"gizmos.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
        }  # fmt: skip
        await session.client.apply(f"{CRDS}/gizmos.{group}", crd, manager="test", force=True)
        wanted = {each["name"] for each in versions}

        async def is_served():
            await session.refresh()
            return wanted == {each.gvk.version for each in session.discovery.resources if each.gvk.group == group}

        await until(is_served, f"{group} is served at {wanted}")
        there.append(group)
        return group

    return become


def gizmo(group, version, **spec):
    return {"apiVersion": f"{group}/{version}", "kind": "Gizmo", "metadata": {"name": "one"}, "spec": spec}


def versions_in(live):
    return {each["apiVersion"].rpartition("/")[2] for each in live["metadata"]["managedFields"]}


async def test_an_object_whose_owners_wrote_at_a_version_that_is_served_no_more_is_applied(shop, session, gizmos):
    old, new = version("v1", "a", "b", "c", stored=False), version("v2", "a", "b", "c", stored=True)
    group = await gizmos(old, new)
    shop.write({"a.yaml": gizmo(group, "v1", a="1", b="2")})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    path = f"/apis/{group}/{{}}/namespaces/{shop.namespace}/gizmos/one"
    await session.client.patch(path.format("v1"), {"spec": {"c": "3"}}, manager="editor")
    kind = await session.kind(GroupVersionKind(group, "v1", "Gizmo"))
    status = {**gizmo(group, "v1"), "status": {"ready": "yes"}}
    status["metadata"]["namespace"] = shop.namespace
    del status["spec"]
    await write_status(session.client, kind, status, manager="controller")
    await gizmos(new)
    shop.write({"a.yaml": gizmo(group, "v2", a="4")})
    (change,) = (await shop.plan()).acting()
    assert (change.op, change.gate.blocked) == (Op.UPDATE, "")
    assert {str(field.path) for field in change.fields} == {".spec.a", ".spec.b"}
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    live = await session.client.get(path.format("v2"))
    assert (live["spec"], live["status"]) == ({"a": "4", "c": "3"}, {"ready": "yes"})
    assert versions_in(live) == {"v2"}
    assert {each["manager"] for each in live["metadata"]["managedFields"]} == {
        "kubectl-reconcile",
        "editor",
        "controller",
    }
    assert not (await shop.plan()).acting()


async def test_an_object_and_its_status_may_have_fields_that_an_earlier_version_does_not_know(shop, session, gizmos):
    old, new = version("v1", "a", stored=False), version("v2", "a", "b", stored=True)
    group = await gizmos(old, new)
    shop.write({"a.yaml": gizmo(group, "v1", a="1")})
    await shop.sync()
    path = f"/apis/{group}/v2/namespaces/{shop.namespace}/gizmos/one"
    shop.write({"a.yaml": gizmo(group, "v2", a="1", b="2")})
    made = await shop.plan()
    assert [(change.op, change.gate.blocked) for change in made.acting()] == [(Op.UPDATE, "")]
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    live = await session.client.get(path)
    assert (live["spec"], versions_in(live)) == ({"a": "1", "b": "2"}, {"v2"})


async def test_a_member_whose_owners_were_lost_goes_on_as_a_member_and_is_deleted_after_approval(shop, manifests):
    config_map = manifests("config_map")
    shop.write({"a.yaml": config_map("lost", a="1", b="2"), "b.yaml": config_map("kept")})
    await shop.sync()

    async def wipe():
        wiped = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
        assert "managedFields" not in (await shop.patch("ConfigMap", "lost", wiped))["metadata"]

    await wipe()
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    shop.write({"a.yaml": config_map("lost", a="1")})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert (await shop.live("ConfigMap", "lost"))["data"] == {"a": "1"}, (
        "the server made up no owner who keeps the rest"
    )
    await wipe()
    shop.write({"a.yaml": None})
    done = await shop.sync()
    assert done.report.reason is ConditionReason.HELD
    assert "their managedFields were lost" in done.report.message
    assert await shop.live("ConfigMap", "lost")
    await shop.approve(done.plan)
    assert (await shop.sync()).report.counts.deleted == 1
    assert await shop.live("ConfigMap", "lost") is None


async def test_a_member_of_which_only_our_record_was_lost_loses_what_git_drops(session, shop, manifests, git_server):
    """The commit that was applied last tells what that was."""
    config_map = manifests("config_map")
    sync = {
        "apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "followed", "namespace": shop.namespace},
        "spec": {"source": {"git": {"url": git_server.url, "branch": "main"}}},
    }  # fmt: skip
    await session.client.create(f"/apis/reconcile.dev/v1alpha1/namespaces/{shop.namespace}/syncs", sync)

    async def synced(**data):
        git_server.push({"a.yaml": json.dumps(config_map("lost", **data))}, "Change")
        target = await targets.sync_target(session, "followed", shop.namespace)
        done = await perform(session, target, await reconcile.plan(session, target))
        await tell(session, done.target, done.report)
        return done.report.reason

    assert await synced(a="1", b="2") is ConditionReason.SYNCED
    await shop.patch("ConfigMap", "lost", {"metadata": {"annotations": {"theirs": "x"}}})
    entries = (await shop.live("ConfigMap", "lost"))["metadata"]["managedFields"]
    (ours,) = (at for at, each in enumerate(entries) if each["operation"] == "Apply")
    await shop.patch("ConfigMap", "lost", [{"op": "remove", "path": f"/metadata/managedFields/{ours}"}])
    assert await synced(a="1") is ConditionReason.SYNCED
    live = await shop.live("ConfigMap", "lost")
    assert (live["data"], live["metadata"]["annotations"]["theirs"]) == ({"a": "1"}, "x")


async def test_an_object_is_deleted_though_the_same_sync_has_its_version_served_no_more(shop, session, gizmos):
    old, new = version("v1", "a", stored=False), version("v2", "a", stored=True)
    group = await gizmos(old, new)
    crd = await session.client.get(f"{CRDS}/gizmos.{group}")
    crd = {name: crd[name] for name in ("apiVersion", "kind", "metadata", "spec")}
    crd["metadata"] = {"name": crd["metadata"]["name"]}
    shop.write(
        {
            "crd.yaml": crd,
            "a.yaml": gizmo(group, "v1", a="1"),
            "b.yaml": {**gizmo(group, "v1"), "metadata": {"name": "two"}},
        }
    )
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    two = {**gizmo(group, "v2", a="2"), "metadata": {"name": "two"}}
    shop.write({"crd.yaml": {**crd, "spec": {**crd["spec"], "versions": [new]}}, "a.yaml": None, "b.yaml": two})
    done = await shop.sync()
    assert (done.report.reason, done.report.counts.deleted) == (ConditionReason.SYNCED, 1)
    await session.refresh()
    left, _ = await session.client.list(f"/apis/{group}/v2/namespaces/{shop.namespace}/gizmos")
    assert [each["metadata"]["name"] for each in left] == ["two"]
