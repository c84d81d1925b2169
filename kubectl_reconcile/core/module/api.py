"""What a domain module sees, and what it may say.

A *module* owns one kind of custom resource (CR). Its ``reconcile(cr, owned, facts, ctx)`` is a
pure function: it is given the CR, the live objects that the CR owns or that the module reads,
*facts* about external systems, and a *context* (the time, names, labels); it returns an
*outcome*: the children that must exist, the status to report, and *actions* on external
systems as data. Because it touches nothing, a preview calls the very function that the daemon
calls, and a test needs plain values only::

    @module(api="cache.example.com/v1alpha1", kind="Memcached", owns=["apps/v1/Deployment"])
    def memcached(cr, owned, facts, ctx):
        spec = spec_of(cr, MemcachedSpec)
        return Outcome(children=(deployment(spec, ctx),), status={"nodes": []})

The engine does the rest: it adopts the children (namespace, owner reference, module label),
merges and applies them, prunes those no longer wanted, and writes the status if it differs.
A module never names its own owner, never asks for the time and never keeps anything between
two calls. A spec that it can't make sense of is a `SpecError` that names the field: then
everything stays as it is until the spec is corrected.

Pure: no I/O, no clock, no randomness, no logging; inputs are never mutated.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import inspect
import json
import re
import types
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from kubectl_reconcile.core.annotations import MODULE_LABEL, finalizer_of
from kubectl_reconcile.core.health.kstatus import Health, health
from kubectl_reconcile.core.module.specs import Between, SpecError, spec_of
from kubectl_reconcile.core.objects import (
    FIELD_MANAGER,
    Condition,
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    labels_of,
)

__all__ = [
    "Action",
    "Answer",
    "Ask",
    "Between",
    "Context",
    "Facts",
    "Io",
    "Module",
    "ModuleError",
    "Observation",
    "Outcome",
    "Owned",
    "Reads",
    "Select",
    "SpecError",
    "adopt_child",
    "check_purity",
    "in_turn",
    "key_of",
    "module",
    "modules_in",
    "outcome_of",
    "outcome_of_invalid",
    "spec_of",
    "with_owner_uid",
]

NAME_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"

UNKNOWN_UID = ""
"""Stands for the uid of an owner that a plan is about to create; the writer replaces it."""

Facts: TypeAlias = Mapping[str, Any]
"""What was observed of external systems: plain JSON, empty for modules that have none."""


class ModuleError(Exception):
    """A module broke its contract or crashed; the fault lies with the module, not with the CR."""

    def __init__(self, module: str, message: str) -> None:
        super().__init__(f"module {module}: {message}")
        self.module = module
        self.message = message


# --- what a module returns --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Action:
    """One step on an external system, as data; the same *key* never runs twice.

    *verb* and *parameters* are for the driver, *summary* is the sentence people read,
    *precondition* is what must still be observed when it runs (``{"bar.id": "bar-3"}``), and
    *needs_approval* marks what can't be undone. A key is a DNS label, like ``dispose-bar-3``: it
    names the one occasion on which the step is taken.
    """

    key: str
    verb: str
    summary: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    precondition: Mapping[str, Any] = field(default_factory=dict)
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a module wants: everything it returns is put in place, nothing else.

    *children* carry ``apiVersion``, ``kind``, ``metadata.name`` and what the module insists on;
    a field that it leaves out belongs to others. Live children that aren't among them are
    deleted, unless *keep_children* says that they stay. *status* comes without ``conditions`` and
    ``observedGeneration``, which the engine keeps. *requeue_after_s* asks for another call even
    if nothing happens until then.

    *after* orders children: the child ``key_of`` of which is a key is written once those named are
    as they should be and healthy (see `in_turn`). *actions* run one after the other, as listed.
    *untouched* are children (by `key_of`) that stay as they are; *recreated* are kinds whose
    children are deleted and made anew rather than changed. *finalized* is for ``finalize``: nothing
    is left to be done, the CR may go.
    """

    children: tuple[Manifest, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    actions: tuple[Action, ...] = ()
    requeue_after_s: float | None = None
    keep_children: bool = False
    after: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    untouched: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    finalized: bool = False


def key_of(child: Manifest) -> str:
    """Return how an outcome names one of its children: ``Deployment.apps/web``."""
    return f"{GroupVersionKind.of(child).group_kind}/{child['metadata']['name']}"


def in_turn(*stages: Sequence[Manifest]) -> dict[str, tuple[str, ...]]:
    """Return the ``after`` of an outcome that makes each stage wait until all stages before are healthy.

    Children one at a time are stages of one child each.
    """
    waits: dict[str, tuple[str, ...]] = {}
    before: tuple[str, ...] = ()
    for stage in stages:
        keys = tuple(key_of(child) for child in stage)
        waits |= {key: before for key in keys if before}
        before += keys
    return waits


# --- what a module is given -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Select:
    """Which objects of a kind one CR looks at: those with all these *labels*, or with one of these *names*.

    They are looked for in the CR's namespace; a cluster-scoped CR, and kinds that are cluster-scoped, in all.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    def matches(self, manifest: Manifest) -> bool:
        """Tell whether *manifest* is meant; nothing is, if neither labels nor names are given."""
        by_label = bool(self.labels) and self.labels.items() <= labels_of(manifest).items()
        return by_label or manifest["metadata"]["name"] in self.names


@dataclass(frozen=True, slots=True)
class Reads:
    """Objects that a module looks at without owning them, such as the pods of its Deployment.

    They are watched by *selector*, written as kubectl does (``app=web,tier=front``); an empty one watches
    the whole kind. Of what is found, a CR is shown what *of* selects for it; without *of*, the
    objects that `Context.sees` says are its own.
    """

    api_version: str
    kind: str
    selector: str = ""
    of: Callable[[Manifest], Select] | None = None

    def __post_init__(self) -> None:
        """Refuse a selector that isn't made of equalities.

        Raises:
            ValueError: a part of *selector* isn't ``key=value``, or nothing says which objects are a CR's.
        """
        if not self.selector and self.of is None:
            raise ValueError(
                "a selector is written key=value,key=value; without one, say by `of` which objects are read"
            )
        for part in self.selector.split(",") if self.selector else ():
            if not re.fullmatch(r"[\w./-]+=[\w.-]*", part):
                raise ValueError(f"a selector is written key=value,key=value, not {self.selector!r}")

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that an object must carry."""
        pairs = (part.partition("=") for part in self.selector.split(",") if part)
        return {key: value for key, _, value in pairs}

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind to watch."""
        return GroupVersionKind.parse(self.api_version, self.kind)


class Owned:
    """The live objects around one CR: *children* that it controls, and *read* objects of others.

    Kinds are named as kubectl does, ``Deployment`` or, where two groups share a kind,
    ``Deployment.apps``. Answers are sorted by name, so they don't depend on the order of events.
    """

    __slots__ = ("_children", "_read")

    def __init__(self, children: Iterable[Manifest] = (), read: Iterable[Manifest] = ()) -> None:
        self._children = tuple(sorted(children, key=ObjectRef.of))
        self._read = tuple(sorted(read, key=ObjectRef.of))

    def of(self, kind: str) -> tuple[Manifest, ...]:
        """Return the children of *kind*."""
        return tuple(_of_kind(self._children, kind))

    def get(self, kind: str, name: str) -> Manifest | None:
        """Return the child of *kind* called *name*, or None."""
        return next((child for child in self.of(kind) if child["metadata"]["name"] == name), None)

    def health(self, kind: str, name: str) -> Health:
        """Return the health of a child; one that doesn't exist is ``NotFound``."""
        return health(self.get(kind, name))

    def read(self, kind: str) -> tuple[Manifest, ...]:
        """Return the objects of *kind* that belong to the CR without being its children."""
        return tuple(_of_kind(self._read, kind))

    @property
    def children(self) -> tuple[Manifest, ...]:
        """All objects that the CR controls."""
        return self._children

    @property
    def others(self) -> tuple[Manifest, ...]:
        """All objects that belong to the CR without being its children."""
        return self._read

    def __iter__(self) -> Iterator[Manifest]:
        yield from self._children
        yield from self._read


def _of_kind(manifests: Iterable[Manifest], kind: str) -> Iterator[Manifest]:
    for manifest in manifests:
        found = GroupVersionKind.of(manifest).group_kind
        if kind in {found.kind, str(found)}:
            yield manifest


_NAME_MAX = 63
_SUFFIX_MAX = 40
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of one call for *cr*: the time (*now*, RFC 3339), names and labels for its children.

    *module* is the module's name. *unobserved* says why external systems could not be observed; the
    facts are empty then, children stay as they are and no action runs.
    """

    now: str
    module: str
    cr: Manifest
    unobserved: str = ""

    @property
    def namespace(self) -> str:
        """The CR's namespace, which is its children's too; empty for a cluster-scoped CR."""
        found: str = self.cr["metadata"].get("namespace") or ""
        return found

    def name(self, suffix: str = "") -> str:
        """Return the name of a child: the CR's, then *suffix*; always a valid DNS label.

        The same CR and suffix give the same name for ever. A CR's name that is too long for
        this (63 characters) or has dots is shortened and told apart by a hash.

        Raises:
            ValueError: *suffix* isn't lower-case letters, digits and dashes, or is longer than 40.
        """
        if suffix and (len(suffix) > _SUFFIX_MAX or not _DNS_LABEL.fullmatch(suffix)):
            raise ValueError(f"suffix must be a DNS label of at most {_SUFFIX_MAX} characters, not {suffix!r}")
        cr_name: str = self.cr["metadata"]["name"]
        tail = f"-{suffix}" if suffix else ""
        plain = cr_name + tail
        if len(plain) <= _NAME_MAX and _DNS_LABEL.fullmatch(plain):
            return plain
        tail = f"-{hashlib.sha256(cr_name.encode()).hexdigest()[:8]}{tail}"
        head = re.sub(r"[^a-z0-9]+", "-", cr_name.lower())[: _NAME_MAX - len(tail)]
        return (head + tail).strip("-")

    def selector(self, component: str = "") -> dict[str, str]:
        """Return the labels that select what belongs to this CR (or a *component* of it), and nothing else there.

        The set never grows: a Deployment's selector can't be changed once it exists.
        """
        whole = {NAME_LABEL: self.module, INSTANCE_LABEL: self.name(), MODULE_LABEL: self.module}
        return {**whole, COMPONENT_LABEL: component} if component else whole

    def labels(self, component: str = "") -> dict[str, str]:
        """Return the labels for a child: its selector, and who looks after it."""
        return {**self.selector(component), MANAGED_BY_LABEL: FIELD_MANAGER}

    def sees(self, manifest: Manifest) -> bool:
        """Tell whether an object that the module reads belongs to this CR: its namespace, its labels."""
        if self.namespace and manifest["metadata"].get("namespace") != self.namespace:
            return False
        return self.selector().items() <= labels_of(manifest).items()


# --- modules ----------------------------------------------------------------------------------

Reconcile: TypeAlias = Callable[[Manifest, Owned, Facts, Context], Outcome]
"""The heart of a module: pure, total for every CR that the API server admits."""

Ask: TypeAlias = "Callable[[Module, Manifest, Owned, Facts, Context], Outcome]"
"""How a module is called: `outcome_of`, or something stricter around it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was found of external systems for one CR; *error* says why nothing could be."""

    facts: Facts = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an external system answered: its status code, its body as JSON (None where it is none), and as text."""

    status: int
    body: Any = None
    text: str = ""


class Io(Protocol):
    """How a module's ``observe`` and ``act`` reach an external system, which is known by name.

    Where a system is, is the cluster administrator's business, never a CR's. Answers of any status come back;
    a system that doesn't answer raises, and so do writes while observing.
    """

    @property
    def owned(self) -> Owned:
        """The live objects around the CR."""

    async def get(self, system: str, path: str) -> Answer:
        """Ask for *path*, changing nothing."""

    async def send(self, method: str, system: str, path: str, body: Any = None) -> Answer:
        """Send *body* as JSON; the idempotency key of the action goes along."""


Observe: TypeAlias = Callable[[Manifest, Io], Awaitable[Facts]]
Act: TypeAlias = Callable[[Manifest, Action, Io], Awaitable[Any]]
Predict: TypeAlias = Callable[[Manifest, Facts, Action], Facts]


@dataclass(frozen=True, slots=True)
class Module:
    """A domain module as data: which kind it owns, what it makes, what it looks at, and its functions.

    *reconcile* and *finalize* are pure. *observe* looks at external systems, within *observe_s* seconds; *act* runs
    one action, within *act_s*; *predict* says, purely, which facts an action leads to, for previews of
    what comes after it. *systems* are the external systems by name.
    """

    name: str
    gvk: GroupVersionKind
    owns: tuple[GroupVersionKind, ...]
    reads: tuple[Reads, ...]
    reconcile: Reconcile
    docs: str
    finalize: Reconcile | None = None
    observe: Observe | None = None
    act: Act | None = None
    predict: Predict | None = None
    observe_s: float = 10.0
    act_s: float = 30.0

    @property
    def manager(self) -> str:
        """The field manager of the module's children and of its CRs' statuses."""
        return f"{FIELD_MANAGER}-{self.name}"

    @property
    def finalizer(self) -> str:
        """The finalizer that keeps a CR until its module has cleaned up."""
        return finalizer_of(self.name)


def module(
    *,
    api: str,
    kind: str,
    owns: Sequence[str],
    reads: Sequence[Reads] = (),
    name: str = "",
    observe_s: float = 10.0,
    act_s: float = 30.0,
) -> Callable[[Reconcile | type], Module]:
    """Make a `Module` of the function below: ``@module(api="example.com/v1", kind="Cache", owns=["v1/Service"])``.

    Of a class, the methods ``reconcile``, ``finalize``, ``observe``, ``act`` and ``predict`` are taken, each where there is one.
    *owns* lists the kinds of children as ``apps/v1/Deployment``; the name is the kind in lower
    case unless given. The docstring is the module's documentation.

    Raises:
        ValueError: the name is no DNS label of at most 40 characters, or a kind isn't ``[group/]version/Kind``.
    """
    called = name or kind.lower()
    if len(called) > _SUFFIX_MAX or not _DNS_LABEL.fullmatch(called):
        raise ValueError(f"module name must be a DNS label of at most {_SUFFIX_MAX} characters, not {called!r}")
    kinds = tuple(_kind_of(text) for text in owns)

    def decorate(target: Reconcile | type) -> Module:
        parts = _functions(target)
        if parts.get("act") and not parts.get("observe"):
            raise ValueError(f"module {called}: what acts must observe, so that preconditions can be checked")
        gvk, docs = GroupVersionKind.parse(api, kind), inspect.getdoc(target) or ""
        return Module(called, gvk, kinds, tuple(reads), docs=docs, observe_s=observe_s, act_s=act_s, **parts)

    return decorate


_PARTS = ("reconcile", "finalize", "observe", "act", "predict")


def _functions(target: Any) -> dict[str, Any]:
    """Return the functions of a module, by what they are for."""
    if not isinstance(target, type):
        return {"reconcile": target}
    instance = target()
    return {part: getattr(instance, part) for part in _PARTS if hasattr(instance, part)}


def _kind_of(text: str) -> GroupVersionKind:
    api_version, _, kind = text.rpartition("/")
    if not api_version or not kind:
        raise ValueError(f"a kind is written [group/]version/Kind, as in apps/v1/Deployment, not {text!r}")
    return GroupVersionKind.parse(api_version, kind)


def modules_in(python_module: types.ModuleType) -> tuple[Module, ...]:
    """Return the modules that a Python module defines, ordered by name."""
    found = {one.name: one for one in vars(python_module).values() if isinstance(one, Module)}
    return tuple(found[name] for name in sorted(found))


def outcome_of(module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
    """Return what *module* wants for *cr*: the one way to call a module.

    A module that says nothing about ``Degraded`` is not degraded, so a condition left by an
    invalid spec goes away with it.

    Raises:
        SpecError: the CR makes no sense to the module; `outcome_of_invalid` says what follows.
        ModuleError: the module raised anything else, or made a child that it may not make.
    """
    try:
        finalizing = module.finalize is not None and cr["metadata"].get("deletionTimestamp")
        function = module.finalize if finalizing and module.finalize else module.reconcile
        outcome = function(cr, owned, facts, ctx)
    except SpecError:
        raise
    except Exception as error:
        raise ModuleError(module.name, f"{type(error).__name__}: {error}") from error
    if not isinstance(outcome, Outcome):
        raise ModuleError(module.name, f"returned {type(outcome).__name__}, not an Outcome")
    try:
        _check_children(module, outcome, ctx)
        _check_order(module, outcome)
        _check_actions(module, outcome)
        json.dumps([outcome.children, outcome.status], allow_nan=False)
    except ModuleError:
        raise
    except Exception as error:
        raise ModuleError(module.name, f"its outcome is of no use: {type(error).__name__}: {error}") from error
    if any(condition.type == "Degraded" for condition in outcome.conditions):
        return outcome
    return dataclasses.replace(outcome, conditions=(*outcome.conditions, Condition("Degraded", "False", "AsExpected")))


def outcome_of_invalid(cr: Manifest, error: SpecError) -> Outcome:
    """Return what follows from an invalid spec: ``Degraded`` names the field, all else stays as it is."""
    status = dict(cr.get("status") or {})
    for kept_by_engine in ("conditions", "observedGeneration"):
        status.pop(kept_by_engine, None)
    conditions = (Condition("Degraded", "True", "InvalidSpec", str(error)),)
    return Outcome(status=status, conditions=conditions, keep_children=True)


def _check_children(module: Module, outcome: Outcome, ctx: Context) -> None:
    made: set[tuple[GroupKind, str]] = set()
    for child in outcome.children:
        gvk, metadata = GroupVersionKind.of(child), child.get("metadata") or {}
        key = (gvk.group_kind, metadata.get("name") or "")
        if not key[1]:
            raise ModuleError(module.name, f"a child {gvk.group_kind} has no name")
        if gvk not in module.owns:
            raise ModuleError(module.name, f"made {gvk.group_kind} {key[1]}, but {gvk} isn't among the kinds it owns")
        if key in made:
            raise ModuleError(module.name, f"made {gvk.group_kind} {key[1]} twice")
        if ctx.namespace and metadata.get("namespace", ctx.namespace) != ctx.namespace:
            raise ModuleError(module.name, f"made {gvk.group_kind} {key[1]} outside the CR's namespace")
        made.add(key)


def _check_order(module: Module, outcome: Outcome) -> None:
    seen: set[str] = set()
    for child in outcome.children:
        if late := [key for key in outcome.after.get(key_of(child), ()) if key not in seen]:
            raise ModuleError(module.name, f"{key_of(child)} comes after {late[0]}, which must be listed before it")
        seen.add(key_of(child))


def _check_actions(module: Module, outcome: Outcome) -> None:
    keys: set[str] = set()
    if outcome.actions and module.act is None:
        raise ModuleError(module.name, f"wants action {outcome.actions[0].key}, but has no `act` to run it")
    for action in outcome.actions:
        if not _DNS_LABEL.fullmatch(action.key) or len(action.key) > _NAME_MAX:
            raise ModuleError(module.name, f"an action's key must be a DNS label, not {action.key!r}")
        if action.key in keys:
            raise ModuleError(module.name, f"wants action {action.key} twice")
        keys.add(action.key)


def check_purity(
    module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context, *, ask: Ask | None = None
) -> Outcome:
    """Return the outcome of two calls that agree, the second one made on copies.

    *ask* makes the calls, for watching what they do; an invalid spec is an outcome, too.

    Raises:
        ModuleError: the two outcomes differ, an input was changed, or an outcome isn't plain JSON.
    """
    inputs = (cr, list(owned), facts)
    before = copy.deepcopy(inputs)
    first = _answer(ask or outcome_of, module, cr, owned, facts, ctx)
    if inputs != before:
        raise ModuleError(module.name, "it changed its input; work on copies")
    again = _answer(ask or outcome_of, module, *copy.deepcopy((cr, owned, facts, ctx)))
    if _canonical(module, first) != _canonical(module, again):
        raise ModuleError(module.name, "two calls with the same input gave different outcomes")
    return first


def _answer(ask: Ask, module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
    try:
        return ask(module, cr, owned, facts, ctx)
    except SpecError as error:
        return outcome_of_invalid(cr, error)


def _canonical(module: Module, outcome: Outcome) -> str:
    try:
        return json.dumps(dataclasses.asdict(outcome), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModuleError(module.name, f"its outcome isn't plain JSON: {error}") from error


# --- children ---------------------------------------------------------------------------------


def adopt_child(child: Manifest, cr: Manifest, module: Module) -> Manifest:
    """Return *child* as it is applied: in the CR's namespace, controlled by the CR, labelled with the module.

    A CR that doesn't exist yet has no uid. Its children then carry `UNKNOWN_UID`, so a plan
    shows them whole, and `with_owner_uid` completes them when the CR has been created.
    """
    metadata = dict(child["metadata"])
    owner = cr["metadata"]
    if owner.get("namespace"):
        metadata["namespace"] = owner["namespace"]
    metadata["labels"] = {**(metadata.get("labels") or {}), MODULE_LABEL: module.name}
    metadata["ownerReferences"] = [
        {
            "apiVersion": cr["apiVersion"],
            "kind": cr["kind"],
            "name": owner["name"],
            "uid": owner.get("uid") or UNKNOWN_UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return {**child, "metadata": metadata}


def with_owner_uid(child: Manifest, uid: str) -> Manifest:
    """Return *child* with *uid* where its owner's was unknown; any other child comes back as it is."""
    owners = (child.get("metadata") or {}).get("ownerReferences") or ()
    if all(owner.get("uid") != UNKNOWN_UID for owner in owners):
        return child
    filled = [{**owner, "uid": uid} if owner.get("uid") == UNKNOWN_UID else owner for owner in owners]
    return {**child, "metadata": {**child["metadata"], "ownerReferences": filled}}
