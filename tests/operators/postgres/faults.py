"""What befalls databases, and what is asked of them."""

from tests.operators.postgres.world import World, uid_of

ASKED = "example.com/switchover-to"


def asked(world, to="db-1"):
    world.cr["metadata"].setdefault("annotations", {})[ASKED] = to
    return world


def disk(world, slot):
    return world.disks[uid_of(world.claim(slot))]


def stopped(world, slot):
    """The server of a pod is stopped for a while, and answers nobody."""
    world.broken.add(slot)


def befall(world, fault, slot):
    if slot not in world.pods:
        return
    if fault == "kill":
        world.kill(slot)
    elif fault == "delete":
        world.delete("Pod", slot)
        world.run()
    elif fault == "stop":
        stopped(world, slot)


AUTOMATIC = {"delaySeconds": 30}


def formed(**failover):
    world = World(replicas=3, failover={**AUTOMATIC, **failover})
    world.settle()
    world.write("first")
    world.run()
    world.taken.clear()
    return world


def lost(world):
    """The primary's server ends, and none starts on its volume."""
    world.broken.add("db-0")
    world.kill("db-0")
    world.settle()
    assert world.taken == ["delete db-0", "create db-0"]
    world.taken.clear()
    return world


def befall_worse(world, fault, slot):
    if fault == "heal":
        world.broken.clear()
    elif fault == "break" and slot in world.pods:
        world.broken.add(slot)
        world.kill(slot)
    else:
        befall(world, fault, slot)
