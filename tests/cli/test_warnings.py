"""What a person is warned of before something is written."""

import pytest

from kubectl_reconcile.cli.options.origin import Origin
from kubectl_reconcile.cli.output.terminal import Terminal
from kubectl_reconcile.cli.verbs.change.sync import warned_of_putting_back
from kubectl_reconcile.cli.verbs.inspect import get, status
from kubectl_reconcile.core.resources.sync import Sync


def sync(url="https://git.example.com/shop.git", **spec):
    git = {"source": {"git": {"url": url}, "path": "deploy"}} if url else {}
    return Sync.of({"metadata": {"name": "shop", "namespace": "web"}, "spec": {**git, **spec}})


def warned(made, origin):
    return "".join(map(Terminal().text, warned_of_putting_back(made, origin)))


FOREIGN = {
    "a folder": Origin("shop", file="deploy"),
    "a repository": Origin("shop", repo="https://git.example.com/other.git"),
    "a revision": Origin("shop", revision="topic"),
    "a working tree": Origin("shop", local="."),
}


@pytest.mark.parametrize("origin", FOREIGN.values(), ids=FOREIGN)
def test_what_a_sync_s_repository_may_not_hold_will_be_put_back(origin):
    assert warned(sync(), origin) == (
        "warning: Sync web/shop follows https://git.example.com/shop.git, path deploy: the daemon, or the Sync's next sync, "
        "reverts what isn't there; "
        "commit the change there, or suspend the Sync first: kubectl reconcile suspend shop -n web"
    )


def test_what_a_sync_follows_itself_and_one_that_nothing_puts_back_need_no_warning():
    folder = FOREIGN["a folder"]
    assert not warned(sync(), Origin("shop"))
    assert not warned(sync(url=""), folder)
    assert not warned(sync(suspend=True), folder)
    assert warned(sync(suspend=False), folder)


def test_a_password_in_the_repository_s_url_is_not_told():
    told = warned(sync(url="https://ann:pass@word@git.example.com/shop.git"), FOREIGN["a folder"])
    assert "follows https://git.example.com/shop.git, path" in told
    assert "pass" not in told
    assert "follows git@git.example.com:shop.git," in warned(
        sync(url="git@git.example.com:shop.git"), FOREIGN["a folder"]
    )


@pytest.mark.parametrize(
    "url", ["https://ann:pass@word@git.example.com/shop.git", "ssh://git:password@git.example.com/x"]
)
def test_no_table_shows_a_password_in_a_url(url):
    metadata = {"name": "shop", "namespace": "web", "creationTimestamp": "2026-01-01T00:00:00Z"}
    live = {"metadata": metadata, "spec": {"source": {"git": {"url": url}}}}
    now = "2026-01-02T00:00:00Z"
    lines = [*status.overview([live], now, wide=True), *status.details(live, now)]
    shown = "".join(span.text for each in [*lines, get.row(live, now, wide=True)] for span in each)
    assert shown.count("git.example.com/") == 3
    assert "word" not in shown
