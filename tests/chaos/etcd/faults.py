"""What goes wrong with a cluster: one fault at a time, each by its own dice.

A fault is a function that hurts the cluster, mends what only people mend (an API server, a partition, an approval), and returns once that is done. It
returns the slots whose data is gone for good; all other members must be who they were.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.daemon import PROGRAM, until
from tests.chaos.etcd.live import CLAIM, LiveCluster, Rest
from tests.chaos.experiment import ChaosScene
from tests.chaos.live import MemberError, soon


@dataclass(kw_only=True)
class Scene(ChaosScene):
    """Where it all happens. *before* is how the cluster was when the present fault began."""

    live: LiveCluster
    before: Rest

    @property
    def slots(self) -> list[str]:
        return sorted(self.before.members)

    def some(self, count: int) -> list[str]:
        return self.dice.sample(self.slots, count)

    def approve(self) -> None:
        """Let what waits for people through, as they do."""
        command = [PROGRAM, "approve", f"etcdcluster/{self.live.name}", "-n", self.live.namespace, "--yes"]
        environ = {**os.environ, "KUBECONFIG": self.daemon.kubeconfig}

        def is_done() -> bool:
            return subprocess.run(command, env=environ, capture_output=True, check=False, timeout=60).returncode == 0

        until(is_done, "the approval is taken", pause_s=0.5)


# --- crashes and hangs ----------------------------------------------------------------------------


def one_killed(scene: Scene) -> set[str]:
    scene.live.crash(*scene.some(1))
    return set()


def leader_killed(scene: Scene) -> set[str]:
    scene.live.crash(scene.live.leader())
    return set()


def two_killed(scene: Scene) -> set[str]:
    scene.live.crash(*scene.some(2))
    return set()


def all_killed(scene: Scene) -> set[str]:
    scene.live.crash(*scene.slots)
    return set()


def leader_stopped(scene: Scene) -> set[str]:
    with scene.live.hanging(scene.live.leader()):
        scene.pause(5.0)
    return set()


def two_stopped(scene: Scene) -> set[str]:
    """Let two of three hang: nobody leads meanwhile, and nothing is changed."""
    slots = scene.some(2)
    (other,) = {*scene.slots} - {*slots}
    with scene.live.hanging(*slots):
        soon(lambda: scene.live.knows_no_leader(other), f"{other} knows of nobody who leads")
        scene.pause(8.0)
    return set()


def leader_cut_off(scene: Scene) -> set[str]:
    return _cut_off(scene, scene.live.leader())


def one_cut_off(scene: Scene) -> set[str]:
    return _cut_off(scene, *scene.some(1))


def _cut_off(scene: Scene, slot: str) -> set[str]:
    with scene.live.cut_off(slot):
        scene.pause(4.0)
    return set()


# --- by hand --------------------------------------------------------------------------------------


def pod_deleted(scene: Scene) -> set[str]:
    (slot,) = scene.some(1)
    _another_pod(scene, [slot], at_once=False)
    return set()


def pod_deleted_at_once(scene: Scene) -> set[str]:
    (slot,) = scene.some(1)
    _another_pod(scene, [slot], at_once=True)
    return set()


def all_pods_deleted(scene: Scene) -> set[str]:
    _another_pod(scene, scene.slots, at_once=scene.dice.random() < 0.5)
    return set()


def _another_pod(scene: Scene, slots: list[str], *, at_once: bool) -> None:
    before = {slot: scene.live.pods()[slot]["metadata"]["uid"] for slot in slots}
    for slot in slots:
        scene.live.delete_pod(slot, at_once=at_once)

    def are_others() -> bool:
        now = scene.live.pods()
        return all(slot in now and now[slot]["metadata"]["uid"] != uid for slot, uid in before.items())

    until(are_others, f"{', '.join(slots)} are recreated")


def volume_deleted(scene: Scene) -> set[str]:
    (slot,) = scene.some(1)
    scene.live.delete_claim(slot)
    return _replaced(scene, slot)


def volume_and_pod_deleted(scene: Scene) -> set[str]:
    (slot,) = scene.some(1)
    scene.live.delete_claim(slot)
    scene.live.delete_pod(slot, at_once=scene.dice.random() < 0.3)
    return _replaced(scene, slot)


def log_spoilt(scene: Scene) -> set[str]:
    (slot,) = scene.some(1)
    scene.live.crash(slot, also=scene.live.spoil_log)
    return _replaced(scene, slot)


def volume_emptied(scene: Scene) -> set[str]:
    (slot,) = scene.some(1)
    scene.live.crash(slot, also=scene.live.wipe)
    return _replaced(scene, slot)


def volume_emptied_while_others_hang(scene: Scene) -> set[str]:
    """Empty the volume of a member while nobody else answers: it begins nothing, and nobody is removed for it."""
    live, others = scene.live, scene.some(2)
    (slot,) = {*scene.slots} - {*others}
    with live.hanging(*others):
        live.crash(slot, also=live.wipe)
        scene.pause(12.0)
        assert not live.answers(slot), f"{slot} serves what it has begun on an empty volume"
        assert sorted(live.claims()) == scene.slots, "volumes went while nobody could say whose they are"
    return _replaced(scene, slot)


def member_removed(scene: Scene) -> set[str]:
    (slot,) = scene.some(1)
    scene.live.remove_member(slot)
    return _replaced(scene, slot)


def _replaced(scene: Scene, slot: str) -> set[str]:
    """Wait until the member of a slot is another one, or none."""
    live, gone = scene.live, scene.before.members[slot]

    def is_another() -> bool:
        with contextlib.suppress(MemberError):
            return gone not in {each["id"] for each in live.members().values()}
        return False

    until(is_another, f"{slot} is replaced")
    return {slot}


def stranger_added(scene: Scene) -> set[str]:
    live, host = scene.live, f"stranger-{scene.dice.randrange(1000)}.example.com"
    live.add_stranger(host, is_learner=scene.dice.random() < 0.3)
    until(lambda: live.condition("Ready")["reason"] == "Stranger", "the stranger is noticed")
    scene.pause(1.0)
    assert host in live.members(), "the stranger was removed before anybody approved"
    scene.approve()
    until(lambda: host not in live.members(), "the stranger is removed")
    return set()


# --- around it ------------------------------------------------------------------------------------


def daemon_killed_in_a_scaling(scene: Scene) -> set[str]:
    """Kill the daemon at one step of a member more, and at one of a member less."""
    live, size = scene.live, len(scene.slots)
    for wanted, steps in ((size + 1, _JOINING), (size, _LEAVING)):
        live.change(size=wanted)
        _kill_at(scene, steps)
        live.settled()
    return set()


def daemon_killed_in_a_rollout(scene: Scene) -> set[str]:
    """Kill the daemon at one step of another template of pods."""
    change = {"env": [{"name": "ROLLED", "value": str(scene.dice.randrange(10**6))}]}
    scene.live.change(pod={"persistentVolumeClaimSpec": CLAIM, **change})
    _kill_at(scene, _ROLLING)
    return set()


def _kill_at(scene: Scene, steps: dict[str, Callable[[Scene], bool]]) -> None:
    step = scene.dice.choice(list(steps))
    scene.restart_daemon_at(step, lambda: steps[step](scene), within_s=20.0)


def _begun(verb: str) -> Callable[[Scene], bool]:
    return lambda scene: scene.live.has_begun(verb)


_JOINING: dict[str, Callable[[Scene], bool]] = {
    "the addition begins": _begun("add"),
    "the member is added": lambda scene: len(scene.live.members()) > len(scene.slots),
    "its volume is there": lambda scene: len(scene.live.claims()) > len(scene.slots),
    "its pod is there": lambda scene: len(scene.live.pods()) > len(scene.slots),
    "the promotion begins": _begun("promote"),
    "the member votes": lambda scene: sum(not each["learner"] for each in scene.live.members().values()) > len(scene.slots),
}  # fmt: skip
_LEAVING: dict[str, Callable[[Scene], bool]] = {
    "the removal begins": _begun("remove"),
    "the member is removed": lambda scene: len(scene.live.members()) <= len(scene.slots),
    "its pod ends": lambda scene: any("deletionTimestamp" in each["metadata"] for each in scene.live.pods().values()),
    "its pod is gone": lambda scene: len(scene.live.pods()) <= len(scene.slots),
}
_ROLLING: dict[str, Callable[[Scene], bool]] = {
    "a pod ends": _LEAVING["its pod ends"],
    "a pod is gone": lambda scene: len(scene.live.pods()) < len(scene.slots),
    "the leader hands over": _begun("move-leader"),
}


def api_server_away(scene: Scene) -> set[str]:
    """Let the API server be away for a while; half of the time a member crashes meanwhile."""
    with scene.without_api_server():
        if scene.dice.random() < 0.5:
            scene.live.end(*scene.some(1))
        scene.pause(3.0)
    return set()


def api_server_away_in_a_scaling(scene: Scene) -> set[str]:
    live, size = scene.live, len(scene.slots)
    for wanted in (size + 1, size):
        live.change(size=wanted)
        scene.pause(1.5)
        with scene.without_api_server():
            scene.pause(1.5)
        live.settled()
    return set()


# How much of each there is, in parts.
FAULTS: dict[Callable[[Scene], set[str]], int] = {
    one_killed: 5,
    leader_killed: 7,
    two_killed: 8,
    all_killed: 8,
    leader_stopped: 6,
    two_stopped: 6,
    leader_cut_off: 5,
    one_cut_off: 4,
    pod_deleted: 6,
    pod_deleted_at_once: 5,
    all_pods_deleted: 5,
    volume_deleted: 7,
    volume_and_pod_deleted: 6,
    log_spoilt: 7,
    volume_emptied: 6,
    volume_emptied_while_others_hang: 8,
    member_removed: 7,
    stranger_added: 6,
    daemon_killed_in_a_scaling: 9,
    daemon_killed_in_a_rollout: 6,
    api_server_away: 5,
    api_server_away_in_a_scaling: 4,
}
