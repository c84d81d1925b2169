"""Our CRDs and examples on a real API server: what it takes, what it refuses and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.applyset import Contents, applyset_id
from kubectl_reconcile.modules.memcached import memcached
from tests.cluster.verdicts import DEFAULT, SERVER_DRY_RUN, refusal, taken

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("crds")


def a_sync(namespace, **spec):
    metadata = {"name": "shop", "namespace": namespace}
    return {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "spec": spec}


def a_memcached(namespace, name="sessions", **spec):
    metadata = {"name": name, "namespace": namespace}
    spec = {"size": 2, **spec}
    return {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": metadata, "spec": spec}


def git(url="https://git.example.com/team/shop.git", **more):
    return {"source": {"git": {"url": url, **more}}}


def source(git=None, **more):
    return {"source": {"git": {"url": "https://git.example.com/team/shop.git", **(git or {})}, **more}}


OCI = {"url": "oci://registry.example.com/team/shop"}
CERTIFIED = {"matchOIDCIdentity": [{"issuer": "x", "subject": "y"}], "trustedRootSecretRef": {"name": "root"}}
CHART = {"repository": "https://charts.example.com/stable", "name": "web", "version": "1.2.3"}


# --- Sync ---


def held(**more):
    return source(helm={"valuesFrom": [{"kind": "Secret", "name": "a", **more}]})


GOOD_SYNCS = {
    "membership only": {},
    "https": git(),
    "http with a port": git("http://127.0.0.1:8080/shop.git"),
    "ssh": git("ssh://git@git.example.com:2222/team/shop.git"),
    "a file URL, for the daemon to decide": git("file:///srv/git/shop"),
    "scp-like": git("git@git.example.com:team/shop.git"),
    "an at sign in the path": git("https://git.example.com/team/@shop.git"),
    "a branch with a slash": git(branch="feature/cache-2"),
    "a branch in another script": git(branch="größer"),
    "a tag": git(tag="v1.2.3"),
    "a commit": git(commit="0123456789abcdef0123456789abcdef01234567"),
    "a SHA-256 commit": git(commit="ab" * 32),
    "a path": source(path="deploy/shop"),
    "a path in its former place": git(path="deploy/shop"),
    "a path in both places, where earlier versions wrote the default": source(git={"path": "."}, path="deploy/shop"),
    "dots in names are fine": source(path="deploy/..shop/v1..2/.hidden"),
    "a chart": source(chart=CHART),
    "a chart that says how it is rendered": source(chart=CHART, render="Helm", helm={"values": {"size": 1}}),
    "a chart in its former place": source(helm={"chart": CHART}),
    "values that the cluster holds": source(
        helm={
            "valuesFrom": [
                {"kind": "ConfigMap", "name": "web"},
                {"kind": "Secret", "name": "web.v1", "valuesKey": "a_b.yaml", "optional": True},
                {"kind": "Secret", "name": "db", "targetPath": r"a/b.c\.d\\e_f-g[0][999].h", "type": "Integer"},
                {"kind": "Secret", "name": "db", "type": "String"},
            ]
        }
    ),
    "a chart of a registry": {"source": {"chart": {**CHART, "repository": "oci://registry.example.com:5000/charts"}}},
    "an artifact": {"source": {"oci": {**OCI, "tag": "1.4", "interval": "5m"}, "path": "prod"}},
    "a range of versions": git(semver=">=1.2.0 <2.0.0"),
    "an artifact of a range": {"source": {"oci": {**OCI, "semver": ">=1.2.0 <2.0.0"}}},
    "an artifact by its digest": {
        "source": {"oci": {**OCI, "digest": f"sha256:{'ab' * 32}"}, "helm": {"valuesFiles": ["a"]}}
    },
    "a signed artifact": {"source": {"oci": {**OCI, "verify": {"secretRef": {"name": "keys"}}}}},
    "an artifact with keys in a ConfigMap": {"source": {"oci": {**OCI, "verify": {"configMapRef": {"name": "keys"}}}}},
    "an artifact that certificates sign": {"source": {"oci": {**OCI, "verify": CERTIFIED}}},
    "a signed chart": {
        "source": {"chart": {**CHART, "repository": "oci://a.b/c", "verify": {"secretRef": {"name": "keys"}}}}
    },
    "a chart alone": {"source": {"chart": CHART}},
    "a chart alone, with values": {"source": {"chart": {**CHART, "interval": "1h"}, "helm": {"values": {"size": 1}}}},
    "a chart alone in its former place": {"source": {"helm": {"chart": CHART}}},
    "hours and minutes": git(interval="1h30m"),
    "fractions of seconds": git(interval="1.5s"),
    "a secret": git(secretRef={"name": "shop-git"}),
    "keys in a Secret": git(verify={"secretRef": {"name": "keys"}}),
    "keys in a ConfigMap": git(verify={"mode": "CommitOrTag", "configMapRef": {"name": "keys"}}),
    "a signed tag": git(tag="v1", verify={"mode": "Tag", "secretRef": {"name": "keys"}}),
    "a number of deletions": {"maxDeletes": 0},
    "a percentage of deletions": {"maxDeletes": "100%"},
    "suspended": {"suspend": True},
    "without prune": {"prune": False},
    "yielding": {"conflicts": "Yield"},
    "failing": {"conflicts": "Fail"},
    "ignoring": {"ignore": [{"path": ".spec.replicas", "manager": "hpa"}, {"path": '.metadata.annotations["a/b"]'}]},
    "ignoring by a JSON pointer": {"ignore": [{"path": "/spec/replicas"}]},
    "another namespace": {"targetNamespace": "shop-1"},
    "a timeout": {"timeout": "90s"},
}


@pytest.mark.parametrize("spec", GOOD_SYNCS.values(), ids=GOOD_SYNCS)
def test_a_sync_that_makes_sense_is_taken(kubectl, spec):
    assert keeps(taken(kubectl, a_sync(DEFAULT, **spec))["spec"], spec)


NO_URL = "must be a repository's address"
NO_REF = "isn't a name that git allows for a branch or tag"
NO_COMMIT = "must be a full commit hash"
NO_DURATION = "must be a duration such as 30s, 5m or 1h30m"
CREDENTIALS = "must not contain credentials; put them into a Secret and name it in secretRef"

BAD_SYNCS = {
    "branch and tag": (git(branch="main", tag="v1"), "branch, tag, semver and commit exclude each other"),
    "all three": (git(branch="main", tag="v1", commit="ab" * 20), "branch, tag, semver and commit exclude each other"),
    "tag and semver": (git(tag="v1", semver="1.x"), "branch, tag, semver and commit exclude each other"),
    "an empty range of versions": (git(semver=""), "spec.source.git.semver"),
    "a source of no kind": ({"source": {}}, "says nowhere to get anything from; give git, oci or chart"),
    "no URL": ({"source": {"git": {}}}, "spec.source.git.url: Required value"),
    "an empty URL": (git(""), NO_URL),
    "a local folder": (git("/srv/git/shop"), NO_URL),
    "a file URL with a host": (git("file://srv/git/shop"), NO_URL),
    "a helper that runs programs": (git("ext::sh -c reboot"), NO_URL),
    "an option as URL": (git("--upload-pack=reboot"), NO_URL),
    "an option as host": (git("ssh://-oProxyCommand=reboot/x"), NO_URL),
    "an option as scp-like host": (git("git@-oProxyCommand=reboot:x"), NO_URL),
    "a space in the URL": (git("https://git.example.com/a b"), NO_URL),
    "a password in the URL": (git("https://me:secret@git.example.com/shop"), CREDENTIALS),
    "a token in the URL": (git("https://token@git.example.com/shop"), CREDENTIALS),
    "a password for ssh": (git("ssh://git:secret@git.example.com/shop"), CREDENTIALS),
    "an empty branch": (git(branch=""), NO_REF),
    "an option as branch": (git(branch="--upload-pack=x"), NO_REF),
    "two dots in a branch": (git(branch="a..b"), NO_REF),
    "a space in a tag": (git(tag="v 1"), NO_REF),
    "a line break in a tag": (git(tag="v1\nv2"), NO_REF),
    "a refspec as branch": (git(branch="a:b"), NO_REF),
    "a short commit": (git(commit="0123abc"), NO_COMMIT),
    "a branch as commit": (git(commit="main"), NO_COMMIT),
    "a path out in its former place": (git(path="../secrets"), 'must not leave the repository through ".."'),
    "a path in two places": (
        source(git={"path": "a"}, path="b"),
        "path and git.path differ; keep path, and remove git.path",
    ),
    "values of a Pod": (held(kind="Pod"), 'supported values: "ConfigMap", "Secret"'),
    "values of what has no name": (source(helm={"valuesFrom": [{"kind": "Secret"}]}), "name: Required value"),
    "values of another namespace": (held(name="b/c"), "name: Invalid value"),
    "values at a key that nothing has": (held(valuesKey="a/b"), "valuesKey: Invalid value"),
    "values at no place": (held(targetPath="a..b"), "must be a place of a value, such as db.password or hosts[0].name"),
    "values at an odd place": (
        held(targetPath="a[-1]"),
        "must be a place of a value, such as db.password or hosts[0].name",
    ),
    "values at a place in a list of its own": (
        held(targetPath="[0].a"),
        "must be a place of a value, such as db.password or hosts[0].name",
    ),
    "a type of a map of values": (held(type="Integer"), "type is for the one value at a targetPath"),
    "a chart in two places": (source(chart=CHART, helm={"chart": CHART}), "keep chart, and remove helm.chart"),
    "a path of a chart alone": (
        {"source": {"chart": CHART, "path": "prod"}},
        "path is a path in a Git repository, and there is no git; remove it",
    ),
    "values files of a chart alone": (
        {"source": {"chart": CHART, "helm": {"valuesFiles": ["a.yaml"]}}},
        "helm.valuesFiles are files of a Git repository, and there is no git",
    ),
    "a chart alone, often": (
        {"source": {"chart": {**CHART, "interval": "often"}}},
        NO_DURATION,
    ),
    "an interval of a chart beside Git": (
        source(chart={**CHART, "interval": "5m"}),
        "chart.interval is for a chart without git; git.interval says it here",
    ),
    "a chart as manifests": (source(chart=CHART, render="Raw"), "a chart is rendered by Helm"),
    "a chart without a version": (
        source(chart={"repository": CHART["repository"], "name": "web"}),
        "spec.source.chart.version: Required value",
    ),
    "a chart of a range": (source(chart={**CHART, "version": "^1.2"}), "must be one version, such as 1.2.3"),
    "a chart of no repository": (
        source(chart={**CHART, "repository": "charts"}),
        "must be an address such as https://charts",
    ),
    "a chart of a registry with a tag": (
        source(chart={**CHART, "repository": "oci://a.b/c:1"}),
        "must be an address such as https://charts",
    ),
    "an artifact beside Git": (source(oci=OCI), "oci excludes git and chart; keep one"),
    "an artifact beside a chart": ({"source": {"oci": OCI, "chart": CHART}}, "oci excludes git and chart; keep one"),
    "an artifact with its tag": (
        {"source": {"oci": {"url": "oci://registry.example.com/shop:1"}}},
        "without a tag or a digest",
    ),
    "an artifact of an image's name": (
        {"source": {"oci": {"url": "registry.example.com/shop"}}},
        "must be a repository's address",
    ),
    "a tag and a range": (
        {"source": {"oci": {**OCI, "tag": "1.4", "semver": "1.x"}}},
        "tag and semver exclude each other",
    ),
    "a tag that is none": ({"source": {"oci": {**OCI, "tag": "a/b"}}}, "must be a tag"),
    "a signed chart of a Helm repository": (
        source(chart={**CHART, "verify": {"secretRef": {"name": "keys"}}}),
        "verify is for charts of registries",
    ),
    "an artifact that is signed by nobody's key": (
        {"source": {"oci": {**OCI, "verify": {}}}},
        "exactly one of secretRef, configMapRef and matchOIDCIdentity must say whose signatures count",
    ),
    "certificates and keys": (
        {"source": {"oci": {**OCI, "verify": {**CERTIFIED, "secretRef": {"name": "keys"}}}}},
        "exactly one of secretRef, configMapRef and matchOIDCIdentity",
    ),
    "certificates that nobody proves": (
        {"source": {"oci": {**OCI, "verify": {"matchOIDCIdentity": CERTIFIED["matchOIDCIdentity"]}}}},
        "matchOIDCIdentity and trustedRootSecretRef need each other",
    ),
    "an absolute path": (source(path="/etc"), "must be relative to the repository's root"),
    "an empty path": (source(path=""), "must be relative to the repository's root"),
    "a path out": (source(path="../secrets"), 'must not leave the repository through ".."'),
    "a path out by a detour": (source(path="a/../../secrets"), 'must not leave the repository through ".."'),
    "a path ending above": (source(path="a/.."), 'must not leave the repository through ".."'),
    "an interval in words": (git(interval="often"), NO_DURATION),
    "an interval without unit": (git(interval="30"), NO_DURATION),
    "an empty interval": (git(interval=""), NO_DURATION),
    "a negative interval": (git(interval="-5s"), NO_DURATION),
    "an interval of zero": (git(interval="0s"), "must be at least 1s"),
    "an interval of milliseconds": (git(interval="0.2s"), "must be at least 1s"),
    "a secret without name": (git(secretRef={"name": ""}), "spec.source.git.secretRef.name"),
    "nobody's signature": (git(verify={}), "exactly one of secretRef and configMapRef"),
    "keys in two places": (
        git(verify={"secretRef": {"name": "a"}, "configMapRef": {"name": "b"}}),
        "exactly one of secretRef and configMapRef",
    ),
    "keys of no name": (git(verify={"secretRef": {}}), "spec.source.git.verify.secretRef.name: Required value"),
    "a mode of Flux": (git(verify={"mode": "HEAD", "secretRef": {"name": "a"}}), 'supported values: "Commit", "Tag"'),
    "a signed tag of a branch": (
        git(branch="main", verify={"mode": "Tag", "secretRef": {"name": "a"}}),
        "verify.mode Tag and CommitAndTag need a tag to follow",
    ),
    "both signed, of a commit": (
        git(commit="ab" * 20, verify={"mode": "CommitAndTag", "secretRef": {"name": "a"}}),
        "verify.mode Tag and CommitAndTag need a tag to follow",
    ),
    "a conflict policy of ours alone": ({"conflicts": "override"}, 'supported values: "Override", "Yield", "Fail"'),
    "an ignored field that is none": ({"ignore": [{"path": "spec.replicas"}]}, "must be the path of a field"),
    "an ignored nothing": ({"ignore": [{}]}, "spec.ignore[0].path: Required value"),
    "negative deletions": ({"maxDeletes": -1}, "must be a number of objects, or a percentage such as 20%"),
    "deletions in words": ({"maxDeletes": "few"}, "must be a number of objects, or a percentage such as 20%"),
    "more than all": ({"maxDeletes": "101%"}, "must be a number of objects, or a percentage such as 20%"),
    "a namespace that can't be": ({"targetNamespace": "Shop"}, "must be a namespace's name"),
    "an account of another namespace": ({"serviceAccountName": "ops:admin"}, "must be the name of a ServiceAccount"),
    "a timeout of zero": ({"timeout": "0s"}, "must be at least 1s"),
    "a timeout in words": ({"timeout": "soon"}, NO_DURATION),
}


@pytest.mark.parametrize(("spec", "message"), BAD_SYNCS.values(), ids=BAD_SYNCS)
def test_a_sync_that_makes_no_sense_is_refused_with_a_sentence(kubectl, spec, message):
    assert message in refusal(kubectl, a_sync(DEFAULT, **spec))


def test_a_sync_comes_with_defaults(kubectl):
    assert taken(kubectl, a_sync(DEFAULT, **git()))["spec"] == {
        "source": {"git": {"url": git()["source"]["git"]["url"], "interval": "1m"}, "render": "Auto"},
        "suspend": False,
        "approval": "Never",
        "createNamespace": False,
        "prune": True,
        "conflicts": "Override",
        "fieldManager": "kubectl-reconcile",
        "drift": "Correct",
        "deletionPolicy": "Orphan",
        "replace": False,
        "atomic": False,
        "timeout": "5m",
    }


def test_a_misspelt_field_is_refused(kubectl):
    with pytest.raises(Exception, match=r"unknown field|field not declared"):
        kubectl.apply(a_sync(DEFAULT, suspended=True), *SERVER_DRY_RUN)
    with pytest.raises(Exception, match=r"spec\.source\.chart\.verison"):
        kubectl.apply(a_sync(DEFAULT, **source(chart={**CHART, "verison": "1.2.3"})), *SERVER_DRY_RUN)


CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Applied",
    "message": "applied 3f9c2e1",
    "observedGeneration": 1,
}
NOW = "2026-01-01T00:00:00Z"


def write_status(kubectl, manifest, status):
    """Apply *status* as the engine does."""
    body = {key: value for key, value in manifest.items() if key != "spec"}
    body["status"] = {"observedGeneration": 1, "conditions": [{**CONDITION, "lastTransitionTime": NOW}], **status}
    arguments = ("--server-side", "--subresource=status", "--validate=strict", "--field-manager=kubectl-reconcile")
    kubectl.apply(body, *arguments)


def test_the_status_of_a_sync_shows_in_its_columns(kubectl, namespace):
    sync = a_sync(namespace, **git())
    kubectl.apply(sync)
    counts = {"created": 1, "updated": 2, "deleted": 0, "failed": 0, "unchanged": 7}
    signed = {"signer": "alice@example.com", "key": "ED25519 SHA256:abc"}
    entry = {"revision": "3f9c2e1", "time": NOW, "result": "Succeeded", "message": "3 changes", **signed, **counts}
    status = {
        "lastAttemptedRevision": "3f9c2e1",
        "lastAppliedRevision": "3f9c2e1",
        "lastHandledSyncAt": NOW,
        "verified": {"revision": "3f9c2e1", "tag": "facade", **signed},
        "summary": {"total": 10, **counts},
        "problems": ["web.yaml:3: no kind"],
        "history": [entry],
        "lastAttemptedGeneration": 1,
        "lastReadyRevision": "3f9c2e1",
        "lastReadyGeneration": 1,
        "health": {
            "counts": {"Current": 9, "Failed": 1},
            "unhealthy": [{"object": "Job.batch shop/load", "health": "Failed", "message": "it failed", "since": NOW}],
        },
        "conditions": [
            {**CONDITION, "type": type_, "lastTransitionTime": NOW} for type_ in ("Ready", "Synced", "Healthy")
        ],
    }
    write_status(kubectl, sync, status)
    assert kubectl.json("get", "sync", "shop", "-n", namespace)["status"].items() >= status.items()
    head, row = kubectl("get", "syncs", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "READY", "HEALTHY", "REVISION", "STATUS", "AGE"]
    assert row.split()[:-1] == ["shop", "True", "True", "3f9c2e1", "applied", "3f9c2e1"]


def test_kubectl_takes_a_sync_for_the_parent_of_an_applyset(kubectl, namespace, monkeypatch):
    monkeypatch.setenv("KUBECTL_APPLYSET", "true")
    parent = a_sync(namespace)
    member = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": namespace}}
    contents = Contents.of([ObjectRef.of(member)])
    parent["metadata"] |= contents.metadata(ObjectRef.of(parent), "kubectl/v1.36")
    kubectl.apply(parent)
    arguments = ("--server-side", "--prune", f"--namespace={namespace}", "--applyset=syncs.reconcile.dev/shop")
    kubectl.apply(member, *arguments)
    found = kubectl.json("get", "configmap", "web", "-n", namespace)["metadata"]["labels"]
    assert found["applyset.kubernetes.io/part-of"] == applyset_id(ObjectRef.of(parent))


# --- EtcdCluster ---

MEMBERS = {"peerSecret": "p", "serverSecret": "s"}
STATIC = {"static": {"member": MEMBERS, "operatorSecret": "o"}}
BAD_TLS = {
    "neither": ({}, "must have either static or auto"),
    "both": ({**STATIC, "auto": {}}, "must have either static or auto"),
    "days": ({"auto": {"duration": "90d"}}, "spec.TLS.auto.duration"),
}


def an_etcd(namespace, tls):
    spec = {"size": 1, "version": "3.6.16", **({"TLS": tls} if tls is not None else {})}
    metadata = {"name": "db", "namespace": namespace}
    return {"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(("tls", "message"), BAD_TLS.values(), ids=BAD_TLS)
def test_an_etcdcluster_that_can_not_tell_who_issues_certificates_is_refused(kubectl, tls, message):
    assert message in refusal(kubectl, an_etcd(DEFAULT, tls))


def test_who_issues_the_certificates_of_an_etcdcluster_can_not_be_changed(kubectl, namespace):
    kubectl.apply(an_etcd(namespace, {"auto": {"renewBefore": "1h"}}))
    found = kubectl.json("get", "etcdcluster", "db", "-n", namespace)["spec"]["TLS"]["auto"]
    assert found == {"duration": "2160h", "renewBefore": "1h", "authorityDuration": "87600h"}
    with pytest.raises(Exception, match="who issues certificates can't be changed"):
        kubectl.apply(an_etcd(namespace, STATIC))
    with pytest.raises(Exception, match="TLS can't be turned on or off"):
        kubectl.apply(an_etcd(namespace, None))
    kubectl.apply(an_etcd(namespace, {"auto": {"duration": "48h", "renewBefore": "12h"}}))


def test_where_an_etcdcluster_keeps_its_data_stays_and_only_grows(kubectl, namespace):
    def kept(storage="1Gi", **changed):
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "any",
            "resources": {"requests": {"storage": storage}},
        }
        made = an_etcd(namespace, None)
        return {**made, "spec": {**made["spec"], "pod": {"persistentVolumeClaimSpec": {**claim, **changed}}}}

    kubectl.apply(kept())
    for wrong in (
        {"storage": "1000Mi"},
        {"storageClassName": "other"},
        {"accessModes": ["ReadWriteMany"]},
    ):
        with pytest.raises(Exception, match=r"can't be changed|can't become smaller"):
            kubectl.apply(kept(**wrong))
    with pytest.raises(Exception, match="whether members keep their data can't be changed"):
        kubectl.apply(an_etcd(namespace, None))
    kubectl.apply(kept("1024Mi"))
    kubectl.apply(kept("2Gi"))
    kubectl.apply(kept(3 << 30))


# --- ThreeTierApp ---

POSTGRES = {"engine": "MyDatabase", "version": 17, "storage": {"size": "1Gi"}}
BAD_DATABASES = {
    "a StatefulSet without an image": (
        {},
        "spec.database.image: Invalid value: is required, unless engine is MyDatabase",
    ),
    "a StatefulSet with a volume": ({"image": "x", "storage": {"size": "1Gi"}}, "are for the engine MyDatabase alone"),
    "no version": ({"engine": "MyDatabase", "storage": {"size": "1Gi"}}, "spec.database.version"),
    "no storage": ({"engine": "MyDatabase", "version": 17}, "spec.database.storage"),
    "another port": ({**POSTGRES, "port": 5433}, "must be 5432, where a MyDatabase listens"),
    "too many": ({**POSTGRES, "replicas": 8}, "must be at most 7, as many as a MyDatabase runs"),
}


def an_app(namespace, database, name="store"):
    tier, metadata = {"image": "web:1"}, {"name": name, "namespace": namespace}
    spec = {"frontend": tier, "backend": tier, "database": database}
    return {"apiVersion": "apps.example.com/v1alpha1", "kind": "ThreeTierApp", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(("database", "message"), BAD_DATABASES.values(), ids=BAD_DATABASES)
def test_a_database_of_an_app_that_makes_no_sense_is_refused_with_a_sentence(kubectl, database, message):
    assert message in refusal(kubectl, an_app(DEFAULT, database))


def test_a_name_that_the_mydatabase_of_an_app_could_not_have_is_refused(kubectl):
    assert "at most 41 characters" in refusal(kubectl, an_app(DEFAULT, POSTGRES, "a" * 42))


def test_what_runs_the_database_of_an_app_can_not_be_changed(kubectl, namespace):
    kubectl.apply(an_app(namespace, {"image": "postgres:17"}))
    with pytest.raises(Exception, match="can't be changed, since the data would stay behind"):
        kubectl.apply(an_app(namespace, {**POSTGRES, "image": "postgres:17"}))
    kubectl.apply(an_app(namespace, {"image": "postgres:17.6", "replicas": 2}))


# --- Memcached ---

GOOD_MEMCACHEDS = {
    "a size alone": {},
    "no nodes": {"size": 0},
    "a port": {"containerPort": 65535},
    "an image with a digest": {"image": "cache.example.com:5000/memcached@sha256:" + "0" * 64},
    "resources": {"resources": {"requests": {"cpu": "50m", "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1024Mi"}}},
    "a request without a limit": {"resources": {"requests": {"cpu": "0.5"}, "limits": {"memory": "1e9"}}},
}


@pytest.mark.parametrize("spec", GOOD_MEMCACHEDS.values(), ids=GOOD_MEMCACHEDS)
def test_a_memcached_that_makes_sense_is_taken(kubectl, spec):
    found = taken(kubectl, a_memcached(DEFAULT, **spec))
    outcome_of(memcached, found, Owned(), {}, Context(NOW, memcached.name, found))


BAD_MEMCACHEDS = {
    "a negative size": ({"size": -1}, "spec.size in body should be greater than or equal to 0"),
    "far too many": ({"size": 1001}, "spec.size in body should be less than or equal to 1000"),
    "a size in words": ({"size": "two"}, ".spec.size: expected numeric (int or float), got string"),
    "a privileged port": ({"containerPort": 80}, "nodes run without root and can't listen below port 1024"),
    "no such port": ({"containerPort": 65536}, "should be less than or equal to 65535"),
    "an empty image": ({"image": ""}, "must be an image reference such as memcached:1.6.39-alpine"),
    "a blank in the image": (
        {"image": "memcached latest"},
        "must be an image reference such as memcached:1.6.39-alpine",
    ),
    "a quantity that is none": ({"resources": {"limits": {"cpu": "much"}}}, "spec.resources.limits.cpu"),
    "a request above its limit": (
        {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "100Mi"}}},
        "a request can't be higher than its limit",
    ),
}


@pytest.mark.parametrize(("spec", "message"), BAD_MEMCACHEDS.values(), ids=BAD_MEMCACHEDS)
def test_a_memcached_that_makes_no_sense_is_refused_with_a_sentence(kubectl, spec, message):
    assert message in refusal(kubectl, a_memcached(DEFAULT, **spec))


@pytest.mark.parametrize("name", ["1st", "a.b", "a" * 64])
def test_a_memcached_whose_name_no_service_can_have_is_refused(kubectl, name):
    assert "the name becomes a Service's and must fit" in refusal(kubectl, a_memcached(DEFAULT, name))


def test_a_memcached_needs_a_size(kubectl):
    assert "spec.size: Required value" in refusal(kubectl, {**a_memcached(DEFAULT), "spec": {}})


def test_a_memcached_comes_with_the_defaults_of_its_module(kubectl):
    bare = a_memcached(DEFAULT)
    filled = taken(kubectl, bare)
    assert filled["spec"] == {"size": 2, "containerPort": 11211, "image": "memcached:1.6.39-alpine"}
    assert children(bare) == children(filled)


def children(cr):
    return outcome_of(memcached, cr, Owned(), {}, Context(NOW, memcached.name, cr)).children


def keeps(found, stated):
    """Whether every stated value came through, whatever the server added around it."""
    if isinstance(stated, dict):
        return all(key in found and keeps(found[key], value) for key, value in stated.items())
    if isinstance(stated, list):
        return len(found) == len(stated) and all(map(keeps, found, stated))
    return found == stated


@pytest.mark.parametrize("spec", GOOD_MEMCACHEDS.values(), ids=GOOD_MEMCACHEDS)
def test_the_server_keeps_what_the_module_states(kubectl, spec):
    for child in children(a_memcached(DEFAULT, **{**spec, "resources": {}})):
        placed = {**child, "metadata": {**child["metadata"], "namespace": DEFAULT}}
        assert keeps(taken(kubectl, placed), placed)


def test_the_status_of_a_memcached_shows_in_its_columns(kubectl, namespace):
    cr = a_memcached(namespace)
    kubectl.apply(cr)
    conditions = [{**CONDITION, "type": name, "lastTransitionTime": NOW} for name in ("Available", "Degraded")]
    write_status(kubectl, cr, {"nodes": ["b", "a"], "readyReplicas": 2, "conditions": conditions})
    head, row = kubectl("get", "mc", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "SIZE", "READY", "AVAILABLE", "DEGRADED", "AGE"]
    assert row.split()[:-1] == ["sessions", "2", "2", "True", "True"]
    assert kubectl.json("get", "mc", "sessions", "-n", namespace)["status"]["nodes"] == ["b", "a"]


def test_fields_are_explained(kubectl):
    assert "How many nodes run." in kubectl("explain", "memcached.spec.size")
    assert "Address of the repository" in kubectl("explain", "sync.spec.source.git.url")


# --- examples ---

OF_RENDERERS = {"kustomization.yaml", "Chart.yaml", "values.yaml", "values-prod.yaml", "greeting.yaml"}
"""Files of overlays and charts that hold no object, or a part of one."""

FILES = [
    file
    for file in sorted((ROOT / "examples").rglob("*.yaml"))
    if file.name not in OF_RENDERERS and not {"templates", "staging"} & set(file.parts)
]
EXAMPLES = [located for file in FILES for located in parse(file.read_bytes(), str(file.relative_to(ROOT))).manifests]


@pytest.mark.parametrize("located", EXAMPLES, ids=lambda one: f"{one.path}:{one.line}")
def test_the_server_takes_every_example(kubectl, located):
    manifest = located.manifest
    if manifest["kind"] != "Namespace":
        manifest = {**manifest, "metadata": {**manifest["metadata"], "namespace": DEFAULT}}
    assert taken(kubectl, manifest)["kind"] == located.manifest["kind"]


def test_no_example_is_unreadable():
    assert [problem for file in FILES for problem in parse(file.read_bytes(), file.name).problems] == []
    assert len(EXAMPLES) >= 8
