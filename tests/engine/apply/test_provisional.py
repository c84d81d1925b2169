"""Runs that nobody looked ahead for: the server judges whether an object is there."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.apply.results import ResultState
from kubectl_reconcile.core.objects import FIELD_MANAGER
from kubectl_reconcile.engine.apply.writer import Writer


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


async def test_a_provisional_run_makes_what_is_missing_and_leaves_alone_what_is_there(shop, config_map):
    shop.write({"new.json": config_map("new", a="ours"), "met.json": config_map("met", a="ours")})
    made = await shop.plan()
    await shop.create(config_map("met", a="theirs"))

    results = await Writer(shop.session.client, provisional=True).run(made)
    assert {each.change.ref.name: each.state for each in results} == {
        "new": ResultState.SUCCEEDED,
        "met": ResultState.TAKEN,
    }
    met, new = await shop.live("ConfigMap", "met"), await shop.live("ConfigMap", "new")
    assert met["data"] == {"a": "theirs"}
    assert not met["metadata"].get("labels")
    assert new["data"] == {"a": "ours"}
    assert [entry["manager"] for entry in new["metadata"]["managedFields"]] == [FIELD_MANAGER]


async def test_the_run_that_follows_writes_over_what_was_looked_at(shop, config_map):
    shop.write({"met.json": config_map("met", a="ours")})
    await shop.create(config_map("met", a="theirs"))
    results = await Writer(shop.session.client, provisional=True).run(await shop.plan())
    assert [each.state for each in results] == [ResultState.SUCCEEDED]
    assert (await shop.live("ConfigMap", "met"))["data"] == {"a": "ours"}
