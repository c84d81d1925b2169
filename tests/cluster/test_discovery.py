"""Kinds and schemas as a real API server tells them, and as it tells them when something is amiss."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.cluster.client import Access, Client, ServerError, Unreachable
from kubectl_reconcile.cluster.discovery import Discovery, Resource
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.core.ssa.schema import schemas_of_document
from tests.waiting import until

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")

SPELLINGS = {
    "a short name": ("deploy", "apps/v1", "Deployment"),
    "a plural": ("deployments", "apps/v1", "Deployment"),
    "a singular": ("deployment", "apps/v1", "Deployment"),
    "a kind": ("Deployment", "apps/v1", "Deployment"),
    "with its group": ("deployments.apps", "apps/v1", "Deployment"),
    "short with its group": ("deploy.apps", "apps/v1", "Deployment"),
    "with version and group": ("horizontalpodautoscalers.v1.autoscaling", "autoscaling/v1", "HorizontalPodAutoscaler"),
    "the preferred version": ("hpa", "autoscaling/v2", "HorizontalPodAutoscaler"),
    "a group's beginning": ("hpa.auto", "autoscaling/v2", "HorizontalPodAutoscaler"),
    "the core group first": ("events", "v1", "Event"),
    "the same elsewhere": ("events.events.k8s.io", "events.k8s.io/v1", "Event"),
    "a kind with its group": ("Role.rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1", "Role"),
}


@pytest.mark.parametrize(("text", "api_version", "kind"), SPELLINGS.values(), ids=SPELLINGS)
async def test_names_resolve_as_kubectl_does_it(discovery, text, api_version, kind):
    found = discovery.resolve(text)
    assert (found.gvk.api_version, found.gvk.kind) == (api_version, kind)


async def test_what_nobody_serves_resolves_to_nothing(discovery):
    assert discovery.resolve("nothings") is None
    assert discovery.resolve("deployments.example.com") is None
    assert discovery.find("apps/v1beta1", "Deployment") is None
    assert discovery.find_kind(GroupKind("example.com", "Nothing")) is None


async def test_resources_know_their_place(discovery):
    deployment, node = discovery.find("apps/v1", "Deployment"), discovery.find("v1", "Node")
    assert deployment.path("shop", "web") == "/apis/apps/v1/namespaces/shop/deployments/web"
    assert deployment.path("shop", "web", "status") == "/apis/apps/v1/namespaces/shop/deployments/web/status"
    assert deployment.collection() == "/apis/apps/v1/deployments"
    assert deployment.collection("shop") == "/apis/apps/v1/namespaces/shop/deployments"
    assert node.path("ignored", "one") == "/api/v1/nodes/one"
    assert (deployment.namespaced, node.namespaced) == (True, False)
    assert (deployment.has_status, discovery.find("v1", "ConfigMap").has_status) == (True, False)
    assert {"watch", "patch"} <= deployment.verbs
    assert deployment in discovery.category("all")


def test_names_are_quoted_in_paths():
    resource = Resource(GroupVersionKind("g", "v1", "Role"), "roles", namespaced=True)
    assert resource.path("n", "system:node/a?b") == "/apis/g/v1/namespaces/n/roles/system:node%2Fa%3Fb"


async def test_one_version_of_a_kind_is_preferred(discovery):
    versions = [
        r for r in discovery.resources if r.gvk.group_kind == GroupKind("autoscaling", "HorizontalPodAutoscaler")
    ]
    assert [(r.gvk.version, r.preferred) for r in versions] == [("v2", True), ("v1", False)]
    assert discovery.find_kind(GroupKind("autoscaling", "HorizontalPodAutoscaler")) is versions[0]


async def test_refreshing_without_news_is_cheap_and_says_so(through_faults, faults):
    found = await Discovery.load(through_faults)
    assert faults.seen == ["GET /api", "GET /apis", "GET /version"]
    for _ in range(10):  # other tests' kinds come and go
        faults.seen.clear()
        before = found.resources
        if not await found.refresh():
            break
    assert found.resources == before
    assert faults.seen == ["GET /api", "GET /apis"]
    assert found.version.startswith("v1.")


async def test_new_kinds_appear_and_old_ones_go(client, discovery, namespace, widget_kind):
    assert discovery.resolve(f"wdg.{namespace}.test") is None
    crd = await widget_kind(versions=("v1", "v1beta1"))
    while not all(discovery.find(f"{namespace}.test/{version}", "Widget") for version in ("v1", "v1beta1")):
        await discovery.refresh()
    widget = discovery.resolve(f"wdg.{namespace}.test")
    assert (widget.gvk.version, widget.preferred, widget.has_status) == ("v1", True, True)
    assert discovery.find(f"{namespace}.test/v1beta1", "Widget").preferred is False
    await client.delete(crd)
    while discovery.find(f"{namespace}.test/v1", "Widget"):
        await discovery.refresh()
    assert discovery.resolve(f"wdg.{namespace}.test") is None


async def test_a_failed_api_service_hides_its_own_kinds_only(client, discovery, namespace):
    group = f"{namespace}.gone"
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{group}"
    service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": namespace, "name": "nobody"},
        },
    }
    await client.apply(path, service)
    try:
        while f"{group}/v1" not in discovery.unavailable:
            await discovery.refresh()
        assert discovery.find_kind(DEPLOYMENT.group_kind)
        assert "doesn't answer" in discovery.unavailable[f"{group}/v1"]
        assert not (await discovery.schemas([GroupVersionKind(group, "v1", "Thing")]))[(group, "v1", "Thing")].known
    finally:
        await client.delete(path)


async def test_servers_without_aggregated_discovery_are_asked_one_by_one(discovery, through_faults, faults):
    faults.accept = "application/json"
    faults.answer("GET /apis/apps/v1", 503, times=99)
    old = await Discovery.load(through_faults)
    assert {each for each in old.unavailable if "." not in each} == {"apps/v1"}  # other tests' kinds come and go
    for text in ("cm", "hpa", "Role", "events.events.k8s.io", "no"):
        known, found = discovery.resolve(text), old.resolve(text)
        assert (
            found and (found.gvk, found.plural, found.namespaced, found.verbs, found.has_status, found.preferred)
        ) == (known and (known.gvk, known.plural, known.namespaced, known.verbs, known.has_status, known.preferred))


async def test_what_was_known_stays_when_the_server_goes(through_faults, faults):
    found = await Discovery.load(through_faults)
    faults.answer("GET /apis", 500, times=99)
    with pytest.raises(ServerError):
        await found.refresh()
    assert found.resolve("deploy")


async def test_an_answer_that_is_no_discovery_is_a_server_error(through_faults, faults):
    faults.answer("GET /apis", 200, b"<html>")
    with pytest.raises(ServerError, match="/apis is not JSON"):
        await Discovery.load(through_faults)


async def test_a_server_that_is_down_is_unreachable(kubeconfig):
    async with await Client.connect(Access(kubeconfig=kubeconfig, server="https://127.0.0.1:1")) as client:
        with pytest.raises(Unreachable):
            await Discovery.load(client)


# -- schemas -----------------------------------------------------------------------------------------------------------


def documents(faults) -> list[str]:
    """The schema documents that were asked for, without the index."""
    return [line.partition("?")[0] for line in faults.seen if "/openapi/v3/" in line]


async def test_only_the_documents_of_wanted_kinds_are_fetched_and_once(through_faults, faults, tmp_path):
    found = await Discovery.load(through_faults, tmp_path)
    assert (await found.schemas([DEPLOYMENT]))[DEPLOYMENT].has_status
    await found.schemas([DEPLOYMENT, GroupVersionKind("apps", "v1", "StatefulSet")])
    assert documents(faults) == ["GET /openapi/v3/apis/apps/v1"]
    again = await Discovery.load(through_faults, tmp_path)
    assert (await again.schemas([DEPLOYMENT]))[DEPLOYMENT].has_status
    assert documents(faults) == ["GET /openapi/v3/apis/apps/v1"]


def alike(one, other, compared) -> bool:
    """Whether two types merge the same, all the way down."""
    if one is None or other is None or (id(one), id(other)) in compared:
        return one is other or None not in (one, other)
    compared.add((id(one), id(other)))
    facts = [
        (type_.scalar, type_.form, type_.nullable, type_.is_resource, type_.preserve)
        + ((type_.list.atomic, type_.list.keys) if type_.list else ())
        + (
            (type_.map.atomic, type_.map.is_struct, [(f.name, f.default, f.required) for f in type_.map.fields()])
            if type_.map
            else ()
        )
        for type_ in (one, other)
    ]
    return (
        facts[0] == facts[1]
        and (not one.list or alike(one.list.item, other.list.item, compared))
        and (not one.map or alike(one.map.other, other.map.other, compared))
        and (not one.map or all(alike(f.type, other.map.field(f.name).type, compared) for f in one.map.fields()))
    )


@pytest.mark.parametrize("document", ["api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1", "apis/autoscaling/v2"])
async def test_slimmed_documents_say_the_same(client, discovery, document):
    group, _, version = document.removeprefix("api/").removeprefix("apis/").rpartition("/")
    whole = schemas_of_document(await client.get(f"/openapi/v3/{document}"))
    kinds = [gvk for gvk in whole if gvk[:2] == (group, version)]
    slim = await discovery.schemas(kinds)
    assert kinds
    for gvk in kinds:
        assert (slim[gvk].known, slim[gvk].has_status, slim[gvk].is_custom) == (
            True,
            whole[gvk].has_status,
            whole[gvk].is_custom,
        )
        assert alike(slim[gvk].root, whole[gvk].root, set()), gvk


async def test_a_kind_that_nobody_describes_has_an_unknown_schema(discovery):
    strange = GroupVersionKind("example.com", "v1", "Strange")
    absent = GroupVersionKind("apps", "v1", "Absent")
    schemas = await discovery.schemas([strange, absent])
    assert [schemas[strange].known, schemas[absent].known] == [False, False]
    assert await discovery.schemas([]) == {}


DAMAGE = {
    "cut off": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "another valid document": lambda data: data.partition(b"\n")[0] + b"\n" + json.dumps({"components": {}}).encode(),
    "a flipped byte": lambda data: data[:-10] + bytes([data[-10] ^ 1]) + data[-9:],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_a_damaged_cache_file_is_fetched_again(through_faults, faults, tmp_path, damage):
    await (await Discovery.load(through_faults, tmp_path)).schemas([DEPLOYMENT])
    (file,) = (tmp_path / "openapi").iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good))
    schemas = await (await Discovery.load(through_faults, tmp_path)).schemas([DEPLOYMENT])
    assert schemas[DEPLOYMENT].known
    assert len(documents(faults)) == 2
    assert file.read_bytes() == good


async def test_a_cache_that_cannot_be_written_costs_only_speed(client, tmp_path):
    (tmp_path / "openapi").write_text("a file where the folder should be")
    schemas = await (await Discovery.load(client, tmp_path)).schemas([DEPLOYMENT])
    assert schemas[DEPLOYMENT].known


async def test_another_server_cannot_plant_schemas(through_faults, client, faults, tmp_path):
    index = await client.get("/openapi/v3")
    lie = {"components": {"schemas": {}}}
    url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
    faults.answer(f"GET {url}", 200, json.dumps(lie).encode())
    planted = await (await Discovery.load(through_faults, tmp_path)).schemas([DEPLOYMENT])
    assert not planted[DEPLOYMENT].known
    honest = await (await Discovery.load(client, tmp_path)).schemas([DEPLOYMENT])
    assert honest[DEPLOYMENT].known


async def test_the_folder_stays_bounded(client, tmp_path, monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.cluster.openapi._MOST_FILES", 3)
    found = await Discovery.load(client, tmp_path)
    for resource in found.resources:
        await found.schemas([resource.gvk])
    assert len(list((tmp_path / "openapi").iterdir())) == 3


async def test_a_new_kind_has_its_schema_after_a_refresh(discovery, namespace, widget_kind):
    await widget_kind()
    widget = GroupVersionKind(f"{namespace}.test", "v1", "Widget")

    async def is_known():
        await discovery.refresh()
        return (await discovery.schemas([widget]))[widget].known

    await until(is_known, "the server has published the kind")
    assert (await discovery.schemas([widget]))[widget].is_custom


async def test_a_document_that_changed_since_the_index_was_read_is_found_at_its_new_place(
    client, namespace, widget_kind
):
    widget = GroupVersionKind(f"{namespace}.test", "v1", "Widget")

    async def published(with_notes):
        async def is_so():
            schema = (await (await Discovery.load(client)).schemas([widget]))[widget]
            return schema.known and ("notes" in schema.root.map.names) is with_notes

        await until(is_so, f"the server has published the kind, {with_notes=}")

    path = await widget_kind()
    await published(with_notes=False)
    early = await Discovery.load(client)
    await early.schemas([CONFIG_MAP])  # reads the index, not the widgets' document
    place = "/spec/versions/0/schema/openAPIV3Schema/properties/notes"
    await client.patch(path, [{"op": "add", "path": place, "value": {"type": "string"}}])
    await published(with_notes=True)
    assert "notes" in (await early.schemas([widget]))[widget].root.map.names


async def test_servers_without_openapi_v3_describe_nothing(through_faults, faults):
    faults.answer("GET /openapi/v3", 404, times=99)
    found = await Discovery.load(through_faults)
    assert not (await found.schemas([CONFIG_MAP]))[CONFIG_MAP].known
