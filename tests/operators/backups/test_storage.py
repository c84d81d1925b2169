"""Where backups go: a claim, a claim that is made, or a bucket; what a pod needs for it, and what is refused."""

import pytest

from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile_operators.backups.s3 import (
    S3Place,
    s3_arguments,
    s3_environment,
    s3_hinted,
    s3_mounts,
    s3_place,
    s3_volumes,
)
from kubectl_reconcile_operators.backups.storage import BackupStorage, ClaimRef, backup_claim

CTX = Context("", "store", {"metadata": {"name": "a", "namespace": "shop"}})
AWS = S3Place("my-backups", "s3-key")
MINIO = S3Place("my-backups", "s3-key", "https://minio.storage.svc:9000", "eu-central-1", "clusters/a", ca_secret="s3-ca")  # fmt: skip
NAMED = BackupStorage(persistent_volume_claim=ClaimRef("backups"))
MADE = BackupStorage(volume_claim_spec={})
BUCKET = BackupStorage(s3=MINIO)

# --- a bucket, as a spec names it -----------------------------------------------------------------


def test_a_bucket_is_of_aws_if_the_spec_doesnt_say_otherwise():
    found = s3_place({"bucket": "my-backups", "credentialsSecret": "s3-key"}, ".spec.s3")
    assert found == S3Place("my-backups", "s3-key", endpoint="", region="us-east-1", prefix="", ca_secret="")
    assert found.path_style is None


def test_a_spec_says_all_of_a_bucket():
    wire = {
        "bucket": "my-backups", "credentialsSecret": "s3-key", "endpoint": "https://minio.storage.svc:9000", "region": "eu-central-1",
        "prefix": "clusters/a", "caSecret": "s3-ca",
    }  # fmt: skip
    assert s3_place(wire, ".spec.s3") == MINIO


S3 = {"bucket": "my-backups", "credentialsSecret": "s3-key"}
REFUSED = {
    "no bucket": ({"credentialsSecret": "s3-key"}, ".bucket", "is required"),
    "a number": ({**S3, "region": 1}, ".region", "must be text, not 1"),
    "a bucket with a space": ({**S3, "bucket": "My Bucket"}, ".bucket", "must be written like my-backups, not My Bucket"),
    "a bucket of two letters": ({**S3, "bucket": "ab"}, ".bucket", "must be written like my-backups, not ab"),
    "a path in the endpoint": (
        {**S3, "endpoint": "https://a/b"}, ".endpoint", "must be written like https://minio.storage.svc:9000, not https://a/b",
    ),
    "an endpoint without a scheme": (
        {**S3, "endpoint": "minio"}, ".endpoint", "must be written like https://minio.storage.svc:9000, not minio",
    ),
    "a prefix that leads elsewhere": ({**S3, "prefix": "../b"}, ".prefix", "must be written like clusters/shop, not ../b"),
    "a prefix that ends with a slash": ({**S3, "prefix": "b/"}, ".prefix", "must be written like clusters/shop, not b/"),
    "no Secret": (
        {**S3, "credentialsSecret": ""}, ".credentialsSecret", "must name a Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wire", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_a_bucket_that_no_server_has_is_refused_by_its_field(wire, field, message):
    with pytest.raises(SpecError) as error:
        s3_place(wire, ".spec.target.s3")
    assert (error.value.field, error.value.message) == (f".spec.target.s3{field}", message)


ACCEPTED = {
    "three letters": {**S3, "bucket": "abc"},
    "an address": {**S3, "endpoint": "http://[fd00::1]:9000"},
    "a prefix of one letter": {**S3, "prefix": "b"},
}


@pytest.mark.parametrize("wire", ACCEPTED.values(), ids=ACCEPTED)
def test_a_bucket_that_a_server_may_have_is_accepted(wire):
    assert s3_place(wire, ".spec.s3").bucket == wire["bucket"]


# --- what pods get --------------------------------------------------------------------------------


def test_keys_begin_with_the_prefix_or_with_the_namespace():
    assert (MINIO.folder("shop", "a"), AWS.folder("shop", "a")) == ("clusters/a/a", "shop/a")


def test_a_program_is_told_the_server_and_how_to_check_it():
    assert s3_arguments(MINIO, ".spec.s3") == [
        "--s3-bucket=my-backups",
        "--s3-endpoint=https://minio.storage.svc:9000",
        "--s3-region=eu-central-1",
        "--s3-path-style=true",
        "--s3-ca=/etc/s3/ca.crt",
        "--s3-field=.spec.s3",
    ]


def test_of_aws_a_program_is_told_no_server_and_paths_have_no_bucket():
    assert s3_arguments(AWS, ".spec.s3") == ["--s3-bucket=my-backups", "--s3-region=us-east-1", "--s3-field=.spec.s3"]


@pytest.mark.parametrize(("endpoint", "path_style"), [("https://minio", False), ("", True)])
def test_whether_paths_have_the_bucket_is_as_the_spec_says(endpoint, path_style):
    place = S3Place("my-backups", "s3-key", endpoint, path_style=path_style)
    assert ("--s3-path-style=true" in s3_arguments(place, ".spec.s3")) is path_style


def test_credentials_are_references_to_the_secret_and_only_the_token_may_be_missing():
    def reference(key, **more):
        return {"name": key, "valueFrom": {"secretKeyRef": {"name": "s3-key", "key": key, **more}}}

    assert s3_environment(AWS) == [
        reference("AWS_ACCESS_KEY_ID"),
        reference("AWS_SECRET_ACCESS_KEY"),
        reference("AWS_SESSION_TOKEN", optional=True),
    ]


CA_VOLUME = {"name": "s3-ca", "secret": {"secretName": "s3-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
CA_MOUNT = {"name": "s3-ca", "mountPath": "/etc/s3", "readOnly": True}


def test_a_pod_has_the_certificate_of_a_server_of_ones_own():
    assert (s3_volumes(MINIO), s3_mounts(MINIO)) == ([CA_VOLUME], [CA_MOUNT])
    assert (s3_volumes(AWS), s3_mounts(AWS)) == ([], [])


WAITS = "its pod waits: CreateContainerConfigError"
HINT = (
    ".spec.s3.credentialsSecret must name a Secret of this namespace with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
HINTS = {
    "for the credentials": (WAITS, AWS, f"{WAITS} (hint: {HINT})"),
    "for credentials or a certificate": (WAITS, MINIO, f"{WAITS} (hint: {HINT}, and .spec.s3.caSecret one with ca.crt)"),
    "for what was said already": (f"{WAITS} (hint: wait)", AWS, f"{WAITS} (hint: wait)"),
    "for something else": ("its pod waits: Unschedulable", AWS, "its pod waits: Unschedulable"),
}  # fmt: skip


@pytest.mark.parametrize(("said", "place", "told"), HINTS.values(), ids=HINTS)
def test_a_pod_that_waits_for_a_secret_is_told_with_the_field_that_names_it(said, place, told):
    assert s3_hinted(said, place, ".spec.s3") == told


# --- claims and buckets ---------------------------------------------------------------------------

IN_VOLUMES = {
    "a claim that is named": (NAMED, "backups"),
    "a claim that is made": (MADE, "a-backups"),
}


@pytest.mark.parametrize(("storage", "claim"), IN_VOLUMES.values(), ids=IN_VOLUMES)
def test_on_a_volume_each_custom_resource_has_a_folder(storage, claim):
    assert storage.volumes(CTX) == [{"name": "backups", "persistentVolumeClaim": {"claimName": claim}}]
    assert storage.mounts() == [{"name": "backups", "mountPath": "/backups"}]
    assert storage.arguments(CTX, ".spec.storage") == ["--folder=/backups/a"]


def test_for_a_bucket_a_backup_passes_through_a_volume_of_the_pod():
    assert BUCKET.volumes(CTX) == [{"name": "work", "emptyDir": {}}, CA_VOLUME]
    assert BUCKET.mounts() == [{"name": "work", "mountPath": "/work"}, CA_MOUNT]
    assert BUCKET.arguments(CTX, ".spec.storage") == [
        "--folder=clusters/a/a", "--work=/work", *s3_arguments(MINIO, ".spec.storage.s3"),
    ]  # fmt: skip
    assert BackupStorage(s3=AWS).folder(CTX) == "shop/a"


def test_backups_go_to_one_place():
    for storage in (NAMED, MADE, BUCKET):
        storage.check(".spec.storage")
    for storage in (BackupStorage(), BackupStorage(ClaimRef("a"), {}), BackupStorage(None, {}, AWS)):
        with pytest.raises(SpecError) as error:
            storage.check(".spec.storage")
        assert error.value.field == ".spec.storage"
        assert error.value.message == "must have one of persistentVolumeClaim, volumeClaimSpec and s3"
    with pytest.raises(SpecError) as error:
        BackupStorage(s3=S3Place("A", "s3-key")).check(".spec.storage")
    assert error.value.field == ".spec.storage.s3.bucket"


def claim(name="backups", **metadata):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, **metadata}}


FIELD = ".spec.storage.persistentVolumeClaim.claimName"
MISSING = {
    "nothing": (NAMED, [claim("another"), claim()], ""),
    "the claim": (
        NAMED, [claim("another")],
        f"{FIELD}: there is no PersistentVolumeClaim backups in this namespace (hint: create it, or give volumeClaimSpec instead)",
    ),
    "a claim that is going": (
        NAMED, [claim(deletionTimestamp="2026-11-20T12:00:00Z")], f"{FIELD}: PersistentVolumeClaim backups is being deleted",
    ),
    "nothing where a claim is made": (MADE, [], ""),
    "nothing where a bucket is named": (BUCKET, [], ""),
}  # fmt: skip


@pytest.mark.parametrize(("storage", "live", "words"), MISSING.values(), ids=MISSING)
def test_what_is_missing_of_a_claim_of_somebody_else_is_said(storage, live, words):
    assert storage.missing(Owned((), live), CTX, ".spec.storage") == words


def test_a_claim_is_made_as_the_spec_describes_it_and_none_where_it_describes_none():
    spec = {"accessModes": ["ReadWriteOnce"]}
    assert backup_claim({"volumeClaimSpec": spec}, CTX) == {**claim("a-backups", labels=CTX.labels()), "spec": spec}
    assert backup_claim({"volumeClaimSpec": "large"}, CTX)["spec"] == {}
    assert backup_claim({"persistentVolumeClaim": {"claimName": "backups"}}, CTX) is None
