"""What a module and the daemon may do: no more than their kinds need."""

import pytest

from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.inputs import Reads
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.module.rbac import LOOK, MANAGE, daemon_rules, plural, rules_of

PLURALS = {
    "Pod": "pods",
    "Ingress": "ingresses",
    "Box": "boxes",
    "Batch": "batches",
    "Bush": "bushes",
    "NetworkPolicy": "networkpolicies",
    "Gateway": "gateways",
    "Endpoints": "endpoints",
    "StatefulSet": "statefulsets",
}


@pytest.mark.parametrize(("kind", "resource"), PLURALS.items(), ids=PLURALS)
def test_a_kind_is_served_as(kind, resource):
    assert plural(kind) == resource


def a_module(name="cache", **more):
    return module(api="example.com/v1", kind="Cache", name=name, **more)(lambda *_: Outcome())


def rule(group, resources, verbs):
    return {"apiGroups": [group], "resources": resources, "verbs": [*verbs]}


def test_a_module_manages_its_kind_and_its_children_and_looks_at_what_it_reads():
    reads = [Reads("v1", "ConfigMap", of=lambda _: None)]
    found = rules_of(a_module(owns=["apps/v1/Deployment", "apps/v1/StatefulSet", "v1/Service"], reads=reads))
    assert found == [
        rule("", ["configmaps"], LOOK),
        rule("", ["services"], MANAGE),
        rule("apps", ["deployments", "statefulsets"], MANAGE),
        rule("example.com", ["caches"], MANAGE),
        rule("example.com", ["caches/finalizers"], ["update"]),
        rule("example.com", ["caches/status"], ["patch"]),
    ]


def test_a_module_that_reads_what_it_owns_manages_it():
    found = rules_of(a_module(owns=["v1/Service"], reads=[Reads("v1", "Service", of=lambda _: None)]))
    assert rule("", ["services"], MANAGE) in found
    assert rule("", ["services"], LOOK) not in found


def test_the_daemon_has_the_rights_of_its_modules_beside_its_own_in_the_order_of_their_names():
    alone, first, second = daemon_rules([]), a_module("a", owns=["v1/Pod"]), a_module("b", owns=["v1/Service"])
    assert rule("reconcile.dev", ["syncs/status"], ["patch"]) in alone
    assert daemon_rules([second, first]) == [*alone, *rules_of(first), *rules_of(second)]


def test_the_daemon_reads_secrets_by_name_only_and_never_writes_them():
    (secrets,) = [each for each in daemon_rules([]) if "secrets" in each["resources"]]
    assert secrets == rule("", ["secrets"], ["get"])
