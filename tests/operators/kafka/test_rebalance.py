"""A KafkaRebalance from its proposal to its end: every state, each told from what Kafka says and from what was written down."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.module_api import SpecError
from kubectl_reconcile_operators.kafka.partitions.assignment import (
    Broker,
    Key,
    Partition,
    assignment_of,
    with_replicas,
)
from kubectl_reconcile_operators.kafka.partitions.batches import InFlight
from kubectl_reconcile_operators.kafka.partitions.proposal import proposal_of, propose
from kubectl_reconcile_operators.kafka.rebalance.decision import (
    RebalanceDo,
    RebalancePhase,
    RebalanceSituation,
    next_rebalance_step,
)
from kubectl_reconcile_operators.kafka.rebalance.kept import PACKED, PLAIN, kept_of, read_back, summary, totals, written
from kubectl_reconcile_operators.kafka.rebalance.spec import rebalance_spec
from tests.operators.kafka.clusters import Cluster, clusters

Do, Phase = RebalanceDo, RebalancePhase


def spec(**fields):
    return rebalance_spec(
        {
            "spec": {
                "clusterRef": {"name": "kf"},
                "goals": ["disk", "replicas", "leaders"],
                "maxMovesInFlight": 2,
                **fields,
            }
        }
    )


BAD = {
    "no cluster": ({"clusterRef": {"name": ""}}, ".spec.clusterRef.name"),
    "an unknown goal": ({"goals": ["cpu"]}, ".spec.goals: must be one of rack, disk, replicas, leaders, not 'cpu'"),
    "no goal": ({"goals": []}, ".spec.goals: must name at least one"),
    "a goal twice": ({"goals": ["disk", "disk"]}, ".spec.goals: names disk twice"),
    "an unknown mode": ({"mode": "half"}, ".spec.mode: must be one of full, add-brokers, remove-brokers"),
    "brokers with mode full": (
        {"brokers": [1]},
        ".spec.brokers: can be set only with mode add-brokers or remove-brokers",
    ),
    "no brokers to add": ({"mode": "add-brokers"}, ".spec.brokers: must name the brokers"),
    "a broker twice": ({"mode": "add-brokers", "brokers": [1, 1]}, ".spec.brokers: names 1 twice"),
    "a pattern": ({"excludeTopics": ["a", "b.*c"]}, ".spec.excludeTopics[1]: must be a topic's name"),
}


@pytest.mark.parametrize(("fields", "says"), BAD.values(), ids=BAD)
def test_a_spec_that_makes_no_sense_is_refused_by_field(fields, says):
    with pytest.raises(SpecError) as refused:
        spec(**fields)
    assert str(refused.value).startswith(says)


class World:
    """A cluster with one rebalance, whose steps are carried out one at a time; all that is remembered is what was written down."""

    def __init__(self, seen, wish):
        self.kafka, self.spec = Cluster(seen), wish
        self.data, self.approved, self.begun, self.ended, self.throttled, self.going = {}, "", False, None, False, False
        self.busy = ""

    def step(self):
        kept = read_back(self.data) if self.data else None
        now = RebalanceSituation(
            self.kafka.seen,
            list(self.kafka.flights.values()),
            kept,
            approved=kept is not None and self.approved == kept.digest,
            begun=self.begun,
            ended=self.ended,
            throttled=self.throttled,
            busy=self.busy,
        )
        return next_rebalance_step(self.spec, now, is_going=self.going)

    def take(self, step):
        if step.do is Do.KEEP:
            self.data, self.begun, self.ended = written(step.kept), False, None
        if step.do is Do.APPROVE:
            self.approved = step.kept.digest
        if step.do is Do.BEGIN:
            self.begun = True
        self.throttled = self.throttled and bool(self.kafka.flights)
        if step.do is Do.MOVE:
            self.throttled = True
            self.kafka.cancel(step.batch.cancel)
            self.kafka.submit({key: new for key, new in step.batch.submit.items() if key not in step.batch.cancel})
        if step.phase in {Phase.READY, Phase.STOPPED} and step.do is Do.NOTHING:
            self.ended = step.phase

    def until(self, *phases, finish=True):
        """Take steps until one is of these phases, with nothing to do; return the phases on the way."""
        way = []
        for _ in range(500):
            step = self.step()
            way += [] if way[-1:] == [step.phase] else [step.phase]
            self.take(step)
            if step.phase in phases and step.do in {Do.NOTHING, Do.APPROVE}:
                return way
            if finish and step.do is Do.WAIT and self.kafka.flights:
                self.kafka.finish(min(self.kafka.flights))
        raise AssertionError(f"never came to {phases}: {way}, now {step}")


def lopsided(partitions=6):
    """Four brokers, of which the last holds nothing."""
    held = [(1, 2), (2, 3), (3, 1)]
    return assignment_of(
        [Broker(each) for each in (1, 2, 3, 4)],
        [Partition("t", n, held[n % 3], held[n % 3], held[n % 3][0], 10, 1) for n in range(partitions)],
    )


def wanted(seen, wish):
    return {
        key: each.replicas for key, each in with_replicas(seen, propose(seen, wish.wish).wanted()).partitions.items()
    }


def stands(world):
    return {key: each.replicas for key, each in world.kafka.seen.partitions.items()}


def test_a_rebalance_waits_for_approval_then_moves_and_is_ready_once_the_throttle_is_off():
    world = World(lopsided(), spec())
    assert world.until(Phase.PROPOSAL_READY) == [Phase.PROPOSAL_READY]
    assert world.until(Phase.READY) == [Phase.REBALANCING, Phase.READY]
    assert (stands(world), world.throttled) == (wanted(lopsided(), world.spec), False)


@given(clusters(racks=False), st.integers(1, 3))
def test_any_cluster_ends_as_proposed_and_nothing_is_asked_for_twice(seen, most):
    world = World(seen, spec(maxMovesInFlight=most))
    world.until(Phase.READY)
    assert stands(world) == wanted(seen, world.spec)
    assert len(world.kafka.submitted) == len(set(world.kafka.submitted))


def midway(**fields):
    """A rebalance with two partitions in flight, and none moved."""
    world = World(lopsided(12), spec(**fields))
    world.until(Phase.PROPOSAL_READY)
    while not world.kafka.flights:
        world.take(world.step())
    assert len(world.kafka.flights) == 2
    return world


def test_stopped_midway_it_takes_back_what_is_in_flight_and_keeps_what_was_moved():
    world = midway()
    moved = min(world.kafka.flights)
    world.kafka.finish(moved)
    world.spec = replace(world.spec, stopped=True)
    assert world.until(Phase.STOPPED, finish=False) == [Phase.STOPPING, Phase.STOPPED]
    expected = {**stands(World(lopsided(12), world.spec)), moved: wanted(lopsided(12), world.spec)[moved]}
    assert (stands(world), world.throttled, world.kafka.flights) == (expected, False, {})


def test_stopped_and_let_go_again_it_makes_another_proposal():
    world = midway()
    world.spec = replace(world.spec, stopped=True)
    world.until(Phase.STOPPED)
    world.spec = replace(world.spec, stopped=False)
    assert world.step().do is Do.KEEP


def test_deleted_midway_it_takes_back_what_is_in_flight():
    world = midway()
    world.going = True
    assert world.until(Phase.STOPPED, finish=False) == [Phase.STOPPING, Phase.STOPPED]
    assert stands(world) == stands(World(lopsided(12), world.spec))


def test_another_wish_midway_takes_back_what_is_in_flight_before_it_proposes():
    world = midway()
    world.spec = replace(world.spec, mode="remove-brokers", brokers=(4,))
    assert world.until(Phase.READY, finish=False) == [Phase.PENDING_PROPOSAL, Phase.READY]
    assert stands(world) == stands(World(lopsided(12), world.spec))


def test_a_proposal_is_renewed_when_somebody_else_moves_a_replica_and_its_approval_is_void():
    world = World(lopsided(), spec())
    world.until(Phase.PROPOSAL_READY)
    approved, world.approved = world.approved, ""
    world.kafka.seen = with_replicas(world.kafka.seen, {Key("t", 0): (4, 2)})
    assert world.step().do is Do.KEEP
    world.take(world.step())
    world.approved = approved
    assert world.step().do is Do.APPROVE


def test_no_proposal_is_made_while_others_move_partitions():
    world = World(lopsided(), spec())
    world.kafka.flights[Key("t", 0)] = InFlight(Key("t", 0), (1, 2, 3), (3,), (1,))
    step = world.step()
    assert (step.phase, step.do, step.text) == (
        Phase.PENDING_PROPOSAL, Do.WAIT, "waits for 1 partitions that are being moved: t-0"
    )  # fmt: skip


def test_nothing_is_begun_while_the_cluster_is_at_something_else():
    world = World(lopsided(), spec())
    world.until(Phase.PROPOSAL_READY)
    world.busy = "broker 2 restarts"
    step = world.step()
    assert (step.phase, step.do, step.reason) == (Phase.PROPOSAL_READY, Do.WAIT, "ClusterBusy")
    world.busy = ""
    world.take(world.step())
    world.busy = "broker 2 restarts"
    step = world.step()
    assert (step.phase, step.do, step.reason) == (Phase.REBALANCING, Do.WAIT, "ClusterBusy")


def test_a_replica_that_somebody_else_moves_voids_an_approval_until_it_was_begun():
    world = World(lopsided(), spec())
    world.until(Phase.PROPOSAL_READY)
    assert world.step().do is Do.BEGIN
    world.kafka.seen = with_replicas(world.kafka.seen, {Key("t", 0): (4, 2)})
    world.take(world.step())
    assert world.step().do is Do.APPROVE


def test_what_somebody_else_moves_once_it_was_begun_stays_where_it_was_put():
    world = World(lopsided(), spec())
    world.until(Phase.PROPOSAL_READY)
    world.take(world.step())
    moved = min(propose(lopsided(), world.spec.wish).wanted())
    elsewhere = tuple(each for each in (1, 2, 3, 4) if each != lopsided().partitions[moved].replicas[0])[:2]
    world.kafka.seen = with_replicas(world.kafka.seen, {moved: elsewhere})
    world.until(Phase.READY)
    assert stands(world)[moved] == elsewhere


def test_a_wish_that_cant_be_granted_is_not_ready_and_says_why():
    step = World(lopsided(), spec(mode="remove-brokers", brokers=[1, 2, 3])).step()
    assert (step.phase, step.reason) == (Phase.NOT_READY, "CantBe")
    assert "1 brokers can't hold the 2 replicas of t" in step.text


def test_a_broker_that_is_gone_holds_up_only_what_should_move_to_it():
    world = World(lopsided(), spec())
    world.until(Phase.PROPOSAL_READY)
    fenced = {**world.kafka.seen.brokers, 4: Broker(4, fenced=True)}
    world.kafka.seen = assignment_of(fenced.values(), world.kafka.seen.partitions.values())
    for _ in range(5):
        world.take(world.step())
    step = world.step()
    assert (step.phase, step.reason, world.kafka.flights) == (Phase.NOT_READY, "BrokersMissing", {})


def test_a_rebalance_that_has_ended_never_takes_back_what_a_later_one_does():
    world = World(lopsided(), spec())
    world.until(Phase.READY)
    world.kafka.seen = with_replicas(world.kafka.seen, {Key("t", 0): (3, 2)})
    assert world.step().do is Do.NOTHING


def test_while_brokers_say_nothing_a_rebalance_stays_where_it_is():
    world = midway()
    world.kafka.seen = None
    step = world.step()
    assert (step.phase, step.do, step.reason) == (Phase.REBALANCING, Do.WAIT, "NotObserved")
    assert next_rebalance_step(spec(), RebalanceSituation(None)).phase is Phase.NEW


def test_what_is_written_down_reads_back_the_same():
    kept = kept_of(propose(lopsided(), spec().wish), spec().digest)
    assert list(written(kept)) == [PLAIN]
    assert read_back(written(kept)) == kept


def test_the_proposal_of_10_000_partitions_fits_a_config_map_compressed_and_reads_back_the_same():
    keys = [Key(f"topic-{n // 100}", n % 100) for n in range(10_000)]
    held = [tuple((n * 7 + k * k) % 20 for k in range(1, 4)) for n in range(10_000)]
    seen = assignment_of([], [Partition(*key, on, on, on[0], 1000 + on[1]) for key, on in zip(keys, held, strict=True)])
    wanted = {key: tuple((broker * 3 + 20) % 31 + 20 for broker in on) for key, on in zip(keys, held, strict=True)}
    kept = kept_of(proposal_of(seen, wanted), "wish")
    data = written(kept)
    assert list(data) == [PACKED]
    assert len(kept.moves) == 10_000
    assert len(data[PACKED]) < 512 * 1024
    assert read_back(data) == kept


CHANGED = {
    "nothing": {},
    "no JSON": {PLAIN: "{"},
    "another shape": {PLAIN: "[]"},
    "no base64": {PACKED: "no base64!"},
    "not compressed": {PACKED: "aGVsbG8="},
    "a move that isn't the proposal's": {
        PLAIN: written(kept_of(propose(lopsided(), spec().wish), "wish"))[PLAIN].replace('"seen"', '"seen":"0","was"')
    },
}


@pytest.mark.parametrize("data", CHANGED.values(), ids=CHANGED)
def test_what_somebody_has_changed_is_no_proposal(data):
    assert read_back(data) is None


def test_totals_have_each_broker_before_and_after():
    proposal = propose(lopsided(), spec(goals=["replicas"]).wish)
    found = totals(proposal, "d", 10)
    assert (found["partitions"], found["replicas"], found["bytes"], found["estimatedSeconds"]) == (3, 3, 30, 3)
    assert [(each["bytesBefore"], each["bytesAfter"]) for each in found["brokers"]] == [
        (40, 30),
        (40, 30),
        (40, 30),
        (0, 30),
    ]
    assert summary(found).startswith("move 3 partitions: 3 replicas, less than 1 MiB, 3 s at least; ")
