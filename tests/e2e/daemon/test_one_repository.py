"""Many Syncs of one repository: a push is looked at by those whose files it touches, and passed over by the others."""

from __future__ import annotations

import json


def versions(cluster, *names):
    return [cluster.version("Sync", name) for name in names]


def test_a_push_is_looked_at_by_whom_it_touches_and_the_others_neither_plan_nor_write(
    new_daemon, tmp_path, follow, cluster, git_server, config_map, eventually, plugin
):
    trace = tmp_path / "git"
    trace.mkdir()
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, GIT_TRACE2_EVENT=str(trace)).start()
    teams = [f"team-{at}" for at in range(4)]
    first = git_server.push(
        {f"{team}/a.yaml": config_map(team, color="red") for team in teams[:3]}
        | {"team-3/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [a.yaml]\n"}
        | {"base/a.yaml": config_map("team-3", color="red")}
    )
    syncs = [follow(git_server.url, team, path=team, interval="2s") for team in teams]
    for sync in syncs:
        sync.until_synced(first)
        eventually(lambda sync=sync: sync.condition("Healthy")["status"] == "True", "its health was told")
    before = versions(cluster, *teams[1:])

    second = git_server.push({"team-0/a.yaml": config_map("team-0", color="blue"), "README.md": "for everybody"})
    syncs[0].until_synced(second)
    since_s = len(questions(trace))
    eventually(lambda: len(questions(trace)) >= since_s + 2, "the repository is asked twice more")
    assert versions(cluster, *teams[1:]) == before
    assert daemon.log.count(f"revision={second[:7]}") == daemon.log.count(f"/team-0 revision={second[:7]}") > 0

    third = git_server.push({"base/a.yaml": config_map("team-3", color="green")})
    syncs[3].until_synced(third)
    assert versions(cluster, *teams[1:3]) == before[:2], "what an overlay is rendered from touches nobody else"

    waited = plugin("wait", "team-1", "--revision", third[:12])
    assert (waited.status, waited.out) == (0, f"Sync {cluster.namespace}/team-1 is healthy: 1 object, none unhealthy\n")
    assert syncs[1].status["lastAttemptedRevision"] == third
    assert syncs[2].status["lastAttemptedRevision"] == first

    late = plugin("wait", "team-1", "--revision", "0123abcd", "--timeout", "1s")
    assert late.status == 6
    assert f"it is healthy at {third[:7]}, and 0123abc isn't what its ref is at" in late.err
    assert plugin("wait", "team-1", "--revision", "main").status == 2


def questions(trace):
    """The times that a server was asked where refs are."""
    lines = (json.loads(line) for file in trace.iterdir() for line in file.read_text().splitlines())
    return [each for each in lines if each["event"] == "start" and "ls-remote" in each["argv"]]


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
