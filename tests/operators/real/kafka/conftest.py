"""One Kafka called kf for the tests of a module, and the programs that its brokers are."""

import json
import shutil

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.images.kafka_programs import KAFKA_VERSIONS
from tests.operators.real.kafka.cluster import Kf

ZONE = "topology.kubernetes.io/zone"
POLICY = "admissionregistration.k8s.io/v1"


@pytest.fixture(scope="session", autouse=True)
def _programs():
    """Brokers of these versions, where this machine can have them."""
    missing = [each for each in ("java", "mvn") if not shutil.which(each)]
    if missing:
        pytest.skip(f"there is no {' and no '.join(missing)} on PATH (Debian: apt-get install maven)")
    for version in KAFKA_VERSIONS:
        try:
            catalog.find(f"kafka:{version}")
        except ImageError:
            catalog.build(print, only=f"kafka:{version}")


@pytest.fixture(scope="module")
def zones(world):
    """Have each broker stand in a zone of its own, but for kf-3, which is in that of kf-0, as if their nodes did: the label comes to pods as they are made."""
    real, place = world.real, world.real.namespace
    name = f"zones-{place}"
    key = f'"/metadata/labels/" + jsonpatch.escapeKey("{ZONE}")'
    patch = f'[JSONPatch{{op: "add", path: {key}, value: "zone-" + object.metadata.name.replace("kf-3", "kf-0")}}]'
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": place}}
    spec = {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"namespaceSelector": here, "resourceRules": [pods]},
        "matchConditions": [{"name": "brokers", "expression": 'object.metadata.name.startsWith("kf-")'}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }  # fmt: skip
    whole = {"apiVersion": POLICY, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {"kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {"policyName": name}}
    real.kubectl.apply([whole, {"apiVersion": POLICY, **binding}])
    probe = {
        "metadata": {"name": "kf-x", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "system"}]},
    }

    def is_in_force():
        status, body = real.asked("POST", f"/api/v1/namespaces/{place}/pods?dryRun=All", probe)
        return status == 201 and ZONE in json.loads(body)["metadata"]["labels"]

    real.eventually(is_in_force, "pods get a zone")
    yield
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        real.kubectl("delete", kind, name)


@pytest.fixture(scope="module")
def kf(world) -> Kf:
    found = Kf(world.real, world.new_daemon().start())
    yield found
    found.end()
