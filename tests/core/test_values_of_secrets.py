"""What a value of a Secret stands for: one reading of it, wherever one is read."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.objects import decoded, decoded_text

UNREADABLE = {"no base64": "pa55word!", "letters of no base64": "ü===", "half of it": "YQ", "a number": 12.5}


@given(st.text())
def test_a_value_is_read_as_it_was_written(text):
    assert (
        decoded_text(base64.b64encode(text.encode("utf-8", "replace")).decode())
        == text.encode("utf-8", "replace").decode()
    )


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
def test_what_no_server_writes_is_refused_in_one_way(value):
    with pytest.raises(ValueError):  # noqa: PT011 - what whoever reads a Secret catches
        decoded_text(value)


def test_what_is_not_text_is_bytes_alone():
    assert decoded("/w==") == b"\xff"
    with pytest.raises(UnicodeDecodeError):
        decoded_text("/w==")
