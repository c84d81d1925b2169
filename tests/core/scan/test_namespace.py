"""What a scan finds among the objects of a namespace, and what is left out of it."""

import pathlib
import random

import pytest

from kubectl_reconcile.core.scan.findings import CHECKS, ScanSeverity, findings_of
from kubectl_reconcile.core.scan.namespace import findings_among
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.core.scan.rules import Exclusion, ScanRules, ScanRulesError
from tests.modules.checkup.world import SOUND, deployment, meta, pod_of, role, service

RESTRICTED = ScanRules(Profile.RESTRICTED)


def found(*manifests, rules=RESTRICTED):
    return [(f"{each.ref.kind}/{each.ref.name}", each.check, each.path) for each in findings_among(manifests, rules)]


def test_what_is_made_by_another_object_is_looked_at_there_alone():
    maker = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta("web"), "spec": {}}
    made = pod_of("StatefulSet", "web", hostPID=True)
    assert [each[0] for each in found(made)] == ["Pod/web-0"], "its maker isn't there"
    assert found(made, maker) == []
    assert [each[0] for each in found(made, {**maker, "metadata": meta("other")})] == ["Pod/web-0"]
    going = {**maker, "metadata": meta("web", deletionTimestamp="now")}
    assert [each[0] for each in found(made, going)] == ["Pod/web-0"], "its maker goes"


def test_what_says_to_have_made_itself_is_looked_at():
    pod = pod_of("ReplicaSet", "web", hostPID=True)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "u", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    assert found(pod) == [("Pod/web-0", "pod-security/hostNamespaces", ".spec.hostPID")]


def test_the_jobs_of_checks_are_not_looked_at_and_what_else_says_to_be_of_one_is():
    owner = {"apiVersion": "checks.reconcile.dev/v1alpha1", "kind": "Checkup", "name": "load", "controller": True}
    template = {"spec": {"containers": [SOUND], "hostPID": True}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("load-1", ownerReferences=[owner])}
    assert found({**job, "spec": {"template": template}}) == []
    pod = pod_of("StatefulSet", "web", hostPID=True)
    pod["metadata"]["ownerReferences"] = [owner]
    assert [each[0] for each in found(pod)] == ["Pod/web-0"]


def test_the_pod_of_a_check_is_looked_at_where_the_checkup_says_it():
    checkup = {"apiVersion": "checks.reconcile.dev/v1alpha1", "kind": "Checkup", "metadata": meta("audit")}
    template = {"spec": {"containers": [SOUND], "hostPID": True}}
    assert found({**checkup, "spec": {"job": {"template": template}}}) == [
        ("Checkup/audit", "pod-security/hostNamespaces", ".spec.job.template.spec.hostPID")
    ]
    assert found({**checkup, "spec": {"load": {"service": "web"}}}) == []


def test_what_is_being_deleted_is_not_looked_at():
    assert found({**role("*"), "metadata": meta("web", deletionTimestamp="now")}) == []


def test_the_order_of_objects_does_not_matter():
    objects = [role("*", name=name) for name in "abc"] + [
        service(),
        deployment("x", hostPort=1),
        pod_of("ReplicaSet", "gone"),
    ]
    shuffled = random.Random(4).sample(objects, len(objects))  # noqa: S311 - an order, no secret
    assert found(*objects) == found(*shuffled)


ENDPOINTS = {
    "pods that a workload makes": ([deployment("web")], []),
    "a pod that is there": ([pod_of("ReplicaSet", "gone")], []),
    "nothing at all": ([], [".spec.selector"]),
    "pods with other labels": ([deployment("db")], [".spec.selector"]),
    "pods of another namespace": (
        [{**deployment("web"), "metadata": {"name": "web", "namespace": "stall"}}],
        [".spec.selector"],
    ),
}


@pytest.mark.parametrize(("others", "paths"), ENDPOINTS.values(), ids=ENDPOINTS)
def test_a_service_needs_pods_that_answer_for_it(others, paths):
    assert [path for what, check, path in found(service(), *others) if check == "endpoints"] == paths


@pytest.mark.parametrize("spec", [{"selector": {}}, {"selector": None}, {"type": "ExternalName"}])
def test_a_service_whose_endpoints_are_somebody_elses_needs_none(spec):
    assert found(service(**spec)) == []


def test_a_port_of_a_service_that_is_named_is_one_of_its_pods():
    ports = [
        {"port": 80, "targetPort": "http"},
        {"port": 81, "targetPort": "htpp"},
        {"port": 82, "targetPort": 9},
        {"port": 83},
    ]
    assert found(service(ports=ports), deployment()) == [
        ("Service/web", "endpoints", ".spec.ports[port=81].targetPort")
    ]
    ports = [{"name": "dns", "port": 53, "targetPort": "dns"}]
    assert found(service(ports=ports), deployment())[0][2] == '.spec.ports[name="dns"].targetPort'


@pytest.mark.parametrize("selector", [{"app": ["x"]}, "app=web", {"app": None}, {1: 2}])
def test_a_service_of_any_shape_is_read(selector):
    assert {check for _, check, _ in found(service(selector=selector), deployment())} <= {"endpoints"}


def test_findings_weigh_more_where_the_baseline_forbids_it_already():
    odd = deployment(
        securityContext={**SOUND["securityContext"], "privileged": True, "runAsNonRoot": None}, readinessProbe=None
    )
    told = {each.check: each.severity for each in findings_of(odd, Profile.RESTRICTED)}
    assert told == {
        "pod-security/privileged": ScanSeverity.HIGH,
        "pod-security/runAsNonRoot": ScanSeverity.MEDIUM,
        "probes": ScanSeverity.LOW,
    }


def test_the_page_of_the_documentation_names_every_check():
    page = (pathlib.Path(__file__).parents[3] / "docs" / "scan.md").read_text()
    assert [each for each in sorted(CHECKS) if f"`{each.removeprefix('pod-security/')}`" not in page] == []


def test_rules_are_read_as_a_checkup_has_them():
    scan = {"profile": "restricted", "exclude": [{"check": "limits", "reason": "x"}, {"kind": "Pod", "name": "a*"}]}
    assert ScanRules.of(scan) == ScanRules(Profile.RESTRICTED, (Exclusion("limits"), Exclusion(kind="Pod", name="a*")))
    assert ScanRules.of({}) == ScanRules(Profile.BASELINE)
    with pytest.raises(
        ScanRulesError, match="there is no check limit; there are pod-security/CONTROL, endpoints, image-digest"
    ):
        ScanRules.of({"exclude": [{"check": "limit"}]})


def test_a_pattern_is_no_regular_expression():
    assert found(role("*"), rules=ScanRules(Profile.BASELINE, (Exclusion(name="we."),))) != []
    assert found(role("*"), rules=ScanRules(Profile.BASELINE, (Exclusion(name="w*b"),))) == []


@pytest.mark.parametrize("pattern", ["*" * 253, "*a" * 126 + "b", "a*" * 126 + "b"])
def test_a_pattern_of_many_stars_is_answered_nevertheless(pattern):
    long = role("*")
    long["metadata"]["name"] = "a" * 253
    assert (found(long, rules=ScanRules(Profile.BASELINE, (Exclusion(name=pattern),))) == []) is (set(pattern) == {"*"})


@pytest.mark.parametrize("pattern", ["w?b", "[w]eb", "w[a-f]b"])
def test_nothing_but_a_star_stands_for_anything(pattern):
    assert found(role("*"), rules=ScanRules(Profile.BASELINE, (Exclusion(name=pattern),))) != []
