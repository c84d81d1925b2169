"""What ends with a replacement or with other owners, on a real server: it is named, and waits for a person."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.status import ConditionReason
from tests.laws.deletions import many, path_of
from tests.waiting import until

REPLACE = {"reconcile.dev/replace": "true"}
NOBODY = {
    "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "11111111-2222-3333-4444-555555555555",
}  # fmt: skip


def claim(size="1Gi", **metadata):
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": "none",
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": REPLACE, **metadata},
        "spec": spec,
    }


def database(size, policy="Delete"):
    container = {"name": "a", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    template = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "annotations": REPLACE},
        "spec": {
            "serviceName": "db",
            "replicas": 2,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy, "whenScaled": policy},
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": template}],
        },
    }  # fmt: skip


async def uids(shop, kind):
    items, _ = await shop.session.client.list(path_of(kind, shop.namespace))
    return {
        each["metadata"]["uid"]
        for each in items
        if each["metadata"].get("ownerReferences") or kind != "PersistentVolumeClaim"
    }


async def running(shop):
    """Its two claims, once the StatefulSet has made them and owns them."""
    shop.write({"db.yaml": database("10Mi")})
    await shop.sync()

    async def has_claims():
        return len(await uids(shop, "PersistentVolumeClaim")) == 2

    await until(has_claims, "two claims")
    return await uids(shop, "PersistentVolumeClaim")


async def test_claims_that_go_with_a_replaced_stateful_set_are_named_and_go_once_somebody_agrees(shop):
    before = await running(shop)
    shop.write({"db.yaml": database("20Mi")})
    made = await shop.plan()
    (hold,) = made.holds
    assert (hold.reason, [ref.name for ref in hold.along]) == ("NeedsConsent", ["data-db-0", "data-db-1"])
    assert (await shop.sync()).report.reason is ConditionReason.HELD
    assert await uids(shop, "PersistentVolumeClaim") == before
    await shop.approve(made)
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED

    async def are_others():
        now = await uids(shop, "PersistentVolumeClaim")
        return len(now) == 2 and not now & before

    await until(are_others, "two other claims")
    shop.write({"db.yaml": database("30Mi")})
    assert [each.reason for each in (await shop.plan()).holds] == ["NeedsConsent"]  # the next one is another decision


async def test_claims_that_go_with_replicas_are_named_and_held(shop):
    before = await running(shop)
    fewer = database("10Mi")
    fewer["spec"]["replicas"] = 1
    shop.write({"db.yaml": fewer})
    (hold,) = (await shop.plan()).holds
    assert ([ref.name for ref in hold.refs], [ref.name for ref in hold.along]) == (["db"], ["data-db-1"])
    await shop.sync()
    assert await uids(shop, "PersistentVolumeClaim") == before


async def test_a_claim_is_never_replaced_unasked_even_where_it_says_that_it_may_be(shop):
    shop.write({"data.yaml": claim()})
    await shop.sync()
    uid = (await shop.live("PersistentVolumeClaim", "data"))["metadata"]["uid"]
    other = claim()
    other["spec"]["storageClassName"] = "another"
    shop.write({"data.yaml": other})
    made = await shop.plan()
    assert [(change.op, change.gate.held) for change in made.changes] == [(Op.REPLACE, True)]
    await shop.sync()
    assert (await shop.live("PersistentVolumeClaim", "data"))["metadata"]["uid"] == uid


async def deleted(shop, kind, name):
    """The uid of an object that somebody deletes, and a finalizer keeps."""
    live = await shop.live(kind, name)
    await shop.session.client.delete(path_of(kind, shop.namespace, name))
    return live["metadata"]["uid"]


async def test_what_its_manifest_lets_go_is_made_again(shop, manifests):
    config_map = manifests("config_map")
    kept = config_map("kept")
    kept["metadata"]["finalizers"] = ["example.com/keep"]
    shop.write({"kept.yaml": kept})
    await shop.sync()
    uid = await deleted(shop, "ConfigMap", "kept")
    shop.write({"kept.yaml": config_map("kept")})
    assert [change.op for change in (await shop.plan()).changes] == [Op.REPLACE]
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    metadata = (await shop.live("ConfigMap", "kept"))["metadata"]
    assert (metadata["uid"] != uid, "deletionTimestamp" in metadata, metadata.get("finalizers")) == (True, False, None)


async def test_data_is_let_go_by_nobody_unasked(shop):
    shop.write({"data.yaml": claim(finalizers=["example.com/keep"])})
    await shop.sync()
    uid = await deleted(shop, "PersistentVolumeClaim", "data")
    shop.write({"data.yaml": claim()})
    assert [hold.reason for hold in (await shop.plan()).holds] == ["NeedsConsent"]
    await shop.sync()
    assert (await shop.live("PersistentVolumeClaim", "data"))["metadata"]["uid"] == uid


@pytest.mark.parametrize("kind", ["ConfigMap", "Nothing"])
async def test_owners_that_are_not_there_are_refused_and_the_object_stays(shop, kind):
    shop.write({"data.yaml": claim()})
    await shop.sync()
    shop.write({"data.yaml": claim(ownerReferences=[{**NOBODY, "kind": kind}])})
    done = await shop.sync()
    (error,) = done.report.problems
    assert f"metadata.ownerReferences names {kind} nobody, which isn't there in namespace {shop.namespace}" in error
    assert not (await shop.live("PersistentVolumeClaim", "data"))["metadata"].get("ownerReferences")


async def test_an_owner_that_is_there_takes_its_object_along_once_somebody_agrees(shop, manifests):
    owner = manifests("config_map")("owner")
    shop.write({"data.yaml": claim(), "owner.yaml": owner})
    await shop.sync()
    uid = (await shop.live("ConfigMap", "owner"))["metadata"]["uid"]
    shop.write({"data.yaml": claim(ownerReferences=[{**NOBODY, "name": "owner", "uid": uid}])})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    shop.write({"owner.yaml": None})
    (hold,) = (await shop.plan()).holds
    assert ([ref.name for ref in hold.refs], [ref.name for ref in hold.asked]) == (["owner"], ["data"])
    await shop.sync()
    assert await shop.live("ConfigMap", "owner")


async def test_what_is_gone_is_what_was_named_and_approved(session, tmp_path, namespace):
    """Fifteen drawn worlds; ``make law-deletions`` draws hundreds."""
    assert await many(session, tmp_path, namespace, "fifteen", 15, 5) == []


def reference(owner):
    metadata = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}


async def test_what_waits_only_once_something_else_is_approved_is_approved_beside_it(shop, manifests):
    config_map = manifests("config_map")
    outer = claim(name="outer")
    changing = {**config_map("changing", REPLACE, a="1"), "immutable": True}
    shop.write({"outer.yaml": outer, "changing.yaml": changing, "inner.yaml": claim(name="inner")})
    await shop.sync()
    between = config_map("between")
    between["metadata"]["ownerReferences"] = [reference(await shop.live("PersistentVolumeClaim", "outer"))]
    owners = [await shop.create(between), await shop.live("ConfigMap", "changing")]
    inner = claim(name="inner", ownerReferences=[reference(each) for each in owners])
    shop.write({"outer.yaml": None, "changing.yaml": {**changing, "data": {"a": "2"}}, "inner.yaml": inner})
    first = await shop.plan()
    assert [hold.refs[0].name for hold in first.holds] == ["outer"]
    await shop.approve(first)
    second = await shop.plan()  # what goes with the first owned what the second takes along
    assert [(hold.refs[0].name, [each.name for each in hold.along]) for hold in second.holds] == [
        ("changing", ["inner"])
    ]
    await shop.approve(second)
    assert (await shop.plan()).holds == ()


async def test_an_approval_is_spent_by_the_sync_that_carries_it_out(shop, manifests):
    shop.write({"data.yaml": claim(), "stays.yaml": manifests("config_map")("stays")})
    await shop.sync()
    shop.write({"data.yaml": None})
    await shop.approve(await shop.plan())
    assert (await shop.target()).sync.approved_plan
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert (await shop.target()).sync.approved_plan == ""
