"""Which objects a preview calls unhealthy before anything is written."""

from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.outlook.unhealthy import with_health
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.planning.snapshot import Objects
from tests.core.planning.changes import a_change


def claim(name, phase, **metadata):
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop", **metadata}, "status": {"phase": phase},
    }  # fmt: skip


def told(*live, op=Op.UNCHANGED):
    changes = tuple(a_change(ObjectRef.of(each), op) for each in live)
    return [str(one) for one in with_health(Plan(None, "", changes), Objects(live), HealthRules()).unhealthy]


def test_what_has_failed_and_what_is_not_there_yet_is_named_with_the_reason():
    assert told(claim("a", "Bound"), claim("b", "Lost"), claim("c", "Pending")) == [
        "PersistentVolumeClaim shop/b: Failed: its volume is lost",
        "PersistentVolumeClaim shop/c: InProgress: not bound to a volume yet",
    ]


def test_what_changes_is_judged_as_it_is_before():
    assert told(claim("b", "Lost"), op=Op.UPDATE) == ["PersistentVolumeClaim shop/b: Failed: its volume is lost"]


def test_what_goes_and_what_is_on_its_way_out_is_not_ill():
    assert told(claim("b", "Lost"), op=Op.DELETE) == []
    assert told(claim("b", "Lost", deletionTimestamp="2026-11-20T12:00:00Z")) == []


def test_what_does_not_exist_yet_has_no_health():
    missing = a_change(ObjectRef("", "PersistentVolumeClaim", "shop", "new"), Op.CREATE)
    assert with_health(Plan(None, "", (missing,)), Objects(), HealthRules()).unhealthy == ()
