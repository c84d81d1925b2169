"""When a backup begins, what is told of it, and what is in the way: EtcdBackup as a function of values."""

import copy
import json
from zoneinfo import ZoneInfo

import pytest

from kubectl_reconcile.module_api import Context, Owned, SpecError
from kubectl_reconcile.module_testing import asked, outcome_of
from kubectl_reconcile_operators.etcd_backup import EtcdBackup
from kubectl_reconcile_operators.etcd_backup.spec import backup_spec
from tests.job_pods import JobsOfModule

API = "etcd.database.coreos.com/v1beta2"
CREATED = "2026-11-20T12:00:00Z"
TOLD = {
    "file": "nightly/20261121T033000Z-r42.db", "revision": 42, "sizeBytes": 20512, "sha256": "ab" * 32, "etcdVersion": "3.6.16",
    "member": "http://db-1.db.shop.svc:2379", "durationSeconds": 0.5, "note": "",
}  # fmt: skip


def a_cr(**spec):
    metadata = {"name": "nightly", "namespace": "shop", "uid": "u-cr", "generation": 1, "creationTimestamp": CREATED}
    whole = {
        "clusterRef": {"name": "db"}, "schedule": "30 3 * * *",
        "storage": {"persistentVolumeClaim": {"claimName": "backups"}}, **spec,
    }  # fmt: skip
    whole = {name: value for name, value in whole.items() if value is not None}
    return {"apiVersion": API, "kind": "EtcdBackup", "metadata": metadata, "spec": whole}


def named(kind, name, api="v1", **more):
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **more}


CLUSTER = named(
    "EtcdCluster", "db", API, spec={"size": 3}, status={"members": {"ready": ["db-1", "db-0"], "unready": ["db-2"]}}
)

CLAIM = named("PersistentVolumeClaim", "backups")


class World(JobsOfModule):
    """An EtcdBackup over time."""

    def __init__(self, cr=None, read=(CLUSTER, CLAIM)):
        super().__init__()
        self.cr, self.read, self.now = cr or a_cr(), read, CREATED

    def at(self, now):
        self.now = now
        return self.step()

    def step(self, ask=outcome_of):
        owned = Owned(copy.deepcopy(list(self.jobs.values())), copy.deepcopy([*self.read, *self.pods.values()]))
        outcome = ask(EtcdBackup, copy.deepcopy(self.cr), owned, {}, Context(self.now, "etcdbackup", self.cr))
        conditions = [{"type": each.type, "status": each.status} for each in outcome.conditions]
        self.cr["status"] = json.loads(json.dumps({**outcome.status, "conditions": conditions}))
        self.take(outcome, self.now)
        return outcome

    def end(self, name, *, words=None, ok=True, **condition):
        labels = Context("", "etcdbackup", self.cr).labels()
        super().end(name, TOLD if words is None else words, at=self.now, ok=ok, labels=labels, **condition)

    def condition(self, outcome, type_="Ready"):
        return next(each for each in outcome.conditions if each.type == type_)


def test_a_slot_begins_one_job_of_one_name_and_no_more():
    world = World()
    outcome = world.at("2026-11-20T12:00:10Z")
    assert (world.begun, outcome.status["nextScheduleTime"]) == ([], "2026-11-21T03:30:00Z")
    assert world.condition(outcome).reason == "Scheduled"
    assert outcome.requeue_after_s == 3600
    world.at("2026-11-21T03:30:02Z")
    world.at("2026-11-21T03:30:04Z")
    assert world.begun == ["nightly-20261121033000"]
    world.now = "2026-11-21T03:30:09Z"
    world.end(world.begun[0])
    outcome = world.at("2026-11-21T03:30:10Z")
    status = outcome.status
    assert (status["etcdRevision"], status["file"], status["succeeded"]) == (42, TOLD["file"], True)
    assert (status["lastScheduleTime"], status["nextScheduleTime"]) == ("2026-11-21T03:30:00Z", "2026-11-22T03:30:00Z")
    assert world.condition(outcome).status == "True"
    world.jobs.clear()  # by hand: what was done stays done, and known
    world.pods.clear()
    outcome = world.at("2026-11-21T03:40:00Z")
    assert (len(world.begun), outcome.status["etcdRevision"]) == (1, 42)


def test_the_job_asks_all_members_and_runs_as_nobody():
    world = World(a_cr(image="registry.example.com/reconcile:1"))
    world.step(asked)
    world.now = "2026-11-21T03:30:02Z"
    (job,) = (each for each in world.step(asked).children if each["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert [each for each in container["args"] if "endpoint" in each] == [
        f"--endpoint=http://db-{number}.db.shop.svc:2379" for number in range(3)
    ]
    assert (container["image"], job["spec"]["backoffLimit"]) == ("registry.example.com/reconcile:1", 1)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False


TLS = {"named": {"static": {"operatorSecret": "db-operator"}}, "the cluster's own": {"auto": {}}}


@pytest.mark.parametrize("tls", TLS.values(), ids=TLS)
def test_tls_of_a_cluster_is_shown_by_the_secret_that_it_names_or_makes(tls):
    cluster = {**CLUSTER, "spec": {"size": 3, "TLS": tls}}
    world = World(a_cr(schedule=None), read=(cluster, CLAIM))
    world.step()
    pod = world.jobs["nightly-once"]["spec"]["template"]["spec"]
    assert {"name": "certificates", "secret": {"secretName": "db-operator"}} in pod["volumes"]
    assert all("https://" in each for each in pod["containers"][0]["args"] if "endpoint" in each)


S3 = {
    "bucket": "backups",
    "credentialsSecret": "s3-key",
    "endpoint": "https://minio.storage.svc:9000",
    "caSecret": "s3-ca",
}


def s3_job(**s3):
    world = World(a_cr(schedule=None, storage={"s3": {**S3, **s3}}), read=(CLUSTER,))
    world.step(asked)
    return world


def test_to_a_bucket_a_snapshot_passes_through_the_pod_which_has_credentials_by_reference_alone():
    pod = s3_job().jobs["nightly-once"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {each["name"] for each in pod["volumes"]} == {"work", "s3-ca"}
    assert [each.partition("=")[2] for each in container["args"] if each.startswith(("--folder", "--s3-"))] == [
        "shop/nightly", "backups", S3["endpoint"], "us-east-1", "true", "/etc/s3/ca.crt", ".spec.storage.s3",
    ]  # fmt: skip
    assert [each["name"] for each in container["env"]] == [
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    ]  # fmt: skip
    assert {each["valueFrom"]["secretKeyRef"]["name"] for each in container["env"]} == {"s3-key"}
    assert not any("value" in each for each in container["env"])


def test_keys_begin_with_the_prefix_where_one_is_given_and_aws_is_the_server_where_none_is():
    job = s3_job(prefix="clusters/a", endpoint=None, region="eu-central-1").jobs["nightly-once"]
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--folder=clusters/a/nightly" in args
    assert not any(each.startswith(("--s3-endpoint", "--s3-path-style")) for each in args)


def test_a_pod_that_waits_for_the_secret_of_the_bucket_says_which_field_names_it():
    world = s3_job()
    world.end("nightly-once", ok=False, reason="DeadlineExceeded")
    said = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s3-key" not found'}}
    world.pods["nightly-once"]["status"] = {"containerStatuses": [{"name": "backup", "state": said}]}
    message = world.condition(world.step(asked)).message
    assert 'secret "s3-key" not found (hint: .spec.storage.s3.credentialsSecret must name a Secret' in message


FAULTS = {
    "in the agent's words": (json.dumps({"error": "NoRoom", "message": "20 bytes are free"}), {}, "NoRoom: 20 bytes are free"),
    "a crash, in its last lines": ("Traceback: bad", {}, "Traceback: bad"),
    "late": ("", {"reason": "DeadlineExceeded", "message": "Job was active longer"}, "DeadlineExceeded: Job was active longer"),
}  # fmt: skip


@pytest.mark.parametrize(("message", "condition", "words"), FAULTS.values(), ids=FAULTS)
def test_a_failed_backup_says_why_and_never_blocks_the_next(message, condition, words):
    world = World()
    world.at("2026-11-21T03:30:02Z")
    world.end(world.begun[0], words=message, ok=False, **condition)
    outcome = world.at("2026-11-21T03:31:00Z")
    assert outcome.status["succeeded"] is False
    assert words in outcome.status["reason"]
    assert world.condition(outcome, "Degraded").reason == "BackupFailed"
    world.at("2026-11-22T03:30:02Z")
    assert world.begun[1:] == ["nightly-20261122033000"]


def test_a_job_that_was_deleted_at_work_is_a_failed_backup():
    world = World()
    world.at("2026-11-21T03:30:02Z")
    world.at("2026-11-21T03:30:03Z")
    world.jobs.clear()
    outcome = world.at("2026-11-21T03:30:05Z")
    assert "was deleted" in outcome.status["reason"]
    assert len(world.begun) == 1


def test_slots_that_were_slept_through_are_told_and_not_made_up_for():
    world = World(a_cr(startingDeadlineSeconds=600))
    outcome = world.at("2026-11-24T12:00:00Z")
    assert world.begun == []
    assert [(run["slot"], run["phase"]) for run in outcome.status["history"]] == [("2026-11-24T03:30:00Z", "Missed")]
    assert world.condition(outcome).reason == "BackupMissed"
    assert world.at("2026-11-24T12:01:00Z").status["history"] == outcome.status["history"]
    world.at("2026-11-25T03:39:00Z")  # late, and still in time
    assert world.begun == ["nightly-20261125033000"]


def test_while_one_runs_no_other_begins():
    world = World(a_cr(schedule="*/10 * * * *", startingDeadlineSeconds=300))
    world.at("2026-11-20T12:10:00Z")
    world.at("2026-11-20T12:20:00Z")
    outcome = world.at("2026-11-20T12:26:00Z")
    assert len(world.begun) == 1
    assert "still running" in outcome.status["history"][1]["message"]
    world.end(world.begun[0])
    world.at("2026-11-20T12:31:00Z")
    assert world.begun[1:] == ["nightly-20261120123000"]


def test_zones_that_are_read_from_files_are_no_impurity():
    ZoneInfo.clear_cache()
    outcome = World(a_cr(timeZone="Pacific/Chatham")).step(asked)
    assert outcome.status["nextScheduleTime"] == "2026-11-20T13:45:00Z"


OBSTACLES = {
    "no cluster": ((CLAIM,), "ClusterNotFound", ".spec.clusterRef.name: there is no EtcdCluster db"),
    "a cluster without members": ((CLAIM, {**CLUSTER, "status": {}}), "ClusterNotFormed", "no members yet"),
    "no claim": ((CLUSTER,), "ClaimNotFound", ".spec.storage.persistentVolumeClaim.claimName"),
}


@pytest.mark.parametrize(("read", "reason", "words"), OBSTACLES.values(), ids=OBSTACLES)
def test_what_is_in_the_way_is_named_and_once_it_is_gone_the_backup_begins(read, reason, words):
    world = World(a_cr(schedule=None), read=read)
    outcome = world.step(asked)
    assert (world.begun, world.condition(outcome).reason) == ([], reason)
    assert words in world.condition(outcome).message
    world.read = (CLUSTER, CLAIM)
    world.step()
    assert world.begun == ["nightly-once"]


def test_once_is_once_and_suspended_is_never():
    world = World(a_cr(schedule=None, suspend=True))
    world.step()
    assert world.begun == []
    world.cr["spec"]["suspend"] = False
    world.step()
    world.step()
    world.end("nightly-once", words="lost", ok=False)
    outcome = world.step()
    assert world.begun == ["nightly-once"]
    assert "create a new one" in world.condition(outcome).message


def test_the_history_is_bounded_and_its_jobs_go_with_it():
    world = World(a_cr(schedule="0 * * * *", historyLimit=3))
    for hour in range(13, 23):
        world.at(f"2026-11-20T{hour}:00:01Z")
        world.end(world.begun[-1], ok=hour == 13)
    outcome = world.at("2026-11-20T22:30:00Z")
    phases = [run["phase"] for run in outcome.status["history"]]
    assert phases == ["Succeeded", "Failed", "Failed", "Failed"]  # the last success is never forgotten
    assert len(world.jobs) == 4
    assert outcome.status["etcdRevision"] == 42


def test_a_claim_that_was_made_stays_when_the_backup_goes_unless_it_is_to_go():
    spec = {"accessModes": ["ReadWriteOnce"]}
    cr = a_cr(storage={"volumeClaimSpec": spec})
    made = next(each for each in World(cr).step().children if each["kind"] == "PersistentVolumeClaim")
    assert (made["metadata"]["name"], made["spec"]) == ("nightly-backups", spec)
    cr["metadata"]["deletionTimestamp"] = CREATED
    made = {**made, "metadata": {**made["metadata"], "namespace": cr["metadata"]["namespace"]}}
    for policy, stays in (("Retain", True), ("Delete", False)):
        cr["spec"]["deletionPolicy"] = policy
        outcome = EtcdBackup.finalize(cr, Owned([made]), {}, Context(CREATED, "etcdbackup", cr))
        assert outcome.dropped == (() if stays else ("PersistentVolumeClaim/nightly-backups",))
        assert not outcome.finalized  # it has an owner still, which is taken away first
        free = EtcdBackup.finalize(cr, Owned((), [made]), {}, Context(CREATED, "etcdbackup", cr))
        assert (free.dropped, free.finalized) == (outcome.dropped, stays)
    assert EtcdBackup.finalize(cr, Owned(), {}, Context(CREATED, "etcdbackup", cr)).finalized


REFUSED = {
    "no cron": ({"schedule": "nightly"}, ".spec.schedule"),
    "no zone": ({"timeZone": "Mars/Olympus"}, ".spec.timeZone"),
    "two storages": ({"storage": {"persistentVolumeClaim": {"claimName": "a"}, "volumeClaimSpec": {}}}, ".spec.storage"),
    "a volume and a bucket": ({"storage": {"volumeClaimSpec": {}, "s3": S3}}, ".spec.storage"),
    "no bucket's name": ({"storage": {"s3": {**S3, "bucket": "My Bucket"}}}, ".spec.storage.s3.bucket"),
    "no storage": ({"storage": {}}, ".spec.storage"),
    "nothing to back up": ({"clusterRef": None}, ".spec"),
    "a path as an endpoint": ({"clusterRef": None, "etcdEndpoints": ["http://a/b"]}, ".spec.etcdEndpoints[0]"),
    "a file as an endpoint": ({"clusterRef": None, "etcdEndpoints": ["file:etc"]}, ".spec.etcdEndpoints[0]"),
    "both ways of time": ({"backupPolicy": {"backupIntervalInSecond": 600}}, ".spec.backupPolicy.backupIntervalInSecond"),
    "too often": ({"schedule": None, "backupPolicy": {"backupIntervalInSecond": 5}}, ".spec.backupPolicy.backupIntervalInSecond"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "field"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_by_its_field(spec, field):
    with pytest.raises(SpecError) as error:
        backup_spec(a_cr(**spec))
    assert error.value.field == field


def test_a_job_that_a_preview_takes_for_complete_is_a_success():
    world = World(a_cr(schedule=None))
    world.step()
    world.jobs["nightly-once"]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    outcome = world.step()
    assert outcome.status["succeeded"] is True
    assert world.condition(outcome).reason == "BackedUp"
