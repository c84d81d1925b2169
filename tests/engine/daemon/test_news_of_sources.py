"""What in a source's answers is news: what is asked for, or another try at what can't be rendered."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.parse import Parsed
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import EntryKind, TreeEntry
from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.rendering.rendered import Rendering, revision_of
from kubectl_reconcile.engine.daemon.sources.followed import FollowedSync
from kubectl_reconcile.engine.daemon.sources.news import asks_for_else
from kubectl_reconcile.engine.sync.desired import Desired

OWN = "prod/kustomization.yaml"
WRONG = Problem(OWN, 0, "no such resource: web.yaml")
TOLD = Problem(OWN, 0, "commonLabels is deprecated", severity=Severity.WARNING)


def desired(sha, own, problem):
    """Return what a commit asks for whose overlay, its kustomization with these bytes, renders to nothing but a problem."""
    rendering = Rendering((), (problem,), {OWN: TreeEntry(EntryKind.FILE, own)})
    shown = revision_of(Revision(sha, "2026-11-28T00:00:00Z", {}, overlay="prod"), rendering, Parsed((), (problem,)))
    return Desired(shown, (), (problem,))


CASES = {
    "another try that fails in the same words": ("second try", WRONG, True),
    "a commit of others while it fails": ("first try", WRONG, False),
    "other words": ("first try", TOLD, True),
}


@pytest.mark.parametrize(("own", "problem", "is_news"), CASES.values(), ids=CASES)
def test_after_a_failed_rendering_a_commit_that_changes_what_it_read_is_news(own, problem, is_news):
    followed = FollowedSync(newest=desired("c0ffee", "first try", WRONG))
    assert asks_for_else(desired("facade", own, problem), followed) is is_news


def test_a_commit_that_changes_what_a_good_rendering_read_and_nothing_that_it_says_is_none():
    followed = FollowedSync(newest=desired("c0ffee", "labels: {a: b}", TOLD))
    assert not asks_for_else(desired("facade", "labels: {'a': 'b'}", TOLD), followed)
