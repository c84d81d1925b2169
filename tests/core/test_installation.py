"""What ``kubectl reconcile install`` puts into a cluster, besides the CRDs: it fits together, and asks for no more than it needs."""

import pytest

from kubectl_reconcile.core.installation import NAMESPACE, OBSOLETE, objects
from kubectl_reconcile.core.module.api import Outcome, module
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.running.memory import all_bytes

IMAGE = "registry.example.com/kubectl-reconcile:1.2.3"
LABELS = {"app.kubernetes.io/name": "kubectl-reconcile", "app.kubernetes.io/component": "daemon"}


POLICY, MARK = "reconcile-checkup-rights", "Setting it takes the right to create pods."


def a_module(name, kind):
    return module(api="example.com/v1", kind=kind, owns=["v1/Service"], name=name)(lambda *_: Outcome())


def installed(namespace=NAMESPACE, modules=(), **options):
    return {(each["kind"], each["metadata"]["name"]): each for each in objects(namespace, IMAGE, modules, **options)}


def pod_of(installation):
    return installation["Deployment", "kubectl-reconcile"]["spec"]["template"]


@pytest.fixture
def container():
    (found,) = pod_of(installed())["spec"]["containers"]
    return found


def test_the_daemon_has_a_namespace_an_account_rights_a_deployment_and_a_service():
    assert [(each["apiVersion"], *key) for key, each in installed().items()] == [
        ("v1", "Namespace", "reconcile-system"),
        ("v1", "ServiceAccount", "kubectl-reconcile"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "kubectl-reconcile-daemon"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "kubectl-reconcile-daemon"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "kubectl-reconcile-watch"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "kubectl-reconcile-watch"),
        ("rbac.authorization.k8s.io/v1", "Role", "kubectl-reconcile-daemon"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", "kubectl-reconcile-daemon"),
        ("rbac.authorization.k8s.io/v1", "Role", "kubectl-reconcile-leases"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", "kubectl-reconcile-leases"),
        ("apps/v1", "Deployment", "kubectl-reconcile"),
        ("v1", "Service", "kubectl-reconcile"),
        ("networking.k8s.io/v1", "NetworkPolicy", "kubectl-reconcile-hooks"),
        ("networking.k8s.io/v1", "NetworkPolicy", "kubectl-reconcile-http"),
    ]


def test_who_may_write_custom_resources_that_run_pods_is_said_where_the_crds_say_that_some_do():
    described = {"properties": {"spec": {"properties": {"job": {"description": f"A pod. {MARK}"}}}}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": described}}
    names = {"kind": "Checkup", "plural": "checkups", "singular": "checkup"}
    crd = {"spec": {"group": "checks.reconcile.dev", "names": names, "versions": [version]}}
    policy = {("ValidatingAdmissionPolicy", POLICY), ("ValidatingAdmissionPolicyBinding", POLICY)}
    found = installed(crds=[crd])
    assert policy < found.keys()
    assert found["ValidatingAdmissionPolicyBinding", POLICY]["spec"]["policyName"] == POLICY
    assert policy.isdisjoint(installed(modules=[a_module("database", "Database")]))


@pytest.mark.parametrize("namespace", ["reconcile-system", "elsewhere"])
def test_all_of_it_is_where_it_is_asked_to_be_and_labelled(namespace):
    for (kind, _), each in installed(namespace).items():
        where = {} if kind.startswith(("Namespace", "Cluster")) else {"namespace": namespace}
        name = namespace if kind == "Namespace" else each["metadata"]["name"]
        labels = {name: value for name, value in each["metadata"]["labels"].items() if "pod-security" not in name}
        assert {**each["metadata"], "labels": labels} == {"name": name, "labels": LABELS, **where}


def test_the_page_is_served_where_it_is_asked_for_and_reached_from_labelled_namespaces():
    plain, found = installed(), installed(page_urls=["https://sync.example.com"])
    assert found.keys() - plain.keys() == {
        ("Service", "kubectl-reconcile-ui"),
        ("NetworkPolicy", "kubectl-reconcile-ui"),
    }
    (container,) = pod_of(found)["spec"]["containers"]
    assert container["args"][-2:] == ["--ui=:8082", "--ui-url=https://sync.example.com"]
    service = found["Service", "kubectl-reconcile-ui"]["spec"]
    assert service["selector"] == pod_of(found)["metadata"]["labels"]
    assert [port["targetPort"] for port in service["ports"]] == [8082]
    assert service["sessionAffinity"] == "ClientIP"  # a replica knows those who have signed in with it
    (rule,) = found["NetworkPolicy", "kubectl-reconcile-ui"]["spec"]["ingress"]
    assert rule["ports"] == [{"port": 8082}]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"reconcile.dev/may-reach-page": "true"}}}]
    assert not any("--ui" in flag for flag in pod_of(plain)["spec"]["containers"][0]["args"])


SECURED = {"reconcile-system": {"enforce", "audit", "warn"}, "elsewhere": {"audit", "warn"}}


@pytest.mark.parametrize(("namespace", "modes"), SECURED.items(), ids=SECURED)
def test_pods_that_could_do_harm_are_refused_in_our_namespace_and_told_of_in_others(namespace, modes):
    labels = installed(namespace)["Namespace", namespace]["metadata"]["labels"]
    found = {name.partition("/")[2]: value for name, value in labels.items() if name.startswith("pod-security")}
    assert found == dict.fromkeys(modes, "restricted")


ACCOUNT = {"kind": "ServiceAccount", "name": "kubectl-reconcile", "namespace": "elsewhere"}


def test_each_account_has_its_own_roles_and_everybody_sees_the_leases():
    found = installed("elsewhere", modules=[a_module("ark", "Ark")])
    bindings = {(kind, name): each for (kind, name), each in found.items() if kind.endswith("Binding")}
    of_module = {**ACCOUNT, "name": "kubectl-reconcile-module-ark"}
    everybody = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}
    assert {key: each["subjects"] for key, each in bindings.items()} == {
        ("ClusterRoleBinding", "kubectl-reconcile-daemon"): [ACCOUNT],
        ("ClusterRoleBinding", "kubectl-reconcile-watch"): [ACCOUNT],
        ("RoleBinding", "kubectl-reconcile-daemon"): [ACCOUNT],
        ("RoleBinding", "kubectl-reconcile-leases"): [everybody],
        ("ClusterRoleBinding", "kubectl-reconcile-module-ark"): [of_module],
    }
    for (kind, name), each in bindings.items():
        role = kind.removesuffix("Binding")
        assert each["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name}
        assert (role, name) in found


def test_what_the_daemon_watches_for_all_syncs_is_what_clusterroles_with_the_label_add_up_to():
    role = installed()["ClusterRole", "kubectl-reconcile-watch"]
    assert role["aggregationRule"] == {
        "clusterRoleSelectors": [{"matchLabels": {"reconcile.dev/aggregate-to-watch": "true"}}]
    }
    assert "rules" not in role


def test_what_earlier_versions_installed_for_the_daemon_to_write_members_is_obsolete():
    assert [(each["kind"], each["metadata"]["name"]) for each in OBSOLETE] == [
        ("ClusterRole", "kubectl-reconcile-members"),
        ("ClusterRoleBinding", "kubectl-reconcile-members"),
    ]
    assert not {name for _, name in installed()} & {each["metadata"]["name"] for each in OBSOLETE}


@pytest.mark.parametrize("replicas", [1, 3])
def test_as_many_replicas_run_as_asked_for(replicas):
    assert installed(replicas=replicas)["Deployment", "kubectl-reconcile"]["spec"]["replicas"] == replicas


def test_one_replica_runs_unless_told_otherwise():
    assert installed()["Deployment", "kubectl-reconcile"]["spec"]["replicas"] == 1


def test_deployment_and_service_find_their_pods():
    found = installed()
    assert pod_of(found)["metadata"] == {"labels": LABELS}
    assert found["Deployment", "kubectl-reconcile"]["spec"]["selector"] == {"matchLabels": LABELS}
    assert found["Service", "kubectl-reconcile"]["spec"] == {
        "selector": LABELS,
        "ports": [
            {"name": "hooks", "port": 80, "targetPort": "hooks"},
            {"name": "http", "port": 8080, "targetPort": "http"},
        ],
    }


@pytest.mark.parametrize(("port", "label"), [("hooks", "may-tell-of-pushes"), ("http", "may-scrape")])
def test_each_port_is_reached_from_namespaces_that_are_labelled_for_it_alone(port, label, container):
    spec = installed()["NetworkPolicy", f"kubectl-reconcile-{port}"]["spec"]
    assert spec["podSelector"] == {"matchLabels": LABELS}
    [rule] = spec["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {f"reconcile.dev/{label}": "true"}}}]
    assert rule["ports"] == [{"port": port}]
    assert port in {each["name"] for each in container["ports"]}


def test_the_daemon_runs_the_image_as_its_account_and_keeps_leases_in_its_namespace():
    pod = pod_of(installed("elsewhere"))["spec"]
    (container,) = pod["containers"]
    assert {"name": "KUBECTL_RECONCILE_NAMESPACE", "value": "elsewhere"} in container["env"], (
        "where the page looks for it"
    )
    assert (container["name"], container["image"], pod["serviceAccountName"]) == ("daemon", IMAGE, "kubectl-reconcile")
    assert container["args"] == [
        "daemon",
        "--listen=:8080",
        "--listen-hooks=:8081",
        "--log-format=json",
        "--lease-namespace=elsewhere",
        "--git-max-memory=512",
        "--module-accounts",
    ]


def test_it_is_restarted_when_it_hangs_and_left_out_of_the_service_while_it_is_not_ready(container):
    assert container["livenessProbe"] == {
        "httpGet": {"path": "/healthz", "port": "http"},
        "failureThreshold": 6,
        "periodSeconds": 10,
        "timeoutSeconds": 5,
    }
    assert container["readinessProbe"] == {
        "httpGet": {"path": "/readyz", "port": "http"},
        "periodSeconds": 10,
        "timeoutSeconds": 5,
    }
    assert container["ports"] == [{"name": "http", "containerPort": 8080}, {"name": "hooks", "containerPort": 8081}]


def test_it_fits_the_restricted_pod_security_standard(container):
    pod = pod_of(installed())["spec"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_it_writes_to_volumes_of_its_own_alone(container):
    pod = pod_of(installed())["spec"]
    sizes = {"cache": "20Gi", "tmp": "2Gi"}  # so that none can fill its node
    assert pod["volumes"] == [{"name": name, "emptyDir": {"sizeLimit": size}} for name, size in sizes.items()]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"cache": "/cache", "tmp": "/tmp"}  # noqa: S108 - a mount of its own
    environment = {each["name"]: each["value"] for each in container["env"]}
    home = {"KUBECTL_RECONCILE_NAMESPACE": "reconcile-system"}
    assert environment == {"XDG_CACHE_HOME": "/cache", "HOME": "/cache", "PYTHONSAFEPATH": "1", **home}


def test_it_has_time_to_stop_and_bounded_memory(container):
    assert pod_of(installed())["spec"]["terminationGracePeriodSeconds"] == 30
    assert container["resources"] == {
        "requests": {"cpu": "50m", "memory": "192Mi"},
        "limits": {"memory": "1Gi"},
    }


def test_what_fetches_and_renders_leaves_the_daemon_a_quarter_of_the_container(container):
    [most] = [int(each.partition("=")[2]) for each in container["args"] if each.startswith("--git-max-memory=")]
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert all_bytes(GitLimits(memory_bytes=most * MEBIBYTE)) <= 768 * MEBIBYTE
