"""history and rollback: what was applied, back to it by a pin or by a commit, and where that is refused."""

from __future__ import annotations

import json
import subprocess

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests.e2e.cli.terminal import on_terminal


@pytest.fixture
def shop(git_server, follow, daemon, config_map):
    """A Sync that has applied three commits; shop.shas are theirs, in order."""
    sync = follow(git_server.url, path="shop", git={"branch": "main"})
    shas = []
    for colour in ("red", "green", "blue"):
        files = {"shop/web.yaml": config_map("web", colour=colour), "README.md": colour}
        shas.append(git_server.push(files, f"Paint it {colour}", author="Ada <ada@localhost>"))
        sync.until_synced(shas[-1])
    return type("Shop", (), {"sync": sync, "shas": shas})


@pytest.fixture
def git(git_server):
    def run(*arguments):
        command = ["git", f"--git-dir={git_server.folder}", *arguments]
        return subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip()

    return run


def colour(cluster):
    return cluster.get("ConfigMap", "web")["data"]["colour"]


def test_history_tells_what_was_applied_and_whose_it_is(plugin, shop, namespace):
    told = plugin("history", "shop")
    title, head, *rows = told.out.splitlines()
    assert title == f"{namespace}/shop follows branch main"
    assert head.split() == ["REVISION", "APPLIED", "RESULT", "OBJECTS", "AUTHOR", "SUBJECT"]
    assert [row.split()[0] for row in rows] == ["*", shop.shas[1][:7], shop.shas[0][:7]]
    assert rows[0].split()[1] == shop.shas[2][:7]
    assert rows[0].endswith("   Ada      Paint it blue")
    assert plugin("history", "shop", "-o", "name").out.split() == shop.shas[::-1]
    entry = json.loads(plugin("history", "-o", "json").out)["entries"][0]
    assert (entry["current"], entry["commit"]["subject"]) == (True, "Paint it blue")


def test_what_commits_say_reaches_the_terminal_clean(plugin, git_server, follow, config_map):
    git_server.push({"web.yaml": config_map("web")}, "red \x1b[31m", author="Eve \x1b]0;x\x07 <eve@localhost>")
    follow(git_server.url)
    plugin("sync", "shop")
    for words in (["history", "shop"], ["explain", "cm/web.data"], ["explain", "cm/web"]):
        told = plugin(*words)
        assert "\x1b" not in told.out + told.err
    assert "Eve" in plugin("history", "shop").out


def test_history_without_git_is_history_all_the_same(plugin, shop, git_host, tmp_path):
    shop.sync.change(suspend=True, source={"git": {"url": "http://127.0.0.1:1/gone.git"}})
    told = plugin("history", "shop", "--cache-dir", str(tmp_path))
    assert (told.status, shop.shas[2][:7] in told.out) == (0, True)
    assert told.err.startswith("warning: can't read authors and subjects: ")


def test_history_of_a_sync_that_has_none(plugin, follow, git_server, namespace):
    follow(git_server.url)
    told = plugin("history", "shop")
    assert (told.status, told.out) == (0, "")
    assert told.err.endswith(f"{namespace}/shop has applied nothing yet\n")


def test_a_range_of_versions_is_followed_and_gone_back_from(
    plugin, git_server, git, follow, daemon, config_map, cluster, namespace
):
    sync = follow(git_server.url, git={"semver": "1.x"})
    shas = []
    for version, shade in (("v1.0.0", "red"), ("v1.1.0", "blue")):
        shas.append(git_server.push({"web.yaml": config_map("web", colour=shade)}, f"Paint it {shade}"))
        git("tag", version, shas[-1])
        sync.until_synced(shas[-1])
    newer = git_server.push({"web.yaml": config_map("web", colour="green")}, "Too new")
    git("tag", "v2.0.0-rc.1", newer)
    assert sync.ask()["lastAttemptedTag"] == "v1.1.0"
    assert [row["tag"] for row in sync.status["history"]] == ["v1.1.0", "v1.0.0"]
    assert plugin("get", "shop").out.splitlines()[1].split()[2:5] == ["1.x", "(v1.1.0)", shas[1][:7]]
    title, head, newest, _ = plugin("history", "shop").out.splitlines()
    assert title == f"{namespace}/shop follows semver 1.x (v1.1.0)"
    assert (head.split()[:2], newest.split()[1:3]) == (["REVISION", "TAG"], [shas[1][:7], "v1.1.0"])
    assert plugin("rollback", "shop", "--to", "v1.0.0").status == 0
    assert (colour(cluster), sync.live["spec"]["source"]["git"].get("semver")) == ("red", None)
    assert plugin("resume", "shop").status == 0
    sync.until_synced(shas[1])
    assert (colour(cluster), sync.live["spec"]["source"]["git"]["semver"]) == ("blue", "1.x")
    refused = plugin("rollback", "shop", "--to", "v1.0.0", "--commit", "--yes")
    assert (refused.status, "follows semver 1.x, which a new commit doesn't change" in refused.err) == (
        ExitStatus.SOURCE,
        True,
    )


def test_rollback_pins_until_resumed(plugin, shop, cluster, git_server, config_map, eventually):
    preview = plugin("rollback", "shop", "--dry-run")
    assert (preview.status, "1 to update, 0 unchanged" in preview.out, colour(cluster)) == (0, True, "blue")
    done = plugin("rollback", "shop")
    assert done.status == 0, done.err
    assert (
        f"is pinned to commit {shop.shas[1][:7]}; to follow branch main again: kubectl reconcile resume shop"
        in done.out
    )
    assert colour(cluster) == "green"
    cluster.edit("ConfigMap", "web", {"data": {"colour": "mud"}})
    eventually(lambda: colour(cluster) == "green", "drift is put back to the commit of the pin")
    newest = git_server.push({"shop/web.yaml": config_map("web", colour="black")}, "Paint it black")
    further = plugin("rollback", "shop", "--to", shop.shas[0][:7])
    assert (further.status, colour(cluster)) == (0, "red")
    assert " was rolled back to commit " in plugin("history", "shop").out
    assert "(rolled back)" in plugin("get", "shop").out
    assert "follows branch main again" in plugin("resume", "shop").out
    shop.sync.until_synced(newest)
    spec, annotations = shop.sync.live["spec"]["source"]["git"], shop.sync.live["metadata"]["annotations"]
    assert (spec["branch"], "commit" in spec, "reconcile.dev/pinned-from" in annotations) == ("main", False, False)


def test_rollback_of_what_went_wrong_goes_to_what_went_well(plugin, shop, cluster, git_server, config_map):
    bad = {"shop/web.yaml": config_map("web", colour="mud"), "shop/broken.yaml": "kind: ["}
    sha = git_server.push(bad, "Broken")
    shop.sync.until("ProblemsInSource", sha)
    assert colour(cluster) == "mud"
    assert plugin("rollback", "shop").status == 0
    assert (colour(cluster), shop.sync.status["lastAppliedRevision"]) == ("blue", shop.shas[2])


def test_commits_that_leave_the_objects_as_they_are_have_no_history_and_are_nothing_to_go_back_to(
    plugin, shop, cluster, git_server, config_map
):
    for number in range(3):
        note = git_server.push({"README.md": f"note {number}"}, f"Note {number}")
        assert plugin("wait", "shop", "--revision", note).status == 0
    moved = git_server.push({"shop/web.yaml": None, "shop/moved.yaml": config_map("web", colour="blue")}, "Move it")
    shop.sync.until_synced(moved)
    assert plugin("history", "shop", "-o", "name").out.split() == shop.shas[::-1]
    current = [row for row in plugin("history", "shop").out.splitlines() if row.startswith("*")]
    assert [row.split()[1] for row in current] == [shop.shas[2][:7]]
    assert plugin("rollback", "shop", "-y").status == 0
    assert colour(cluster) == "green"


def test_rollback_with_nothing_to_go_back_to_says_so_and_pins_nothing(plugin, git_server, follow, config_map, cluster):
    git_server.push({"web.yaml": config_map("web", colour="red")}, "Red")
    sync = follow(git_server.url)
    assert plugin("sync", "shop").status == 0
    git_server.push({"README.md": "about"}, "Describe it")
    assert plugin("sync", "shop").status == 0
    refused = plugin("rollback", "shop", "-y")
    assert refused.status == ExitStatus.SOURCE
    assert "shop hasn't applied any other state before, so there is nothing to roll back to" in refused.err
    assert "commit" not in sync.live["spec"]["source"]["git"]


def test_rollback_on_a_terminal_shows_what_it_changes_and_asks_before_it_pins(shop, cluster, kubeconfig, namespace):
    words, spec = ("rollback", "shop", "--kubeconfig", kubeconfig, "-n", namespace), shop.sync.live["spec"]
    status, seen = on_terminal(*words, typed={"[y/N]": "n\n"})
    assert (status, f"Take shop back to {shop.shas[1][:7]}, and pin it there? [y/N]" in seen) == (ExitStatus.HELD, True)
    assert "1 to update" in seen
    assert (shop.sync.live["spec"], colour(cluster)) == (spec, "blue")
    status, _ = on_terminal(*words, typed={"[y/N]": "y\n"})
    assert (status, colour(cluster)) == (0, "green")


def test_rollback_of_a_suspended_sync_ends_the_suspension(plugin, shop, cluster):
    plugin("suspend", "shop")
    shop.sync.until("Suspended")
    assert plugin("rollback", "shop", "--to", shop.shas[0][:7]).status == 0
    assert colour(cluster) == "red"


def test_rollback_without_a_daemon_does_the_work_itself(plugin, git_server, follow, cluster, config_map):
    first = git_server.push({"web.yaml": config_map("web", colour="red")}, "Red")
    follow(git_server.url)
    assert plugin("sync", "shop").status == 0
    git_server.push({"web.yaml": config_map("web", colour="green")}, "Green")
    assert plugin("sync", "shop").status == 0
    assert plugin("rollback", "shop").status == 0
    assert colour(cluster) == "red"
    assert plugin("rollback", "shop", "--to", first).status == 0
    assert "follows the default branch again" in plugin("resume", "shop").out


def test_rollback_by_a_commit_restores_the_path_and_nothing_else(plugin, shop, cluster, git, git_server, config_map):
    git_server.push({"shop/new.yaml": config_map("new"), "shop/sub/a b.txt": "x"}, "More")
    done = plugin("rollback", "shop", "--to", shop.shas[0][:7], "--commit")
    assert done.status == 0, done.err
    tip = git("rev-parse", "main")
    assert f"pushed {tip[:7]} to main: shop is as it was at {shop.shas[0][:7]}" in done.out
    assert git("ls-tree", "-r", "--name-only", tip).split("\n") == ["README.md", "shop/web.yaml"]
    assert git("show", f"{tip}:README.md") == "blue"
    assert git("log", "-1", "--format=%an %s", tip) == f"Tester Take shop back to {shop.shas[0][:7]}"
    assert colour(cluster) == "red"
    shop.sync.until_synced(tip)
    again = plugin("rollback", "shop", "--to", shop.shas[0], "--commit")
    assert (again.status, "nothing to commit" in again.out, git("rev-parse", "main")) == (0, True, tip)


def test_a_commit_takes_the_place_of_a_pin(plugin, shop, git, cluster):
    plugin("rollback", "shop", "--to", shop.shas[0])
    done = plugin("rollback", "shop", "--to", shop.shas[0], "--commit")
    assert done.status == 0, done.err
    shop.sync.until_synced(git("rev-parse", "main"))
    assert shop.sync.live["spec"]["source"]["git"]["branch"] == "main"


def test_a_server_that_refuses_the_push_says_so(plugin, shop, git_server, git, cluster):
    hook = git_server.folder / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    refused = plugin("rollback", "shop", "--to", shop.shas[0], "--commit")
    assert refused.status == ExitStatus.SOURCE
    assert "the server refused the push" in refused.err
    assert "hint: if the branch is protected" in refused.err
    assert (git("rev-parse", "main"), colour(cluster)) == (shop.shas[2], "blue")


REFUSED = {
    "no such commit": (["--to", "deadbeef"], ExitStatus.SOURCE, 'it has no "deadbeef"'),
    "no such name": (["--to", "nobody"], ExitStatus.SOURCE, 'it has no "nobody"'),
    "an option in disguise": (["--to=--upload-pack=x"], ExitStatus.SOURCE, "isn't a name of a branch, tag or commit"),
}


@pytest.mark.parametrize(("words", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_rollback_refuses(plugin, follow, git_server, config_map, words, status, message):
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url)
    refused = plugin("rollback", "shop", *words)
    assert (refused.status, refused.out, message in refused.err) == (status, "", True)


def test_rollback_needs_something_to_go_back_to(plugin, follow, git_server, config_map, tmp_path):
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url)
    assert "shop hasn't applied any other state before" in plugin("rollback", "shop").err
    (tmp_path / "web.yaml").write_text(config_map("other"))
    plugin("sync", "-f", str(tmp_path), "--name", "hand")
    refused = plugin("rollback", "hand", "--to", "1234567")
    assert (refused.status, "hand follows no repository" in refused.err) == (ExitStatus.USAGE, True)


def test_a_tag_can_be_gone_back_to_but_not_be_moved(plugin, git, git_server, follow, config_map, cluster):
    first = git_server.push({"web.yaml": config_map("web", colour="red")}, "Red")
    git("tag", "v1", first)
    second = git_server.push({"web.yaml": config_map("web", colour="green")}, "Green")
    git("tag", "v2", second)
    follow(git_server.url, git={"tag": "v2"})
    plugin("sync", "shop")
    refused = plugin("rollback", "shop", "--to", "v1", "--commit")
    assert (refused.status, "follows tag v2, which a new commit doesn't change" in refused.err) == (
        ExitStatus.SOURCE,
        True,
    )
    assert plugin("rollback", "shop", "--to", "v1").status == 0
    assert colour(cluster) == "red"
    assert "follows tag v2 again" in plugin("resume", "shop").out
