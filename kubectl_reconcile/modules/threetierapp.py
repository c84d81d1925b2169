"""ThreeTierApp: a database, a backend and a frontend, each made once what it builds on is ready.

The *tiers*, in order: the database (a StatefulSet and its headless Service, or a ``MyDatabase``, whose own module runs
PostgreSQL), the cache where one is asked for (a ``Memcached``, whose own module makes its Deployment), the backend and the
frontend (a Deployment and a Service each). The backend is told by environment variables where the others are; a
``MyDatabase`` has a database and a user for it, whose password it gets from the Secret that the ``MyDatabase`` makes.

A tier is changed once all tiers before it are as the spec asks and healthy; what already exists stays
meanwhile. Deleting goes the other way: a tier goes once nothing is left of those behind it, pods included.

Conditions: ``Ready`` (every tier is), ``Progressing``, and ``Degraded``, which names the first tier that has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

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
    SpecError,
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
_MY_DATABASE = "example.com/v1alpha1"
_POSTGRES_PORT, _INSTANCES_MAX = 5432, 7
_USER = "app"
"""The backend's user, and its database, in a ``MyDatabase``."""


@dataclass(frozen=True, slots=True)
class TierSpec:
    """One stateless tier."""

    image: str
    replicas: Annotated[int, Between(0, 100)] = 1
    port: Annotated[int, Between(1, 65535)] = 8080


@dataclass(frozen=True, slots=True)
class DatabaseStorage:
    """The volume of each instance of a ``MyDatabase``. An empty class is the cluster's default."""

    size: str
    storage_class_name: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """The database tier: a StatefulSet of *image*, or a ``MyDatabase`` of a *version* with *storage*."""

    image: str = ""
    replicas: Annotated[int, Between(1, 9)] = 1
    port: Annotated[int, Between(1, 65535)] = _POSTGRES_PORT
    engine: Literal["StatefulSet", "MyDatabase"] = "StatefulSet"
    version: int | None = None
    storage: DatabaseStorage | None = None


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
    owns=[
        "apps/v1/Deployment",
        "apps/v1/StatefulSet",
        "v1/Service",
        f"{_MEMCACHED}/Memcached",
        f"{_MY_DATABASE}/MyDatabase",
    ],
    reads=[Reads("v1", "Pod", selector="reconcile.dev/module=threetierapp")],
)
class ThreeTierApp:
    """Run a database, perhaps a cache, a backend and a frontend, each once those before it are ready.

    Deleting the app goes the other way: the frontend first, the database last.
    """

    def reconcile(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """Want all tiers, each after those before it."""
        tiers = tuple(_tiers(_spec(cr), ctx))
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
        tiers = tuple(_tiers(_spec(cr), ctx))
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


def _spec(cr: Manifest) -> ThreeTierAppSpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, ThreeTierAppSpec)
    _check(spec.database)
    return spec


def _check(database: DatabaseSpec) -> None:
    where, given = ".spec.database", {"version": database.version, "storage": database.storage}
    if database.engine == "StatefulSet":
        if not database.image:
            raise SpecError(f"{where}.image", "is required, unless .spec.database.engine is MyDatabase")
        for name, value in given.items():
            if value is not None:
                raise SpecError(f"{where}.{name}", "can be set only where .spec.database.engine is MyDatabase")
        return
    for name, value in given.items():
        if value is None:
            raise SpecError(f"{where}.{name}", "is required where .spec.database.engine is MyDatabase")
    if database.port != _POSTGRES_PORT:
        raise SpecError(f"{where}.port", f"must be {_POSTGRES_PORT}, where a MyDatabase listens, not {database.port}")
    if database.replicas > _INSTANCES_MAX:
        raise SpecError(
            f"{where}.replicas",
            f"must be at most {_INSTANCES_MAX}, as many as a MyDatabase runs, not {database.replicas}",
        )


def _tiers(spec: ThreeTierAppSpec, ctx: Context) -> Iterator[Tier]:
    back, front = spec.backend, spec.frontend
    yield Tier("database", _database(spec.database, ctx))
    env = _database_env(spec.database, ctx)
    if spec.cache is not None:
        yield Tier("cache", (_cache(spec.cache, ctx),))
        env.append({"name": "CACHE_HOST", "value": ctx.name("cache")})
    yield _stateless("backend", back, env, ctx)
    url = f"http://{ctx.name('backend')}:{back.port}"
    yield _stateless("frontend", front, [{"name": "BACKEND_URL", "value": url}], ctx)


def _database(spec: DatabaseSpec, ctx: Context) -> tuple[Manifest, ...]:
    if spec.engine == "MyDatabase":
        return (_my_database(spec, ctx),)
    containers = [container("database", spec.image, port=spec.port)]
    return (
        service(ctx, "database", port=spec.port, headless=True),
        stateful_set(ctx, "database", replicas=spec.replicas, containers=containers),
    )


def _my_database(spec: DatabaseSpec, ctx: Context) -> Manifest:
    return {
        "apiVersion": _MY_DATABASE,
        "kind": "MyDatabase",
        "metadata": {"name": ctx.name("database"), "labels": ctx.labels("database")},
        "spec": {
            "version": spec.version,
            "replicas": spec.replicas,
            "storage": _storage(spec.storage) if spec.storage else {},
            **({"image": spec.image} if spec.image else {}),
            "users": [{"name": _USER}],
            "databases": [{"name": _USER, "owner": _USER}],
        },
    }


def _storage(wanted: DatabaseStorage) -> dict[str, str]:
    named = {"storageClassName": wanted.storage_class_name} if wanted.storage_class_name else {}
    return {"size": wanted.size, **named}


def _database_env(spec: DatabaseSpec, ctx: Context) -> list[dict[str, Any]]:
    """Return what tells the backend where the database is and, in a ``MyDatabase``, its user there."""
    host = ctx.name("database")
    env: list[dict[str, Any]] = [
        {"name": "DATABASE_HOST", "value": host},
        {"name": "DATABASE_PORT", "value": str(spec.port)},
    ]
    if spec.engine == "MyDatabase":
        password = {"secretKeyRef": {"name": f"{host}-user-{_USER}", "key": "password"}}
        env += [
            {"name": "DATABASE_NAME", "value": _USER},
            {"name": "DATABASE_USER", "value": _USER},
            {"name": "DATABASE_PASSWORD", "valueFrom": password},
        ]
    return env


def _stateless(name: str, spec: TierSpec, env: list[dict[str, Any]], ctx: Context) -> Tier:
    containers = [{**container(name, spec.image, port=spec.port), "env": env}]
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
