"""What a revision is called, and what is told of one that asks for nothing."""

import pytest

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.revisions import digest_in, is_packed, short_of, tag_in

DIGEST = "sha256:" + "3f9c2e1" + "0" * 57
QUOTED = {
    "a commit": ("3f9c2e1" + "0" * 33, "3f9c2e1"),
    "a commit without a letter": ("1" * 40, "1111111"),
    "a folder": ("worktree-3f9c2e1", "worktree"),
    "a folder that wasn't rendered yet": ("worktree-", "worktree"),
    "a chart": (f"1.2.3@{DIGEST}", "1.2.3@sha256:3f9c2e1"),
    "a chart of a long version": (f"v1.2.3-rc.1+build@{DIGEST}", "v1.2.3-rc.1+build@sha256:3f9c2e1"),
    "an artifact": (f"latest@{DIGEST}", "latest@sha256:3f9c2e1"),
    "an artifact by its digest": (DIGEST, "sha256:3f9c2e1"),
    "a chart whose digest nobody has said": ("1.2.3", "1.2.3"),
    "what somebody else wrote": ("9." * 500, "9." * 32),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("revision", "short"), QUOTED.values(), ids=QUOTED)
def test_it_is_quoted_in_short(revision, short):
    assert short_of(revision) == Revision(revision, "", {}).short == short


PACKED = {
    "a commit": ("3f9c2e1" + "0" * 33, False),
    "a folder": ("worktree-3f9c2e1", False),
    "a chart": (f"1.2.3@{DIGEST}", True),
    "a version": ("v1.2.3", True),
    "an artifact by its digest": (DIGEST, True),
}


@pytest.mark.parametrize(("revision", "expected"), PACKED.values(), ids=PACKED)
def test_what_has_a_version_is_packed(revision, expected):
    assert is_packed(revision) is expected


PARTS = {
    "a tag and a digest": (f"1.4@{DIGEST}", "1.4", DIGEST),
    "a digest": (DIGEST, "", DIGEST),
    "a commit": ("3f9c2e1", "", ""),
    "a version": ("1.2.3", "", ""),
}


@pytest.mark.parametrize(("revision", "tag", "digest"), PARTS.values(), ids=PARTS)
def test_a_revision_of_an_artifact_has_parts(revision, tag, digest):
    assert (tag_in(revision), digest_in(revision)) == (tag, digest)


def test_a_chart_that_renders_to_nothing_says_so():
    """It has no path that could be wrong."""
    assert Revision("1.2.3", "", {}, overlay="", is_chart=True).emptiness().message == "the chart renders to no objects"
