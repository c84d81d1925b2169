"""``diff --scan``: which findings a change adds and which it mends, before anything is written."""

import json

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.core.scan.findings import findings_of
from kubectl_reconcile.core.scan.namespace import SCANNED_KINDS, findings_among
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.core.scan.rules import ScanRules
from tests.e2e.cli.deployments import deployment
from tests.e2e.cli.plan_schema import SCHEMA

CHECKS = "checks.reconcile.dev/v1alpha1"


@pytest.fixture
def source(tmp_path):
    """source(manifest, …) -> the folder that holds just these."""

    def write(*manifests):
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        (folder / "all.yaml").write_text("\n---\n".join(map(json.dumps, manifests)))
        return folder

    return write


def keys(documents):
    return {(each["object"]["name"], each["check"], each["path"]) for each in documents}


def live(cluster, *names):
    found = (finding for name in names for finding in findings_of(cluster.get("Deployment", name), Profile.RESTRICTED))
    return {(each.ref.name, each.check, each.path) for each in found}


def test_what_a_preview_says_of_findings_is_what_a_scan_finds_after_the_sync(plugin, source, cluster, tmp_path):
    folder = source(deployment("a", hostIPC=True), deployment("b", [{"name": "API_TOKEN", "value": "hunter2"}]))
    assert plugin("sync", "-f", str(folder), "--name", "shop").status == 0
    before = live(cluster, "a", "b")
    assert ("a", "pod-security/hostNamespaces", ".spec.template.spec.hostIPC") in before
    source(deployment("a", hostPID=True), deployment("b"), deployment("c"))
    asked = ("diff", "-f", str(folder), "--name", "shop", "--scan", "restricted")
    document = json.loads(plugin(*asked, "-o", "json").out)
    told = SCHEMA(document)["scan"]
    assert ("a", "pod-security/hostNamespaces", ".spec.template.spec.hostPID") in keys(told["new"])
    assert {name for name, *_ in keys(told["fixed"])} == {"a", "b"}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(document))
    assert plugin("sync", "-f", str(folder), "--name", "shop", "--plan", str(plan)).status == 0
    assert live(cluster, "a", "b", "c") == (before | keys(told["new"])) - keys(told["fixed"])
    assert plugin(*asked, "--fail-on", "new-findings").status == ExitStatus.OK


def job(name, **pod):
    spec = {"containers": [{"name": "main", "image": "busybox:1.37"}], "restartPolicy": "Never", **pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"suspend": True, "template": {"spec": spec}},
    }


def cron_job(name, **pod):
    template = {"spec": job(name, **pod)["spec"]}
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": template}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


def audit(**pod):
    template = {"spec": job("audit", **pod)["spec"]["template"]["spec"]}
    spec = {"job": {"template": template}, "suspend": True}
    return {"apiVersion": CHECKS, "kind": "Checkup", "metadata": {"name": "audit"}, "spec": spec}


def scanned(cluster, rules):
    """What a scan of the namespace finds as it is."""
    kinds = ",".join(str(kind) for kind in sorted(SCANNED_KINDS))
    objects = json.loads(cluster.kubectl("get", kinds, "-n", cluster.namespace, "-o", "json"))["items"]
    return {(each.ref.name, each.check, each.path) for each in findings_among(objects, rules)}


def test_the_pods_of_jobs_and_what_modules_make_are_found_before_the_sync_as_after_it(plugin, source, cluster):
    """A law: a scan of a plan's outcome is the scan after its sync."""
    scan = {"profile": "restricted"}
    cluster.apply({"apiVersion": CHECKS, "kind": "Checkup", "metadata": {"name": "security"}, "spec": {"scan": scan}})
    cache = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "cache"}}
    cache["spec"] = {"size": 1}
    steps = [
        ([job("one"), cron_job("two", hostPID=True), cache, audit(securityContext={"runAsUser": 0})], {"one", "two", "cache", "audit"}, set()),
        ([job("one"), cron_job("two"), cache, audit(), deployment("web")], {"web"}, {"two", "audit"}),
    ]  # fmt: skip
    rules = ScanRules.of(scan)
    for manifests, new, mended in steps:
        asked = ("-f", str(source(*manifests)), "--name", "shop")
        before = scanned(cluster, rules)
        told = SCHEMA(json.loads(plugin("diff", *asked, "-o", "json").out))["scan"]
        assert ({name for name, *_ in keys(told["new"])}, {name for name, *_ in keys(told["fixed"])}) == (new, mended)
        assert plugin("sync", *asked, "--no-wait").status == 0
        assert scanned(cluster, rules) == (before | keys(told["new"])) - keys(told["fixed"])


def test_new_findings_are_listed_by_object_and_place_and_end_a_pipeline_that_asks_for_it(plugin, source):
    folder = source(deployment("web", [{"name": "API_TOKEN", "value": "hunter2"}], hostIPC=True))
    asked = ("diff", "-f", str(folder), "--scan", "baseline")
    answer = plugin(*asked, "-o", "summary")
    assert answer.status == ExitStatus.DIFFERENT
    assert answer.out.splitlines()[1:4] == [
        f"new finding: Deployment.apps {plugin.namespace}/web  all.yaml:1",
        "  .spec.template.spec.hostIPC must not be true  pod-security/hostNamespaces",
        '  .spec.template.spec.containers[name="web"].env[name="API_TOKEN"].value must come from a Secret (valueFrom)  secret-in-environment',
    ]
    assert "scan (baseline): 5 new findings, 0 fixed" in answer.out
    assert "hunter2" not in answer.out
    assert plugin(*asked, "--fail-on", "new-findings").status == ExitStatus.FINDINGS
    assert "<summary>scan (baseline): 5 new findings, 0 fixed</summary>" in plugin(*asked, "-o", "github").out


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--fail-on", "new-findings"), "no Checkup scans the namespaces that change"),
        (("--scan", "baseline", "--fail-on", "new-findings", "--watch"), "can't be combined with --watch or --accept"),
        (("--scan", "tight"), "'tight' is not one of 'baseline', 'restricted'"),
    ],
)
def test_flags_that_make_no_sense_are_refused_with_what_to_do(plugin, source, flags, complaint):
    answer = plugin("diff", "-f", str(source(deployment("web"))), *flags)
    assert (answer.status, complaint in answer.err) == (ExitStatus.USAGE, True)


def test_a_checkup_says_what_to_look_for_where_nothing_else_does(plugin, source, cluster):
    scan = {"profile": "baseline", "exclude": [{"check": "limits"}, {"check": "probes"}]}
    cluster.apply(
        {
            "apiVersion": "checks.reconcile.dev/v1alpha1",
            "kind": "Checkup",
            "metadata": {"name": "security"},
            "spec": {"scan": scan},
        }
    )
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    service["spec"] = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    folder = source(deployment("web"), service)
    asked = ("diff", "-f", str(folder), "--name", "shop")
    counts = f"scan (Checkup {plugin.namespace}/security): "
    assert f"{counts}0 new findings, 0 fixed" in plugin(*asked).out
    assert plugin(*asked, "--fail-on", "new-findings").status == ExitStatus.DIFFERENT
    source(deployment("other", hostIPC=True), service)
    told = SCHEMA(json.loads(plugin(*asked, "-o", "json").out))["scan"]
    assert told["checkups"] == [f"{plugin.namespace}/security"]
    assert {(each["object"]["kind"], each["check"], each["severity"]) for each in told["new"]} == {
        ("Deployment", "pod-security/hostNamespaces", "high"),
        ("Service", "endpoints", "medium"),
    }
    assert plugin(*asked, "--fail-on", "new-findings").status == ExitStatus.FINDINGS
    everything = plugin(*asked, "--scan", "baseline", "-o", "summary").out
    assert "scan (baseline): 4 new findings" in everything, "who says what to look for is asked alone"
