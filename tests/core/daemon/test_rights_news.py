"""What of accounts, roles and bindings is news: what changes somebody's rights, and whose."""

import pytest

from kubectl_reconcile.core.daemon.pass_events import RightsChanged
from kubectl_reconcile.core.daemon.rights_news import rights_news
from kubectl_reconcile.core.objects import ObjectRef

GROUP = "rbac.authorization.k8s.io"
ANYBODY = RightsChanged()
PUMP = RightsChanged(frozenset({"system:serviceaccount:team-a:pump"}))


def of(kind, **content):
    annotations = content.pop("annotations", {})
    metadata = {"name": "pump", "namespace": "team-a", "uid": content.pop("uid", "u"), "annotations": annotations}
    return {"kind": kind, "metadata": metadata, **content}


def to(*subjects):
    return of("RoleBinding", roleRef={"kind": "Role", "name": "pump"}, subjects=list(subjects))


ACCOUNT = {"kind": "ServiceAccount", "name": "pump"}
CASES = {
    "an account that came": ("ServiceAccount", None, of("ServiceAccount"), PUMP),
    "an account that went": ("ServiceAccount", of("ServiceAccount"), None, PUMP),
    "an account that was made again": ("ServiceAccount", of("ServiceAccount"), of("ServiceAccount", uid="v"), PUMP),
    "an annotation of an account": (
        "ServiceAccount",
        of("ServiceAccount"),
        of("ServiceAccount", annotations={"a": "b"}),
        None,
    ),
    "an annotation of a role": ("Role", of("Role", rules=[]), of("Role", rules=[], annotations={"a": "b"}), None),
    "rules of a role": ("Role", of("Role", rules=[]), of("Role", rules=[{"verbs": ["get"]}]), ANYBODY),
    "a binding that came": ("RoleBinding", None, to(ACCOUNT), PUMP),
    "a binding that lost a subject": ("RoleBinding", to(ACCOUNT), to(), PUMP),
    "a binding of a user": (
        "RoleBinding",
        None,
        to({"kind": "User", "name": "eve"}),
        RightsChanged(frozenset({"eve"})),
    ),
    "a binding of a group": ("RoleBinding", None, to({"kind": "Group", "name": "system:serviceaccounts"}), ANYBODY),
    "a binding of which nothing is known": ("RoleBinding", None, None, ANYBODY),
}


@pytest.mark.parametrize(("kind", "before", "after", "expected"), CASES.values(), ids=CASES)
def test_whose_rights_changed(kind, before, after, expected):
    ref = ObjectRef("" if kind == "ServiceAccount" else GROUP, kind, "team-a", "pump")
    assert rights_news(ref, before, after) == expected
