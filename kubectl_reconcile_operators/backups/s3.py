"""S3 as a place where Jobs of modules keep what they write: the part of a spec that names it, and what their pods need to get there.

Any server that speaks S3's API will do. Credentials stand in a Secret that the spec names, and reach the pod as environment variables; nobody here reads them.
What talks to S3 is the Job's own program, which is told the place by arguments that begin with ``--s3-``.

Pure: a place in, parts of manifests out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import SpecError, spec_of

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""What the Secret holds, and the variables are called."""
_TOKEN = "AWS_SESSION_TOKEN"  # noqa: S105 - the name of one
_NO_SECRET = "CreateContainerConfigError"  # noqa: S105 - what a node says
_CA_FOLDER = "/etc/s3"
_BUCKET = re.compile(r"[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]")
_ENDPOINT = re.compile(r"https?://[-A-Za-z0-9.:\[\]]+")
_PREFIX = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]*(/[A-Za-z0-9][-A-Za-z0-9_.]*)*")


@dataclass(frozen=True, slots=True)
class S3Place:
    """A bucket, and the prefix of keys in it. Without *endpoint*, it is a bucket of AWS. The Secret *ca_secret* has the ``ca.crt`` that the server's certificate is checked against."""

    bucket: str
    credentials_secret: str
    endpoint: str = ""
    region: str = "us-east-1"
    prefix: str = ""
    path_style: bool | None = None
    ca_secret: str = ""

    def folder(self, namespace: str, name: str) -> str:
        """Return the start of the keys of *name*: without a prefix, the namespace comes first."""
        return f"{self.prefix or namespace}/{name}"


def s3_place(tree: Mapping[str, Any], where: str) -> S3Place:
    """Return the place that a part of a spec names; *where* is its field.

    Raises:
        SpecError: it names none.
    """
    try:
        place = spec_of({"spec": dict(tree)}, S3Place)
    except SpecError as error:
        raise SpecError(f"{where}{error.field.removeprefix('.spec')}", error.message) from error
    check_s3(place, where)
    return place


def check_s3(place: S3Place, where: str) -> None:
    """Refuse fields that no S3 server accepts.

    Raises:
        SpecError: a field makes no sense.
    """
    for name, value, form, example in (
        ("bucket", place.bucket, _BUCKET, "my-backups"),
        ("endpoint", place.endpoint or "http://a", _ENDPOINT, "https://minio.storage.svc:9000"),
        ("prefix", place.prefix or "a", _PREFIX, "clusters/shop"),
    ):
        if not form.fullmatch(value):
            raise SpecError(f"{where}.{name}", f"must be written like {example}, not {value}")
    if not place.credentials_secret:
        raise SpecError(f"{where}.credentialsSecret", f"must name a Secret with {' and '.join(KEYS)}")


def s3_arguments(place: S3Place, where: str) -> list[str]:
    """Return the arguments with the place for a Job's program; errors name *where*, its field in the spec."""
    is_path_style = bool(place.endpoint) if place.path_style is None else place.path_style
    found: Mapping[str, str] = {
        "bucket": place.bucket,
        "endpoint": place.endpoint,
        "region": place.region,
        "path-style": "true" if is_path_style else "",
        "ca": f"{_CA_FOLDER}/ca.crt" if place.ca_secret else "",
        "field": where,
    }
    return [f"--s3-{name}={value}" for name, value in found.items() if value]


def s3_environment(place: S3Place) -> list[dict[str, Any]]:
    """Return the environment variables with a container's credentials, as references only. The session token is optional."""

    def reference(key: str, **more: Any) -> dict[str, Any]:
        return {"name": key, "valueFrom": {"secretKeyRef": {"name": place.credentials_secret, "key": key, **more}}}

    return [*map(reference, KEYS), reference(_TOKEN, optional=True)]


def s3_volumes(place: S3Place) -> list[dict[str, Any]]:
    """Return the volumes that a pod needs for it."""
    if not place.ca_secret:
        return []
    return [
        {"name": "s3-ca", "secret": {"secretName": place.ca_secret, "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    ]


def s3_mounts(place: S3Place) -> list[dict[str, Any]]:
    """Return the volume mounts of a container."""
    return [{"name": each["name"], "mountPath": _CA_FOLDER, "readOnly": True} for each in s3_volumes(place)]


def s3_hinted(said: str, place: S3Place, where: str) -> str:
    """Return what was *said* about a pod, with a hint if it waits for a Secret of the place."""
    if _NO_SECRET not in said or "(hint: " in said:
        return said
    also = f", and {where}.caSecret one with ca.crt" if place.ca_secret else ""
    return (
        f"{said} (hint: {where}.credentialsSecret must name a Secret of this namespace with {' and '.join(KEYS)}{also})"
    )
