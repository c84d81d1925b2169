"""Whatever a custom resource says that its module refuses: it can be deleted, and volumes stay unless it asks for their end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.module_api import Context, Owned, key_of
from kubectl_reconcile.module_testing import outcome_of
from kubectl_reconcile.modules.candy import Candy
from kubectl_reconcile.modules.threetierapp import ThreeTierApp
from kubectl_reconcile_operators.etcd import EtcdCluster
from kubectl_reconcile_operators.etcd_backup import EtcdBackup
from kubectl_reconcile_operators.kafka import Kafka
from kubectl_reconcile_operators.kafka.rebalance.rebalance import KafkaRebalance
from kubectl_reconcile_operators.postgres import MyDatabase

NOW = "2026-11-20T12:00:00Z"
FINALIZING = (Candy, ThreeTierApp, EtcdCluster, EtcdBackup, Kafka, KafkaRebalance, MyDatabase)
REFUSED = {
    "nothing": {},
    "of other types": {"size": "three", "version": 3, "replicas": "x", "storage": {"size": "much"}, "brokers": []},
    "a version that was never known": {"size": 3, "version": "0.0.1", "storage": {"size": "1Gi"}},
}


def going(one, **spec):
    metadata = {"name": "db", "namespace": "shop", "uid": "u-1", "generation": 1, "deletionTimestamp": NOW}
    return {"apiVersion": one.gvk.api_version, "kind": one.gvk.kind, "metadata": metadata, "spec": spec}


def ended(one, cr, *owned):
    facts = {"exists": False, "bar": None, "bin": []}
    return outcome_of(one, cr, Owned(owned), facts, Context(NOW, one.name, cr))


def claim(one, cr):
    labels = Context(NOW, one.name, cr).labels()
    metadata = {"name": "db-0-data", "namespace": "shop", "uid": "u-2", "labels": labels}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("spec", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("one", FINALIZING, ids=lambda one: one.name)
def test_a_refused_one_that_has_nothing_goes_at_once(one, spec):
    assert ended(one, going(one, **spec)).finalized


@pytest.mark.parametrize("one", [EtcdCluster, Kafka, MyDatabase], ids=lambda one: one.name)
@pytest.mark.parametrize("spec", REFUSED.values(), ids=REFUSED)
def test_its_volumes_stay(one, spec):
    cr = going(one, **spec)
    held = claim(one, cr)
    assert one.holds(cr, held)  # and so it is freed of its owner before that goes
    assert ended(one, cr, held).dropped == ()


@pytest.mark.parametrize("one", [EtcdCluster, Kafka, MyDatabase], ids=lambda one: one.name)
def test_they_go_where_that_is_asked_for(one):
    cr = going(one, version="0.0.1", deletionPolicy="Delete")
    assert ended(one, cr, held := claim(one, cr)).dropped == (key_of(held),)


NONSENSE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.sampled_from(["", "x", "1Gi", "61 * * * *"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["size", "name", "auto", "claimName", "volumeClaimSpec", "persistentVolumeClaim"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
FIELDS = ("size", "version", "storage", "pod", "backup", "TLS", "config", "topics", "users", "listeners", "database", "schedule", "clusterRef", "deletionPolicy")  # fmt: skip


@settings(max_examples=150)
@given(st.sampled_from(FINALIZING), st.dictionaries(st.sampled_from(FIELDS), NONSENSE, max_size=5))
def test_no_spec_keeps_anybody_from_deleting(one, spec):
    assert ended(one, going(one, **spec)).finalized
