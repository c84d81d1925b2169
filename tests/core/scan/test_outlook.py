"""What a plan does to a scan: only what would be written counts, and each finding once."""

import pytest

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Gate, Op, Provenance
from kubectl_reconcile.core.scan.outlook import outlook_of
from kubectl_reconcile.core.scan.pod_security import Profile

ROLE = ObjectRef("rbac.authorization.k8s.io", "Role", "shop", "web")
FROM_GIT = Provenance(file="rights.yaml", line=3)


def role(*verbs):
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "web", "namespace": "shop"},
        "rules": rules,
    }


def outlook(op, before=None, after=None, **more):
    found = outlook_of([Change(ROLE, op, before=before, after=after, provenance=FROM_GIT, **more)], Profile.BASELINE)
    return [(each.finding.check, each.place) for each in found.new], [
        (each.finding.check, each.place) for each in found.mended
    ]


def test_a_change_adds_what_wasn_t_there_and_mends_what_isn_t_any_more():
    wildcard, escalation = ("rights-wildcard", "rights.yaml:3"), ("rights-escalation", "rights.yaml:3")
    assert outlook(Op.CREATE, after=role("*")) == ([wildcard], [])
    assert outlook(Op.UPDATE, role("*"), role("bind")) == ([escalation], [wildcard])
    assert outlook(Op.UPDATE, role("*"), role("*", "get")) == ([], [])
    assert outlook(Op.DELETE, role("*")) == ([], [("rights-wildcard", "")])


@pytest.mark.parametrize(
    "gate", [Gate(blocked="another's"), Gate(held=True), Gate(denied="may not")], ids=["blocked", "held", "denied"]
)
def test_what_would_not_be_written_adds_and_mends_nothing(gate):
    assert outlook(Op.UPDATE, role("*"), role("bind"), gate=gate) == ([], [])


def test_what_stays_as_it_is_and_what_has_no_object_adds_nothing():
    assert outlook(Op.UNCHANGED, role("*"), role("*")) == ([], [])
    assert outlook(Op.ACT) == ([], [])
