"""Who may write custom resources, and neither create pods nor read Secrets, gets no pod of their image, and no Secret that they name.

Each entrusted field of each CRD is tried against the policies that are installed with the daemon.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

import pytest

from kubectl_reconcile.core.planning.rights.entrusted import entrusted_fields
from kubectl_reconcile.core.planning.rights.policy import policies
from kubectl_reconcile.engine.commands.install import crds
from tests.e2e.cluster import until_may
from tests.kubectl import KubectlError

DEFINITIONS = [located.manifest for located in crds()]
FIELDS = {(kind.kind, str(each)) for kind, fields in entrusted_fields(DEFINITIONS).items() for each in fields}
PLURALS = {each["spec"]["names"]["kind"]: each["metadata"]["name"] for each in DEFINITIONS}
VERSIONS = {
    each["spec"]["names"]["kind"]: f"{each['spec']['group']}/{each['spec']['versions'][0]['name']}"
    for each in DEFINITIONS
}

EVIL, JOB = (
    "evil.example.com/shell:1",
    {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:1.37"}]}}},
)
MINE = {"bucket": "backups", "credentialsSecret": "mine"}
THEIRS, CA = {**MINE, "credentialsSecret": "jewels"}, {**MINE, "caSecret": "jewels"}
CLAIM = {"persistentVolumeClaim": {"claimName": "theirs"}}
NEW = {"volumeClaimSpec": {"resources": {"requests": {"storage": "1Gi"}}}}


def static(**names):
    own = {"operatorSecret": "mine", "peerSecret": "mine", "serverSecret": "mine", **names}
    return {"TLS": {"static": {"operatorSecret": own.pop("operatorSecret"), "member": own}}}


PLAIN = {
    "Checkup": {"scan": {}},
    "EtcdBackup": {"etcdEndpoints": ["https://etcd.example.com:2379"], "clientSecret": "mine", "storage": NEW},
    "EtcdCluster": {"size": 1, "version": "3.6.16"},
    "EtcdRestore": {"clusterRef": {"name": "db"}, "backup": {"name": "nightly", "s3": MINE}},
    "Kafka": {
        "version": "4.3.1",
        "storage": {"size": "1Gi"},
        "listeners": [{"name": "clients", "tls": {"secretName": "mine"}}],
    },
    "Memcached": {"size": 1},
    "MyDatabase": {"version": 17, "storage": {"size": "1Gi"}, "tls": {"secretName": "mine"}},
    "ThreeTierApp": {tier: {"image": "example.com/tier:1"} for tier in ("frontend", "backend", "database")},
}
"""Specs that nobody need be asked for; a ThreeTierApp must have images, so the administrator has made those."""

BAD: dict[str, dict[str, dict[str, Any]]] = {
    "Checkup": {
        ".spec.job": {"scan": None, "job": JOB},
        ".spec.load.image": {"scan": None, "load": {"service": "web", "port": 80, "image": EVIL}},
    },
    "EtcdBackup": {
        ".spec.image": {"image": EVIL},
        ".spec.clientSecret": {"clientSecret": "jewels"},
        ".spec.storage.persistentVolumeClaim.claimName": {"storage": CLAIM},
        ".spec.storage.s3.credentialsSecret": {"storage": {"s3": THEIRS}},
        ".spec.storage.s3.caSecret": {"storage": {"s3": CA}},
        ".spec.pod.imagePullSecrets": {"pod": {"imagePullSecrets": [{"name": "jewels"}]}},
    },
    "EtcdCluster": {
        ".spec.backup.image": {"backup": {"s3": MINE, "image": EVIL}},
        ".spec.backup.claimName": {"backup": {"claimName": "theirs"}},
        ".spec.backup.s3.credentialsSecret": {"backup": {"s3": THEIRS}},
        ".spec.backup.s3.caSecret": {"backup": {"s3": CA}},
        ".spec.TLS.static.operatorSecret": static(operatorSecret="jewels"),
        ".spec.TLS.static.member.peerSecret": static(peerSecret="jewels"),
        ".spec.TLS.static.member.serverSecret": static(serverSecret="jewels"),
        ".spec.pod.env": {
            "pod": {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "jewels", "key": "k"}}}]}
        },
    },
    "EtcdRestore": {
        ".spec.image": {"image": EVIL},
        ".spec.backup.claimName": {"backup": {"name": "nightly", "claimName": "theirs"}},
        ".spec.backup.s3.credentialsSecret": {"backup": {"name": "nightly", "s3": THEIRS}},
        ".spec.backup.s3.caSecret": {"backup": {"name": "nightly", "s3": CA}},
        ".spec.pod.imagePullSecrets": {"pod": {"imagePullSecrets": [{"name": "jewels"}]}},
    },
    "Kafka": {
        ".spec.image": {"image": EVIL},
        ".spec.listeners[].tls.secretName": {"listeners": [{"name": "clients", "tls": {"secretName": "jewels"}}]},
    },
    "Memcached": {".spec.image": {"image": EVIL}},
    "MyDatabase": {
        ".spec.image": {"image": EVIL},
        ".spec.tls.secretName": {"tls": {"secretName": "jewels"}},
        ".spec.backup.image": {"backup": {"immediate": True, "target": NEW, "image": EVIL}},
        ".spec.backup.target.persistentVolumeClaim.claimName": {"backup": {"immediate": True, "target": CLAIM}},
        ".spec.backup.target.s3.credentialsSecret": {"backup": {"immediate": True, "target": {"s3": THEIRS}}},
        ".spec.backup.target.s3.caSecret": {"backup": {"immediate": True, "target": {"s3": CA}}},
        ".spec.bootstrap.fromCluster.secretName": {
            "bootstrap": {"fromCluster": {"host": "db.example.com", "secretName": "jewels"}}
        },
        ".spec.bootstrap.fromBackup.persistentVolumeClaim.claimName": {
            "bootstrap": {"fromBackup": {"database": "a", **CLAIM}}
        },
        ".spec.bootstrap.fromBackup.image": {"bootstrap": {"fromBackup": {"database": "a", "image": EVIL}}},
        ".spec.bootstrap.fromBackup.s3.credentialsSecret": {
            "bootstrap": {"fromBackup": {"database": "a", "s3": THEIRS}}
        },
        ".spec.bootstrap.fromBackup.s3.caSecret": {"bootstrap": {"fromBackup": {"database": "a", "s3": CA}}},
    },
    "ThreeTierApp": {
        ".spec.frontend.image": {"frontend": {"image": EVIL}},
        ".spec.backend.image": {"backend": {"image": EVIL}},
        ".spec.database.image": {"database": {"image": EVIL}},
    },
}


def test_each_field_that_a_crd_marks_is_tried():
    assert {(kind, path) for kind, tried in BAD.items() for path in tried} == FIELDS


def a_resource(kind, name, **spec):
    metadata = {"name": name}
    stated = {key: value for key, value in {**PLAIN[kind], **spec}.items() if value is not None}
    return {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": stated}


@pytest.fixture(scope="module")
def name():
    return f"rights-{secrets.token_hex(4)}"


class Somebody:
    """A user of a namespace: what the server says to their objects, by name."""

    def __init__(self, cluster, user):
        self.kubectl, self.namespace, self.user = cluster.kubectl, cluster.namespace, user

    def refused(self, *objects):
        manifests = [{**each, "metadata": {**each["metadata"], "namespace": self.namespace}} for each in objects]
        words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", "--as", self.user)
        try:
            self.kubectl(*words, stdin={"apiVersion": "v1", "kind": "List", "items": manifests})
        except KubectlError as error:
            return str(error)
        return ""


@pytest.fixture
def somebody(cluster, name, eventually):
    """A user who may write all our custom resources and get the Secret ``mine``; the policies hold in their namespace."""
    kubectl, place = cluster.kubectl, ("-n", cluster.namespace)
    here = {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    made = policies(DEFINITIONS, (), "reconcile-system", {})
    for each in made:
        each["metadata"]["name"] += f".{name}"
        if "policyName" in each["spec"]:
            each["spec"] |= {"policyName": each["metadata"]["name"], "matchResources": {"namespaceSelector": here}}
    writes = {
        "apiGroups": sorted({each.partition(".")[2] for each in PLURALS.values()}),
        "resources": ["*"],
        "verbs": ["*"],
    }
    reads = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]}
    kubectl.apply(
        [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "Role",
                "metadata": {"name": name, "namespace": cluster.namespace},
                "rules": [writes, reads],
            }
        ]
    )
    kubectl("create", "rolebinding", name, f"--role={name}", f"--user={name}", *place)
    until_may(kubectl, name, "patch", PLURALS["Kafka"], cluster.namespace)
    kubectl.apply(made)
    try:
        one = Somebody(cluster, name)
        ends = [a_resource("ThreeTierApp", "last"), a_resource("Checkup", "first", scan=None, job=JOB)]
        eventually(lambda: one.refused(*ends).count("is used in a pod") == len(ends), "the policies are in force")
        yield one
    finally:
        kubectl(
            "delete",
            "validatingadmissionpolicy,validatingadmissionpolicybinding",
            *{each["metadata"]["name"] for each in made},
        )


def test_who_may_do_less_by_hand_gets_no_more_by_a_custom_resource(somebody, cluster, name):
    attempts = {f"{kind.lower()}-{at}": (kind, path) for kind, tried in BAD.items() for at, path in enumerate(tried)}
    objects = [a_resource(kind, each, **BAD[kind][path]) for each, (kind, path) in attempts.items()]
    for each in attempts:
        if each.startswith("threetierapp"):
            cluster.apply(a_resource("ThreeTierApp", each))
    said = somebody.refused(*objects)
    for each, (_, path) in attempts.items():
        told = re.search(rf'"{each}" is forbidden: .*denied request: {re.escape(path[1:])} [a-z ,]+', said)
        assert told, f"{each}: {path} is let through, or refused for something else: {said}"
    plain = [a_resource(kind, "plain") for kind in PLAIN if kind != "ThreeTierApp"]
    assert somebody.refused(*plain) == ""
    several = [{"name": f"l{port}", "port": port, "tls": {"secretName": "mine"}} for port in range(9100, 9104)]
    assert "spec.listeners[].tls.secretName" in somebody.refused(
        a_resource("Kafka", "many", listeners=[*several, {"name": "x", "port": 9200, "tls": {"secretName": "jewels"}}])
    )
    # what somebody with more rights has set up stays usable for who has less
    there = a_resource("EtcdBackup", "there", image=EVIL, storage={"s3": THEIRS})
    cluster.kubectl.apply([{**there, "metadata": {"name": "there", "namespace": cluster.namespace}}])
    theirs = {"image": EVIL, "storage": {"s3": THEIRS}}
    assert somebody.refused(a_resource("EtcdBackup", "there", **theirs, suspend=True)) == ""
    elsewhere = {"s3": {**THEIRS, "endpoint": "https://evil.example.com"}}
    assert "credentialsSecret" in somebody.refused(a_resource("EtcdBackup", "there", image=EVIL, storage=elsewhere))
    # who may do it by hand may have it done
    for right in ("pods", "secrets"):
        cluster.kubectl(
            "create", "role", f"{name}-{right}", "--verb=get,create", f"--resource={right}", "-n", cluster.namespace
        )
        cluster.kubectl(
            "create",
            "rolebinding",
            f"{name}-{right}",
            f"--role={name}-{right}",
            f"--user={name}",
            "-n",
            cluster.namespace,
        )
        until_may(cluster.kubectl, name, "create", right, cluster.namespace)
    assert somebody.refused(*objects) == ""
