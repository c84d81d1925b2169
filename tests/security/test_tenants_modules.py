"""Class: a confused deputy by way of a domain module. Whatever a module's hook returns, it is written beside its custom resource
alone, though the module's account may write everywhere; and it is shown nothing that isn't its own.
"""

from __future__ import annotations

import json

import pytest

from tests.security.tenants import CR, MODULE, VALUE, annotated, config, manifest, owner_of_all
from tests.waiting import patiently

pytestmark = pytest.mark.xdist_group("tenants")  # one cluster and one daemon for all of them

BOSS = owner_of_all("boss", "committer")


STOLEN = manifest("v1", "Secret", "vault", "team-b", stringData={"code": "mine"})


def path_of(namespace, name):
    return f"/apis/{CR['apiVersion']}/namespaces/{namespace}/hookeds/{name}"


@pytest.fixture
def cr(world):
    """cr(namespace, name, …) makes or changes a custom resource of the hook, and returns it; it is gone afterwards."""
    cluster, *_ = world
    made = set()

    def put(namespace, name, **spec):
        made.add(path_of(namespace, name))
        body = {**CR, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
        query = f"{path_of(namespace, name)}?fieldManager=by-hand&force=true"
        return cluster.api.ask(query, method="PATCH", body=body, type_="application/apply-patch+yaml")

    yield put
    for path in made:
        cluster.api.ask(path, method="DELETE")
    for path in made:
        patiently(lambda path=path: cluster.api.ask(path) is None, "the custom resource is gone")


def test_what_a_module_wants_elsewhere_is_written_nowhere(world, attack, bakery, cr, hook):
    cluster, *_ = world
    a, elsewhere = cluster.at("team-a"), ("team-b", "kube-system", "reconcile-system")
    for namespace in elsewhere:
        may = cluster.kubectl(
            "auth", "can-i", "create", "configmaps", "-n", namespace,
            f"--as=system:serviceaccount:reconcile-system:{MODULE}",
        )  # fmt: skip
        assert may.strip() == "yes", "else RBAC would be what stops it"
    hook.children = [
        config("own-child"),
        config("bread", "team-b", price="0"),
        annotated(config("given", "team-b"), moved_from="team-b/bakery"),
        *(config(f"planted-in-{namespace}", namespace) for namespace in elsewhere),
    ]
    before = bakery.cluster.get("Secret", "vault")["data"]
    attack({**CR, "metadata": {"name": "evil"}, "spec": {}})
    patiently(lambda: a.get("ConfigMap", "own-child"), "the child beside the custom resource is made")

    def said():
        conditions = (cluster.api.ask(path_of("team-a", "evil")) or {}).get("status", {}).get("conditions", ())
        return next(
            (each["message"] for each in conditions if (each["type"], each["status"]) == ("Stalled", "True")), ""
        )

    assert "in namespace" in patiently(said, "the custom resource says what is not done")
    hook.children = [config("own-child"), STOLEN, BOSS]
    cr("team-a", "evil", look=2)
    patiently(lambda: "isn't among the kinds it owns" in said(), "nor may it make what it never said that it makes")
    assert bakery.goes_on()
    for namespace in elsewhere:
        assert not cluster.at(namespace).names("ConfigMap") & {f"planted-in-{namespace}", "given", "own-child"}
    assert bakery.cluster.get("ConfigMap", "bread")["data"] != {"price": "0"}
    assert bakery.cluster.get("Secret", "vault")["data"] == before
    assert " boss " not in cluster.kubectl("get", "clusterrolebindings", "--no-headers")


def test_a_module_is_shown_nothing_that_is_not_its_own(world, bakery, cr, hook):
    """What names a custom resource as its owner isn't its child, if it is elsewhere, of another kind, or watched for a Sync."""
    cluster, *_ = world
    hook.children = [config("own-child")]
    b = bakery.cluster
    for namespace in ("team-a", "team-b"):
        live = cr(namespace, "curious", look=1)
        owner = {
            **CR,
            "name": "curious",
            "uid": live["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": False,
        }
        label = {"reconcile.dev/module": "hooked"}
        claimed = {"metadata": {"ownerReferences": [owner], "labels": label}}
        patiently(lambda n=namespace: cluster.at(n).get("ConfigMap", "own-child"), "its own child is there")
        b.edit("Secret", "vault", claimed)  # the same namespace as one of both; the bakery's account alone may read it
        b.apply(config("claimed", "team-b", code=VALUE) | {"metadata": {"name": "claimed", **claimed["metadata"]}})
        asked = len(hook.questions)
        cr(namespace, "curious", look=2)
        patiently(
            lambda n=namespace, k=asked: any(
                f'"namespace":"{n}"' in each.replace(" ", "") for each in hook.questions[k:]
            ),
            "the hook is asked again",
        )
        seen = [
            json.loads(each)
            for each in hook.questions
            if json.loads(each)["parent"]["metadata"]["namespace"] == namespace
        ]
        assert any("own-child" in each["children"]["ConfigMap.v1"] for each in seen)
        for each in seen:
            assert "Secret.v1" not in each["children"]
            assert set(each["children"]["ConfigMap.v1"]) <= (
                {"own-child"} | ({"claimed"} if namespace == "team-b" else set())
            )
    assert VALUE not in json.dumps([each for each in hook.questions if '"team-a"' in each])
    b.edit("Secret", "vault", {"metadata": {"ownerReferences": None, "labels": {"reconcile.dev/module": None}}})
    assert bakery.goes_on()
