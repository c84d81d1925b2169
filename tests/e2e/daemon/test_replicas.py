"""Several daemons on one cluster, as processes: each works on its share, and never do two on the same.

Who writes what is seen from outside: the API server keeps, per field manager, only the last time; so each look at who
works asks the daemons themselves, by what their logs say they applied.
"""

from __future__ import annotations

import os
import re
import signal
import time

import pytest
import yaml

COUNT = 12
# Nobody takes over from who merely says nothing.
NO_TAKEOVER = """
from kubectl_reconcile.core.daemon import sharding
sharding.VALID_S, sharding.DURATION_S, sharding.ACKNOWLEDGE_S = 1000.0, 1200, 1500.0
"""


@pytest.fixture
def cluster(request, cluster):
    """The run's cluster; with the parameter "own" one of the test's own, where what is held of others' Syncs can be counted."""
    if getattr(request, "param", "") != "own":
        return cluster
    own, _ = request.getfixturevalue("own_cluster")(components=("etcd", "kube-apiserver"))
    request.getfixturevalue("crds_of")(own)
    return own


@pytest.fixture
def replicas(new_daemon, cluster, tmp_path):
    """replicas(3) -> so many daemons of the test's namespace, each with a cache of its own, running, with these variables."""

    def start(number, **environ):
        caches = [str(tmp_path / f"cache-{at}") for at in range(number)]
        space = cluster.kubectl.kubeconfig, cluster.namespace
        return [new_daemon(*space, XDG_CACHE_HOME=cache, **environ).start() for cache in caches]

    return start


@pytest.fixture
def shops(follow, git_host, config_map, eventually):
    """A dozen Syncs with one ConfigMap each, and how to push to one."""
    repositories = [git_host.create(f"replicas-{time.time_ns()}-{number}") for number in range(COUNT)]
    shas = [each.push({"a.yaml": config_map(f"shop-{number}", at="0")}) for number, each in enumerate(repositories)]
    syncs = [follow(each.url, f"shop-{number}") for number, each in enumerate(repositories)]

    class Shops:
        def until_synced(self):
            for sync, sha in zip(syncs, shas, strict=True):
                sync.until_synced(sha)

        def push(self, at):
            for number, each in enumerate(repositories):
                shas[number] = each.push({"a.yaml": config_map(f"shop-{number}", at=str(at))})

        def rename(self):
            for number, each in enumerate(repositories):
                shas[number] = each.push({"a.yaml": config_map(f"renamed-{number}", at="0")})

    return Shops()


def applied(daemon, since=0):
    """Names of the ConfigMaps that this daemon says it wrote."""
    return re.findall(r'INFO applied object="ConfigMap \S+/(shop-\d+)"', daemon.log[since:])


def versions(cluster):
    """The resource versions of all that the Syncs bring."""
    found = cluster.list("ConfigMap", "applyset.kubernetes.io/part-of")
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}


def members(daemon):
    found = re.findall(r"share settled generation=\d+ members=(\d+)", daemon.log)
    return int(found[-1]) if found else 0


def bare(daemon):
    """How many members it holds by name and version alone."""
    return daemon.count("reconcile_cached_objects", held="bare")


def agreed(daemons):
    return all(members(each) == len(daemons) for each in daemons)


def test_three_share_the_work_and_one_that_ends_hands_over_at_once(replicas, shops, eventually, starting_with):
    daemons = replicas(3, **starting_with(NO_TAKEOVER))
    eventually(lambda: agreed(daemons), "they know of each other")
    shops.until_synced()
    shops.push(1)
    shops.until_synced()
    share = {name: number for number, each in enumerate(daemons) for name in set(applied(each))}
    assert len(share) == COUNT
    assert len(set(share.values())) > 1
    first, *others = daemons
    assert first.stop() == 0
    eventually(lambda: agreed(others), "the others go on, though its Lease would be valid for longer")
    marks = [len(each.log) for each in others]
    shops.push(2)
    shops.until_synced()
    wrote = [applied(each, mark) for each, mark in zip(others, marks, strict=True)]
    assert sorted(name for names in wrote for name in names) == sorted(f"shop-{number}" for number in range(COUNT))
    for name, number in share.items():
        if number:
            assert name in wrote[number - 1], "what was another's share stayed there"


@pytest.mark.parametrize("cluster", ["own"], indirect=True)
def test_what_another_held_is_held_whole_where_its_share_goes_and_is_put_back_pruned_and_respected_there(
    replicas, shops, cluster, follow, git_host, config_map, eventually
):
    daemons = replicas(2)
    eventually(lambda: agreed(daemons), "they know of each other")
    shops.until_synced()
    first, other = daemons
    eventually(lambda: bare(first) + bare(other) > 0, "members of the other one's are held bare")
    names = sorted(f"shop-{number}" for number in range(COUNT))
    assert first.stop() == 0
    eventually(lambda: agreed([other]), "the other one goes on")
    eventually(lambda: bare(other) == 0, "it has read what was the first one's")
    for name in names:
        cluster.edit("ConfigMap", name, {"data": {"at": "by hand"}})
    eventually(lambda: {cluster.get("ConfigMap", each)["data"]["at"] for each in names} == {"0"}, "all is put back")
    claimed = git_host.create(f"claims-{time.time_ns()}")
    sha = claimed.push({"a.yaml": config_map("shop-3", at="claimed")})
    follow(claimed.url, "claims").until("ApplyFailed", sha)
    cluster.delete("Sync", "claims")  # or it would bring what is about to be free
    daemons = [other, *replicas(1)]
    eventually(lambda: agreed(daemons), "another one has joined")
    shops.rename()
    shops.until_synced()
    renamed = {f"renamed-{number}" for number in range(COUNT)}
    assert cluster.names("ConfigMap", "applyset.kubernetes.io/part-of") == renamed, "all else is pruned"


def test_a_killed_one_is_replaced_by_the_others(replicas, shops, eventually):
    daemons = replicas(3)
    eventually(lambda: agreed(daemons), "they know of each other")
    shops.until_synced()
    daemons[0].kill()
    shops.push(1)
    shops.until_synced()
    eventually(lambda: agreed(daemons[1:]), "they know of its end")  # which matters to nobody, if no shop was its own


def test_one_that_was_stopped_and_goes_on_later_writes_nothing_that_is_others_by_now(
    replicas, shops, cluster, config_map, eventually
):
    daemons = replicas(3)
    eventually(lambda: agreed(daemons), "they know of each other")
    shops.until_synced()
    stopped, others = daemons[0], daemons[1:]
    shops.push(1)  # some of it is the stopped one's to do
    os.kill(stopped.process.pid, signal.SIGSTOP)
    said = len(stopped.log)
    try:
        eventually(lambda: agreed(others), "its share is taken over")
        shops.until_synced()
        shops.push(2)
        shops.until_synced()
        others_say = [len(each.log) for each in others]
        before = versions(cluster)
    finally:
        os.kill(stopped.process.pid, signal.SIGCONT)
    eventually(lambda: agreed(daemons), "it has joined anew")
    assert "expelled" in stopped.log[said:].split("share settled")[0]
    assert versions(cluster) == before
    rejoined = len(stopped.log)
    shops.push(3)
    shops.until_synced()
    wrote = applied(stopped, rejoined) + [
        name for each, mark in zip(others, others_say, strict=True) for name in applied(each, mark)
    ]
    assert sorted(wrote) == sorted(f"shop-{number}" for number in range(COUNT))


def test_a_lease_that_somebody_deletes_is_recreated_and_work_goes_on(
    daemon, follow, cluster, git_server, config_map, eventually
):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"a.yaml": config_map("a")}))
    (lease,) = cluster.names("Lease", "reconcile.dev/component=daemon")
    cluster.delete("Lease", lease)
    eventually(lambda: "expelled" in daemon.log, "it notices")
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="red")}))
    eventually(lambda: daemon.answer("/readyz")[0] == 200, "it is ready again")
    (group,) = cluster.names("Lease", "reconcile.dev/component=daemon-group")
    mark = len(daemon.log)
    cluster.delete("Lease", group)
    eventually(lambda: "share settled generation=2 members=1" in daemon.log[mark:], "the group begins anew")
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="blue")}))


def test_a_new_version_takes_over_the_syncs_of_the_old_one_without_rewriting_an_object(
    replicas, follow, cluster, git_server, config_map, memcached, eventually
):
    old, new = replicas(2)
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"a.yaml": config_map("a"), "cache.yaml": memcached("cache", size=1)}))
    eventually(lambda: cluster.get("Service", "cache") and cluster.get("Deployment", "cache"), "the children are there")
    annotations = {"applyset.kubernetes.io/tooling": "kubectl-reconcile/v0.0.1"}
    cluster.edit("Sync", "shop", {"metadata": {"annotations": annotations}})
    things = [("ConfigMap", "a"), ("Service", "cache")]
    before = [cluster.version(*thing) for thing in things]
    generation = cluster.get("Deployment", "cache")["metadata"]["generation"]
    assert old.stop() == 0
    eventually(lambda: agreed([new]), "the new one is alone")
    sync.ask()
    assert [cluster.version(*thing) for thing in things] == before
    assert cluster.get("Deployment", "cache")["metadata"]["generation"] == generation
    written = f'applied object="ConfigMap {cluster.namespace}/a"'
    assert (old.log + new.log).count(written) == 1, "by the one that had it first, and not again by the other"


def test_of_another_namespace_nothing_is_taken_up_when_a_share_changes(
    replicas, follow, cluster, git_server, memcached, eventually
):
    elsewhere = cluster.at(f"{cluster.namespace}-elsewhere")
    cluster.kubectl("create", "namespace", elsewhere.namespace)
    one, other = replicas(2)
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"cache.yaml": memcached("cache", size=1)}))
    theirs = yaml.safe_load(memcached("theirs", size=1))
    mark = {"applyset.kubernetes.io/part-of": "applyset-of-somebody-else-v1"}  # all members are seen by one watch
    elsewhere.apply({**theirs, "metadata": {**theirs["metadata"], "namespace": elsewhere.namespace, "labels": mark}})
    assert one.stop() == 0
    eventually(lambda: agreed([other]), "the other one is alone")
    sync.until_synced(
        git_server.push({"cache.yaml": memcached("cache", size=1), "next.yaml": memcached("next", size=1)})
    )
    eventually(lambda: cluster.get("Deployment", "next"), "what came later has its children")
    assert elsewhere.list("Deployment") == []
    assert f"{elsewhere.namespace}/theirs" not in other.log
