"""``diff --scan``: which findings a change adds and which it mends, before anything is written."""

import json

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.core.scan.findings import findings_of
from kubectl_reconcile.core.scan.pod_security import Profile
from tests.e2e.cli.test_plan_file import SCHEMA


def deployment(name, env=(), **pod):
    container = {"name": "web", "image": "nginx:1.29", "env": list(env)}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **pod}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


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
        (("--fail-on", "new-findings"), "no Checkup looks at the namespaces that change"),
        (("--scan", "baseline", "--fail-on", "new-findings", "--watch"), "goes without --watch and --accept"),
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
