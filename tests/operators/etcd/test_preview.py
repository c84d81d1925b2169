"""What diff --until-stable shows of an EtcdCluster is what is done, step by step."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import applyset_id, member
from kubectl_reconcile.core.resources.sync import DeleteLimit, Sync
from kubectl_reconcile.core.ssa.merge import three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import known
from tests.operators.etcd.foreseen import CLAIM, KINDS, MODULES, TO, foreseen
from tests.operators.etcd.world import World


def test_the_kinds_are_known():
    assert set(KINDS) == {*MODULES, *(GroupVersionKind.parse(*each) for each in (
        ("v1", "Pod"), ("v1", "PersistentVolumeClaim"), ("v1", "Service"), ("policy/v1", "PodDisruptionBudget"), ("batch/v1", "Job")))}  # fmt: skip


@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_new_cluster_is_shown_to_its_last_member(size):
    world = World(size)
    shown = foreseen(world)
    world.settle(200)
    assert shown == world.taken
    assert len(shown) == 1 + 3 * (size - 1)


@settings(max_examples=25)
@example(
    size=3, in_memory=False, lead=0, change={"version": "3.5.1", "size": 2}, env="x", later=4, doomed=9, free=set()
)  # one of two is down
@example(
    size=3, in_memory=False, lead=1, change={"size": 4}, env="", later=0, doomed=1, free={0, 1, 2}
)  # the leader, in a scaling
@example(
    size=2, in_memory=True, lead=0, change={"version": "3.6.16", "size": 7}, env="", later=0, doomed=0, free={0, 1, 2}
)  # as many steps as there may be
@example(
    size=1, in_memory=False, lead=0, change={"version": "3.5.1"}, env="", later=0, doomed=9, free=set()
)  # an older patch, while nobody runs
@given(
    st.integers(1, 5),
    st.booleans(),
    st.integers(0, 4),
    st.fixed_dictionaries(
        {}, optional={"size": st.integers(1, 7), "version": st.sampled_from(["3.5.1", "3.6.16", "3.7.1"])}
    ),
    st.sampled_from(["", "x"]),
    st.integers(0, 6),
    st.integers(0, 9),
    st.sets(st.integers(0, 4)),
)
def test_a_change_takes_the_steps_that_were_shown_before(size, in_memory, lead, change, env, later, doomed, free):
    world = World(size, in_memory=in_memory, backup=TO, etcd={"defragmentation": {"schedule": "0 14 * * *"}})
    world.settle(200)
    world.now = "2026-11-20T14:00:00Z"
    world.leader = world.voters[lead % len(world.voters)]["id"]
    world.cr["spec"] |= change
    if env:
        world.cr["spec"]["pod"]["env"] = [{"name": "X", "value": env}]
    for _ in range(later):  # in the middle of it, too
        world.step()
    for slot in world.pods.keys() & {f"db-{at}" for at in free}:  # of a member that is away nothing is known
        world.fill(slot, 4, free=4)
    if {f"db-{doomed}"} <= world.pods.keys() and not in_memory:
        world.doom(f"db-{doomed}")
    world.taken.clear()
    shown = foreseen(world)
    world.settle(200)
    assert shown == world.taken


def silent(facts):
    """What is known where no member has answered in time."""
    pods = {name: {"uid": each["uid"], "error": "no answer"} for name, each in facts["pods"].items()}
    nothing = {"members": [], "membership": "", "quorum": False, "leader": "", "answering": "", "version": ""}
    return {**facts, **nothing, "pods": pods}


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    "change", [{"version": "3.6.1"}, {"size": 5}, {"size": 1}, {"version": "3.6.1", "size": 4}], ids=str
)
def test_members_that_do_not_answer_just_then_are_members_still(change, in_memory):
    world = World(3, in_memory=in_memory)
    world.settle(200)
    world.leader = world.voters[0]["id"]
    world.cr["spec"] |= change
    world.taken.clear()
    shown = foreseen(world, silent(world.facts()))
    world.settle(200)
    assert shown == world.taken


def test_nothing_is_foreseen_from_what_a_ready_pod_did_not_say():
    world = World(3)
    world.settle(200)
    world.cr["spec"]["size"] = 5
    assert foreseen(world, silent(world.facts()), unheard="pod db-0: no answer") == []
    shown = foreseen(world, unheard="pod db-1: no answer")
    assert shown == foreseen(world)[:1] == ["add db-3"]


def test_members_without_pods_whose_data_is_there_are_members_still():
    world = World(3)
    world.settle(200)
    for slot in ("db-0", "db-1", "db-2"):
        world.objects.pop(("Pod", slot))
    world.taken.clear()
    shown = foreseen(world)
    world.settle(200)
    assert shown == world.taken == ["create db-0", "create db-1", "create db-2"]


def test_a_cluster_that_is_taken_out_of_its_repository_shows_the_last_backup_that_comes_first():
    world = World(backup={**TO, "beforeDeletion": True})
    world.settle()
    world.cr["status"]["clusterID"] = "c1"
    sync = Sync(name="shop", namespace="shop", max_deletes=DeleteLimit(10))
    marked = member(world.cr, set_id=applyset_id(sync.ref), source="db.yaml")
    wire = three_way(desired=marked, live=None, schema=UNKNOWN).owned.to_wire()
    entry = {"manager": "kubectl-reconcile", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": wire}
    held = {
        **marked,
        "metadata": {**marked["metadata"], "managedFields": [{**entry, "apiVersion": marked["apiVersion"]}]},
    }
    other = Located.of({**CLAIM, "metadata": {"name": "other", "namespace": "shop"}}, "other.yaml", 1)
    inputs = known(
        sync=sync,
        revision=Revision("c0ffee", world.now, {"other.yaml": "blob"}),
        desired=[other],
        live=Objects([held, CLAIM, *world.objects.values()]),
        kinds=KINDS,
        modules=MODULES,
        now=world.now,
        observed={ObjectRef.of(world.cr): Observation(world.facts())},
    )
    made = {each.ref.name: each for each in build(inputs).changes if each.op is Op.CREATE and each.is_child}
    assert list(made) == ["db-last", "db-last-once"]  # the EtcdBackup, and its Job
    assert {each.gate.waits for each in made.values()} == {f"the deletion of {ObjectRef.of(world.cr)}"}
