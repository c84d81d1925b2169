"""What the Job of a restore does before and after etcdutl, on real snapshots of etcd 3.6.16: what is refused, and what whoever is killed in between leaves."""

import gzip
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from kubectl_reconcile_operators.etcd_backup.agent import seed as seeds
from kubectl_reconcile_operators.etcd_backup.agent.restore import main

WHOLE = gzip.decompress((Path(__file__).parents[1] / "etcd_backup/snapshots/r201.db.gz").read_bytes())
SPOILT = WHOLE[:9000] + bytes([WHOLE[9000] ^ 1]) + WHOLE[9001:]
OLD, NEW = "20261121T030000Z-r200.db", "20261122T030000Z-r201.db"


class Desk:
    """A claim with backups, a member's volume, and the folder for work."""

    def __init__(self, root, capsys):
        self.root, self.capsys = root, capsys
        for name in ("backups/db", "volume", "work"):
            (root / name).mkdir(parents=True)
        self.data = root / "volume/data"
        self.put(NEW)

    def put(self, name, content=WHOLE):
        (self.root / "backups/db" / name).write_bytes(content)

    def run(self, part, *more, restore="r-1", attempt="a"):
        """Run a part; return its exit status and what it says."""
        places = [f"--{name}={self.root / path}" for name, path in (
            ("folder", "backups/db"), ("work", "work"), ("data", "volume/data"), ("termination-log", "none"))]  # fmt: skip
        status = main([part, *places, f"--restore={restore}", f"--attempt={attempt}", *more])
        return status, json.loads(self.capsys.readouterr().out)

    def etcdutl(self, attempt="a", content=b"data"):
        """Leave what etcdutl leaves."""
        member = self.root / f"volume/restoring-{attempt}/member"
        for folder, name in (("snap", "db"), ("wal", "0.wal")):
            (member / folder).mkdir(parents=True)
            (member / folder / name).write_bytes(content)

    def left(self):
        return sorted(each.name for each in (self.root / "volume").iterdir())


@pytest.fixture
def desk(tmp_path, capsys):
    return Desk(tmp_path, capsys)


def test_the_newest_is_checked_and_becomes_data_by_the_last_rename(desk):
    desk.put(OLD)
    assert desk.run("prepare") == (0, {"checked": f"db/{NEW}"})
    assert (desk.root / "work/snapshot.db").read_bytes() == WHOLE
    desk.etcdutl()
    assert not desk.data.exists()
    status, said = desk.run("finish")
    assert (status, said["file"], said["revision"], said["sizeBytes"]) == (0, f"db/{NEW}", 201, len(WHOLE))
    assert said["sha256"] == hashlib.sha256(WHOLE).hexdigest()
    assert desk.left() == ["data", "restored.json"]


REFUSED = {
    "damaged": ((NEW, SPOILT), [], "SnapshotDamaged", f".spec.backup.snapshot, such as {OLD}"),
    "cut off": ((NEW, WHOLE[:-600]), [], "SnapshotDamaged", "a complete snapshot"),
    "another file of its name": ((NEW, WHOLE), ["--sha256=00"], "SnapshotDamaged", "and was 00"),
    "another size": ((NEW, WHOLE), ["--size=7"], "SnapshotDamaged", "and had 7"),
    "not there": ((NEW, WHOLE), ["--snapshot=20200101T000000Z-r1.db"], "SnapshotNotFound", NEW),
}


@pytest.mark.parametrize(("file", "more", "reason", "words"), REFUSED.values(), ids=REFUSED)
def test_what_isnt_the_whole_backup_is_refused_and_writes_nothing(desk, file, more, reason, words):
    desk.put(OLD)
    desk.put(*file)
    status, said = desk.run("prepare", *more)
    assert (status, said["error"]) == (1, reason)
    assert words in said["message"]
    assert desk.left() == []


def test_a_claim_without_backups_says_so(desk):
    (desk.root / "backups/db" / NEW).unlink()
    assert desk.run("prepare")[1]["error"] == "SnapshotNotFound"
    (desk.root / "backups/db").rmdir()
    assert "no folder db" in desk.run("prepare")[1]["message"]


def test_data_of_somebody_else_stays(desk):
    desk.data.mkdir()
    (desk.data / "precious").write_text("x")
    status, said = desk.run("prepare")
    assert (status, said["error"]) == (1, "NotEmpty")
    assert (desk.data / "precious").exists()


KILLED = {
    "before etcdutl": lambda desk: desk.run("prepare"),
    "in etcdutl": lambda desk: (desk.run("prepare"), (desk.root / "volume/restoring-a/member").mkdir(parents=True)),
    "after etcdutl": lambda desk: (desk.run("prepare"), desk.etcdutl(content=b"half")),
    "after the mark": lambda desk: (
        desk.run("prepare"), desk.etcdutl(content=b"half"), desk.run("finish"),
        desk.data.rename(desk.root / "volume/restoring-a"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("killed", KILLED.values(), ids=KILLED)
def test_whoever_comes_after_one_that_was_killed_does_it_over(desk, killed):
    killed(desk)
    assert not desk.data.exists()
    assert desk.run("prepare", attempt="b")[0] == 0
    assert [each for each in desk.left() if each != "restored.json"] == []
    desk.etcdutl("b")
    assert desk.run("finish", attempt="b")[0] == 0
    assert (desk.data / "member/snap/db").read_bytes() == b"data"


def test_what_was_done_and_couldnt_be_told_stays_and_is_told(desk):
    desk.run("prepare")
    desk.etcdutl()
    first = desk.run("finish")
    assert desk.run("prepare", attempt="b")[0] == 0
    desk.etcdutl("b", b"never used")
    assert desk.run("finish", attempt="b") == first
    assert desk.left() == ["data", "restored.json"]
    assert (desk.data / "member/snap/db").read_bytes() == b"data"


def test_another_choice_of_the_same_restore_takes_the_place_of_the_first(desk):
    desk.run("prepare")
    desk.etcdutl(content=b"first")
    desk.run("finish")
    mark = desk.root / "volume/restored.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "sha256": "00"}))  # it was of another file
    assert desk.run("prepare", attempt="b")[0] == 0
    assert not desk.data.exists()
    desk.etcdutl("b")
    desk.run("finish", attempt="b")
    assert (desk.data / "member/snap/db").read_bytes() == b"data"
    assert desk.run("prepare", restore="r-2")[1]["error"] == "NotEmpty"


def test_what_etcdutl_left_half_is_never_data(desk):
    desk.run("prepare")
    desk.etcdutl()
    shutil.rmtree(desk.root / "volume/restoring-a/member/wal")
    status, said = desk.run("finish")
    assert (status, said["error"]) == (1, "SnapshotDamaged")
    assert not desk.data.exists()


def test_a_volume_without_room_is_refused_before_anything_is_written(desk):
    free = os.statvfs(desk.root).f_bavail * os.statvfs(desk.root).f_frsize
    large = seeds.ChosenSnapshot(f"db/{NEW}", 201, free + 1, "")
    with pytest.raises(seeds.NoRoomError, match="are free"):
        seeds.SeedVolume(desk.data, "r-1").check_room(large)
