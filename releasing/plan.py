"""What a release changes in the repository's own files, and what must be true before: versions, the changelog, addresses.

Pure: texts in, texts and problems out. A problem says what is wrong and what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from packaging.version import InvalidVersion, Version

_UNRELEASED = re.compile(r"^## \[Unreleased\][ \t]*\n(?P<entries>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_VERSION = re.compile(r'^__version__ = "([^"]*)"$', re.MULTILINE)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Wish:
    """What whoever releases asks for; empty where nothing was said."""

    version: str
    release_url: str
    homepage: str = ""


@dataclass(frozen=True, slots=True)
class Repository:
    """What is there before: the version in the sources, tags of releases, the changelog, files that Git hasn't got as they are."""

    version: str
    tags: tuple[str, ...]
    changelog: str
    changed: tuple[str, ...]


def problems(wish: Wish, there: Repository) -> list[str]:
    """Return everything that stands against a release, each with what to do; empty if it may be made."""
    return [*_of_version(wish.version, there), *_of_addresses(wish), *_of_files(wish.version, there)]


def _of_version(wanted: str, there: Repository) -> Iterator[str]:
    if not wanted:
        yield f"no version was given: write VERSION=x.y.z, as in {_examples(_last(there)[0])}"
        return
    try:
        version = Version(wanted)
    except InvalidVersion:
        yield f"{wanted!r} isn't a version (PEP 440): write it as x.y.z, without a v before it"
        return
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", wanted):
        yield f"{wanted!r} isn't of the form x.y.z, the only one that PyPI, Helm, krew and Semantic Versioning read alike"
        return
    last, tagged = _last(there)
    if version < last or (tagged and version == last):
        where = "the last release that is tagged" if tagged else "what kubectl_reconcile/__init__.py says"
        yield f"{wanted} isn't higher than {last}, {where}: choose {_examples(last)}"


def _last(there: Repository) -> tuple[Version, bool]:
    """Return the highest version so far, and whether a tag says so, or, before the first release, the sources alone."""
    tagged = [Version(tag[1:]) for tag in there.tags if re.fullmatch(r"v\d+(\.\d+)*", tag)]
    return (max(tagged), True) if tagged else (Version(there.version), False)


def _examples(last: Version) -> str:
    return f"{last.major}.{last.minor}.{last.micro + 1}, {last.major}.{last.minor + 1}.0 or {last.major + 1}.0.0"


def _of_addresses(wish: Wish) -> Iterator[str]:
    if not wish.release_url:
        yield (
            "no RELEASE_URL was given: write the address of the folder from which the files of this release will be downloaded,"
            " as in RELEASE_URL=https://example.com/releases/v0.2.0; krew's manifest and the packages name it"
        )
    for name, url in (("RELEASE_URL", wish.release_url), ("HOMEPAGE", wish.homepage)):
        if url and not re.fullmatch(r"https://[\w.-]+(:\d+)?(/[^\s?#]*)?", url):
            yield f"{name}={url} isn't an address that starts with https:// and names a host"


def _of_files(wanted: str, there: Repository) -> Iterator[str]:
    if there.changed:
        more = len(there.changed) - _SHOWN
        named = ", ".join(there.changed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        yield f"files differ from the last commit: {named}: commit them, or put them aside by git stash --include-untracked"
    unreleased = _UNRELEASED.search(there.changelog)
    if not unreleased or not re.search(r"^[-*] ", unreleased["entries"], re.MULTILINE):
        yield "CHANGELOG.md has no entry below ## [Unreleased]: write there what this release changes"
    if wanted and re.search(rf"^## \[{re.escape(wanted)}\]", there.changelog, re.MULTILINE):
        yield f"CHANGELOG.md describes {wanted} already: choose another version, or move its entries to ## [Unreleased]"


def version_in(sources: str) -> str:
    """Return the version that ``kubectl_reconcile/__init__.py`` says.

    Raises:
        ValueError: it says none, or several.
    """
    found = _VERSION.findall(sources)
    if len(found) != 1:
        raise ValueError(f"kubectl_reconcile/__init__.py has {len(found)} lines with __version__, and not one")
    return str(found[0])


def with_version(sources: str, version: str) -> str:
    """Return ``kubectl_reconcile/__init__.py`` with another version."""
    version_in(sources)
    return _VERSION.sub(f'__version__ = "{version}"', sources)


def with_release(changelog: str, version: str, when: datetime) -> str:
    """Return the changelog with what was unreleased below a version and a day, and nothing unreleased."""
    return _UNRELEASED.sub(
        lambda match: f"## [Unreleased]\n\n## [{version}] - {when:%Y-%m-%d}\n{match['entries']}", changelog, count=1
    )


def left_to_do(version: str, branch: str, files: Sequence[str]) -> str:
    """Return what is left to do by hand, as it is told at the end."""
    steps = (
        ("push the commit and its tag", f"git push --atomic origin {branch} v{version}"),
        ("publish the files of dist/ where RELEASE_URL says", "they are listed in dist/SHA256SUMS"),
        ("publish sdist and wheels on PyPI", f"uv publish dist/kubectl_reconcile-{version}*.whl dist/kubectl_reconcile-{version}.tar.gz"),
        ("build, publish and sign the image", "docker buildx build …, cosign sign …"),
        ("publish the Helm chart", "helm package deploy/chart, helm push …"),
        ("propose dist/reconcile.yaml to krew's index", "a pull request"),
    )  # fmt: skip
    lines = [f"  {number}. {what}: {how}" for number, (what, how) in enumerate(steps, 1)]
    return "\n".join(
        [
            f"made version {version}: a commit, its tag v{version}, and {len(files)} files in dist/. Nothing was published.",
            "Left to do by hand; docs/releasing.md has the complete commands:",
            *lines,
            f"To take it back: git tag --delete v{version} && git reset --keep HEAD~1",
        ]
    )
