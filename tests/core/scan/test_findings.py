"""What a scan finds in one object, check by check, whatever the object looks like."""

import copy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.scan.findings import CHECKS, POD_SECURITY, findings_of
from kubectl_reconcile.core.scan.pod_security import CONTROLS, Profile

SOUND = {
    "name": "web",
    "image": "nginx@sha256:" + "0" * 64,
    "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "1Gi"}},
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}


def workload(kind="Deployment", group="apps", place=("spec", "template"), **of_container):
    """A workload whose only container is sound but for *of_container*; None takes a field away."""
    container = {name: value for name, value in {**SOUND, **of_container}.items() if value is not None}
    tree = {"spec": {"containers": [container]}}
    for name in reversed(place):
        tree = {name: tree}
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, **tree}


def found(manifest, profile=Profile.RESTRICTED):
    return [(each.check, each.path) for each in findings_of(manifest, profile)]


IN_WEB = '.spec.template.spec.containers[name="web"]'


def test_in_a_sound_workload_nothing_is_found():
    assert found(workload()) == []


@pytest.mark.parametrize(
    ("kind", "group", "place"),
    [
        ("Pod", "", ()),
        ("Job", "batch", ("spec", "template")),
        ("CronJob", "batch", ("spec", "jobTemplate", "spec", "template")),
        ("StatefulSet", "apps", ("spec", "template")),
        ("ReplicationController", "", ("spec", "template")),
    ],
)
def test_a_pod_is_looked_at_where_its_kind_has_it(kind, group, place):
    privileged = {**SOUND["securityContext"], "privileged": True}
    [(check, path)] = found(workload(kind, group, place, securityContext=privileged))
    below = "".join(f".{name}" for name in place)
    assert (check, path) == (
        "pod-security/privileged",
        f'{below}.spec.containers[name="web"].securityContext.privileged',
    )


def test_other_kinds_have_nothing_to_look_at_even_if_they_look_alike():
    assert found(workload("Deployment", "example.com")) == []
    assert found({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"password": "x"}}) == []


@pytest.mark.parametrize(
    ("image", "restricted", "baseline"),
    [
        ("nginx", "image-version", "image-version"),
        ("nginx:latest", "image-version", "image-version"),
        ("registry:5000/nginx", "image-version", "image-version"),
        ("registry:5000/nginx:1.29", "image-digest", None),
        ("nginx:latest@sha256:" + "0" * 64, None, None),
    ],
)
def test_an_image_that_may_become_another_is_found(image, restricted, baseline):
    for profile, check in ((Profile.RESTRICTED, restricted), (Profile.BASELINE, baseline)):
        assert found(workload(image=image), profile) == ([(check, f"{IN_WEB}.image")] if check else [])


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [
        ("DB_PASSWORD", "hunter2", True),
        ("apiKey", "hunter2", True),
        ("STRIPE_SECRET", "hunter2", True),
        ("DB_PASSWORD_FILE", "/run/secrets/db", False),
        ("TOKEN_URL", "https://example.com", False),
        ("DB_PASSWORD", "", False),
        ("DB_PASSWORD", "$(OTHER)", False),
        ("LOG_LEVEL", "debug", False),
    ],
)
def test_a_password_in_the_open_is_found_and_not_repeated(name, value, is_one):
    findings = list(findings_of(workload(env=[{"name": name, "value": value}]), Profile.BASELINE))
    assert [each.check for each in findings] == ["secret-in-environment"] * is_one
    assert "hunter2" not in str(findings)


def test_a_password_of_a_secret_is_no_finding():
    value = {"secretKeyRef": {"name": "db", "key": "password"}}
    assert found(workload(env=[{"name": "DB_PASSWORD", "valueFrom": value}])) == []


def test_limits_and_probes_that_are_missing_are_found():
    assert found(workload(resources=None)) == [
        ("limits", f"{IN_WEB}.resources.limits.memory"),
        ("limits", f"{IN_WEB}.resources.requests.cpu"),
    ]
    assert found(workload(readinessProbe=None)) == [("probes", f"{IN_WEB}.readinessProbe")]
    assert found(workload("Job", "batch", readinessProbe=None)) == []  # it ends; nobody asks whether it serves


def rights(kind, **body):
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "all"}, **body}


def test_rights_that_are_too_wide_are_found_and_told_apart_by_what_they_are_about():
    narrow = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}
    wide = {"apiGroups": [""], "resources": ["*"], "verbs": ["*", "escalate"]}
    expected = [
        ("rights-wildcard", '.rules[apiGroups=[""],resources=["*"]].resources'),
        ("rights-wildcard", '.rules[apiGroups=[""],resources=["*"]].verbs'),
        ("rights-escalation", '.rules[apiGroups=[""],resources=["*"]].verbs'),
    ]
    for rules in ([wide], [narrow, wide]):  # a rule that comes before it makes no new finding of it
        assert found(rights("ClusterRole", rules=rules)) == expected


def test_who_is_bound_to_cluster_admin_is_found():
    to = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    bound = rights("RoleBinding", roleRef={**to, "name": "cluster-admin"})
    assert found(bound) == [("rights-escalation", ".roleRef.name")]
    assert found(rights("RoleBinding", roleRef={**to, "name": "view"})) == []


def test_where_a_word_belongs_anything_else_is_no_word_that_is_allowed():
    odd = workload()
    odd["spec"]["template"]["spec"]["securityContext"] = {
        "sysctls": [{"name": {"a": "b"}}], "seccompProfile": {"type": {"RuntimeDefault": "a"}},
    }  # fmt: skip
    at = ".spec.template.spec.securityContext"
    assert {path.partition("[")[0] for _, path in found(odd)} >= {f"{at}.sysctls", f"{at}.seccompProfile.type"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(max_size=3), below, max_size=2),
    max_leaves=5,
)


@given(at=st.integers(0, 10_000), odd=JSON, profile=st.sampled_from(Profile))
def test_an_object_of_any_shape_is_looked_at_and_stays_as_it_is(at, odd, profile):
    full = workload(
        env=[{"name": "TOKEN", "value": "x"}],
        ports=[{"containerPort": 1, "hostPort": 1}],
        lifecycle={"preStop": {"httpGet": {"host": "a"}}},
    )
    full["spec"]["template"]["spec"] |= {
        "volumes": [{"name": "a", "hostPath": {}}],
        "securityContext": {"sysctls": [{"name": "a"}]},
    }
    places = list(_places(full["spec"]))
    parent, key = places[at % len(places)]
    parent[key] = odd
    before = copy.deepcopy(full)
    for each in findings_of(full, profile):
        assert each.check.partition("/")[2] in {"", *CONTROLS[profile]}
        assert each.path.startswith(".spec.template")
    assert full == before


def _places(tree):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


@pytest.mark.parametrize("page", ["scan.md", "checkups.md"])
def test_the_documentation_names_each_check(page):
    text = (Path(__file__).parents[3] / "docs" / page).read_text()
    assert [each for each in CHECKS if not each.startswith(POD_SECURITY) and f"`{each}`" not in text] == []


def test_the_documentation_names_each_control_of_the_pod_security_standards():
    text = (Path(__file__).parents[3] / "docs" / "scan.md").read_text()
    assert [
        each for each in CHECKS if each.startswith(POD_SECURITY) and f"`{each.removeprefix(POD_SECURITY)}`" not in text
    ] == []
