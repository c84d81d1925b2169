"""A MyDatabase of other major versions than the one that all else is tested on, as far as these are installed: begun, copied, handed over, left behind, backed up."""

import subprocess
from pathlib import Path

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile_operators.postgres.spec import MAJORS
from tests.operators.real.postgres.database import Writer

pytestmark = pytest.mark.scenario(minutes=2)
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.fixture(scope="module", params=MAJORS)
def version(request) -> int:
    """A major version that is installed here besides the usual one."""
    try:
        usual = int(catalog.find("postgres").environ["PG_MAJOR"])
        catalog.find(f"postgres:{request.param}")
    except ImageError as error:
        pytest.skip(str(error))
    if request.param == usual:
        pytest.skip("all other tests run on this one")
    return request.param


def test_another_major_version_does_all_that_the_usual_one_does(db, version):
    db.apply(replicas=2, failover={"delaySeconds": 1}, synchronous={"min": 1}, parameters={"work_mem": "8MB"})
    db.settled()
    assert db.status["version"].split(".")[0] == str(version)
    assert (db.asked("db-0", "show data_checksums"), db.sql("show work_mem")) == ("on", ["8MB"])
    writer = Writer(db, "written")

    db.hand_over("db-1")
    db.is_led_by("db-1")
    db.settled()
    assert db.stands_by("db-0")

    db.spoil("db-1")  # so that it doesn't come back before somebody takes over
    db.kill("db-1")
    db.is_led_by("db-0")
    writer.goes_on()
    db.settled()
    told = writer.end()  # before what is there: none of these may be missing
    assert not {*told} - {*db.rows("db-0", "written")}


def test_another_major_version_is_backed_up_and_begins_with_a_backup(db, version):
    checks = Path(catalog.find(f"postgres:{version}").programs[0], "pg_verifybackup")
    if subprocess.run([checks, "nothing"], capture_output=True, timeout=60, check=False).returncode < 0:
        pytest.skip(f"the pg_verifybackup of this build of PostgreSQL {version} crashes")
    db.apply()
    db.settled().filled()
    jobs = {"image": "python", "retries": 0}
    db.apply(backup={"immediate": True, "target": {"volumeClaimSpec": CLAIM}, **jobs})
    db.real.eventually(lambda: db.condition("BackupHealthy")["status"] in {"True", "False"}, "a backup has ended")
    assert db.condition("BackupHealthy")["reason"] == "BackedUp", db.condition("BackupHealthy")
    db.sql("delete from rows")
    again = db.other("again", fromBackup={"database": "db", **jobs}).settled()
    assert again.sql("select count(*), sum(n) from rows") == ["1000|500500"]
    again.end()
