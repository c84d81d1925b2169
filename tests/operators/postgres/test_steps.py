"""The steps of a MyDatabase, taken in a model of Kubernetes and PostgreSQL: which they are, and what never happens."""

import copy
import json

import pytest

from kubectl_reconcile.core.annotations import APPROVE_ACTIONS
from kubectl_reconcile.core.module.call import check_purity
from kubectl_reconcile_operators.postgres.situation import around
from tests.operators.postgres.foreseen import foreseen
from tests.operators.postgres.world import HANDOVER, World, condition, position

SHOP = {"users": [{"name": "shop"}], "databases": [{"name": "orders", "owner": "shop"}]}


def formed(**spec):
    world = World(**spec)
    world.settle()
    world.taken.clear()
    return world


@pytest.mark.parametrize("slot", ["db-0", "db-1"])
def test_a_pod_that_was_created_without_its_volume_gets_it(slot):
    world = World(replicas=2, synchronous={"min": 1})
    world.unwritten = {f"{slot}-data"}  # whoever writes both is killed in between, or the claim is refused
    while slot not in world.pods:
        world.step()
    assert world.claim(slot) is None
    assert condition(world.settle(), "Ready").status == "True"
    assert [each for each in world.taken if each.startswith("create")] == ["create db-0", "create db-1"]


def test_a_pod_whose_volume_somebody_took_away_gets_no_empty_one():
    world = formed(replicas=2)
    world.objects.pop(("PersistentVolumeClaim", "db-1-data"))
    world.pods["db-1"]["spec"]["nodeName"] = "one"
    assert "db-1-data" not in {each["metadata"]["name"] for each in world.ask().children}


def test_it_begins_with_a_secret_and_an_instance_and_is_filled_then():
    world = World(**SHOP, parameters={"work_mem": "8MB"})
    outcome = world.settle()
    assert world.taken == [
        "make-secret db-superuser", "create db-0", "make-secret db-user-shop", "set-user shop", "make-database orders",
    ]  # fmt: skip
    assert {each: condition(outcome, each).status for each in ("Available", "Ready", "Progressing", "Degraded")} == {
        "Available": "True", "Ready": "True", "Progressing": "False", "Degraded": "False",
    }  # fmt: skip
    assert world.server["settings"] == {"work_mem": "8MB"}
    assert world.role("db-0") == "primary"
    assert world.cr["status"]["phase"] == "Running"
    assert world.cr["status"]["currentPrimary"] == "db-0"
    assert world.cr["status"]["instances"] == [{"pod": "db-0", "role": "primary", "ready": True, "lsn": "0/0"}]
    names = sorted(name for kind, name in world.objects if kind == "Service")
    assert names == ["db", "db-r", "db-ro"]
    assert world.claim("db-0")["metadata"]["annotations"] == {
        "example.com/system-identifier": "7000", "example.com/major": "17", "example.com/role": "primary",
    }  # fmt: skip


def test_no_secret_stands_in_what_the_module_returns():
    world = World(**SHOP)
    for _ in range(10):
        world.step()
        said = json.dumps([world.cr, list(world.objects.values())])
        assert not any(password in said for password in world.secrets.values())


RESTARTED = ["delete db-0", "create db-0"]
CHANGED = {
    "a parameter that is taken on": ({"parameters": {"work_mem": "9MB"}}, ["set-parameters db-0"]),
    "a parameter that takes a restart": (
        {"parameters": {"max_connections": "50"}}, ["set-parameters db-0", *RESTARTED],
    ),
    "a user and a database more": (
        {"users": [{"name": "shop"}, {"name": "reader"}], "databases": [{"name": "orders", "owner": "reader"}, {"name": "more"}]},
        ["make-secret db-user-reader", "set-user reader", "set-owner orders", "make-database more"],
    ),
    "what a user may": ({"users": [{"name": "shop", "createDatabase": True}]}, ["set-user shop"]),
    "users and databases that aren't named any more": ({"users": [], "databases": []}, []),
    "rules of who gets in": ({"hba": [{"method": "reject", "users": ["shop"]}]}, ["set-access db-0"]),
    "an image": ({"image": "postgres:17.6"}, RESTARTED),
    "resources": ({"resources": {"limits": {"memory": "1Gi"}}}, RESTARTED),
    "a larger volume": ({"storage": {"size": "2Gi"}}, []),
    "paused": ({"image": "postgres:17.6", "storage": {"size": "2Gi"}, "paused": True}, []),
}  # fmt: skip


@pytest.mark.parametrize(("change", "steps"), CHANGED.values(), ids=CHANGED)
def test_what_a_change_of_the_spec_takes(change, steps):
    world = formed(**SHOP)
    disk, size = copy.deepcopy(world.disks), change.get("storage", {}).get("size", "1Gi")
    world.cr["spec"] |= change
    outcome = world.settle()
    assert world.taken == steps
    is_paused = change.get("paused")
    assert condition(outcome, "Ready").status == ("False" if is_paused else "True")
    assert world.claim("db-0")["spec"]["resources"]["requests"]["storage"] == ("1Gi" if is_paused else size)
    assert world.disks.keys() == disk.keys()


REFUSED = {
    "a smaller volume": ({"storage": {"size": "500Mi"}}, "StorageShrinks", ".spec.storage.size: 500Mi is less than the 1Gi"),
    "another major version": ({"version": 18}, "VersionRefused", ".spec.version: the volume of db-0 holds data of PostgreSQL 17"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "reason", "said"), REFUSED.values(), ids=REFUSED)
def test_what_would_lose_data_is_refused_and_the_database_stays(change, reason, said):
    world = formed()
    before = copy.deepcopy(world.objects)
    world.cr["spec"] |= change
    outcome = world.settle()
    degraded = condition(outcome, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", reason)
    assert degraded.message.startswith(said)
    assert "(hint: " in degraded.message
    assert condition(outcome, "Available").status == "True"
    assert world.taken == []
    assert world.objects == before


def test_an_instance_that_dies_comes_back_on_its_volume():
    world = formed(**SHOP)
    world.kill("db-0")
    world.settle()
    assert world.taken == RESTARTED
    assert world.disks.keys() == {world.claim("db-0")["metadata"]["uid"]}
    assert world.server["settings"] == {}


def test_a_pod_that_somebody_deletes_comes_back_on_its_volume():
    world = formed()
    world.delete("Pod", "db-0")
    world.settle()
    assert world.taken == ["create db-0"]


def test_one_that_ends_right_after_it_was_made_is_recreated_half_a_minute_later():
    world = formed()
    world.kill("db-0")
    pod = world.pods["db-0"]
    pod["metadata"]["creationTimestamp"] = "2026-11-20T11:59:55Z"
    pod["status"]["containerStatuses"][0]["state"]["terminated"] |= {
        "finishedAt": "2026-11-20T11:59:57Z",
        "message": "out of memory",
    }
    outcome = world.step()
    assert world.taken == []
    assert condition(outcome, "Degraded").reason == "InstanceFails"
    assert "out of memory" in condition(outcome, "Degraded").message
    pod["metadata"]["creationTimestamp"] = "2026-11-20T11:59:25Z"
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2026-11-20T11:59:27Z"
    world.step()
    assert world.taken == ["delete db-0"]


def test_no_database_begins_on_an_empty_volume_where_there_was_one():
    world = formed()
    world.delete("Pod", "db-0")
    del world.objects["PersistentVolumeClaim", "db-0-data"]
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Degraded").reason == "DataLost"
    assert condition(outcome, "Available").status == "False"
    assert world.cr["status"]["phase"] == "Failed"


def test_an_instance_on_a_volume_that_has_lost_its_data_never_makes_another_database():
    world = formed()
    world.disks.clear()
    world.kill("db-0")
    world.settle()
    assert world.disks == {}
    assert world.running == {}


def test_a_database_that_was_deleted_is_found_again_on_its_volume():
    world = formed(**SHOP)
    world.delete("Pod", "db-0")
    del world.cr["status"]
    world.settle()
    assert world.taken == ["create db-0"]
    assert world.cr["status"]["systemID"] == "7000"


def test_a_new_password_in_a_secret_is_set_in_the_server():
    world = formed(**SHOP)
    world.secrets["db-user-shop"] = "another"
    world.settle()
    assert world.taken == ["set-user shop"]
    assert next(iter(world.disks.values()))["roles"]["shop"]["password"] == "another"


def test_a_secret_of_a_user_that_was_deleted_is_recreated():
    world = formed(**SHOP)
    del world.secrets["db-user-shop"]
    world.settle()
    assert world.taken == ["make-secret db-user-shop", "set-user shop"]


LACKS = "lacks the key password (hint: put one in, or delete the Secret: it is recreated)"


def test_a_users_secret_without_a_password_is_told_and_all_else_goes_on():
    world = formed(replicas=2, **SHOP)
    world.worth["db-user-shop"] = LACKS
    disk = world.disks[world.claim("db-0")["metadata"]["uid"]]
    disk["roles"]["shop"]["password"] = ""
    world.kill("db-1")
    world.cr["spec"]["users"] = [{"name": "shop"}, {"name": "reader"}]
    world.cr["spec"]["databases"] = [{"name": "orders", "owner": "shop"}, {"name": "more", "owner": "reader"}]
    outcome = world.settle()
    degraded = condition(outcome, "Degraded")
    assert (degraded.reason, degraded.message) == ("SecretUnusable", f"Secret db-user-shop {LACKS}")
    assert [condition(outcome, each).status for each in ("Available", "Ready")] == ["True", "False"]
    assert outcome.warnings == (degraded.message,)
    assert world.taken == ["make-secret db-user-reader", "set-user reader", "make-database more", "delete db-1", "create db-1"]  # fmt: skip
    world.worth.clear()
    outcome = world.settle()
    assert world.taken[5:] == ["set-user shop"]
    assert condition(outcome, "Ready").status == "True"


def test_a_database_waits_for_an_owner_who_cannot_be_made_yet():
    world = World(users=[{"name": "shop"}, {"name": "reader"}], databases=[{"name": "orders", "owner": "shop"}, {"name": "more", "owner": "reader"}])  # fmt: skip
    world.secrets["db-user-shop"], world.worth["db-user-shop"] = "", LACKS
    outcome = world.settle()
    assert condition(outcome, "Degraded").reason == "SecretUnusable"
    assert "make-database more" in world.taken
    assert not {"set-user shop", "make-database orders"} & {*world.taken}
    world.secrets["db-user-shop"] = "another"
    world.worth.clear()
    world.settle()
    assert world.taken[-2:] == ["set-user shop", "make-database orders"]


@pytest.mark.parametrize("worth", [LACKS, "has a password with other characters than printable ASCII"])
def test_the_superusers_secret_without_a_password_is_told_and_nothing_changes(worth):
    world = formed(replicas=2, **SHOP)
    world.worth["db-superuser"] = worth
    world.cr["spec"]["parameters"] = {"work_mem": "9MB"}
    outcome = world.settle()
    assert (condition(outcome, "Degraded").reason, world.taken) == ("SecretUnusable", [])
    assert condition(outcome, "Degraded").message.startswith("Secret db-superuser ")
    assert sorted(world.pods) == ["db-0", "db-1"]


def test_the_superusers_secret_is_never_recreated():
    world = formed()
    del world.secrets["db-superuser"]
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Degraded").reason == "SecretMissing"
    assert "(hint: " in condition(outcome, "Degraded").message
    assert "db-0" in world.pods


def test_what_was_set_by_hand_is_set_back():
    world = formed(parameters={"work_mem": "8MB"})
    world.server["settings"] |= {"work_mem": "1MB", "jit": "off", "primary_conninfo": "kept"}
    world.settle()
    assert world.taken == ["set-parameters db-0"]
    assert world.server["settings"] == {"work_mem": "8MB", "primary_conninfo": "kept"}


def test_a_list_of_libraries_is_one_however_it_is_written():
    world = formed(parameters={"shared_preload_libraries": "auto_explain,pg_stat_statements"})
    world.server["settings"]["shared_preload_libraries"] = '"auto_explain", pg_stat_statements'
    world.settle()
    assert world.taken == []


def test_what_the_server_refuses_is_told_with_its_words():
    world = formed()
    world.cr["spec"]["parameters"] = {"work_mem": "much"}
    said = "set-parameters-0: .spec.parameters[work_mem]: invalid value for parameter"
    line = {"key": "set-parameters-0", "verb": "set-parameters", "progress": "failed", "at": "x", "message": said}
    world.cr["metadata"]["annotations"] = {"reconcile.dev/actions": json.dumps([line])}
    degraded = condition(world.ask(), "Degraded")
    assert degraded.reason == "Refused"
    assert degraded.message == "set on db-0: work_mem = much: .spec.parameters[work_mem]: invalid value for parameter"


def test_a_pod_that_cannot_run_is_replaced_once_the_spec_is_corrected():
    world = formed()
    world.broken.add("db-0")
    world.delete("Pod", "db-0")
    world.cr["spec"]["image"] = "postgres:wrong"
    world.settle()
    assert world.taken == ["create db-0"]
    world.broken.clear()
    world.running.clear()
    world.pods["db-0"]["status"]["conditions"] = []
    world.cr["spec"]["image"] = "postgres:17"
    world.taken.clear()
    world.settle()
    assert world.taken == RESTARTED


def test_a_primary_that_falls_silent_for_a_moment_keeps_its_clients():
    world = formed()
    world.running.clear()
    world.broken.add("db-0")
    outcome = world.step()
    assert world.role("db-0") == "primary"
    assert condition(outcome, "Available").status == "False"
    assert world.taken == []


def test_data_of_two_databases_is_left_to_a_person():
    world = formed()
    world.claim("db-0")["metadata"]["annotations"]["example.com/system-identifier"] = "8000"
    before = copy.deepcopy(world.objects)
    outcome = world.settle()
    assert condition(outcome, "Degraded").reason == "DifferentDatabases"
    assert world.objects == before


def test_deleting_it_keeps_the_volumes_unless_they_are_to_go_too():
    world = formed()
    world.cr["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    outcome = world.ask()
    assert (outcome.children, outcome.dropped, outcome.finalized) == ((), (), False)
    del world.objects["Pod", "db-0"]
    assert world.ask().finalized
    world.cr["spec"]["deletionPolicy"] = "Delete"
    outcome = world.ask()
    assert (outcome.children, outcome.dropped) == ((), ("PersistentVolumeClaim/db-0-data",))
    assert not outcome.finalized
    world.objects.clear()
    assert world.ask().finalized


@pytest.mark.parametrize("steps", range(7))
def test_it_is_pure_at_every_step(steps):
    world = World(**SHOP, parameters={"max_connections": "50"})
    for _ in range(steps):
        world.step()
    world.ask(check_purity)


def test_names_of_any_length_give_keys_that_are_names():
    world = World(users=[{"name": "a" * 30}], databases=[{"name": "b_" * 14 + "b"}], parameters={"work_mem": "8MB"})
    world.cr["metadata"]["name"] = "d" * 50
    for action in (action for _ in range(6) for action in world.ask().actions):
        assert len(action.key) <= 63


# --- replicas -------------------------------------------------------------------------------------


def joins(number):
    return [f"make-slot db_{number}", f"create db-{number}"]


def leaves(number):
    return [f"delete db-{number}", f"drop-slot db_{number}"]


THREE = {"replicas": 3, **SHOP}


def test_replicas_come_one_after_the_other_each_with_a_slot_and_a_copy():
    world = World(replicas=3)
    outcome = world.settle()
    assert world.taken == [
        "make-secret db-superuser", "create db-0", "make-secret db-replication", "set-user replicator", *joins(1), *joins(2),
    ]  # fmt: skip
    assert condition(outcome, "Ready").status == "True"
    assert [world.role(f"db-{at}") for at in range(3)] == ["primary", "replica", "replica"]
    assert world.cr["status"]["readyInstances"] == 3
    assert world.cr["status"]["instances"][1] == {
        "pod": "db-1",
        "role": "replica",
        "ready": True,
        "lagBytes": 0,
        "lsn": "0/0",
    }
    assert world.claim("db-0")["metadata"]["annotations"]["example.com/role"] == "primary"
    assert "example.com/role" not in world.claim("db-1")["metadata"]["annotations"]


SCALED = {
    "two more": (3, 5, [*joins(3), *joins(4)]),
    "one less": (3, 2, leaves(2)),
    "the primary alone": (3, 1, [*leaves(2), *leaves(1)]),
}


@pytest.mark.parametrize(("before", "after", "steps"), SCALED.values(), ids=SCALED)
def test_what_another_number_of_replicas_takes(before, after, steps):
    world = formed(replicas=before)
    world.cr["spec"]["replicas"] = after
    outcome = world.settle()
    assert world.taken == steps
    assert condition(outcome, "Ready").status == "True"
    assert world.primary["name"] == "db-0"
    assert sorted(world.pods) == [f"db-{at}" for at in range(after)]
    assert len(world.disks) == max(before, after)
    assert [each["claim"] for each in world.cr["status"]["keptVolumes"]] == [
        f"db-{at}-data" for at in range(after, before)
    ]


def test_volumes_of_replicas_that_go_are_kept_and_nobody_begins_on_them():
    world = formed(replicas=3)
    world.cr["spec"]["replicas"] = 2
    world.settle()
    kept = world.claim("db-2")["metadata"]["annotations"]
    assert (kept["example.com/kept-since"], kept["example.com/surplus"]) == (world.now, "true")
    world.later(10**6)
    world.cr["spec"]["replicas"] = 3
    world.settle()
    assert sorted(world.pods) == ["db-0", "db-1", "db-3"]
    assert world.claim("db-2")["metadata"]["annotations"] == kept


def test_volumes_of_replicas_that_go_are_deleted_where_the_spec_says_so():
    world = formed(replicas=3, deletionPolicy="Delete")
    world.cr["spec"]["replicas"] = 1
    outcome = world.settle()
    assert world.taken == [*leaves(2), *leaves(1)]
    (asked,) = outcome.actions
    assert (asked.verb, asked.needs_approval) == ("end-volume", True)
    assert asked.summary == "delete the volume of db-1, which is no replica any more (.spec.deletionPolicy is Delete)"
    assert condition(outcome, "Ready").reason == "AwaitsApproval"
    assert len(world.disks) == 3
    world.taken.clear()
    world.cr["metadata"]["annotations"][APPROVE_ACTIONS] = asked.key
    outcome = world.settle()
    assert world.taken == ["end-volume db-1", "delete volume db-1"]
    assert [action.parameters["slot"] for action in outcome.actions] == ["db-2"]  # the approval was of that one alone
    world.cr["metadata"]["annotations"][APPROVE_ACTIONS] = "end-volume"
    outcome = world.settle()
    assert (len(world.disks), world.cr["status"]["keptVolumes"]) == (1, [])
    assert condition(outcome, "Ready").status == "True"


def test_a_volume_that_waits_for_its_end_keeps_nobody_from_anything():
    world = formed(replicas=3, deletionPolicy="Delete", **SHOP)
    world.cr["spec"]["replicas"] = 2
    world.settle()
    world.taken.clear()
    world.cr["spec"]["replicas"] = 3
    world.secrets["db-user-shop"] = "another"
    world.settle()
    assert world.taken[0] == "set-user shop"
    assert sorted(world.pods) == ["db-0", "db-1", "db-3"]


def test_an_approval_is_of_the_very_volume_that_was_shown():
    world = formed(replicas=2, deletionPolicy="Delete")
    world.cr["spec"]["replicas"] = 1
    (first,) = world.settle().actions
    world.claim("db-1")["metadata"]["uid"] = "u-another"
    (second,) = world.ask().actions
    assert first.key != second.key


@pytest.mark.parametrize("failover", [None, {"keepOldVolumesHours": 2}])
def test_volumes_of_replicas_that_go_stay_until_somebody_deletes_them(failover):
    world = formed(replicas=3, **({"failover": failover} if failover else {}))
    world.cr["spec"]["replicas"] = 2
    said = []
    while not world.cr["status"].get("keptVolumes"):
        said.append(condition(world.step(), "Progressing").message)
    assert said[-2] == (
        "set the volume of db-2 aside, which is no replica any more; it is kept until somebody deletes it (.spec.deletionPolicy is Retain)"
    )
    world.later(10**6)
    world.settle()
    assert world.taken == leaves(2)
    assert world.claim("db-2") is not None


def test_volumes_of_replicas_that_went_keep_nobody_from_being_replaced():
    world = formed(replicas=7, failover={})
    world.cr["spec"]["replicas"] = 2
    world.settle()
    assert len(world.cr["status"]["keptVolumes"]) == 5
    world.disks[uid(world.claim("db-1"))]["half"] = True
    world.kill("db-1")
    world.settle()
    assert sorted(world.pods) == ["db-0", "db-7"]


def test_how_far_logs_go_is_told_coarsely_and_exactly_of_those_that_wait_for_a_primary():
    assert [around(each) for each in ("0/0", "0/FFFFFFF", "2A/1F123456", "", "x")] == [
        "0/0",
        "0/0",
        "2A/10000000",
        "",
        "",
    ]
    world = formed(replicas=2)
    world.write("a row")
    assert [each["lsn"] for each in world.settle().status["instances"]] == ["0/0", "0/0"]
    world.broken.add("db-0")
    world.kill("db-0")
    assert world.settle().status["instances"][1]["lsn"] == "0/3E9"


def test_whether_replicas_follow_is_told():
    world = formed(replicas=3)
    found = condition(world.ask(), "Replicating")
    assert (found.status, found.message) == ("True", "db-1, db-2 follow db-0")
    world.broken.add("db-2")
    world.kill("db-2")
    outcome = world.settle()
    found = condition(outcome, "Replicating")
    assert (found.status, found.reason) == ("False", "ReplicaNotFollowing")
    assert found.message == "1 of 2 replicas follow db-0, without db-2"
    assert condition(outcome, "Available").status == "True"
    world.broken.add("db-0")
    world.kill("db-0")
    assert condition(world.ask(), "Replicating").reason == "PrimaryNotServing"
    assert condition(formed().ask(), "Replicating") is condition(World().ask(), "Replicating") is None


def test_the_primary_is_never_the_one_that_goes():
    world = formed(replicas=3)
    world.running[world.pods["db-2"]["metadata"]["uid"]]["standby"] = False  # somebody has promoted it by hand
    world.disks[world.claim("db-2")["metadata"]["uid"]]["slots"] = {"db_0", "db_1"}
    world.delete("Pod", "db-0")
    world.run()
    world.settle()
    assert world.cr["status"]["currentPrimary"] == "db-2"
    world.taken.clear()
    world.cr["spec"]["replicas"] = 1
    world.settle()
    assert world.taken == [*leaves(1), *leaves(0)]
    assert world.cr["status"]["instances"] == [{"pod": "db-2", "role": "primary", "ready": True, "lsn": "0/0"}]
    assert world.role("db-2") == "primary"


def test_a_replica_that_dies_comes_back_on_its_volume_and_one_without_its_volume_with_a_new_copy():
    world = formed(**THREE)
    world.kill("db-1")
    world.settle()
    assert world.taken == ["delete db-1", "create db-1"]
    world.taken.clear()
    disk = uid(world.claim("db-1"))
    world.delete("Pod", "db-1")
    del world.disks[uid(world.objects.pop(("PersistentVolumeClaim", "db-1-data")))]
    world.settle()
    assert world.taken == ["create db-1"]
    assert uid(world.claim("db-1")) != disk
    assert world.role("db-1") == "replica"


def test_a_replica_that_stays_away_keeps_nobody_from_filling_the_primary():
    world = formed(replicas=2)
    world.broken.add("db-1")
    world.running.pop(uid(world.pods["db-1"]))
    world.cr["spec"] |= {**SHOP, "parameters": {"work_mem": "9MB"}}
    outcome = world.settle()
    filled = ["make-secret db-user-shop", "set-user shop", "make-database orders", "set-parameters db-0"]
    assert world.taken == [*filled, "delete db-1", "create db-1"]
    assert condition(outcome, "Available").status == "True"
    assert condition(outcome, "Ready").message.startswith("db-1 doesn't serve yet")


def test_nobody_waits_for_a_surplus_replica_whose_node_does_not_let_it_go():
    world = formed(replicas=2)
    world.pods["db-1"]["metadata"]["deletionTimestamp"] = "2026-11-20T11:00:00Z"
    world.cr["spec"] |= {"replicas": 1, **SHOP}
    outcome = world.settle()
    assert world.taken == ["make-secret db-user-shop", "set-user shop", "make-database orders"]
    assert (condition(outcome, "Ready").status, condition(outcome, "Ready").message) == (
        "False",
        "pod db-1 is terminating",
    )
    world.delete("Pod", "db-1")
    world.settle()
    assert world.taken[3:] == ["drop-slot db_1"]
    assert condition(world.ask(), "Ready").status == "True"


REPLICAS_FIRST = [*(f"{verb} db-{at}" for at in (1, 2) for verb in ("delete", "create")), *HANDOVER]
ROLLED = {
    "an image": ({"image": "postgres:17.6"}, REPLICAS_FIRST),
    "more connections, replicas first": (
        {"parameters": {"max_connections": "200"}}, [*(f"set-parameters db-{at}" for at in range(3)), *REPLICAS_FIRST],
    ),
    "fewer connections, the primary first": (
        {"parameters": {"max_connections": "50"}},
        [*(f"set-parameters db-{at}" for at in range(3)), *(f"{verb} db-{at}" for at in (0, 1, 2) for verb in ("delete", "create"))],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "steps"), ROLLED.values(), ids=ROLLED)
def test_a_change_is_rolled_out_one_instance_at_a_time(change, steps):
    world = formed(replicas=3)
    world.cr["spec"] |= change
    world.settle()
    assert world.taken == steps


def test_replicas_serve_reads_while_the_primary_is_away_and_none_that_follows_nobody():
    world = formed(replicas=2)
    world.broken.add("db-0")
    world.running.pop(uid(world.pods["db-0"]))
    world.settle()
    assert world.role("db-1") == "replica"
    world.broken.clear()
    world.run()
    world.disks[uid(world.claim("db-0"))]["slots"].clear()
    world.step()
    assert world.role("db-1") is None


def test_two_servers_that_take_writes_get_no_clients():
    world = formed(replicas=2)
    facts = world.facts()
    facts["pods"]["db-1"]["recovery"] = False
    facts["writable"] = "db-0,db-1"
    world.facts = lambda: facts
    outcome = world.step()
    assert condition(outcome, "Degraded").reason == "TwoPrimaries"
    assert [world.role(name) for name in ("db-0", "db-1")] == [None, None]


def test_a_slot_that_is_lost_is_recreated_for_a_new_copy():
    world = formed(replicas=2)
    facts = world.facts
    world.facts = lambda: {**facts(), "slots": {"db_1": {"active": False, "status": "lost"}}, "followers": {}}
    outcome = world.step()
    assert "delete the pod and its volume claim db-1-data" in condition(outcome, "Ready").message
    world.delete("Pod", "db-1")
    world.step()  # which drops nothing as long as there is the volume: what it needs stays told
    assert world.taken == ["create db-1"]
    world.taken.clear()
    world.delete("Pod", "db-1")
    del world.disks[uid(world.objects.pop(("PersistentVolumeClaim", "db-1-data")))]
    world.step()
    world.facts = facts
    world.settle()
    assert world.taken == ["drop-slot db_1", *joins(1)]


def test_without_the_primarys_volume_nothing_is_begun_while_there_are_copies():
    world = formed(replicas=2)
    world.delete("Pod", "db-0")
    del world.disks[uid(world.objects.pop(("PersistentVolumeClaim", "db-0-data")))]
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Degraded").reason == "DataLost"
    assert "promote one of db-1" in condition(outcome, "Degraded").message


def test_a_database_with_replicas_that_was_deleted_knows_its_primary_again():
    world = formed(replicas=2)
    for name in ("db-0", "db-1"):
        world.delete("Pod", name)
        world.claim(name)["metadata"]["annotations"].pop("example.com/role", None)
    world.claim("db-1")["metadata"]["annotations"]["example.com/role"] = "primary"
    world.disks[uid(world.claim("db-1"))]["slots"] = {"db_0"}
    del world.cr["status"]
    world.settle()
    assert world.taken[:3] == ["create db-0", "create db-1", "promote db-1"]
    assert world.primary["name"] == "db-1"


def created_again(world, promoted="db-1"):
    """No daemon runs; somebody promotes a replica by hand, which takes writes; then the MyDatabase is deleted, and created again."""
    disk = world.disks[uid(world.claim(promoted))]
    disk["forks"]["1"] = position(disk)
    disk |= {"timeline": 2, "checkpointed": 2, "rows": [*disk["rows"], "newer"]}
    for name in list(world.pods):
        world.delete("Pod", name)
    world.running.clear()
    del world.cr["status"]
    world.taken.clear()
    return world


@pytest.mark.parametrize("more", [{}, {"failover": {"delaySeconds": 30}}, {"synchronous": {"min": 1}}])
def test_a_database_that_is_created_again_never_serves_an_earlier_timeline_than_it_has(more):
    world = created_again(formed(replicas=3, **more))
    assert world.claim("db-0")["metadata"]["annotations"]["example.com/role"] == "primary"  # as somebody last noted
    outcome = world.step()
    assert condition(outcome, "Available").message == (
        "look at the volumes of db-0, db-1, db-2 before one of them serves: a replica may have been promoted since somebody last noted that db-0 is the primary"
    )
    assert world.cr["status"]["handover"]["kind"] == "Gathering"
    shown = foreseen(world)
    while world.primary is None:
        world.step()
    assert world.primary["name"] == "db-1"
    assert world.taken == ["create db-0", "create db-1", "create db-2", "promote db-1"]
    assert world.disks[world.primary["disk"]]["rows"][-1] == "newer"
    assert shown[:3] == world.taken[:3]
    outcome = world.settle()
    assert "handover" not in world.cr["status"]
    assert world.cr["status"]["currentPrimary"] == "db-1"


def test_no_volume_serves_while_another_may_hold_more():
    world = created_again(formed(replicas=2))
    world.broken.add("db-1")
    outcome = world.settle()
    assert world.primary is None
    assert condition(outcome, "Available").message.startswith("db-1 begins as a standby")
    world.broken.clear()
    world.settle()
    assert world.primary["name"] == "db-1"


def test_what_was_paused_at_first_is_looked_at_all_the_same():
    world = created_again(formed(replicas=2))
    world.cr["spec"]["paused"] = True
    world.settle()
    world.cr["spec"]["paused"] = False
    world.settle()
    assert world.primary["name"] == "db-1"


# --- volumes that somebody deletes ------------------------------------------------------------------


def test_a_claim_of_a_replica_that_is_deleted_while_it_runs_stops_nothing_and_is_told():
    world = formed(replicas=3, **SHOP)
    world.claim("db-2")["metadata"]["deletionTimestamp"] = world.now
    world.secrets["db-user-shop"] = "another"
    world.cr["spec"]["parameters"] = {"work_mem": "8MB"}
    world.cr["metadata"].setdefault("annotations", {})["example.com/switchover-to"] = "db-1"
    outcome = world.settle()
    assert "set-user shop" in world.taken
    assert world.primary["name"] == "db-1"
    assert {one["settings"]["work_mem"] for one in world.running.values()} == {"8MB"}
    degraded = condition(outcome, "Degraded")
    assert (degraded.reason, condition(outcome, "Ready").status) == ("VolumeTerminating", "False")
    assert degraded.message == (
        "somebody has deleted the volume claim of db-2: the data goes with the pod, and a replica begins with a new copy then (hint: kubectl delete pod db-2)"
    )
    world.taken.clear()
    world.delete("Pod", "db-2")
    world.step()
    assert world.taken == []  # the claim is still there
    del world.disks[uid(world.objects.pop(("PersistentVolumeClaim", "db-2-data")))]
    outcome = world.settle()
    assert world.taken[-1] == "create db-2"
    assert condition(outcome, "Ready").status == "True"


def test_a_claim_of_a_replica_that_isnt_wanted_goes_without_being_set_aside():
    world = formed(replicas=2)
    world.claim("db-1")["metadata"]["deletionTimestamp"] = world.now
    world.cr["spec"]["replicas"] = 1
    world.settle()
    assert world.taken == ["delete db-1", "drop-slot db_1"]


def uid(manifest):
    return manifest["metadata"]["uid"]


def test_parameters_that_were_set_and_not_read_since_are_read_again():
    world = World(parameters={"work_mem": "8MB"})
    world.settle()
    told = world.facts()
    told["pods"]["db-0"]["unloaded"] = True
    world.facts = lambda: told
    (step,) = world.ask().actions
    assert (step.summary, step.parameters["set"]) == ("have db-0 read its parameters again", {})
