"""What the Job of a backup does, without an etcd: what a snapshot holds, what is refused, what stays; on real snapshots of etcd 3.6.16."""

import argparse
import gzip
import hashlib
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile_operators.backups.agent.folder import opened
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError
from kubectl_reconcile_operators.backups.agent.program import retained
from kubectl_reconcile_operators.backups.retention import RetentionRule
from kubectl_reconcile_operators.etcd_backup.agent.database import revision_of
from kubectl_reconcile_operators.etcd_backup.agent.gateway import AnsweringMember, in_order
from kubectl_reconcile_operators.etcd_backup.agent.snapshots import SNAPSHOTS

FOLDER = Path(__file__).parent / "snapshots"
WHOLE = gzip.decompress((FOLDER / "r201.db.gz").read_bytes())
COMPACTED = gzip.decompress((FOLDER / "r202-compacted.db.gz").read_bytes())
NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
name_of, stored, surplus = SNAPSHOTS.names.name_of, SNAPSHOTS.names.stored, SNAPSHOTS.names.surplus


def test_a_snapshot_is_written_checked_and_named_by_its_revision(tmp_path):
    folder = opened(tmp_path / "db", SNAPSHOTS)
    found = folder.write([WHOLE[:1000], WHOLE[1000:]], NOW, least=201)
    assert (found.name, found.number, found.size) == ("20261122T030000Z-r201.db", 201, len(WHOLE))
    assert found.sha256 == hashlib.sha256(WHOLE).hexdigest()
    assert [each.name for each in folder.path.iterdir()] == [found.name]


def test_of_a_store_whose_last_keys_were_compacted_away_the_revision_is_that_of_the_compaction():
    assert revision_of(COMPACTED) == 202


def signed(data):
    """What is damaged, with a digest that fits."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


SPOILT = {
    "cut off": (WHOLE[:-600], "a complete snapshot"),
    "without a digest": (WHOLE[:-32], "a complete snapshot"),
    "nothing": (b"", "a complete snapshot"),
    "another byte": (WHOLE[:9000] + bytes([WHOLE[9000] ^ 1]) + WHOLE[9001:], "digest"),
    "a sector less": (WHOLE[: -32 - 512] + WHOLE[-32:], "digest"),
    "something else, well signed": (signed(bytes(4096 + 32)), "isn't a bbolt database"),
    "older than what etcd has": (WHOLE, "it holds 201, and should hold at least 202"),
}


@pytest.mark.parametrize(("data", "words"), SPOILT.values(), ids=SPOILT)
def test_what_is_no_whole_snapshot_is_refused_and_leaves_nothing(tmp_path, data, words):
    folder = opened(tmp_path, SNAPSHOTS)
    with pytest.raises(DamagedError, match=words):
        folder.write([data], NOW, least=202)
    assert not list(tmp_path.iterdir())


def test_pages_that_are_nonsense_are_told_and_never_followed_for_ever(tmp_path):
    dice = random.Random(4)  # noqa: S311 - the same nonsense each time
    for _ in range(300):
        data = bytearray(WHOLE)
        for _ in range(40):
            data[dice.randrange(len(data) - 32)] = dice.randrange(256)
        file = tmp_path / "x"
        file.write_bytes(signed(bytes(data)))
        try:
            assert SNAPSHOTS.checked(file, NOW).number >= 1
        except DamagedError:
            continue


def test_what_broke_off_is_swept_once_nobody_can_write_it_any_more(tmp_path):
    folder = opened(tmp_path, SNAPSHOTS)
    (tmp_path / "a.part").write_bytes(b"x")
    folder.sweep(60)
    assert list(tmp_path.iterdir())
    folder.sweep(-1)
    assert not list(tmp_path.iterdir())


TIMES = st.lists(st.integers(0, 10_000_000), unique=True, max_size=30)
BACKUPS = st.tuples(TIMES, st.lists(st.integers(1, 10**12), min_size=30, max_size=30)).map(
    lambda drawn: [
        name_of(NOW - timedelta(seconds=ago), revision)
        for ago, revision in zip(sorted(drawn[0], reverse=True), sorted(drawn[1]), strict=False)
    ]
)
"""Backups of one history: revisions go up."""


@given(BACKUPS, st.integers(0, 10), st.integers(0, 100))
def test_retention_keeps_the_newest_and_no_more_than_it_may(names, keep, days):
    going = surplus([*names, "notes.txt", "x.part", "20261322T000000Z-r1.db"], RetentionRule(keep, days), NOW)
    left = [each for each in names if each not in going]
    assert set(going) <= set(names)
    assert len(left) == len(names) if not keep and not days else True
    if not names:
        return
    newest = max(names, key=lambda name: (stored(name).began, stored(name).number))
    assert newest in left
    assert not keep or len(left) <= keep
    oldest = NOW - timedelta(days=days)
    assert not days or all(stored(name).began >= oldest for name in left if name != newest)
    assert all(stored(gone) < stored(stays) for gone in going for stays in left)
    if keep and not days:
        assert len(left) == min(keep, len(names))


def test_an_old_backup_that_cannot_be_deleted_is_told_and_does_not_undo_the_new_one(tmp_path):
    (tmp_path / name_of(NOW - timedelta(days=1), 7)).mkdir()  # no file to unlink
    folder = opened(tmp_path, SNAPSHOTS)
    written = folder.write([WHOLE], NOW, least=201)
    gone, why = retained(argparse.Namespace(keep=1, max_age_days=0.0, ours=[]), folder, SNAPSHOTS.names, written, NOW)
    assert gone == []
    assert why.startswith("old backups couldn't be deleted: ")
    assert (tmp_path / written.name).is_file()


def test_revisions_count_as_numbers():
    names = [name_of(NOW, 999), name_of(NOW, 1000)]
    assert surplus(names, RetentionRule(1, 0), NOW) == names[:1]


def member(name, revision, **more):
    return AnsweringMember(name, 1, revision, "3.6.16", 1, **{"is_leader": False, "is_sure": True, **more})


ORDERS = {
    "followers first, the leader last": (
        [member("a", 9, is_leader=True), member("b", 8), member("c", 9)], ["c", "b", "a"],
    ),
    "who is sure comes before who isn't": (
        [member("a", 10, is_sure=False), member("b", 8, is_leader=True)], ["b", "a"],
    ),
    "without a majority the highest revision comes first, leader or not": (
        [member("a", 5, is_sure=False), member("b", 7, is_sure=False, is_leader=True), member("c", 7, is_sure=False)],
        ["c", "b", "a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("members", "expected"), ORDERS.values(), ids=ORDERS)
def test_whom_to_ask(members, expected):
    assert [each.endpoint for each in in_order(members)] == expected
