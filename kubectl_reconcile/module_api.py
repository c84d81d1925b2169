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
- what it returns: `Outcome`, `Condition`, `Action`, `in_turn`, `key_of`; children that stay as they are: `named`, `untouched_in`; a status that stays: `kept_status`, and what to say while nobody answers: `unobserved`; which actions have run by now: `actions_done`, and which failed: `actions_failed`;
- reading a spec into a dataclass: `spec_of`, `Between`, `SpecError`;
- common children and their pods: `container`, `deployment`, `stateful_set`, `service`, `restricted_pod`, `restricted_container`, `spread_over_nodes`, `available`, `is_alive`, `is_ready`, `awaits_node`, `first_variables`;
- volumes: `VolumeWish` with `bytes_of` and `would_shrink`, `volume_claim`, and those that an earlier custom resource of the name left: `volumes_left`;
- Jobs by their pods: `pods_of_job`, `container_states`, `why_waiting`, `last_words`, `shortened`;
- backups by Jobs: `BackupStorage` with `backup_claim`, `BackupPlan` with `Every`, `due`, `Due`, `look_again_s`, `slot_suffix`, `with_missed`, `why_missed`; what happened to them: `runs_of`, `BackupRun`, `BackupProgress`, `BackupWords`, `kept`, `last_lines`, `last_success`;
- moments and schedules: `CronSchedule` with `ScheduleError` and `ZoneError`, that of a spec by `schedule_of` or `schedule_if_any`, `latest_slot`, `later`, `seconds_between`;
- asking in CEL: `CelTest` of a value of a `CelSize`, with `CelError`, `CelFault`;
- security scans: `findings_among`, or those of a `ScanMemory` that knows what hasn't changed, by `ScanRules` (`ScanRulesError`), each a `ScanFinding` of a `ScanSeverity`, in the kinds that are `SCANNED`;
- reports: `report_of` a `ReportScope`, from kinds that are `REPORTED`, and `markdown_of` one, or `report_texts` that are no longer than they may be; how healthy a Checkup is: `CHECKUP_HEALTH`;
- certificates that a module issues itself: `CertificateKind`, `CertificateKinds`, `CertificateTerms`, with `OwnTls` by `own_tls_of`, the Secrets by `secret_names`, each in a `SecretState`; what is to be done by `certificate_steps` for those `Trusting`, what follows by `after_issuing`, what to tell by `renewals_told`; `trust_of`, `CertificateDo`, `CertificateAim`, `AUTHORITY`, `BACKDATED_S`, `RENEWING`;
- what Secrets of people are worth: `SECRET_OK`, `SECRET_ABSENT`, `SECRET_EXPIRED`, `password_worth`;
- what our own Jobs run: `IMAGE`; S3 as their place to write to: `S3Place` with `s3_place`, `check_s3`, `s3_arguments`, `s3_environment`, `s3_volumes`, `s3_mounts`, `s3_hinted`;
- reading live objects of any shape: `health`, `Health`, `HealthStatus`, `condition_of`, `has_condition`, `labels_of`, `annotations_of`, `map_at`, `maps_in`, `text_at`, and the names of labels.

Tests of modules import `kubectl_reconcile.module_testing` besides. All else may change at any time.

Pure: a module that imports nothing but this and the standard library's pure parts can't do I/O by accident.
"""

from __future__ import annotations

from kubectl_reconcile import IMAGE
from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.checkup_policy import CHECKUP_HEALTH
from kubectl_reconcile.core.health.cel_cost import Size as CelSize
from kubectl_reconcile.core.health.cel_tests import CelError, CelFault, CelTest
from kubectl_reconcile.core.health.kstatus import Health, HealthStatus, health
from kubectl_reconcile.core.module.action_journal import actions_done, actions_failed
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
from kubectl_reconcile.core.module.backups.runs import (
    BackupProgress,
    BackupRun,
    BackupWords,
    kept,
    last_lines,
    last_success,
    runs_of,
)
from kubectl_reconcile.core.module.backups.s3 import (
    S3Place,
    check_s3,
    s3_arguments,
    s3_environment,
    s3_hinted,
    s3_mounts,
    s3_place,
    s3_volumes,
)
from kubectl_reconcile.core.module.backups.slots import (
    BackupPlan,
    Due,
    Every,
    due,
    look_again_s,
    slot_suffix,
    why_missed,
    with_missed,
)
from kubectl_reconcile.core.module.backups.storage import BackupStorage, backup_claim
from kubectl_reconcile.core.module.certifying.decision import (
    BACKDATED_S,
    RENEWING,
    CertificateAim,
    CertificateDo,
    Trusting,
    certificate_steps,
    renewals_told,
)
from kubectl_reconcile.core.module.certifying.given import SECRET_ABSENT, SECRET_EXPIRED, SECRET_OK, password_worth
from kubectl_reconcile.core.module.certifying.outlook import after_issuing
from kubectl_reconcile.core.module.certifying.state import (
    AUTHORITY,
    CertificateKind,
    CertificateKinds,
    CertificateTerms,
    OwnTls,
    SecretState,
    own_tls_of,
    secret_names,
    trust_of,
)
from kubectl_reconcile.core.module.inputs import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    Context,
    Facts,
    Owned,
    Reads,
    Select,
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
    ScheduleError,
    ZoneError,
    later,
    latest_slot,
    schedule_if_any,
    schedule_of,
    seconds_between,
)
from kubectl_reconcile.core.module.specs import Between, SpecError, spec_of
from kubectl_reconcile.core.module.volumes import VolumeWish, bytes_of, volume_claim, volumes_left, would_shrink
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
from kubectl_reconcile.core.report.fitting import report_texts
from kubectl_reconcile.core.report.markdown import markdown_of
from kubectl_reconcile.core.scan.findings import ScanFinding, ScanSeverity
from kubectl_reconcile.core.scan.memory import ScanMemory
from kubectl_reconcile.core.scan.namespace import SCANNED, findings_among
from kubectl_reconcile.core.scan.rules import ScanRules, ScanRulesError

__all__ = [
    "AUTHORITY",
    "BACKDATED_S",
    "CHECKUP_HEALTH",
    "COMPONENT_LABEL",
    "IMAGE",
    "INSTANCE_LABEL",
    "MANAGED_BY_LABEL",
    "MODULE_LABEL",
    "MOST_NESTED",
    "NAME_LABEL",
    "RENEWING",
    "REPORTED",
    "SCANNED",
    "SECRET_ABSENT",
    "SECRET_EXPIRED",
    "SECRET_OK",
    "Action",
    "Answer",
    "BackupPlan",
    "BackupProgress",
    "BackupRun",
    "BackupStorage",
    "BackupWords",
    "Between",
    "CelError",
    "CelFault",
    "CelSize",
    "CelTest",
    "CertificateAim",
    "CertificateDo",
    "CertificateKind",
    "CertificateKinds",
    "CertificateTerms",
    "Condition",
    "Context",
    "CronSchedule",
    "Due",
    "Every",
    "Facts",
    "Health",
    "HealthStatus",
    "Io",
    "Manifest",
    "Module",
    "Outcome",
    "OwnTls",
    "Owned",
    "PodIo",
    "PodStream",
    "PodTls",
    "Reads",
    "ReportScope",
    "S3Place",
    "ScanFinding",
    "ScanMemory",
    "ScanRules",
    "ScanRulesError",
    "ScanSeverity",
    "ScheduleError",
    "SecretState",
    "SeenSecret",
    "Select",
    "SilentPodError",
    "SpecError",
    "Trusting",
    "VolumeWish",
    "ZoneError",
    "actions_done",
    "actions_failed",
    "after_issuing",
    "annotations_of",
    "available",
    "awaits_node",
    "backup_claim",
    "bytes_of",
    "certificate_steps",
    "check_s3",
    "condition_of",
    "container",
    "container_states",
    "deployment",
    "due",
    "findings_among",
    "first_variables",
    "has_condition",
    "health",
    "in_turn",
    "is_alive",
    "is_ready",
    "kept",
    "kept_status",
    "key_of",
    "labels_of",
    "last_lines",
    "last_success",
    "last_words",
    "later",
    "latest_slot",
    "look_again_s",
    "map_at",
    "maps_in",
    "markdown_of",
    "module",
    "named",
    "own_tls_of",
    "password_worth",
    "pods_of_job",
    "renewals_told",
    "report_of",
    "report_texts",
    "restricted_container",
    "restricted_pod",
    "runs_of",
    "s3_arguments",
    "s3_environment",
    "s3_hinted",
    "s3_mounts",
    "s3_place",
    "s3_volumes",
    "schedule_if_any",
    "schedule_of",
    "seconds_between",
    "secret_names",
    "service",
    "shortened",
    "slot_suffix",
    "spec_of",
    "spread_over_nodes",
    "stateful_set",
    "text_at",
    "trust_of",
    "unobserved",
    "untouched_in",
    "volume_claim",
    "volumes_left",
    "why_missed",
    "why_waiting",
    "with_missed",
    "would_shrink",
]
