"""Reports on plain values: what is told of a namespace and of a Sync, and how it is written."""

import json

import pytest

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.report.contents import ReportScope, report_of
from kubectl_reconcile.core.report.writing import markdown_of, report_texts
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from tests.core.report.syncs import BEFORE, NOW, WORDS, at_its_worst, broken, condition, entry, sync
from tests.modules.checkup.world import deployment, meta, pod_of, service

SHOP = ReportScope("shop")
OF_SYNC = {PART_OF: applyset_id(ObjectRef("reconcile.dev", "Sync", "shop", "web"))}


def test_objects_are_counted_by_kind_and_what_others_make_is_theirs():
    found = report_of([deployment("a"), deployment("b"), service(), pod_of("ReplicaSet", "x")], SHOP, NOW)
    assert [(each["kind"], each["count"]) for each in found["inventory"]] == [("Deployment.apps", 2), ("Service", 1)]
    assert found["counts"]["objects"] == 3


def test_what_is_not_healthy_is_told_with_its_reason():
    (line,) = report_of([broken(), service()], SHOP, NOW)["unhealthy"]
    assert (line["object"], line["health"]) == ("Deployment.apps/web", "Failed")
    assert "it has no more time" in line["message"]


def checkup(name, passed, **spec):
    conditions = [condition("Passed", passed, message="3 findings")]
    body = {"metadata": meta(name), "spec": spec, "status": {"conditions": conditions}}
    return {"apiVersion": "checks.reconcile.dev/v1alpha1", "kind": "Checkup", **body}


def test_a_checkup_is_as_healthy_as_its_verdict_but_that_of_a_report_says_nothing():
    verdicts = [checkup(name, passed, scan={}) for name, passed in (("a", "True"), ("b", "False"), ("c", "Unknown"))]
    found = report_of([*verdicts, checkup("monday", "False", report={})], SHOP, NOW)
    assert [(each["object"], each["health"], each["message"]) for each in found["unhealthy"]] == [
        ("Checkup.checks.reconcile.dev/b", "Failed", "3 findings"),
        ("Checkup.checks.reconcile.dev/c", "InProgress", "3 findings"),
    ]
    assert [(each["count"], each["healthy"]) for each in found["inventory"]] == [(4, 2)]


def test_images_are_told_with_their_versions_and_who_runs_them():
    objects = [
        deployment("a", image="reg:5000/nginx:1.29@sha256:ab"),
        deployment("b", image="reg:5000/nginx:1.29@sha256:ab"),
        deployment("c", image="reg:5000/plain"),
    ]
    assert report_of(objects, SHOP, NOW)["images"] == [
        {"image": "reg:5000/nginx", "version": "1.29", "digest": "sha256:ab", "objects": ["Deployment.apps/a", "Deployment.apps/b"]},
        {"image": "reg:5000/plain", "objects": ["Deployment.apps/c"]},
    ]  # fmt: skip


def test_changes_are_those_since_the_last_report():
    history = [
        entry("bbb", "2026-11-20T08:00:00Z", created=2, author="Ann", subject="grow", signer="ann"),
        entry("aaa", "2026-11-18T08:00:00Z"),
    ]
    told = sync(lastAppliedRevision="bbb", history=history)
    assert [each["revision"] for each in report_of([told], SHOP, NOW)["changes"]] == ["bbb", "aaa"]
    (line,) = report_of([told], ReportScope("shop", since=BEFORE), NOW)["changes"]
    assert line == {
        "sync": "web", "revision": "bbb", "time": "2026-11-20T08:00:00Z", "result": "Synced",
        "author": "Ann", "subject": "grow", "signer": "ann", "created": 2,
    }  # fmt: skip


def test_what_waits_for_somebody_is_told():
    held = condition("Synced", "False", "Held", "4 deletions are held")
    conditions = [held, condition("Drifted", message="Deployment.apps shop/web: .spec.replicas")]
    odd = sync(
        spec={"suspend": True}, undeletable=["ConfigMap shop/x"], problems=["a.yaml:1: no"], conditions=conditions
    )
    contested = {**deployment(), "status": {"conditions": [condition("Contended", message=".spec.replicas with hpa")]}}
    found = report_of([odd, contested], SHOP, NOW)
    assert [each["message"] for each in found["held"]] == [
        "it is suspended: nothing is applied",
        "4 deletions are held",
        "ConfigMap shop/x may not be deleted by the Sync's account",
    ]
    assert found["problems"] == [{"sync": "web", "message": "a.yaml:1: no"}]
    assert found["drift"] == [
        {"object": "Sync.reconcile.dev/web", "message": "Deployment.apps shop/web: .spec.replicas"}
    ]
    assert found["contested"] == [{"object": "Deployment.apps/web", "message": ".spec.replicas with hpa"}]


def test_drift_that_was_put_back_is_that_of_the_syncs_that_are_told_of():
    def noted(time, **more):
        return {"object": "Deployment.apps shop/web", "message": "kubectl changed .spec", "time": time, **more}

    told = sync(putBack=[noted(NOW, times=3), noted(BEFORE)])
    assert report_of([told, sync("other", putBack=[noted(NOW)])], ReportScope("shop", "web", BEFORE), NOW)[
        "putBack"
    ] == [{"sync": "web", **noted(NOW), "times": 3}]
    assert [each["times"] for each in report_of([told], SHOP, NOW)["putBack"]] == [3, 1]


def test_certificates_are_told_that_end_soon():
    def certificate(name, ends):
        api = "cert-manager.io/v1"
        return {"apiVersion": api, "kind": "Certificate", "metadata": meta(name), "status": {"notAfter": ends}}

    objects = [certificate("soon", "2026-12-01T12:00:00Z"), certificate("later", "2027-12-01T12:00:00Z")]
    objects += [certificate("odd", "tomorrow"), certificate("over", "2026-11-19T11:00:00Z")]
    found = report_of(objects, SHOP, NOW)["certificates"]
    assert [(each["object"], each["days"]) for each in found] == [
        ("Certificate.cert-manager.io/over", -2),
        ("Certificate.cert-manager.io/soon", 11),
    ]


def test_of_a_sync_its_members_are_told_and_nothing_else():
    member = deployment("mine")
    member["metadata"]["labels"] = OF_SYNC
    elsewhere = {**deployment("far"), "metadata": {"name": "far", "namespace": "stall", "labels": OF_SYNC}}
    found = report_of([sync(), sync("other"), member, deployment("theirs"), elsewhere], ReportScope("shop", "web"), NOW)
    assert (found["of"], found["counts"]["objects"], found["counts"]["syncs"]) == ("Sync shop/web", 1, 1)


def test_members_of_a_sync_count_wherever_its_books_have_them():
    elsewhere = {**deployment("far"), "metadata": {"name": "far", "namespace": "stall", "labels": OF_SYNC}}
    forged = {**deployment("far"), "metadata": {"name": "forged", "namespace": "other", "labels": OF_SYNC}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r", "labels": OF_SYNC}}  # fmt: skip
    scope = ReportScope("shop", "web", places=frozenset({"stall", ""}))
    found = report_of([sync(), elsewhere, forged, role, deployment("theirs")], scope, NOW)
    assert (found["counts"]["objects"], [each["count"] for each in found["inventory"]]) == (2, [1, 1])
    assert found["images"][0]["objects"] == ["Deployment.apps/stall/far"]


def test_lists_have_a_limit_and_what_is_more_is_counted():
    found = report_of([deployment(f"d-{number}", image=f"i:{number}") for number in range(500)], SHOP, NOW)
    assert (len(found["images"]), found["counts"]["images"], found["leftOut"]["images"]) == (100, 500, 400)
    assert "\nImages: 400 more lines are left out here.\n" in markdown_of(found)
    assert len(json.dumps(found)) < 256 * 1024


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("formats", [["markdown"], ["json"], ["markdown", "json"]], ids="+".join)
def test_the_longest_report_fits_and_says_what_it_lacks(word, formats):
    whole = report_of(at_its_worst(word), SHOP, NOW)
    assert len(json.dumps(whole)) > 200_000
    most = 100_000
    texts = report_texts(whole, formats, most)
    assert texts.keys() == set(formats)
    assert most / 2 < sum(len(text.encode()) for text in texts.values()) <= most
    if "json" in texts:
        found = json.loads(texts["json"])
        lists = [name for name in whole["counts"] if name != "objects"]
        assert {name: len(found[name]) + found["leftOut"].get(name, 0) for name in lists} == {
            name: whole["counts"][name] for name in lists
        }
        assert min(len(found[name]) for name in lists if found[name]) > 0
        assert found["counts"] == whole["counts"]
    if "markdown" in texts:
        assert " more lines are left out here." in texts["markdown"]


def test_a_short_list_stays_whole_where_a_long_one_is_cut():
    objects = [*(broken(f"d-{number:03d}", "x" * 200) for number in range(100)), sync(lastAppliedRevision="abc")]
    found = json.loads(report_texts(report_of(objects, SHOP, NOW), ["json"], 20_000)["json"])
    assert (len(found["syncs"]), found["leftOut"]) == (1, {"unhealthy": 100 - len(found["unhealthy"])})


def test_markdown_has_what_there_is_to_say_and_no_markup_of_others():
    odd = broken(message="a | <b> [c](d) `e` @f\n# g")
    text = markdown_of(report_of([odd, sync(lastAppliedRevision="abc")], SHOP, NOW))
    assert text.startswith(
        "# Report: namespace shop\n\nAs of 2026-11-20T12:00:00Z: 1 object, 1 not healthy, 0 changes.\n"
    )
    assert "## Not healthy" in text
    assert "## Problems" not in text
    (line,) = (each for each in text.splitlines() if each.startswith("| Deployment.apps/web | Failed"))
    assert line.count("|") == 4
    assert not set("<>[]`@") & set(line)


def test_the_order_of_objects_does_not_matter():
    objects = [deployment("a"), broken("b"), sync(), sync("z"), service()]
    assert report_of(objects, SHOP, NOW) == report_of(objects[::-1], SHOP, NOW)
