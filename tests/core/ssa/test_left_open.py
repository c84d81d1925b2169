"""Fields that others fill in: never stated, so never emptied."""

import pytest

from kubectl_reconcile.core.ssa.merge import three_way
from kubectl_reconcile.core.ssa.policy import without_left_open
from kubectl_reconcile.core.ssa.schema import UNKNOWN

RBAC, ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
GATHERS = {"clusterRoleSelectors": [{"matchLabels": {"for": "us"}}]}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def role(**more):
    return {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "all"}, **more}


def hook(**client):
    return {"name": "a.example.com", "clientConfig": {"url": "https://a.example.com", **client}}


def hooks(*items, kind="ValidatingWebhookConfiguration"):
    return {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": "a"}, "webhooks": list(items)}


def api(**spec):
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": {"group": "a", **spec}}


def crd(**client):
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"path": "/convert", **client}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"conversion": conversion},
    }  # fmt: skip


CASES = {
    "rules that are gathered from other roles": (role(aggregationRule=GATHERS, rules=[]), role(aggregationRule=GATHERS)),
    "such rules that say something": (role(aggregationRule=GATHERS, rules=[RULE]), role(aggregationRule=GATHERS)),
    "an empty bundle of a webhook": (hooks(hook(caBundle=""), hook(caBundle="Zm9v")), hooks(hook(), hook(caBundle="Zm9v"))),
    "a bundle of a mere line break": (
        hooks(hook(caBundle="Cg=="), kind="MutatingWebhookConfiguration"), hooks(hook(), kind="MutatingWebhookConfiguration"),
    ),
    "the bundle of an aggregated API": (api(caBundle=""), api()),
    "the bundle of a conversion": (crd(caBundle=""), crd()),
}  # fmt: skip


@pytest.mark.parametrize(("stated", "applied"), CASES.values(), ids=CASES)
def test_others_fill_in(stated, applied):
    before = repr(stated)
    assert without_left_open(stated) == applied
    assert repr(stated) == before
    assert three_way(desired=stated, live=None, schema=UNKNOWN).intent == applied


STATED = {
    "rules of a role that gathers none": role(rules=[]),
    "rules beside a null": role(aggregationRule=None, rules=[RULE]),
    "a bundle": hooks(hook(caBundle="Zm9v")),
    "what is no bundle": hooks(hook(caBundle="!!!!")),
    "a webhook of a shape that no server takes": {**hooks(), "webhooks": "none"},
    "somebody else's kind of that name": {**role(aggregationRule={}, rules=[]), "apiVersion": "example.com/v1"},
    "an empty field of another kind": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"caBundle": ""}},
}


@pytest.mark.parametrize("stated", STATED.values(), ids=STATED)
def test_all_else_stays_as_it_is_stated(stated):
    assert without_left_open(stated) is stated
