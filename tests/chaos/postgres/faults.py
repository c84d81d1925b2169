"""What goes wrong with a database: one fault at a time, each by its own dice.

A fault is a function that hurts the database, makes sure that this took hold, mends what only people mend, and returns once that is done. Nobody ever approves anything: no row that was acknowledged may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chaos.experiment import ChaosScene
from tests.chaos.live import soon
from tests.chaos.postgres.live import LiveDatabase

FLOOD = "select pg_logical_emit_message(false, 'chaos', 'x'), pg_switch_wal()"
"""Has a server go on to the next segment of its log, 16 MiB further, which waits for nobody."""


@dataclass(kw_only=True)
class Scene(ChaosScene):
    """Where it all happens."""

    live: LiveDatabase

    @property
    def replicas(self) -> list[str]:
        return sorted(set(self.live.pods()) - {self.live.primary})

    def kill(self, *slots: str) -> None:
        """Have servers end at once, unless they have ended, and wait until somebody has seen it."""
        before = {slot: self.live.pods()[slot]["metadata"]["uid"] for slot in slots}
        for slot in slots:
            self.live.end(slot)
        self.replaced(before)

    def silenced(self, slot: str) -> None:
        """Make sure that a fault took hold by which nobody is answered any more."""
        soon(lambda: not self.live.answers(slot), f"{slot} is silent", timeout_s=20.0)

    def wish(self, to: str) -> None:
        """Ask for another primary; what was asked for before is forgotten first, so that the same one may be asked for again."""
        self.live.annotate(switchover_to="")
        soon(lambda: self.live.cr["status"].get("switchoverAnswered", "") != to, "the wish before is forgotten")
        self.live.annotate(switchover_to=to)

    def replaced(self, before: dict[str, Any]) -> None:
        """Wait until pods are others, or gone."""

        def are_others() -> bool:
            now = self.live.pods()
            return all(slot not in now or now[slot]["metadata"]["uid"] != uid for slot, uid in before.items())

        soon(are_others, f"{', '.join(before)} are replaced")

    def lose_volume(self, slot: str) -> None:
        """Take an instance's volume away, with its pod."""
        uid = self.live.pods()[slot]["metadata"]["uid"]
        self.live.delete_claim(slot)
        self.live.delete_pod(slot)
        self.replaced({slot: uid})

    def another_primary(self, before: str) -> None:
        soon(lambda: self.live.cr["status"]["currentPrimary"] != before, f"another than {before} is the primary")


# --- crashes and hangs ----------------------------------------------------------------------------


def primary_killed(scene: Scene) -> None:
    scene.kill(scene.live.primary)


def replica_killed(scene: Scene) -> None:
    scene.kill(scene.dice.choice(scene.replicas))


def primary_and_replica_killed(scene: Scene) -> None:
    scene.kill(scene.live.primary, scene.dice.choice(scene.replicas))


def all_killed(scene: Scene) -> None:
    scene.kill(*scene.live.pods())


def primary_stopped(scene: Scene) -> None:
    """Stop it, until somebody wants to take over and must wait, or shorter; then it goes on."""
    with scene.live.hanging(scene.live.primary):
        scene.pause(8.0)


def primary_hangs(scene: Scene) -> None:
    """Stop it for good: nobody but the daemon does anything about it."""
    live, primary = scene.live, scene.live.primary
    live.sandbox.pods.pause(live.namespace, primary)
    scene.silenced(primary)
    scene.another_primary(primary)


def primary_cut_off(scene: Scene) -> None:
    with scene.live.cut_off(scene.live.primary):
        scene.pause(5.0)


def primary_network_dead(scene: Scene) -> None:
    """Cut it off for good: its own node's probe finds it ready all the time."""
    live, primary = scene.live, scene.live.primary
    live.sandbox.pods.partition(live.namespace, primary)
    scene.silenced(primary)
    scene.another_primary(primary)


def replica_cut_off(scene: Scene) -> None:
    with scene.live.cut_off(scene.dice.choice(scene.replicas)):
        scene.pause(5.0)


# --- by hand --------------------------------------------------------------------------------------


def primary_pod_deleted(scene: Scene) -> None:
    primary = scene.live.primary
    uid = scene.live.pods()[primary]["metadata"]["uid"]
    scene.live.delete_pod(primary)
    scene.replaced({primary: uid})


def primary_volume_lost(scene: Scene) -> None:
    primary = scene.live.primary
    scene.lose_volume(primary)
    scene.another_primary(primary)


def primary_volume_emptied(scene: Scene) -> None:
    """Empty its volume under it, and end it: on what comes back empty nobody begins another database, and a replica takes over."""
    live, primary = scene.live, scene.live.primary
    live.wipe(primary)
    live.end(primary)
    scene.another_primary(primary)


def replica_volume_emptied(scene: Scene) -> None:
    slot = scene.dice.choice(scene.replicas)
    uid = scene.live.pods()[slot]["metadata"]["uid"]
    scene.live.wipe(slot)
    scene.live.end(slot)
    scene.replaced({slot: uid})


def replica_volume_lost(scene: Scene) -> None:
    scene.lose_volume(scene.dice.choice(scene.replicas))


def replica_away_until_its_log_is_thrown_away(scene: Scene) -> None:
    """Stop a replica while the primary writes more than it keeps for it: the primary's disk isn't filled, and another one begins with a copy."""
    live, primary, slot = scene.live, scene.live.primary, scene.dice.choice(scene.replicas)
    status = f"select wal_status from pg_replication_slots where slot_name = '{slot.replace('-', '_')}'"  # noqa: S608 - a name of ours

    def is_thrown_away() -> bool:
        for _ in range(10):
            live.sql(primary, FLOOD, within_s=60.0)
        live.sql(primary, "checkpoint", within_s=60.0)
        return live.sql(primary, status) in ([], ["lost"])

    with live.hanging(slot):
        soon(is_thrown_away, f"what {slot} needs is thrown away")
    soon(lambda: slot not in live.pods(), f"{slot} gives way to another one")


def switchover(scene: Scene) -> None:
    to = scene.dice.choice(scene.replicas)
    scene.wish(to)
    soon(lambda: scene.live.cr["status"].get("switchoverAnswered") == to, f"{to} has taken over")


def primary_killed_in_a_switchover(scene: Scene) -> None:
    before = scene.live.cr["status"]["timeline"]
    scene.wish(to := scene.dice.choice(scene.replicas))
    is_begun = lambda status: status.get("handover") or status["timeline"] != before  # noqa: E731 - it is asked once
    soon(lambda: is_begun(scene.live.cr["status"]), f"it is noted that {to} is to take over")
    scene.pause(1.0)
    for slot in scene.dice.sample(sorted(scene.live.pods()), 1):
        scene.live.end(slot)


def two_primaries_lost_in_a_row(scene: Scene) -> None:
    primary_volume_lost(scene)
    scene.kill(scene.live.primary)


def primary_lost_in_a_backup(scene: Scene) -> None:
    scene.live.annotate(backup_now=(wish := f"chaos {scene.dice.randrange(10**9)}"))
    soon(lambda: scene.live.cr["status"].get("backupAnswered") == wish, "the backup has begun")
    scene.pause(2.0)
    primary_volume_lost(scene)


def primary_lost_in_a_scale_in(scene: Scene) -> None:
    live, count = scene.live, len(scene.live.pods())
    live.change(replicas=count - 1)
    soon(
        lambda: len([each for each in live.pods().values() if "deletionTimestamp" not in each["metadata"]]) < count,
        "one is to go",
    )
    scene.live.end(live.primary)
    live.settled()
    live.change(replicas=count)


def primary_killed_while_a_password_is_rotated(scene: Scene) -> None:
    live = scene.live
    before = live.ask("GET", live.path("secrets", "db-user-other"))["metadata"]["uid"]
    live.ask("DELETE", live.path("secrets", "db-user-other"))
    scene.live.end(live.primary)

    def is_another() -> bool:
        return live.ask("GET", live.path("secrets", "db-user-other")).get("metadata", {}).get("uid") not in {before, None}  # fmt: skip

    soon(is_another, "the Secret is recreated")


def replication_password_changed(scene: Scene) -> None:
    """Change the password that replicas log in with; then somebody ends who has to be logged in to anew, or to log in."""
    live = scene.live
    verifier = "select rolpassword from pg_authid where rolname = 'replicator'"
    before = soon(lambda: live.sql(live.primary, verifier), "there is a password")
    secret = live.ask("GET", live.path("secrets", "db-replication"))
    text = f"chaos:{scene.dice.randrange(10**9)}"
    live.ask("PUT", live.path("secrets", "db-replication"), {**secret, "stringData": {"password": text}})
    soon(lambda: live.sql(live.primary, verifier) != before, "the server has the other password")
    scene.kill(scene.dice.choice(sorted(live.pods())))


def created_again_after_a_foreground_deletion(scene: Scene) -> None:
    """Delete it as some tools do, what it owns first, while no daemon runs; create it again from the same file."""
    live = scene.live
    before, claims = live.cr, {slot: each["metadata"]["uid"] for slot, each in live.claims().items()}
    scene.daemon.kill()
    try:
        path = live.path(live.plural, live.name, live.api)
        live.ask("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"})
        soon(lambda: not live.pods(), "all pods are gone")
    finally:
        scene.daemon.start()
    soon(lambda: not live.cr, "it is gone")
    left = {slot: each["metadata"]["uid"] for slot, each in live.claims().items()}
    assert left == claims, f"volumes were {claims}, and are {left}"
    body = {"apiVersion": live.api, "kind": "MyDatabase", "metadata": {"name": live.name}, "spec": before["spec"]}
    live.ask("POST", live.path(live.plural, api=live.api), body)


# --- around it ------------------------------------------------------------------------------------


def daemon_killed_in_a_failover(scene: Scene) -> None:
    live, primary = scene.live, scene.live.primary
    step = scene.dice.choice(list(_FAILING_OVER))
    live.delete_claim(primary)
    live.delete_pod(primary)
    scene.restart_daemon_at(step, lambda: _FAILING_OVER[step](live, primary))
    scene.another_primary(primary)


def daemon_killed_in_a_switchover(scene: Scene) -> None:
    live, primary, to = scene.live, scene.live.primary, scene.dice.choice(scene.replicas)
    step = scene.dice.choice(list(_FAILING_OVER))
    scene.wish(to)
    scene.restart_daemon_at(step, lambda: _FAILING_OVER[step](live, primary))
    soon(lambda: live.cr["status"].get("switchoverAnswered") == to, f"{to} has taken over")


_FAILING_OVER: dict[str, Callable[[LiveDatabase, str], Any]] = {
    "it is noted who takes over": lambda live, _: live.cr["status"].get("handover"),
    "the old pod ends": lambda live, old: live.pods().get(old, {}).get("metadata", {}).get("deletionTimestamp"),
    "the old pod is gone": lambda live, old: old not in live.pods(),
    "another one takes writes": lambda live, old: any(slot != old for slot in live.writable().values()),
    "the status names another one": lambda live, old: live.cr["status"]["currentPrimary"] != old,
}


def api_server_away(scene: Scene) -> None:
    """Let the API server be away for a while; half of the time a server ends meanwhile."""
    primary = scene.live.primary
    with scene.without_api_server():
        if scene.dice.random() < 0.5:
            scene.live.end(primary)
        scene.pause(3.0)


# How much of each there is, in parts.
FAULTS: dict[Callable[[Scene], None], int] = {
    primary_killed: 10,
    replica_killed: 4,
    primary_and_replica_killed: 6,
    all_killed: 6,
    primary_stopped: 8,
    primary_hangs: 3,
    primary_cut_off: 4,
    primary_network_dead: 4,
    replica_cut_off: 3,
    primary_pod_deleted: 5,
    primary_volume_lost: 8,
    replica_volume_lost: 4,
    primary_volume_emptied: 5,
    replica_volume_emptied: 3,
    replica_away_until_its_log_is_thrown_away: 2,
    switchover: 6,
    primary_killed_in_a_switchover: 6,
    two_primaries_lost_in_a_row: 6,
    primary_lost_in_a_backup: 5,
    primary_lost_in_a_scale_in: 5,
    primary_killed_while_a_password_is_rotated: 4,
    replication_password_changed: 4,
    created_again_after_a_foreground_deletion: 4,
    daemon_killed_in_a_failover: 8,
    daemon_killed_in_a_switchover: 6,
    api_server_away: 5,
}
