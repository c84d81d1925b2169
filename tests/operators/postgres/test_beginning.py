"""How a database begins: empty with options of its own, or with a copy of a server that runs."""

import copy

import pytest

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile_operators.postgres.bootstrap.spec import InitdbWish
from kubectl_reconcile_operators.postgres.spec import database_spec, secrets_named
from tests.operators.postgres.backup_jobs import end, fill, jobs
from tests.operators.postgres.foreseen import foreseen
from tests.operators.postgres.world import World, condition, ended

PLAIN = "--encoding=UTF8 --locale=C.UTF-8 --wal-segsize=16 --data-checksums"
OPTIONS = {
    "none": ({}, 17, PLAIN),
    "a locale": ({"locale": "de_DE.utf8"}, 17, PLAIN.replace("C.UTF-8", "de_DE.utf8")),
    "one of ICU": (
        {"icuLocale": "de-AT"}, 15, "--encoding=UTF8 --locale=C.UTF-8 --locale-provider=icu --icu-locale=de-AT --wal-segsize=16 --data-checksums",
    ),
    "larger files of the log": ({"walSegmentSize": "64MB"}, 14, PLAIN.replace("=16", "=64")),
    "no checksums": ({"dataChecksums": False}, 17, PLAIN.removesuffix(" --data-checksums")),
    "no checksums where they come by themselves": ({"dataChecksums": False}, 18, PLAIN.replace("--data", "--no-data")),
}  # fmt: skip


def env(world, slot="db-0"):
    return {each["name"]: each.get("value", "") for each in world.pods[slot]["spec"]["initContainers"][0]["env"]}


@pytest.mark.parametrize(("options", "version", "words"), OPTIONS.values(), ids=OPTIONS)
def test_what_an_empty_database_is_made_with(options, version, words):
    world = World(version=version, bootstrap={"initdb": options})
    world.settle()
    assert env(world)["INITDB"] == words


def test_options_are_of_the_first_instance_alone_and_change_nothing_later():
    world = World(replicas=2)
    world.settle()
    assert (env(world)["INITDB"], env(world, "db-1")["INITDB"]) == (InitdbWish().words(17), "")
    before = copy.deepcopy(world.objects)
    world.cr["spec"]["bootstrap"] = {"initdb": {"encoding": "LATIN1"}}
    world.settle()
    assert world.objects == before


def test_options_that_cannot_be_are_told_with_their_field_and_give_way_to_others():
    world = World(bootstrap={"initdb": {"locale": "xx_XX"}})
    world.broken.add("db-0")
    world.step()
    world.step()
    state = {"exitCode": 1, "finishedAt": world.now, "message": 'initdb: error: invalid locale name "xx_XX"'}
    ended(world.pods["db-0"], 1)
    world.pods["db-0"]["status"]["initContainerStatuses"][0]["state"]["terminated"] = state
    world.pods["db-0"]["metadata"]["creationTimestamp"] = world.now
    degraded = condition(world.ask(), "Degraded")
    assert degraded.reason == "InstanceFails"
    assert 'invalid locale name "xx_XX"' in degraded.message
    assert degraded.message.endswith("(hint: correct .spec.bootstrap.initdb)")
    world.cr["spec"]["bootstrap"]["initdb"]["locale"] = "C.UTF-8"
    world.broken.clear()
    world.later(31)
    assert condition(world.settle(), "Ready").status == "True"
    assert env(world)["INITDB"] == PLAIN


NAMED = ".spec.bootstrap"
REFUSED = {
    "nothing": ({}, f"{NAMED}: must have one of initdb, fromBackup and fromCluster"),
    "two ways": ({"initdb": {}, "fromBackup": {"database": "a"}}, f"{NAMED}: must have one of"),
    "words for a shell": ({"initdb": {"locale": "C; rm"}}, f"{NAMED}.initdb.locale: must be a name as in de_DE.utf8, not 'C; rm'"),
    "an encoding of two words": ({"initdb": {"encoding": "UTF 8"}}, f"{NAMED}.initdb.encoding: must be a name as in UTF8"),
    "a size that is none": ({"initdb": {"walSegmentSize": "1GB"}}, f"{NAMED}.initdb.walSegmentSize: must be one of 16MB, 32MB, 64MB"),
    "no server": ({"fromCluster": {}}, f"{NAMED}.fromCluster: must have either database or host"),
    "two servers": ({"fromCluster": {"database": "a", "host": "b"}}, f"{NAMED}.fromCluster: must have either database or host"),
    "itself": ({"fromCluster": {"database": "db"}}, f"{NAMED}.fromCluster.database: is this MyDatabase itself"),
    "a host with options": (
        {"fromCluster": {"host": "a sslmode=disable", "secretName": "b"}}, f"{NAMED}.fromCluster.host: must be a host name or an address",
    ),
    "a host without a Secret": ({"fromCluster": {"host": "a"}}, f"{NAMED}.fromCluster.secretName: must be the name of a Secret"),
    "a Secret for a MyDatabase": ({"fromCluster": {"database": "a", "secretName": "b"}}, f"{NAMED}.fromCluster.secretName: is for a host"),
}  # fmt: skip


@pytest.mark.parametrize(("bootstrap", "said"), REFUSED.values(), ids=REFUSED)
def test_a_beginning_that_makes_no_sense_is_named(bootstrap, said):
    with pytest.raises(SpecError) as told:
        database_spec(World(bootstrap=bootstrap).cr)
    assert str(told.value).startswith(said)


def test_a_locale_of_icu_is_refused_where_initdb_knows_none():
    with pytest.raises(SpecError, match=r"icuLocale: is known to PostgreSQL 15 and later, not to 14"):
        database_spec(World(version=14, bootstrap={"initdb": {"icuLocale": "de"}}).cr)


# --- a copy of a server ---------------------------------------------------------------------------

OURS = {"database": "shop"}
THEIRS = {"host": "db.example.com", "port": 5433, "secretName": "theirs"}


def copied_world(source=None, **spec):
    world = World(bootstrap={"fromCluster": source or OURS}, **spec)
    world.secrets |= {"shop-replication": "x", "theirs": "x"}
    return world


def test_it_begins_with_a_copy_and_no_pod_is_there_before_its_volume_is_filled():
    world = copied_world()
    shown = foreseen(world)
    outcome = world.settle()
    assert jobs(world) == ["db-restore"]
    assert (world.pods, condition(outcome, "Progressing").message) == (
        {}, "Job db-restore copies shop to the volume of db-0",
    )  # fmt: skip
    fill(world)
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert jobs(world) == []
    assert shown == ["make-secret db-superuser", "create db-restore", "create db-0"]
    assert "shop-replication" not in secrets_named(world.cr).names  # once there is a database, nobody reads it any more


SOURCES = {
    "a MyDatabase": (OURS, "host=shop.shop.svc port=5432 user=replicator connect_timeout=5", "shop-replication", "copied"),
    "another server": (THEIRS, "host=db.example.com port=5433 connect_timeout=5", "theirs", "ours"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "begins", "secret", "settings"), SOURCES.values(), ids=SOURCES)
def test_how_a_server_is_copied(source, begins, secret, settings):
    world = copied_world(source)
    world.settle()
    pod = world.objects["Job", "db-restore"]["spec"]["template"]["spec"]
    told = {each["name"]: each for each in pod["initContainers"][0]["env"]}
    assert told["SOURCE"]["value"].startswith(begins)
    is_safe = told["SOURCE"]["value"].endswith("sslmode=require channel_binding=require")
    assert is_safe == (source is THEIRS)
    assert told["PGPASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == secret
    assert ("PGUSER" in told) == (source is THEIRS)
    assert {"name": "SETTINGS", "value": settings} in pod["containers"][0]["env"]


LACKING = {
    "a MyDatabase that nobody copies": (
        OURS, "absent", ".spec.bootstrap.fromCluster.database: there is no Secret shop-replication in this namespace (hint: MyDatabase shop has one once",
    ),
    "a Secret that isn't there": (THEIRS, "absent", ".spec.bootstrap.fromCluster.secretName: Secret theirs is missing (hint: create it"),
    "a Secret of no use": (THEIRS, "lacks the key password", ".spec.bootstrap.fromCluster.secretName: Secret theirs lacks the key password"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "worth", "said"), LACKING.values(), ids=LACKING)
def test_what_a_copy_lacks_is_told_and_it_goes_on_once_that_is_there(source, worth, said):
    world = copied_world(source)
    for name in ("shop-replication", "theirs"):
        world.worth[name] = worth
    outcome = world.settle()
    degraded = condition(outcome, "Degraded")
    assert (degraded.reason, jobs(world)) == ("SourceNotFound", [])
    assert degraded.message.startswith(said)
    world.worth.clear()
    world.settle()
    assert jobs(world) == ["db-restore"]


def test_a_copy_that_fails_is_told_and_gives_way_to_another_choice():
    world = copied_world()
    world.settle()
    end(world, "db-restore", "pg_basebackup: error: connection to server failed", container="copy", kind="Failed")
    degraded = condition(world.settle(), "Degraded")
    assert (degraded.reason, world.pods) == ("CopyFailed", {})
    assert degraded.message == (
        ".spec.bootstrap.fromCluster: pg_basebackup: error: connection to server failed (hint: correct .spec.bootstrap.fromCluster, or delete Job db-restore to have it tried again)"
    )
    world.others.pop()
    world.cr["spec"]["bootstrap"]["fromCluster"] = THEIRS
    world.step()
    assert jobs(world) == []
    world.step()
    assert jobs(world) == ["db-restore"]
