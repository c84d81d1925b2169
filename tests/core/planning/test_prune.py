"""What a deletion leaves for last."""

import pytest

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.planning.planner import build_removal
from kubectl_reconcile.core.planning.prune import holders_of, parted, without_rights
from kubectl_reconcile.core.resources.sync import Sync
from tests.core.planning.test_plan import KINDS, built_in, cache, inputs_of, live, plan


def test_what_holds_a_sync_goes_last_and_by_itself():
    home, daemon = ObjectRef("", "Namespace", "", "gitops"), ObjectRef("", "Namespace", "", "reconcile-system")
    kind = ObjectRef("apiextensions.k8s.io", "CustomResourceDefinition", "", "syncs.reconcile.dev")
    others = [ObjectRef("", "Namespace", "", "shop"), ObjectRef("", "ConfigMap", "gitops", "web")]
    changes = [Change(ref, Op.DELETE).gated(needs=(others[1],)) for ref in (others[0], home, kind, daemon, others[1])]
    made = Plan(ObjectRef("reconcile.dev", "Sync", "gitops", "shop"), "", tuple(changes))
    first, last = parted(made, holders_of(Sync("shop", "gitops"), "reconcile-system"))
    assert [change.ref for change in first.changes] == others
    assert [change.ref for change in last.changes] == [home, kind, daemon]
    assert not any(change.gate.needs for change in last.changes)


GROUP = "rbac.authorization.k8s.io"
RIGHTS_KINDS = [
    built_in("v1", "ServiceAccount", "serviceaccounts"),
    built_in(f"{GROUP}/v1", "Role", "roles"),
    built_in(f"{GROUP}/v1", "RoleBinding", "rolebindings"),
]


def named(api_version, kind, name):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}}


CHILD = named("reconcile.dev/v1alpha1", "Sync", "child")
RIGHTS = [
    named("v1", "ServiceAccount", "team"),
    named(f"{GROUP}/v1", "Role", "team"),
    named(f"{GROUP}/v1", "RoleBinding", "team"),
]


@pytest.fixture(autouse=True)
def _kinds(monkeypatch):
    for kind in RIGHTS_KINDS:
        monkeypatch.setitem(KINDS, kind.gvk, kind)


def deletions(made):
    return {change.ref.kind: change for change in made.changes if change.op is Op.DELETE}


def test_accounts_and_rights_wait_until_a_child_sync_is_gone():
    members = [live(each) for each in (CHILD, *RIGHTS)]
    found = deletions(plan([cache("sessions")], [live(cache("sessions")), *members]))
    child = found.pop("Sync")
    assert child.writes
    assert set(found) == {"ServiceAccount", "Role", "RoleBinding"}
    for change in found.values():
        assert change.gate.needs == (child.ref,)
        assert change.gate.wave > child.gate.wave


def test_accounts_and_rights_of_a_child_sync_that_is_going_are_left_to_a_later_pass():
    going = live(CHILD, deletionTimestamp="2026-11-20T12:00:00Z")
    found = deletions(plan([cache("sessions")], [live(cache("sessions")), going, *(live(each) for each in RIGHTS)]))
    assert set(found) == {"ServiceAccount", "Role", "RoleBinding"}
    for change in found.values():
        assert not change.writes
        assert change.gate.waits == "the end of Sync.reconcile.dev shop/child"


def test_without_child_syncs_accounts_and_rights_wait_for_nobody():
    found = deletions(plan([cache("sessions")], [live(cache("sessions")), *(live(each) for each in RIGHTS)]))
    assert all(change.writes and not change.gate.needs for change in found.values())
    assert len(found) == len(RIGHTS)


def test_what_says_what_accounts_may_do_is_deleted_by_itself():
    made = build_removal(inputs_of([], [live(each) for each in (CHILD, cache("sessions"), *RIGHTS)]))
    others, rights = without_rights(made)
    assert {change.ref.kind for change in others.changes} == {"Sync", "Memcached"}
    assert {change.ref.kind for change in rights.changes} == {"ServiceAccount", "Role", "RoleBinding"}
    assert not any(change.gate.needs for change in rights.changes)
