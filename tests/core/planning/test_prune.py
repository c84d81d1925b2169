"""What a deletion leaves for last."""

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.planning.prune import holders_of, parted
from kubectl_reconcile.core.resources.sync import Sync


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
