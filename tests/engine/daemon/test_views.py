"""What is followed on behalf of Syncs: each feed for as long as some Sync needs it."""

from __future__ import annotations

import asyncio

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.daemon.views import FeedUsers, MemberFeeds, OwnRights, followed
from tests.waiting import steadily_meanwhile, until


def a_sync(name, namespace):
    source = {"git": {"url": "https://git.example.com/shop"}}
    metadata = {"name": name, "namespace": namespace, "generation": 1}
    return Sync.of(
        {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "spec": {"source": source}}
    )


async def test_a_feed_that_one_sync_lets_go_of_while_another_takes_it_up_stays_followed(kubectl, namespace):
    async with await Client.connect(Access(kubeconfig=kubectl.kubeconfig)) as client:
        resource = (await Discovery.load(client)).find("v1", "ConfigMap")
        one, other = a_sync("one", namespace), a_sync("other", namespace)
        for ticks in range(8):  # the other one takes it up at each moment of the letting go
            cache = Cache(client)
            feeds, feed = MemberFeeds(cache, OwnRights(client)), Feed(resource, label_selector=f"tick={ticks}")
            assert not await feeds.ensure(one, [feed], Contents())
            taking_up = asyncio.create_task(feeds.ensure(other, [feed], Contents()))
            for _ in range(ticks):
                await asyncio.sleep(0)
            feeds.release(one.ref)
            assert not await asyncio.wait_for(taking_up, 200), ticks
            await steadily_meanwhile(lambda: cache.synced(feed), f"it is followed, {ticks}", for_s=0.05)  # noqa: B023 - done with before the next
            feeds.release(other.ref)
            await until(lambda: feed not in cache.feeds, "nobody needs it")  # noqa: B023 - the same
            await cache.close()


async def test_a_feed_of_a_whole_namespace_is_followed_for_as_long_as_somebody_reads_it(kubectl, namespace):
    async with await Client.connect(Access(kubeconfig=kubectl.kubeconfig)) as client:
        feed = Feed((await Discovery.load(client)).find("v1", "ConfigMap"), namespace=namespace)
        cache = Cache(client)
        users, one, other = FeedUsers(cache), a_sync("one", namespace).ref, a_sync("other", namespace).ref
        for each in (one, other, one):
            users.use(each, frozenset([feed]))
        assert not await followed(cache, [feed])
        users.use(one, frozenset())
        await asyncio.sleep(0)
        assert cache.synced(feed), "the other one reads it"
        users.use(other, frozenset())
        await until(lambda: feed not in cache.feeds, "nobody reads it")
        await cache.close()
