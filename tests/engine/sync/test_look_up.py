"""Which of many new objects are there already: found with as few questions as the collection allows, on a real server."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.gather import look_up
from kubectl_reconcile.engine.sync.session import LongCollections

NEW = 12
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


@pytest.fixture
def asked(monkeypatch):
    """What is asked for from now on: the last part of each path."""
    found, request = [], Client.request

    async def noted(self, method, path, **more):
        found.append(path.rpartition("/")[2])
        return await request(self, method, path, **more)

    monkeypatch.setattr(Client, "request", noted)
    return found


@pytest.fixture
async def wanted(session, namespace):
    """Twelve objects, to be looked for in a namespace of their own."""
    kind = await session.kind(CONFIG_MAP)
    return [(ObjectRef("", "ConfigMap", namespace, f"new-{number:02}"), kind) for number in range(NEW)]


async def create(session, namespace, *names):
    for name in names:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
        await session.client.create(f"/api/v1/namespaces/{namespace}/configmaps", body, manager="somebody")


def found_in(found, wanted):
    return {ref.name for ref, _ in wanted if found.objects.stored(ref)}


async def test_where_little_else_is_there_a_list_of_names_is_enough(session, namespace, wanted, asked):
    assert found_in(await look_up(session, wanted), wanted) == set()
    assert asked == ["configmaps"]


async def test_the_few_that_are_there_are_read_by_name(session, namespace, wanted, asked):
    await create(session, namespace, "new-03", "else-1", "else-2")
    del asked[:]
    found = await look_up(session, wanted)
    assert found_in(found, wanted) == {"new-03"}
    assert found.objects.stored(wanted[3][0]).manifest()["data"] == {"a": "b"}
    assert asked == ["configmaps", "new-03"]


async def test_most_of_what_is_there_is_read_at_once(session, namespace, wanted, asked):
    await create(session, namespace, *(ref.name for ref, _ in wanted))
    del asked[:]
    assert found_in(await look_up(session, wanted), wanted) == {ref.name for ref, _ in wanted}
    assert asked == ["configmaps", "configmaps"]


async def test_a_namespace_full_of_other_objects_is_not_listed(session, namespace, wanted, asked, monkeypatch):
    monkeypatch.setattr(gather, "_ROWS", 1)
    await create(session, namespace, "new-03", *(f"else-{number}" for number in range(NEW)))
    del asked[:]
    assert found_in(await look_up(session, wanted), wanted) == {"new-03"}
    assert sorted(asked[1:]) == [ref.name for ref, _ in wanted]
    session.long_collections = LongCollections()
    del asked[:]
    for _ in range(2):
        assert found_in(await look_up(session, wanted, unseen=True), wanted) == set(), "the server will tell"
    assert asked == ["configmaps"], "known to be too long, it isn't listed again"


async def test_what_is_asked_for_at_a_version_that_is_only_coming_is_found_at_one_that_is_served(session, namespace):
    coming = replace(await session.kind(CONFIG_MAP), gvk=CONFIG_MAP._replace(version="v2"))
    await create(session, namespace, "here")
    here = ObjectRef("", "ConfigMap", namespace, "here")
    assert found_in(await look_up(session, [(here, coming)]), [(here, coming)]) == {"here"}
    assert gather.member_kinds(session, Contents(), [coming.gvk]) == {coming.gvk, CONFIG_MAP}
    assert gather.member_kinds(session, Contents(frozenset({CONFIG_MAP.group_kind})), [CONFIG_MAP]) == {CONFIG_MAP}


def test_how_long_a_collection_is_known_to_be_too_long():
    now_s = [0.0]
    long = LongCollections(lambda: now_s[0])
    long.note("/api/v1/namespaces/shop/configmaps", more_than=80)
    assert long.exceeds("/api/v1/namespaces/shop/configmaps", 80)
    assert not long.exceeds("/api/v1/namespaces/shop/configmaps", 81), "it may be short enough for that"
    assert not long.exceeds("/api/v1/namespaces/shop/secrets", 80)
    now_s[0] = 600.0
    assert not long.exceeds("/api/v1/namespaces/shop/configmaps", 80), "by now it may be shorter"
