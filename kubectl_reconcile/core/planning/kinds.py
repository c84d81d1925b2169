"""What the planner must know of a kind: where it lives, how its fields merge, when it is written.

Most kinds are the server's own, read from its discovery and OpenAPI documents. Those that a
plan brings along are read from their CustomResourceDefinition, so that objects of a kind that
doesn't exist yet can be previewed in full.

Pure: tables and views.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest
from kubectl_reconcile.core.ssa.schema import Schema, schema_of_crd

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
NAMESPACE = GroupKind("", "Namespace")
CLAIM = GroupKind("", "PersistentVolumeClaim")
_DATA = {
    "": ("PersistentVolume", "PersistentVolumeClaim"),
    "snapshot.storage.k8s.io": ("VolumeSnapshot", "VolumeSnapshotContent"),
    "groupsnapshot.storage.k8s.io": ("VolumeGroupSnapshot", "VolumeGroupSnapshotContent"),
    # Volumes and machines of those that provide these, and buckets.
    "cdi.kubevirt.io": ("DataVolume",),
    "cluster.x-k8s.io": ("Cluster",),
    "kubevirt.io": ("VirtualMachine",),
    "longhorn.io": ("Backup", "Volume"),
    "objectbucket.io": ("ObjectBucket", "ObjectBucketClaim"),
    # Databases, queues and stores: ours, and those of operators that many have.
    "acid.zalan.do": ("postgresql",),
    "cassandra.datastax.com": ("CassandraDatacenter",),
    "ceph.rook.io": ("CephBlockPool", "CephCluster", "CephFilesystem", "CephObjectStore"),
    "clickhouse.altinity.com": ("ClickHouseInstallation",),
    "couchbase.com": ("CouchbaseCluster",),
    "crdb.cockroachlabs.com": ("CrdbCluster",),
    "databases.spotahome.com": ("RedisFailover",),
    "elasticsearch.k8s.elastic.co": ("Elasticsearch",),
    "etcd.database.coreos.com": ("EtcdCluster",),
    "example.com": ("MyDatabase",),
    "k8s.mariadb.com": ("MariaDB",),
    "k8ssandra.io": ("K8ssandraCluster",),
    "kafka.example.com": ("Kafka",),
    "kafka.strimzi.io": ("Kafka", "KafkaNodePool", "KafkaTopic"),
    "minio.min.io": ("Tenant",),
    "mongodb.com": ("MongoDB",),
    "mongodbcommunity.mongodb.com": ("MongoDBCommunity",),
    "mysql.oracle.com": ("InnoDBCluster",),
    "opensearch.opster.io": ("OpenSearchCluster",),
    "pgv2.percona.com": ("PerconaPGCluster",),
    "pingcap.com": ("TidbCluster",),
    "postgres-operator.crunchydata.com": ("PostgresCluster",),
    "postgresql.cnpg.io": ("Cluster", "Database"),
    "ps.percona.com": ("PerconaServerMySQL",),
    "psmdb.percona.com": ("PerconaServerMongoDB",),
    "pxc.percona.com": ("PerconaXtraDBCluster",),
    "rabbitmq.com": ("RabbitmqCluster",),
    "redis.redis.opstreelabs.in": ("Redis", "RedisCluster", "RedisReplication"),
    "scylla.scylladb.com": ("ScyllaCluster",),
    "solr.apache.org": ("SolrCloud",),
}
PRECIOUS = frozenset({NAMESPACE, CRD}) | {GroupKind(group, kind) for group, kinds in _DATA.items() for kind in kinds}
"""Kinds whose deletion takes with it what they hold. Objects of other kinds wait where an annotation of theirs says so."""

WORKLOADS = frozenset(
    {GroupKind("apps", kind) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")}
    | {GroupKind("batch", "Job")}
)
"""Kinds whose pods say why they don't come up."""
RIGHTS = frozenset(
    {GroupKind("", "ServiceAccount")}
    | {
        GroupKind("rbac.authorization.k8s.io", kind)
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    }
)
"""Kinds that say what accounts may do."""


class Phase(IntEnum):
    """When objects of a kind are written, relative to others of the same wave; deletes run in reverse."""

    FOUNDATION = 0
    """Namespaces, CRDs: others can't even be named before these exist."""
    GROUND = 1
    """What the server looks up, or judges by, when it admits others: accounts, roles, classes, limits, volumes."""
    CONFIGURATION = 2
    """Configuration, claims, who has which role, and addresses: what workloads start with."""
    WORKLOAD = 3
    """Built-in kinds that run or expose something."""
    CUSTOM = 4
    """Custom resources: their controllers may be among the workloads."""
    ADMISSION = 5
    """Webhooks and aggregated APIs last: they may refuse everything until their backend runs."""


_PHASES = {
    Phase.FOUNDATION: ("Namespace", "CustomResourceDefinition.apiextensions.k8s.io"),
    Phase.GROUND: (
        "LimitRange", "PersistentVolume", "ResourceQuota", "ServiceAccount",
        "ClusterRole.rbac.authorization.k8s.io", "Role.rbac.authorization.k8s.io",
        "NetworkPolicy.networking.k8s.io", "IngressClass.networking.k8s.io", "RuntimeClass.node.k8s.io",
        "PriorityClass.scheduling.k8s.io", "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io",
        "CSIDriver.storage.k8s.io", "StorageClass.storage.k8s.io", "VolumeAttributesClass.storage.k8s.io",
        "DeviceClass.resource.k8s.io",
    ),
    Phase.CONFIGURATION: (
        "ConfigMap", "PersistentVolumeClaim", "Secret", "Service", "PodDisruptionBudget.policy",
        "ClusterRoleBinding.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io",
        "ResourceClaimTemplate.resource.k8s.io", "ResourceClaim.resource.k8s.io",
    ),
    Phase.ADMISSION: (
        "APIService.apiregistration.k8s.io",
        "MutatingAdmissionPolicy.admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io",
        "MutatingWebhookConfiguration.admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy.admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
    ),
}  # fmt: skip
_PHASE_OF = {
    GroupKind(*reversed(kind.partition(".")[::2])): phase for phase, kinds in _PHASES.items() for kind in kinds
}


class Kind(Struct, frozen=True):
    """One kind at one version, as far as planning and writing need it.

    *custom* tells a kind that a CRD defines from one built into the server.
    """

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    schema: Schema
    custom: bool = False
    has_status: bool = False

    @property
    def phase(self) -> Phase:
        """When objects of this kind are written."""
        return _PHASE_OF.get(self.gvk.group_kind, Phase.CUSTOM if self.custom else Phase.WORKLOAD)

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Return the URL path of an object, or of the collection where *name* is empty."""
        root = f"/apis/{self.gvk.group}/{self.gvk.version}" if self.gvk.group else f"/api/{self.gvk.version}"
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{place}/{self.plural}{tail}"


def kinds_of_crd(crd: Manifest) -> dict[GroupVersionKind, Kind]:
    """Return the kinds, one a served version, that a CustomResourceDefinition brings.

    A malformed CRD brings none: the server will say what is wrong with it better than we can.
    """
    try:
        spec = crd["spec"]
        group, names = spec["group"], spec["names"]
        return {
            (gvk := GroupVersionKind(group, version["name"], names["kind"])): Kind(
                gvk=gvk,
                plural=names["plural"],
                namespaced=spec.get("scope") == "Namespaced",
                schema=schema_of_crd(crd, version["name"]),
                custom=True,
                has_status="status" in (version.get("subresources") or {}),
            )
            for version in spec["versions"]
            if version.get("served", True)
        }
    except (KeyError, TypeError, AttributeError):
        return {}
