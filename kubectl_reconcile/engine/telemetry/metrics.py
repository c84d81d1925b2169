"""What the daemon counts, for Prometheus.

One registry per daemon, so that two in one process (as in tests) don't share counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

import kubectl_reconcile

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


@dataclass(slots=True)
class Metrics:
    """The daemon's metrics; names and labels are a promise to dashboards."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    passes: Counter = field(init=False)
    pass_seconds: Histogram = field(init=False)
    changes: Counter = field(init=False)
    drift: Counter = field(init=False)
    polls: Counter = field(init=False)
    pushes: Counter = field(init=False)
    backoffs: Counter = field(init=False)
    backed_off: Gauge = field(init=False)
    module_seconds: Histogram = field(init=False)
    requests: Counter = field(init=False)
    members: Gauge = field(init=False)
    held: Gauge = field(init=False)
    queue: Gauge = field(init=False)
    queue_seconds: Histogram = field(init=False)
    objects: Gauge = field(init=False)

    def __post_init__(self) -> None:
        """Register all metrics."""
        here = self.registry
        self.passes = Counter(
            "reconcile_passes",
            "Passes over a Sync or a CR, by the reason of the condition Ready that they end with",
            ["kind", "reason"],
            registry=here,
        )
        self.pass_seconds = Histogram(
            "reconcile_pass_seconds", "How long passes took", ["kind"], buckets=_SECONDS, registry=here
        )
        self.changes = Counter("reconcile_changes", "Objects written, by operation", ["op"], registry=here)
        self.drift = Counter("reconcile_drift", "Drifted objects put back, by kind", ["kind"], registry=here)
        self.polls = Counter(
            "reconcile_polls", "Times a repository was asked for news, by answer", ["answer"], registry=here
        )
        self.pushes = Counter(
            "reconcile_pushes", "Times a Git server told of a push, by the answer's status", ["status"], registry=here
        )
        self.module_seconds = Histogram(
            "reconcile_module_seconds", "How long modules took for one CR", ["module"], buckets=_SECONDS, registry=here
        )
        self.requests = Counter(
            "reconcile_api_requests", "Requests to the API server, by verb and status (0: no answer)",
            ["verb", "code"], registry=here,
        )  # fmt: skip
        self.members = Gauge("reconcile_replicas", "Daemons that share the work, as this one sees it", registry=here)
        self.held = Gauge("reconcile_owned_items", "Syncs and CRs that are this replica's", registry=here)
        self.queue = Gauge("reconcile_queue_depth", "Items waiting to be looked at", registry=here)
        self.backoffs = Counter(
            "reconcile_backoffs", "Times a field was left to another manager that kept overwriting it",
            ["kind", "manager"], registry=here,
        )  # fmt: skip
        self.backed_off = Gauge("reconcile_backed_off_fields", "Fields left to other managers now", registry=here)
        self.queue_seconds = Histogram(
            "reconcile_queue_seconds", "How long items that were due waited for their turn, by why they are looked at",
            ["priority"], buckets=_SECONDS, registry=here,
        )  # fmt: skip
        self.objects = Gauge("reconcile_cached_objects", "Live objects held in caches", registry=here)
        build = Gauge("reconcile_build_info", "Always 1; the label is the version", ["version"], registry=here)
        build.labels(kubectl_reconcile.__version__).set(1)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
