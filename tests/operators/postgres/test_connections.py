"""How those connect who copy, follow or rewind to a server: a machine that goes away silently holds up none of them."""

import re

import pytest

from tests.operators.postgres.world import World

SILENCE_MS = 15_000
_CONNINFO = re.compile(r"""(?:--dbname=|--source-server=|primary_conninfo = )["'](\$SOURCE[^"']*)["']""")


def copying_pods():
    """The pods that begin with a copy: a replica's, and a backup's."""
    target = {"persistentVolumeClaim": {"claimName": "backups"}}
    world = World(replicas=2, backup={"immediate": True, "target": target})
    world.cr["metadata"]["creationTimestamp"] = world.now
    world.others = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "backups", "namespace": "shop"}}
    ]
    world.settle()
    job = world.objects["Job", "db-backup-once"]
    return {"replica": world.pods["db-1"]["spec"], "backup": job["spec"]["template"]["spec"]}


def connections(pod):
    """What each program of the pod's first container connects with, as libpq reads it."""
    (container,) = pod["initContainers"]
    (source,) = (each["value"] for each in container["env"] if each["name"] == "SOURCE")
    found = _CONNINFO.findall(container["command"][2])
    assert len(found) == container["command"][2].count("$SOURCE"), "a connection that isn't looked at"
    return [dict(part.split("=", 1) for part in each.replace("$SOURCE", source).split()) for each in found]


@pytest.mark.parametrize("whose", ["replica", "backup"])
def test_a_machine_that_goes_away_is_given_up_by_whoever_waits_for_its_data(whose):
    pod = copying_pods()[whose]
    for each in connections(pod):
        idle, interval, count = (int(each[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
        assert 1000 * (idle + interval * count) == int(each["tcp_user_timeout"]) == SILENCE_MS, each
        assert each["connect_timeout"] == "5"


@pytest.mark.parametrize("whose", ["replica", "backup"])
def test_a_machine_that_goes_away_in_the_midst_of_a_copy_is_given_up_by_who_is_copied(whose):
    copies = [each for each in connections(copying_pods()[whose]) if each.get("application_name") == "copy"]
    assert [each["options"] for each in copies] == ["-ctcp_user_timeout=60000"]
