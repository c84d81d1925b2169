"""What an EtcdRestore and the EtcdCluster that begins with it do, pass by pass; what is in the way; what is said of what went wrong."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.module_api import SpecError
from kubectl_reconcile.module_testing import asked
from kubectl_reconcile_operators.etcd.spec import cluster_spec
from kubectl_reconcile_operators.etcd_restore import children
from kubectl_reconcile_operators.etcd_restore.spec import restore_spec
from tests.operators.etcd.world import World
from tests.operators.etcd_restore.world import FILE, LINE, RestoreWorld, a_backup, a_restore, condition

GROWN = ["add db-1", "create db-1", "promote db-1", "add db-2", "create db-2", "promote db-2"]


def test_a_cluster_begins_with_its_backup_and_grows():
    world = RestoreWorld()
    outcome = world.settle_both()
    assert world.taken == ["create again-restore", "create db-0", *GROWN]
    status = outcome.status
    assert (status["phase"], status["revision"], status["file"]) == ("Succeeded", 42, f"nightly/{FILE}")
    assert status["members"] == 3
    assert status["seed"]["memberID"] == world.cluster_seed()
    assert condition(outcome).status == "True"
    assert "seed" not in world.cr["status"]


def test_nothing_but_a_volume_is_there_until_the_data_is():
    world = RestoreWorld()
    for _ in range(4):
        world.restore_step(asked)
        world.step(asked)
    assert world.taken == ["create again-restore"]  # its Job doesn't end
    assert not world.pods
    assert ("PersistentVolumeClaim", "db-0-data") in world.objects
    reason = next(each for each in world.ask().conditions if each.type == "Ready").reason
    assert reason == "Restoring"


def test_the_job_is_told_file_digest_and_size_and_who_the_member_is():
    world = RestoreWorld(pod={"persistentVolumeClaimSpec": {}, "nodeSelector": {"zone": "a"}})
    world.step()
    world.step()
    (job,) = (each for each in world.restore_outcome(asked).children if each["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]
    prepare, restore = pod["initContainers"]
    assert {f"--snapshot={FILE}", f"--sha256={LINE['sha256']}", "--size=20512", "--folder=/backups/nightly"} <= {
        *prepare["args"]
    }
    assert restore["image"] == "quay.io/coreos/etcd:v3.5.35"
    assert {
        "--name=db-0",
        "--initial-cluster=db-0=http://db-0.db.shop.svc:2380",
        "--initial-cluster-token=shop.db",
        "--data-dir=/var/etcd/restoring-$(POD_UID)",
    } <= {*restore["args"]}
    assert [volume.get("persistentVolumeClaim", {}).get("claimName") for volume in pod["volumes"]] == [
        "backups", "db-0-data", None,
    ]  # fmt: skip
    assert (pod["nodeSelector"], pod["automountServiceAccountToken"]) == ({"zone": "a"}, False)
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_a_job_that_runs_while_the_daemon_is_upgraded_goes_on_although_its_program_is_called_otherwise_now(monkeypatch):
    world, former = RestoreWorld(), "kubectl_reconcile.modules.etcd_backup.agent.restore"
    world.step()
    world.step()
    with monkeypatch.context() as before:
        before.setattr(children, "AGENT", former)
        before.setattr(children, "_IN_DIGESTS", former)
        before.setattr(children, "_OURS", ["python", "-m", former])
        world.restore_step(asked)
    assert former in json.dumps(world.jobs["again-restore"])
    outcome = world.restore_outcome(asked)
    assert condition(outcome).reason == "JobAtWork"
    assert [each["metadata"]["name"] for each in outcome.children if each["kind"] == "Job"] == ["again-restore"]
    assert world.settle_both().status["phase"] == "Succeeded"
    assert world.taken == ["create again-restore", "create db-0", *GROWN]


OBSTACLES = {
    "no backup": (lambda w: setattr(w, "backup", None), "BackupNotFound", ".spec.backup.name: there is no EtcdBackup nightly"),
    "no backup yet": (lambda w: setattr(w, "backup", a_backup()), "NoBackupYet", "has no backup yet"),
    "only failed ones": (lambda w: setattr(w, "backup", a_backup({**LINE, "phase": "Failed"})), "NoBackupYet", "no backup yet"),
    "no cluster": (lambda w: setattr(w, "cr", None), "ClusterNotFound", ".spec.clusterRef.name: there is no EtcdCluster db"),
    "a cluster that doesn't ask": (lambda w: w.cr["spec"].pop("restoreFrom"), "ClusterExists", "doesn't start from this restore"),
    "a cluster that asks another": (
        lambda w: w.cr["spec"].update(restoreFrom={"name": "other"}), "ClusterExists", ".spec.restoreFrom.name: again",
    ),
    "an older etcd": (
        lambda w: setattr(w, "backup", a_backup({**LINE, "etcdVersion": "3.6.1"})), "ClusterTooOld", "can't read data of etcd 3.6.1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "reason", "words"), OBSTACLES.values(), ids=OBSTACLES)
def test_what_is_in_the_way_is_named_and_nothing_is_begun(spoil, reason, words):
    world = RestoreWorld()
    world.step()
    world.step()
    spoil(world)
    outcome = world.restore_outcome(asked)
    assert (condition(outcome).reason, outcome.status["phase"]) == (reason, "Pending")
    assert words in condition(outcome).message
    assert not outcome.children
    passes = reason in {"NoBackupYet", "ClusterNotFound"}
    assert condition(outcome, "Degraded").status == str(not passes)
    assert passes or "hint" in condition(outcome).message


def test_a_backup_whose_etcdbackup_is_gone_is_found_on_its_claim():
    world = RestoreWorld()
    world.backup = None
    world.restore["spec"]["backup"]["claimName"] = "kept"
    assert world.settle_both().status["revision"] == 42  # as the Job's pod told
    pod = world.jobs["again-restore"]["spec"]["template"]["spec"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "kept"
    assert not [each for each in pod["containers"][0]["args"] if each.startswith(("--snapshot", "--sha256"))]


S3 = {"bucket": "backups", "credentialsSecret": "s3-key", "endpoint": "http://minio.storage.svc:9000"}


def environment(container):
    return {each["name"] for each in container["env"]}


def test_a_backup_in_a_bucket_is_fetched_by_the_one_container_that_has_the_credentials():
    world = RestoreWorld()
    world.backup = a_backup(LINE, storage={"s3": {**S3, "prefix": "a"}})
    outcome = world.settle_both()
    assert outcome.status["phase"] == "Succeeded"
    pod = world.jobs["again-restore"]["spec"]["template"]["spec"]
    prepare, restore = pod["initContainers"]
    (finish,) = pod["containers"]
    assert {"--folder=a/nightly", "--s3-bucket=backups", f"--snapshot={FILE}"} <= {*prepare["args"]}
    assert "--s3-field=EtcdBackup nightly: .spec.storage.s3" in prepare["args"]
    assert "AWS_SECRET_ACCESS_KEY" in environment(prepare)
    assert environment(restore) == environment(finish) == {"POD_UID"}
    assert {each["name"] for each in pod["volumes"]} == {"data", "work"}


def test_a_backup_whose_etcdbackup_is_gone_is_found_in_its_bucket():
    world = RestoreWorld()
    world.backup = None
    world.restore["spec"]["backup"] = {"name": "nightly", "s3": S3}
    assert world.settle_both().status["phase"] == "Succeeded"
    prepare = world.jobs["again-restore"]["spec"]["template"]["spec"]["initContainers"][0]
    assert {"--folder=shop/nightly", "--s3-field=.spec.backup.s3"} <= {*prepare["args"]}
    assert not [each for each in prepare["args"] if each.startswith("--snapshot")]


def test_an_etcdbackup_whose_bucket_makes_no_sense_is_told_and_nothing_is_begun():
    world = RestoreWorld()
    world.backup = a_backup(LINE, storage={"s3": {"bucket": "My Bucket", "credentialsSecret": "s3-key"}})
    world.both()
    outcome = world.both()
    assert condition(outcome).reason == "BackupUnclear"
    assert "EtcdBackup nightly: .spec.storage.s3.bucket: must be written like my-backups" in condition(outcome).message
    assert not world.jobs


def test_a_cluster_waits_for_a_restore_that_isnt_there_and_never_begins_empty():
    world = RestoreWorld()
    world.restore = None
    for _ in range(3):
        outcome = world.step(asked)
    assert not world.pods
    assert condition(outcome, "Degraded").reason == "RestoreNotFound"
    assert ".spec.restoreFrom.name: there is no EtcdRestore again" in condition(outcome).message
    world.restore = a_restore()
    world.settle_both()
    assert len(world.members) == 3


FAULTS = {
    "in the agent's words": (
        json.dumps({"error": "SnapshotDamaged", "message": "x is damaged (hint: name another one)"}), "SnapshotDamaged",
        "x is damaged (hint: name another one); no member has started",
    ),
    "a crash": ("Traceback: bad", "RestoreFailed", "container prepare: Traceback: bad (hint: correct what is wrong, or delete Job again-restore"),
    "words that no agent of ours says": (
        json.dumps({"error": "no such word!", "message": "x"}), "RestoreFailed", 'container prepare: {"error": "no such word!", "message": "x"}',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("said", "reason", "words"), FAULTS.values(), ids=FAULTS)
def test_a_failed_restore_says_why_and_begins_anew_once_it_is_corrected(said, reason, words):
    world = RestoreWorld()
    world.jobs_fail = said
    outcome = world.until("Failed")
    assert condition(outcome, "Degraded").reason == reason
    assert words in condition(outcome).message
    world.both()
    assert not world.pods
    assert condition(world.ask(), "Degraded").reason == "RestoreFailed"
    world.jobs_fail = ""
    world.restore["spec"]["backup"]["snapshot"] = "20261119T030000Z-r40.db"
    outcome = world.settle_both()
    assert outcome.status["phase"] == "Succeeded"
    assert world.taken[:4] == ["create again-restore", "delete again-restore", "create again-restore", "create db-0"]


def test_a_job_that_is_deleted_at_work_is_begun_anew_once_its_pod_is_gone():
    world = RestoreWorld()
    world.step()
    world.step()
    world.restore_step()
    world.end("again-restore", "Running", "")
    pod = world.job_pods["again-restore"]
    pod["status"] = {"phase": "Running"}
    world.jobs.clear()
    outcome = world.restore_step(asked)
    assert (condition(outcome).reason, world.jobs) == ("EarlierJobEnds", {})
    pod["status"]["phase"] = "Failed"
    world.restore_step(asked)
    assert list(world.jobs) == ["again-restore"]


def test_a_newer_backup_that_comes_meanwhile_changes_nothing():
    world = RestoreWorld()
    world.step()
    world.step()
    world.restore_step()
    world.backup = a_backup(
        LINE, {**LINE, "name": "nightly-2", "file": "nightly/20261121T030000Z-r50.db", "revision": 50}
    )
    outcome = world.settle_both()
    assert world.taken.count("create again-restore") == 1
    assert outcome.status["revision"] == 42


def test_a_claim_that_was_recreated_is_never_begun_with_but_written_again():
    world = RestoreWorld()
    world.until("Starting")
    world.objects = {key: one for key, one in world.objects.items() if key[0] not in {"PersistentVolumeClaim", "Pod"}}
    world.members, world.data, world.bootstraps, world.cr["status"] = [], {}, 0, {}
    world.taken.clear()
    outcome = world.settle_both()
    assert world.taken[:3] == ["delete again-restore", "create again-restore", "create db-0"]
    assert outcome.status["phase"] == "Succeeded"


def test_what_is_done_is_done_whatever_becomes_of_the_cluster_and_of_the_spec():
    world = RestoreWorld()
    done = world.settle_both().status
    world.cr = None
    outcome = world.restore_outcome(asked)
    assert {**outcome.status, "members": 3} == {**done, "members": 3}
    for where, name, field in (
        ("backup", "snapshot", ".spec.backup.snapshot"),
        ("clusterRef", "name", ".spec.clusterRef.name"),
    ):
        before = dict(world.restore["spec"][where])
        world.restore["spec"][where][name] = "20200101T000000Z-r1.db" if where == "backup" else "other"
        outcome = world.restore_outcome(asked)
        assert condition(outcome, "Degraded").reason == "SpecChanged"
        assert condition(outcome).message.startswith(field)
        assert "hint" in condition(outcome).message
        assert outcome.status["phase"] == "Succeeded"
        world.restore["spec"][where] = before


def test_a_restore_that_is_deleted_leaves_the_cluster_alone():
    world = RestoreWorld()
    world.settle_both()
    world.taken.clear()
    world.restore = None
    for _ in range(5):
        outcome = world.step()
    assert world.taken == []
    assert condition(outcome).reason == "AsSpecified"


def test_a_cluster_with_data_takes_no_notice_of_a_restore_that_isnt_checked():
    world = RestoreWorld()
    world.cr["spec"].pop("restoreFrom")
    world.restore = None
    World.settle(world)
    world.taken.clear()
    world.restore = a_restore()
    world.cr["spec"]["restoreFrom"] = {"name": "again"}
    for _ in range(6):
        outcome = world.restore_step()
        world.step()
    assert world.taken == ["create again-check"]  # its Job doesn't end
    assert condition(outcome).reason == "SnapshotIsChecked"
    assert world.held == []


@settings(max_examples=60, deadline=None)
@example(size=1, events=["both", "both", "restore", "restore"])
@given(
    st.integers(1, 3),
    st.lists(st.sampled_from(["both", "restore", "cluster", "job", "lose", "fail", "mend"]), max_size=25),
)
def test_whatever_comes_between_no_cluster_begins_empty_or_twice(size, events):
    """The world itself asserts that nothing begins on an empty volume, nor twice, and that no Job writes over a member's data."""
    world = RestoreWorld(size)
    for event in events:
        match event:
            case "both":
                world.both()
            case "restore":
                world.restore_step()
            case "cluster":
                world.step()
                world.note_cluster()
            case "job":
                world.run_job()
            case "lose" if world.jobs:
                world.delete_job("again-restore")
            case "fail":
                world.jobs_fail = "bad"
            case "mend":
                world.jobs_fail = ""
    world.jobs_fail = ""
    for name in [name for name, job in world.jobs.items() if "Failed" in str(job.get("status"))]:
        world.delete_job(name)
    outcome = world.settle_both(200)
    assert outcome.status["phase"] == "Succeeded"
    assert (len(world.voters), world.bootstraps) == (size, 1)
    assert world.members[0]["id"] == world.cluster_seed()


REFUSED = {
    "a claim and a bucket": ({"backup": {"name": "nightly", "claimName": "a", "s3": S3}}, ".spec.backup.claimName"),
    "no server": ({"backup": {"name": "nightly", "s3": {**S3, "endpoint": "minio"}}}, ".spec.backup.s3.endpoint"),
    "no file of ours": ({"backup": {"name": "nightly", "snapshot": "../etc/passwd"}}, ".spec.backup.snapshot"),
    "a path as a backup": ({"backup": {"name": "../x"}}, ".spec.backup.name"),
    "a path as a cluster": ({"clusterRef": {"name": "a/b"}}, ".spec.clusterRef.name"),
    "too quick": ({"timeoutInSecond": 1}, ".spec.timeoutInSecond"),
}


@pytest.mark.parametrize(("spec", "field"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_by_its_field(spec, field):
    with pytest.raises(SpecError) as error:
        restore_spec(a_restore(**spec))
    assert error.value.field == field


def test_a_cluster_in_memory_cant_begin_with_a_backup():
    world = RestoreWorld(in_memory=True)
    with pytest.raises(SpecError) as error:
        cluster_spec(world.cr)
    assert error.value.field == ".spec.restoreFrom"


SPOILT = [
    "x",
    {"history": "x"},
    {"history": [1, {"phase": "Succeeded"}]},
    {"seed": {"claimUID": 1}},
    {"phase": 3, "seed": "x"},
]


@pytest.mark.parametrize("status", SPOILT)
def test_a_status_that_somebody_spoilt_is_overlooked(status):
    world = RestoreWorld()
    world.step()
    world.step()
    world.backup["status"] = status
    assert not world.restore_outcome(asked).children
    world.backup = a_backup(LINE)
    world.restore["status"] = status if isinstance(status, dict) else {}
    assert world.restore_outcome(asked).children
    assert world.ask(asked).children
