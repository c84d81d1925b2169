"""Ranges of versions: what is in them, and which tag is the newest."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.oci.reference import version_of
from kubectl_reconcile.core.resources.semver import RangeError, Version, VersionRange

RANGES = {
    "1.2.3": (["1.2.3", "v1.2.3", "1.2.3+b"], ["1.2.4", "1.2.2", "1.2.3-rc.1"]),
    "=1.2.3": (["1.2.3"], ["1.2.4"]),
    "!=1.2.3": (["1.2.4", "1.2.2"], ["1.2.3", "1.2.4-rc.1"]),
    ">=1.2.3": (["1.2.3", "2.0.0"], ["1.2.2", "2.0.0-rc.1"]),
    ">1.2.3": (["1.2.4"], ["1.2.3", "1.2.3+b"]),
    "<2": (["1.9.9", "0.0.0"], ["2.0.0", "2.0.0-rc.1"]),
    "<=1.2.3": (["1.2.3", "0.1.0"], ["1.2.4"]),
    ">=1.2.0 <2": (["1.2.0", "1.9.0"], ["1.1.9", "2.0.0"]),
    ">= 1.2.0, < 2.0.0": (["1.2.0", "1.9.0"], ["1.1.9", "2.0.0"]),
    "1.2": (["1.2.0", "1.2.9"], ["1.3.0", "1.1.0"]),
    "1.2.x": (["1.2.0", "1.2.9"], ["1.3.0"]),
    "1.X": (["1.0.0", "1.9.9"], ["2.0.0"]),
    "1.x.3": (["1.0.0", "1.9.9"], ["2.0.0"]),
    "*": (["0.0.0", "9.9.9"], ["1.0.0-rc.1"]),
    ">1.2": (["1.3.0"], ["1.2.9", "1.2.0"]),
    "<=1.2": (["1.2.9", "1.0.0"], ["1.3.0"]),
    "!=1.2": (["1.3.0"], ["1.2.9"]),
    ">=*": (["1.0.0"], ["1.0.0-rc.1"]),
    "~1.2.3": (["1.2.3", "1.2.9"], ["1.3.0", "1.2.2"]),
    "~1.2": (["1.2.0", "1.2.9"], ["1.3.0"]),
    "~1": (["1.0.0", "1.9.0"], ["2.0.0"]),
    "~>1.2.3": (["1.2.9"], ["1.3.0"]),
    "^1.2.3": (["1.2.3", "1.9.0"], ["2.0.0", "1.2.2", "2.0.0-rc.1"]),
    "^0.2.3": (["0.2.3", "0.2.9"], ["0.3.0"]),
    "^0.0.3": (["0.0.3"], ["0.0.4", "0.0.2"]),
    "^0.0": (["0.0.9"], ["0.1.0"]),
    "^0": (["0.9.9"], ["1.0.0"]),
    "1.2 - 1.4": (["1.2.0", "1.4.9"], ["1.1.9", "1.5.0"]),
    "1.2.3 - 1.4.5": (["1.2.3", "1.4.5"], ["1.4.6"]),
    "1.x || >=3.0.0 <4": (["1.5.0", "3.1.0"], ["2.0.0", "4.0.0"]),
    ">=1.2.3-0": (["1.2.3-rc.1", "1.2.3", "1.3.0-alpha"], ["1.2.2"]),
    "^1.2.3-rc.1": (["1.2.3-rc.2", "1.2.3", "1.5.0"], ["1.2.3-beta", "2.0.0-rc.1"]),
    "1.2.3-rc.1": (["1.2.3-rc.1"], ["1.2.3-rc.1.0", "1.2.3-rc.2", "1.2.3"]),
    ">1.2.3-rc.1": (["1.2.3-rc.1.0", "1.2.3"], ["1.2.3-rc.1", "1.2.3-rc.0"]),
    "v1.2.3": (["1.2.3"], []),
}


@pytest.mark.parametrize("text", RANGES)
def test_a_range_has_what_it_says(text):
    inside, outside = RANGES[text]
    found = VersionRange.of(text)
    assert [each for each in inside if not found.has(Version.of(each))] == []
    assert [each for each in outside if found.has(Version.of(each))] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "||",
        "1.2.3 ||",
        "latest",
        ">=",
        "1.2.3.4",
        "01.2.3",
        "1.2-rc",
        ">=1.2<2",
        "1" * 300,
        "1.2.3-",
        "=>>1",
        ">*",
        "^x",
        "!=X",
    ],
)
def test_what_is_no_range_is_refused(text):
    with pytest.raises(RangeError):
        VersionRange.of(text)


ORDER = [
    "1.0.0-0",
    "1.0.0-2",
    "1.0.0-11",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.1.0",
    "2.0.0",
]


def test_versions_are_ordered_as_the_specification_says():
    found = [Version.of(each) for each in ORDER]
    assert found == sorted(found)
    assert len(set(found)) == len(ORDER)


NEWEST = {
    "the newest": ("*", ["1.2.0", "1.10.0", "1.9.0"], "1.10.0"),
    "with a v before it": (">=1", ["v1.2.0", "v1.3.0"], "v1.3.0"),
    "none": (">=3", ["1.0.0"], ""),
    "what isn't a version is passed over": (
        "*",
        ["latest", "1.2", "1.0.0", "sha256-00.sig", "01.0.0", "1.0.0.0"],
        "1.0.0",
    ),
    "of one version the last by the alphabet": ("*", ["1.0.0_a", "1.0.0_b", "1.0.0"], "1.0.0_b"),
    "no release": (">=1.0.0-0", ["1.0.0", "1.1.0-rc.1"], "1.1.0-rc.1"),
}


@pytest.mark.parametrize(("text", "names", "found"), NEWEST.values(), ids=NEWEST)
def test_the_newest_of_some_tags_is_found(text, names, found):
    assert VersionRange.of(text).newest(names, version_of) == found
    assert VersionRange.of(text).newest(reversed(names), version_of) == found


NUMBERS = st.tuples(*[st.integers(0, 12)] * 3)


@given(NUMBERS, NUMBERS)
def test_what_is_from_and_below_a_version_is_everything(one, other):
    version = Version.made(*other)
    text = ".".join(map(str, one))
    from_there, below = VersionRange.of(f">={text}"), VersionRange.of(f"<{text}")
    assert from_there.has(version) is not below.has(version)
    assert VersionRange.of(f"!={text}").has(version) is not VersionRange.of(text).has(version)
    assert VersionRange.of(f">{text}").has(version) is not VersionRange.of(f"<={text}").has(version)


@given(st.text(alphabet="0123456789.<>=!~^xX*| ,-vrc+", max_size=40))
def test_no_text_breaks_the_reader(text):
    with contextlib.suppress(RangeError):
        assert VersionRange.of(text).text == text
