"""What the daemon counts, for Prometheus.

One registry per daemon, so that two in one process (as in tests) don't share counts. Names and labels are a promise to
dashboards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

import kubectl_reconcile

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class PassMetrics(Struct, frozen=True):
    """Passes over Syncs and CRs, and what modules take of them."""

    count: Counter
    seconds: Histogram
    module_seconds: Histogram

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Counter(
                "reconcile_passes",
                "Passes over a Sync or a custom resource, by the resulting reason of the condition Ready",
                ["kind", "reason"],
                registry=here,
            ),
            Histogram("reconcile_pass_seconds", "How long passes took", ["kind"], buckets=_SECONDS, registry=here),
            Histogram(
                "reconcile_module_seconds", "How long modules took for one custom resource", ["module"],
                buckets=_SECONDS, registry=here,
            ),
        )  # fmt: skip


class WriteMetrics(Struct, frozen=True):
    """What is written, and what of it corrects drift."""

    changes: Counter
    drift: Counter

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Counter("reconcile_changes", "Objects written, by operation", ["op"], registry=here),
            Counter("reconcile_drift", "Objects whose drift was corrected, by kind", ["kind"], registry=here),
        )


class SourceMetrics(Struct, frozen=True):
    """Repositories that are checked for new commits, and Git servers that are asked."""

    polls: Counter
    pushes: Counter

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Counter("reconcile_polls", "How often a repository was checked for new commits, by answer: unchanged, news, failed", ["answer"], registry=here),
            Counter(
                "reconcile_pushes", "Push notifications of Git servers, by the HTTP status they were answered with", ["status"],
                registry=here,
            ),
        )  # fmt: skip


class LaneMetrics(Struct, frozen=True):
    """Jobs that ask Git servers, by lane."""

    waiting: Gauge
    running: Gauge
    seconds: Histogram
    broken_off: Counter

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Gauge("reconcile_git_waiting", "Syncs that are waiting to ask a Git server; the lane is quick or slow", ["lane"], registry=here),
            Gauge("reconcile_git_running", "Syncs whose Git server is being asked", ["lane"], registry=here),
            Histogram(
                "reconcile_git_wait_seconds", "How long Syncs waited before they could ask a Git server", ["lane"],
                buckets=_SECONDS, registry=here,
            ),
            Counter(
                "reconcile_git_broken_off", "Requests to a slow Git server that were stopped to make room for others; they are retried",
                registry=here,
            ),
        )  # fmt: skip


class ContentionMetrics(Struct, frozen=True):
    """Fields left to other managers."""

    backoffs: Counter
    fields: Gauge

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Counter(
                "reconcile_backoffs", "How often a field was left to another manager that kept overwriting it",
                ["kind", "manager"], registry=here,
            ),
            Gauge("reconcile_backed_off_fields", "Fields that are currently left to other managers", registry=here),
        )  # fmt: skip


class ShardMetrics(Struct, frozen=True):
    """Who shares the work, and what of it is ours."""

    members: Gauge
    items: Gauge

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Gauge("reconcile_replicas", "Replicas that share the work, as this one sees it", registry=here),
            Gauge("reconcile_owned_items", "Syncs and custom resources that this replica works on", registry=here),
        )


class QueueMetrics(Struct, frozen=True):
    """What waits, and how long."""

    depth: Gauge
    seconds: Histogram

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Gauge("reconcile_queue_depth", "Syncs and custom resources that are waiting for a pass", registry=here),
            Histogram(
                "reconcile_queue_seconds",
                "How long Syncs and custom resources waited for a due pass, by the reason for the pass",
                ["priority"], buckets=_SECONDS, registry=here,
            ),
        )  # fmt: skip


class ClusterMetrics(Struct, frozen=True):
    """What the API server is asked, and what is held of its answers."""

    requests: Counter
    objects: Gauge

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Counter(
                "reconcile_api_requests", "Requests to the API server, by verb and status (0: no answer)",
                ["verb", "code"], registry=here,
            ),
            Gauge(
                "reconcile_cached_objects",
                "Live objects in caches: whole, or bare (name and version) if another replica works on them",
                ["held"], registry=here,
            ),
        )  # fmt: skip


class HealthMetrics(Struct, frozen=True):
    """How members are."""

    members: Gauge

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        return cls(
            Gauge(
                "reconcile_members", "Members of this replica's Syncs, by verdict of health", ["health"], registry=here
            )
        )


class LoopMetrics(Struct, frozen=True):
    """How the event loop turns, in which everything happens."""

    blocked: Histogram

    @classmethod
    def at(cls, here: CollectorRegistry) -> Self:
        """Register them."""
        blocked = Histogram(
            "reconcile_loop_blocked_seconds", "How long the event loop was blocked (50 ms or more), by the file that blocked it", ["place"],
            buckets=_SECONDS, registry=here,
        )  # fmt: skip
        return cls(blocked)


@dataclass(slots=True)
class Metrics:
    """The daemon's metrics, by what they are about."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    passes: PassMetrics = field(init=False)
    writes: WriteMetrics = field(init=False)
    sources: SourceMetrics = field(init=False)
    lanes: LaneMetrics = field(init=False)
    contention: ContentionMetrics = field(init=False)
    shard: ShardMetrics = field(init=False)
    queue: QueueMetrics = field(init=False)
    cluster: ClusterMetrics = field(init=False)
    health: HealthMetrics = field(init=False)
    loop: LoopMetrics = field(init=False)

    def __post_init__(self) -> None:
        """Register all metrics."""
        here = self.registry
        self.passes, self.writes, self.sources = PassMetrics.at(here), WriteMetrics.at(here), SourceMetrics.at(here)
        self.lanes = LaneMetrics.at(here)
        self.contention, self.shard = ContentionMetrics.at(here), ShardMetrics.at(here)
        self.health = HealthMetrics.at(here)
        self.queue, self.cluster = QueueMetrics.at(here), ClusterMetrics.at(here)
        self.loop = LoopMetrics.at(here)
        build = Gauge("reconcile_build_info", "Always 1; the label is the version", ["version"], registry=here)
        build.labels(kubectl_reconcile.__version__).set(1)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
