"""What stands against a release, and what one changes in the repository's own files."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from releasing.plan import Repository, Wish, left_to_do, problems, version_in, with_release, with_version

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n"
WISH = Wish("0.2.0", "https://example.com/releases/v0.2.0")
THERE = Repository(version="0.1.0", tags=("v0.1.0", "v0.0.9", "vague"), changelog=CHANGELOG, changed=())
WHEN = datetime(2026, 11, 24, 23, 59, tzinfo=UTC)

VERSIONS = {
    "none": ("", "no version was given: write VERSION=x.y.z, as in 0.1.1, 0.2.0 or 1.0.0"),
    "a tag's name": ("v0.2.0", "'v0.2.0' isn't of the form x.y.z"),
    "no version": ("next", "'next' isn't a version (PEP 440)"),
    "two numbers": ("0.2", "'0.2' isn't of the form x.y.z"),
    "a candidate": ("0.2.0rc1", "'0.2.0rc1' isn't of the form x.y.z"),
    "a local one": ("0.2.0+mine", "'0.2.0+mine' isn't of the form x.y.z"),
    "a zero before it": ("0.02.0", "'0.02.0' isn't of the form x.y.z"),
    "the last one": ("0.1.0", "0.1.0 isn't higher than 0.1.0, the last release that is tagged: choose 0.1.1, 0.2.0 or 1.0.0"),
    "a lower one": ("0.0.10", "0.0.10 isn't higher than 0.1.0"),
}  # fmt: skip


@pytest.mark.parametrize(("version", "said"), VERSIONS.values(), ids=VERSIONS)
def test_a_version_that_can_t_be_released(version, said):
    found = problems(replace(WISH, version=version), replace(THERE, changelog=CHANGELOG.replace("[0.1.0]", "[0.0.1]")))
    assert len(found) == 1
    assert found[0].startswith(said)


@pytest.mark.parametrize("version", ["0.1.1", "0.2.0", "0.10.0", "1.0.0"])
def test_a_higher_version_can_be_released(version):
    assert problems(replace(WISH, version=version), THERE) == []


def test_the_first_release_may_be_of_the_version_that_the_sources_have():
    unreleased = replace(THERE, tags=(), changelog=CHANGELOG.partition("## [0.1.0]")[0])
    assert problems(replace(WISH, version="0.1.0"), unreleased) == []
    [problem] = problems(replace(WISH, version="0.0.9"), unreleased)
    assert problem.startswith("0.0.9 isn't higher than 0.1.0, what kubectl_reconcile/__init__.py says")


AGAINST = {
    "no address": (replace(WISH, release_url=""), THERE, "no RELEASE_URL was given"),
    "an address without a host": (replace(WISH, release_url="https:///x"), THERE, "RELEASE_URL=https:///x isn't an address"),
    "a page that isn't encrypted": (replace(WISH, homepage="http://x"), THERE, "HOMEPAGE=http://x isn't an address"),
    "changed files": (WISH, replace(THERE, changed=tuple("abcdefg")), "files differ from the last commit: a, b, c, d, e and 2 more: commit"),
    "no entry": (WISH, replace(THERE, changelog="## [Unreleased]\n\n### Added\n\n## [0.1.0]\n- All.\n"), "CHANGELOG.md has no entry below"),
    "no heading": (WISH, replace(THERE, changelog="- A thing.\n"), "CHANGELOG.md has no entry below ## [Unreleased]"),
    "described already": (WISH, replace(THERE, changelog=CHANGELOG + "## [0.2.0] - 2026\n"), "CHANGELOG.md describes 0.2.0 already"),
}  # fmt: skip


@pytest.mark.parametrize(("wish", "there", "said"), AGAINST.values(), ids=AGAINST)
def test_what_else_stands_against_a_release(wish, there, said):
    found = problems(wish, there)
    assert len(found) == 1
    assert found[0].startswith(said)


def test_all_problems_are_told_at_once():
    assert len(problems(Wish("", ""), replace(THERE, changed=("a",), changelog=""))) == 4


def test_what_was_unreleased_moves_below_the_version():
    assert with_release(CHANGELOG, "0.2.0", WHEN) == (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-24\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-02\n\n- All.\n"
    )


def test_after_a_release_there_is_nothing_to_release():
    after = replace(THERE, changelog=with_release(CHANGELOG, "0.2.0", WHEN), tags=(*THERE.tags, "v0.2.0"))
    [problem] = problems(replace(WISH, version="0.3.0"), after)
    assert "no entry below ## [Unreleased]" in problem


def test_the_version_is_written_where_it_stands():
    sources = '"""Doc: __version__ = x."""\n\n__version__ = "0.1.0"\n\nIMAGE = f"x:{__version__}"\n'
    assert with_version(sources, "0.2.0") == sources.replace("0.1.0", "0.2.0")
    assert version_in(with_version(sources, "0.2.0")) == "0.2.0"
    with pytest.raises(ValueError, match="has 0 lines with __version__"):
        with_version("", "0.2.0")


def test_what_is_left_to_do_names_the_version_and_how_to_take_it_back():
    told = left_to_do("0.2.0", "main", ["a", "b"])
    assert "git push --atomic origin main v0.2.0" in told
    assert told.endswith("git tag --delete v0.2.0 && git reset --keep HEAD~1")
