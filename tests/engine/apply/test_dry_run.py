"""What the server refuses is known before anything is written; what can't change is replaced only where allowed."""

from __future__ import annotations

import pytest
from msgspec import structs

from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.apply import dry_run
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.reconcile import perform
from tests.engine.shop import PATHS
from tests.waiting import until

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}},
}


def refused(done):
    return {each.change.ref.name: each.error for each in done.results if each.error}


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


@pytest.fixture
def job(manifests):
    return manifests("job")


async def test_an_invalid_object_is_found_before_anything_is_written_and_the_valid_ones_go(shop, config_map):
    bad = {**SERVICE, "spec": {"ports": [{"port": 99999}]}}
    shop.write({"a.yaml": bad, "b.yaml": config_map("fine", color="red")})
    made = await shop.plan()
    assert "spec.ports[0].port" in next(change.gate.blocked for change in made.changes if change.ref.name == "web")
    done = await shop.sync()
    assert set(refused(done)) == {"web"}
    assert done.report.reason is ConditionReason.FAILED
    assert (await shop.live("ConfigMap", "fine"))["data"] == {"color": "red"}
    assert await shop.live("Service", "web") is None


async def test_a_first_load_ends_as_if_each_object_had_been_tried(shop, config_map):
    bad = {**SERVICE, "spec": {"ports": [{"port": 99999}]}}
    names = [f"c{number}" for number in range(120)]
    shop.write({"a.yaml": bad, **{f"{name}.yaml": config_map(name) for name in names}})
    assert "spec.ports[0].port" in next(
        change.gate.blocked for change in (await shop.plan()).changes if change.gate.blocked
    )
    done = await shop.sync()
    assert set(refused(done)) == {"web"}
    assert done.report.counts.created == len(names)


async def test_an_atomic_first_load_writes_nothing_while_anything_is_wrong(shop, config_map):
    await shop.settings(atomic=True)
    bad = {**SERVICE, "spec": {"ports": [{"port": 99999}]}}
    shop.write({"a.yaml": bad, **{f"c{number}.yaml": config_map(f"c{number}") for number in range(120)}})
    done = await shop.sync()
    assert done.report.counts.created == 0
    assert await shop.live("ConfigMap", "c0") is None


async def test_an_unknown_field_is_refused_by_name(shop, config_map):
    shop.write({"a.yaml": {**SERVICE, "spec": {"ports": [{"port": 80}], "prots": []}}})
    assert "prots" in refused(await shop.sync())["web"]


async def test_an_atomic_sync_writes_nothing_while_anything_is_wrong(shop, config_map):
    await shop.settings(atomic=True)
    shop.write({"a.yaml": {**SERVICE, "spec": {"ports": [{"port": 99999}]}}, "b.yaml": config_map("fine")})
    done = await shop.sync()
    assert "the Sync is atomic" in refused(done)["fine"]
    assert await shop.live("ConfigMap", "fine") is None
    shop.write({"a.yaml": SERVICE})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert await shop.live("ConfigMap", "fine")


IMMUTABLE = {
    "the clusterIP of a Service": (
        SERVICE,
        lambda live: {**SERVICE, "spec": {**SERVICE["spec"], "clusterIP": "None"}},
    ),
    "the template of a Job": ("job", lambda _: "job 2"),
    "the data of an immutable ConfigMap": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "immutable": True, "data": {"a": "1"}},
        lambda _: {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "web"},
            "immutable": True,
            "data": {"a": "2"},
        },
    ),
    "the selector of a Deployment": ("deployment", lambda _: "deployment 2"),
}


@pytest.mark.parametrize(("before", "after"), IMMUTABLE.values(), ids=IMMUTABLE)
async def test_an_immutable_field_is_replaced_only_where_that_is_allowed(shop, manifests, before, after):
    def made(what):
        if what == "job":
            return manifests("job")("web")
        if what == "job 2":
            return manifests("job")("web", image="migrate:2")
        if what == "deployment":
            return manifests("deployment")("web")
        if what == "deployment 2":
            other = manifests("deployment")("web")
            other["spec"]["selector"]["matchLabels"] = other["spec"]["template"]["metadata"]["labels"] = {"app": "new"}
            return other
        return what

    first, second = made(before), made(after(None))
    kind = first["kind"]
    shop.write({"web.yaml": first})
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    uid = (await shop.live(kind, "web"))["metadata"]["uid"]
    shop.write({"web.yaml": second})
    error = refused(await shop.sync())["web"]
    assert 'reconcile.dev/replace: "true"' in error
    assert (await shop.live(kind, "web"))["metadata"]["uid"] == uid
    allowed = {**second, "metadata": {**second["metadata"], "annotations": {"reconcile.dev/replace": "true"}}}
    shop.write({"web.yaml": allowed})
    preview = await shop.plan()
    assert [change.op for change in preview.changes] == [Op.REPLACE]
    done = await shop.sync()
    assert done.report.reason is ConditionReason.SYNCED, done.report.problems
    assert (await shop.live(kind, "web"))["metadata"]["uid"] != uid
    assert all(change.op is Op.UNCHANGED for change in (await shop.plan()).changes)


async def test_a_plain_validation_error_never_deletes_whatever_is_allowed(shop):
    allowed = {**SERVICE, "metadata": {"name": "web", "annotations": {"reconcile.dev/replace": "true"}}}
    shop.write({"web.yaml": allowed})
    await shop.sync()
    uid = (await shop.live("Service", "web"))["metadata"]["uid"]
    both_wrong = {**allowed, "spec": {"clusterIP": "None", "ports": [{"port": 99999}]}}
    for broken in ({**allowed, "spec": {"ports": [{"port": 99999}]}}, both_wrong):
        shop.write({"web.yaml": broken})
        assert "99999" in refused(await shop.sync())["web"]
        assert (await shop.live("Service", "web"))["metadata"]["uid"] == uid


async def test_an_object_whose_successor_is_refused_is_put_back(shop, job):
    """The dry run passes; then a quota that appears in between refuses the creation itself."""
    allowed = {"reconcile.dev/replace": "true"}
    first = {**SERVICE, "metadata": {"name": "web", "annotations": allowed}}
    shop.write({"web.yaml": first})
    await shop.sync()
    shop.write({"web.yaml": {**first, "spec": {**first["spec"], "clusterIP": "None"}}})
    target = await shop.target()
    from kubectl_reconcile.engine.apply import dry_run  # noqa: PLC0415
    from kubectl_reconcile.engine.sync import gather  # noqa: PLC0415
    from kubectl_reconcile.engine.sync import reconcile as engine  # noqa: PLC0415

    made = await dry_run.confirm(
        shop.session.client, await engine.plan(shop.session, target), target.sync, along=gather.lister(shop.session)
    )
    (change,) = made.changes
    assert change.op is Op.REPLACE

    broken = {**change.intent, "spec": {**change.intent["spec"], "ports": [{"port": 99999}]}}
    made = made.with_changes([structs.replace(change, intent=broken)])
    done = await perform(shop.session, target, made)
    assert "the old object was restored" in refused(done)["web"]
    back = await shop.live("Service", "web")
    assert back["spec"]["ports"][0]["port"] == 80
    assert back["spec"]["clusterIP"] == change.before["spec"]["clusterIP"]
    assert back["metadata"]["uid"] != change.before["metadata"]["uid"]


async def test_a_field_that_the_server_puts_back_is_not_shown_to_change(shop):
    """A Service keeps the address that it has, whether somebody asks for it or not: no schema tells that, a dry run does."""
    shop.write({"web.yaml": SERVICE})
    await shop.sync()
    address = (await shop.live("Service", "web"))["spec"]["clusterIP"]
    shop.write({"web.yaml": {**SERVICE, "spec": {**SERVICE["spec"], "clusterIP": address}}})
    await shop.sync()
    shop.write({"web.yaml": {**SERVICE, "metadata": {"name": "web", "labels": {"app": "web"}}}})

    def paths(made):
        (change,) = made.changes
        assert change.op is Op.UPDATE
        return {str(each.path) for each in change.fields}

    assert paths(await shop.plan(confirmed=False)) == {".metadata.labels.app", ".spec.clusterIP"}
    assert paths(await shop.plan()) == {".metadata.labels.app"}


def ported(*ports):
    return {**SERVICE, "spec": {"selector": {"app": "web"}, "ports": list(ports)}}


HTTP, ADMIN = {"name": "http", "port": 80}, {"name": "admin", "port": 9000}


@pytest.mark.parametrize("others", [(), (ADMIN,)], ids=["alone", "among others"])
async def test_a_port_renumbered_by_hand_is_put_back(others, shop):
    shop.write({"web.yaml": ported(HTTP, *others)})
    await shop.sync()
    await shop.patch("Service", "web", [{"op": "replace", "path": "/spec/ports/0/port", "value": 8080}])
    made = await shop.plan()
    change = next(change for change in made.changes if change.ref.name == "web")
    assert not change.gate.blocked
    assert {each.manager for each in change.fields if "ports" in str(each.path)} >= {"somebody"}
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    live = (await shop.live("Service", "web"))["spec"]["ports"]
    assert {(port["name"], port["port"]) for port in live} == {(port["name"], port["port"]) for port in (HTTP, *others)}
    assert {change.op for change in (await shop.plan()).changes} == {Op.UNCHANGED}


async def test_a_container_port_renumbered_by_hand_is_put_back(shop, manifests):
    deployment = manifests("deployment")("web")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["ports"] = [{"name": "http", "containerPort": 80}]
    shop.write({"web.yaml": deployment})
    await shop.sync()
    name = deployment["metadata"]["name"]
    port = "/spec/template/spec/containers/0/ports/0/containerPort"
    await shop.patch("Deployment", name, [{"op": "replace", "path": port, "value": 8080}])
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    live = (await shop.live("Deployment", name))["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert [each["containerPort"] for each in live] == [80]


async def test_a_port_that_another_manager_applied_is_left_to_it(shop):
    shop.write({"web.yaml": ported(HTTP)})
    await shop.sync()
    path = f"/api/v1/namespaces/{shop.namespace}/services/web"
    theirs = ported({"name": "other", "port": 8080})
    await shop.session.client.apply(path, theirs, manager="them", force=True)
    assert (await shop.sync()).report.reason is ConditionReason.SYNCED
    assert {port["name"] for port in (await shop.live("Service", "web"))["spec"]["ports"]} == {"http", "other"}


@pytest.mark.parametrize("lifetime", [{}, {"ttlSecondsAfterFinished": 0}], ids=["what stays", "what removes itself"])
async def test_what_went_since_it_was_looked_at_is_a_create_unless_it_removes_itself(shop, job, lifetime):
    def labelled(text):
        made = job("once")
        return {
            **made,
            "metadata": {**made["metadata"], "labels": {"turn": text}},
            "spec": {**made["spec"], **lifetime},
        }

    shop.write({"a.yaml": labelled("first")})
    assert (await shop.sync()).report.counts.created == 1
    shop.write({"a.yaml": labelled("second")})
    made = await shop.plan(confirmed=False)
    assert [each.op for each in made.changes] == [Op.UPDATE]
    client, uid = shop.session.client, (await shop.live("Job", "once"))["metadata"]["uid"]
    await client.delete(PATHS["Job"].format(namespace=shop.namespace, name="once"), uid=uid)

    async def is_gone():
        return await shop.live("Job", "once") is None

    await until(is_gone, "the Job is gone")
    (change,) = (await dry_run.confirm(client, made, along=gather.lister(shop.session))).changes
    assert change.op is (Op.UNCHANGED if lifetime else Op.CREATE)
    assert change.before is None
    assert change.fields == ()


POLICIES = {
    "no rules, and nothing said of types": {"podSelector": {}, "egress": [], "policyTypes": []},
    "no rules of either sort": {"podSelector": {}, "ingress": [], "egress": [], "policyTypes": ["Ingress", "Egress"]},
    "empty lists further in": {
        "podSelector": {"matchExpressions": []}, "ingress": [{"from": [], "ports": []}], "policyTypes": [],
    },
}  # fmt: skip


@pytest.mark.parametrize("spec", POLICIES.values(), ids=POLICIES)
async def test_empty_lists_that_the_server_drops_are_no_change(shop, spec):
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny"}}
    shop.write({"a.yaml": {**kind, "spec": spec}})
    assert (await shop.sync()).report.counts.created == 1
    assert [each.op for each in (await shop.plan()).changes] == [Op.UNCHANGED]
    shop.write({"a.yaml": {**kind, "spec": {**spec, "podSelector": {"matchLabels": {"app": "web"}}}}})
    assert [each.op for each in (await shop.plan()).changes] == [Op.UPDATE]
