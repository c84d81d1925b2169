"""A MyDatabase of other major versions than the one that all else is tested on, as far as these are installed: begun, copied, backed up, handed over, left behind."""

import subprocess
from pathlib import Path

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile_operators.postgres.spec import MAJORS
from tests.operators.real.test_mydatabase import (  # noqa: F401 - fixtures
    WRITES,
    asked,
    crds,
    db,
    hand_over,
    new_daemon,
    primary_of,
    rows,
    stands_by,
    written,
)
from tests.operators.real.test_mydatabase_backup import CLAIM, Other, backed_up, begin
from tests.operators.real.test_mydatabase_backup import rows as rows_of


@pytest.fixture(params=MAJORS)
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


def test_another_major_version_does_all_that_the_usual_one_does(db, version):  # noqa: F811 - a fixture
    real = db.real
    spec = {"failover": {"delaySeconds": 1}, "synchronous": {"min": 1}, "parameters": {"work_mem": "8MB"}}
    db.apply(replicas=2, **spec)
    db.settled()
    assert db.cr["status"]["version"].split(".")[0] == str(version)
    assert (asked(db, "db-0", "show data_checksums"), db.sql("show work_mem")) == ("on", ["8MB"])
    db.sql("create table rows (n int)")
    env = [{"name": "PGPASSWORD", "value": db.password()}]
    real.run("sh", "-c", WRITES, name="client", image=f"postgres:{version}", env=env)
    real.eventually(lambda: len(written(real)) > 3, "rows are written", timeout_s=240)

    hand_over(db, "db-1")
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over", timeout_s=240)
    db.settled()
    assert stands_by(db, "db-0")

    db.inside(
        "db-1", "sh", "-c", 'touch "$PGDATA.rewinding"'
    )  # so that it doesn't come back before somebody takes over
    real.sandbox.pods.signal(real.namespace, "db-1", "KILL")
    real.eventually(lambda: primary_of(db) == "db-0", "db-0 has taken over", timeout_s=240)
    before = len(written(real))
    real.eventually(lambda: len(written(real)) > before + 3, "rows are written", timeout_s=240)
    db.settled()
    told = {int(each) for each in written(real)}  # before what is there: none of these may be missing
    assert not told - {*rows(db, "db-0")}


def test_another_major_version_is_backed_up_and_begins_with_a_backup(db, version):  # noqa: F811 - a fixture
    checks = Path(catalog.find(f"postgres:{version}").programs[0], "pg_verifybackup")
    if subprocess.run([checks, "nothing"], capture_output=True, timeout=60, check=False).returncode < 0:
        pytest.skip(f"the pg_verifybackup of this build of PostgreSQL {version} crashes")
    backed_up(db, {"volumeClaimSpec": CLAIM})
    begin(db, "again")
    again = Other(db, "again")
    again.settled()
    assert rows_of(db, "again") == ["1000|500500"]
    again.end()
