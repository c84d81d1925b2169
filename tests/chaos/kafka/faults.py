"""What goes wrong with a Kafka: one fault at a time, each by its own dice.

A fault is a function that hurts the cluster, mends what only people mend, and returns once that is done. Nobody approves anything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.engine.api.sync_requests import now_text
from tests.chaos.client import run_once
from tests.chaos.daemon import until
from tests.chaos.experiment import ChaosScene
from tests.chaos.kafka.client import FILLER
from tests.chaos.kafka.live import LiveKafka
from tests.chaos.live import TROUBLE, soon

BROKERS, CONTROLLERS = 4, 3
EXTRA = "extra"
_SEEN_WITHIN_S = 60.0


@dataclass(kw_only=True)
class Scene(ChaosScene):
    """Where it all happens."""

    live: LiveKafka

    @property
    def slots(self) -> list[str]:
        return sorted(self.live.pods())

    @property
    def others(self) -> list[str]:
        """All brokers but the active controller."""
        return sorted({*self.slots} - {self.live.controller})

    def one(self, slots: list[str]) -> str:
        return self.dice.choice(slots)

    def seen(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until something is so, or was over before anybody looked."""

        def looked() -> Any:
            try:
                return condition()
            except TROUBLE:
                return None

        with contextlib.suppress(TimeoutError):
            until(looked, what, timeout_s=_SEEN_WITHIN_S, pause_s=0.05)

    def replaced(self, before: dict[str, str]) -> None:
        """Wait until pods are others."""

        def are_others() -> bool:
            now = self.live.pods()
            return all(slot in now and now[slot]["metadata"]["uid"] != uid for slot, uid in before.items())

        soon(are_others, f"{', '.join(before)} are replaced")

    def roll(self) -> None:
        """Change what takes a restart of all brokers."""
        self.live.change(config={"queued.max.requests": str(self.dice.randrange(400, 10**6))})

    @contextlib.contextmanager
    def fewer(self) -> Iterator[None]:
        """Have a broker leave, and come again after the block and once it has gone."""
        since = now_text()
        self.live.change(brokers=BROKERS - 1)
        try:
            yield
            self.live.settled()
            assert self.live.acted("unregister-broker", since), "no broker has left"
        finally:
            self.live.change(brokers=BROKERS)

    def moves(self, topic: str = "") -> bool:
        """Tell whether partitions are moving, of a topic or of any."""
        found = self.live.moving()
        return topic in found if topic else bool(found)


# --- crashes and hangs ----------------------------------------------------------------------------


def broker_killed(scene: Scene) -> None:
    scene.live.crash(scene.one(scene.others))


def controller_killed(scene: Scene) -> None:
    scene.live.crash(scene.live.controller)


def controller_and_broker_killed(scene: Scene) -> None:
    scene.live.crash(scene.live.controller, scene.one(scene.others))


def all_killed(scene: Scene) -> None:
    scene.live.crash(*scene.slots)


def broker_stopped(scene: Scene) -> None:
    _stopped(scene, scene.one(scene.others))


def controller_stopped(scene: Scene) -> None:
    _stopped(scene, scene.live.controller)


def _stopped(scene: Scene, slot: str) -> None:
    """Stop a broker, until the others do without it or shorter; then it goes on."""
    with scene.live.hanging(slot):
        scene.pause(12.0)


def most_controllers_stopped(scene: Scene) -> None:
    """Let two of three controllers hang, so that nobody leads the cluster."""
    slots = scene.dice.sample([*map(scene.live.slot, range(CONTROLLERS))], 2)
    with scene.live.hanging(*slots):
        scene.pause(8.0)


def broker_cut_off(scene: Scene) -> None:
    with scene.live.cut_off(scene.one(scene.slots)):
        scene.pause(4.0)


# --- by hand --------------------------------------------------------------------------------------


def pod_deleted(scene: Scene) -> None:
    slot = scene.one(scene.slots)
    uid = scene.live.pods()[slot]["metadata"]["uid"]
    scene.live.delete_pod(slot, at_once=scene.dice.random() < 0.5)
    scene.replaced({slot: uid})


def disk_lost(scene: Scene) -> None:
    _lose_disk(scene, scene.live.slot(BROKERS - 1))


def disk_of_a_controller_lost(scene: Scene) -> None:
    _lose_disk(scene, scene.one([*map(scene.live.slot, range(CONTROLLERS))]))


def disk_emptied(scene: Scene) -> None:
    _empty_disk(scene, scene.live.slot(BROKERS - 1))


def disk_of_a_controller_emptied(scene: Scene) -> None:
    _empty_disk(scene, scene.one([*map(scene.live.slot, range(CONTROLLERS))]))


def _empty_disk(scene: Scene, slot: str) -> None:
    """Empty a broker's volume under it: what runs there ends, and another pod formats the volume."""
    uid = scene.live.pods()[slot]["metadata"]["uid"]
    scene.live.crash(slot, also=scene.live.wipe)
    scene.replaced({slot: uid})


def _lose_disk(scene: Scene, slot: str) -> None:
    """Take a broker's volume away, with its pod."""
    uid = scene.live.pods()[slot]["metadata"]["uid"]
    scene.live.delete_claim(slot)
    scene.live.delete_pod(slot)
    scene.replaced({slot: uid})


# --- while something moves, or restarts -----------------------------------------------------------


def mind_changed_while_partitions_move(scene: Scene) -> None:
    live, since = scene.live, now_text()
    live.change(brokers=BROKERS - 1)
    scene.seen(scene.moves, "partitions move")
    assert live.acted("move-partitions", since), "no partition was moved"
    scene.pause(4.0)
    live.change(brokers=BROKERS)


def broker_killed_while_partitions_move(scene: Scene) -> None:
    with scene.fewer():
        scene.seen(scene.moves, "partitions move")
        scene.pause(1.0)
        scene.live.end(scene.one(scene.others))


def controller_killed_while_partitions_move(scene: Scene) -> None:
    with scene.fewer():
        scene.seen(scene.moves, "partitions move")
        scene.pause(1.0)
        scene.live.end(scene.live.controller)


def topic_deleted_while_it_moves(scene: Scene) -> None:
    live = scene.live
    wish = {"name": EXTRA, "num_partitions": 4, "replication_factor": 3, "assignments": [], "configs": []}
    soon(lambda: live.told("CreateTopics", topics=[wish], timeout_ms=20_000, validate_only=False), "it is created")
    soon(lambda: any(topic == EXTRA for topic, _ in live.places()), "a topic of somebody else is there")
    run_once(live, "extra-filler", FILLER, EXTRA, "240")
    with scene.fewer():
        scene.seen(lambda: scene.moves(EXTRA), "it moves")
        live.delete_topic(EXTRA)


def controller_killed_in_a_roll(scene: Scene) -> None:
    _killed_in_a_roll(scene, lambda: scene.live.controller)


def broker_killed_in_a_roll(scene: Scene) -> None:
    _killed_in_a_roll(scene, lambda: scene.one(scene.others))


def _killed_in_a_roll(scene: Scene, who: Callable[[], str]) -> None:
    scene.roll()
    scene.seen(lambda: len(scene.live.pods()) < BROKERS, "a broker restarts")
    scene.pause(5.0)
    scene.live.end(who())


# --- around it ------------------------------------------------------------------------------------


def daemon_killed_in_a_scale_in(scene: Scene) -> None:
    with scene.fewer():
        _kill_at(scene, _LEAVING)


def daemon_killed_in_a_scale_out(scene: Scene) -> None:
    with scene.fewer():
        pass
    _kill_at(scene, _JOINING)


def daemon_killed_in_a_roll(scene: Scene) -> None:
    scene.roll()
    _kill_at(scene, _ROLLING)


def daemon_killed_while_a_controller_is_let_in_again(scene: Scene) -> None:
    disk_of_a_controller_lost(scene)
    _kill_at(scene, _REJOINING)


def _kill_at(scene: Scene, steps: dict[str, Callable[[Scene], Any]]) -> None:
    step = scene.one(list(steps))
    scene.restart_daemon_at(step, lambda: steps[step](scene), within_s=_SEEN_WITHIN_S)


def _begun(verb: str) -> Callable[[Scene], bool]:
    return lambda scene: scene.live.has_begun(verb)


def _is_any_going(scene: Scene) -> bool:
    return any("deletionTimestamp" in each["metadata"] for each in scene.live.pods().values())


_MOVING: dict[str, Callable[[Scene], Any]] = {
    "the move begins": _begun("move-partitions"),
    "partitions move": lambda scene: scene.moves(),
    "the throttle is taken off": _begun("take-throttle-off"),
}
_LEAVING: dict[str, Callable[[Scene], Any]] = {
    **_MOVING,
    "its pod ends": _is_any_going,
    "its pod is gone": lambda scene: len(scene.live.pods()) < BROKERS,
    "the cluster is to forget it": _begun("unregister-broker"),
}
_JOINING: dict[str, Callable[[Scene], Any]] = {
    **_MOVING,
    "its pod is there": lambda scene: len(scene.live.pods()) == BROKERS,
    "leaders are elected": _begun("elect-leaders"),
}
_REJOINING: dict[str, Callable[[Scene], Any]] = {
    "the one that it was is to be put out": _begun("remove-voter"),
    "two are left that vote": lambda scene: len(scene.live.quorum().current_voters) < CONTROLLERS,
    "it is to be let in": _begun("add-voter"),
}
_ROLLING: dict[str, Callable[[Scene], Any]] = {
    "a pod ends": _is_any_going,
    "a pod is gone": lambda scene: len(scene.live.pods()) < BROKERS,
    "leaders are elected": _begun("elect-leaders"),
}


def api_server_away(scene: Scene) -> None:
    """Let the API server be away for a while; half of the time a broker ends meanwhile."""
    slot = scene.one(scene.slots)
    with scene.without_api_server():
        if scene.dice.random() < 0.5:
            scene.live.end(slot)
        scene.pause(4.0)


def api_server_away_while_partitions_move(scene: Scene) -> None:
    with scene.fewer():
        scene.seen(scene.moves, "partitions move")
        with scene.without_api_server():
            scene.pause(4.0)


# How much of each there is, in parts.
FAULTS: dict[Callable[[Scene], None], int] = {
    broker_killed: 6,
    controller_killed: 8,
    controller_and_broker_killed: 4,
    all_killed: 5,
    broker_stopped: 5,
    controller_stopped: 6,
    most_controllers_stopped: 5,
    broker_cut_off: 4,
    pod_deleted: 5,
    disk_lost: 4,
    disk_of_a_controller_lost: 5,
    disk_emptied: 4,
    disk_of_a_controller_emptied: 5,
    mind_changed_while_partitions_move: 8,
    broker_killed_while_partitions_move: 6,
    controller_killed_while_partitions_move: 6,
    topic_deleted_while_it_moves: 6,
    controller_killed_in_a_roll: 6,
    broker_killed_in_a_roll: 4,
    daemon_killed_in_a_scale_in: 7,
    daemon_killed_in_a_scale_out: 6,
    daemon_killed_in_a_roll: 4,
    daemon_killed_while_a_controller_is_let_in_again: 4,
    api_server_away: 4,
    api_server_away_while_partitions_move: 4,
}
