"""What diff --until-stable shows of a MyDatabase is what is done, step by step."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile_operators.postgres import MyDatabase
from tests.operators.postgres.foreseen import foreseen, is_part
from tests.operators.postgres.world import World

USERS = [{"name": "shop"}, {"name": "my_reader", "createDatabase": True}]
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "parameters": st.dictionaries(
            st.sampled_from(["work_mem", "max_connections", "jit"]), st.sampled_from(["30", "300"])
        ),
        "users": st.sampled_from([[], USERS[:1], USERS]),
        "databases": st.sampled_from([[], [{"name": "a"}], [{"name": "a"}, {"name": "b"}]]),
        "image": st.sampled_from(["", "postgres:17.6"]),
        "hba": st.sampled_from([[], [{"method": "reject", "users": ["shop"]}]]),
        "tls": st.sampled_from(
            [{"secretName": "certificate"}, {"secretName": "certificate", "mode": "Require"}, {"secretName": "none"}]
        ),
        "replicas": st.integers(1, 4),
    },
)


def test_a_new_database_is_shown_to_its_end():
    world = World(users=USERS, databases=[{"name": "orders", "owner": "shop"}], parameters={"work_mem": "8MB"})
    shown = foreseen(world)
    world.settle(200)
    assert shown == world.taken
    assert len(shown) == 7


def test_pods_as_they_are_on_a_real_node_are_previewed():
    world = World(replicas=2)
    world.settle()
    for pod in world.pods.values():
        prepared = {"exitCode": 0, "finishedAt": "2026-11-20T12:00:03Z"}
        pod["metadata"]["creationTimestamp"] = world.now
        pod["status"]["initContainerStatuses"] = [{"name": "prepare", "state": {"terminated": prepared}}]
    world.pods["db-1"]["metadata"]["deletionTimestamp"] = "2026-11-20T12:02:00Z"
    facts = MyDatabase.foresee(world.cr, Owned([*world.objects.values()]), world.facts())
    assert (facts["writable"], [*facts["pods"]]) == ("db-0", ["db-0"])  # the other one goes


def test_a_backup_is_shown_before_it_is_begun():
    world = World(backup={"immediate": True, "target": {"volumeClaimSpec": {"accessModes": ["ReadWriteOnce"]}}})
    assert foreseen(world)[-1] == "create db-backup-once"


def test_the_way_from_a_backup_to_a_database_is_shown_to_its_end():
    world = World(bootstrap={"fromBackup": {"database": "shop"}}, databases=[{"name": "orders"}])
    metadata = {"name": "shop-backups", "namespace": "shop"}
    world.others = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}]
    shown = foreseen(world)
    assert shown[1:3] == ["create db-restore", "create db-0"]
    assert len(shown) == 4


@settings(max_examples=30, deadline=None)
@example(before={}, change={"users": USERS[:1], "image": "postgres:17.6"}, later=3, to="")
@example(before={}, change={"parameters": {"work_mem": "30", "max_connections": "30"}, "replicas": 2}, later=4, to="")
@example(before={}, change={"parameters": {"max_connections": "1"}}, later=0, to="")
@example(before={"replicas": 3}, change={"image": "postgres:17.6"}, later=1, to="")
@example(before={"replicas": 2}, change={}, later=2, to="db-1")
@example(before={"parameters": {"max_connections": "30"}}, change={"parameters": {}, "replicas": 2}, later=1, to="db-1")
@given(CHANGES, CHANGES, st.integers(0, 9), st.sampled_from(["", "db-1"]))
def test_a_change_takes_the_steps_that_were_shown_before(before, change, later, to):
    world = World(**before)
    world.tells_end = True
    world.secrets["certificate"] = "tls.crt"
    world.settle(200)
    world.cr["spec"] |= change
    world.cr["metadata"]["annotations"] = {"example.com/switchover-to": to}
    for _ in range(later):  # in the middle of it, too
        world.step()
    world.taken.clear()
    is_known = bool(world.facts()["writable"])
    shown = foreseen(world)
    world.settle(200)
    if is_known:
        assert shown == world.taken
    else:  # what a server holds that doesn't answer may be done already
        assert is_part(world.taken, shown)
