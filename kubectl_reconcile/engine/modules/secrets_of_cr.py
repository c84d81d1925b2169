"""Secrets beside a custom resource, as its module reads and makes them: by name, and only those that it said it would."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, Forbidden, NotFound
from kubectl_reconcile.core.module.adoption import adopt_child
from kubectl_reconcile.core.module.api import Module, SeenSecret
from kubectl_reconcile.core.objects import GroupKind, Manifest, controller_of, decoded_text, mapping_of
from kubectl_reconcile.engine.modules.external_systems import OutsideError

_SECRET = GroupKind("", "Secret")


class SecretsOfCr(Struct, frozen=True):
    """The Secrets that a module may read for one CR; *acts* where it may make them too, *own* those of these that it may make the CR's own."""

    client: Client
    namespace: str = ""
    names: frozenset[str] = frozenset()
    acts: bool = False
    own: frozenset[str] = frozenset()
    cr: Manifest = field(default_factory=dict)
    module: Module | None = None

    async def read(self, name: str) -> dict[str, str] | None:
        """Return the values of a Secret, None where there is none. What isn't text is left out.

        Raises:
            OutsideError: the module never said that it reads it, or it can't be read.
        """
        found = await self._found(name)
        return None if found is None else _values(found)

    async def see(self, name: str) -> SeenSecret | None:
        """Return a Secret as it is now, None where there is none.

        Raises:
            OutsideError: the module never said that it reads it, or it can't be read.
        """
        found = await self._found(name)
        if found is None:
            return None
        is_own = (controller_of(found) or {}).get("uid") == self.cr["metadata"]["uid"]
        return SeenSecret(_values(found), is_own, str(found["metadata"]["resourceVersion"]))

    async def make(self, name: str, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make a Secret; one that is there stays as it is.

        Raises:
            OutsideError: this is a look and no action, the module never said that it reads it, or the server refuses.
        """
        self._check(name)
        self._check_acts(name)
        metadata = {"name": name, "namespace": self.namespace, "labels": dict(labels)}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(values)}
        try:
            await self.client.create(self._path, body)
        except AlreadyExists:
            return
        except ApiError as error:
            raise OutsideError(f"Secret {self.namespace}/{name} can't be created: {error}{_hint(error)}") from error

    async def put(
        self, name: str, values: Mapping[str, str], labels: Mapping[str, str], over: SeenSecret | None
    ) -> None:
        """Make a Secret as the CR's own, or give the one that was seen other values.

        Raises:
            OutsideError: this is a look and no action, the module never said that it makes it, it is another's or has changed, or the server refuses.
        """
        self._check(name)
        self._check_acts(name)
        if name not in self.own or self.module is None:
            raise OutsideError(f"the module doesn't declare that it rewrites Secret {name}")
        if over is not None and not over.is_own:
            raise OutsideError(f"Secret {self.namespace}/{name} isn't this custom resource's own; it stays as it is")
        try:
            await (
                self._make_own(self.module, name, values, labels)
                if over is None
                else self._rewrite(self.module, name, values, over)
            )
        except ApiError as error:
            verb = "created" if over is None else "changed"
            raise OutsideError(f"Secret {self.namespace}/{name} can't be {verb}: {error}{_hint(error)}") from error

    async def _make_own(self, module: Module, name: str, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        body = {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": dict(labels)}, "data": _encoded(values),
        }  # fmt: skip
        await self.client.create(self._path, adopt_child(body, self.cr, module), manager=module.manager)

    async def _rewrite(self, module: Module, name: str, values: Mapping[str, str], over: SeenSecret) -> None:
        found = await self._found(name)
        stale = dict.fromkeys(mapping_of((found or {}).get("data")))
        body = {"metadata": {"resourceVersion": over.version}, "data": {**stale, **_encoded(values)}}
        await self.client.patch(f"{self._path}/{name}", body, manager=module.manager)

    async def _found(self, name: str) -> dict[str, Any] | None:
        self._check(name)
        try:
            return await self.client.get(f"{self._path}/{name}")
        except NotFound:
            return None
        except ApiError as error:
            raise OutsideError(f"Secret {self.namespace}/{name} can't be read: {error}{_hint(error)}") from error

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    def _check(self, name: str) -> None:
        if name not in self.names:
            raise OutsideError(f"the module doesn't declare that it reads Secret {name}")

    def _check_acts(self, name: str) -> None:
        if not self.acts:
            raise OutsideError(f"observe must change nothing, but creating Secret {name} would")


def secrets_of(module: Module, cr: Manifest, client: Client, *, acts: bool) -> SecretsOfCr:
    """Return the Secrets that *module* may read for *cr*."""
    named = {
        name: each.rewrites
        for each in module.reads
        if each.on_request and each.of is not None and each.gvk.group_kind == _SECRET
        for name in each.of(cr).names
    }
    namespace = str(cr["metadata"].get("namespace") or "")
    own = frozenset(name for name, rewrites in named.items() if rewrites)
    return SecretsOfCr(client, namespace, frozenset(named), acts, own, cr, module)


def _values(secret: Manifest) -> dict[str, str]:
    """Return what a Secret holds that is text."""
    pairs = ((key, _text(value)) for key, value in mapping_of(secret.get("data")).items())
    return {key: value for key, value in pairs if value is not None}


def _encoded(values: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


def _text(encoded: object) -> str | None:
    try:
        return decoded_text(encoded)
    except ValueError:
        return None


def _hint(error: ApiError) -> str:
    if not isinstance(error, Forbidden):
        return ""
    return " (hint: kubectl reconcile grant gives the module its rights in this namespace: get and create on secrets, and patch where it rewrites them)"
