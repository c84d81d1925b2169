"""Order, hooks, moves and other sets: what is written when, what waits, and what is left alone."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.apply.replace import as_restored, is_immutable
from kubectl_reconcile.core.health.cel_rules import HealthRules, Rule, RuleError
from kubectl_reconcile.core.health.judge import Health, HealthStatus
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.order import arranged, cycles_in, is_behind, services_of
from kubectl_reconcile.core.redaction import redacted
from kubectl_reconcile.core.resources.sync import Sync


def ref(name):
    return ObjectRef("", "ConfigMap", "shop", name)


names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.sets(names, max_size=3), max_size=6)


@given(graphs)
def test_without_its_cycles_every_graph_has_an_order_in_which_each_comes_after_what_it_needs(graph):
    needs = {ref(name): {ref(target) for target in targets} for name, targets in graph.items()}
    caught = {each for cycle in cycles_in(needs) for each in cycle}
    sound = {each: targets for each, targets in needs.items() if each not in caught}
    places = {ref(name): (0, 0, 0) for name in "abcdef"}
    found = {**places, **arranged(places, sound)}
    assert all(found[each] > found[target] for each, targets in sound.items() for target in targets)


@given(graphs)
def test_a_cycle_leads_from_each_to_what_it_needs_and_back(graph):
    needs = {ref(name): {ref(target) for target in targets} for name, targets in graph.items()}
    for cycle in cycles_in(needs):
        assert cycle[0] == cycle[-1]
        assert all(after in needs[before] for before, after in itertools.pairwise(cycle))


# --- health in CEL -----------------------------------------------------------------------------------


def cache(**status):
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": "web", "generation": 1},
        "status": status,
    }


RULE = {
    "kind": "Memcached.cache.example.com",
    "current": "self.status.phase == 'Up'",
    "failed": "self.status.phase == 'Broken'",
}


def test_a_rule_in_cel_decides_for_its_kind_alone():
    rules = HealthRules(rules=(Rule.parse(RULE),))
    verdicts = [rules.judge(cache(phase=phase)).status for phase in ("Up", "Broken", "Starting")]
    assert verdicts == [HealthStatus.CURRENT, HealthStatus.FAILED, HealthStatus.IN_PROGRESS]
    assert rules.judge(cache()).status is HealthStatus.IN_PROGRESS  # a field that isn't there yet
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    assert rules.judge(other).status is HealthStatus.CURRENT


def test_an_expression_that_is_no_cel_is_refused_with_its_field():
    with pytest.raises(RuleError) as caught:
        Rule.parse({**RULE, "failed": "self.("})
    assert caught.value.field == "failed"
    manifest = {"metadata": {"name": "shop"}, "spec": {"health": {"rules": [RULE, {"kind": "X"}]}}}
    with pytest.raises(ValueError, match=r"spec\.health\.rules\[1\]\.current"):
        Sync.of(manifest)


def test_a_wave_never_waits_for_a_claim_but_for_the_end_of_a_job():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "x"},
        "status": {"phase": "Pending"},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {}, "status": {"startTime": "t"}}
    assert HealthRules().passes(claim).status is HealthStatus.CURRENT
    assert HealthRules().judge(claim).status is HealthStatus.IN_PROGRESS
    assert HealthRules().passes(job).status is HealthStatus.IN_PROGRESS


def test_nobody_waits_for_a_suspended_job_unless_it_is_a_hook():
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"suspend": True}, "status": {}}
    assert HealthRules().passes(job).status is HealthStatus.SUSPENDED
    assert HealthRules().passes(job, hook=True) == Health(HealthStatus.IN_PROGRESS, "suspended; a hook must complete")


LIMITS = {
    "a budget without pods": ("policy/v1", "PodDisruptionBudget", {"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1}),
    "a quota that nobody has counted yet": ("v1", "ResourceQuota", {}),
    "an autoscaler of nothing": (
        "autoscaling/v2", "HorizontalPodAutoscaler",
        {"conditions": [{"type": "AbleToScale", "status": "False", "reason": "FailedGetScale"}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("api_version", "kind", "status"), LIMITS.values(), ids=LIMITS)
def test_a_wave_never_waits_for_what_only_limits_others(api_version, kind, status):
    limit = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "status": status}
    assert HealthRules(strict=True).passes(limit).status is HealthStatus.CURRENT
    going = {**limit, "metadata": {"name": "x", "deletionTimestamp": "2026-11-20T12:00:00Z"}}
    assert HealthRules().passes(going).status is HealthStatus.TERMINATING
    assert HealthRules().passes(None).status is HealthStatus.NOT_FOUND


# --- what answers for the server ----------------------------------------------------------------------


def service(name, namespace="shop"):
    return ObjectRef("", "Service", namespace, name)


ASKED = {
    "two webhooks": (
        {"webhooks": [{"clientConfig": {"service": {"namespace": "shop", "name": name}}} for name in "ab"]},
        {service("a"), service("b")},
    ),
    "a webhook at an address": ({"webhooks": [{"clientConfig": {"url": "https://a"}}]}, set()),
    "an aggregated API": ({"spec": {"service": {"namespace": "office", "name": "a"}}}, {service("a", "office")}),
    "an API of the server's own": ({"spec": {"group": "apps"}}, set()),
    "a policy": ({"spec": {"validations": []}}, set()),
}


@pytest.mark.parametrize(("manifest", "expected"), ASKED.values(), ids=ASKED)
def test_who_is_asked_for_a_webhook_or_an_aggregated_api(manifest, expected):
    assert services_of(manifest) == expected


BEHIND = {
    "its pods": ({"app": "a"}, {"app": "a", "tier": "gold"}, True),
    "other pods": ({"app": "a"}, {"app": "b"}, False),
    "some of its labels": ({"app": "a", "tier": "gold"}, {"app": "a"}, False),
    "a service without a selector": ({}, {"app": "a"}, False),
}


@pytest.mark.parametrize(("selector", "labels", "expected"), BEHIND.values(), ids=BEHIND)
def test_whose_pods_answer_for_a_service(selector, labels, expected):
    asked = {"spec": {"selector": selector}}
    assert is_behind({"kind": "Deployment", "spec": {"template": {"metadata": {"labels": labels}}}}, asked) is expected
    assert is_behind({"kind": "Pod", "metadata": {"labels": labels}}, asked) is expected


# --- replacing -----------------------------------------------------------------------------------------


class Cause:
    def __init__(self, reason, message):
        self.reason, self.message = reason, message


REFUSALS = {
    "a Service's address": ([("FieldValueInvalid", 'Invalid value: ["10.0.0.1"]: may not change once set')], True),
    "a Job's template": ([("FieldValueInvalid", "Invalid value: {…}: field is immutable")], True),
    "a StatefulSet's claims": (
        [
            (
                "FieldValueForbidden",
                "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
            )
        ],
        True,
    ),
    "a RoleBinding's role": ([("FieldValueInvalid", "Invalid value: {…}: cannot change roleRef")], True),
    "a claim that is to shrink": (
        [
            (
                "FieldValueForbidden",
                "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
            )
        ],
        True,
    ),
    "a bad value": ([("FieldValueInvalid", "Invalid value: 99999: must be between 1 and 65535")], False),
    "one of each": (
        [("FieldValueInvalid", "field is immutable"), ("FieldValueInvalid", "must be between 1 and 65535")],
        False,
    ),
    "a missing field": ([("FieldValueRequired", "Required value: field is immutable")], False),
    "no cause named": ([], False),
}


@pytest.mark.parametrize(("causes", "expected"), REFUSALS.values(), ids=REFUSALS)
def test_only_what_cannot_change_calls_for_a_replacement(causes, expected):
    assert is_immutable([Cause(*cause) for cause in causes]) is expected


def test_a_job_that_had_ended_comes_back_without_doing_its_work_again():
    labels = {"job-name": "x", "batch.kubernetes.io/controller-uid": "u", "app": "x"}
    before = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x", "uid": "u", "resourceVersion": "3"},
        "spec": {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": labels}, "spec": {}}},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
    back = as_restored(before)
    assert back["spec"]["suspend"] is True
    assert "selector" not in back["spec"]
    assert back["spec"]["template"]["metadata"]["labels"] == {"app": "x"}
    assert back["metadata"] == {"name": "x", "labels": {}}


# --- discretion ------------------------------------------------------------------------------------------


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "x",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"k":"v"}}'},
    },
    "data": {"password": "aHVudGVyMg=="},
    "stringData": {"pin": 7, "token": "s3cr3t-token"},
}
SAID = {
    "plain": "denied: hunter2 is too weak",
    "encoded": "illegal value aHVudGVyMg==",
    "of stringData": 'token "s3cr3t-token" is refused',
    "short": "expected string, got 7",
    "quoted by a decoder": ".data.pin: expected string, got &value.valueUnstructured{Value:7, x:{y}}",
    "the copy in an annotation": 'bad annotation {"data":{"k":"v"}}',
}


@pytest.mark.parametrize("text", SAID.values(), ids=SAID)
def test_no_value_of_a_secret_survives_in_a_sentence(text):
    said = redacted(text, SECRET)
    assert "***" in said
    assert not any(value in said for value in ("hunter2", "aHVudGVyMg", "s3cr3t-token", "got 7", "Value:7", '"v"'))


def test_sentences_about_other_objects_stay_as_they_are():
    assert redacted("hunter2", {**SECRET, "kind": "ConfigMap"}) == "hunter2"


@given(st.text(min_size=1), st.text(), st.text())
def test_whatever_a_secret_holds_never_shows_as_a_whole(value, before, after):
    secret = {"kind": "Secret", "stringData": {"key": value}}
    said = redacted(f"{before} {value} {after}", secret)
    assert value in f"{before} *** {after}" or f" {value} " not in f" {said} " or len(value) <= 4
