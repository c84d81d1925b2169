"""What diff --until-stable shows of a cluster that begins with a backup, and of its restore, is what is done, step by step."""

from pathlib import Path

import pytest

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.planning.kinds import kinds_of_crd
from kubectl_reconcile_operators.etcd_restore import EtcdRestore
from tests.operators.etcd_restore.foreseen import KINDS, foreseen
from tests.operators.etcd_restore.world import RestoreWorld

ROOT = Path(__file__).parents[3]
for file in sorted((ROOT / "crds").glob("etcd*.yaml")):
    for located in parse(file.read_bytes(), "").manifests:
        KINDS |= dict(kinds_of_crd(located.manifest))


def test_the_kinds_are_known():
    assert GroupVersionKind.parse("batch/v1", "Job") in KINDS
    assert EtcdRestore.gvk in KINDS


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_way_to_a_restored_cluster_is_shown_to_its_last_member(size):
    world = RestoreWorld(size)
    shown = foreseen(world)
    world.settle_both()
    assert shown == world.taken
    assert len(shown) == 2 + 3 * (size - 1)


def test_of_what_is_in_the_way_nothing_is_shown_but_the_volume():
    world = RestoreWorld()
    world.backup["status"]["history"] = []
    assert foreseen(world) == []
