"""A Sync as its users write it: what each field comes to, what it is without, and what is said of one that can't be meant."""

import pytest

from kubectl_reconcile.core.objects import FIELD_MANAGER, FieldPath, ObjectRef
from kubectl_reconcile.core.resources.fields import SyncSpecError, duration_s
from kubectl_reconcile.core.resources.helm import NO_HELM
from kubectl_reconcile.core.resources.source import GitSpec, Render, SourceSpec
from kubectl_reconcile.core.resources.sync import DeleteLimit, DeletionPolicy, Dependency, DriftPolicy, Sync
from kubectl_reconcile.core.resources.verification import VerifyMode, VerifySpec
from kubectl_reconcile.core.ssa.csa_upgrade import KNOWN_TOOLS
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom
from kubectl_reconcile.core.ssa.merge import ConflictPolicy

URL = "https://git.example.com/shop.git"


def sync(_annotations=None, **spec):
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "generation": 3, "annotations": _annotations or {}}
    return Sync.of({"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "spec": spec})


def git(**fields):
    return source(**fields).git


def source(**fields):
    return sync(source={"git": {"url": URL, **fields}}).source


def test_a_sync_knows_its_name_its_uid_and_its_generation():
    found = sync()
    assert (found.ref, found.uid, found.generation) == (ObjectRef("reconcile.dev", "Sync", "shop", "web"), "u", 3)


def test_a_sync_that_says_nothing_has_the_defaults_that_its_crd_tells():
    found = sync()
    assert found.source is None
    assert (found.suspend, found.prune, found.replace, found.atomic) == (False, True, False, False)
    assert (found.conflicts, found.drift, found.deletion) == (
        ConflictPolicy.OVERRIDE,
        DriftPolicy.CORRECT,
        DeletionPolicy.ORPHAN,
    )
    assert (found.max_deletes, found.timeout_s, found.field_manager) == (DeleteLimit(), 300.0, FIELD_MANAGER)
    assert (found.ignore, found.health.rules, found.health.strict, found.depends_on) == ((), (), False, ())
    assert (found.take_over, found.requested_at, found.approved_plan) == (KNOWN_TOOLS, "", "")
    assert found.default_namespace == "shop"
    assert found.account == "system:serviceaccount:shop:kubectl-reconcile"


def test_a_source_that_says_only_where_it_is_follows_the_whole_of_its_default_branch_each_minute():
    assert git() == GitSpec(URL, branch="", tag="", commit="", secret="", webhook_secret="")
    assert source() == SourceSpec(git(), path=".", interval_s=60.0, render=Render.AUTO)


SOURCE = {
    "a branch": ({"branch": "main"}, "branch", "main"),
    "a tag": ({"tag": "v1"}, "tag", "v1"),
    "a commit": ({"commit": "c0ffee"}, "commit", "c0ffee"),
    "a Secret to read it with": ({"secretRef": {"name": "token"}}, "secret", "token"),
    "a Secret of its webhook": ({"webhookSecretRef": {"name": "hook"}}, "webhook_secret", "hook"),
    "keys in a Secret": ({"verify": {"secretRef": {"name": "keys"}}}, "verify", VerifySpec("Secret", "keys")),
    "keys in a ConfigMap": (
        {"verify": {"mode": "CommitOrTag", "configMapRef": {"name": "keys"}}},
        "verify",
        VerifySpec("ConfigMap", "keys", VerifyMode.COMMIT_OR_TAG),
    ),
}


@pytest.mark.parametrize(("fields", "name", "value"), SOURCE.values(), ids=SOURCE)
def test_a_source_has(fields, name, value):
    assert getattr(git(**fields), name) == value


def test_what_is_made_of_a_source_stands_apart_from_where_it_comes():
    found = source(interval="5m")
    assert (found.interval_s, found.git) == (300.0, git())


FIELDS = {
    "suspend": ({"suspend": True}, "suspend", True),
    "prune": ({"prune": False}, "prune", False),
    "replace": ({"replace": True}, "replace", True),
    "atomic": ({"atomic": True}, "atomic", True),
    "conflicts": ({"conflicts": "Yield"}, "conflicts", ConflictPolicy.YIELD),
    "drift": ({"drift": "Ask"}, "drift", DriftPolicy.ASK),
    "deletionPolicy": ({"deletionPolicy": "Prune"}, "deletion", DeletionPolicy.PRUNE),
    "maxDeletes, a number": ({"maxDeletes": 3}, "max_deletes", DeleteLimit(number=3)),
    "maxDeletes, none": ({"maxDeletes": 0}, "max_deletes", DeleteLimit(number=0)),
    "maxDeletes, a share": ({"maxDeletes": "20%"}, "max_deletes", DeleteLimit(percent=20)),
    "timeout": ({"timeout": "1h30m"}, "timeout_s", 5400.0),
    "targetNamespace": ({"targetNamespace": "ops"}, "default_namespace", "ops"),
    "serviceAccountName": ({"serviceAccountName": "ops.team"}, "account", "system:serviceaccount:shop:ops.team"),
    "fieldManager": ({"fieldManager": "team-a"}, "field_manager", "team-a"),
    "the longest fieldManager": ({"fieldManager": "m" * 128}, "field_manager", "m" * 128),
    "dependsOn, in its own namespace": (
        {"dependsOn": [{"name": "base"}]},
        "depends_on",
        (Dependency(ObjectRef("reconcile.dev", "Sync", "shop", "base")),),
    ),
    "dependsOn, in another one": (
        {"dependsOn": [{"name": "base", "namespace": "ops"}]},
        "depends_on",
        (Dependency(ObjectRef("reconcile.dev", "Sync", "ops", "base")),),
    ),
}


@pytest.mark.parametrize(("spec", "name", "value"), FIELDS.values(), ids=FIELDS)
def test_it_is_read(spec, name, value):
    assert getattr(sync(**spec), name) == value


def test_what_it_ignores_may_be_drift_alone_and_of_few_objects():
    (rule,) = sync(ignore=[{"path": "/spec/replicas", "from": "Drift", "target": {"group": "apps", "kind": "Deployment", "labelSelector": "app=web"}}]).ignore  # fmt: skip
    web = ObjectRef("apps", "Deployment", "shop", "web")
    assert rule.of is IgnoreFrom.DRIFT
    assert rule.means(web, {"app": "web"})
    assert not rule.means(web, {"app": "back"})
    assert not rule.means(web._replace(kind="StatefulSet"), {"app": "web"})
    assert not rule.means(web._replace(group="other"), {"app": "web"})


TARGETS = {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"}


@pytest.mark.parametrize("field", TARGETS)
def test_each_thing_said_of_a_target_must_be_so(field):
    (rule,) = sync(ignore=[{"path": "/spec/replicas", "target": TARGETS}]).ignore
    web = ObjectRef("apps", "Deployment", "shop", "web")
    assert rule.means(web, {})
    assert not rule.means(web._replace(**{field: "other"}), {})


def test_what_it_ignores_is_read_with_whose_it_is():
    anyone, hpa = sync(ignore=[{"path": "/spec/replicas"}, {"path": ".spec.size", "manager": "hpa"}]).ignore
    assert (anyone.matches(FieldPath.fields("spec", "replicas")), anyone.manager) == (True, "")
    assert (hpa.matches(FieldPath.fields("spec", "size")), hpa.manager) == (True, "hpa")


def test_its_rules_of_health_are_read():
    rule = {"apiVersion": "example.com/v1", "kind": "Thing", "current": "true"}
    found = sync(health={"strict": True, "rules": [rule]}).health
    assert (found.strict, len(found.rules)) == (True, 1)


def test_whom_it_takes_over_is_read():
    assert sync(takeOver=["pulumi"]).take_over != KNOWN_TOOLS


def test_what_was_asked_of_it_and_approved_is_read_from_its_annotations():
    found = sync({"reconcile.dev/sync-requested-at": "now", "reconcile.dev/approved-plan": "sha256:1"})
    assert (found.requested_at, found.approved_plan) == ("now", "sha256:1")


MANAGER = "can't be a field manager: up to 128 printable characters, and not kubectl-reconcile-…, which is for modules"
REFUSED = {
    "two things to follow": (
        {"source": {"git": {"url": URL, "branch": "main", "tag": "v1"}}},
        "spec.source.git",
        "branch and tag are both set; keep one",
    ),
    "a source without an address": ({"source": {"git": {"branch": "main"}}}, "spec.source.git.url", "is required"),
    "an interval that is none": (
        {"source": {"git": {"url": URL, "interval": "soon"}}},
        "spec.source.git.interval",
        "'soon' isn't a duration; write it as 30s, 5m or 1h30m",
    ),
    "keys nowhere": (
        {"source": {"git": {"url": URL, "verify": {}}}},
        "spec.source.git.verify",
        "secretRef and configMapRef exclude each other; give one, which holds the keys",
    ),
    "a mode of verifying that there isn't": (
        {"source": {"git": {"url": URL, "verify": {"mode": "HEAD", "secretRef": {"name": "keys"}}}}},
        "spec.source.git.verify.mode",
        "'HEAD' isn't one of Commit, Tag, CommitOrTag, CommitAndTag",
    ),
    "a timeout that is none": (
        {"timeout": "5"},
        "spec.timeout",
        "'5' isn't a duration; write it as 30s, 5m or 1h30m",
    ),
    "a policy that there isn't": (
        {"conflicts": "Win"},
        "spec.conflicts",
        "'Win' isn't one of Override, Yield, Fail",
    ),
    "a word on drift that there isn't": ({"drift": "Shrug"}, "spec.drift", "'Shrug' isn't one of Correct, Report, Ask"),
    "a word on deletion that there isn't": (
        {"deletionPolicy": "Keep"},
        "spec.deletionPolicy",
        "'Keep' isn't one of Prune, Orphan",
    ),
    "an account of another namespace": (
        {"serviceAccountName": "kube-system:root"},
        "spec.serviceAccountName",
        "'kube-system:root' isn't a name of a ServiceAccount",
    ),
    "fewer deletions than none": (
        {"maxDeletes": -1},
        "spec.maxDeletes",
        "-1 is neither a number nor a percentage such as 20%",
    ),
    "a share that is none": (
        {"maxDeletes": "few"},
        "spec.maxDeletes",
        "'few' is neither a number nor a percentage such as 20%",
    ),
    "a manager with too long a name": ({"fieldManager": "m" * 129}, "spec.fieldManager", f"{'m' * 129!r} {MANAGER}"),
    "a manager with a line break": ({"fieldManager": "a\nb"}, "spec.fieldManager", f"'a\\nb' {MANAGER}"),
    "a manager of a module": (
        {"fieldManager": "kubectl-reconcile-cache"},
        "spec.fieldManager",
        f"'kubectl-reconcile-cache' {MANAGER}",
    ),
}


@pytest.mark.parametrize(("spec", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_is(spec, field, message):
    with pytest.raises(SyncSpecError) as refused:
        sync(**spec)
    assert (refused.value.field, refused.value.message) == (field, message)
    assert str(refused.value) == f"{field}: {message}"


CHART = {"repository": "https://charts.example.com", "name": "web", "version": "1.2.3"}


def rendered(render=None, **helm):
    return sync(source={"git": {"url": URL}, **({"render": render} if render else {}), "helm": helm}).source


RENDERS = {
    "as the files say": (None, {}, Render.AUTO),
    "as it says": ("Kustomize", {}, Render.KUSTOMIZE),
    "by Helm, if it names a chart": (None, {"chart": CHART}, Render.HELM),
    "by Helm, if it names a chart and says so": ("Helm", {"chart": CHART}, Render.HELM),
}


@pytest.mark.parametrize(("render", "helm", "way"), RENDERS.values(), ids=RENDERS)
def test_it_is_rendered(render, helm, way):
    assert rendered(render, **helm).render is way


def test_what_it_says_of_its_chart_is_read():
    assert rendered(releaseName="web").helm.release_name == "web"
    assert rendered().helm == NO_HELM
    assert rendered(chart=CHART).chart.version == "1.2.3"


TOLD = {
    "nothing": {},
    "a chart": {"chart": {**CHART, "digest": f"sha256:{'0a' * 32}"}},
    "a chart, and what it is rendered with": {"chart": CHART, "values": {"size": 1}, "lookup": "Cluster"},
}


@pytest.mark.parametrize("wire", TOLD.values(), ids=TOLD)
def test_what_it_tells_of_charts_is_what_was_read(wire):
    assert rendered(**wire).told() == wire


UNRENDERED = {
    "a chart that isn't rendered by Helm": (
        {"render": "Kustomize", "helm": {"chart": CHART}}, "spec.source.render",
        "Kustomize and spec.source.chart exclude each other; keep one",
    ),
    "a way that there isn't": ({"render": "Jsonnet"}, "spec.source.render", None),
    "a chart without a version": ({"helm": {"chart": {**CHART, "version": ""}}}, "spec.source.helm.chart.version", "is required"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "field", "message"), UNRENDERED.values(), ids=UNRENDERED)
def test_it_is_not_rendered(source, field, message):
    with pytest.raises(SyncSpecError) as refused:
        sync(source={"git": {"url": URL}, **source})
    assert refused.value.field == field
    assert refused.value.message == (message or f"'Jsonnet' isn't one of {', '.join(Render)}")


PLACED = {
    "changes to ignore": (
        {"ignore": [{"path": "/spec/size", "from": "Git"}]},
        "spec.ignore[0].from",
        "'Git' isn't one of Always, Drift",
    ),
    "labels of objects to ignore": (
        {"ignore": [{"path": "/spec/size", "target": {"labelSelector": "a in"}}]},
        "spec.ignore[0].target.labelSelector",
        "not a label selector",
    ),
    "a path to ignore": (
        {"ignore": [{"path": "/spec/size"}, {"path": ".spec["}]},
        "spec.ignore[1].path",
        "write",
    ),
    "a rule of health": (
        {"health": {"rules": [{"apiVersion": "v1", "kind": "Pod", "current": "1 +"}]}},
        "spec.health.rules[0].current",
        "isn't CEL: line 1, column 4",
    ),
    "whom to take over": ({"takeOver": ["*"]}, "spec.takeOver", "names no field manager"),
    "a field of another type": ({"source": "here"}, "spec", "of another type than its CRD asks for"),
}


@pytest.mark.parametrize(("spec", "field", "words"), PLACED.values(), ids=PLACED)
def test_what_is_wrong_is_told_where_it_stands(spec, field, words):
    with pytest.raises(SyncSpecError) as refused:
        sync(**spec)
    assert refused.value.field == field
    assert words in refused.value.message


DURATIONS = {"90s": 90.0, "1.5s": 1.5, "2m": 120.0, "1h": 3600.0, "1h30m": 5400.0, "1h2m3s": 3723.0}


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items(), ids=DURATIONS)
def test_a_duration(text, seconds):
    assert duration_s(text) == seconds


def test_a_repository_is_asked_no_sooner_than_whoever_runs_the_daemon_allows():
    eager, above = sync(source={"git": {"url": URL, "interval": "5s"}}), sync()
    assert eager.asked_no_sooner_than(60.0).source.interval_s == 60.0
    assert eager.asked_no_sooner_than(1.0) is eager
    assert above.asked_no_sooner_than(60.0) is above


@pytest.mark.parametrize("text", ["", "5", "1d", "m", "-1m", "1m1h", "1.5h"])
def test_no_duration_is(text):
    with pytest.raises(SyncSpecError, match="isn't a duration"):
        duration_s(text)


@pytest.mark.parametrize("text", ["0s", "0h0m"])
def test_a_duration_of_zero_can_not_be_kept(text):
    with pytest.raises(SyncSpecError, match="a duration can't be zero"):
        duration_s(text)


LIMITS = {
    "ten of a few": (DeleteLimit(), 10, 12, True),
    "not eleven of a few": (DeleteLimit(), 11, 12, False),
    "a fifth of many": (DeleteLimit(), 20, 100, True),
    "not more than a fifth of many": (DeleteLimit(), 21, 100, False),
    "as many as it says": (DeleteLimit(number=3), 3, 100, True),
    "no more than it says": (DeleteLimit(number=3), 4, 100, False),
    "no more than none": (DeleteLimit(number=0), 1, 100, False),
    "the share that it says": (DeleteLimit(percent=50), 5, 10, True),
    "no more than the share that it says": (DeleteLimit(percent=50), 6, 10, False),
}


@pytest.mark.parametrize(("limit", "deletes", "members", "allowed"), LIMITS.values(), ids=LIMITS)
def test_one_sync_may_delete(limit, deletes, members, allowed):
    assert limit.allows(deletes, members) is allowed


def test_an_expression_over_another_sync_is_asked_of_it():
    (found,) = sync(dependsOn=[{"name": "base", "readyExpr": "self.status.summary.total > 3"}]).depends_on
    assert found.lack({"kind": "Sync", "status": {"summary": {"total": 4}}}) == ""
    assert (
        found.lack({"kind": "Sync", "status": {"summary": {"total": 3}}}) == "not yet 'self.status.summary.total > 3'"
    )
    assert found.lack({"kind": "Sync"}) == "not yet 'self.status.summary.total > 3'"


@pytest.mark.parametrize(
    "text", ["self.status.", 'self.x.all(a, self.x.all(b, self.x.all(c, self.x.all(d, d == "e"))))']
)
def test_an_expression_over_another_sync_that_is_no_cel_or_takes_too_long_is_refused(text):
    with pytest.raises(SyncSpecError) as refused:
        sync(dependsOn=[{"name": "base"}, {"name": "net", "readyExpr": text}])
    assert refused.value.field == "spec.dependsOn[1].readyExpr"


def test_being_ready_takes_health_unless_the_sync_says_otherwise():
    assert sync().waits_for_health
    assert not sync(health={"wait": False}).waits_for_health
