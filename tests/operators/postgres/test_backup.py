"""Backups of a MyDatabase, and one that begins with a backup: what is due, what is told, what is in the way; on the model of Kubernetes and PostgreSQL."""

import gzip
import hashlib
import json
import sys
from datetime import UTC, datetime

import pytest

from kubectl_reconcile.module_api import SpecError
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError
from kubectl_reconcile_operators.postgres.agent.__main__ import main
from kubectl_reconcile_operators.postgres.agent.archive import COPIES, archived, content_of, unpacked
from kubectl_reconcile_operators.postgres.bootstrap import children as filling
from kubectl_reconcile_operators.postgres.spec import database_spec
from tests.operators.postgres.backup_jobs import FILE, end, fill, jobs
from tests.operators.postgres.planned import inputs_of, planned
from tests.operators.postgres.world import World, uid_of

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)
TARGET = {"persistentVolumeClaim": {"claimName": "backups"}}
NIGHTLY = {"schedule": "30 3 * * *", "target": TARGET}
AT_ONCE = {"immediate": True, "target": TARGET}


def a_world(**spec):
    world = World(**spec)
    world.cr["metadata"]["creationTimestamp"] = world.now
    world.others = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "backups", "namespace": "shop"}}
    ]
    return world


def condition(outcome, type_="BackupHealthy"):
    found = {each.type: each for each in outcome.conditions}
    return found[type_]


# --- backups --------------------------------------------------------------------------------------


def test_a_slot_begins_one_job_once_the_database_serves_and_no_more():
    world = a_world(backup=NIGHTLY)
    world.settle()
    assert jobs(world) == []
    assert world.cr["status"]["nextScheduleTime"] == "2026-11-21T03:30:00Z"
    world.now = "2026-11-21T03:30:05Z"
    world.step()
    world.step()
    assert jobs(world) == ["db-backup-20261121033000"]
    end(world, "db-backup-20261121033000")
    outcome = world.settle()
    assert condition(outcome).status == "True"
    assert outcome.status["lastBackup"]["file"] == f"db/{FILE}"
    assert outcome.status["lastScheduleTime"] == "2026-11-21T03:30:00Z"
    assert outcome.status["nextScheduleTime"] == "2026-11-22T03:30:00Z"
    assert jobs(world) == ["db-backup-20261121033000"]


def test_who_backs_up_has_a_user_for_it_also_without_replicas():
    world = a_world(backup=NIGHTLY)
    world.settle()
    assert world.server
    assert "db-replication" in world.secrets


def test_slots_that_were_slept_through_are_told_and_not_made_up_for():
    world = a_world(backup=NIGHTLY)
    world.settle()
    world.now = "2026-11-27T12:00:00Z"
    outcome = world.settle()
    assert jobs(world) == []
    assert condition(outcome).reason == "BackupMissed"
    assert [each["phase"] for each in outcome.status["backups"]] == ["Missed"]


def a_foreign_job(world, name):
    """A Job of somebody else's that has the name of a backup."""
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": "u-theirs",
        "resourceVersion": "1",
        "labels": {"app": "theirs"},
    }
    world.others.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}})


def planned_for_jobs(world):
    """What a pass does to Jobs, why it doesn't, and what it says of that."""
    plan = planned(inputs_of(world))
    found = plan.outcomes.statuses[0].after["status"]["conditions"]
    said = {each["type"]: (each["status"], each["reason"]) for each in found}
    jobs = [(each.ref.name, each.writes, each.gate.blocked) for each in plan.changes if each.ref.kind == "Job"]
    return jobs, said.get("Stalled")


def test_a_foreign_job_of_a_backups_name_is_left_alone_and_told_and_the_next_one_is_made():
    world = a_world(backup=NIGHTLY)
    world.settle()
    world.now = "2026-11-21T03:30:05Z"
    a_foreign_job(world, "db-backup-20261121033000")
    ((name, is_written, why),), stalled = planned_for_jobs(world)
    assert (name, is_written, stalled) == ("db-backup-20261121033000", False, ("True", "ChildInTheWay"))
    assert why.startswith("it exists, but doesn't belong to MyDatabase.example.com shop/db;")

    world.now = "2026-11-21T04:30:05Z"
    outcome = world.settle()
    assert planned_for_jobs(world)[0] == []
    assert condition(outcome).reason == "BackupMissed"
    assert "another Job has its name" in condition(outcome).message

    world.now = "2026-11-22T03:30:05Z"
    assert planned_for_jobs(world)[0] == [("db-backup-20261122033000", True, "")]


def test_a_foreign_job_of_the_first_backups_name_doesnt_keep_the_schedule_from_beginning():
    world = a_world(backup={**NIGHTLY, "immediate": True})
    a_foreign_job(world, "db-backup-once")
    while planned_for_jobs(world)[0] == []:
        world.step()
    assert planned_for_jobs(world)[1] == ("True", "ChildInTheWay")
    world.now = "2026-11-21T03:30:05Z"
    assert planned_for_jobs(world)[0] == [("db-backup-20261121033000", True, "")]


def test_a_foreign_job_of_a_wished_backups_name_is_told_and_another_wish_is_granted():
    world = a_world(backup=NIGHTLY)
    world.settle()
    world.cr["metadata"]["annotations"]["example.com/backup-now"] = "one"
    ((name, _, _),), _ = planned_for_jobs(world)
    a_foreign_job(world, name)
    ((_, is_written, _),), stalled = planned_for_jobs(world)
    assert (is_written, stalled) == (False, ("True", "ChildInTheWay"))
    world.cr["metadata"]["annotations"]["example.com/backup-now"] = "two"
    ((other, is_written, _),), stalled = planned_for_jobs(world)
    assert (other != name, is_written, stalled) == (True, True, None)


def test_at_once_is_once():
    world = a_world(backup=AT_ONCE)
    world.settle()
    assert jobs(world) == ["db-backup-once"]
    end(world, "db-backup-once")
    world.settle()
    del world.objects["Job", "db-backup-once"]
    world.settle()
    assert jobs(world) == []


def test_a_backup_that_somebody_asks_for_is_made_once_for_each_wish():
    world = a_world(backup={**NIGHTLY, "historyLimit": 1})
    world.settle()
    names = set()
    for wish in ("before the release", "after it"):
        world.cr["metadata"]["annotations"]["example.com/backup-now"] = wish
        world.settle()
        assert world.cr["status"]["backupAnswered"] == wish
        (name,) = {*jobs(world)} - names
        names.add(name)
        end(world, name)
        world.settle()
        world.settle()
        assert jobs(world) == [name]
        assert world.cr["status"]["lastBackup"]["name"] == name


def test_a_replica_that_follows_is_copied_and_the_primary_stands_in_for_it():
    world = a_world(backup=AT_ONCE, replicas=2)
    world.settle()
    job = world.objects["Job", "db-backup-once"]
    # The first backup began when there was the primary alone.
    assert "host=db.shop.svc " in source_of(job)
    world.cr["spec"]["backup"] = NIGHTLY
    world.now = "2026-11-21T03:30:05Z"
    end(world, "db-backup-once")
    world.settle()
    assert "host=10.0.0.1,db.shop.svc " in source_of(world.objects["Job", "db-backup-20261121033000"])


def source_of(job):
    env = job["spec"]["template"]["spec"]["initContainers"][0]["env"]
    return next(each["value"] for each in env if each["name"] == "SOURCE")


def test_a_backup_that_failed_says_why_and_never_blocks_the_next():
    world = a_world(backup=NIGHTLY)
    world.settle()
    world.now = "2026-11-21T03:30:05Z"
    world.step()
    end(
        world,
        "db-backup-20261121033000",
        "pg_basebackup: error: No space left on device",
        container="copy",
        kind="Failed",
    )
    outcome = world.settle()
    assert condition(outcome).reason == "BackupFailed"
    assert "No space left on device" in condition(outcome).message
    assert condition(outcome, "Available").status == "True"
    world.now = "2026-11-22T03:30:05Z"
    world.step()
    assert jobs(world) == ["db-backup-20261121033000", "db-backup-20261122033000"]
    end(world, "db-backup-20261122033000")
    outcome = world.settle()
    assert condition(outcome).status == "True"
    assert jobs(world) == ["db-backup-20261122033000"]
    assert [each["phase"] for each in outcome.status["backups"]] == ["Failed", "Succeeded"]


def test_a_backup_whose_job_is_deleted_while_it_runs_has_failed_and_never_blocks_the_next():
    world = a_world(backup=NIGHTLY)
    world.settle()
    world.now = "2026-11-21T03:30:05Z"
    world.step()
    world.step()
    del world.objects["Job", "db-backup-20261121033000"]
    outcome = world.settle()
    assert (condition(outcome).reason, jobs(world)) == ("BackupFailed", [])
    assert "its Job was deleted before it finished" in condition(outcome).message
    world.now = "2026-11-22T03:30:05Z"
    world.step()
    assert jobs(world) == ["db-backup-20261122033000"]


def test_a_claim_that_isnt_there_is_named_and_the_database_goes_on():
    world = a_world(backup=AT_ONCE)
    world.others.clear()
    outcome = world.settle()
    assert jobs(world) == []
    assert condition(outcome).reason == "ClaimNotFound"
    assert ".spec.backup.target.persistentVolumeClaim.claimName: there is no" in condition(outcome).message
    assert condition(outcome, "Ready").status == "True"


def test_suspended_and_paused_begin_nothing():
    for spec in ({"backup": {**AT_ONCE, "suspend": True}}, {"backup": AT_ONCE, "paused": True}):
        world = a_world(**spec)
        world.settle()
        assert jobs(world) == []


def test_the_history_is_bounded_and_its_jobs_go_with_it():
    world = a_world(backup={**NIGHTLY, "historyLimit": 2})
    world.settle()
    for day in range(21, 26):
        world.now = f"2026-11-{day}T03:30:05Z"
        world.step()
        end(world, f"db-backup-202611{day}033000")
        world.settle()
    assert jobs(world) == ["db-backup-20261124033000", "db-backup-20261125033000"]
    assert len(world.cr["status"]["backups"]) == 2


def test_the_claim_that_was_made_outlasts_the_wish_for_backups():
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world = a_world(backup={"immediate": True, "target": {"volumeClaimSpec": size}})
    world.settle()
    assert ("PersistentVolumeClaim", "db-backups") in world.objects
    del world.cr["spec"]["backup"]
    world.settle()
    assert ("PersistentVolumeClaim", "db-backups") in world.objects
    assert jobs(world) == []


def test_a_database_that_is_created_again_finds_the_claim_with_backups_and_leaves_it_as_it_is():
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world = a_world(backup={"immediate": True, "target": {"volumeClaimSpec": size}})
    world.settle()
    claim = world.objects["PersistentVolumeClaim", "db-backups"]
    claim["spec"] |= {"storageClassName": "standard", "volumeMode": "Filesystem", "volumeName": "pv-1"}
    del world.cr["status"]
    outcome = world.ask()
    (found,) = (each for each in outcome.children if each["metadata"]["name"] == "db-backups")
    assert "spec" not in found  # what it has by now can't be taken away
    assert "PersistentVolumeClaim/db-backups" in outcome.untouched


def test_a_claim_of_somebody_elses_isnt_taken_for_the_one_with_backups():
    metadata = {"name": "db-backups", "namespace": "shop", "labels": {"reconcile.dev/module": "mydatabase"}}
    world = a_world(backup={"immediate": True, "target": {"volumeClaimSpec": {"accessModes": ["ReadWriteOnce"]}}})
    world.others = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}]
    outcome = world.ask()
    assert "PersistentVolumeClaim/db-backups" not in outcome.untouched


WRONG = {
    "no schedule at all": ({"target": TARGET}, ".spec.backup"),
    "bad cron": ({**NIGHTLY, "schedule": "often"}, ".spec.backup.schedule"),
    "a day that never comes": ({**NIGHTLY, "schedule": "0 0 30 2 *"}, ".spec.backup.schedule"),
    "no zone": ({**NIGHTLY, "timeZone": "Mars/Olympus"}, ".spec.backup.timeZone"),
    "no age": ({**NIGHTLY, "retain": {"age": "long"}}, ".spec.backup.retain.age"),
    "no place": ({**NIGHTLY, "target": {}}, ".spec.backup.target"),
    "two places": ({**NIGHTLY, "target": {**TARGET, "volumeClaimSpec": {}}}, ".spec.backup.target"),
    "no bucket": (
        {**NIGHTLY, "target": {"s3": {"bucket": "B", "credentialsSecret": "x"}}},
        ".spec.backup.target.s3.bucket",
    ),
}


@pytest.mark.parametrize(("backup", "field"), WRONG.values(), ids=WRONG)
def test_what_makes_no_sense_is_refused_by_its_field(backup, field):
    with pytest.raises(SpecError) as caught:
        database_spec(World(backup=backup).cr)
    assert caught.value.field == field


WRONG_SOURCES = {
    "no name": ({"database": "No"}, ".database"),
    "two places": (
        {
            "database": "a",
            "persistentVolumeClaim": {"claimName": "x"},
            "s3": {"bucket": "abc", "credentialsSecret": "x"},
        },
        "",
    ),
    "no file of ours": ({"database": "a", "file": "../etc/passwd"}, ".file"),
}


@pytest.mark.parametrize(("source", "field"), WRONG_SOURCES.values(), ids=WRONG_SOURCES)
def test_a_source_that_is_none_is_refused_by_its_field(source, field):
    with pytest.raises(SpecError) as caught:
        database_spec(World(bootstrap={"fromBackup": source}).cr)
    assert caught.value.field == f".spec.bootstrap.fromBackup{field}"


# --- beginning with a backup ----------------------------------------------------------------------


def restored_world(**more):
    return a_world(
        bootstrap={"fromBackup": {"database": "shop", "persistentVolumeClaim": {"claimName": "backups"}, **more}}
    )


def test_a_database_begins_with_a_backup_and_no_pod_is_there_before_its_volume_is_filled():
    world = restored_world()
    world.settle()
    assert jobs(world) == ["db-restore"]
    assert world.pods == {}
    fill(world)
    outcome = world.settle()
    assert world.disks[uid_of(world.claim("db-0"))]["rows"] == [1, 2]
    assert condition(outcome, "Ready").status == "True"
    assert outcome.status["systemID"] == "6000"
    assert outcome.status["restoredFrom"] == f"db/{FILE}"
    assert jobs(world) == []
    world.settle()
    assert jobs(world) == []


def test_a_foreign_job_of_a_restores_name_is_told_and_no_database_begins():
    world = restored_world()
    a_foreign_job(world, "db-restore")
    while not planned_for_jobs(world)[0]:
        world.step()
    assert planned_for_jobs(world)[1] == ("True", "ChildInTheWay")
    assert world.pods == {}
    world.others.pop()
    assert planned_for_jobs(world)[0] == [("db-restore", True, "")]


def test_what_is_no_backup_begins_nothing_says_so_and_gives_way_to_another_choice():
    world = restored_world()
    world.settle()
    said = json.dumps({"error": "BackupNotFound", "message": "there is no backup in folder shop"})
    end(world, "db-restore", said, container="fetch", kind="Failed")
    outcome = world.settle()
    found = condition(outcome, "Degraded")
    assert found.reason == "RestoreFailed"
    assert found.message.startswith(".spec.bootstrap.fromBackup: BackupNotFound: there is no backup in folder shop")
    assert "(hint: " in found.message
    assert world.pods == {}
    world.others.pop()
    world.cr["spec"]["bootstrap"]["fromBackup"]["database"] = "orders"
    world.step()
    assert jobs(world) == []
    world.step()
    assert jobs(world) == ["db-restore"]
    fill(world)
    assert condition(world.settle(), "Ready").status == "True"


def test_a_job_of_before_an_upgrade_is_still_for_the_same_although_its_program_is_called_otherwise_now(monkeypatch):
    world = restored_world()
    with monkeypatch.context() as before:
        for name in ("AGENT", "_IN_DIGESTS"):
            before.setattr(filling, name, "kubectl_reconcile.modules.postgres.agent")
        world.settle()
    end(world, "db-restore", json.dumps({"error": "NoRoom", "message": "no"}), container="fetch", kind="Failed")
    assert condition(world.settle(), "Degraded").reason == "RestoreFailed"
    assert jobs(world) == ["db-restore"]


def test_a_claim_to_begin_with_that_isnt_there_is_named():
    world = restored_world()
    world.others.clear()
    outcome = world.settle()
    assert jobs(world) == []
    assert "there is no PersistentVolumeClaim backups" in condition(outcome, "Degraded").message


def test_a_database_that_is_there_takes_no_notice_of_what_it_should_have_begun_with():
    world = a_world()
    world.settle()
    world.cr["spec"]["bootstrap"] = {"fromBackup": {"database": "shop"}}
    assert condition(world.settle(), "Ready").status == "True"
    assert jobs(world) == []


# --- the program of the Jobs ----------------------------------------------------------------------


SYSTEM = 7312345678901234567


def a_copy(root, *, version="15"):
    """What pg_basebackup leaves, as far as it counts."""
    files = {"PG_VERSION": f"{version}\n".encode(), "base/1/1259": bytes(20_000), "backup_label": b"START"}
    files["global/pg_control"] = SYSTEM.to_bytes(8, sys.byteorder) + bytes(8184)
    for name, content in {**files, "pg_wal/000000010000000000000002": b"log"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "pg_replslot").mkdir()
    lines = [
        {
            "Path": name,
            "Size": len(content),
            "Checksum-Algorithm": "SHA256",
            "Checksum": hashlib.sha256(content).hexdigest(),
        }
        for name, content in files.items()
    ]
    (root / "backup_manifest").write_text(json.dumps({"Files": lines, "WAL-Ranges": [{"Timeline": 3}]}))
    return root


def kept(tmp_path, capsys, *more):
    status = main(
        ["keep", f"--copy={a_copy(tmp_path / '1.copy')}", f"--folder={tmp_path}", "--termination-log=none", *more]
    )
    return status, json.loads(capsys.readouterr().out)


def fetched(tmp_path, capsys, *more, major="15", restore="u-1"):
    arguments = [f"--folder={tmp_path}", f"--data={tmp_path}/volume/pgdata", f"--major={major}", f"--restore={restore}"]
    (tmp_path / "volume").mkdir(exist_ok=True)
    status = main(["fetch", *arguments, "--termination-log=none", *more])
    return status, json.loads(capsys.readouterr().out)


def test_a_copy_becomes_one_file_that_becomes_the_copy_again(tmp_path, capsys):
    status, said = kept(tmp_path, capsys)
    assert status == 0, said
    assert said["timeline"] == 3
    assert said["file"].endswith(f"Z-t3-{SYSTEM}.tar.gz")
    assert not (tmp_path / "1.copy").exists()
    assert fetched(tmp_path, capsys)[0] == 0
    folder = tmp_path / "volume/pgdata.restoring"
    assert (folder / "base/1/1259").read_bytes() == bytes(20_000)
    assert (folder / "pg_replslot").is_dir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert content_of(tmp_path / said["file"].rpartition("/")[2]).major == "15"


def test_a_database_that_is_created_again_leaves_the_backups_of_the_one_before(tmp_path, capsys):
    good = [f"2026112{day}T030000Z-t1-7000000000000000001.tar.gz" for day in (0, 1)]
    of_nobody, ours = "20261122T030000Z-t1.tar.gz", "20261123T030000Z-t1.tar.gz"
    for name in (*good, of_nobody, ours):
        (tmp_path / name).touch()
    status, said = kept(tmp_path, capsys, "--keep=1", f"--ours={ours}")
    assert status == 0, said
    assert sorted(each.name for each in tmp_path.glob("*.gz")) == sorted(
        [good[1], of_nobody, said["file"].rpartition("/")[2]]
    )
    assert (
        said["note"]
        == f"2 earlier backups here are of something else that had this name, or nobody knows of what, and stay: the last one is {of_nobody}"
    )


def test_a_restore_is_of_the_right_version_and_of_what_is_there(tmp_path, capsys):
    kept(tmp_path, capsys)
    assert fetched(tmp_path, capsys, major="16")[1]["error"] == "OtherVersion"
    status, said = fetched(tmp_path, capsys, f"--file={FILE}")
    assert (status, said["error"]) == (1, "BackupNotFound")
    assert "the last ones there are" in said["message"]
    assert not (tmp_path / "volume/pgdata.restoring").exists()


def test_data_of_somebody_else_is_left_alone_and_ones_own_is_done(tmp_path, capsys):
    _, first = kept(tmp_path, capsys)
    assert fetched(tmp_path, capsys)[0] == 0
    (tmp_path / "volume/pgdata.restoring").rename(tmp_path / "volume/pgdata")
    assert fetched(tmp_path, capsys) == (0, first)
    status, said = fetched(tmp_path, capsys, restore="u-2")
    assert (status, said["error"]) == (1, "NotEmpty")


def test_a_link_out_of_a_copy_is_refused(tmp_path, capsys):
    copy = a_copy(tmp_path / "1.copy")
    (copy / "pg_tblspc").mkdir()
    (copy / "pg_tblspc/1").symlink_to("/")
    assert main(["keep", f"--copy={copy}", f"--folder={tmp_path}", "--termination-log=none"]) == 1
    assert "tablespaces" in json.loads(capsys.readouterr().out)["message"]
    assert not list(tmp_path.glob("*.tar.gz"))


def spoilt_byte(copy):
    (copy / "base/1/1259").write_bytes(bytes(19_999) + b"\1")


def missing(copy):
    (copy / "base/1/1259").unlink()


def without_log(copy):
    (copy / "pg_wal/000000010000000000000002").unlink()


def stray(copy):
    (copy / "base/evil").write_bytes(b"x")


def without_list(copy):
    (copy / "backup_manifest").unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoilt_byte, "isn't as it was copied"), (missing, "base/1/1259 is missing"), (without_log, "lacks the WAL"),
        (stray, "isn't among what was copied"), (without_list, "isn't a copy that pg_basebackup made"),
    ],
)  # fmt: skip
def test_a_copy_that_isnt_as_listed_is_no_backup(tmp_path, spoil, words):
    copy = a_copy(tmp_path / "copy")
    spoil(copy)
    file = tmp_path / "x"
    file.write_bytes(b"".join(archived(copy)))
    with pytest.raises(DamagedError, match=words):
        COPIES.checked(file, NOW)


NO_ARCHIVES = {"nothing": b"", "text": b"no archive", "text, packed": gzip.compress(b"no tar" * 1000, mtime=0)}


@pytest.mark.parametrize("content", NO_ARCHIVES.values(), ids=NO_ARCHIVES)
def test_what_is_no_archive_is_no_backup(tmp_path, content):
    file = tmp_path / "x"
    file.write_bytes(content)
    with pytest.raises(DamagedError):
        COPIES.checked(file, NOW)


def test_a_file_that_is_cut_off_is_no_backup(tmp_path):
    whole = b"".join(archived(a_copy(tmp_path / "copy")))
    file = tmp_path / "x"
    for length in (len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(DamagedError):
            COPIES.checked(file, NOW)


def test_a_folder_is_made_of_nothing_but_what_is_in_it(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"".join(archived(a_copy(tmp_path / "copy"))))
    unpacked(file, tmp_path / "again")
    names = {each.relative_to(tmp_path / "again").as_posix() for each in (tmp_path / "again").rglob("*")}
    assert names == {each.relative_to(tmp_path / "copy").as_posix() for each in (tmp_path / "copy").rglob("*")}
