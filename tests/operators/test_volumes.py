"""Volumes of operators: their sizes and their claims."""

import pytest

from kubectl_reconcile.module_api import Context
from kubectl_reconcile_operators.etcd import EtcdCluster
from kubectl_reconcile_operators.etcd_backup import EtcdBackup
from kubectl_reconcile_operators.kafka import Kafka
from kubectl_reconcile_operators.postgres import MyDatabase
from kubectl_reconcile_operators.volumes import VolumeWish, bytes_of, volume_claim, would_shrink

CR = {"apiVersion": "db.example.com/v1", "kind": "Store", "metadata": {"name": "a", "namespace": "n", "uid": "u"}}
CTX = Context("", "store", CR)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1Gi", 1 << 30), ("1.5k", 1500), ("7", 7), ("2Ti", 2 << 40), ("x", None), ("1 Gi", None), ("9" * 21, None)],
)
def test_quantities_are_bytes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    ("size", "wanted", "shrinks"), [("2Gi", "1Gi", True), ("1Gi", "1024Mi", False), ("", "1Gi", False), ("1Gi", "?", True)]
)  # fmt: skip
def test_a_volume_would_shrink_if_less_is_wanted(size, wanted, shrinks):
    assert would_shrink(size, wanted) is shrinks


def test_a_claim_grows_to_what_is_wanted_and_stays_where_less_is():
    grown, kept = (volume_claim(CTX, "a-0", VolumeWish("2Gi"), size, {}) for size in ("1Gi", "3Gi"))
    assert grown["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    assert kept["spec"]["resources"]["requests"]["storage"] == "3Gi"


def test_a_claim_names_its_class_where_one_is_wanted_and_notes_what_is_known():
    made = volume_claim(CTX, "a-0", VolumeWish("1Gi", "fast"), "", {"known": "1", "unknown": ""})
    assert made["spec"]["storageClassName"] == "fast"
    assert made["metadata"] == {"name": "a-0", "labels": CTX.labels(), "annotations": {"known": "1"}}


@pytest.mark.parametrize("module", [EtcdBackup, EtcdCluster, Kafka, MyDatabase], ids=lambda each: each.name)
def test_whoever_makes_volumes_keeps_them_unless_they_are_to_go(module):
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}}
    pod = {**claim, "kind": "Pod"}
    for spec, stays in (
        ({}, True),
        ({"deletionPolicy": "Retain"}, True),
        ({"deletionPolicy": "Delete"}, False),
        (3, True),
    ):
        assert module.holds({"spec": spec}, claim) is stays
        assert not module.holds({"spec": spec}, pod)
    assert any(each.labels == {"reconcile.dev/module": module.name} for each in module.reads)
