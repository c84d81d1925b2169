"""Many Syncs of one repository: a push is looked at by those whose files it touches, and passed over by the others."""

from __future__ import annotations

import re
import time
from datetime import datetime

import pytest

from tests.e2e.web_front import front
from tests.waiting import steadily


@pytest.fixture
def web(git_server):
    """The test's repository behind a web server that counts who asks where refs are."""
    with front(git_server.url) as server:
        yield server


def told(cluster, *names):
    """Return what Syncs tell, but for the commit up to which they were looked at."""
    return [{**cluster.get("Sync", name)["status"], "observedRevision": ""} for name in names]


def written_at(live):
    """When the status was written last, to the second, by the API server's clock."""
    entries = live["metadata"]["managedFields"]
    return max(datetime.fromisoformat(each["time"]) for each in entries if each.get("subresource") == "status")


def test_a_push_is_looked_at_by_whom_it_touches_and_the_others_neither_plan_nor_write(
    daemon, follow, cluster, git_server, web, config_map, eventually, plugin
):
    teams = [f"team-{at}" for at in range(4)]
    first = git_server.push(
        {f"{team}/a.yaml": config_map(team, color="red") for team in teams[:3]}
        | {"team-3/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [a.yaml]\n"}
        | {"base/a.yaml": config_map("team-3", color="red")}
    )
    syncs = [follow(web.url, team, path=team, interval="2s") for team in teams]
    for sync in syncs:
        sync.until_synced(first)
        eventually(lambda sync=sync: sync.condition("Healthy")["status"] == "True", "its health was told")
    before = told(cluster, *teams[1:])

    second = git_server.push({"team-0/a.yaml": config_map("team-0", color="blue"), "README.md": "for everybody"})
    syncs[0].until_synced(second)
    before_it = web.questions
    eventually(lambda: web.questions >= before_it + 2, "the repository is asked twice more")
    assert told(cluster, *teams[1:]) == before
    assert daemon.log.count(f"revision={second[:7]}") == daemon.log.count(f"/team-0 revision={second[:7]}") > 0

    assert syncs[0].status["observedRevision"] == second

    def noted():
        """When it was noted on which of the others, soonest first."""
        lives = [sync.live for sync in syncs[1:]]
        return sorted(written_at(live) for live in lives if live["status"]["observedRevision"] == second)

    sooner, later, *_ = eventually(lambda: len(noted()) > 1 and noted(), "that a push concerns others is noted on two")
    assert (later - sooner).total_seconds() >= 4, "it is noted on one after the other, some seconds apart"
    eventually(
        lambda: syncs[1].status["observedRevision"] == second,
        "it is noted how far the first of the others was looked at",
    )
    assert told(cluster, *teams[1:]) == before

    third = git_server.push({"base/a.yaml": config_map("team-3", color="green")})
    syncs[3].until_synced(third)
    assert told(cluster, *teams[1:3]) == before[:2], "what an overlay is rendered from touches nobody else"

    def asked():
        """A commit that `wait` had a look taken at: on a slow machine it may be noted before anybody asks for one."""
        newest = git_server.push({"README.md": f"for everybody, {time.monotonic()}"})
        waited = plugin("wait", "team-1", "--revision", newest[:12])
        healthy = f"Sync {cluster.namespace}/team-1 is healthy: 1 object, none unhealthy\n"
        assert (waited.status, waited.out) == (0, healthy)
        return newest if syncs[1].status["lastAttemptedRevision"] == newest else None

    newest = eventually(asked, "who waits for a commit has it looked at")
    assert syncs[2].status["lastAttemptedRevision"] == first

    late = plugin("wait", "team-1", "--revision", "0123abcd", "--timeout", "20s")
    assert late.status == 6
    assert f"it is healthy at {newest[:7]}, and 0123abc isn't what its ref is at" in late.err
    assert plugin("wait", "team-1", "--revision", "main").status == 2


def test_syncs_of_one_repository_that_cannot_be_reached_say_so_each_and_come_back_together(
    daemon, follow, cluster, git_server, config_map
):
    first = git_server.push({"a/a.yaml": config_map("a"), "b/b.yaml": config_map("b")})
    one, other = follow(git_server.url, "one", path="a"), follow(git_server.url, "other", path="b")
    for sync in (one, other):
        sync.until_synced(first)
    git_server.server.stop()
    for sync in (one, other):
        sync.until("SourceUnavailable")
    git_server.server.start()
    second = git_server.push({"b/b.yaml": config_map("b", color="blue")})
    other.until_synced(second)
    one.until("Synced")


def test_who_asks_for_news_each_second_waits_for_the_least_interval_and_a_request_does_not(
    new_daemon, follow, cluster, git_server, web, config_map
):
    new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, ("--min-interval", "1h")).start()
    sync = follow(web.url, interval="1s")
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="red")}))
    asked = web.questions
    assert asked
    steadily(lambda: web.questions == asked, "nobody asks before the least interval is over", for_s=3)
    second = git_server.push({"a.yaml": config_map("a", color="blue")})
    sync.ask()
    sync.until_synced(second)


def test_a_sync_at_rest_takes_no_turn_for_a_repository_without_news_and_one_for_all_else(
    new_daemon, follow, cluster, git_server, config_map, eventually
):
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, ("--log-level", "debug")).start()
    shas = git_server.push({f"{name}/a.yaml": config_map(name, color="red") for name in ("one", "two")})
    intervals = {"one": "1s", "two": "2s"}  # what the first is told will do for the second
    syncs = [follow(git_server.url, name, path=name, interval=interval) for name, interval in intervals.items()]
    for sync in syncs:
        sync.until_synced(shas)

    def rests():
        return daemon.log.count(f"at rest sync={cluster.namespace}/two")

    eventually(lambda: rests() >= 2, "the second is at rest")
    cluster.edit("ConfigMap", "two", {"data": {"color": "blue"}})
    eventually(lambda: cluster.get("ConfigMap", "two")["data"] == {"color": "red"}, "drift is put back")
    before = rests()
    eventually(lambda: rests() > before, "it is at rest again")
    syncs[1].until_synced(git_server.push({"two/a.yaml": config_map("two", color="green")}))
    syncs[1].change(suspend=True)
    syncs[1].until("Suspended")


def test_a_daemon_that_starts_again_writes_onto_those_alone_whose_files_changed_meanwhile(
    daemon, follow, cluster, git_server, config_map, eventually
):
    teams = [f"team-{at}" for at in range(3)]
    first = git_server.push({f"{team}/a.yaml": config_map(team, color="red") for team in teams})
    syncs = [follow(git_server.url, team, path=team) for team in teams]
    for sync in syncs:
        sync.until_synced(first)
        eventually(lambda sync=sync: sync.condition("Healthy")["status"] == "True", "its health was told")
    daemon.stop()
    before, said = told(cluster, *teams), len(daemon.log)
    second = git_server.push({"team-0/a.yaml": config_map("team-0", color="blue")})
    cluster.delete("ConfigMap", "team-2")
    daemon.start()

    syncs[0].until_synced(second)
    eventually(lambda: cluster.get("ConfigMap", "team-2"), "what was deleted meanwhile is back")
    eventually(lambda: re.search(r"sync=\S+/team-1 .*unchanged=1", daemon.log[said:]), "the other one is looked at")
    assert eventually(lambda: syncs[1].status["observedRevision"] == second, "how far it was looked at is noted")
    assert told(cluster, "team-1") == before[1:2]
