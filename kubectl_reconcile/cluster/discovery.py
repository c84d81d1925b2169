"""Which kinds the server has, under which paths, and what people call them.

Vocabulary: a *resource* is a kind at one version with its place in the URL space (``/apis/apps/v1/…/deployments``);
the *preferred* one of a kind is the version the server names first. A group-version is *unavailable* while the
server behind it (an aggregated API) doesn't answer: its kinds are unknown, which is not the same as absent.

Rules: one pair of requests (aggregated discovery), or one per group-version on servers that don't have it. That costs
some 15 ms, so nothing is kept on disk; ``refresh`` costs less while nothing changed, the server compares hashes.
Names resolve as kubectl does it: plural, singular, kind or short name, then optionally version and group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, ServerError
from kubectl_reconcile.cluster.openapi import Schemas
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.core.ssa.schema import Schema

_V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
_AGGREGATED = f"{_V2},{_V2BETA1},application/json"


class Resource(Struct, frozen=True):
    """One kind at one version: what it is called and where it lives."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    preferred: bool = True
    has_status: bool = False
    singular: str = ""

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Return the URL path of an object, or of the collection where *name* is empty."""
        tail = "".join(f"/{quote(part, safe=':')}" for part in (name, subresource) if part)
        return f"{self.collection(namespace)}{tail}"

    def collection(self, namespace: str = "") -> str:
        """Return the URL path of the objects in *namespace*, or in all of them."""
        root = f"/apis/{self.gvk.group}/{self.gvk.version}" if self.gvk.group else f"/api/{self.gvk.version}"
        place = f"/namespaces/{quote(namespace, safe=':')}" if self.namespaced and namespace else ""
        return f"{root}{place}/{self.plural}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.gvk.version}.{self.gvk.group}" if self.gvk.group else self.plural


class _Index(Struct, frozen=True):
    """All resources in the server's order, and the ways to look one up."""

    resources: tuple[Resource, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    by_gvk: Mapping[GroupVersionKind, Resource] = field(default_factory=dict)
    by_kind: Mapping[GroupKind, Resource] = field(default_factory=dict)
    by_name: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    api_versions: tuple[str, ...] = ()

    @classmethod
    def of(cls, resources: tuple[Resource, ...], unavailable: Mapping[str, str]) -> Self:
        by_kind: dict[GroupKind, Resource] = {}
        by_name: dict[str, tuple[Resource, ...]] = {}
        for resource in resources:
            by_kind.setdefault(resource.gvk.group_kind, resource)
            for name in dict.fromkeys(_names(resource)):
                by_name[name] = (*by_name.get(name, ()), resource)
        by_gvk = {resource.gvk: resource for resource in resources}
        served = {each.api_version for each in by_gvk} | {f"{each.api_version}/{each.kind}" for each in by_gvk}
        return cls(resources, unavailable, by_gvk, by_kind, by_name, tuple(sorted(served)))


class Discovery:
    """What one server serves, as *client* reads it. Lookups cost no request; ``refresh`` brings it up to date."""

    def __init__(self, client: Client, cache_dir: Path | None = None) -> None:
        self.client = client
        self._schemas = Schemas(client, cache_dir)
        self._etags: dict[str, str] = {}
        self._answers: dict[str, dict[str, Any]] = {}
        self._index = _Index()
        self._version = ""

    @classmethod
    async def load(cls, client: Client, cache_dir: Path | None = None) -> Self:
        """Return what the server serves now. *cache_dir* keeps schema documents between runs.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        found = cls(client, cache_dir)
        await found.refresh()
        return found

    async def refresh(self) -> bool:
        """Ask the server again, and tell whether anything is different: kinds, versions, availability.

        Raises:
            ApiError: the server refuses, or doesn't answer; what was known stays.
        """
        self._schemas.invalidate()
        core, groups = await asyncio.gather(self._answer("/api"), self._answer("/apis"))
        aggregated = core.get("kind") == groups.get("kind") == "APIGroupDiscoveryList"
        documents = _aggregated(core, groups) if aggregated else await self._legacy(core, groups)
        resources: list[Resource] = []
        unavailable: dict[str, str] = {}
        for document in documents:
            resources.extend(document.resources)
            if document.trouble:
                unavailable[document.group_version] = document.trouble
        before, self._index = self._index, _Index.of(_with_preference(resources), unavailable)
        is_news = (before.resources, before.unavailable) != (self._index.resources, self._index.unavailable)
        if is_news or not self._version:  # no version of Kubernetes serves just what another does
            self._version = await self._server_version()
        return is_news

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Everything served, in the server's order of groups and versions."""
        return self._index.resources

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Group-versions whose kinds can't be known at the moment (``metrics.k8s.io/v1beta1``), and why."""
        return self._index.unavailable

    @property
    def api_versions(self) -> tuple[str, ...]:
        """What charts may ask for: each version of a group, and each kind with it (``apps/v1``, ``apps/v1/Deployment``)."""
        return self._index.api_versions

    @property
    def version(self) -> str:
        """The server's version, ``v1.34.2``; empty where it doesn't say."""
        return self._version

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of exactly this ``apiVersion`` and ``kind``, None if it isn't served."""
        return self._index.by_gvk.get(GroupVersionKind.parse(api_version, kind))

    def find_kind(self, kind: GroupKind) -> Resource | None:
        """Return the preferred resource of *kind*, None if it isn't served."""
        return self._index.by_kind.get(kind)

    def resolve(self, text: str) -> Resource | None:
        """Return what kubectl would take *text* for: ``deploy``, ``deployments.apps``, ``deployments.v1.apps``, ``Deployment``."""
        name, _, rest = text.lower().partition(".")
        candidates = self._index.by_name.get(name, ())
        if not rest:
            return candidates[0] if candidates else None
        version, _, group = rest.partition(".")
        exact = [resource for resource in candidates if (resource.gvk.version, resource.gvk.group) == (version, group)]
        named = [resource for resource in candidates if resource.gvk.group == rest]
        begun = [resource for resource in candidates if resource.gvk.group.startswith(rest)]
        return next(iter((*exact, *named, *begun)), None)

    def category(self, name: str) -> tuple[Resource, ...]:
        """Return the preferred resources of a category, such as ``all``."""
        return tuple(resource for resource in self.resources if resource.preferred and name in resource.categories)

    async def schemas(self, kinds: Iterable[GroupVersionKind]) -> dict[GroupVersionKind, Schema]:
        """Return the schema of each of *kinds*, ``UNKNOWN`` where the server describes none.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        return await self._schemas.of(kinds)

    async def _answer(self, path: str) -> dict[str, Any]:
        """Return the answer at *path*; the one before, if the server says that it still holds."""
        answer = await self.client.request("GET", path, accept=_AGGREGATED, etag=self._etags.get(path, ""))
        if answer.status != 304:
            try:
                found = orjson.loads(answer.body)
            except ValueError as error:
                raise ServerError(f"the answer for {path} is not JSON: {error}", reason="BadAnswer") from error
            if not isinstance(found, dict):
                raise ServerError(f"the answer for {path} is not a JSON object", reason="BadAnswer")
            self._answers[path] = found
            self._etags[path] = answer.headers.get("Etag", "")
        return self._answers[path]

    async def _server_version(self) -> str:
        """Return the server's version; the one before where it doesn't say."""
        try:
            return str((await self.client.get("/version")).get("gitVersion") or "")
        except ApiError:
            return self._version

    async def _legacy(self, core: Mapping[str, Any], groups: Mapping[str, Any]) -> Iterable[_Document]:
        """Ask for each group-version by itself, as before Kubernetes 1.26."""
        wanted = [("", str(version)) for version in core.get("versions") or ()]
        for group in groups.get("groups") or ():
            versions = [str(version["version"]) for version in group.get("versions") or ()]
            first = (group.get("preferredVersion") or {}).get("version")
            wanted += [(group["name"], version) for version in sorted(versions, key=lambda version: version != first)]
        return await asyncio.gather(*(self._legacy_document(*group_version) for group_version in wanted))

    async def _legacy_document(self, group: str, version: str) -> _Document:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            answer = await self.client.get(path)
        except ApiError as error:
            return _Document(group, version, (), str(error))
        entries = [entry for entry in answer.get("resources") or () if entry.get("kind")]
        with_status = {entry["name"] for entry in entries if entry["name"].endswith("/status")}
        resources = tuple(
            Resource(
                gvk=GroupVersionKind(group, version, entry["kind"]),
                plural=entry["name"],
                namespaced=bool(entry.get("namespaced")),
                verbs=frozenset(entry.get("verbs") or ()),
                short_names=tuple(entry.get("shortNames") or ()),
                categories=tuple(entry.get("categories") or ()),
                has_status=f"{entry['name']}/status" in with_status,
                singular=entry.get("singularName") or entry["kind"].lower(),
            )
            for entry in entries
            if "/" not in entry["name"]
        )
        return _Document(group, version, resources)


class _Document(Struct, frozen=True):
    """What the server says of one group-version; *trouble* says why that may not be all."""

    group: str
    version: str
    resources: tuple[Resource, ...]
    trouble: str = ""

    @property
    def group_version(self) -> str:
        return GroupVersionKind(self.group, self.version, "").api_version


def _aggregated(*answers: Mapping[str, Any]) -> Iterator[_Document]:
    for answer in answers:
        for item in answer.get("items") or ():
            group = (item.get("metadata") or {}).get("name") or ""
            for version in item.get("versions") or ():
                stale = version.get("freshness") == "Stale"
                yield _Document(
                    group,
                    version["version"],
                    tuple(_resource(group, version["version"], entry) for entry in version.get("resources") or ()),
                    "the server behind this API group doesn't answer" if stale else "",
                )


def _resource(group: str, version: str, entry: Mapping[str, Any]) -> Resource:
    kind = str((entry.get("responseKind") or {}).get("kind") or "")
    return Resource(
        gvk=GroupVersionKind(group, version, kind),
        plural=entry["resource"],
        namespaced=entry.get("scope") == "Namespaced",
        verbs=frozenset(entry.get("verbs") or ()),
        short_names=tuple(entry.get("shortNames") or ()),
        categories=tuple(entry.get("categories") or ()),
        has_status=any(sub.get("subresource") == "status" for sub in entry.get("subresources") or ()),
        singular=entry.get("singularResource") or kind.lower(),
    )


def _with_preference(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Mark the first version of each kind as preferred, the others not. Kinds without a name or verbs can't be used."""
    seen: set[GroupKind] = set()
    found: list[Resource] = []
    for resource in resources:
        kind = resource.gvk.group_kind
        if kind.kind and resource.verbs:
            found.append(resource if kind not in seen else replace(resource, preferred=False))
            seen.add(kind)
    return tuple(found)


def _names(resource: Resource) -> Iterator[str]:
    yield resource.plural
    yield resource.singular
    yield resource.gvk.kind.lower()
    yield from resource.short_names
