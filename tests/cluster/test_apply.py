"""The writer on a real API server: what a plan says is done, what it doesn't say isn't, and what fails stops no other."""

from __future__ import annotations

import asyncio
import json
import secrets

import pytest

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.core.apply.results import ResultState
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import kinds_of_crd
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.engine.apply.writer import Hooks, Writer
from kubectl_reconcile.engine.sync.session import Session
from tests.core.planning.changes import a_change

MARK = "applyset-of-this-test-v1"
SUCCEEDED, SKIPPED, FAILED = ResultState.SUCCEEDED, ResultState.SKIPPED, ResultState.FAILED


@pytest.fixture
async def session(kubeconfig, tmp_path):
    async with Session.open(Access(kubeconfig=kubeconfig), tmp_path / "cache") as session:
        yield session


@pytest.fixture
def change(session, namespace):
    """await change(manifest, Op.UPDATE, before=live, wave=1) -> a change of the plan."""

    async def change(manifest, op=Op.CREATE, **more):
        gvk = GroupVersionKind.of(manifest)
        kind = more.pop("kind", None) or (await session.kinds([gvk]))[gvk]
        if kind.namespaced:
            manifest = {**manifest, "metadata": {"namespace": namespace, **manifest["metadata"]}}
        body = {} if op is Op.DELETE else {"after": manifest, "intent": manifest}
        return a_change(ObjectRef.of(manifest), op, kind, **body, **more)

    return change


@pytest.fixture
def run(session):
    """await run(change, …) -> how each ended, by name: {"web": (ResultState.SUCCEEDED, "")}."""

    async def run(*changes, **options):
        results = await Writer(session.client, **options).run(Plan(sync=None, revision="", changes=changes))
        return {result.change.ref.name: (result.state, result.error) for result in results}

    return run


@pytest.fixture
def live(session, namespace):
    """await live("web") -> the ConfigMap as it is, None where there is none."""

    async def live(name):
        found, _ = await session.client.list(
            f"/api/v1/namespaces/{namespace}/configmaps", fieldSelector=f"metadata.name={name}"
        )
        return found[0] if found else None

    return live


def config_map(name, labels=None, **data):
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def broken(name):
    return config_map(name) | {"data": {"no name for a key!": "x"}}


def namespace_of(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def a_kind(group, *, singular="widget", schema=None):
    names = {"kind": "Widget", "plural": "widgets", "singular": singular, "listKind": "WidgetList"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or {"type": "object"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest.fixture
async def group(session):
    """An API group of which the cluster has no kind; cleaned up afterwards."""
    group = f"g{secrets.token_hex(4)}.example.com"
    yield group
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    found, _ = await session.client.list(path, fieldSelector=f"metadata.name=widgets.{group}")
    for crd in found:
        await session.client.delete(f"{path}/{crd['metadata']['name']}")


# --- failures ---


async def test_one_failure_stops_no_other(run, change, live):
    ended = await run(
        await change(config_map("a", color="red")),
        await change(broken("b")),
        await change(config_map("c", color="red")),
        await change(config_map("later", color="red"), wave=1),
    )
    assert [ended[name][0] for name in ("a", "b", "c", "later")] == [SUCCEEDED, FAILED, SUCCEEDED, SUCCEEDED]
    assert "no name for a key!" in ended["b"][1]
    assert (await live("later"))["data"] == {"color": "red"}
    assert await live("b") is None


async def test_what_stands_in_a_namespace_that_failed_is_skipped_and_says_so(run, change, namespace, live):
    name = f"{namespace}-bad"
    bad = namespace_of(name) | {"metadata": {"name": name, "labels": {"no!": "label"}}}
    inside = config_map("inside")
    inside["metadata"]["namespace"] = name
    ended = await run(await change(bad), await change(inside, wave=1), await change(config_map("beside"), wave=1))
    assert ended[name][0] is FAILED
    assert ended["inside"][0] is SKIPPED
    assert f"namespace {name}" in ended["inside"][1]
    assert ended["beside"] == (SUCCEEDED, "")
    assert await live("beside")


async def test_objects_of_a_kind_that_failed_are_skipped_and_say_so(run, change, group):
    crd = a_kind(group, schema={"type": "no such type"})
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}}
    kind = kinds_of_crd(a_kind(group))[GroupVersionKind.of(widget)]
    ended = await run(await change(crd), await change(widget, kind=kind, wave=1))
    assert ended[f"widgets.{group}"][0] is FAILED
    assert ended["w"][0] is SKIPPED
    assert f"widgets.{group}" in ended["w"][1]


async def test_children_of_an_owner_that_failed_are_skipped_and_say_so(run, change):
    owner = await change(broken("owner"))
    ended = await run(owner, await change(config_map("child"), owner=owner.ref, wave=1))
    assert ended["owner"][0] is FAILED
    assert ended["child"][0] is SKIPPED
    assert str(owner.ref) in ended["child"][1]


async def test_what_is_blocked_is_left_alone_and_counts_as_failed(run, change, live):
    ended = await run(await change(config_map("a"), blocked="it is somebody else's"))
    assert ended == {"a": (FAILED, "it is somebody else's")}
    assert await live("a") is None


# --- order ---


async def test_a_kind_is_waited_for_before_objects_of_it_are_written(run, change, group, session, namespace):
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}}
    crd = a_kind(group)
    kind = kinds_of_crd(crd)[GroupVersionKind.of(widget)]
    ended = await run(await change(crd), await change(widget, kind=kind, wave=1))
    assert ended == {f"widgets.{group}": (SUCCEEDED, ""), "w": (SUCCEEDED, "")}
    assert (await session.client.get(f"/apis/{group}/v1/namespaces/{namespace}/widgets/w"))["metadata"]["uid"]


async def test_a_namespace_and_what_stands_in_it_come_in_one_run(run, change, namespace, session):
    name = f"{namespace}-new"
    inside = config_map("inside")
    inside["metadata"]["namespace"] = name
    try:
        ended = await run(await change(namespace_of(name)), await change(inside, wave=1))
        assert ended == {name: (SUCCEEDED, ""), "inside": (SUCCEEDED, "")}
    finally:
        await session.client.delete(f"/api/v1/namespaces/{name}")


# --- deletions ---


async def made(run, change, live, name="a", **labels):
    await run(await change(config_map(name, labels={PART_OF: MARK, **labels}, color="red")))
    return await live(name)


async def edit(session, manifest, **metadata):
    path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/configmaps/{manifest['metadata']['name']}"
    return await session.client.patch(path, {"metadata": metadata})


async def test_what_was_planned_to_go_goes(run, change, live):
    before = await made(run, change, live)
    assert await run(await change(before, Op.DELETE, before=before)) == {"a": (SUCCEEDED, "")}
    assert await live("a") is None


async def test_an_object_that_is_gone_already_is_no_failure(run, change, live, session):
    before = await made(run, change, live)
    await session.client.delete(f"/api/v1/namespaces/{before['metadata']['namespace']}/configmaps/a")
    assert await run(await change(before, Op.DELETE, before=before)) == {"a": (SUCCEEDED, "")}


async def test_an_object_that_merely_moved_on_goes_nevertheless(run, change, live, session):
    before = await made(run, change, live)
    await edit(session, before, annotations={"touched": "meanwhile"})
    assert await run(await change(before, Op.DELETE, before=before)) == {"a": (SUCCEEDED, "")}
    assert await live("a") is None


MOVES = {"into another set": "applyset-of-others-v1", "out of all sets": None}


@pytest.mark.parametrize("mark", MOVES.values(), ids=MOVES)
async def test_an_object_that_changed_its_membership_meanwhile_is_left_alone(run, change, live, session, mark):
    before = await made(run, change, live)
    await edit(session, before, labels={PART_OF: mark})
    state, error = (await run(await change(before, Op.DELETE, before=before)))["a"]
    assert state is FAILED
    assert "membership" in error
    assert await live("a")


async def test_another_object_of_the_same_name_is_left_alone(run, change, live, session):
    before = await made(run, change, live)
    await session.client.delete(f"/api/v1/namespaces/{before['metadata']['namespace']}/configmaps/a")
    anew = await made(run, change, live)
    await run(await change(before, Op.DELETE, before=before))
    assert (await live("a"))["metadata"]["uid"] == anew["metadata"]["uid"]


# --- what is told ---


async def test_a_second_time_nothing_is_written_and_that_is_known(change, live, session):
    def written(plan):
        return asyncio.wait_for(Writer(session.client).run(plan), 60)

    first = await change(config_map("a", color="red"))
    assert [result.wrote for result in await written(Plan(None, "", (first,)))] == [True]
    again = await change(config_map("a", color="red"), Op.UPDATE, before=await live("a"))
    assert [result.wrote for result in await written(Plan(None, "", (again,)))] == [False]


async def test_hooks_hear_of_each_result_and_of_each_object_as_the_server_holds_it(run, change, live):
    results, wrote, deleted = [], [], []
    hooks = Hooks(result=results.append, wrote=wrote.append, deleted=lambda ref, uid: deleted.append((ref.name, uid)))
    doomed = await made(run, change, live, "old")
    await run(
        await change(config_map("new")), await change(broken("bad")),
        await change(doomed, Op.DELETE, before=doomed, wave=1), hooks=hooks,
    )  # fmt: skip
    assert {result.change.ref.name for result in results} == {"new", "bad", "old"}
    assert [one["metadata"]["uid"] for one in wrote] == [(await live("new"))["metadata"]["uid"]]
    assert deleted == [("old", doomed["metadata"]["uid"])]


# --- the end ---


@pytest.mark.parametrize("waved", [10, 200])
async def test_told_to_stop_it_starts_nothing_more_and_leaves_what_was_started_whole(run, change, live, waved):
    stopping, told = asyncio.Event(), []

    def on_result(result):
        told.append(result)
        if len(told) == 3:
            stopping.set()

    changes = [await change(config_map(f"item-{index:03}", color="red"), wave=index // waved) for index in range(200)]
    ended = await run(*changes, hooks=Hooks(result=on_result), stopping=stopping)
    states = [state for state, _ in ended.values()]
    assert set(states) == {SUCCEEDED, SKIPPED}
    assert 3 <= states.count(SUCCEEDED) <= 100
    for index in (0, 199):
        name = f"item-{index:03}"
        assert bool(await live(name)) == (ended[name][0] is SUCCEEDED)
    assert "stopped" in ended["item-199"][1]


async def test_stopped_before_the_start_it_writes_nothing(run, change, live):
    stopping = asyncio.Event()
    stopping.set()
    before = await made(run, change, live, "old")
    ended = await run(
        await change(config_map("new")), await change(before, Op.DELETE, before=before, wave=1), stopping=stopping
    )
    assert {state for state, _ in ended.values()} == {SKIPPED}
    assert await live("new") is None
    assert json.dumps(await live("old")) == json.dumps(before)
