"""The Sync: one repository path followed into one cluster, as its users write it.

The CRD refuses nonsense at admission; this view refuses it again, since a CRD may be older
than the program and ``sync -f`` never passes through admission.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import APPROVED_PLAN, SYNC_REQUESTED_AT, origin_of_members
from kubectl_reconcile.core.health.cel_rules import GENERAL, HealthRules, Rule, RuleError
from kubectl_reconcile.core.health.verdict import HealthStatus
from kubectl_reconcile.core.objects import (
    API_GROUP,
    DEFAULT_ACCOUNT,
    FIELD_MANAGER,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    account_user,
    annotations_of,
)
from kubectl_reconcile.core.resources.helm import NO_HELM, HelmSpec, HelmSpecError
from kubectl_reconcile.core.resources.substitute import NO_SUBSTITUTION, SubstituteSpec, SubstituteSpecError
from kubectl_reconcile.core.resources.verification import VerifyMode, VerifySpec
from kubectl_reconcile.core.selector import Selector
from kubectl_reconcile.core.ssa.csa_upgrade import KNOWN_TOOLS, TakeOver
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom, IgnoreRule, IgnoreTarget
from kubectl_reconcile.core.ssa.merge import ConflictPolicy

SYNC = GroupVersionKind(API_GROUP, "v1alpha1", "Sync")
"""The kind of the Sync at the version that this program speaks."""

CONTENDED = "Contended"
"""The condition that names fields which somebody else keeps overwriting, on Syncs and on CRs."""

_Policy = TypeVar("_Policy", bound=StrEnum)

_LONGEST_MANAGER = 128  # as the server has it
_LONGEST_NAME = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DURATION = re.compile(r"(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


class SyncSpecError(ValueError):
    """A field of a Sync that can't be meant so. *field* is its path, as users write it."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


class Render(StrEnum):
    """``spec.source.render``: how the files at the path become objects."""

    AUTO = "Auto"
    """A folder with a kustomization file or a chart is rendered, any other is read as manifests."""
    RAW = "Raw"
    """Files are manifests, also beside a kustomization file or a chart's."""
    KUSTOMIZE = "Kustomize"
    """The folder is an overlay, and it is a problem if it isn't."""
    HELM = "Helm"
    """The folder is a chart, and it is a problem if it isn't."""


class GitSpec(Struct, frozen=True):
    """``spec.source.git``: what to follow, and how to *render* it. At most one of *branch*, *tag* and *commit* is set."""

    url: str
    branch: str = ""
    tag: str = ""
    commit: str = ""
    path: str = "."
    interval_s: float = 60.0
    secret: str = ""
    webhook_secret: str = ""
    verify: VerifySpec | None = None
    render: Render = Render.AUTO
    helm: HelmSpec = NO_HELM
    substitute: SubstituteSpec = NO_SUBSTITUTION


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
    """Everything that a Sync asks for, with defaults filled in."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    git: GitSpec | None = None
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
        if self.git is None or self.git.interval_s >= least_s:
            return self
        return replace(self, git=replace(self.git, interval_s=least_s))

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
            git=_git(spec),
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
            drift=_one_of(DriftPolicy, spec, "drift", DriftPolicy.CORRECT),
            approval=_one_of(ApprovalPolicy, spec, "approval", ApprovalPolicy.NEVER),
            deletion=_one_of(DeletionPolicy, spec, "deletionPolicy", DeletionPolicy.ORPHAN),
            depends_on=_depends_on(spec, metadata.get("namespace", "")),
            requested_at=noted.get(SYNC_REQUESTED_AT, ""),
            approved_plan=noted.get(APPROVED_PLAN, ""),
            members_from=origin_of_members(noted),
        )


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


def duration_s(text: str, field: str = "duration") -> float:
    """Return a duration as Kubernetes writes it (``90s``, ``1h30m``) in seconds.

    Raises:
        SyncSpecError: *text* isn't a duration, or is zero.
    """
    found = _DURATION.fullmatch(text)
    if not found or not any(found.groups()):
        raise SyncSpecError(field, f"{text!r} isn't a duration; write it as 30s, 5m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    if not (total := hours * 3600 + minutes * 60 + seconds):
        raise SyncSpecError(field, "a duration can't be zero")
    return total


def _git(spec: Manifest) -> GitSpec | None:
    git = (spec.get("source") or {}).get("git")
    if git is None:
        return None
    refs = [name for name in ("branch", "tag", "commit") if git.get(name)]
    if len(refs) > 1:
        raise SyncSpecError("spec.source.git", f"{' and '.join(refs)} are both set; keep one")
    if not git.get("url"):
        raise SyncSpecError("spec.source.git.url", "is required")
    return GitSpec(
        url=git["url"],
        branch=git.get("branch", ""),
        tag=git.get("tag", ""),
        commit=git.get("commit", ""),
        path=git.get("path", "."),
        interval_s=duration_s(git.get("interval", "1m"), "spec.source.git.interval"),
        secret=(git.get("secretRef") or {}).get("name", ""),
        webhook_secret=(git.get("webhookSecretRef") or {}).get("name", ""),
        verify=_verify(git),
        render=_render(spec),
        helm=_helm(spec),
        substitute=_substitute(spec),
    )


def _render(spec: Manifest) -> Render:
    """Return how files become objects; with a chart of a repository there is but one way."""
    asked = _one_of(Render, spec.get("source") or {}, "render", Render.AUTO, "spec.source")
    if _helm(spec).chart is None:
        return asked
    if asked not in {Render.AUTO, Render.HELM}:
        raise SyncSpecError("spec.source.render", f"{asked} and spec.source.helm.chart exclude each other; keep one")
    return Render.HELM


def _helm(spec: Manifest) -> HelmSpec:
    asked = (spec.get("source") or {}).get("helm")
    try:
        return HelmSpec.of(asked) if asked else NO_HELM
    except HelmSpecError as error:
        raise SyncSpecError(f"spec.source.helm.{error.field}", error.message) from None


def _substitute(spec: Manifest) -> SubstituteSpec:
    asked = (spec.get("source") or {}).get("substitute")
    try:
        return SubstituteSpec.of(asked) if asked else NO_SUBSTITUTION
    except SubstituteSpecError as error:
        raise SyncSpecError(f"spec.source.substitute.{error.field}", error.message) from None


def _verify(git: Manifest) -> VerifySpec | None:
    found, field = git.get("verify"), "spec.source.git.verify"
    if found is None:
        return None
    named = {kind: name for key, kind in _KEPT_IN.items() if (name := (found.get(key) or {}).get("name"))}
    if len(named) != 1:
        raise SyncSpecError(field, f"{' and '.join(_KEPT_IN)} exclude each other; give one, which holds the keys")
    [(kind, name)] = named.items()
    text = found.get("mode", VerifyMode.COMMIT)
    try:
        mode = VerifyMode(text)
    except ValueError:
        raise SyncSpecError(f"{field}.mode", f"{text!r} isn't one of {', '.join(VerifyMode)}") from None
    return VerifySpec(kind, name, mode)


_KEPT_IN = {"secretRef": "Secret", "configMapRef": "ConfigMap"}
"""Where the keys may be whose signatures are trusted."""


def _conflicts(spec: Manifest) -> ConflictPolicy:
    text = spec.get("conflicts", "Override")
    try:
        return ConflictPolicy(text.lower())
    except ValueError:
        raise SyncSpecError("spec.conflicts", f"{text!r} isn't one of Override, Yield, Fail") from None


def _one_of(policy: type[_Policy], spec: Manifest, field: str, default: _Policy, above: str = "spec") -> _Policy:
    text = spec.get(field, default)
    try:
        return policy(text)
    except ValueError:
        raise SyncSpecError(f"{above}.{field}", f"{text!r} isn't one of {', '.join(policy)}") from None


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
    of = _one_of(IgnoreFrom, entry, "from", IgnoreFrom.ALWAYS, field)
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
