"""What a deletion takes along, on a real server: it is shown, it counts, and where nobody can count it, it is held."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.engine.sync import reconcile as engine
from tests.waiting import until

MANY = 12


@pytest.fixture
def config_map(manifests):
    return manifests("config_map")


def child_sync(**spec):
    body = {"deletionPolicy": "Prune", **spec}
    return {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "another"}, "spec": body}


@pytest.fixture
async def family(shop, another_shop, config_map):
    """A Sync whose source asks for another Sync, which prunes and has members of its own."""
    shop.write({"child.yaml": child_sync(), "a.yaml": config_map("a")})
    await shop.sync()
    another_shop.write({f"m{at}.yaml": config_map(f"m{at}") for at in range(MANY)})
    await another_shop.sync()
    shop.write({"child.yaml": None})
    return shop


def gone(made):
    return {change.ref.name for change in made.changes if change.op is Op.DELETE}


async def test_the_members_of_a_set_that_goes_are_shown_counted_and_held(family):
    made = await family.plan()
    assert gone(made) == {"another", *(f"m{at}" for at in range(MANY))}
    (hold,) = made.holds
    assert (hold.reason, len(hold.along)) == ("TooManyDeletes", MANY)
    await family.sync()
    assert await family.live("Sync", "another")
    await family.approve(made)
    await family.sync()
    assert await family.live("Sync", "another") is None


@pytest.mark.parametrize("spec", [{"suspend": True}, {"deletionPolicy": "Orphan"}], ids=["suspended", "orphaning"])
async def test_a_set_that_leaves_its_members_goes_alone(family, spec):
    await family.patch("Sync", "another", {"spec": spec})
    made = await family.plan()
    assert (gone(made), made.holds) == ({"another"}, ())


async def test_the_contents_of_a_namespace_are_shown_as_far_as_who_looks_may_see_them(shop, config_map):
    place = f"{shop.namespace}-more"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    shop.write({"n.yaml": namespace, "a.yaml": config_map("a")})
    await shop.sync()
    client = shop.session.client
    path = f"/api/v1/namespaces/{place}/configmaps"
    await client.create(path, config_map("foreign"), manager="somebody")
    shop.write({"n.yaml": None})
    try:
        (hold,) = (await shop.plan()).holds
        assert hold.reason == "NeedsConsent"
        assert [ref.name for ref in hold.along if ref.kind == "ConfigMap"] == ["foreign"]
        assert "uncounted" not in hold.message
        await bind(shop, "syncs.reconcile.dev", "configmaps", "namespaces")
        limited = replace(shop.session, client=client.impersonate(f"user-of-{shop.namespace}"))
        (hold,) = (await engine.plan(limited, await shop.target())).holds
        assert [ref.name for ref in hold.along if ref.kind == "ConfigMap"] == ["foreign"]
        assert f"Secret in namespace {place}" in hold.message or "more" in hold.message
        assert "uncounted, because they can't be listed" in hold.message
    finally:
        await client.delete(f"/api/v1/namespaces/{place}")
        await unbind(shop)


async def test_what_a_custom_resource_owns_is_shown_with_it(shop, config_map):
    cr = {
        "apiVersion": "demo.k8s.io/v1alpha1",
        "kind": "WebServer",
        "metadata": {"name": "site"},
        "spec": {"replicas": 1},
    }
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made-for-it"}, "stringData": {"k": "hunter2"}}
    shop.write({"w.yaml": cr, "a.yaml": config_map("a")})
    await shop.sync()
    live = await shop.session.client.get(f"/apis/demo.k8s.io/v1alpha1/namespaces/{shop.namespace}/webservers/site")
    owner = {"apiVersion": cr["apiVersion"], "kind": cr["kind"], "name": "site", "uid": live["metadata"]["uid"]}
    await shop.create({**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}})
    shop.write({"w.yaml": None})
    planned = await shop.plan()
    assert {"site", "made-for-it"} <= gone(planned)
    (secret,) = [change for change in planned.changes if change.ref.name == "made-for-it"]
    assert secret.gate.cascade
    assert "data" not in secret.before


async def bind(shop, *resources):
    """Let a user list *resources* everywhere, and nothing else."""
    name, client = f"few-of-{shop.namespace}", shop.session.client
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]}
        for resource, _, group in (each.partition(".") for each in resources)
    ]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    meta = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    await client.create(f"{rbac}/clusterroles", {**meta, "kind": "ClusterRole", "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    who = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"user-of-{shop.namespace}"}]
    await client.create(
        f"{rbac}/clusterrolebindings", {**meta, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": who}
    )
    group, resource = rules[-1]["apiGroups"][0], rules[-1]["resources"][0]
    asked = {"verb": "list", "group": group, "resource": resource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": who[0]["name"], "resourceAttributes": asked},
    }

    async def is_allowed():
        return (await client.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review))["status"]["allowed"]

    await until(is_allowed, "the API server's authorizer has heard of it")


async def unbind(shop):
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for kind in ("clusterroles", "clusterrolebindings"):
        await shop.session.client.delete(f"{rbac}/{kind}/few-of-{shop.namespace}")
