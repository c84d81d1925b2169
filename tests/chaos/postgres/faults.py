"""What goes wrong with a database: one fault at a time, each by its own dice.

A fault is a function that hurts the database, mends what only people mend, and returns once that is done. Nobody ever approves anything: no row that was acknowledged may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.sandbox.errors import SandboxError
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
            self.signal(slot)
        self.replaced(before)

    def signal(self, slot: str) -> None:
        try:
            self.live.sandbox.pods.signal(self.live.namespace, slot, "KILL")
        except SandboxError:
            return  # it has ended before

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
    live, primary = scene.live, scene.live.primary
    live.sandbox.pods.pause(live.namespace, primary)
    try:
        scene.pause(8.0)
    finally:
        live.sandbox.pods.heal(live.namespace, primary)


def primary_cut_off(scene: Scene) -> None:
    _cut_off(scene, scene.live.primary)


def replica_cut_off(scene: Scene) -> None:
    _cut_off(scene, scene.dice.choice(scene.replicas))


def _cut_off(scene: Scene, slot: str) -> None:
    live = scene.live
    live.sandbox.pods.partition(live.namespace, slot)
    try:
        scene.pause(5.0)
    finally:
        live.sandbox.pods.heal(live.namespace, slot)


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

    live.sandbox.pods.pause(live.namespace, slot)
    try:
        soon(is_thrown_away, f"what {slot} needs is thrown away")
    finally:
        live.sandbox.pods.heal(live.namespace, slot)
    soon(lambda: slot not in live.pods(), f"{slot} gives way to another one")


def switchover(scene: Scene) -> None:
    to = scene.dice.choice(scene.replicas)
    scene.wish(to)
    soon(lambda: scene.live.cr["status"].get("switchoverAnswered") == to, f"{to} has taken over")


def primary_killed_in_a_switchover(scene: Scene) -> None:
    scene.wish(scene.dice.choice(scene.replicas))
    scene.pause(1.0)
    for slot in scene.dice.sample(sorted(scene.live.pods()), 1):
        scene.signal(slot)


def two_primaries_lost_in_a_row(scene: Scene) -> None:
    primary_volume_lost(scene)
    scene.kill(scene.live.primary)


def primary_lost_in_a_backup(scene: Scene) -> None:
    scene.live.annotate(backup_now=f"chaos {scene.dice.randrange(10**9)}")
    scene.pause(2.0)
    primary_volume_lost(scene)


def primary_lost_in_a_scale_in(scene: Scene) -> None:
    live, count = scene.live, len(scene.live.pods())
    live.change(replicas=count - 1)
    scene.pause(1.0)
    scene.signal(live.primary)
    live.settled()
    live.change(replicas=count)


def primary_killed_while_a_password_is_rotated(scene: Scene) -> None:
    live = scene.live
    before = live.ask("GET", live.path("secrets", "db-user-other"))["metadata"]["uid"]
    live.ask("DELETE", live.path("secrets", "db-user-other"))
    scene.signal(live.primary)

    def is_another() -> bool:
        return live.ask("GET", live.path("secrets", "db-user-other")).get("metadata", {}).get("uid") not in {before, None}  # fmt: skip

    soon(is_another, "the Secret is recreated")


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
            scene.signal(primary)
        scene.pause(3.0)


# How much of each there is, in parts.
FAULTS: dict[Callable[[Scene], None], int] = {
    primary_killed: 10,
    replica_killed: 4,
    primary_and_replica_killed: 6,
    all_killed: 6,
    primary_stopped: 10,
    primary_cut_off: 5,
    replica_cut_off: 3,
    primary_pod_deleted: 5,
    primary_volume_lost: 8,
    replica_volume_lost: 4,
    replica_away_until_its_log_is_thrown_away: 2,
    switchover: 6,
    primary_killed_in_a_switchover: 6,
    two_primaries_lost_in_a_row: 6,
    primary_lost_in_a_backup: 5,
    primary_lost_in_a_scale_in: 5,
    primary_killed_while_a_password_is_rotated: 4,
    daemon_killed_in_a_failover: 8,
    daemon_killed_in_a_switchover: 6,
    api_server_away: 5,
}
