"""KafkaRebalances and the cluster that carries them out: both modules, on a model of Kafka, each pass after the other."""

import copy
import json

import pytest

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress
from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile_operators.kafka import Kafka, KafkaRebalance
from kubectl_reconcile_operators.kafka.partitions.assignment import Broker, Key, Partition, assignment_of
from kubectl_reconcile_operators.kafka.partitions.proposal import proposal_of, propose
from kubectl_reconcile_operators.kafka.rebalance import carried, decision
from kubectl_reconcile_operators.kafka.rebalance.decision import RebalancePhase
from kubectl_reconcile_operators.kafka.rebalance.kept import kept_of, totals
from kubectl_reconcile_operators.kafka.rebalance.record import RebalanceRecord, kept_in, map_of, record_of
from tests.operators.kafka.world import NOW, World, a_cr, condition
from tests.operators.keeping import seen

MIB = 1 << 20


class Rebalanced(World):
    """A cluster with KafkaRebalances, by name."""

    def __init__(self, **spec):
        super().__init__(**spec)
        self.rebalances, self.begun = {}, []

    def wish(self, name="kr", **spec):
        metadata = {"name": name, "namespace": "shop", "uid": f"u-{next(self.new)}", "generation": 1}
        self.rebalances[name] = {
            "apiVersion": "kafka.example.com/v1alpha1",
            "kind": "KafkaRebalance",
            "metadata": metadata,
            "spec": {"clusterRef": {"name": "kf"}, **spec},
        }
        return self

    def change_wish(self, name="kr", **spec):
        self.rebalances[name]["spec"] |= spec
        self.rebalances[name]["metadata"]["generation"] += 1

    def ask(self, with_=outcome_of):
        owned = seen(Kafka, self.cr, self.objects.values(), self.rebalances.values())
        return with_(Kafka, copy.deepcopy(self.cr), owned, self.facts(), Context(NOW, "kafka", self.cr))

    def delete(self, kind, name):
        if kind == "ConfigMap" and name.startswith("kf-rebalance-"):
            self.objects.pop((kind, name))
        else:
            super().delete(kind, name)

    def step(self):
        outcome = super().step()
        for child in outcome.children:
            if child["kind"] == "ConfigMap" and "data" in child:  # the model writes no data
                self.objects["ConfigMap", child["metadata"]["name"]] |= {
                    part: copy.deepcopy(child[part]) for part in ("data", "binaryData") if part in child
                }
        return outcome

    def of(self, name="kr"):
        """What the rebalance's own module says."""
        cr = self.rebalances[name]
        read = [*self.objects.values(), self.cr]
        return outcome_of(
            KafkaRebalance, copy.deepcopy(cr), Owned((), copy.deepcopy(read)), {}, Context(NOW, "kafkarebalance", cr)
        )

    def phase(self, name="kr"):
        return self.of(name).status["phase"]

    def agree(self, name="kr"):
        """Somebody approves what is proposed now; returns the action."""
        (action,) = self.of(name).actions
        assert action.needs_approval
        metadata = self.rebalances[name]["metadata"]
        journal = ActionJournal.of(self.rebalances[name]).ended(action, NOW, ActionProgress.DONE)
        metadata["annotations"] = {ACTIONS: journal.text()}
        return action

    def until(self, phase, name="kr", most=60):
        """Go on until a rebalance is in this phase; returns the phases on the way."""
        way = []
        for _ in range(most):
            self.step()
            if [self.phase(name)] != way[-1:]:
                way.append(self.phase(name))
            if way[-1] == phase:
                return way
        raise AssertionError(f"it never is {phase}: {way}, {self.of(name).conditions}")

    def stands(self):
        return {f"{name}-{at}": each["replicas"] for name, at, each in self.partitions()}


def lopsided(**spec):
    """Four brokers, of which the first two hold most: 12 partitions of 10 MiB."""
    world = Rebalanced(brokers=4, **spec)
    world.settle()
    world.topic("t", *([0, 1] for _ in range(11)), [3, 2], size=10 * MIB)
    world.settle()
    world.took()
    return world


def held(world):
    return [sum(number in replicas for replicas in world.stands().values()) for number in range(4)]


def test_a_rebalance_is_proposed_approved_carried_out_and_ready():
    world = lopsided().wish()
    assert world.until("ProposalReady") == ["ProposalReady"]
    assert world.took() == []
    action = world.agree()
    assert action.summary.startswith("move ")
    assert "brokers hold (replicas, leaders): 0 110 MiB (11, 11) → 60 MiB (6, 3), " in action.summary
    assert world.until("Ready") == ["Rebalancing", "Ready"]
    assert held(world) == [6, 6, 6, 6]
    assert (world.throttled, world.in_flight()) == ({}, {})
    assert condition(world.of(), "Ready").status == "True"
    world.settle()
    assert held(world) == [6, 6, 6, 6]


def test_nothing_moves_before_somebody_approves():
    world = lopsided().wish()
    before = world.stands()
    world.settle()
    assert (world.stands(), world.took(), world.phase()) == (before, [], "ProposalReady")


def test_a_topic_made_meanwhile_voids_the_approval():
    world = lopsided().wish()
    world.until("ProposalReady")
    first = world.agree()
    world.topic("later", [0, 1])
    world.until("ProposalReady")
    assert world.took() == ["elect-leaders"] or world.stands()["t-0"] == [0, 1]
    assert first.key != world.agree().key


def test_stopped_midway_what_is_in_flight_is_taken_back_and_what_was_moved_stays():
    world = lopsided().wish(maxMovesInFlight=2)
    world.until("ProposalReady")
    world.agree()
    world.steps_until(lambda: any(key.startswith("move-partitions") for key in world.taken))
    world.stuck = {2, 3}
    world.steps_until(world.in_flight)
    flying = {f"{topic}-{at}" for topic, some in world.in_flight().items() for at in some}
    before = {name: each for name, each in world.stands().items() if name not in flying}
    assert len(flying) == 2
    assert any(each != [0, 1] for name, each in before.items() if name != "t-11")
    world.change_wish(stopped=True)
    assert world.until("Stopped")[-2:] == ["Stopping", "Stopped"]
    after = world.stands()
    assert {name: each for name, each in after.items() if name not in flying} == before
    assert [after[name] for name in flying] == [[0, 1], [0, 1]]
    assert (world.throttled, world.in_flight()) == ({}, {})


def test_an_approval_ends_with_a_stop_even_if_the_same_moves_are_proposed_again():
    world = lopsided().wish()
    world.until("ProposalReady")
    first = world.agree()
    world.change_wish(stopped=True)
    world.until("Stopped")
    world.change_wish(stopped=False)
    world.until("ProposalReady")
    world.settle()
    assert world.phase() == "ProposalReady"
    second = world.agree()
    assert (second.summary, second.key == first.key) == (first.summary, False)
    world.until("Ready")


def test_deleted_midway_it_stays_until_what_is_in_flight_is_taken_back():
    world = lopsided().wish(maxMovesInFlight=2)
    world.until("ProposalReady")
    world.agree()
    world.stuck = {2, 3}
    world.steps_until(world.in_flight)
    cr = world.rebalances["kr"]
    cr["metadata"]["deletionTimestamp"] = NOW

    def finalized():
        read = Owned((), copy.deepcopy([*world.objects.values(), world.cr]))
        return KafkaRebalance.finalize(cr, read, {}, Context(NOW, "kafkarebalance", cr)).finalized

    assert not finalized()
    for _ in range(8):
        world.step()
    assert finalized()
    assert (world.in_flight(), world.throttled) == ({}, {})
    del world.rebalances["kr"]
    world.settle()
    assert not [name for kind, name in world.objects if kind == "ConfigMap" and "rebalance" in name]


def test_brokers_that_come_are_filled_first_and_a_rebalance_waits():
    world = lopsided().wish()
    world.until("ProposalReady")
    world.agree()
    world.change(brokers=5)
    world.step()
    world.settle()
    assert world.phase() == "ProposalReady"  # another one, since partitions have moved
    assert world.of().actions


def test_while_a_rebalance_moves_no_broker_restarts_and_then_they_do():
    world = lopsided().wish(maxMovesInFlight=1)
    world.until("ProposalReady")
    world.agree()
    world.step()
    world.change(config={"queued.max.requests": "400"})
    world.settle()
    kinds = [key.split("-")[0] for key in world.took() if key.startswith(("move-partitions", "delete kf"))]
    assert kinds == sorted(kinds, reverse=True)
    assert {"move", "delete kf"} == set(kinds)


def test_one_rebalance_moves_at_a_time():
    world = lopsided().wish("a", maxMovesInFlight=1).wish("b", mode="remove-brokers", brokers=[2])
    world.until("ProposalReady", "b")
    world.agree("a")
    world.agree("b")
    world.until("Rebalancing", "a")
    world.step()
    assert world.phase("b") in {"ProposalReady", "PendingProposal"}
    world.until("Ready", "a")
    world.until("ProposalReady", "b")


def test_a_broker_that_a_rebalance_empties_stays_empty_until_the_rebalance_goes():
    world = lopsided().wish(mode="remove-brokers", brokers=[2])
    world.until("ProposalReady")
    world.agree()
    world.until("Ready")
    world.settle()
    assert held(world)[2] == 0
    del world.rebalances["kr"]
    world.settle()
    assert held(world)[2] > 0


def test_the_throttle_and_the_number_at_a_time_are_those_of_the_rebalance():
    world = lopsided().wish(maxMovesInFlight=1, throttleBytesPerSecond=12345)
    world.until("ProposalReady")
    world.agree()
    world.stuck = {2, 3}
    world.settle()
    assert sum(map(len, world.in_flight().values())) == 1
    assert {rate for each in world.throttled.values() for rate in each.values()} == {"12345"}


REFUSED = {
    "an unknown broker": (
        {"mode": "add-brokers", "brokers": [7]},
        "CantBe",
        ".spec.brokers: brokers 7 aren't there (hint: there are 0, 1, 2, 3)",
    ),
    "an unknown topic": (
        {"excludeTopics": ["t", "orders"]},
        "CantBe",
        ".spec.excludeTopics: topics orders aren't there (hint: leave them out; there are t)",
    ),
    "racks that nobody knows": ({"goals": ["rack"]}, "CantBe", ".spec.goals: goal rack needs to know where brokers"),
    "more brokers to empty than can go": (
        {"mode": "remove-brokers", "brokers": [1, 2, 3]},
        "CantBe",
        ".spec.brokers: 1 brokers can't hold the 2 replicas of t (hint: keep 2 brokers",
    ),
}


@pytest.mark.parametrize(("wish", "reason", "says"), REFUSED.values(), ids=REFUSED)
def test_a_wish_that_cant_be_granted_says_why_and_the_cluster_stays_as_it_is(wish, reason, says):
    world = lopsided().wish(**wish)
    before = world.stands()
    world.settle()
    found = condition(world.of(), "Degraded")
    assert (world.phase(), found.reason, found.message[: len(says)]) == ("NotReady", reason, says)
    assert (world.stands(), world.took()) == (before, [])


@pytest.fixture
def planned(monkeypatch):
    """How often a proposal was worked out, as a list."""
    every = []

    def counted(seen, wish):
        every.append(wish)
        return propose(seen, wish)

    monkeypatch.setattr(decision, "propose", counted)
    return every


def test_a_wish_that_cant_be_granted_is_worked_out_again_only_when_what_it_was_worked_out_from_changes(planned):
    world = lopsided().wish(mode="remove-brokers", brokers=[1, 2, 3])
    world.settle()
    assert (world.phase(), len(planned)) == ("NotReady", 1)
    before = condition(world.of(), "Degraded")
    for _ in range(5):
        world.step()
    assert (len(planned), condition(world.of(), "Degraded")) == (1, before)
    world.topic("wide", [0, 1, 2])
    world.settle()
    assert (len(planned), world.phase()) == (2, "NotReady")
    assert "the 3 replicas of t, wide" in condition(world.of(), "Degraded").message
    world.change_wish(throttleBytesPerSecond=1000)  # whoever edits it has it tried again
    world.settle()
    assert (len(planned), world.phase()) == (3, "NotReady")
    world.change_wish(brokers=[3])
    world.until("ProposalReady")


def test_moves_that_are_too_many_to_be_written_down_are_worked_out_once(planned, monkeypatch):
    monkeypatch.setattr(carried, "KEPT_MAX", 10)
    world = lopsided().wish()
    world.settle()
    world.settle()
    assert (condition(world.of(), "Degraded").reason, len(planned)) == ("TooLarge", 1)


def test_an_unknown_cluster_is_told_with_field_and_hint():
    world = lopsided().wish(clusterRef={"name": "other"})
    found = condition(world.of(), "Ready")
    assert (found.reason, world.phase()) == ("ClusterNotFound", "NotReady")
    assert found.message.startswith(".spec.clusterRef.name: there is no Kafka other in this namespace (hint: ")


def test_brokers_that_arent_there_are_told_before_any_broker_answers():
    world = (
        Rebalanced(brokers=4)
        .wish("one", mode="add-brokers", brokers=[3, 7])
        .wish("two", mode="add-brokers", brokers=[3])
    )
    found = condition(world.of("one"), "Degraded")
    assert (world.phase("one"), world.phase("two")) == ("NotReady", "New")
    assert found.message == ".spec.brokers: brokers 7 aren't there (hint: there are 0, 1, 2, 3)"


def test_a_kafka_that_says_to_have_more_brokers_than_there_can_be_counts_as_one_with_the_most():
    world = Rebalanced(brokers=4).wish("one", mode="add-brokers", brokers=[5000])
    world.cr["spec"]["brokers"] = 10_000
    assert condition(world.of("one"), "Degraded").message.startswith(".spec.brokers: brokers 5000 aren't there")


def test_a_config_map_of_somebody_else_says_nothing():
    world = lopsided().wish()
    world.until("ProposalReady")
    for (kind, name), each in world.objects.items():
        if kind == "ConfigMap" and "rebalance" in name:
            each["metadata"]["ownerReferences"][0]["uid"] = "another"
    assert (world.phase(), world.of().actions) == ("New", ())


def test_a_paused_cluster_is_told():
    world = lopsided(paused=False).wish()
    world.until("ProposalReady")
    world.change(paused=True)
    world.settle()
    assert condition(world.of(), "Ready").reason == "ClusterPaused"
    assert not world.of().actions


def test_a_proposal_of_10_000_partitions_on_200_brokers_fits_a_config_map_and_a_status():
    held = {number: tuple((number * 7 + each * each) % 100 for each in range(1, 4)) for number in range(10_000)}
    seen = assignment_of(
        (Broker(each) for each in range(200)),
        (Partition("t", number, on, on, on[0], 7 << 30) for number, on in held.items()),
    )
    proposal = proposal_of(seen, {Key("t", number): tuple(each + 100 for each in on) for number, on in held.items()})
    kept = kept_of(proposal, "wish")
    record = RebalanceRecord(
        "u", 1, RebalancePhase.PROPOSAL_READY, digest=kept.digest, proposal=totals(proposal, kept.digest, 1000)
    )
    found = map_of(Context(NOW, "kafka", a_cr()), "kr", record, kept)
    assert kept_in(found) == kept
    assert record_of(found, "u") == record
    assert sum(len(text) for part in ("data", "binaryData") for text in found[part].values()) < 512 * 1024
    assert len(json.dumps(dict(record.proposal))) < 64 * 1024


# --- what rebalances and scaling do to each other ---------------------------------------------------


def rebalance_maps(world):
    return [name for kind, name in world.objects if kind == "ConfigMap" and name.startswith("kf-rebalance-")]


def test_what_was_written_down_may_be_lost_midway_and_the_rest_is_proposed_again():
    world = lopsided().wish(maxMovesInFlight=2)
    world.until("ProposalReady")
    first = world.agree()
    world.stuck = {2, 3}
    world.steps_until(world.in_flight)
    for name in rebalance_maps(world):
        world.delete("ConfigMap", name)
    world.settle()
    assert (world.phase(), bool(world.in_flight())) == ("PendingProposal", True)
    world.stuck = set()
    world.until("ProposalReady")
    assert world.agree().key != first.key
    world.until("Ready")
    assert held(world) == [6, 6, 6, 6]
    assert (world.throttled, world.in_flight()) == ({}, {})


@pytest.mark.parametrize("passes", range(8))
def test_a_rebalance_ends_though_the_brokers_that_it_empties_leave_before_it_knows_that_they_are_empty(passes):
    world = lopsided()
    world.topic("more", *[[3, 0]] * 3)
    world.wish(mode="remove-brokers", brokers=[3], maxMovesInFlight=1)
    world.until("ProposalReady")
    world.agree()
    world.until("Rebalancing")
    begun = {key: copy.deepcopy(each) for key, each in world.objects.items() if key[1] in rebalance_maps(world)}
    for _ in range(passes):
        world.step()
    world.change(brokers=3)
    world.settle()
    assert (world.phase(), {*world.pods}, world.registered) == ("Ready", {0, 1, 2}, {0, 1, 2})
    stands = world.stands()
    world.objects |= begun
    world.settle()
    assert (world.phase(), world.stands()) == ("Ready", stands)
    assert condition(world.ask(), "Ready").status == "True"


def test_a_rebalance_of_brokers_that_have_left_says_so_and_holds_up_nothing():
    world = lopsided()
    world.change(brokers=3)
    world.settle()
    world.wish("even").wish("gone", mode="remove-brokers", brokers=[3])
    world.until("NotReady", "gone")
    assert condition(world.of("gone"), "Degraded").message.startswith(".spec.brokers: brokers 3 aren't there")
    world.agree("even")
    world.until("Ready", "even")
    assert condition(world.ask(), "Ready").status == "True"


def without_the_broker_that_was_being_filled():
    """A rebalance called first that was begun, and then lost the broker that it moves replicas to."""
    world = lopsided().wish("first", maxMovesInFlight=1)
    world.until("ProposalReady", "first")
    world.agree("first")
    world.until("Rebalancing", "first")
    world.change(brokers=3)
    world.until("NotReady", "first")
    return world


def test_a_rebalance_to_a_broker_that_has_left_midway_says_so_and_another_is_carried_out():
    world = without_the_broker_that_was_being_filled()
    found = condition(world.of("first"), "Degraded")
    assert found.reason == "BrokersMissing"
    assert found.message.startswith("brokers 3 aren't there or don't run")
    world.wish("second")
    world.until("ProposalReady", "second")
    world.agree("second")
    world.until("Ready", "second")
    assert (held(world), world.throttled, world.in_flight()) == ([8, 8, 8, 0], {}, {})
    assert condition(world.ask(), "Ready").status == "True"


def test_two_rebalances_of_which_each_was_begun_end_one_after_the_other_once_the_broker_is_back():
    world = without_the_broker_that_was_being_filled()
    world.wish("second", maxMovesInFlight=1)
    world.until("ProposalReady", "second")
    world.agree("second")
    world.stuck = {2}
    world.steps_until(world.in_flight)
    world.change(brokers=4)
    world.settle()
    world.stuck = set()
    world.settle()
    assert (world.phase("first"), world.phase("second")) == ("Ready", "Ready")
    assert (world.throttled, world.in_flight()) == ({}, {})


NOT_UNDERSTOOD = {
    "nothing": {},
    "a goal that there isn't": {"goals": ["cpu"]},
    "brokers that are none": {"mode": "remove-brokers", "brokers": ["three"]},
}


@pytest.mark.parametrize("wish", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD)
def test_a_rebalance_in_no_state_at_all_holds_up_neither_the_cluster_nor_others(wish):
    world = lopsided().wish("odd").wish("even")
    world.rebalances["odd"]["spec"] = {"clusterRef": {"name": "kf"}, **wish} if wish else {}
    world.change(brokers=3)
    world.until("ProposalReady", "even")
    world.agree("even")
    world.until("Ready", "even")
    assert ({*world.pods}, condition(world.ask(), "Ready").status) == ({0, 1, 2}, "True")
