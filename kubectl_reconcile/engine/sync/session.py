"""One connection to a cluster, and what was learned over it: kinds, schemas, domain modules.

Everything the engine does starts from a session. Opening one resolves the user's access and
reads the server's discovery; it writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile import cache_folder
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Discovery, Resource
from kubectl_reconcile.cluster.errors import ApiError, ServerError
from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, account_user
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.rights.writes import grant_command
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION, Decryption
from kubectl_reconcile.core.resources.helm import NO_HELM
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.engine.modules.external_systems import ExternalSystems
from kubectl_reconcile.engine.modules.operands import Operands
from kubectl_reconcile.engine.modules.reach import Reach
from kubectl_reconcile.engine.modules.registry import KnownModules, known_modules
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.parse_cache import ParsedFiles
from kubectl_reconcile.source.git.signed.verified import Verdicts
from kubectl_reconcile.source.policy import SourcePolicy

_LONG_S: Final = 600.0
"""How long a collection that was too long to list isn't listed again."""
_MOST_LONG: Final = 4096
"""How many of them are remembered; then all are forgotten."""


class _KnownKinds(Struct):
    """What was learned of kinds since the server was asked last, and *earlier*; those that have *changed* and that nobody has asked for yet."""

    now: dict[GroupVersionKind, Kind] = field(default_factory=dict)
    earlier: dict[GroupVersionKind, Kind] = field(default_factory=dict)
    changed: set[GroupKind] = field(default_factory=set)

    def learn(self, kind: Kind) -> None:
        """Take up a kind as it is now; one that is as it was earlier stays the very same."""
        known = self.earlier.get(kind.gvk)
        self.now[kind.gvk] = kind if known is None or known != kind else known


class LongCollections(Struct):
    """What was found out of collections by their paths: that there were more objects in them than so many.

    The API server walks all of a collection for a list, however few rows of it somebody asks for: with a hundred thousand objects that costs it as much as a
    hundred writes, and is of no use to whoever looks for ten of them.
    """

    clock: Callable[[], float] = time.monotonic
    _found: dict[str, tuple[int, float]] = field(default_factory=dict)

    def note(self, path: str, more_than: int) -> None:
        """Remember for a while that a collection holds *more_than* so many objects."""
        if len(self._found) >= _MOST_LONG:
            self._found.clear()
        self._found[path] = (more_than, self.clock())

    def exceeds(self, path: str, most: int) -> bool:
        """Tell whether a collection is known to hold more than *most* objects."""
        more_than, noted_s = self._found.get(path, (-1, 0.0))
        return more_than >= most and self.clock() - noted_s < _LONG_S


class Session(Struct):
    """One connection to a cluster with what is known of its kinds.

    *sources* is how strict it is with what Syncs follow; *module_accounts* the namespace with the accounts of modules,
    empty where these act as whoever the session is. *verdicts* are those on signatures that were checked; *long_collections* are those that are too long to list.
    *decryption* are a person's own keys, which stand for those that Syncs name.
    """

    client: Client
    discovery: Discovery
    cache_dir: Path
    modules: KnownModules
    sources: SourcePolicy
    systems: ExternalSystems = field(default_factory=ExternalSystems)
    operands: Operands = field(default_factory=Operands)
    module_accounts: str = ""
    verdicts: Verdicts = field(default_factory=Verdicts)
    long_collections: LongCollections = field(default_factory=LongCollections)
    decryption: Decryption | None = None
    _kinds: _KnownKinds = field(default_factory=_KnownKinds)

    @property
    def reach(self) -> Reach:
        """What modules reach as this session."""
        return Reach(self.systems, self.operands, self.client)

    def health_of(self, sync: Sync) -> HealthRules:
        """Return how the health of a Sync's members is judged: as it says, and as modules say of their custom resources."""
        return replace(sync.health, kinds=self.modules.health)

    def reader(self) -> ManifestReader:
        """Return what reads a source, and remembers on disk what it parsed."""
        return ManifestReader(
            ParsedFiles(self.cache_dir / "parsed.sqlite"), self.sources.limits, release_of=self.release_of,
            decryption=self.decryption or NO_DECRYPTION,
        )  # fmt: skip

    def release_of(self, sync: Sync) -> Release:
        """Return what a chart of a Sync is rendered with on this cluster, as it is now."""
        return release_of(sync, self.discovery)

    @classmethod
    @asynccontextmanager
    async def open(cls, access: Access, cache_dir: Path | None = None) -> AsyncIterator[Session]:
        """Connect as a person does, and read what kinds the server knows.

        Raises:
            KubeconfigError: nothing says how to reach a cluster.
            ApiError: the server refuses, or doesn't answer.
        """
        folder = cache_dir or cache_folder.cache_dir()
        client = await Client.connect(access)
        async with cls.begun(client, Discovery.load(client, folder), folder) as session:
            yield session

    @classmethod
    @asynccontextmanager
    async def begun(cls, client: Client, asked: Awaitable[Discovery], folder: Path) -> AsyncIterator[Session]:
        """Go on as a person over *client*, which is closed afterwards, with what *asked* will say of kinds.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        async with client:
            discovery = await asked
            session = cls(client, discovery, folder, known_modules(discovery), SourcePolicy.of_person())
            try:
                yield session
            finally:
                await session.systems.close()

    @classmethod
    async def over(cls, client: Client, sources: SourcePolicy, cache_dir: Path | None = None) -> Session:
        """Return a session over *client*, having read what kinds the server knows.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        folder = cache_dir or cache_folder.cache_dir()
        discovery = await Discovery.load(client, folder)
        return cls(client, discovery, folder, known_modules(discovery), sources)

    def acting_as(self, user: str, advice: str = "") -> Session:
        """Return this session as *user* has it: the same connections, and all that is known of kinds is shared.

        What is refused to *user* is told with *advice*.
        """
        return replace(self, client=self.client.impersonate(user, advice=advice))

    def acting_for(self, sync: Sync) -> Session:
        """Return this session as the account of *sync* has it."""
        return self.acting_as(sync.account, grant_command(sync))

    def account_of(self, module: Module) -> str:
        """Return the user as whom all is done for the CRs of *module*; empty: whoever the session is."""
        place = self.module_accounts
        return account_user(place, module.account) if place else ""

    async def refresh(self) -> None:
        """Forget what was learned of kinds and ask again: a CRD came, changed or went. A kind that is as it was stays the very same.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        served, known, changed = self._served(), dict(self._kinds.now), self._kinds.changed
        await self.discovery.refresh()
        modules = known_modules(self.discovery)
        changed |= {gvk.group_kind for gvk, _ in served ^ self._served()}
        changed |= self.modules.become(modules)
        self._kinds.earlier.update(known)
        self._kinds.now.clear()
        try:
            now = await self.kinds(known)
        except ApiError:
            changed |= {gvk.group_kind for gvk in known}
            raise
        changed |= {gvk.group_kind for gvk, kind in known.items() if now.get(gvk) is not kind}

    def also_knowing(self, kinds: Mapping[GroupVersionKind, Kind]) -> Session:
        """Return this session as it will be once these *kinds* are served, which it doesn't know yet; nothing that it learns of kinds is kept."""
        if not kinds:
            return self
        return replace(self, _kinds=_KnownKinds({**kinds, **self._kinds.now}, dict(self._kinds.earlier)))

    def take_changes(self) -> frozenset[GroupKind]:
        """Return the kinds that are served otherwise, no more, or only now, or have another module, since this was last asked."""
        found = frozenset(self._kinds.changed)
        self._kinds.changed.clear()
        return found

    def _served(self) -> set[tuple[GroupVersionKind, bool]]:
        """Return the kinds that the server has, and whether it prefers each as it is."""
        return {(each.gvk, each.preferred) for each in self.discovery.resources}

    def resource(self, kind: GroupKind) -> Resource | None:
        """Return the server's preferred version of *kind*, or None where it serves none."""
        return self.discovery.find_kind(kind)

    def namesakes(self, wanted: Iterable[GroupVersionKind]) -> frozenset[GroupVersionKind]:
        """Return the kinds that the server prefers under the names of the *wanted*, whatever their groups and versions."""
        names = {gvk.kind for gvk in wanted}
        served = self.discovery.resources if names else ()
        return frozenset(each.gvk for each in served if each.preferred and each.gvk.kind in names)

    async def kinds(self, wanted: Iterable[GroupVersionKind]) -> dict[GroupVersionKind, Kind]:
        """Return what is known of the *wanted* kinds; those the server doesn't serve are left out.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        wanted = tuple(wanted)
        known = {gvk: kind for gvk in wanted if (kind := self._kinds.now.get(gvk))}
        missing = {
            gvk: found
            for gvk in set(wanted) - known.keys()
            if (found := self.discovery.find(gvk.api_version, gvk.kind))
        }
        schemas = await self.discovery.schemas(missing) if missing else {}
        for gvk, resource in missing.items():
            if (schema := schemas.get(gvk)) is not None:
                self._kinds.learn(_kind(resource, schema))
        now = self._kinds.now  # others may have had it forgotten meanwhile
        return {gvk: kind for gvk in wanted if (kind := now.get(gvk) or known.get(gvk))}

    async def kind(self, wanted: GroupVersionKind) -> Kind:
        """Return what is known of a kind of which there are objects.

        Raises:
            ApiError: the server refuses, doesn't answer, or doesn't serve the kind: one that starts serves custom resources last.
        """
        found = (await self.kinds([wanted])).get(wanted)
        if found is None:
            raise ServerError(f"the API server serves no {wanted.api_version} {wanted.kind} at the moment")
        return found


def _kind(resource: Resource, schema: Schema) -> Kind:
    return Kind(
        gvk=resource.gvk,
        plural=resource.plural,
        namespaced=resource.namespaced,
        schema=schema,
        custom=schema.is_custom,
        has_status=resource.has_status,
    )


def release_of(sync: Sync, known: Discovery | None = None) -> Release:
    """Return what a chart of a Sync is rendered with: on a cluster of which that much is *known*, or on none."""
    helm, chart = (sync.source.helm, sync.source.chart) if sync.source else (NO_HELM, None)
    if known is None:
        return Release(sync.name, sync.default_namespace, helm, chart=chart)
    return Release(sync.name, sync.default_namespace, helm, known.version, known.api_versions, chart=chart)
