"""Checkups that report, on plain values: when a report is written, what it tells since the last one, and who reads it."""

import json

import pytest

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.module_testing import asked
from tests.core.report.syncs import WORDS, at_its_worst, entry, sync
from tests.modules.checkup.jobs import Jobs
from tests.modules.checkup.world import deployment

NOON, LATER = "2026-11-20T12:01:00Z", "2026-11-20T13:00:05Z"


def report(*around, of=None, **more):
    return Jobs(*(around or (deployment(), sync())), report=of or {}, **more)


def written(world):
    (found,) = world.maps.values()
    return found["data"]


def test_without_a_schedule_a_report_is_written_once_for_each_spec():
    world = report()
    status = world.at(NOON, asked)
    assert world.maps.keys() == {"check-report"}
    assert json.loads(written(world)["report.json"])["counts"]["objects"] == 1
    assert written(world)["report.md"].startswith("# Report: namespace shop\n")
    assert (status["result"]["objects"], status["configMap"]) == (1, "check-report")
    assert (world.told("Passed"), world.health) == (("True", "Passed"), "Current")
    before = written(world)
    world.around.append(deployment("more"))
    assert world.at(LATER) == status
    assert written(world) == before, "it stays until another one is due"
    assert world.outcome.untouched == ("ConfigMap/check-report",)
    world.change(report={"of": "sync", "sync": "web"})
    assert world.at(LATER)["result"]["compared"] is False


def test_at_a_slot_it_tells_what_has_changed_since_the_last_one():
    world = report(
        schedule="0 * * * *", passes="result.unhealthy == 0 && (!result.compared || result.change.changes <= 0)"
    )
    world.at(NOON)
    assert world.maps == {}
    world.around = [sync(history=[entry("aaa", "2026-11-20T12:30:00Z")])]
    world.at("2026-11-20T13:00:01Z")
    world.around = [sync(history=[entry("bbb", "2026-11-20T13:30:00Z"), entry("aaa", "2026-11-20T12:30:00Z")])]
    status = world.at("2026-11-20T14:00:01Z")
    told = json.loads(written(world)["report.json"])
    assert ([each["revision"] for each in told["changes"]], told["since"]) == (["bbb"], "2026-11-20T13:00:01Z")
    assert (status["lastScheduleTime"], status["result"]["change"]["changes"]) == ("2026-11-20T14:00:00Z", 0)
    assert [each["passed"] for each in status["history"]] == [True, True]


def test_it_may_be_written_in_one_way_only():
    world = report(of={"format": "markdown"})
    world.at(NOON)
    assert written(world).keys() == {"report.md"}


def test_a_sync_that_is_not_there_is_told_with_its_field():
    world = report(of={"of": "sync", "sync": "shop"})
    world.at(NOON)
    assert (world.maps, world.told("Stalled")) == ({}, ("True", "InTheWay"))
    assert ".spec.report.sync: there is no Sync shop" in world.message("Stalled")
    world.around.append(sync("shop"))
    world.at(NOON)
    assert (len(world.maps), world.told("Stalled")[0]) == (1, "False")


def test_what_could_not_be_read_is_told_in_the_report():
    world = report()
    world.unread = {"Certificate.cert-manager.io": "certificates is forbidden"}
    world.at(NOON)
    assert "You may not list Certificate.cert-manager.io" in written(world)["report.md"]


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_the_longest_report_fits_into_its_config_map(word):
    world = report(*at_its_worst(word))
    world.at(NOON)
    assert sum(len(text.encode()) for text in written(world).values()) < 1024 * 1024 - 64 * 1024
    assert json.loads(written(world)["report.json"])["leftOut"]["unhealthy"] >= 20
    assert "left out here" in written(world)["report.md"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"of": "sync"}, ".spec.report.sync"),
        ({"of": "sync", "sync": "a b"}, ".spec.report.sync"),
        ({"of": "namespace", "sync": "web"}, ".spec.report.sync"),
        ({"of": "cluster"}, ".spec.report.of"),
        ({"format": "html"}, ".spec.report.format"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_place(spec, field):
    with pytest.raises(SpecError) as refused:
        report(of=spec).at(NOON)
    assert refused.value.field == field
