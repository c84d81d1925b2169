"""What the API server refuses of a MyDatabase, and what it says: the schema, before any module is asked."""

import pytest

from tests.kubectl import KubectlError

SPEC = {"version": 17, "storage": {"size": "2Gi"}}
REFUSED = {
    "a major version that isn't known": ({"version": 9}, 'spec.version: Unsupported value: 9: supported values: "14", "15", "16", "17", "18"'),
    "no instances": ({"replicas": 0}, "spec.replicas in body should be greater than or equal to 1"),
    "a size of words": ({"storage": {"size": "large"}}, "spec.storage.size in body should match"),
    "an image with spaces": ({"image": "postgres 17"}, "must be an image reference such as postgres:17.6, without spaces"),
    "a user that PostgreSQL has": ({"users": [{"name": "postgres"}]}, "is a name that PostgreSQL or kubectl-reconcile needs itself"),
    "a user twice": ({"users": [{"name": "a"}, {"name": "a"}]}, '.spec.users: duplicate entries for key [name="a"]'),
    "a database of nobody's": ({"databases": [{"name": "a", "owner": "b"}]}, "owners must be postgres or one of users"),
    "a parameter that is a number": ({"parameters": {"work_mem": 1}}, ".spec.parameters.work_mem: expected string"),
    **{
        f"rows that no replica has, by {value!r}": (
            {"replicas": 2, "synchronous": wish, "parameters": {"synchronous_commit": value}},
            "synchronous_commit must be on or remote_apply while synchronous.mode is Required",
        )
        for value in ("off", "OFF", "local", "remote_write", "false", "'off'", " off")
        for wish in ({"min": 1}, {"mode": "Required"})
    },
}  # fmt: skip
CHANGES = {
    "another major version": ({"version": 18}, "the major version can't be changed"),
    "a smaller volume": ({"storage": {"size": "2000Mi"}}, "can't become smaller, since volumes can't"),
    "another class": ({"storage": {"size": "2Gi", "storageClassName": "fast"}}, "can't be changed, since that of a volume can't"),
}  # fmt: skip


@pytest.fixture
def applied(kubectl, namespace, crds):
    def apply(**spec):
        metadata = {"name": "db", "namespace": namespace}
        kubectl.apply(
            [
                {
                    "apiVersion": "example.com/v1alpha1",
                    "kind": "MyDatabase",
                    "metadata": metadata,
                    "spec": {**SPEC, **spec},
                }
            ]
        )
        return kubectl.json("get", "mydatabase", "db", "-n", namespace)["spec"]

    return apply


def test_what_makes_no_sense_is_refused_at_once(applied):
    for what, (spec, said) in REFUSED.items():
        with pytest.raises(KubectlError) as told:
            applied(**spec)
        assert said in str(told.value).replace("\\", ""), what


def test_what_cannot_be_changed_is_refused_and_what_can_be_is_not(applied):
    found = applied(users=[{"name": "shop"}], databases=[{"name": "orders", "owner": "shop"}, {"name": "more"}])
    assert (found["replicas"], found["deletionPolicy"], found["databases"][1]["owner"]) == (1, "Retain", "postgres")
    for what, (spec, said) in CHANGES.items():
        with pytest.raises(KubectlError) as told:
            applied(**spec)
        assert said in str(told.value), what
    assert applied(storage={"size": "3G"}, replicas=3)["storage"] == {"size": "3G"}


def test_what_acknowledges_rows_is_left_to_whoever_may_lose_some(applied):
    for wish, value in (({"mode": "Preferred"}, "off"), ({"mode": "Required"}, "Remote_Apply"), ({}, "ON")):
        applied(replicas=2, synchronous=wish, parameters={"synchronous_commit": value})
    applied(replicas=2, parameters={"synchronous_commit": "local"})
