"""Sets: what is deleted, what waits for a person, and what happens between two sets."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.sync import reconcile as engine
from kubectl_reconcile.engine.sync import targets
from kubectl_reconcile.engine.sync.reconcile import perform
from kubectl_reconcile.views import changes


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


def members(shop, count, config_map):
    return {f"{at}.yaml": config_map(f"part-{at:02}") for at in range(count)}


async def names(shop):
    items, _ = await shop.session.client.list(f"/api/v1/namespaces/{shop.namespace}/configmaps")
    return {item["metadata"]["name"] for item in items} - {"kube-root-ca.crt"}


async def test_a_third_of_all_deleted_is_held_until_just_that_is_approved(shop, config_map):
    await shop.settings(maxDeletes="20%")
    shop.write(members(shop, 20, config_map))
    await shop.sync()
    shop.write({f"{at}.yaml": None for at in range(6)} | {"new.yaml": config_map("new")})
    done = await shop.sync()
    assert done.report.reason is ConditionReason.HELD
    assert "6 of 20 members would be deleted" in done.report.message
    assert len(await names(shop)) == 21  # the new one came, none went
    made = await shop.plan()
    shop.write({"6.yaml": None})
    await shop.approve(made)
    assert (await shop.sync()).report.reason is ConditionReason.HELD  # seven by now: that wasn't approved
    shop.write({"6.yaml": config_map("part-06")})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert await names(shop) == {"new"} | {f"part-{at:02}" for at in range(6, 20)}


async def test_replacements_count_among_deletions_and_are_held_too(shop, config_map):
    await shop.settings(maxDeletes=1, replace=True)
    frozen = {name: {**config_map(name, color="red"), "immutable": True} for name in ("a", "b", "c")}
    shop.write({f"{name}.yaml": each for name, each in frozen.items()})
    await shop.sync()
    shop.write({f"{name}.yaml": {**each, "data": {"color": "blue"}} for name, each in frozen.items()})
    done = await shop.sync()
    assert done.report.reason is ConditionReason.HELD
    assert "3 of 3 members would be deleted and recreated" in done.report.message
    assert (await shop.live("ConfigMap", "a"))["data"] == {"color": "red"}
    await shop.approve(await shop.plan())
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert (await shop.live("ConfigMap", "c"))["data"] == {"color": "blue"}


async def test_an_object_that_asks_to_be_kept_outlives_its_file(shop, config_map):
    shop.write(
        {
            "a.yaml": config_map("a", {"reconcile.dev/prune": "false"}),
            "b.yaml": config_map("b"),
            "c.yaml": config_map("c"),
        }
    )
    await shop.sync()
    shop.write({"a.yaml": None, "b.yaml": None})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert await names(shop) == {"a", "c"}


async def test_what_somebody_keeps_between_plan_and_deletion_stays(shop, config_map):
    from kubectl_reconcile.engine.sync import reconcile as engine  # noqa: PLC0415

    shop.write({"a.yaml": config_map("a"), "b.yaml": config_map("b"), "c.yaml": config_map("c")})
    await shop.sync()
    shop.write({"a.yaml": None, "b.yaml": None})
    target = await shop.target()
    made = await engine.plan(shop.session, target)
    await shop.patch("ConfigMap", "a", {"metadata": {"labels": {PART_OF: None}}})
    await shop.patch("ConfigMap", "b", {"metadata": {"annotations": {"reconcile.dev/prune": "false"}}})
    done = await perform(shop.session, target, made)
    assert {each.change.ref.name: "changed its membership" in each.error for each in done.results} == {
        "a": True,
        "b": True,
    }
    assert await names(shop) == {"a", "b", "c"}


async def test_an_object_of_another_sync_is_a_conflict_that_names_it(shop, another_shop, config_map):
    another_shop.write({"a.yaml": config_map("a", color="red")})
    await another_shop.sync()
    shop.write({"a.yaml": config_map("a", color="blue"), "b.yaml": config_map("b")})
    done = await shop.sync()
    (error,) = [each.error for each in done.results if each.error]
    assert f"it belongs to Sync {shop.namespace}/another" in error
    assert (await shop.live("ConfigMap", "a"))["data"] == {"color": "red"}
    assert await shop.live("ConfigMap", "b")


MOVES = {
    "the new home syncs first": lambda old, new: (new, old),
    "the old home syncs first, and is told where it goes": lambda old, new: (old, new, old),
}


@pytest.mark.parametrize("sequence", MOVES.values(), ids=MOVES)
async def test_an_object_moves_between_syncs_without_being_deleted(shop, another_shop, config_map, sequence):
    shop.write({"a.yaml": config_map("a", color="red"), "stays.yaml": config_map("stays")})
    await shop.sync()
    uid = (await shop.live("ConfigMap", "a"))["metadata"]["uid"]
    arriving = config_map("a", {"reconcile.dev/moved-from": f"{shop.namespace}/shop"}, color="blue")
    another_shop.write({"a.yaml": arriving})
    first, *rest = sequence(shop, another_shop)
    leaving = config_map("a", {"reconcile.dev/moved-to": f"{shop.namespace}/another"})
    shop.write({"a.yaml": leaving if first is shop else None})
    for each in (first, *rest):
        done = await each.sync()
        assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    if first is shop:
        shop.write({"a.yaml": None})
        assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    moved = await shop.live("ConfigMap", "a")
    assert (moved["metadata"]["uid"], moved["data"]) == (uid, {"color": "blue"})
    assert moved["metadata"]["labels"][PART_OF] == applyset_id((await another_shop.target()).sync.ref)
    assert all(change.op is Op.UNCHANGED for change in (await another_shop.plan()).changes)


async def test_a_race_with_another_writer_ends_with_what_git_asks_for(shop, config_map):
    shop.write(members(shop, 12, config_map))
    await shop.sync()
    over = asyncio.Event()

    async def scribble():
        number = 0
        while not over.is_set():
            number += 1
            for at in range(12):
                with suppress(ApiError):  # some of them are being deleted
                    await shop.patch(
                        "ConfigMap", f"part-{at:02}", {"metadata": {"annotations": {"scribble": str(number)}}}
                    )
            await asyncio.sleep(0.05)  # between two looks at one object another writer comes once, and not always

    writers = [asyncio.create_task(scribble()) for _ in range(3)]
    shop.write({f"{at}.yaml": config_map(f"part-{at:02}", color="blue") for at in range(6)})
    shop.write({f"{at}.yaml": None for at in range(6, 12)})
    done = await shop.sync()
    over.set()
    await asyncio.gather(*writers)
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    assert await names(shop) == {f"part-{at:02}" for at in range(6)}
    kept = [await shop.live("ConfigMap", f"part-{at:02}") for at in range(6)]
    assert [each["data"] for each in kept] == [{"color": "blue"}] * 6


async def test_the_objects_of_a_sync_that_is_gone_are_taken_over_by_the_id_of_its_set_and_not_before(
    shop, another_shop, config_map
):
    for each in (shop, another_shop):
        each.write({"a.yaml": config_map("a", color="red"), "b.yaml": config_map("b")})
    await shop.sync()
    set_id = applyset_id((await shop.target()).sync.ref)
    path = f"/apis/reconcile.dev/v1alpha1/namespaces/{shop.namespace}/syncs"
    await another_shop.target()
    annotations = {"annotations": {"reconcile.dev/members-from": set_id}}
    await shop.session.client.patch(f"{path}/another", {"metadata": annotations})
    done = await another_shop.sync()
    assert all("whose Sync hasn't released it" in each.error for each in done.results), "it is there"
    await shop.session.client.delete(f"{path}/shop")
    done = await another_shop.sync()
    assert (done.report.reason, done.report.counts.updated) == (ConditionReason.SYNCED, 2)
    assert (await shop.live("ConfigMap", "a"))["metadata"]["labels"][PART_OF] != set_id


# --- a preview of files that belong to no set ---------------------------------------------------------------------


async def test_a_preview_without_a_name_says_which_sync_an_object_belongs_to(shop, another_shop, config_map):
    shop.write({"a.yaml": config_map("a", color="red")})
    await shop.sync()
    another_shop.write({"a.yaml": config_map("a", color="blue")})
    nameless = await targets.folder_target(shop.session, another_shop.folder, "", shop.namespace)
    made = await engine.plan(shop.session, nameless)
    (change,) = made.changes
    assert (change.op, change.provenance.foreign) == (Op.UPDATE, f"Sync {shop.namespace}/shop")
    assert f"belongs to Sync {shop.namespace}/shop" in " ".join(text for text, _ in changes.notes_on(change, made, ""))


async def test_who_may_not_read_is_not_told_that_something_would_be_created(shop, config_map):
    shop.write({"a.yaml": config_map("a"), "b.yaml": config_map("b")})
    await shop.sync()
    nobody = replace(shop.session, client=shop.session.client.impersonate(f"nobody-in-{shop.namespace}"))
    nameless = await targets.folder_target(shop.session, shop.folder, "", shop.namespace)
    made = await engine.plan(nobody, nameless)
    assert {change.op for change in made.changes} == {Op.UNCHANGED}
    assert all(change.gate.blocked.startswith("it can't be read: ") for change in made.changes)
    assert not made.is_clean
