"""Whether a log ends in order, by bytes that a PostgreSQL has written when it was stopped."""

import pytest

from kubectl_reconcile_operators.postgres.driver import _bytes_of
from kubectl_reconcile_operators.postgres.server import wal
from kubectl_reconcile_operators.postgres.server.wal import TAIL, closed_at

START, END = 0x15168A8, 0x15168A8 + 120
BEFORE = bytes.fromhex("22000000d5020000e867510100000000000100007079f375ff08930a67a0f4030300000000000000")
RECORD = bytes.fromhex(
    "7200000000000000806851010000000000000000afe7f40aff58a86851010000000001000000010000000100000000000000d602000000000000"
    "034000000100000000000000cc020000010000000100000001000000000000007087046b0000000000000000000000000000000000000000000000000000"
)


def spoilt(at):
    return RECORD[:at] + bytes([RECORD[at] ^ 1]) + RECORD[at + 1 :]


def test_a_log_that_ends_with_the_record_of_a_server_that_was_stopped_says_where():
    assert closed_at(BEFORE + RECORD, END) == START
    assert closed_at(RECORD, END) == START


TAILS = {
    "nothing": (b"", END),
    "less than a header": (RECORD[-16:], END),
    "another record is the last": (BEFORE, START),
    "more comes after it": (RECORD + BEFORE, END + len(BEFORE)),
    "it is cut off": (RECORD[:-8], END - 8),
    "it stands elsewhere": (RECORD, END + 8192),
    "it is an online checkpoint": (spoilt(16), END),
    "a byte of what it says is another": (spoilt(60), END),
    "its checksum is another": (spoilt(20), END),
    "zeros": (bytes(512), END),
    "what says that it is longer than it is": (b"\xff" * 512, END),
}


@pytest.mark.parametrize(("tail", "end"), TAILS.values(), ids=TAILS)
def test_any_other_end_says_nothing(tail, end):
    assert closed_at(tail, end) is None


def test_of_a_tail_however_long_only_the_end_is_looked_at(monkeypatch):
    looked = []
    monkeypatch.setattr(wal, "_is_closing", lambda _, start: bool(looked.append(start)))
    assert closed_at(bytes(1_000_000), 2_000_000) is None
    assert len(looked) <= TAIL // 8
    monkeypatch.undo()
    assert closed_at(bytes(100_000) + RECORD, END) == START


ODD = {
    "no row": [],
    "an empty row": [()],
    "nothing known": [(None,)],
    "two rows": [("00",), ("00",)],
    "no digits": [("zz",)],
    "half a byte": [("0",)],
    "more than was asked for": [("00" * (TAIL + 1),)],
}


@pytest.mark.parametrize("rows", ODD.values(), ids=ODD)
def test_what_a_server_may_not_answer_is_taken_for_nothing(rows):
    assert _bytes_of(rows) == b""


def test_bytes_are_what_a_server_gives_as_digits():
    assert _bytes_of([(RECORD.hex(),)]) == RECORD
