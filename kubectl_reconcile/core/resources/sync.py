"""The Sync: one repository path followed into one cluster, as its users write it.

The CRD refuses nonsense at admission; this view refuses it again, since a CRD may be older
than the program and ``sync -f`` never passes through admission.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import APPROVED_PLAN, SYNC_REQUESTED_AT, origin_of_members
from kubectl_reconcile.core.health.cel_rules import GENERAL, HealthRules, Rule, RuleError
from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.objects import (
    API_GROUP,
    DEFAULT_ACCOUNT,
    FIELD_MANAGER,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    Problem,
    account_user,
    annotations_of,
)
from kubectl_reconcile.core.resources.fields import SyncSpecError, duration_s, one_of
from kubectl_reconcile.core.resources.source import SourceSpec, former_fields
from kubectl_reconcile.core.selector import Selector
from kubectl_reconcile.core.ssa.csa_upgrade import KNOWN_TOOLS, TakeOver
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom, IgnoreRule, IgnoreTarget
from kubectl_reconcile.core.ssa.merge import ConflictPolicy

SYNC = GroupVersionKind(API_GROUP, "v1alpha1", "Sync")
"""The kind of the Sync at the version that this program speaks."""

CONTENDED = "Contended"
"""The condition that names fields which somebody else keeps overwriting, on Syncs and on CRs."""

_LONGEST_MANAGER = 128  # as the server has it
_LONGEST_NAME = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class DeleteLimit(Struct, frozen=True):
    """``spec.maxDeletes``: how many objects one sync may delete before it holds and asks.

    Unset, it is ten objects or a fifth of the set, whichever is more: a slip of the hand
    in a small set goes through, an emptied folder doesn't. A set is its members and what goes with them.
    """

    number: int | None = None
    percent: int | None = None

    def allows(self, deletes: int, extent: int) -> bool:
        """Tell whether *deletes* out of a set of *extent* objects may go without asking."""
        if self.number is not None:
            return deletes <= self.number
        if self.percent is not None:
            return deletes * 100 <= extent * self.percent
        return deletes <= max(10, extent // 5)


DEFAULT_LIMIT: Final = DeleteLimit()
"""That of most Syncs, which share it."""


class DriftPolicy(StrEnum):
    """``spec.drift``: what happens when somebody changes a member in the cluster."""

    CORRECT = "Correct"
    """It is corrected at once."""
    REPORT = "Report"
    """It is told, and left alone until Git changes the object or a person syncs."""
    ASK = "Ask"
    """It is told, and a person must sync; until then the Sync isn't Ready."""


class ApprovalPolicy(StrEnum):
    """``spec.approval``: whether a person lets each new revision through."""

    NEVER = "Never"
    """It is applied as soon as it is there."""
    ALWAYS = "Always"
    """It waits for an approval; until then the cluster stays as it is."""


class Dependency(Struct, frozen=True):
    """One entry of ``spec.dependsOn``: a Sync to be waited for, and what must be true of it besides being Ready."""

    ref: ObjectRef
    rule: Rule | None = None

    def lack(self, live: Manifest) -> str:
        """Return what of the expression isn't true of the Sync yet; empty where all is."""
        found = self.rule.judge(live) if self.rule else None
        return "" if found is None or found.status is HealthStatus.CURRENT else found.message


class DeletionPolicy(StrEnum):
    """``spec.deletionPolicy``: what happens to the members of a Sync that is deleted."""

    PRUNE = "Prune"
    """They are deleted before it goes."""
    ORPHAN = "Orphan"
    """They stay, and belong to nobody."""


class Sync(Struct, frozen=True):
    """Everything that a Sync asks for, with defaults filled in; *former_fields* tell what of it stands where earlier versions had it."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    source: SourceSpec | None = None
    suspend: bool = False
    prune: bool = True
    conflicts: ConflictPolicy = ConflictPolicy.OVERRIDE
    ignore: tuple[IgnoreRule, ...] = ()
    max_deletes: DeleteLimit = DEFAULT_LIMIT
    target_namespace: str = ""
    create_namespace: bool = False
    field_manager: str = FIELD_MANAGER
    take_over: TakeOver = KNOWN_TOOLS
    service_account: str = DEFAULT_ACCOUNT
    timeout_s: float = 300.0
    replace: bool = False
    atomic: bool = False
    health: HealthRules = GENERAL
    waits_for_health: bool = True
    drift: DriftPolicy = DriftPolicy.CORRECT
    deletion: DeletionPolicy = DeletionPolicy.ORPHAN
    approval: ApprovalPolicy = ApprovalPolicy.NEVER
    depends_on: tuple[Dependency, ...] = ()
    requested_at: str = ""
    approved_plan: str = ""
    members_from: ObjectRef | None = None
    former_fields: tuple[Problem, ...] = ()

    @property
    def ref(self) -> ObjectRef:
        """The reference of the Sync object itself."""
        return ObjectRef(SYNC.group, SYNC.kind, self.namespace, self.name)

    @property
    def account(self) -> str:
        """The user as whom everything is done for the members: a ServiceAccount of the Sync's namespace."""
        return account_user(self.namespace, self.service_account)

    @property
    def default_namespace(self) -> str:
        """Where namespaced objects without a namespace go."""
        return self.target_namespace or self.namespace

    def asked_no_sooner_than(self, least_s: float) -> Self:
        """Return the Sync with its repository checked for new commits after *least_s* at the earliest, whatever its interval is."""
        if self.source is None or self.source.interval_s >= least_s:
            return self
        return replace(self, source=replace(self.source, interval_s=least_s))

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Read a Sync from its wire form.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        try:
            return cls._read(manifest["metadata"], manifest.get("spec") or {}, annotations_of(manifest))
        except (TypeError, AttributeError, KeyError, IndexError) as error:
            # The CRD's schema refuses this, where it is the one of this program.
            raise SyncSpecError("spec", f"has a field of another type than its CRD asks for: {error}") from None

    @classmethod
    def _read(cls, metadata: Manifest, spec: Manifest, noted: Mapping[str, str]) -> Self:
        return cls(
            name=metadata["name"],
            namespace=metadata.get("namespace", ""),
            uid=metadata.get("uid", ""),
            generation=metadata.get("generation", 0),
            source=_source(spec),
            suspend=bool(spec.get("suspend", False)),
            prune=bool(spec.get("prune", True)),
            conflicts=_conflicts(spec),
            ignore=_ignore(spec),
            max_deletes=_max_deletes(spec),
            target_namespace=spec.get("targetNamespace", ""),
            create_namespace=bool(spec.get("createNamespace", False)),
            field_manager=_field_manager(spec),
            take_over=_take_over(spec),
            service_account=_service_account(spec),
            timeout_s=duration_s(spec.get("timeout", "5m"), "spec.timeout"),
            replace=bool(spec.get("replace", False)),
            atomic=bool(spec.get("atomic", False)),
            health=_health(spec),
            waits_for_health=bool((spec.get("health") or {}).get("wait", True)),
            drift=one_of(DriftPolicy, spec, "drift", DriftPolicy.CORRECT),
            approval=one_of(ApprovalPolicy, spec, "approval", ApprovalPolicy.NEVER),
            deletion=one_of(DeletionPolicy, spec, "deletionPolicy", DeletionPolicy.ORPHAN),
            depends_on=_depends_on(spec, metadata.get("namespace", "")),
            requested_at=noted.get(SYNC_REQUESTED_AT, ""),
            approved_plan=noted.get(APPROVED_PLAN, ""),
            members_from=origin_of_members(noted),
            former_fields=former_fields(spec.get("source") or {}),
        )


def _source(spec: Manifest) -> SourceSpec | None:
    fields = spec.get("source")
    return None if fields is None else SourceSpec.of(fields)


def _field_manager(spec: Manifest) -> str:
    """Return the manager under which members are applied; those of modules are never a Sync's."""
    name: str = spec.get("fieldManager") or FIELD_MANAGER
    if len(name) > _LONGEST_MANAGER or not name.isprintable() or name.startswith(f"{FIELD_MANAGER}-"):
        raise SyncSpecError(
            "spec.fieldManager",
            f"{name!r} can't be a field manager: up to {_LONGEST_MANAGER} printable characters, and not {FIELD_MANAGER}-…, "
            "which is for modules",
        )
    return name


def _service_account(spec: Manifest) -> str:
    """Return the account's name. One with a colon in it could be read as an account of another namespace."""
    name: str = spec.get("serviceAccountName") or DEFAULT_ACCOUNT
    if len(name) > _LONGEST_NAME or not _SUBDOMAIN.fullmatch(name):
        raise SyncSpecError("spec.serviceAccountName", f"{name!r} isn't a name of a ServiceAccount")
    return name


def _take_over(spec: Manifest) -> TakeOver:
    asked = spec.get("takeOver")
    try:
        return TakeOver.parse(asked) if asked else KNOWN_TOOLS
    except ValueError as error:
        raise SyncSpecError("spec.takeOver", str(error)) from None


def _conflicts(spec: Manifest) -> ConflictPolicy:
    text = spec.get("conflicts", "Override")
    try:
        return ConflictPolicy(text.lower())
    except ValueError:
        raise SyncSpecError("spec.conflicts", f"{text!r} isn't one of Override, Yield, Fail") from None


def _depends_on(spec: Manifest, namespace: str) -> tuple[Dependency, ...]:
    found = []
    for index, entry in enumerate(spec.get("dependsOn") or ()):
        ref = ObjectRef(SYNC.group, SYNC.kind, entry.get("namespace") or namespace, entry["name"])
        found.append(Dependency(ref, _ready_rule(entry.get("readyExpr"), f"spec.dependsOn[{index}].readyExpr")))
    return tuple(found)


def _ready_rule(text: Any, field: str) -> Rule | None:
    """Return the rule that an expression over another Sync makes."""
    if not text:
        return None
    try:
        return Rule.parse({"kind": f"{SYNC.kind}.{SYNC.group}", "current": text})
    except RuleError as error:
        raise SyncSpecError(field, str(error)) from None


def _ignore(spec: Manifest) -> tuple[IgnoreRule, ...]:
    return tuple(_ignore_rule(entry, f"spec.ignore[{index}]") for index, entry in enumerate(spec.get("ignore") or ()))


def _ignore_rule(entry: Manifest, field: str) -> IgnoreRule:
    try:
        rule = IgnoreRule.parse(entry["path"], manager=entry.get("manager", ""))
    except ValueError as error:
        raise SyncSpecError(f"{field}.path", str(error)) from None
    of = one_of(IgnoreFrom, entry, "from", IgnoreFrom.ALWAYS, field)
    if (target := entry.get("target")) is None:
        return replace(rule, of=of)
    try:
        labels = Selector.parse(target.get("labelSelector", ""))
    except ValueError as error:
        raise SyncSpecError(f"{field}.target.labelSelector", str(error)) from None
    names = {name: target[name] for name in ("group", "kind", "namespace", "name") if name in target}
    return replace(rule, of=of, target=IgnoreTarget(**names, labels=labels))


def _health(spec: Manifest) -> HealthRules:
    found, rules = spec.get("health") or {}, []
    if not found:
        return GENERAL
    for index, entry in enumerate(found.get("rules") or ()):
        try:
            rules.append(Rule.parse(entry))
        except RuleError as error:
            raise SyncSpecError(f"spec.health.rules[{index}].{error.field}", str(error)) from None
    return HealthRules(bool(found.get("strict", False)), tuple(rules))


def _max_deletes(spec: Manifest) -> DeleteLimit:
    value: Any = spec.get("maxDeletes")
    if value is None:
        return DEFAULT_LIMIT
    if isinstance(value, int) and value >= 0:
        return DeleteLimit(number=value)
    if isinstance(value, str) and (found := re.fullmatch(r"(\d{1,3})%", value)):
        return DeleteLimit(percent=int(found[1]))
    raise SyncSpecError("spec.maxDeletes", f"{value!r} is neither a number nor a percentage such as 20%")
