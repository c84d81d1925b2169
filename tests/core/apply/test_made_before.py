"""What a dry run can't know: a refusal that the plan itself does away with, and all those that count."""

import pytest

from kubectl_reconcile.core.apply.made_before import MadeBefore, TrialRefusal
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Change, Gate, Op
from kubectl_reconcile.core.ssa.schema import UNKNOWN

RBAC = "rbac.authorization.k8s.io"
PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
}
ACCOUNT = "system:serviceaccount:shop:kubectl-reconcile"


def change(group, kind, name, *, wave, op=Op.CREATE, namespace="shop", intent=None, **gate):
    plural = PLURALS.get(kind, f"{kind.lower()}s")
    known = Kind(GroupVersionKind(group, "v1", kind), plural, bool(namespace), UNKNOWN)
    ref = ObjectRef(group, kind, namespace, name)
    return Change(ref, op, known, intent=intent or {}, gate=Gate(wave, **gate))


def binding(wave=1, role="reader", kind="Role", subject=None):
    intent = {"roleRef": {"kind": kind, "name": role}, "subjects": [subject or {"kind": "ServiceAccount", "namespace": "shop", "name": "default"}]}  # fmt: skip
    return change(RBAC, "RoleBinding", "binds", wave=wave, intent=intent)


def lacking(user=ACCOUNT):
    text = f'User "{user}" cannot create resource "configmaps" in API group "" in the namespace "shop"'
    return TrialRefusal(text, lacks_rights=True, user=user)


NO_ROLE = TrialRefusal(f'roles.{RBAC} "reader" not found')
NOT_HELD = TrialRefusal("is attempting to grant RBAC permissions not currently held", lacks_rights=True, user=ACCOUNT)
POD = change("", "Pod", "web", wave=3)
OWN = {"kind": "ServiceAccount", "namespace": "shop", "name": "kubectl-reconcile"}
SETTINGS = change("", "ConfigMap", "settings", wave=4)

EXPLAINED = {
    "a binding whose role is made before": (change(RBAC, "Role", "reader", wave=0), binding(), NO_ROLE),
    "a binding of a ClusterRole that is made before": (
        change(RBAC, "ClusterRole", "reader", wave=0, namespace=""), binding(kind="ClusterRole"), TrialRefusal(f'clusterroles.{RBAC} "reader" not found'),
    ),
    "a binding whose role will hold other rights": (change(RBAC, "Role", "reader", wave=0, op=Op.UPDATE), binding(), NOT_HELD),
    "a pod whose account is made before": (
        change("", "ServiceAccount", "shopkeeper", wave=0), POD,
        TrialRefusal('pods "web" is forbidden: error looking up service account shop/shopkeeper: serviceaccount "shopkeeper" not found'),
    ),
    "a pod whose priority class is made before": (
        change("scheduling.k8s.io", "PriorityClass", "high", wave=0, namespace=""), POD,
        TrialRefusal('pods "web" is forbidden: no PriorityClass with name high was found'),
    ),
    "a pod whose runtime class is made before": (
        change("node.k8s.io", "RuntimeClass", "gvisor", wave=0, namespace=""), POD,
        TrialRefusal('pods "web" is forbidden: pod rejected: RuntimeClass "gvisor" not found'),
    ),
    "what a webhook looks up": (
        change("example.com", "Issuer", "ca", wave=1), change("example.com", "Certificate", "tls", wave=2),
        TrialRefusal('admission webhook "v.example.com" denied the request: Issuer "ca" not found'),
    ),
    "what it waits for within one wave": (
        change("example.com", "Issuer", "ca", wave=1),
        change("example.com", "Certificate", "tls", wave=1, needs=(ObjectRef("example.com", "Issuer", "shop", "ca"),)),
        TrialRefusal('admission webhook "v.example.com" denied the request: issuers.example.com "ca" not found'),
    ),
    "a quota that limits made before satisfy": (
        change("", "LimitRange", "defaults", wave=0), POD, TrialRefusal('pods "web" is forbidden: failed quota: compute: must specify limits.cpu for: web'),
    ),
    "a quota that is raised before": (
        change("", "ResourceQuota", "compute", wave=0, op=Op.UPDATE), POD,
        TrialRefusal('pods "web" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2'),
    ),
    "a standard that its namespace gives up before": (
        change("", "Namespace", "shop", wave=0, op=Op.UPDATE, namespace=""), POD,
        TrialRefusal('pods "web" is forbidden: violates PodSecurity "restricted:latest": privileged'),
    ),
    "rights that a binding before gives": (binding(subject=OWN), SETTINGS, lacking()),
    "rights that a binding before gives to a user": (binding(subject={"kind": "User", "name": "jane"}), SETTINGS, lacking("jane")),
    "rights that a binding before gives to all accounts of a namespace": (
        binding(subject={"kind": "Group", "name": "system:serviceaccounts:shop"}), SETTINGS, lacking(),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "refused", "said"), EXPLAINED.values(), ids=EXPLAINED)
def test_what_the_plan_makes_before_explains_a_refusal(made, refused, said):
    assert MadeBefore.of([made, refused]).explains(refused, said)


COUNTS = {
    "a role that nobody makes": (change(RBAC, "Role", "writer", wave=0), binding(), NO_ROLE),
    "a role that is made after": (change(RBAC, "Role", "reader", wave=2), binding(), NO_ROLE),
    "a role that is blocked itself": (change(RBAC, "Role", "reader", wave=0, blocked="refused"), binding(), NO_ROLE),
    "a role that goes": (change(RBAC, "Role", "reader", wave=0, op=Op.DELETE), binding(), NO_ROLE),
    "another kind of that name": (change("", "ConfigMap", "reader", wave=0), binding(), NO_ROLE),
    "rights within the role itself": (change(RBAC, "ClusterRole", "other", wave=0, namespace=""), binding(), NOT_HELD),
    "a value of the object's own": (
        change("", "ServiceAccount", "shopkeeper", wave=0), POD, TrialRefusal('Pod "web" is invalid: spec.containers: Required value'),
    ),
    "a quota of another namespace": (
        change("", "ResourceQuota", "compute", wave=0, namespace="other"), POD, TrialRefusal("exceeded quota: compute, requested: pods=1"),
    ),
    "a quota that another object overdraws": (
        change("", "ResourceQuota", "storage", wave=0), POD, TrialRefusal("exceeded quota: compute, requested: pods=1"),
    ),
    "a standard of another namespace": (
        change("", "Namespace", "other", wave=0, namespace=""), POD, TrialRefusal('violates PodSecurity "restricted:latest"'),
    ),
    "rights that a binding gives to somebody else": (binding(), SETTINGS, lacking()),
    "rights of nobody in particular": (binding(subject=OWN), SETTINGS, TrialRefusal("no", lacks_rights=True)),
}  # fmt: skip


@pytest.mark.parametrize(("made", "refused", "said"), COUNTS.values(), ids=COUNTS)
def test_any_other_refusal_counts(made, refused, said):
    assert not MadeBefore.of([made, refused]).explains(refused, said)


def test_an_object_never_explains_its_own_refusal():
    role = change(RBAC, "Role", "reader", wave=0)
    assert not MadeBefore.of([role]).explains(role, NO_ROLE)
