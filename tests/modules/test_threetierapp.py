"""The ThreeTierApp module: what its tiers are, in which order they come and go."""

import copy

import pytest

from kubectl_reconcile.core.module.call import check_purity, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.outcome import key_of
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.modules.threetierapp import ThreeTierApp

NOW = "2026-01-01T00:00:00Z"
SPEC = {"frontend": {"image": "web:1"}, "backend": {"image": "api:1", "replicas": 2}, "database": {"image": "db:1"}}


def app(*, going=False, **spec):
    metadata = {"name": "store", "namespace": "shop", "uid": "u-1", **({"deletionTimestamp": NOW} if going else {})}
    return {
        "apiVersion": "apps.example.com/v1alpha1",
        "kind": "ThreeTierApp",
        "metadata": metadata,
        "spec": {**SPEC, **spec},
    }


def ask(cr, *children, read=(), with_=outcome_of):
    return with_(ThreeTierApp, cr, Owned(children, read), {}, Context(NOW, "threetierapp", cr))


def condition(outcome, type_):
    return next((one.status, one.message) for one in outcome.conditions if one.type == type_)


def living(child):
    """A child as it is once it runs."""
    status = {"observedGeneration": 1}
    done = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
    conditions = [{"type": "Available", "status": "True"}, done]
    found = copy.deepcopy(child)
    found["metadata"] |= {"namespace": "shop", "generation": 1}
    status["replicas"] = status["readyReplicas"] = found["spec"].get("replicas", 1)
    status |= {"updatedReplicas": status["replicas"], "availableReplicas": status["replicas"]}
    return {**found, "status": {**status, "currentRevision": "a", "updateRevision": "a", "conditions": conditions}}


def test_the_tiers_come_one_after_the_other():
    outcome = ask(app(cache={"size": 1}), with_=check_purity)
    assert [key_of(child) for child in outcome.children] == [
        "Service/store-database", "StatefulSet.apps/store-database", "Memcached.cache.example.com/store-cache",
        "Service/store-backend", "Deployment.apps/store-backend", "Service/store-frontend", "Deployment.apps/store-frontend",
    ]  # fmt: skip
    assert "Service/store-database" not in outcome.after
    assert "Deployment.apps/store-backend" in outcome.after["Deployment.apps/store-frontend"]
    assert "Memcached.cache.example.com/store-cache" in outcome.after["Service/store-backend"]
    assert condition(outcome, "Ready") == ("False", "database: does not exist")


def test_without_a_cache_there_is_none():
    outcome = ask(app())
    assert not any("cache" in key_of(child) for child in outcome.children)


def test_each_tier_knows_where_the_one_below_it_is():
    containers = {
        child["metadata"]["name"]: child["spec"]["template"]["spec"]["containers"][0]
        for child in ask(app(cache={"size": 1})).children
        if "template" in child["spec"]
    }
    assert {"name": "DATABASE_HOST", "value": "store-database"} in containers["store-backend"]["env"]
    assert {"name": "CACHE_HOST", "value": "store-cache"} in containers["store-backend"]["env"]
    assert containers["store-frontend"]["env"] == [{"name": "BACKEND_URL", "value": "http://store-backend:8080"}]


POSTGRES = {"engine": "MyDatabase", "version": 17, "storage": {"size": "10Gi"}, "replicas": 3}


def test_a_database_may_be_a_mydatabase_whose_user_the_backend_is():
    outcome = ask(app(database=POSTGRES), with_=check_purity)
    database, *_, backend = outcome.children[:3]
    assert key_of(database) == "MyDatabase.example.com/store-database"
    assert database["spec"] == {
        "version": 17, "replicas": 3, "storage": {"size": "10Gi"},
        "users": [{"name": "app"}], "databases": [{"name": "app", "owner": "app"}],
    }  # fmt: skip
    env = {one["name"]: one for one in backend["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert (env["DATABASE_HOST"]["value"], env["DATABASE_PORT"]["value"]) == ("store-database", "5432")
    assert (env["DATABASE_NAME"]["value"], env["DATABASE_USER"]["value"]) == ("app", "app")
    password = {"secretKeyRef": {"name": "store-database-user-app", "key": "password"}}
    assert env["DATABASE_PASSWORD"]["valueFrom"] == password
    assert key_of(database) in outcome.after["Deployment.apps/store-backend"]


def test_a_mydatabase_gets_the_image_and_the_class_of_its_volumes():
    storage = {"size": "1Gi", "storageClassName": "fast"}
    (database, *_) = ask(app(database={**POSTGRES, "image": "mirror/postgres:17.6", "storage": storage})).children
    assert (database["spec"]["image"], database["spec"]["storage"]) == ("mirror/postgres:17.6", storage)


def test_an_app_is_ready_when_all_tiers_are():
    children = [living(child) for child in ask(app()).children]
    assert condition(ask(app(), *children), "Ready") == ("True", "all 3 tiers are ready")
    assert condition(ask(app(), *children[:-1]), "Ready") == ("False", "frontend: does not exist")


def test_deleting_goes_from_the_front_and_keeps_what_is_below():
    children = [living(child) for child in ask(app()).children]
    left = children
    for expected in (["store-database", "store-backend"], ["store-database"], []):
        outcome = ask(app(going=True), *left)
        names = list(dict.fromkeys(child["metadata"]["name"] for child in outcome.children))
        assert (names, outcome.finalized) == (expected, False)
        assert set(outcome.untouched) == {key_of(child) for child in outcome.children}
        left = [child for child in left if child["metadata"]["name"] in names]
    assert ask(app(going=True)).finalized


def test_a_tier_is_gone_when_its_pods_are():
    labels = {"app.kubernetes.io/component": "frontend"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop", "labels": labels}}
    children = [living(child) for child in ask(app()).children if "frontend" not in child["metadata"]["name"]]
    kept = ask(app(going=True), *children, read=[pod]).children
    assert {child["metadata"]["name"] for child in kept} == {"store-database", "store-backend"}


INVALID = {
    "a tier without an image": ({"frontend": {}}, r"\.spec\.frontend\.image: is required"),
    "too many replicas": (
        {"backend": {"image": "x", "replicas": 101}},
        r"\.spec\.backend\.replicas: must be between 0 and 100",
    ),
    "another engine": (
        {"database": {"image": "x", "engine": "Oracle"}},
        r"\.spec\.database\.engine: must be one of StatefulSet, MyDatabase",
    ),
    "a StatefulSet without an image": ({"database": {}}, r"\.spec\.database\.image: is required, unless"),
    "a StatefulSet with a volume": (
        {"database": {"image": "x", "storage": {"size": "1Gi"}}},
        r"\.spec\.database\.storage: can be set only where \.spec\.database\.engine is MyDatabase",
    ),
    "a MyDatabase without a version": (
        {"database": {**POSTGRES, "version": None}},
        r"\.spec\.database\.version: is required where",
    ),
    "a MyDatabase elsewhere": ({"database": {**POSTGRES, "port": 5433}}, r"\.spec\.database\.port: must be 5432"),
    "a MyDatabase of too many": (
        {"database": {**POSTGRES, "replicas": 8}},
        r"\.spec\.database\.replicas: must be at most 7",
    ),
    "a tier that is text": ({"database": "postgres"}, r"\.spec\.database: must be an object"),
}


@pytest.mark.parametrize(("spec", "message"), INVALID.values(), ids=INVALID)
def test_what_makes_no_sense_is_named(spec, message):
    with pytest.raises(SpecError, match=message):
        ask(app(**spec))
