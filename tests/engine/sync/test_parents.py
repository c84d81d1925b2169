"""The Sync that keeps a set's membership, made by whoever comes first."""

from __future__ import annotations

from kubectl_reconcile.engine.sync import targets


async def test_two_who_make_the_same_new_sync_at_once_get_the_same_one(session, shop, namespace):
    shop.write({})
    one, other = [await targets.folder_target(session, shop.folder, "shop", namespace) for _ in range(2)]
    assert one.parent is other.parent is None
    one, other = [await targets.ensure_parent(session, each) for each in (one, other)]
    assert one.parent["metadata"]["uid"] == other.parent["metadata"]["uid"]
    assert other.sync.ref == one.sync.ref
