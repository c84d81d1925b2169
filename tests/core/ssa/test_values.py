"""Values as they are stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.ssa.values import Form, quantity, same, stored

QUANTITIES = {
    "thousandths of whole ones": ("1000m", "1"),
    "a fraction": ("0.5", "500m"),
    "binary, carried over": ("1024Mi", "1Gi"),
    "binary, not carried": ("1000Mi", "1000Mi"),
    "a fraction of a binary unit": ("1.5Gi", "1536Mi"),
    "binary below 1024 turns decimal": ("0.5Ki", "512"),
    "decimal, carried over": ("1000M", "1G"),
    "bytes": ("1073741824", "1073741824"),
    "an exponent stays one": ("1e3", "1e3"),
    "a number": (2, "2"),
    "a float": (0.1, "100m"),
    "zero": ("0Mi", "0"),
    "negative": ("-1500m", "-1500m"),
    "rounded up to nano": ("0.0000000001", "1n"),
}


@pytest.mark.parametrize(("written", "canonical"), QUANTITIES.values(), ids=QUANTITIES)
def test_quantities(written, canonical):
    assert quantity(written) == canonical


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "Mi", "1GiB", "--1"])
def test_what_is_no_quantity_is_left_alone(text):
    assert stored(text, Form.QUANTITY) == text


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "m", "k", "Mi", "Gi", "e2"]))
def test_a_canonical_quantity_stays_as_it_is(number, suffix):
    once = quantity(f"{number}{suffix}")
    assert quantity(once) == once


FORMS = {
    "a time in another zone": ("2024-01-01T02:00:00+02:00", Form.TIME, "2024-01-01T00:00:00Z"),
    "a time with a fraction": ("2024-01-01T00:00:00.75Z", Form.TIME, "2024-01-01T00:00:00Z"),
    "a micro time": ("2024-01-01T00:00:00Z", Form.MICRO_TIME, "2024-01-01T00:00:00.000000Z"),
    "base64 with line breaks": ("YW\nI=\n", Form.BYTES, "YWI="),
    "no base64": ("%", Form.BYTES, "%"),
}


@pytest.mark.parametrize(("written", "form", "expected"), FORMS.values(), ids=FORMS)
def test_stored_forms(written, form, expected):
    assert stored(written, form) == expected


SAME = {
    "numbers by value": (1, 1.0, True),
    "one is not true": (1, True, False),
    "zero is not false": (0, False, False),
    "nested booleans": ({"a": [1]}, {"a": [True]}, False),
    "80 is not '80'": (80, "80", False),
    "null is not absent": ({"a": None}, {}, False),
    "order of keys is nothing": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    "order of items is something": ([1, 2], [2, 1], False),
}


@pytest.mark.parametrize(("one", "other", "expected"), SAME.values(), ids=SAME)
def test_same(one, other, expected):
    assert same(one, other) is expected
    assert same(other, one) is expected
