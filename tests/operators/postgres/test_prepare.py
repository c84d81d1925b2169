"""What the first container of an instance's pod leaves on its volume, whatever its programs come to: no server starts on what isn't whole, and none that stands by takes writes."""

import signal
import subprocess
import sys

import pytest

from kubectl_reconcile.module_api import Context
from kubectl_reconcile_operators.postgres.children import Begin, new_pod
from kubectl_reconcile_operators.postgres.situation import CANT_REWIND, HOLDS_NOTHING
from kubectl_reconcile_operators.postgres.spec import database_spec
from tests.operators.postgres.world import World
from tests.talking import talking
from tests.waiting import eventually

CANT, OTHER, NOBODY = CANT_REWIND, 4, 6
COPIES = """#!/bin/sh
for each; do case $each in --pgdata=*) folder=${each#--pgdata=};; esac; done
mkdir -p "$folder/pg_replslot/theirs"; echo 17 > "$folder/PG_VERSION"; echo "primary_slot_name = 'theirs'" > "$folder/postgresql.auto.conf"
echo "$@" >> "$CALLS"
exit "${COPY_ENDS:-0}"
"""
REWINDS = """#!/bin/sh
echo "primary_slot_name = 'theirs'" > "$PGDATA/postgresql.auto.conf"
exit "${REWIND_ENDS:-0}"
"""
PROGRAMS = {
    "initdb": COPIES,
    "pg_basebackup": COPIES,
    "pg_rewind": REWINDS,
    "psql": "#!/bin/sh\nexit ${ASK_ENDS:-0}\n",
    "sync": "#!/bin/sh\n",
    "sleep": "#!/bin/sh\n",
}


class Volume:
    """A volume, and the programs of an image that are played."""

    def __init__(self, folder):
        self.folder, self.data, self.calls = folder, folder / "pgdata", folder / "calls"
        for name, text in PROGRAMS.items():
            program = folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)

    def prepare(self, begin, **environ):
        """Run the container of a pod that begins so; return how it ended."""
        cr = World(replicas=2).cr
        pod = new_pod(database_spec(cr), Context("", "mydatabase", cr), "db-1", begin, "")
        (container,) = pod["spec"]["initContainers"]
        own = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        paths = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "PGDATA": str(self.data), "CALLS": str(self.calls)}
        secrets = {"PASSWORD": "a-secret", "PGPASSWORD": "a-secret", "SYSTEM": ""}
        done = subprocess.run(
            container["command"],
            env={**own, **secrets, **paths, **environ},
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode

    @property
    def stands_by(self):
        return (self.data / "standby.signal").exists()

    @property
    def settings(self):
        return (self.data / "postgresql.auto.conf").read_text()

    def hold(self, version="17"):
        self.data.mkdir()
        (self.data / "PG_VERSION").write_text(f"{version}\n")
        return self


@pytest.fixture
def volume(tmp_path):
    return Volume(tmp_path)


@pytest.mark.parametrize("begin", [Begin.REPLICA, Begin.REWIND])
def test_a_copy_that_was_killed_is_no_data_and_is_made_again(volume, begin):
    assert volume.prepare(begin, COPY_ENDS="137") == 137
    assert not volume.data.exists()
    assert volume.prepare(begin) == 0
    assert volume.stands_by
    assert len(volume.calls.read_text().splitlines()) == 2


def test_a_database_whose_making_was_killed_is_no_data(volume):
    assert volume.prepare(Begin.INITDB, COPY_ENDS="137") == 137
    assert not volume.data.exists()
    assert volume.prepare(Begin.INITDB) == 0
    assert not volume.stands_by


def test_no_database_is_made_where_one_has_begun_before(volume):
    assert volume.prepare(Begin.INITDB, SYSTEM="7000") == HOLDS_NOTHING
    assert not volume.data.exists()
    assert volume.hold().prepare(Begin.INITDB, SYSTEM="7000") == 0


@pytest.mark.parametrize("begin", [Begin.REPLICA, Begin.REWIND])
def test_a_replica_stands_by_on_whatever_its_volume_holds(volume, begin):
    volume.hold()
    assert volume.prepare(begin) == 0
    assert volume.stands_by
    assert "primary_slot_name = 'db_1'" in volume.settings
    assert "theirs" not in volume.settings


def test_a_copy_has_a_slot_of_its_own_and_none_of_its_source(volume):
    assert volume.prepare(Begin.REPLICA) == 0
    assert [*(volume.data / "pg_replslot").iterdir()] == []
    assert "primary_slot_name = 'db_1'" in volume.settings


@pytest.mark.parametrize("begin", Begin)
def test_no_password_is_on_the_volume(volume, begin):
    volume.prepare(begin)
    held = [each.read_text() for each in volume.folder.rglob("*") if each.is_file()]
    assert not any("a-secret" in each for each in held)


def test_a_primary_takes_writes_though_it_stood_by_before(volume):
    volume.hold()
    volume.prepare(Begin.REPLICA)
    assert volume.prepare(Begin.PRIMARY) == 0
    assert not volume.stands_by
    assert "primary_conninfo" not in volume.settings


@pytest.mark.parametrize("ends", ["1", "137"])
@pytest.mark.parametrize("begin", Begin)
def test_a_folder_that_is_half_rewound_is_never_started(volume, begin, ends):
    volume.hold()
    assert volume.prepare(Begin.REWIND, REWIND_ENDS=ends) == CANT
    assert volume.prepare(begin) == CANT


def test_a_rewind_without_anybody_to_ask_leaves_the_folder_as_it_was(volume):
    volume.hold()
    assert volume.prepare(Begin.REWIND, ASK_ENDS="2") == NOBODY
    assert volume.prepare(Begin.REPLICA) == 0


@pytest.mark.parametrize(
    ("held", "ends"), [("", HOLDS_NOTHING), ("16", OTHER)], ids=["nothing", "another major version"]
)
def test_what_a_volume_does_not_hold_is_not_started(volume, held, ends):
    if held:
        volume.hold(held)
    assert volume.prepare(Begin.PRIMARY) == ends


def test_the_node_never_decides_that_a_server_starts_again():
    world = World(replicas=2)
    world.settle()
    for pod in world.pods.values():
        assert pod["spec"]["restartPolicy"] == "Never"
        assert not any("livenessProbe" in each for each in pod["spec"]["containers"])


# --- how a server is run ---------------------------------------------------------------------------

SERVES = f"""#!{sys.executable}
import os, pathlib, signal
calls = pathlib.Path(os.environ["CALLS"])
def ended(*_):
    calls.write_text("begun ended")
    os._exit(0)
signal.signal(signal.SIGINT, ended)  # which whoever begins in the background of a shell ignores at first
calls.write_text("begun")
while True:
    signal.pause()
"""


def test_whoever_follows_logs_in_with_the_password_that_the_secret_has_now(tmp_path):
    cr = World(replicas=2).cr
    (container,) = new_pod(database_spec(cr), Context("", "mydatabase", cr), "db-1", Begin.REPLICA, "")["spec"][
        "containers"
    ]
    assert not any("valueFrom" in each for each in container["env"])
    program, secret, calls = tmp_path / "bin/postgres", tmp_path / "password", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(SERVES)
    program.chmod(0o755)
    (tmp_path / "bin/sleep").write_text('#!/bin/sh\necho >> "$CALLS.looks"\nexec /bin/sleep 0.05\n')
    (tmp_path / "bin/sleep").chmod(0o755)
    passes = tmp_path / "passes"
    environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "CALLS": str(calls), "PGPASSFILE": str(passes)}
    environ["REPLICATION"] = str(tmp_path)
    with talking(container["command"], env=environ) as server:
        eventually(lambda: calls.exists() and "begun" in calls.read_text(), "the server has begun")
        assert not passes.exists()  # nobody has a password yet
        for password, line in (("first", "*:*:*:*:first\n"), ("a:b\\c%s&d", "*:*:*:*:a\\:b\\\\c%s&d\n")):
            secret.write_text(password)
            eventually(lambda line=line: passes.exists() and passes.read_text() == line, "the password is taken")
            assert passes.stat().st_mode & 0o777 == 0o600
        was, looks = passes.stat().st_ino, (tmp_path / "calls.looks").stat().st_size
        eventually(lambda: (tmp_path / "calls.looks").stat().st_size > looks + 3, "it has looked again")
        assert passes.stat().st_ino == was  # it is written where the password has changed alone
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    assert calls.read_text().split() == ["begun", "ended"]
