"""What of a MyDatabase makes no sense is named by its field, with what to do."""

import pytest

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.modules.postgres.spec import OWNED_PARAMETERS, bytes_of, database_spec, parts_of, secrets_named


def cr(**spec):
    whole = {"version": 17, "storage": {"size": "1Gi"}, **spec}
    return {"metadata": {"name": "db", "namespace": "shop"}, "spec": whole}


REFUSED = {
    "an unknown major version": ({"version": 9}, ".spec.version: must be a major version that is known here, one of 14, 15"),
    "a minor version": ({"version": "17.6"}, ".spec.version: must be a whole number"),
    "no replicas": ({"replicas": 0}, ".spec.replicas: must be between 1 and 7, not 0"),
    "no storage": ({"storage": None}, ".spec.storage: is required"),
    "a size of nothing": ({"storage": {"size": "0Gi"}}, ".spec.storage.size: must be a quantity as in 10Gi, not '0Gi'"),
    "a size of words": ({"storage": {"size": "large"}}, ".spec.storage.size: must be a quantity"),
    "an image with spaces": ({"image": "postgres 17"}, ".spec.image: must be an image reference"),
    "a parameter that is ours": ({"parameters": {"port": "1"}}, ".spec.parameters[port]: can't be set, since it is how"),
    "a parameter of recovery": (
        {"parameters": {"recovery_target": "immediate"}}, ".spec.parameters[recovery_target]: can't be set, since recovery",
    ),
    "a parameter that is a number": ({"parameters": {"jit": 1}}, ".spec.parameters[jit]: must be text of one line, in quotes"),
    "a parameter of two lines": ({"parameters": {"jit": "on\nx = 1"}}, ".spec.parameters[jit]: must be text of one line"),
    "a name that is no parameter's": ({"parameters": {"a b": "1"}}, ".spec.parameters[a b]: is no name of a parameter"),
    "a user that PostgreSQL has": ({"users": [{"name": "postgres"}]}, ".spec.users[0].name: postgres is a name that"),
    "a user of PostgreSQL's own": ({"users": [{"name": "pg_x"}]}, ".spec.users[0].name: pg_x is a name that"),
    "a user twice": ({"users": [{"name": "a"}, {"name": "a"}]}, ".spec.users[1].name: a is there twice"),
    "a user in capitals": ({"users": [{"name": "Shop"}]}, ".spec.users[0].name: must be small letters, digits and underscores"),
    "a database of nobody's": (
        {"databases": [{"name": "a", "owner": "b"}]}, ".spec.databases[0].owner: must be postgres or one of .spec.users, not 'b'",
    ),
    "a policy that is none": ({"deletionPolicy": "Keep"}, ".spec.deletionPolicy: must be one of Retain, Delete"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "said"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_named(spec, said):
    with pytest.raises(SpecError) as told:
        database_spec(cr(**spec))
    assert str(told.value).startswith(said)


def test_no_parameter_that_is_ours_can_be_set():
    for name in OWNED_PARAMETERS:
        with pytest.raises(SpecError, match="hint: take it away"):
            database_spec(cr(parameters={name: "x"}))


def test_what_makes_sense_is_read():
    found = database_spec(cr(users=[{"name": "shop"}], databases=[{"name": "a", "owner": "shop"}, {"name": "b"}]))
    assert [each.owner for each in found.databases] == ["shop", "postgres"]
    assert found.server_image == "docker.io/library/postgres:17"
    assert database_spec(cr(image="mine:1")).server_image == "mine:1"


def test_secrets_are_named_whatever_the_spec_looks_like():
    assert secrets_named(cr(users=[{"name": "my_shop"}, {"name": "A"}, {}, 3, {"name": 4}])).names == (
        "db-superuser", "db-replication", "db-user-my-shop",
    )  # fmt: skip
    assert secrets_named({"metadata": {"name": "db"}, "spec": 3}).names == ("db-superuser", "db-replication")


@pytest.mark.parametrize(
    ("text", "size"), [("1Gi", 1 << 30), ("1.5k", 1500), ("7", 7), ("2Ti", 2 << 40), ("x", None), ("1 Gi", None)]
)
def test_quantities_are_bytes(text, size):
    assert bytes_of(text) == size


def test_a_list_of_names_is_several_values_and_anything_else_is_one():
    assert parts_of("search_path", '"$user", public') == ("$user", "public")
    assert parts_of("work_mem", "1MB, 2MB") == ("1MB, 2MB",)
