"""What stays of what Git drops, since somebody else owns a part of it: a command that removes just that."""

import json
import shlex

import pytest

from kubectl_reconcile.core.apply.left_behind import advice_on_rest
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.kinds import kinds_of_crd
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from tests.core.planning.changes import a_change

TEXT = {"type": "string"}
ITEM = {"type": "object", "properties": {"name": TEXT, "url": TEXT, "bundle": TEXT}}
SPEC = {
    "hooks": {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    "plain": {"type": "object", "additionalProperties": {"type": "object", "properties": ITEM["properties"]}},
}
(KIND,) = kinds_of_crd({
    "spec": {
        "group": "example.com", "scope": "Cluster", "names": {"kind": "Hooks", "plural": "hooks"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}}}}],
    }
}).values()  # fmt: skip


def advised(before, path, rest, stays):
    """The advice on an object of which Git drops what is at *path*, but for the bundle there, which an injector owns."""
    owned = {"f:spec": {path[1]: {path[2]: {"f:bundle": {}}}}}
    entry = {"manager": "injector", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": owned}  # fmt: skip
    named = {"apiVersion": "example.com/v1", "kind": "Hooks"}
    live = {**named, "metadata": {"name": "one", "managedFields": [entry]}, "spec": before}
    fields = (FieldChange(FieldPath((*path, "f:url")), "remove", "x", None, Reason.GIT),)
    change = a_change(
        ObjectRef("example.com", "Hooks", "", "one"), Op.UPDATE, KIND, before=live,
        after={**named, "metadata": {"name": "one"}, "spec": rest}, intent={**named, "metadata": {"name": "one"}, "spec": stays}, fields=fields,
    )  # fmt: skip
    return advice_on_rest(change)


@pytest.mark.parametrize(
    ("before", "path", "rest", "stays", "pointer"),
    [
        (
            {"hooks": [{"name": "a"}, {"name": "b", "url": "x", "bundle": "y"}]},
            ("f:spec", "f:hooks", 'k:{"name":"b"}'),
            {"hooks": [{"name": "a"}, {"name": "b", "bundle": "y"}]},
            {"hooks": [{"name": "a"}]},
            "/spec/hooks/1",
        ),
        (
            {"plain": {"a/b~'; reboot #": {"url": "x", "bundle": "y"}}},
            ("f:spec", "f:plain", "f:a/b~'; reboot #"),
            {"plain": {"a/b~'; reboot #": {"bundle": "y"}}},
            {"plain": {"other": {}}},
            "/spec/plain/a~1b~0'; reboot #",
        ),
    ],
    ids=["an item of a list", "a name that means something to a shell"],
)
def test_the_command_removes_what_is_left_and_does_nothing_else(before, path, rest, stays, pointer):
    said = advised(before, path, rest, stays)
    assert "is left, which belongs to injector" in said
    *_, option, patch = shlex.split(said[said.index("kubectl patch") :])
    assert (option, json.loads(patch)) == ("-p", [{"op": "remove", "path": pointer}])
