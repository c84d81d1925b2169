"""ThreeTierApp: a database, a backend and a frontend, each made once what it builds on is ready.

The *tiers*, in order: the database (a StatefulSet and its headless Service), the cache where one is asked for (a
``Memcached``, whose own module makes its Deployment), the backend and the frontend (a Deployment and a Service each).
A tier is changed once all tiers before it are as the spec asks and healthy; what is there already stays
meanwhile. Deleting goes the other way: a tier goes once nothing is left of those behind it, pods included.

Conditions: ``Ready`` (every tier is), ``Progressing``, and ``Degraded``, which names the first tier that has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from kubectl_reconcile.module_api import (
    COMPONENT_LABEL,
    Between,
    Condition,
    Context,
    Facts,
    Health,
    HealthStatus,
    Manifest,
    Outcome,
    Owned,
    Reads,
    container,
    deployment,
    health,
    in_turn,
    key_of,
    labels_of,
    module,
    service,
    spec_of,
    stateful_set,
)

_MEMCACHED = "cache.example.com/v1alpha1"


@dataclass(frozen=True, slots=True)
class TierSpec:
    """One stateless tier."""

    image: str
    replicas: Annotated[int, Between(0, 100)] = 1
    port: Annotated[int, Between(1, 65535)] = 8080


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """The database tier."""

    image: str
    replicas: Annotated[int, Between(1, 9)] = 1
    port: Annotated[int, Between(1, 65535)] = 5432
    engine: Literal["StatefulSet"] = "StatefulSet"


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """The cache between database and backend."""

    size: Annotated[int, Between(0, 100)] = 1


@dataclass(frozen=True, slots=True)
class ThreeTierAppSpec:
    """The spec of a ThreeTierApp."""

    frontend: TierSpec
    backend: TierSpec
    database: DatabaseSpec
    cache: CacheSpec | None = None


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier's name and children; the last child is the one whose health is the tier's."""

    name: str
    children: tuple[Manifest, ...]

    @property
    def main(self) -> Manifest:
        """The workload, or the CR, that the tier is about."""
        return self.children[-1]


@module(
    api="apps.example.com/v1alpha1",
    kind="ThreeTierApp",
    owns=["apps/v1/Deployment", "apps/v1/StatefulSet", "v1/Service", f"{_MEMCACHED}/Memcached"],
    reads=[Reads("v1", "Pod", selector="reconcile.dev/module=threetierapp")],
)
class ThreeTierApp:
    """Run a database, perhaps a cache, a backend and a frontend, each once those before it are ready.

    Deleting the app goes the other way: the frontend first, the database last.
    """

    def reconcile(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """Want all tiers, each after those before it."""
        tiers = tuple(_tiers(spec_of(cr, ThreeTierAppSpec), ctx))
        found = {tier.name: _health(tier, owned) for tier in tiers}
        return Outcome(
            children=tuple(child for tier in tiers for child in tier.children),
            after=in_turn(*(tier.children for tier in tiers)),
            status={
                "tiers": [
                    {"name": name, "health": one.status.value, "message": one.message} for name, one in found.items()
                ]
            },
            conditions=tuple(_conditions(found)),
        )

    def finalize(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """Give up the last tier of which something is left, and keep those before it."""
        tiers = tuple(_tiers(spec_of(cr, ThreeTierAppSpec), ctx))
        left = [tier for tier in tiers if _is_left(tier, owned)]
        kept = tuple(child for tier in left[:-1] for child in tier.children if _live(child, owned))
        going = left[-1].name if left else "nothing"
        return Outcome(
            children=kept,
            untouched=tuple(key_of(child) for child in kept),
            status={
                "tiers": [
                    {"name": tier.name, "health": "Terminating" if tier is left[-1] else "Current", "message": ""}
                    for tier in left
                ]
            },
            conditions=(
                Condition("Ready", "False", "Deleting", f"{going} goes next" if left else "everything is gone"),
            ),
            finalized=not left,
        )


def _tiers(spec: ThreeTierAppSpec, ctx: Context) -> Iterator[Tier]:
    base, back, front = spec.database, spec.backend, spec.frontend
    yield Tier(
        "database",
        (
            service(ctx, "database", port=base.port, headless=True),
            stateful_set(
                ctx, "database", replicas=base.replicas, containers=[container("database", base.image, port=base.port)]
            ),
        ),
    )
    env = {"DATABASE_HOST": ctx.name("database"), "DATABASE_PORT": str(base.port)}
    if spec.cache is not None:
        yield Tier("cache", (_cache(spec.cache, ctx),))
        env["CACHE_HOST"] = ctx.name("cache")
    yield _stateless("backend", back, env, ctx)
    yield _stateless("frontend", front, {"BACKEND_URL": f"http://{ctx.name('backend')}:{back.port}"}, ctx)


def _stateless(name: str, spec: TierSpec, env: dict[str, str], ctx: Context) -> Tier:
    containers = [container(name, spec.image, port=spec.port, env=env)]
    return Tier(
        name,
        (service(ctx, name, port=spec.port), deployment(ctx, name, replicas=spec.replicas, containers=containers)),
    )


def _cache(spec: CacheSpec, ctx: Context) -> Manifest:
    return {
        "apiVersion": _MEMCACHED,
        "kind": "Memcached",
        "metadata": {"name": ctx.name("cache"), "labels": ctx.labels("cache")},
        "spec": {"size": spec.size},
    }


def _live(child: Manifest, owned: Owned) -> Manifest | None:
    return owned.get(child["kind"], child["metadata"]["name"])


def _health(tier: Tier, owned: Owned) -> Health:
    return health(_live(tier.main, owned))


def _is_left(tier: Tier, owned: Owned) -> bool:
    """Tell whether something of a tier is still there, even a pod that is terminating."""
    pods = (pod for pod in owned.read("Pod") if labels_of(pod).get(COMPONENT_LABEL) == tier.name)
    return any(_live(child, owned) for child in tier.children) or any(pods)


def _conditions(found: dict[str, Health]) -> Iterator[Condition]:
    failed = next((f"{name}: {one.message}" for name, one in found.items() if one.status is HealthStatus.FAILED), "")
    waiting = next((f"{name}: {one.message}" for name, one in found.items() if one.status.holds_up), "")
    if not waiting:
        yield Condition("Ready", "True", "TiersReady", f"all {len(found)} tiers are ready")
        yield Condition("Progressing", "False", "TiersReady")
    else:
        yield Condition("Ready", "False", "TierNotReady", waiting)
        yield Condition(
            "Progressing", "False" if failed else "True", "TierFailed" if failed else "TierNotReady", waiting
        )
    if failed:
        yield Condition("Degraded", "True", "TierFailed", failed)
