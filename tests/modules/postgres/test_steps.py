"""The steps of a MyDatabase, taken in a model of Kubernetes and PostgreSQL: which they are, and what never happens."""

import copy
import json

import pytest

from kubectl_reconcile.core.module.call import check_purity
from tests.modules.postgres.world import World, condition

SHOP = {"users": [{"name": "shop"}], "databases": [{"name": "orders", "owner": "shop"}]}


def formed(**spec):
    world = World(**spec)
    world.settle()
    world.taken.clear()
    return world


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
    assert world.cr["status"]["instances"] == [{"pod": "db-0", "role": "primary", "ready": True}]
    names = sorted(name for kind, name in world.objects if kind == "Service")
    assert names == ["db", "db-r", "db-ro"]
    assert world.claim("db-0")["metadata"]["annotations"] == {
        "example.com/system-identifier": "7000", "example.com/major": "17",
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


def test_one_that_ends_right_after_it_was_made_is_made_anew_half_a_minute_later():
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


def test_a_secret_of_a_user_that_was_deleted_is_made_anew():
    world = formed(**SHOP)
    del world.secrets["db-user-shop"]
    world.settle()
    assert world.taken == ["make-secret db-user-shop", "set-user shop"]


def test_the_superusers_secret_is_never_made_anew():
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
    assert [each["metadata"]["name"] for each in outcome.children] == ["db-0-data"]
    assert outcome.released == ("PersistentVolumeClaim/db-0-data",)
    assert not outcome.finalized
    world.cr["spec"]["deletionPolicy"] = "Delete"
    assert world.ask().children == ()
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
