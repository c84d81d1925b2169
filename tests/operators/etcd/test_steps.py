"""The steps of an EtcdCluster, taken in a model of Kubernetes and etcd: which they are, and what never happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.module.call import check_purity
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile_operators.etcd.situation import SURPLUS
from tests.operators.etcd.world import World, condition, formed, joins, slot_of, tag


def leaves(slot):
    return [f"remove {slot}", f"delete {slot}", "put aside"]


def test_a_seed_comes_first_and_then_one_learner_after_the_other():
    world = World(3)
    outcome = world.settle()
    assert world.taken == ["create db-0", *joins("db-1"), *joins("db-2")]
    assert condition(outcome, "Ready").status == "True"
    assert condition(outcome, "Available").status == "True"
    assert condition(outcome, "Degraded").status == "False"
    assert world.cr["status"]["members"] == {"ready": ["db-0", "db-1", "db-2"], "unready": []}
    kinds = sorted(kind for kind, _ in world.objects)
    assert kinds == [*["PersistentVolumeClaim"] * 3, *["Pod"] * 3, "PodDisruptionBudget", "Service", "Service"]
    assert world.objects["PodDisruptionBudget", "db"]["spec"]["minAvailable"] == 2


CHANGED = {
    "size 5": ({"size": 5}, [*joins("db-3"), *joins("db-4")]),
    "size 1": ({"size": 1}, [*leaves("db-2"), *leaves("db-1")]),
    "the next minor": (
        {"version": "3.6.16"},
        ["delete db-1", "create db-1", "delete db-2", "create db-2", "move-leader db-1", "delete db-0", "create db-0"],
    ),
    "an older patch": ({"version": "3.5.1"}, None),
    "an older minor": ({"version": "3.4.9"}, SpecError),
    "paused": ({"size": 5, "paused": True}, []),
}  # fmt: skip


@pytest.mark.parametrize(("change", "steps"), CHANGED.values(), ids=CHANGED)
def test_what_a_change_of_the_spec_takes(change, steps):
    world = formed()
    world.cr["spec"] |= change
    if steps is SpecError:
        with pytest.raises(SpecError):
            world.step()
        return
    world.settle()
    assert steps is None or world.taken == steps
    if "version" in change:
        assert {tag(pod) for pod in world.pods.values()} == {change["version"]}


def test_the_leader_stays_when_others_can_go():
    world = formed(5)
    world.leader = next(each["id"] for each in world.members if slot_of(each) == "db-4")
    world.cr["spec"]["size"] = 3
    world.settle()
    assert world.taken == [*leaves("db-3"), *leaves("db-2")]
    assert sorted(world.pods) == ["db-0", "db-1", "db-4"]


def test_volumes_of_members_that_are_not_wanted_any_more_are_kept_and_nobody_starts_on_them():
    world = formed(5)
    held = {slot_of(each): each["id"] for each in world.members}
    world.cr["spec"]["size"] = 3
    outcome = world.settle()
    assert {slot: world.aside(slot) for slot in ("db-3", "db-4")} == {slot: held[slot] for slot in ("db-3", "db-4")}
    assert world.cr["status"]["keptVolumes"] == [{"claim": "db-3-data"}, {"claim": "db-4-data"}]
    assert (condition(outcome, "Ready").status, world.held) == ("True", [])
    world.cr["spec"]["size"] = 5
    assert condition(world.settle(), "Ready").status == "True"
    assert sorted(world.pods) == ["db-0", "db-1", "db-2", "db-5", "db-6"]


def test_volumes_of_members_that_are_not_wanted_any_more_go_once_somebody_has_approved():
    world = formed(3, deletionPolicy="Delete")
    world.cr["spec"]["size"] = 1
    outcome = world.settle()
    assert condition(outcome, "Ready").reason == "AwaitsApproval"
    assert condition(outcome, "Ready").message == (
        "delete the volume of db-1, which is no member any more (.spec.deletionPolicy is Delete)"
    )
    assert all(world.aside(slot) for slot in ("db-1", "db-2"))
    world.approve()
    outcome = world.settle()
    assert world.taken[-2:] == ["end-volume db-1", "delete volume db-1"]
    assert "the volume of db-2" in condition(outcome, "Ready").message
    world.cr["spec"]["deletionPolicy"] = "Retain"
    assert condition(world.settle(), "Ready").status == "True"
    assert world.aside("db-2")


def test_an_approval_is_of_the_very_volume_that_was_shown():
    world = formed(3, deletionPolicy="Delete")
    world.cr["spec"]["size"] = 1
    world.settle()
    world.approve()
    world.objects["PersistentVolumeClaim", "db-1-data"]["metadata"]["uid"] = "another"
    world.settle()
    assert ("PersistentVolumeClaim", "db-1-data") in world.objects


def test_the_volume_of_a_member_that_is_to_stay_after_all_is_as_any_other():
    world = formed(5)
    world.cr["spec"]["size"] = 3
    world.act = lambda _: None  # the removal is refused, or somebody is killed before it
    world.step()
    claim = world.objects["PersistentVolumeClaim", "db-4-data"]
    assert SURPLUS in claim["metadata"]["annotations"]
    world.cr["spec"]["size"] = 5
    world.settle()
    assert SURPLUS not in claim["metadata"]["annotations"]


def test_a_pod_of_a_member_that_was_removed_stays_away_while_nobody_answers():
    world = formed(5)
    world.cr["spec"]["size"] = 3
    while "delete db-4" not in world.taken:
        world.step()
    world.is_unheard = True
    world.step()
    world.is_unheard = False
    world.settle()
    assert world.taken == [*leaves("db-4"), *leaves("db-3")]


def test_pods_of_members_come_back_while_nobody_answers():
    world = formed()
    world.objects.pop(("Pod", "db-1"))
    world.is_unheard = True
    world.settle()
    assert world.taken == ["create db-1"]


def test_a_member_that_is_ready_but_has_no_time_to_answer_does_not_go_before_others():
    world = formed(5)
    world.cr["spec"]["size"] = 3
    world.silent = {world.pods["db-2"]["metadata"]["uid"]}
    outcome = world.ask()
    assert not outcome.actions
    assert condition(outcome, "Ready").reason == "MemberNotServing"
    world.settle()
    assert world.taken == [*leaves("db-4"), *leaves("db-3")]


REFUSED = {
    "two minors at once": ("3.5.35", "3.7.1", "upgrade to 3.6 first"),
    "a minor back": ("3.6.16", "3.5.35", "set it to 3.6.16"),
}


@pytest.mark.parametrize(("before", "after", "hint"), REFUSED.values(), ids=REFUSED)
def test_a_version_that_can_not_be_had_is_told_and_all_else_goes_on(before, after, hint):
    world = formed(version=before)
    world.cr["spec"] |= {"version": after, "size": 5}
    outcome = world.settle()
    assert world.taken == [*joins("db-3"), *joins("db-4")]
    assert {tag(pod) for pod in world.pods.values()} == {before}
    found = condition(outcome, "Degraded")
    assert (found.status, found.reason) == ("True", "VersionRefused")
    assert found.message.startswith(".spec.version: ")
    assert hint in found.message


def test_an_upgrade_that_is_half_done_goes_back():
    world = formed()
    world.cr["spec"]["version"] = "3.6.16"
    while "create db-1" not in world.taken:
        world.step()
    world.cr["spec"]["version"] = "3.5.35"
    world.settle()
    assert world.taken[2:] == ["delete db-1", "create db-1"]


def test_a_deleted_pod_comes_back_on_its_volume_as_the_member_it_was():
    world = formed()
    before = [each["id"] for each in world.members]
    world.objects.pop(("Pod", "db-0"))
    world.run()
    world.settle()
    assert world.taken == ["create db-0"]
    assert [each["id"] for each in world.members] == before


def test_a_member_whose_data_is_gone_is_replaced():
    world = formed()
    for kind, name in (("Pod", "db-1"), ("PersistentVolumeClaim", "db-1-data")):
        world.objects.pop((kind, name))
    world.settle()
    assert world.taken == ["remove db-1", *joins("db-1")]


def test_a_new_volume_of_an_old_name_is_no_data():
    world = formed()
    world.objects.pop(("Pod", "db-1"))
    claim = world.objects["PersistentVolumeClaim", "db-1-data"]
    claim["metadata"] = {**claim["metadata"], "uid": "u-fresh", "annotations": {}}
    world.settle()
    assert world.taken == ["remove db-1", "delete volume db-1", *joins("db-1")]


def test_a_member_whose_volume_was_deleted_under_it_is_replaced_while_it_serves():
    world = formed()
    world.doom("db-1")
    world.settle()
    assert world.taken == ["remove db-1", "delete db-1", *joins("db-1")]


def test_the_leader_hands_over_before_it_is_replaced_for_its_volume():
    world = formed()
    for slot in ("db-0", "db-1", "db-2"):
        world.doom(slot)
    world.settle(200)
    one_by_one = [
        f"{verb} {slot}" for slot in ("db-1", "db-2") for verb in ("remove", "delete", "add", "create", "promote")
    ]
    assert world.taken == [*one_by_one, "move-leader db-1", "remove db-0", "delete db-0", *joins("db-0")]


def test_a_member_that_can_not_be_spared_keeps_its_pod_though_its_volume_was_deleted():
    world = formed(1)
    world.doom("db-0")
    world.cr["spec"]["version"] = "3.6.16"
    outcome = world.settle()
    assert world.taken == []
    found = condition(outcome, "Degraded")
    assert (found.reason, ".spec.size" in found.message) == ("VolumeTerminating", True)
    world.cr["spec"]["size"] = 3
    outcome = world.settle(200)
    assert condition(outcome, "Ready").status == "True"
    assert not world.is_doomed("db-0")
    assert world.bootstraps == 1


@pytest.mark.parametrize("slot", ["db-0", "db-1"])
def test_a_pod_that_was_made_without_its_volume_gets_it(slot):
    world = World(3)
    world.broken.add(slot)
    while f"create {slot}" not in world.taken:
        world.step()
    world.objects.pop(("PersistentVolumeClaim", f"{slot}-data"))  # whoever made both was killed in between
    world.step()
    assert ("PersistentVolumeClaim", f"{slot}-data") in world.objects
    world.broken.clear()
    world.run()
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert world.taken == ["create db-0", *joins("db-1"), *joins("db-2")]


def test_a_deleted_volume_keeps_no_pod_from_coming_back():
    world = formed(2)
    world.doom("db-1")
    world.objects.pop(("Pod", "db-0"))
    world.run()
    outcome = world.settle()
    assert world.taken == ["create db-0"]
    assert condition(outcome, "Degraded").reason == "VolumeTerminating"


def test_in_memory_a_lost_pod_is_a_lost_member():
    world = formed(in_memory=True)
    world.objects.pop(("Pod", "db-2"))
    world.settle()
    assert world.taken == ["remove db-2", *joins("db-2")]
    world.taken.clear()
    world.cr["spec"]["version"] = "3.6.16"
    world.settle()
    assert {tag(pod) for pod in world.pods.values()} == {"3.6.16"}
    assert not [step for step in world.taken if "volume" in step]


def test_what_would_lose_data_is_left_to_people():
    world = formed(1, in_memory=True)
    world.cr["spec"]["version"] = "3.6.16"
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Degraded").reason == "WouldLoseData"
    assert ".spec.size" in condition(outcome, "Degraded").message
    world.objects.pop(("Pod", "db-0"))
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Degraded").reason == "DataLost"
    assert world.cr["status"]["phase"] == "Failed"


def test_without_a_majority_no_member_comes_or_goes_and_pods_come_back():
    world = formed()
    world.broken |= {"db-1", "db-2"}
    world.run()
    world.cr["spec"]["size"] = 5
    outcome = world.settle()
    assert world.taken == []
    found = condition(outcome, "Degraded")
    assert (found.reason, "db-1, db-2 of 3 members don't serve" in found.message) == ("QuorumLost", True)
    for name in ("db-0", "db-1", "db-2"):
        world.objects.pop(("Pod", name))
    world.broken.clear()
    world.settle()
    assert world.taken[:3] == ["create db-0", "create db-1", "create db-2"]
    assert len(world.voters) == 5


def test_a_pod_that_is_no_member_goes_and_a_member_without_its_pod_gets_it():
    world = formed()
    (gone,) = (each for each in world.members if slot_of(each) == "db-2")
    world.members.remove(gone)  # by hand, with etcdctl
    world.run()
    world.settle()
    assert world.taken == ["delete db-2", "put aside", *joins("db-3")]
    assert world.aside("db-2") == gone["id"]  # whoever removes a member by hand deletes its data by hand, too


def test_a_stranger_among_the_members_is_removed_by_people_alone():
    world = formed()
    world.members.append({"id": "ff", "name": "", "peer": "http://elsewhere:2380", "learner": True})
    outcome = world.ask(check_purity)
    (action,) = outcome.actions
    assert (action.verb, action.needs_approval, action.parameters["member"]) == ("remove", True, "ff")


def test_data_that_its_own_etcd_refuses_is_replaced():
    world = formed()
    world.broken.add("db-1")
    world.run()
    pod = world.pods["db-1"]
    ended = {"exitCode": 1, "message": '{"level":"fatal","msg":"walpb: crc mismatch"}'}
    state = {
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    pod["status"]["containerStatuses"] = [state]
    outcome = world.ask()
    (action,) = outcome.actions
    assert (action.verb, action.parameters["slot"]) == ("remove", "db-1")
    for what, says_so in LAST_WORDS.values():
        ended |= what
        assert [each.verb for each in world.ask().actions] == ["remove"] * says_so, what


LONG = '{"level":"info","msg":"' + "x" * 1500 + '"}\n'
LAST_WORDS = {
    "something else": ({"message": "dial tcp: no such host"}, False),
    "after much else": (
        {"message": LONG + '{"level":"fatal","msg":"failed to read WAL, cannot be repaired","error":"walpb: crc mismatch"}'},
        True,
    ),
    "the line is cut off, and its trace is long": (
        {"message": 'go:95","msg":"failed to read WAL, cannot be repaired","error":"wal: slice bounds","stacktrace":"' + "y" * 900 + '"}'},
        True,
    ),
    "a record of its log is none": (
        {"message": '{"level":"fatal","msg":"discovery failed","error":"proto: integer overflow","stacktrace":"z"}'},
        True,
    ),
    "it panics": (
        {"message": LONG + "panic: tocommit(9) is out of range [lastIndex(7)]. Was the raft log corrupted, truncated, or lost?\n\ngoroutine 1 [running]:\nmain.main()"},
        True,
    ),
    "said before, and it isn't why": (
        {"message": '{"level":"warn","msg":"wal: "}\n{"level":"fatal","msg":"discovery failed"}'},
        False,
    ),
    "no room": (
        {"message": '{"level":"fatal","msg":"failed to open WAL","error":"write wal: no space left on device"}'},
        False,
    ),
    "it was killed": ({"exitCode": 137, "message": '{"level":"warn","msg":"failed to read db-1.db"}'}, False),
}  # fmt: skip


STUCK = {
    "within its time": ({}, "2026-11-20T12:00:40Z", "PodTerminating", "pod db-1 is terminating"),
    "its node is silent": ({}, "2026-11-20T12:05:00Z", "PodStuck", "node worker-2 hasn't reported that it has ended"),
    "somebody keeps it": ({"finalizers": ["example.com/hold"]}, "2026-11-20T12:05:00Z", "PodStuck", "finalizer example.com/hold keeps it"),
}  # fmt: skip


@pytest.mark.parametrize(("metadata", "now", "reason", "words"), STUCK.values(), ids=STUCK)
def test_while_a_pod_is_stuck_nothing_else_is_changed_and_a_person_is_told(metadata, now, reason, words):
    world = formed()
    pod = world.objects["Pod", "db-1"]
    pod["metadata"] |= {"deletionTimestamp": "2026-11-20T12:00:00Z", **metadata}
    pod["spec"]["nodeName"] = "worker-2"
    world.cr["spec"] |= {"size": 5, "version": "3.6.16"}
    world.now = now
    for _ in range(5):
        outcome = world.step(check_purity)
    assert world.taken == []
    assert condition(outcome, "Ready").reason == reason
    assert condition(outcome, "Degraded").status == str(reason == "PodStuck")
    assert words in condition(outcome, "Ready").message
    assert ("(hint: " in condition(outcome, "Ready").message) == (reason == "PodStuck")
    world.objects.pop(("Pod", "db-1"))
    world.run()
    world.settle()
    assert world.taken[0] == "create db-1"
    assert len(world.pods) == 5


def test_a_broken_new_version_is_taken_back():
    world = formed()
    world.cr["spec"]["repository"] = "wrong.example.com/etcd"
    while "create db-1" not in world.taken:
        world.step()
    world.broken.add("db-1")
    world.run()
    assert world.ask().actions == ()
    world.step()
    assert world.taken == ["delete db-1", "create db-1"]  # it waits, and touches no other
    world.cr["spec"]["repository"] = "quay.io/coreos/etcd"
    world.settle()
    assert world.taken[2:] == ["delete db-1", "create db-1"]


def test_volumes_that_a_deleted_cluster_left_are_its_members_again():
    world = formed()
    for name in list(world.pods):
        world.objects.pop(("Pod", name))
    world.cr.pop("status")
    world.settle()
    assert world.taken == ["create db-0", "create db-1", "create db-2"]
    assert world.bootstraps == 1


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_deletion_ends_pods_first_and_keeps_volumes_unless_told(policy):
    world = formed(deletionPolicy=policy)
    world.cr["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    outcome = world.ask(check_purity)
    assert outcome.children == ()
    assert len(outcome.dropped) == (3 if policy == "Delete" else 0)
    assert not outcome.finalized
    world.objects = {}
    assert world.ask().finalized


# --- laws -----------------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.tuples(st.just("size"), st.integers(1, 5)),
    st.tuples(st.just("version"), st.sampled_from(["3.5.1", "3.5.35", "3.6.16", "3.7.1"])),
    st.tuples(st.just("env"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("lead"), st.integers(0, 4)),
    st.tuples(st.just("delete"), st.integers(0, 4)),
    st.tuples(st.just("lose"), st.integers(0, 4)),
    st.tuples(st.just("doom"), st.integers(0, 4)),
)


@given(
    st.integers(1, 5),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 12), EVENTS), max_size=6),
)
def test_whatever_is_asked_and_befalls_it_the_cluster_keeps_its_majority_and_ends_as_specified(size, in_memory, events):
    world = World(size, in_memory=in_memory)
    for passes, (what, value) in events:
        for _ in range(passes):
            world.step()
        happen(world, what, value)
    outcome = world.settle(200)
    if condition(outcome, "Degraded").status == "False":
        assert condition(outcome, "Ready").status == "True", condition(outcome, "Ready").message
        assert len(world.voters) == len(world.members) == world.cr["spec"]["size"]
        assert {tag(pod) for pod in world.pods.values()} == {world.cr["spec"]["version"]}
    else:
        assert condition(outcome, "Degraded").reason in {"VersionRefused", "WouldLoseData", "VolumeTerminating"}
    assert world.has_majority
    assert world.bootstraps == 1


def happen(world, what, value):
    """Let something befall the world that leaves it a majority."""
    slot = f"db-{value}"
    match what:
        case "size" | "version":
            world.cr["spec"][what] = value
        case "env":
            world.cr["spec"]["pod"]["env"] = [{"name": "X", "value": value}]
        case "lead":
            serving = [each["id"] for each in world.serving()]
            if world.has_majority and serving:
                world.leader = serving[value % len(serving)]
        case "doom":
            if {("Pod", slot), ("PersistentVolumeClaim", f"{slot}-data")} <= world.objects.keys():
                world.doom(slot)
        case _:
            others = [each for each in world.serving() if slot_of(each) != slot]
            if slot not in world.pods or len(others) <= len(world.voters) // 2:
                return
            if what == "lose" or world.is_doomed(slot):
                world.objects.pop(("PersistentVolumeClaim", f"{slot}-data"), None)
            world.objects.pop(("Pod", slot))
            world.run()


def sizes(world):
    return {
        claim["spec"]["resources"]["requests"]["storage"]
        for (kind, _), claim in world.objects.items()
        if kind == "PersistentVolumeClaim"
    }


def sized(storage):
    return {
        "persistentVolumeClaimSpec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    }


def test_volumes_grow_without_a_restart_and_never_shrink():
    world = formed()
    world.cr["spec"]["pod"] = sized("2Gi")
    outcome = world.settle()
    assert (world.taken, sizes(world)) == ([], {"2Gi"})
    assert condition(outcome, "Ready").status == "True"
    world.cr["spec"]["pod"] = sized("1Gi")  # of a cluster that was created again
    outcome = world.settle()
    assert (world.taken, sizes(world)) == ([], {"2Gi"})
    assert condition(outcome, "Degraded").reason == condition(outcome, "Ready").reason == "StorageShrinks"
    assert "set its storage to 2Gi" in condition(outcome, "Degraded").message


@pytest.mark.parametrize("name", ["ETCD_FORCE_NEW_CLUSTER", "ETCD_CONFIG_FILE", "ETCD_WAL_DIR", "ETCD_DISCOVERY_SRV"])
def test_variables_that_etcd_would_begin_by_are_refused(name):
    world = World()
    world.cr["spec"]["pod"]["env"] = [{"name": "GOGC", "value": "50"}, {"name": name, "value": "x"}]
    with pytest.raises(SpecError, match=rf"env\[1\].name: {name} can't be set"):
        world.ask()
