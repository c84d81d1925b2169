"""Samples that operators are usually introduced with: each applies as it stands."""

from __future__ import annotations

import json

import pytest

from tests.e2e.domains import at_rest, condition, cr

SAMPLES = {
    "Memcached": {"size": 3},
    "WebServer": {"replicas": 3},
    "Candy": {"flavor": "sweeeeeeet"},
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_applies_as_it_stands(kind, factory, cluster, plugin, written, eventually):
    folder = written(cr(kind, "sample", **SAMPLES[kind]))
    assert plugin("diff", "-f", str(folder)).status == 1
    assert plugin("sync", "-f", str(folder), "--name", "samples", "--yes").status == 0
    eventually(lambda: at_rest(cluster, kind, "sample"), "at rest", timeout_s=60)


def test_a_bar_that_nobody_says_the_sweetness_of_is_as_sweet_as_its_machine_makes_it(factory, cluster, eventually):
    cluster.apply(cr("Candy", "sample", flavor="sweeeeeeet"))
    eventually(lambda: condition(cluster.get("Candy", "sample"), "Ready").get("status") == "True", "the bar is made")
    assert cluster.get("Candy", "sample")["status"]["actualSweetness"] == 10
    assert [line[0] for line in factory.did(f"{cluster.namespace}.sample")] == ["make"]


def test_an_etcd_that_can_not_run_any_more_says_which_can_and_begins_once_it_asks_for_one(
    daemon, cluster, kubectl, written, eventually
):
    place, kind = ("-n", cluster.namespace), "etcdclusters.etcd.database.coreos.com"

    def degraded():
        return condition(json.loads(kubectl("get", kind, "example", "-o", "json", *place)), "Degraded")

    def ask_for(version):
        kubectl("patch", kind, "example", "--type=merge", "-p", json.dumps({"spec": {"version": version}}), *place)

    sample = {
        "apiVersion": "etcd.database.coreos.com/v1beta2",
        "kind": "EtcdCluster",
        "metadata": {"name": "example"},
        "spec": {"size": 3, "version": "3.2.13"},
    }
    kubectl("apply", "-f", str(written(sample)), *place)
    eventually(lambda: degraded().get("reason") == "InvalidSpec", "it is told")
    assert "must be 3.5.0 or newer, not 3.2.13" in degraded()["message"]
    assert cluster.names("Pod") == set()
    ask_for("3.6.16")
    eventually(lambda: len(cluster.names("Pod")) == 1, "its first member is there")
    ask_for("3.2.13")
    eventually(lambda: degraded().get("reason") == "InvalidSpec", "it is told")
    kubectl("delete", kind, "example", "--timeout=60s", *place)
