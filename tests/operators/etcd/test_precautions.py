"""Snapshots before an upgrade and before the cluster's end: when they are taken, what waits for them, and the way out where they fail."""

import copy

import pytest

from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.module_api import SpecError
from kubectl_reconcile_operators.etcd import EtcdCluster
from kubectl_reconcile_operators.etcd.precautions import before_deletion, before_upgrade
from kubectl_reconcile_operators.etcd.spec import EtcdVersion, cluster_spec
from kubectl_reconcile_operators.etcd_backup.spec import backup_spec
from tests.operators.etcd.foreseen import TO, foreseen
from tests.operators.etcd.world import World, condition, formed, joins, tag

BACKUP = "db-before-3-6-16"
ROLLED = ["delete db-1", "create db-1", "delete db-2", "create db-2", "move-leader db-1", "delete db-0", "create db-0"]


def upgraded(**backup):
    world = formed(backup={**TO, **backup})
    world.cr["spec"]["version"] = "3.6.16"
    return world


def versions(world):
    return {tag(pod) for pod in world.pods.values()}


# --- before an upgrade ----------------------------------------------------------------------------


def test_an_upgrade_begins_with_a_snapshot():
    world = upgraded(image="ours:1", timeoutInSecond=60)
    world.cr["spec"]["pod"]["nodeSelector"] = {"disk": "fast"}  # rolled out together with the version
    shown = foreseen(world)
    outcome = world.settle()
    assert world.taken == [f"create {BACKUP}", *ROLLED] == shown
    assert condition(outcome, "Ready").status == "True"
    spec = world.objects["EtcdBackup", BACKUP]["spec"]
    assert spec["clusterRef"] == {"name": "db"}
    assert (spec["image"], spec["pod"]) == ("ours:1", {"nodeSelector": {"disk": "fast"}})
    assert backup_spec(world.objects["EtcdBackup", BACKUP]).is_once


def test_a_snapshot_goes_to_a_bucket_where_one_is_named_and_to_one_place_alone():
    s3 = {"bucket": "backups", "credentialsSecret": "s3-key"}
    world = formed(backup={"s3": s3})
    world.cr["spec"]["version"] = "3.6.16"
    world.settle()
    assert world.taken == [f"create {BACKUP}", *ROLLED]
    spec = backup_spec(world.objects["EtcdBackup", BACKUP])
    assert (spec.storage.s3.bucket, spec.storage.s3.credentials_secret) == ("backups", "s3-key")
    for backup, field in (({**TO, "s3": s3}, ""), ({}, ""), ({"s3": {**s3, "bucket": "A"}}, ".s3.bucket")):
        with pytest.raises(SpecError) as error:
            cluster_spec({"spec": {"size": 3, "version": "3.6.16", "backup": backup}})
        assert error.value.field == f".spec.backup{field}"


def test_nobody_runs_the_newer_version_before_the_snapshot_is_there():
    world = upgraded()
    world.backups_say = "Job db-before-3-6-16-once is running"
    outcome = world.settle()
    found = condition(outcome, "Upgrading")
    assert (found.status, condition(outcome, "Ready").reason) == ("True", "BackingUp")
    assert (
        "EtcdBackup db-before-3-6-16, a snapshot before 3.6.16: Job db-before-3-6-16-once is running" in found.message
    )
    world.objects.pop(("Pod", "db-1"))
    world.run()
    world.cr["spec"]["size"] = 4
    world.settle()
    assert world.taken == [f"create {BACKUP}", "create db-1", *joins("db-3")]
    assert versions(world) == {"3.5.35"}
    world.backups_say = ""
    world.run()
    world.settle()
    assert versions(world) == {"3.6.16"}


def test_a_snapshot_that_fails_is_told_with_the_way_out_and_made_anew_once_it_is_deleted():
    world = upgraded()
    world.backups_fail = "the volume is full (hint: make another)"
    outcome = world.settle()
    found = condition(outcome, "Degraded")
    assert (found.status, found.reason) == ("True", "BackupFailed")
    assert "the volume is full (hint: correct that, and delete the EtcdBackup" in found.message
    assert "set .spec.backup.beforeUpgrade to false" in found.message
    world.backups_fail = ""
    world.objects.pop(("EtcdBackup", BACKUP))
    world.settle()
    assert world.taken == [f"create {BACKUP}", f"create {BACKUP}", *ROLLED]


WITHOUT = {
    "nowhere to": {},
    "turned off": {"backup": {**TO, "beforeUpgrade": False}},
}


@pytest.mark.parametrize("spec", WITHOUT.values(), ids=WITHOUT)
def test_without_a_place_or_if_told_so_an_upgrade_begins_at_once(spec):
    world = formed(**spec)
    world.cr["spec"]["version"] = "3.6.16"
    world.settle()
    assert world.taken == ROLLED


def test_a_cluster_that_is_new_and_what_is_no_newer_version_take_none():
    world = World(3, backup=TO)
    world.settle()
    world.cr["spec"]["version"] = "3.5.1"
    world.cr["spec"]["pod"]["env"] = [{"name": "X", "value": "1"}]
    world.settle()
    assert not [step for step in world.taken if "before" in step]
    assert versions(world) == {"3.5.1"}


def test_an_upgrade_that_goes_back_lets_go_of_its_snapshot_and_takes_another_the_next_time():
    world = upgraded()
    while "create db-1" not in world.taken:
        world.step()
    world.cr["spec"]["version"] = "3.5.35"
    world.settle()
    assert versions(world) == {"3.5.35"}
    assert ("EtcdBackup", BACKUP) not in world.objects
    world.cr["spec"]["version"] = "3.6.16"
    world.settle()
    assert world.taken.count(f"create {BACKUP}") == 2
    assert versions(world) == {"3.6.16"}


def test_an_upgrade_that_is_refused_takes_none():
    world = formed(backup=TO)
    world.cr["spec"]["version"] = "3.7.1"
    world.settle()
    assert world.taken == []


NAMES = {"a short one": "db", "the longest": "a" * 50, "with a dash where it is cut": "a" * 16 + "-" + "b" * 33}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_fit_an_etcdbackup_and_are_a_clusters_own(name):
    ctx = Context("", "etcdcluster", {"metadata": {"name": name}})
    other = Context("", "etcdcluster", {"metadata": {"name": name[:-1] + "c"}})
    for named in (lambda of: before_upgrade(of, EtcdVersion(3, 6, 16)), before_deletion):
        assert len(named(ctx)) <= 48
        assert named(ctx) != named(other)


# --- before the end -------------------------------------------------------------------------------


class Going:
    """A cluster that is deleted, pass by pass."""

    def __init__(self, **spec):
        self.world = formed(backup={**TO, "beforeDeletion": True}, **spec)
        self.world.cr["metadata"]["deletionTimestamp"] = self.world.now
        self.backup = None

    def step(self):
        world, live = self.world, list(self.world.objects.values())
        ctx = Context(world.now, "etcdcluster", world.cr)
        owned = Owned(copy.deepcopy([*live, *([self.backup] if self.backup else [])]))
        outcome = outcome_of(EtcdCluster, copy.deepcopy(world.cr), owned, {}, ctx)
        world.cr["status"] = {**outcome.status, "conditions": world.cr["status"]["conditions"]}
        made = next((each for each in outcome.children if each["kind"] == "EtcdBackup"), None)
        self.backup = {**made, "status": (self.backup or {}).get("status", {})} if made else None
        return outcome

    def says(self, *, succeeded, **condition):
        ready = {"type": "Ready", "status": str(succeeded), **condition}
        failed = {"type": "Degraded", "status": str(not succeeded)}
        self.backup["status"] = {
            "succeeded": succeeded, "file": "db-last/x.db", "etcdRevision": 42, "conditions": [ready, failed],
        }  # fmt: skip


def test_a_last_backup_is_waited_for_before_anything_ends():
    going = Going()
    for _ in range(3):
        outcome = going.step()
        assert outcome.keep_children
        assert not outcome.finalized
        assert condition(outcome, "Ready").reason == "BackingUp"
    assert going.backup["metadata"]["name"] == "db-last"
    going.says(succeeded=True, message="revision 42 is in db-last/x.db")
    outcome = going.step()
    assert outcome.keep_children
    assert outcome.status["lastBackup"] == {"name": "db-last", "file": "db-last/x.db", "etcdRevision": 42}
    outcome = going.step()
    assert not outcome.keep_children
    assert not outcome.children
    assert condition(outcome, "Ready").reason == "Deleting"


def test_a_last_backup_that_fails_keeps_the_cluster_until_somebody_does_without():
    going = Going()
    going.step()
    going.says(succeeded=False, message="the volume is full")
    outcome = going.step()
    assert outcome.keep_children
    found = condition(outcome, "Degraded")
    assert (found.status, found.reason) == ("True", "BackupFailed")
    assert "the volume is full" in found.message
    assert 'kubectl patch etcd db --type=merge -p \'{"spec":{"backup":{"beforeDeletion":false}}}\'' in found.message
    going.world.cr["spec"]["backup"]["beforeDeletion"] = False
    assert not going.step().keep_children


def test_a_cluster_that_never_was_has_no_last_backup():
    going = Going()
    going.world.cr["status"]["clusterID"] = ""
    assert not going.step().keep_children
