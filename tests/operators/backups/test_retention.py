"""Which backups stay where several histories share a folder: what was lost and made again under its name begins another one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile_operators.backups.retention import COPY_NAMES, SNAPSHOT_NAMES, RetentionRule
from kubectl_reconcile_operators.backups.runs import BackupProgress, BackupRun, unnamed

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LOST, NEW = "7312345678901234567", "7399999999999999999"


def copies(hours, *, of="", number=1, names=COPY_NAMES):
    """The names of backups that were begun so many hours ago."""
    return [names.name_of(NOW - timedelta(hours=each), number, of) for each in hours]


def test_what_begins_empty_never_takes_the_place_of_what_was_lost():
    good, empty = copies([9, 8], of=LOST), copies([3, 2, 1], of=NEW)
    assert COPY_NAMES.surplus([*good, *empty], RetentionRule(2, 0, NEW), NOW) == empty[:1]
    assert COPY_NAMES.strangers([*good, *empty], RetentionRule(2, 0, NEW)) == good


def test_numbers_that_begin_anew_are_another_history_though_the_name_is_the_same():
    before = [SNAPSHOT_NAMES.name_of(NOW - timedelta(hours=9 - each), 100 + each, "76b1") for each in (0, 1)]
    after = [SNAPSHOT_NAMES.name_of(NOW - timedelta(hours=5 - each), 2 + each, "76b1") for each in (0, 1, 2)]
    assert SNAPSHOT_NAMES.surplus([*after, *before], RetentionRule(2, 0, "76b1"), NOW) == after[:1]


def test_the_newest_of_each_history_gets_as_old_as_it_likes():
    good, empty = copies([900, 800], of=LOST), copies([3, 2], of=NEW)
    assert COPY_NAMES.surplus([*good, *empty], RetentionRule(0, 1, NEW), NOW) == good[:1]


@pytest.mark.parametrize(("known", "going"), [(2, 2), (1, 1), (0, 0)])
def test_backups_that_name_nothing_count_where_they_are_known_to_be_ones_own(known, going):
    old, new = copies([9, 8]), copies([2, 1], of=NEW)
    rule = RetentionRule(2, 0, NEW, frozenset(old[:known]))
    assert COPY_NAMES.surplus([*old, *new], rule, NOW) == old[:going]
    assert COPY_NAMES.strangers([*old, *new], rule) == old[known:]


HOURS = st.lists(st.integers(0, 1000), unique=True, max_size=12)


@given(st.dictionaries(st.sampled_from(["", LOST, NEW, "1"]), HOURS), st.integers(0, 5), st.integers(0, 30))
def test_each_history_is_kept_as_if_it_were_alone(histories, keep, days):
    rule = RetentionRule(keep, days, NEW)
    apart = [name for of, hours in histories.items() for name in COPY_NAMES.surplus(copies(hours, of=of), rule, NOW)]
    together = COPY_NAMES.surplus([name for of, hours in histories.items() for name in copies(hours, of=of)], rule, NOW)
    assert sorted(together) == sorted(apart)
    assert together == COPY_NAMES.in_order_of_time(together)


@given(st.integers(1, 10**18), st.sampled_from(["", "7312345678901234567", "76b1d76d2f14e34b", "0"]))
def test_a_name_says_what_it_was_made_of(number, of):
    name = COPY_NAMES.name_of(NOW, number, of)
    found = COPY_NAMES.stored(name)
    assert (found.began, found.number, found.of, found.name) == (NOW, number, of, name)


def test_backups_of_before_are_known_by_the_runs_that_made_them():
    files = {"a": "db/20261120T030000Z-t1.tar.gz", "b": f"db/20261120T040000Z-t1-{NEW}.tar.gz", "c": "", "d": "x.txt"}
    runs = [BackupRun(name, "", BackupProgress.SUCCEEDED, told={"file": file}) for name, file in files.items()]
    assert unnamed(runs, COPY_NAMES) == ("20261120T030000Z-t1.tar.gz",)
