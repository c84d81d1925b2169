"""What the server's Go code fills in: known defaults are no change to show, and everything else stays one."""

import pytest
from strategies import entry, living

from kubectl_reconcile.core.objects import FIELD_MANAGER, GroupVersionKind
from kubectl_reconcile.core.ssa.go_defaults.completion import completed
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.merge import Verdict, three_way
from kubectl_reconcile.core.ssa.schema import schemas_of_document
from kubectl_reconcile.core.ssa.typed import fields_of

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
PLACE = "io.k8s.api.core.v1."


def ref(name):
    return {"allOf": [{"$ref": f"#/components/schemas/{PLACE}{name}"}]}


def struct(**properties):
    return {"type": "object", "properties": properties}


def items(of, **more):
    return {"type": "array", "items": of, **more}


STRINGS = {"type": "object", "additionalProperties": TEXT}
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
DEFINITIONS = {
    "Spec": {
        **struct(
            apiVersion=TEXT,
            kind=TEXT,
            metadata=struct(name=TEXT, resourceVersion=TEXT),
            probe=ref("Probe"),
            strategy=ref("DeploymentStrategy"),
            service=ref("ServiceSpec"),
            containers=items(ref("Container"), **KEYED),
            sources=items(ref("ObjectFieldSelector"), **{"x-kubernetes-list-type": "atomic"}),
            unknown=ref("Nameless"),
            behavior=ref("HorizontalPodAutoscalerBehavior"),
            job=ref("JobSpec"),
            driver=ref("CSIDriverSpec"),
            image=ref("ImageVolumeSource"),
            device=ref("ExactDeviceRequest"),
            replicas=ref("ReplicaSetSpec"),
        ),
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Spec"}],
    },
    "PodSpec": struct(
        tolerations=items({"type": "object"}, **{"x-kubernetes-list-type": "atomic"}),
        containers=items(ref("Container"), **KEYED),
        priority=NUMBER,
        dnsPolicy=TEXT,
    ),
    "PodTemplateSpec": struct(spec=ref("PodSpec")),
    "ResourceRequirements": struct(limits=STRINGS, requests=STRINGS),
    "Probe": struct(timeoutSeconds=NUMBER, initialDelaySeconds=NUMBER, periodSeconds=NUMBER),
    "DeploymentStrategy": struct(type=TEXT, rollingUpdate=ref("RollingUpdateDeployment")),
    "RollingUpdateDeployment": struct(maxSurge=TEXT, maxUnavailable=TEXT),
    "ServiceSpec": struct(type=TEXT, externalTrafficPolicy=TEXT, ports=items(ref("ServicePort"))),
    "ServicePort": struct(port=NUMBER, targetPort=NUMBER, nodePort=NUMBER),
    "Container": struct(
        name=TEXT,
        image=TEXT,
        imagePullPolicy=TEXT,
        tty={"type": "boolean"},
        securityContext=ref("SecurityContext"),
        resources=ref("ResourceRequirements"),
    ),
    "SecurityContext": struct(privileged={"type": "boolean"}),
    "ObjectFieldSelector": struct(fieldPath=TEXT, apiVersion=TEXT),
    "HorizontalPodAutoscalerBehavior": struct(scaleUp=ref("HPAScalingRules"), scaleDown=ref("HPAScalingRules")),
    "HPAScalingRules": struct(
        policies=items({"type": "object"}, **{"x-kubernetes-list-type": "atomic"}),
        selectPolicy=TEXT,
        stabilizationWindowSeconds=NUMBER,
    ),
    "JobSpec": struct(backoffLimit=NUMBER, backoffLimitPerIndex=NUMBER, podReplacementPolicy=TEXT, podFailurePolicy={}),
    "CSIDriverSpec": struct(attachRequired={"type": "boolean"}, volumeLifecycleModes=items(TEXT)),
    "ImageVolumeSource": struct(reference=TEXT, pullPolicy=TEXT),
    "ExactDeviceRequest": struct(allocationMode=TEXT, count=NUMBER),
    "ReplicaSetSpec": struct(replicas=NUMBER),
    "Nameless": struct(timeoutSeconds=NUMBER),
}
SCHEMA = schemas_of_document({"components": {"schemas": {PLACE + name: spec for name, spec in DEFINITIONS.items()}}})[
    GroupVersionKind("", "v1", "Spec")
]
ROOT = SCHEMA.root


def tolerated(trouble):
    return {
        "key": f"node.kubernetes.io/{trouble}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


ALL_AT_ONCE = {"type": "Percent", "value": 100, "periodSeconds": 15}
SCALE_DOWN = {"selectPolicy": "Max", "policies": [ALL_AT_ONCE]}
SCALE_UP = {
    "selectPolicy": "Max",
    "stabilizationWindowSeconds": 0,
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, ALL_AT_ONCE],
}
ROLLING = {"maxSurge": "25%", "maxUnavailable": "25%"}
FILLED_IN = {
    "a field that is absent": ({"probe": {}}, {"probe": {"timeoutSeconds": 1}}),
    "a field at zero": ({"probe": {"timeoutSeconds": 0}}, {"probe": {"timeoutSeconds": 1}}),
    "a zero that isn't stored": ({"probe": {"initialDelaySeconds": 0}}, {"probe": {}}),
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
    "how an autoscaler scales, once it is told anything of it": (
        {"behavior": {}},
        {"behavior": {"scaleDown": SCALE_DOWN, "scaleUp": SCALE_UP}},
    ),
    "how often a Job is tried": (
        {"job": {}},
        {"job": {"backoffLimit": 6, "podReplacementPolicy": "TerminatingOrFailed"}},
    ),
    "how often one is tried that limits each index": (
        {"job": {"backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": []}}},
        {
            "job": {
                "backoffLimitPerIndex": 1,
                "podFailurePolicy": {"rules": []},
                "backoffLimit": 2147483647,
                "podReplacementPolicy": "Failed",
            }
        },
    ),
    "what a storage driver does": (
        {"driver": {}},
        {"driver": {"attachRequired": True, "volumeLifecycleModes": ["Persistent"]}},
    ),
    "when a volume's image is pulled": (
        {"image": {"reference": "a:1"}},
        {"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}},
    ),
    "how many devices are asked for": ({"device": {}}, {"device": {"allocationMode": "ExactCount", "count": 1}}),
}


@pytest.mark.parametrize(("wanted", "live"), FILLED_IN.values(), ids=FILLED_IN)
def test_what_live_has_by_default_is_filled_in(wanted, live):
    assert completed(wanted, live, ROOT) == live


LEFT = {
    "no replicas": ({"replicas": {"replicas": 0}}, {"replicas": {"replicas": 1}}),
    "nothing that may be missing": (
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": {**ROLLING, "maxUnavailable": 0}}},
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": ROLLING}},
    ),
    "no": ({"driver": {"attachRequired": False}}, {"driver": {"attachRequired": True}}),
    "not once": ({"job": {"backoffLimit": 0}}, {"job": {"backoffLimit": 6}}),
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
    "the limit of a Job, where each index has its own": (
        {"job": {"backoffLimitPerIndex": 1}},
        {"job": {"backoffLimitPerIndex": 1, "backoffLimit": 6}},
    ),
    "a number of devices, where all are asked for": (
        {"device": {"allocationMode": "All"}},
        {"device": {"allocationMode": "All", "count": 1}},
    ),
    "a field of that name elsewhere": ({"unknown": {}}, {"unknown": {"timeoutSeconds": 1}}),
}


@pytest.mark.parametrize(("wanted", "live"), LEFT.values(), ids=LEFT)
def test_everything_else_stays_as_it_is_wanted(wanted, live):
    assert completed(wanted, live, ROOT) == wanted


def manifest(**content):
    return {"apiVersion": "v1", "kind": "Spec", "metadata": {"name": "web"}, **content}


def test_a_known_default_is_not_shown_beside_what_does_change():
    applied = manifest(probe={"timeoutSeconds": 0}, service={"type": "ClusterIP"})
    ours = entry(FIELD_MANAGER, fields_of(applied, ROOT) - STRIPPED, api_version="v1")
    live = living(manifest(probe={"timeoutSeconds": 1}, service={"type": "ClusterIP"}), ours)
    desired = manifest(probe={"timeoutSeconds": 0}, service={"type": "NodePort"})
    result = three_way(desired=desired, live=live, schema=SCHEMA)
    assert result.verdict is Verdict.DIFFERENT
    assert [(str(change.path), change.before, change.after) for change in result.changes] == [
        (".service.type", "ClusterIP", "NodePort")
    ]


def test_a_zero_that_may_have_come_to_another_value_is_shown():
    applied = manifest(probe={"timeoutSeconds": 0}, service={"type": "ClusterIP"})
    ours = entry(FIELD_MANAGER, fields_of(applied, ROOT) - STRIPPED, api_version="v1")
    live = living(manifest(probe={"timeoutSeconds": 5}, service={"type": "ClusterIP"}), ours)
    result = three_way(desired=applied, live=live, schema=SCHEMA)
    assert (result.verdict, [str(change.path) for change in result.changes]) == (
        Verdict.UNSURE,
        [".probe.timeoutSeconds"],
    )


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


# --- what depends on the kind that it is in ---------------------------------------------------------------------


def root_of(kind, spec):
    """Return the type of a kind with this *spec*."""
    described = {
        **struct(metadata=struct(labels=STRINGS, annotations=STRINGS), spec=spec),
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": kind}],
    }
    schemas = {PLACE + name: definition for name, definition in {**DEFINITIONS, kind: described}.items()}
    return schemas_of_document({"components": {"schemas": schemas}})[GroupVersionKind("", "v1", kind)].root


POD = ("Pod", ref("PodSpec"), lambda spec: {"spec": spec})
DEPLOYMENT = (
    "Deployment",
    struct(template=ref("PodTemplateSpec")),
    lambda spec: {"spec": {"template": {"spec": spec}}},
)
SCALER = (
    "HorizontalPodAutoscaler",
    struct(behavior=ref("HorizontalPodAutoscalerBehavior")),
    lambda behavior: {"spec": {"behavior": behavior}},
)
NOT_READY, UNREACHABLE = tolerated("not-ready"), tolerated("unreachable")
MINE = {"key": "mine", "operator": "Exists"}
NEVER_READY = {**NOT_READY, "tolerationSeconds": 5}


def resources(**of):
    return {"containers": [{"name": "a", "image": "a:1", "resources": of}]}


IN_ITS_KIND = {
    "what admission has every pod tolerate": (POD, {}, {"tolerations": [NOT_READY, UNREACHABLE]}),
    "what it adds to what one tolerates": (
        POD,
        {"tolerations": [MINE]},
        {"tolerations": [MINE, NOT_READY, UNREACHABLE]},
    ),
    "what one tolerates for another time": (
        POD,
        {"tolerations": [NEVER_READY]},
        {"tolerations": [NEVER_READY, UNREACHABLE]},
    ),
    "the priority of a pod": (POD, {}, {"priority": 0}),
    "what a pod requests that is limited": (
        POD,
        resources(limits={"cpu": "1"}),
        resources(limits={"cpu": "1"}, requests={"cpu": "1"}),
    ),
    "what it requests of what it doesn't say": (
        POD,
        resources(limits={"cpu": "1", "memory": "1Mi"}, requests={"cpu": "500m"}),
        resources(limits={"cpu": "1", "memory": "1Mi"}, requests={"cpu": "500m", "memory": "1Mi"}),
    ),
    "the defaults of any pod": (DEPLOYMENT, {}, {"dnsPolicy": "ClusterFirst"}),
    "how an autoscaler scales in a direction that it is told something of": (
        SCALER,
        {"scaleDown": {}, "scaleUp": {"stabilizationWindowSeconds": 30}},
        {"scaleDown": SCALE_DOWN, "scaleUp": {**SCALE_UP, "stabilizationWindowSeconds": 30}},
    ),
}


@pytest.mark.parametrize(("where", "wanted", "live"), IN_ITS_KIND.values(), ids=IN_ITS_KIND)
def test_in_its_kind_it_is_filled_in(where, wanted, live):
    kind, spec, put = where
    assert completed(put(wanted), put(live), root_of(kind, spec)) == put(live)


IN_ANOTHER = {
    "what a template tolerates": (DEPLOYMENT, {}, {"tolerations": [NOT_READY, UNREACHABLE]}),
    "the priority of a template": (DEPLOYMENT, {}, {"priority": 0}),
    "what a template requests": (
        DEPLOYMENT,
        resources(limits={"cpu": "1"}),
        resources(limits={"cpu": "1"}, requests={"cpu": "1"}),
    ),
    "tolerations in another order": (POD, {"tolerations": [MINE]}, {"tolerations": [NOT_READY, UNREACHABLE, MINE]}),
    "tolerations of somebody else": (POD, {}, {"tolerations": [MINE, NOT_READY, UNREACHABLE]}),
    "what somebody else has a pod request": (
        POD,
        resources(limits={"cpu": "1"}),
        resources(limits={"cpu": "1"}, requests={"cpu": "500m"}),
    ),
    "how an autoscaler scales in the other direction": (
        SCALER,
        {"scaleUp": {}},
        {"scaleUp": {"policies": [ALL_AT_ONCE]}},
    ),
}


@pytest.mark.parametrize(("where", "wanted", "live"), IN_ANOTHER.values(), ids=IN_ANOTHER)
def test_elsewhere_it_stays_as_it_is_wanted(where, wanted, live):
    kind, spec, put = where
    assert completed(put(wanted), put(live), root_of(kind, spec)) == put(wanted)


# --- what the server alone writes ---------------------------------------------------------------------------

FINALIZED = struct(finalizers=items(TEXT))
COUNT, NAME = "deprecated.daemonset.template.generation", "kubernetes.io/metadata.name"
ITS_OWN = {
    "the count of a DaemonSet's templates": (
        "DaemonSet",
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"annotations": {COUNT: "3", "a": "b"}}},
    ),
    "that count, where no annotation is asked for": (
        "DaemonSet",
        {"metadata": {"name": "x"}},
        {"metadata": {"name": "x", "annotations": {COUNT: "3"}}},
    ),
    "that count, whatever it is asked to be": (
        "DaemonSet",
        {"metadata": {"annotations": {COUNT: "7"}}},
        {"metadata": {"annotations": {COUNT: "3"}}},
    ),
    "the name that a namespace is labelled with, and what holds it": (
        "Namespace",
        {},
        {"metadata": {"labels": {NAME: "x"}}, "spec": {"finalizers": ["kubernetes"]}},
    ),
}


@pytest.mark.parametrize(("kind", "wanted", "live"), ITS_OWN.values(), ids=ITS_OWN)
def test_stays_as_it_is_live(kind, wanted, live):
    assert completed(wanted, live, root_of(kind, FINALIZED)) == live


ASKED = {
    "another annotation": ("DaemonSet", {"metadata": {}}, {"metadata": {"annotations": {"a": "b"}}}),
    "that annotation of another kind": ("Deployment", {"metadata": {}}, {"metadata": {"annotations": {COUNT: "3"}}}),
    "metadata of an object that has none": ("Namespace", {}, {"metadata": None}),
}


@pytest.mark.parametrize(("kind", "wanted", "live"), ASKED.values(), ids=ASKED)
def test_stays_as_it_is_asked_for(kind, wanted, live):
    assert completed(wanted, live, root_of(kind, FINALIZED)) == wanted
