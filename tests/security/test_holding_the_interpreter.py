"""A tenant's pattern or expression that never ends: the daemon stays alive, and everybody else's work goes on."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager

import pytest

WAVE = "reconcile.dev/wave"
STARS = "*a" * 30 + "*b"
LONG_NAMES = {f"{'a' * 200}-{number}.yaml": "" for number in range(20)}
NESTED = "self.metadata.annotations.all(a, " * 6 + "a != ''" + ")" * 6
DOUBLING = "['aaaaaaaaaa']" + ".map(x, x + x)" * 40 + ".size() > 0"
PATTERN = r"self.metadata.name.matches('(\\w{100}){100}')"
RULES = {"nested loops": NESTED, "texts that double": DOUBLING, "a dear pattern": PATTERN}

ALIVE_S = 90.0
"""A daemon answers sooner than this, even on a machine that is busy; one whose interpreter is held doesn't for minutes."""


@contextmanager
def asked_all_the_time(daemon):
    """Ask for /healthz meanwhile: how long the answers took, and those that weren't ok."""
    waits, faults, over = [], [], threading.Event()

    def ask():
        while not over.wait(0.05):
            began = time.monotonic()
            status, text = daemon.answer("/healthz")
            waits.append(time.monotonic() - began)
            if status != 200:
                faults.append(text)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    yield waits, faults
    over.set()
    asking.join(150)


@pytest.fixture
def others(daemon, follow, git_server, config_map, cluster, eventually):
    """Another tenant's Sync, in step; others() has somebody change its object, and waits until that is put back."""
    sync = follow(git_server.url, "others")
    sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red")}))

    def go_on():
        cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "red", "the drift is put back")
        sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red", at=str(time.time()))}))

    return go_on


def test_stars_in_ignore_patterns(daemon, others, follow, git_host, config_map, namespace):
    attacker = git_host.create(f"{namespace}-stars")
    files = {**LONG_NAMES, "a.yaml": config_map("a", color="red")}
    with asked_all_the_time(daemon) as (waits, faults):
        sync = follow(attacker.url, "attacker")
        sync.until_synced(attacker.push({**files, ".reconcileignore": f"{STARS}\n{'**/a' * 40}\n{'a' * 150}*.yaml"}))
        others()
    assert not faults
    assert max(waits) < ALIVE_S


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_expressions_in_health_rules(daemon, others, follow, git_host, cluster, namespace, rule, eventually):
    attacker = git_host.create(f"{namespace}-rules")
    annotations = {f"a{number}": "x" for number in range(200)}
    many = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many", "annotations": annotations}}
    attacker.push({"many.yaml": json.dumps(many)})
    with asked_all_the_time(daemon) as (waits, faults):
        sync = follow(attacker.url, "attacker", health={"rules": [{"kind": "ConfigMap", "current": rule}]})
        eventually(lambda: "too long" in sync.condition()["message"], "the attacker is told")
        others()
    assert not faults
    assert max(waits) < ALIVE_S


def test_a_rule_that_is_dear_only_for_a_large_object(daemon, others, follow, git_host, cluster, namespace, eventually):
    attacker = git_host.create(f"{namespace}-large")
    annotations = {f"a{number}": "x" for number in range(3000)}
    many = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many", "annotations": annotations}}
    later = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later", "annotations": {WAVE: "1"}}}
    attacker.push({"many.yaml": json.dumps(many), "later.yaml": json.dumps(later)})
    rule = "self.metadata.annotations.all(a, self.metadata.annotations.all(b, a + b != ''))"
    with asked_all_the_time(daemon) as (waits, faults):
        health = {"rules": [{"kind": "ConfigMap", "current": rule}]}
        sync = follow(attacker.url, "attacker", health=health, timeout="20s")
        eventually(lambda: "many" in cluster.names("ConfigMap"), "the first wave is there, and is judged")
        others()
        eventually(
            lambda: "would take too long for an object of this size" in json.dumps(sync.status), "it says why it waits"
        )
    assert cluster.get("ConfigMap", "later") is None
    assert not faults
    assert max(waits) < ALIVE_S
