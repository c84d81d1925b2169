"""Namespaces that a Sync makes for its objects: before all that is in them, and without belonging to it."""

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.namespaces import made_for
from kubectl_reconcile.core.planning.plan import Op
from tests.core.planning.services import SHOP, live, only, plan, service

MAKING = replace(SHOP, create_namespace=True)
FAR = ObjectRef("", "Namespace", "", "far")


def there(name="far"):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": "u", "resourceVersion": "1"}}


def test_a_namespace_that_isnt_there_is_made_before_all_that_is_in_it():
    made = plan(
        [
            service("a", namespace="far", wave="-5"),
            service("job", "batch/v1/Job", "far", hook="pre-sync"),
            service("b"),
        ],
        sync=MAKING,
    )
    (place,) = made_for(made)
    assert (place.ref, place.op, place.intent["metadata"]) == (FAR, Op.CREATE, {"name": "far"})
    assert all(place.gate.wave < each.gate.wave for each in made.changes if each.ref.namespace == "far")


def test_it_is_no_member():
    made = plan([service("a", namespace="far")], sync=MAKING)
    assert FAR not in set(made.refs())
    assert "part-of" not in str(only(made, "far").intent)
    gone = plan([service("b")], [there(), live(service("a", namespace="far"))], sync=MAKING)
    assert [each.ref.name for each in gone.changes if each.op is Op.DELETE] == ["a"]


LEFT = {
    "one that is there": {"cluster": [there()]},
    "one that may not be looked at": {"unreadable": {FAR: "you may not"}},
    "one where the Sync doesn't say so": {"sync": SHOP},
}


@pytest.mark.parametrize("more", LEFT.values(), ids=LEFT)
def test_no_namespace_is_made_for(more):
    more = {"cluster": [], "sync": MAKING, **more}
    made = plan([service("a", namespace="far")], more.pop("cluster"), **more)
    assert [each.ref.name for each in made.acting()] == ["a"]


def test_one_that_the_source_holds_is_a_member_like_others():
    made = plan([service("a", namespace="far"), service("far", "v1/Namespace", "")], sync=MAKING)
    assert made_for(made) == []
    assert FAR in set(made.refs())
