"""What is written in one step follows the order of its kinds, and a dry run knows it."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.apply import dry_run
from kubectl_reconcile.engine.apply.writer import Writer
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync import reconcile as engine
from kubectl_reconcile.engine.sync.reconcile import perform

RBAC = "rbac.authorization.k8s.io"
ALL = ["get", "list", "watch", "create", "patch", "update", "delete"]


def role(name, *rules):
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def binding(name, of, account="default"):
    subject = {"kind": "ServiceAccount", "name": account}
    return {
        "apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": of}, "subjects": [subject],
    }  # fmt: skip


READS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}


@pytest.fixture
async def team(shop):
    """The client of an account that writes ConfigMaps and roles of its namespace, and may bind none that holds more."""
    client, path = shop.session.client, f"/apis/{RBAC}/v1/namespaces/{shop.namespace}"
    rules = (
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ALL},
        {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ALL},
    )
    await client.create(f"{path}/roles", role("team", *rules))
    bound = binding("team", "team", "team")
    bound["subjects"][0]["namespace"] = shop.namespace
    await client.create(f"{path}/rolebindings", bound)
    return client.impersonate(f"system:serviceaccount:{shop.namespace}:team")


async def tried(shop, team):
    target = await shop.target()
    made = await engine.plan(shop.session, target)
    along = gather.lister(shop.session)
    return target, await dry_run.confirm(shop.session.client, made, target.sync, along=along, members=team)


def blocked(made):
    return {each.ref.name: each.gate.blocked for each in made.changes if each.gate.blocked}


async def test_a_role_and_its_binding_are_written_at_once_by_an_account_that_may_not_bind(shop, team):
    await shop.settings(atomic=True)
    shop.write({"a.yaml": binding("aa-binds", "zz-reads"), "b.yaml": role("zz-reads", READS)})
    target, made = await tried(shop, team)
    assert blocked(made) == {}
    assert {change.ref.name: change.op for change in made.acting()} == {"aa-binds": Op.CREATE, "zz-reads": Op.CREATE}
    done = await perform(shop.session, target, made, Writer(shop.session.client, members=team))
    assert done.report.reason is ConditionReason.SYNCED


async def test_a_binding_of_a_role_that_nobody_makes_is_blocked_and_says_what_is_missing(shop, team):
    shop.write({"a.yaml": binding("binds", "reads")})
    _, made = await tried(shop, team)
    assert "hint: Role.rbac.authorization.k8s.io" in blocked(made)["binds"]
    assert "namespace" not in blocked(made)["binds"].partition("hint")[2].replace(shop.namespace, "")


async def test_a_role_with_more_than_the_account_holds_is_blocked_and_its_binding_stays_as_planned(shop, team):
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    shop.write({"a.yaml": binding("binds", "reads"), "b.yaml": role("reads", more)})
    target, made = await tried(shop, team)
    assert set(blocked(made)) == {"reads"}
    done = await perform(shop.session, target, made, Writer(shop.session.client, members=team))
    assert done.report.reason is ConditionReason.FAILED
    assert {each.change.ref.name for each in done.results if each.error} == {"reads", "binds"}


async def test_a_namespace_is_made_for_objects_and_stays_when_they_go(shop, manifests):
    place = f"{shop.namespace}-made"
    await shop.settings(createNamespace=True, targetNamespace=place)
    shop.write({"a.yaml": manifests("config_map")("a", color="red")})
    assert [(each.op, each.ref.kind) for each in (await shop.plan()).acting()] == [
        (Op.CREATE, "Namespace"), (Op.CREATE, "ConfigMap"),
    ]  # fmt: skip
    done = await shop.sync()
    assert (done.report.reason, done.report.counts.total) == (ConditionReason.SYNCED, 1)
    assert (await shop.live("ConfigMap", "a", place))["data"] == {"color": "red"}
    assert (await shop.plan()).is_clean
    shop.write({"a.yaml": None, "b.yaml": manifests("config_map")("b")})
    await shop.sync()
    assert await shop.live("ConfigMap", "a", place) is None
    assert await shop.live("Namespace", place)
    await shop.session.client.delete(f"/api/v1/namespaces/{place}")
