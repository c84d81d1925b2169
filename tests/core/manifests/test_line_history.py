"""Which commit brought a line: versions of a file, compared line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.line_history import bringers
from kubectl_reconcile.core.manifests.revision import Commit


def versions(*texts):
    """Versions of a file of one-letter lines, newest first, by commits 9, 8, …; None where it wasn't there."""
    return [
        (Commit(str(9 - at), "", "", ""), None if text is None else "\n".join(text).encode())
        for at, text in enumerate(texts)
    ]


def brought(now, *texts, complete=True):
    lines = range(1, len(now) + 1)
    found = bringers("\n".join(now).encode(), versions(*texts), lines, complete=complete)
    return "".join(found[line].sha if line in found else "-" for line in lines)


HISTORIES = {
    "one commit": (("abc", "abc"), "999"),
    "a line in the middle": (("abc", "abc", "ac"), "898"),
    "a line that was changed": (("abc", "abc", "axc"), "898"),
    "lines that were moved down": (("xxabc", "xxabc", "abc", "ab"), "99778"),
    "a file that was recreated": (("ab", "ab", None, "ab"), "99"),
    "a line that went and came": (("ab", "ab", "a", "ab"), "79"),
    "what was never committed": (("abx", "ab"), "99-"),
    "no history": (("ab",), "--"),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_a_line_was_brought_by_a_commit(texts, expected):
    assert brought(*texts) == expected


def test_what_is_older_than_what_is_known_is_left_out():
    assert brought("ab", "ab", "a", complete=False) == "-9"


def test_lines_that_are_not_there_are_left_out():
    assert bringers(b"a\n", versions("a"), [0, 2], complete=True) == {}


def test_no_more_versions_are_read_than_it_takes():
    def read():
        yield from versions("ab", "a")
        raise AssertionError("one more was read")

    assert bringers(b"a\nb", read(), [2], complete=True)[2].sha == "9"


@given(st.lists(st.text("abc", max_size=6), min_size=1, max_size=5))
def test_a_line_is_brought_by_a_commit_after_which_it_is_always_there(texts):
    found = brought(texts[0], *texts)
    for line, sha in zip(texts[0], found, strict=True):
        assert all(line in text for text in texts[: 10 - int(sha)])
