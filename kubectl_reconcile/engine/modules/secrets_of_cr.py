"""Secrets beside a custom resource, as its module reads and makes them: by name, and only those that it said it would."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, Forbidden, NotFound
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import GroupKind, Manifest, mapping_of
from kubectl_reconcile.engine.modules.external_systems import OutsideError

_SECRET = GroupKind("", "Secret")


@dataclass(frozen=True, slots=True)
class SecretsOfCr:
    """The Secrets that a module may read for one CR; *acts* where it may make them too."""

    client: Client
    namespace: str = ""
    names: frozenset[str] = frozenset()
    acts: bool = False

    async def read(self, name: str) -> dict[str, str] | None:
        """Return the values of a Secret, None where there is none. What isn't text is left out.

        Raises:
            OutsideError: the module never said that it reads it, or it can't be read.
        """
        self._check(name)
        try:
            found = await self.client.get(f"{self._path}/{name}")
        except NotFound:
            return None
        except ApiError as error:
            raise OutsideError(f"Secret {self.namespace}/{name} can't be read: {error}{_hint(error)}") from error
        pairs = ((key, _text(value)) for key, value in mapping_of(found.get("data")).items())
        return {key: value for key, value in pairs if value is not None}

    async def make(self, name: str, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make a Secret; one that is there stays as it is.

        Raises:
            OutsideError: this is a look and no action, the module never said that it reads it, or the server refuses.
        """
        self._check(name)
        if not self.acts:
            raise OutsideError(f"observing changes nothing, but making Secret {name} would")
        metadata = {"name": name, "namespace": self.namespace, "labels": dict(labels)}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(values)}
        try:
            await self.client.create(self._path, body)
        except AlreadyExists:
            return
        except ApiError as error:
            raise OutsideError(f"Secret {self.namespace}/{name} can't be made: {error}{_hint(error)}") from error

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    def _check(self, name: str) -> None:
        if name not in self.names:
            raise OutsideError(f"Secret {name} isn't one that the module says it reads")


def secrets_of(module: Module, cr: Manifest, client: Client, *, acts: bool) -> SecretsOfCr:
    """Return the Secrets that *module* may read for *cr*."""
    named = (
        each.of(cr).names
        for each in module.reads
        if each.on_request and each.of is not None and each.gvk.group_kind == _SECRET
    )
    namespace = str(cr["metadata"].get("namespace") or "")
    return SecretsOfCr(client, namespace, frozenset(name for names in named for name in names), acts)


def _text(encoded: object) -> str | None:
    try:
        return base64.b64decode(str(encoded), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _hint(error: ApiError) -> str:
    if not isinstance(error, Forbidden):
        return ""
    return " (hint: kubectl reconcile grant gives the module those of this namespace; by hand it takes the rights get and create on secrets)"
