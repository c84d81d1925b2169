"""What the server's Go code fills in: known defaults are no change to show, and everything else stays one."""

import pytest

from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.ssa.defaulting import completed
from kubectl_reconcile.core.ssa.schema import schemas_of_document

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
PLACE = "io.k8s.api.core.v1."


def ref(name):
    return {"allOf": [{"$ref": f"#/components/schemas/{PLACE}{name}"}]}


def struct(**properties):
    return {"type": "object", "properties": properties}


def items(of, **more):
    return {"type": "array", "items": of, **more}


KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
DEFINITIONS = {
    "Spec": {
        **struct(
            probe=ref("Probe"),
            pod=ref("PodSpec"),
            strategy=ref("DeploymentStrategy"),
            service=ref("ServiceSpec"),
            containers=items(ref("Container"), **KEYED),
            sources=items(ref("ObjectFieldSelector"), **{"x-kubernetes-list-type": "atomic"}),
            unknown=ref("Nameless"),
        ),
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Spec"}],
    },
    "PodSpec": struct(tolerations=items({"type": "object"})),
    "Probe": struct(timeoutSeconds=NUMBER, initialDelaySeconds=NUMBER, periodSeconds=NUMBER),
    "DeploymentStrategy": struct(type=TEXT, rollingUpdate=ref("RollingUpdateDeployment")),
    "RollingUpdateDeployment": struct(maxSurge=TEXT, maxUnavailable=TEXT),
    "ServiceSpec": struct(type=TEXT, externalTrafficPolicy=TEXT, ports=items(ref("ServicePort"))),
    "ServicePort": struct(port=NUMBER, targetPort=NUMBER, nodePort=NUMBER),
    "Container": struct(
        name=TEXT, image=TEXT, imagePullPolicy=TEXT, tty={"type": "boolean"}, securityContext=ref("SecurityContext")
    ),
    "SecurityContext": struct(privileged={"type": "boolean"}),
    "ObjectFieldSelector": struct(fieldPath=TEXT, apiVersion=TEXT),
    "Nameless": struct(timeoutSeconds=NUMBER),
}
ROOT = schemas_of_document({"components": {"schemas": {PLACE + name: spec for name, spec in DEFINITIONS.items()}}})[
    GroupVersionKind("", "v1", "Spec")
].root


def tolerated(trouble):
    return {
        "key": f"node.kubernetes.io/{trouble}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


ROLLING = {"maxSurge": "25%", "maxUnavailable": "25%"}
FILLED_IN = {
    "a field that is absent": ({"probe": {}}, {"probe": {"timeoutSeconds": 1}}),
    "a field at zero": ({"probe": {"timeoutSeconds": 0}}, {"probe": {"timeoutSeconds": 1}}),
    "a zero that isn't stored": ({"probe": {"initialDelaySeconds": 0}}, {"probe": {}}),
    "what admission has every pod tolerate": (
        {"pod": {}},
        {"pod": {"tolerations": [tolerated("not-ready"), tolerated("unreachable")]}},
    ),
    "a struct in a struct": ({"strategy": {}}, {"strategy": {"type": "RollingUpdate", "rollingUpdate": ROLLING}}),
    "in the items of a list map": (
        {"containers": [{"name": "b", "image": "b:1"}, {"name": "a", "image": "a"}]},
        {
            "containers": [
                {"name": "b", "image": "b:1", "imagePullPolicy": "IfNotPresent"},
                {"name": "a", "image": "a", "imagePullPolicy": "Always"},
            ]
        },
    ),
    "in the items of an atomic list": (
        {"sources": [{"fieldPath": "x"}]},
        {"sources": [{"fieldPath": "x", "apiVersion": "v1"}]},
    ),
    "a port that another one gives": (
        {"service": {"ports": [{"port": 80}]}},
        {"service": {"ports": [{"port": 80, "targetPort": 80}]}},
    ),
}


@pytest.mark.parametrize(("wanted", "live"), FILLED_IN.values(), ids=FILLED_IN)
def test_what_live_has_by_default_is_filled_in(wanted, live):
    assert completed(wanted, live, ROOT) == live


LEFT = {
    "a value that is no default": ({"probe": {}}, {"probe": {"timeoutSeconds": 5}}),
    "a value that says something": ({"probe": {"timeoutSeconds": 5}}, {"probe": {"timeoutSeconds": 1}}),
    "a default that live hasn't": ({"probe": {}}, {"probe": {}}),
    "a false that a pointer keeps": (
        {"containers": [{"name": "a", "image": "a:1", "securityContext": {"privileged": False}}]},
        {"containers": [{"name": "a", "image": "a:1", "securityContext": {}}]},
    ),
    "details of a strategy that is another now": (
        {"strategy": {"type": "Recreate"}},
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": ROLLING}},
    ),
    "what another type of Service has": (
        {"service": {"type": "ClusterIP"}},
        {"service": {"type": "NodePort", "externalTrafficPolicy": "Cluster"}},
    ),
    "an item that is new": (
        {"containers": [{"name": "new", "image": "a:1"}]},
        {"containers": [{"name": "old", "image": "a:1", "imagePullPolicy": "IfNotPresent"}]},
    ),
    "atomic lists of other lengths": (
        {"sources": [{"fieldPath": "x"}]},
        {"sources": [{"fieldPath": "x", "apiVersion": "v1"}, {"fieldPath": "y", "apiVersion": "v1"}]},
    ),
    "a field of that name elsewhere": ({"unknown": {}}, {"unknown": {"timeoutSeconds": 1}}),
}


@pytest.mark.parametrize(("wanted", "live"), LEFT.values(), ids=LEFT)
def test_everything_else_stays_as_it_is_wanted(wanted, live):
    assert completed(wanted, live, ROOT) == wanted


JOB = schemas_of_document(
    {
        "components": {
            "schemas": {
                "io.k8s.api.batch.v1.Job": {
                    **struct(metadata={"type": "object"}, spec={"type": "object"}),
                    "x-kubernetes-group-version-kind": [{"group": "batch", "version": "v1", "kind": "Job"}],
                }
            }
        }
    }
)[GroupVersionKind("batch", "v1", "Job")].root
LABELS = {"app": "x", "job-name": "one"}


def job(labels, pods=None):
    metadata = {"name": "one", **({"labels": labels} if labels else {})}
    return {"metadata": metadata, "spec": {"template": {"metadata": {"labels": pods or {}}}}}


def test_a_job_without_labels_has_those_of_its_pods():
    assert completed(job({}), job(LABELS, LABELS), JOB)["metadata"]["labels"] == LABELS


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        (job({"a": "b"}), job(LABELS, LABELS)),
        (job({}), job(LABELS)),
        (job({}), {"metadata": {"labels": LABELS}, "spec": 1}),
    ],
    ids=["it has labels of its own", "its pods have others", "live is odd"],
)
def test_else_a_jobs_labels_are_its_own(wanted, live):
    assert completed(wanted, live, JOB)["metadata"] == wanted["metadata"]
