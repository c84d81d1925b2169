"""What previews promise beyond the next change: what goes with a CR, what follows later, what a module saw."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.domains import SPECS, at_rest, children, cr, preview, ready, shown

FINALIZE_PREVIEWS = {
    "Memcached": {},
    "WebServer": {},
    "ThreeTierApp": {},
    "Candy": {"ship-bar-1": "waits", "retire-1": "waits"},
}


@pytest.mark.parametrize("kind", SPECS)
def test_what_diff_shows_of_a_deletion_is_what_goes(kind, factory, cluster, plugin, written, config_map, eventually):
    folder = written(cr(kind, "it", **SPECS[kind]))
    for number in range(4):
        (folder / f"kept-{number}.json").write_text(config_map(f"kept-{number}"))
    assert plugin("sync", "-f", str(folder), "--name", "shop", "--yes").status == 0
    eventually(lambda: at_rest(cluster, kind), "at rest", timeout_s=180)

    (folder / "cr.json").unlink()
    plan, before = preview(plugin, folder, "--name", "shop"), children(cluster)
    deleted = {(one["object"]["kind"], one["object"]["name"]) for one in plan["changes"] if one["op"] == "delete"}
    assert {key for key in deleted if key in before} == set(before)
    assert (kind, "it") in deleted
    assert shown(plan) == FINALIZE_PREVIEWS[kind]
    assert {one["op"] for one in plan["changes"]} <= {"delete", "act", "unchanged"}

    assert plugin("sync", "-f", str(folder), "--name", "shop", "--yes").status == 0
    eventually(lambda: cluster.get(kind, "it") is None, "the CR is gone", timeout_s=180)
    eventually(lambda: not children(cluster), "all it owned is gone", timeout_s=180)
    assert {f"kept-{number}" for number in range(4)} <= cluster.names("ConfigMap")
    did = [key for key in ("ship", "retire") for line in factory.did(f"{cluster.namespace}.it") if line[0] == key]
    assert did == (["ship", "retire"] if kind == "Candy" else [])


def test_until_stable_shows_the_path_that_is_then_taken(factory, cluster, plugin, written, eventually):
    """Tier by tier: each pass of the preview ends with the objects that are really made before the next."""
    folder = written(cr("ThreeTierApp", "it", **SPECS["ThreeTierApp"]))
    answer = plugin("diff", "-f", str(folder), "--until-stable", "-o", "json")
    assert answer.status == 1, answer.err
    passes = [
        {
            (one["object"]["kind"], one["object"]["name"])
            for one in plan["changes"]
            if one["op"] == "create" and "owner" in one and not one.get("waits")
        }
        for plan in json.loads(answer.out)["items"]
    ]
    assert passes == [
        {("StatefulSet", "it-database"), ("Service", "it-database")},
        {("Memcached", "it-cache"), ("Deployment", "it-cache"), ("Service", "it-cache")},
        {("Deployment", "it-backend"), ("Service", "it-backend")},
        {("Deployment", "it-frontend"), ("Service", "it-frontend")},
    ]
    cluster.apply(cr("ThreeTierApp", "it", **SPECS["ThreeTierApp"]))
    eventually(lambda: at_rest(cluster, "ThreeTierApp"), "at rest", timeout_s=180)
    made = children(cluster)
    assert set(made) == set().union(*passes)
    births = [[made[key]["metadata"]["creationTimestamp"] for key in sorted(one)] for one in passes]
    assert all(max(earlier) <= min(later) for earlier, later in itertools.pairwise(births))
    assert factory.ask("/log") == []


def test_a_disposal_and_what_follows_it_are_foreseen(factory, cluster, plugin, written, eventually):
    cluster.apply(cr("Candy", "it", flavor="white", sweetness=5))
    eventually(lambda: ready(cluster), "the bar is right")
    folder = written(cr("Candy", "it", {"reconcile.dev/approve-actions": "dispose"}, flavor="dark", sweetness=5))
    answer = plugin("diff", "-f", str(folder), "--until-stable", "-o", "json")
    tree = json.loads(answer.out)
    keys = [one["action"]["key"] for plan in tree.get("items", [tree]) for one in plan["changes"] if one["op"] == "act"]
    assert plugin("sync", "-f", str(folder), "--name", "shop", "--yes").status == 0
    eventually(lambda: ready(cluster) and at_rest(cluster, "Candy"), "the right bar is made", timeout_s=180)
    log = [line["key"].partition("/")[2] for line in factory.ask("/log")]
    assert log[: 2 + len(keys)] == ["sugar-0-5", "make-1", *keys]


def replay(*arguments):
    """What modules say now to what was recorded: needs no cluster."""
    program = Path(sys.executable).with_name("kubectl-reconcile")
    return subprocess.run([program, "modules", "test", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", SPECS)
def test_what_a_module_saw_is_recorded_and_replayed(kind, factory, cluster, plugin, tmp_path, eventually):
    cluster.apply(cr(kind, "it", **SPECS[kind]))
    eventually(lambda: at_rest(cluster, kind), "at rest", timeout_s=180)
    case = tmp_path / "case.json"
    answer = plugin("record", f"{kind.lower()}/it", "-o", str(case))
    assert answer.status == 0, answer.err
    found = json.loads(case.read_text())
    assert found["cr"]["metadata"]["name"] == "it"
    assert bool(found.get("facts")) is (kind == "Candy")
    assert replay(case).returncode == 0

    found["outcome"]["status"]["invented"] = True
    case.write_text(json.dumps(found))
    answer = replay(case)
    assert answer.returncode == 6
    assert "invented" in answer.stdout
    assert replay("--update", case).returncode == 0
    assert replay(case).returncode == 0
    assert all(line["did"] in {"sugar", "make"} for line in factory.ask("/log")), "recording looks and does nothing"
