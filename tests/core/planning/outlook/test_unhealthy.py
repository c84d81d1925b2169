"""Which objects a preview calls unhealthy before anything is written."""

from msgspec.structs import replace

from kubectl_reconcile.core.health.cel_rules import HealthRules, Rule
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.outlook.unhealthy import with_health
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import a_change

NOW = "2026-11-20T12:00:00Z"


def claim(name, phase, **metadata):
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop", **metadata}, "status": {"phase": phase},
    }  # fmt: skip


def told(*live, op=Op.UNCHANGED):
    changes = tuple(a_change(ObjectRef.of(each), op) for each in live)
    return [str(one) for one in with_health(Plan(None, "", changes), Objects(live), HealthRules(), NOW).unhealthy]


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
    assert with_health(Plan(None, "", (missing,)), Objects(), HealthRules(), NOW).unhealthy == ()


def widget(name, **status):
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": NOW}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "status": status}


def test_what_is_silent_is_ill_only_where_another_of_its_kind_has_spoken():
    kind = Kind(
        GroupVersionKind("example.com", "v1", "Widget"), "widgets", namespaced=True, schema=UNKNOWN, custom=True
    )

    def named(has_status, *live):
        found = replace(kind, has_status=has_status)
        changes = tuple(replace(a_change(ObjectRef.of(each), Op.UNCHANGED), kind=found) for each in live)
        made = with_health(Plan(None, "", changes), Objects(live), HealthRules(), NOW)
        return [str(one.ref) for one in made.unhealthy]

    silent, speaking, broken = widget("a"), widget("b", phase="Ready"), widget("c", phase="Failed")
    assert named(True, silent) == []
    assert named(True, silent, speaking, broken) == ["Widget.example.com shop/a", "Widget.example.com shop/c"]
    assert named(False, silent, speaking) == []


def test_a_rule_that_cannot_be_answered_is_a_warning_and_the_general_rule_stands_in():
    rules = HealthRules(rules=(Rule.parse({"kind": "Widget.example.com", "current": "self.status.phase > 3"}),))
    live = (widget("a", phase="Ready"), widget("b", phase="Failed"), widget("c"))
    changes = tuple(a_change(ObjectRef.of(each), Op.UNCHANGED) for each in live)
    made = with_health(Plan(None, "", changes), Objects(live), rules, NOW)
    assert [str(one.ref) for one in made.unhealthy] == ["Widget.example.com shop/b", "Widget.example.com shop/c"]
    warned = [str(each) for each in made.problems]
    assert len(warned) == 2
    assert (
        "Widget.example.com shop/a: the rule 'self.status.phase > 3' can't be evaluated: No such overload" in warned[0]
    )
    assert not any(each.is_error for each in made.problems)
