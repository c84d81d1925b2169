"""Jobs of a database's backups, how they end, and what they leave."""

import json

from tests.job_pods import of_job
from tests.operators.postgres.world import uid_of

FILE = "20261123T030000Z-t1.tar.gz"
SAID = json.dumps({"file": f"db/{FILE}", "sizeBytes": 4711, "sha256": "ab" * 32, "timeline": 1})


def jobs(world):
    return sorted(name for kind, name in world.objects if kind == "Job")


def end(world, name, message=SAID, *, container="keep", kind="Complete"):
    """Let a Job end, with what its pod said last."""
    job = world.objects["Job", name]
    job["status"] = {"conditions": [{"type": kind, "status": "True", "lastTransitionTime": world.now}]}
    code = 0 if kind == "Complete" else 1
    state = {"name": container, "state": {"terminated": {"exitCode": code, "message": message}}}
    where = "containerStatuses" if container in {"keep", "begin"} else "initContainerStatuses"
    world.others.append(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-x", "namespace": "shop", **of_job(job)},
            "status": {where: [state]},
        }
    )


def fill(world):
    disk = uid_of(world.claim("db-0"))
    old = {"postgres": {}, "replicator": {"login": True, "password": "old", "replication": True}}
    world.disks[disk] = {
        "system": "6000", "roles": old, "databases": {}, "slots": set(), "rows": [1, 2], "marks": [], "timeline": 1, "forks": {},
        "checkpointed": 1, "half": False, "password": world.secrets["db-superuser"],
    }  # fmt: skip
    end(world, "db-restore", container="begin")
