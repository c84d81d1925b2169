"""What the engine does for every module, on the real thing: drift, strangers, wrong input, slow machines, rights."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.core.module.rbac import daemon_rules, rules_at_home, rules_of
from kubectl_reconcile.engine.modules.registry import installed_modules
from tests.e2e.domains import SPECS, at_rest, children, condition, cr, essence, ready, shown

# --- children ---

DRIFTS = {
    "a Memcached's replicas": ("Memcached", "Deployment", "it", {"spec": {"replicas": 7}}),
    "a Memcached's Deployment": ("Memcached", "Deployment", "it", None),
    "a Memcached's Service": ("Memcached", "Service", "it", None),
    "a Memcached's selector": ("Memcached", "Service", "it", {"spec": {"selector": {"component": "x"}}}),
    "a web server's label": ("WebServer", "Pod", "it-pod-0", {"metadata": {"labels": {"app": "other"}}}),
    "a tier's replicas": ("ThreeTierApp", "Deployment", "it-backend", {"spec": {"replicas": 0}}),
    "a tier's Service": ("ThreeTierApp", "Service", "it-frontend", None),
    "a tier's database": ("ThreeTierApp", "StatefulSet", "it-database", None),
    "a nested CR's spec": ("ThreeTierApp", "Memcached", "it-cache", {"spec": {"size": 3}}),
    "a nested CR": ("ThreeTierApp", "Memcached", "it-cache", None),
    "a nested CR's child": ("ThreeTierApp", "Deployment", "it-cache", None),
}


@pytest.mark.parametrize(("kind", "child", "name", "patch"), DRIFTS.values(), ids=DRIFTS)
@pytest.mark.usefixtures("daemon")
def test_a_child_that_is_changed_or_deleted_comes_back(kind, child, name, patch, cluster, eventually):
    cluster.apply(cr(kind, "it", **SPECS[kind]))
    eventually(lambda: at_rest(cluster, kind), "at rest", timeout_s=180)
    before = cluster.get(child, name)

    def stated(live):
        told = essence(live)
        return told["metadata"], {key: told["spec"].get(key) for key in ("replicas", "size", "selector", "ports")}

    if patch is None:
        cluster.delete(child, name)
    else:
        assert stated(cluster.edit(child, name, patch)) != stated(before)

    def is_back():
        live = children(cluster).get((child, name))
        return live and (patch or live["metadata"]["uid"] != before["metadata"]["uid"]) and live

    back = eventually(
        lambda: (live := is_back()) and _plain(stated(live)) == _plain(stated(before)) and live, "it is back"
    )
    assert back["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"] or child == "Deployment"
    eventually(lambda: at_rest(cluster, kind), "at rest again", timeout_s=180)


def _plain(told):
    """What is stated, less the addresses that the server gives out."""
    metadata, spec = told
    ports = [{key: value for key, value in port.items() if key != "nodePort"} for port in spec["ports"] or ()]
    return metadata, spec | {"ports": ports}


@pytest.mark.usefixtures("daemon")
def test_crs_of_one_namespace_keep_to_their_own_children(cluster, eventually):
    names = ("one", "two", "three")
    for name in names:
        cluster.apply(cr("Memcached", name, size=1))
    eventually(lambda: all(at_rest(cluster, "Memcached", name) for name in names), "all are at rest")
    before = {key: live["metadata"]["generation"] for key, live in children(cluster).items() if key[0] == "Deployment"}
    cluster.apply(cr("Memcached", "two", size=2))
    eventually(
        lambda: at_rest(cluster, "Memcached", "two") and len(_nodes(cluster, "two")) == 2, "the second has grown"
    )
    after = {key: live["metadata"]["generation"] for key, live in children(cluster).items() if key[0] == "Deployment"}
    assert {key for key in before if before[key] != after[key]} == {("Deployment", "two")}
    every = [node for name in names for node in _nodes(cluster, name)]
    assert len(every) == len(set(every)) == 4
    cluster.delete("Memcached", "one")
    eventually(lambda: ("Deployment", "one") not in children(cluster), "the first is gone")
    assert {key for key in before if key not in children(cluster)} == {("Deployment", "one")}


def _nodes(cluster, name):
    return cluster.get("Memcached", name)["status"]["nodes"]


@pytest.mark.usefixtures("daemon")
def test_a_child_that_another_cr_controls_is_left_to_it(cluster, eventually):
    cluster.apply(cr("ThreeTierApp", "shop", **SPECS["ThreeTierApp"]))
    eventually(lambda: at_rest(cluster, "ThreeTierApp", "shop"), "at rest", timeout_s=180)
    before = cluster.get("Service", "shop-backend")
    cluster.apply(cr("Memcached", "shop-backend", size=1))
    eventually(
        lambda: (
            "ThreeTierApp shop" in condition(cluster.get("Memcached", "shop-backend"), "Stalled").get("message", "")
        ),
        "it names who controls it",
    )
    after = cluster.get("Service", "shop-backend")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


# --- the status ---


@pytest.mark.usefixtures("daemon")
def test_a_condition_keeps_its_time_until_it_turns(cluster, eventually):
    cluster.apply(cr("Memcached", "it", size=1))
    eventually(lambda: at_rest(cluster, "Memcached"), "at rest")
    before = condition(cluster.get("Memcached", "it"), "Available")
    cluster.apply(cr("Memcached", "it", size=2))
    eventually(lambda: len(_nodes(cluster, "it")) == 2 and at_rest(cluster, "Memcached"), "it has grown")
    after = condition(cluster.get("Memcached", "it"), "Available")
    assert after["status"] == before["status"] == "True"
    assert after["message"] != before["message"]
    assert after["lastTransitionTime"] == before["lastTransitionTime"]
    assert after["observedGeneration"] == 2


@pytest.mark.usefixtures("daemon")
def test_a_spec_that_makes_no_sense_is_named_with_its_field_and_line(cluster, plugin, written, eventually):
    cluster.apply(cr("Memcached", "it", size=1))
    eventually(lambda: at_rest(cluster, "Memcached"), "at rest")
    folder = written(cr("Memcached", "it", size=2, image=" "))
    answer = plugin("diff", "-f", str(folder))
    assert answer.status == 6
    assert "cr.json:1: Memcached.cache.example.com" in answer.err
    assert "spec.image: Invalid value" in answer.err
    assert "replicas" not in answer.out, "no child is shown as if it were changed"
    assert plugin("sync", "-f", str(folder), "--name", "shop", "--yes").status == 6
    assert cluster.get("Deployment", "it")["spec"]["replicas"] == 1


# --- external systems ---


def test_a_look_that_takes_too_long_is_given_up_and_told(factory, cluster, eventually):
    factory.ask("/faults", {"next": ["slow"] * 2})
    cluster.apply(cr("Candy", "it", flavor="white", sweetness=5))

    def told():
        found = condition(cluster.get("Candy", "it"), "MachineReachable")
        return found["status"] == "False" and found["message"]

    assert eventually(told, "it says so").endswith("doesn't answer within 5 s")
    eventually(lambda: ready(cluster), "it is looked at again", timeout_s=180)


def test_what_was_approved_is_not_done_where_its_reason_is_gone(idle_factory, cluster, plugin, written, tmp_path):
    """A plan is carried out as it was made or not at all, and what lies on the belt is part of it."""
    machine = f"{cluster.namespace}.it"
    folder = written(cr("Candy", "it", flavor="white", sweetness=5))
    assert plugin("sync", "-f", str(folder), "--name", "shop", "--yes").status == 0
    assert plugin("sync", "-f", str(folder), "--name", "shop", "--yes").status == 0
    made = [("sugar", 5), ("make", "bar-1")]
    assert idle_factory.did(machine) == made
    written(cr("Candy", "it", {"reconcile.dev/approve-actions": "dispose"}, flavor="white", sweetness=9))
    plan = tmp_path / "plan.json"
    plan.write_text(plugin("diff", "-f", str(folder), "--name", "shop", "-o", "json").out)
    assert shown(json.loads(plan.read_text()))["dispose-bar-1"] == "run"

    idle_factory.ask(f"/machines/{machine}/shipments", {"bar": "bar-1"}, "POST")
    answer = plugin("sync", "-f", str(folder), "--name", "shop", "--plan", str(plan), "--yes")
    assert answer.status == 6
    assert "the plan is no longer valid, nothing was written" in answer.err
    assert idle_factory.did(machine) == [*made, ("ship", "bar-1")]


# --- rights ---


def needed(modules):
    """What a daemon needs that acts for these modules itself."""
    return [*daemon_rules(modules), *rules_at_home(modules), *(rule for each in modules for rule in rules_of(each))]


@pytest.mark.parametrize("kind", SPECS)
def test_a_module_needs_no_more_rights_than_it_declares(
    kind, sandbox, cluster, kubectl, new_daemon, idle_factory, eventually
):
    module = next(each for gvk, each in installed_modules().items() if gvk.kind == kind)
    below = [each for each in installed_modules().values() if each.gvk in module.owns]
    name, user = f"only-{cluster.namespace}", f"user-{cluster.namespace}"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    kubectl.apply(role | {"rules": json.loads(json.dumps(needed([module, *below])))})
    kubectl.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        }
    )
    daemon = new_daemon(sandbox.kubeconfig_for(user), cluster.namespace).start()
    cluster.apply(cr(kind, "it", **SPECS[kind]))
    eventually(lambda: at_rest(cluster, kind), "at rest", timeout_s=180)
    cluster.delete(kind, "it")
    eventually(lambda: cluster.get(kind, "it") is None and not children(cluster), "all is gone", timeout_s=180)
    denied = [line for line in daemon.log.splitlines() if "module pass failed" in line or "not applied" in line]
    assert denied == []
    assert bool(idle_factory.ask("/log")) is (kind == "Candy")
