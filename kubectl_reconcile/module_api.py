"""What authors of domain modules import: the one public place, stable within a major version.

A *module* owns one kind of custom resource (CR). Its ``reconcile(cr, owned, facts, ctx)`` is a pure function: it is given the
CR, the live objects around it, facts about external systems, and a context (the time, names, labels); it returns an *outcome*: the
children that must exist, the status to report, and actions on external systems as data::

    from kubectl_reconcile.module_api import Context, Facts, Manifest, Outcome, Owned, deployment, container, module

    @module(api="cache.example.com/v1alpha1", kind="Memcached", owns=["apps/v1/Deployment"])
    def memcached(cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        pods = [container("main", "memcached:1.6.39-alpine", port=11211)]
        return Outcome(children=(deployment(ctx, "", replicas=cr["spec"]["size"], containers=pods),))

What stands here:

- declaring a module: `module`, `Module`, `Reads`, `Select`;
- what it is given: `Manifest`, `Owned`, `Facts`, `Context`, and for ``observe`` and ``act`` `Io` with its `Answer`, and for pods of its own `PodIo`, `PodStream`, `PodTls`, `SilentPodError`, and for Secrets of its own `SeenSecret`;
- what it returns: `Outcome`, `Condition`, `Action`, `in_turn`, `key_of`; children that stay as they are: `named`, `untouched_in`; a status that stays: `kept_status`, and what to say while nobody answers: `unobserved`; which actions have run by now: `actions_done`, or may have: `actions_begun`, and which failed: `actions_failed`;
- reading a spec into a dataclass: `spec_of`, `Between`, `SpecError`;
- common children and their pods: `container`, `deployment`, `stateful_set`, `service`, `restricted_pod`, `restricted_container`, `spread_over_nodes`, `available`, `is_alive`, `is_ready`, `awaits_node`, `first_variables`;
- volume claims that an earlier custom resource of the name left: `volumes_left`;
- Jobs by their pods: `pods_of_job`, `container_states`, `why_waiting`, `last_words`, `shortened`;
- moments and schedules: `CronSchedule` with `ScheduleError` and `ZoneError`, that of a spec by `schedule_of` or `schedule_if_any`, or `Every` so many seconds; `latest_slot`, `slot_suffix`, `later`, `seconds_between`;
- asking in CEL: `CelTest` of a value of a `CelSize`, with `CelError`, `CelFault`;
- security scans: `findings_among`, or those of a `ScanMemory` that knows what hasn't changed, by `ScanRules` (`ScanRulesError`), each a `ScanFinding` of a `ScanSeverity`, in the kinds that are `SCANNED`;
- reports: `report_of` a `ReportScope`, from kinds that are `REPORTED`, and `markdown_of` one, or `report_texts` that are no longer than they may be; how healthy a Checkup is: `CHECKUP_HEALTH`;
- what our own Jobs run: `IMAGE`;
- reading live objects of any shape: `health`, `Health`, `HealthStatus`, `condition_of`, `has_condition`, `labels_of`, `annotations_of`, `map_at`, `maps_in`, `text_at`, and the names of labels.

Tests of modules import `kubectl_reconcile.module_testing` besides. All else may change at any time.

Pure: a module that imports nothing but this and the standard library's pure parts can't do I/O by accident.
"""

from __future__ import annotations

from kubectl_reconcile import IMAGE
from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.checkups import CHECKUP_HEALTH
from kubectl_reconcile.core.health.cel_cost import Size as CelSize
from kubectl_reconcile.core.health.cel_tests import CelError, CelFault, CelTest
from kubectl_reconcile.core.health.judge import Health, HealthStatus, health
from kubectl_reconcile.core.module.action_journal import actions_begun, actions_done, actions_failed
from kubectl_reconcile.core.module.api import (
    Answer,
    Io,
    Module,
    PodIo,
    PodStream,
    PodTls,
    SeenSecret,
    SilentPodError,
    module,
)
from kubectl_reconcile.core.module.inputs import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    Context,
    Facts,
    Keeps,
    Owned,
    Reads,
    Select,
    volumes_left,
)
from kubectl_reconcile.core.module.jobs import (
    MOST_NESTED,
    container_states,
    last_words,
    pods_of_job,
    shortened,
    why_waiting,
)
from kubectl_reconcile.core.module.outcome import (
    Action,
    Outcome,
    in_turn,
    kept_status,
    key_of,
    named,
    unobserved,
    untouched_in,
)
from kubectl_reconcile.core.module.schedules import (
    CronSchedule,
    Every,
    ScheduleError,
    ZoneError,
    later,
    latest_slot,
    schedule_if_any,
    schedule_of,
    seconds_between,
    slot_suffix,
)
from kubectl_reconcile.core.module.specs import Between, SpecError, spec_of
from kubectl_reconcile.core.module.workloads import (
    available,
    awaits_node,
    container,
    deployment,
    first_variables,
    is_alive,
    is_ready,
    restricted_container,
    restricted_pod,
    service,
    spread_over_nodes,
    stateful_set,
)
from kubectl_reconcile.core.objects import (
    Condition,
    Manifest,
    annotations_of,
    condition_of,
    has_condition,
    labels_of,
    map_at,
    maps_in,
    text_at,
)
from kubectl_reconcile.core.report.contents import REPORTED, ReportScope, report_of
from kubectl_reconcile.core.report.writing import markdown_of, report_texts
from kubectl_reconcile.core.scan.findings import ScanFinding, ScanSeverity
from kubectl_reconcile.core.scan.memory import ScanMemory
from kubectl_reconcile.core.scan.namespace import SCANNED, findings_among
from kubectl_reconcile.core.scan.rules import ScanRules, ScanRulesError

__all__ = [
    "CHECKUP_HEALTH",
    "COMPONENT_LABEL",
    "IMAGE",
    "INSTANCE_LABEL",
    "MANAGED_BY_LABEL",
    "MODULE_LABEL",
    "MOST_NESTED",
    "NAME_LABEL",
    "REPORTED",
    "SCANNED",
    "Action",
    "Answer",
    "Between",
    "CelError",
    "CelFault",
    "CelSize",
    "CelTest",
    "Condition",
    "Context",
    "CronSchedule",
    "Every",
    "Facts",
    "Health",
    "HealthStatus",
    "Io",
    "Keeps",
    "Manifest",
    "Module",
    "Outcome",
    "Owned",
    "PodIo",
    "PodStream",
    "PodTls",
    "Reads",
    "ReportScope",
    "ScanFinding",
    "ScanMemory",
    "ScanRules",
    "ScanRulesError",
    "ScanSeverity",
    "ScheduleError",
    "SeenSecret",
    "Select",
    "SilentPodError",
    "SpecError",
    "ZoneError",
    "actions_begun",
    "actions_done",
    "actions_failed",
    "annotations_of",
    "available",
    "awaits_node",
    "condition_of",
    "container",
    "container_states",
    "deployment",
    "findings_among",
    "first_variables",
    "has_condition",
    "health",
    "in_turn",
    "is_alive",
    "is_ready",
    "kept_status",
    "key_of",
    "labels_of",
    "last_words",
    "later",
    "latest_slot",
    "map_at",
    "maps_in",
    "markdown_of",
    "module",
    "named",
    "pods_of_job",
    "report_of",
    "report_texts",
    "restricted_container",
    "restricted_pod",
    "schedule_if_any",
    "schedule_of",
    "seconds_between",
    "service",
    "shortened",
    "slot_suffix",
    "spec_of",
    "spread_over_nodes",
    "stateful_set",
    "text_at",
    "unobserved",
    "untouched_in",
    "volumes_left",
    "why_waiting",
]
