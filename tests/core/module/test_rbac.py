"""What a module and the daemon may do: no more than their kinds need."""

import pytest

from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.inputs import Reads
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.module.rbac import LOOK, MANAGE, daemon_rules, plural, rules_at_home, rules_here, rules_of

PLURALS = {
    "Pod": "pods",
    "Ingress": "ingresses",
    "Box": "boxes",
    "Batch": "batches",
    "Bush": "bushes",
    "NetworkPolicy": "networkpolicies",
    "Gateway": "gateways",
    "Relay": "relays",
    "Survey": "surveys",
    "Buoy": "buoys",
    "Endpoints": "endpoints",
    "StatefulSet": "statefulsets",
    "teapots": "teapots",
}


@pytest.mark.parametrize(("kind", "resource"), PLURALS.items(), ids=PLURALS)
def test_a_kind_is_served_as(kind, resource):
    assert plural(kind) == resource


def a_module(name="cache", owns=(), **more):
    return module(api="example.com/v1", kind="Cache", name=name, owns=owns, **more)(lambda *_: Outcome())


def rule(group, resources, verbs):
    return {"apiGroups": [group], "resources": resources, "verbs": [*verbs]}


def test_a_module_manages_its_kind_and_its_children_and_looks_at_what_it_reads():
    reads = [Reads("v1", "ConfigMap", of=lambda _: None)]
    found = rules_of(a_module(owns=["apps/v1/Deployment", "apps/v1/StatefulSet", "v1/Service"], reads=reads))
    assert found == [
        rule("", ["configmaps"], LOOK),
        rule("", ["services"], MANAGE),
        rule("apps", ["deployments", "statefulsets"], MANAGE),
        rule("example.com", ["caches"], (*LOOK, "patch")),
        rule("example.com", ["caches/finalizers"], ["update"]),
        rule("example.com", ["caches/status"], ["patch"]),
    ]


def test_a_module_that_reads_what_it_owns_manages_it():
    found = rules_of(a_module(owns=["v1/Service"], reads=[Reads("v1", "Service", of=lambda _: None)]))
    assert rule("", ["services"], MANAGE) in found
    assert rule("", ["services"], LOOK) not in found


def test_the_daemon_sees_the_crs_of_its_modules_and_leaves_the_rest_to_their_accounts():
    alone, first, second = daemon_rules([]), a_module("a", owns=["v1/Pod"]), a_module("b", owns=["v1/Service"])
    assert rule("reconcile.dev", ["syncs/status"], ["patch"]) in alone
    assert daemon_rules([second, first]) == [*alone, rule("example.com", ["caches"], LOOK)]


def test_the_daemon_acts_as_accounts_of_one_name_everywhere_and_as_those_of_its_modules_at_home():
    acting = {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}
    assert {**acting, "resourceNames": ["kubectl-reconcile"]} in daemon_rules([])
    accounts = ["kubectl-reconcile-module-a", "kubectl-reconcile-module-b"]
    assert {**acting, "resourceNames": accounts} in rules_at_home([a_module("b"), a_module("a")])
    assert [each["resources"] for each in rules_at_home([])] == [["leases"]]


def everything(modules):
    return [*daemon_rules(modules), *rules_at_home(modules), *(rule for each in modules for rule in rules_of(each))]


def test_nobody_is_given_all_secrets_nor_other_people_s_names():
    greedy = a_module(owns=["v1/Secret"], reads=[Reads("v1", "Secret", of=lambda _: None)])
    rules = everything([greedy])
    assert not [each for each in rules if {"secrets", "users", "groups", "*"} & {*each["resources"], *each["verbs"]}]
    assert all(each.get("resourceNames") for each in rules if "impersonate" in each["verbs"])


def test_what_a_module_reads_of_whole_namespaces_it_may_read_there_alone():
    reader = a_module(reads=[Reads("v1", kind, whole_namespace=True) for kind in ("Pod", "Service")])
    assert not any({"pods", "services"} & {*each["resources"]} for each in rules_of(reader))
    assert rules_here(reader) == [rule("", ["pods", "services"], LOOK)]
    assert rules_here(a_module(owns=["v1/Service"])) == []
