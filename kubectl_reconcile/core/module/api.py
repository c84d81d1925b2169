"""What a domain module is: the kind that it owns, its functions, and how they reach external systems.

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

import inspect
import types
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from kubectl_reconcile.core.annotations import finalizer_of
from kubectl_reconcile.core.health.kind_table import KindRule
from kubectl_reconcile.core.module.inputs import DNS_LABEL, SUFFIX_MAX, Context, Facts, Owned, Reads
from kubectl_reconcile.core.module.outcome import Action, Outcome
from kubectl_reconcile.core.objects import FIELD_MANAGER, GroupKind, GroupVersionKind, Manifest

POD = GroupVersionKind.parse("v1", "Pod")

Reconcile: TypeAlias = Callable[[Manifest, Owned, Facts, Context], Outcome]
"""The heart of a module: pure, total for every CR that the API server admits."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was found of external systems for one CR; *error* says why nothing could be.

    *as_of* is the time of facts that aren't of now: pods can't be reached from here, and these are what the daemon published last.
    *unreached* says why, then.
    """

    facts: Facts = field(default_factory=dict)
    error: str = ""
    as_of: str = ""
    unreached: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an external system answered: its status code, its body as JSON (None where it is none), and as text."""

    status: int
    body: Any = None
    text: str = ""


class SilentPodError(Exception):
    """A pod gives no answer; the message names it and says why. The other pods may answer."""


@dataclass(frozen=True, slots=True)
class PodTls:
    """TLS to a pod: *secret*, in the CR's namespace, holds ``ca.crt``, ``tls.crt`` and ``tls.key``; the certificate shown is for *server_name*."""

    secret: str
    server_name: str


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """A Secret beside the CR as it is now: its values, whether the CR controls it, and its *version*, by which a change of it is told."""

    values: Mapping[str, str] = field(repr=False)
    is_own: bool
    version: str


class PodStream(Protocol):
    """An open connection to a port of a pod, for what speaks a language of its own."""

    async def read(self, most: int) -> bytes:
        """Return what has come: at least one byte, at most so many. All that comes of one connection is a mebibyte at most.

        Raises:
            SilentPodError: nothing comes, the far side has ended, or it has said more.
        """

    async def write(self, content: bytes) -> None:
        """Send *content*.

        Raises:
            SilentPodError: the pod takes no more.
        """


class PodIo(Protocol):
    """One port of a pod that the CR controls. Answers of any status come back."""

    async def ask(self, path: str, body: Any = None) -> Answer:
        """Ask something that changes nothing: by GET, or by POST with *body* as JSON where that is how the pod is asked.

        Raises:
            SilentPodError: the pod doesn't answer.
        """

    async def send(self, method: str, path: str, body: Any = None, *, within_s: float = 3.0) -> Answer:
        """Have the pod do something, which may take *within_s* seconds; only ``act`` may.

        Raises:
            SilentPodError: the pod doesn't answer.
        """

    def connect(self) -> AbstractAsyncContextManager[PodStream]:
        """Open a connection for the time of a block. Bytes aren't understood here: while observing, nothing may be changed by them.

        Raises:
            SilentPodError: nobody listens, or the pod doesn't answer.
        """


class Io(Protocol):
    """How a module's ``observe`` and ``act`` reach what is outside: external systems, known by name, and the CR's own pods.

    Where a system is, is the cluster administrator's business, never a CR's. Answers of any status come back;
    a system that doesn't answer raises, and so do writes while observing.
    """

    @property
    def owned(self) -> Owned:
        """The live objects around the CR; for ``act`` the pods alone, as they are now."""

    def pod(self, name: str, port: int, tls: PodTls | None = None) -> PodIo:
        """Return how to reach *port* of the pod called *name*.

        Raises:
            SilentPodError: the CR controls no pod of that name.
        """

    async def get(self, system: str, path: str) -> Answer:
        """Ask for *path*, changing nothing."""

    async def send(self, method: str, system: str, path: str, body: Any = None) -> Answer:
        """Send *body* as JSON; the idempotency key of the action goes along."""

    async def secret(self, name: str) -> Mapping[str, str] | None:
        """Return the values of a Secret beside the CR, None where there is none. The module must have said that it reads it (`Reads.on_request`)."""

    async def make_secret(self, name: str, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make such a Secret, as nobody's child; only ``act`` may. One that is there stays as it is."""

    async def see_secret(self, name: str) -> SeenSecret | None:
        """Return such a Secret, and whether it is the CR's own; None where there is none."""

    async def put_secret(
        self, name: str, values: Mapping[str, str], labels: Mapping[str, str], *, over: SeenSecret | None
    ) -> None:
        """Make such a Secret as a child of the CR, or give the CR's own new values in place of all that it has; only ``act`` may.

        *over* is what was seen, None where nothing was. One that is another's, or has changed since, stays as it is, and that raises.
        The module must have said that it does so (`Reads.rewrites`).
        """


Observe: TypeAlias = Callable[[Manifest, Io], Awaitable[Facts]]
Act: TypeAlias = Callable[[Manifest, Action, Io], Awaitable[Any]]
Predict: TypeAlias = Callable[[Manifest, Facts, Action], Facts]
Foresee: TypeAlias = Callable[[Manifest, Owned, Facts], Facts]


@dataclass(frozen=True, slots=True)
class Module:
    """A domain module as data: which kind it owns, what it makes, what it looks at, and its functions.

    *reconcile* and *finalize* are pure. *observe* looks at external systems, within *observe_s* seconds; *act* runs
    one action, within *act_s*; *predict* says, purely, which facts an action leads to, for previews of
    what comes after it, and *foresee* which facts follow once the children that it is given run.
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
    health: KindRule | None = None
    foresee: Foresee | None = None

    @property
    def publishes(self) -> bool:
        """Whether what it observes is noted on the CR, for those who can't reach pods: it looks at pods of its own."""
        return self.observe is not None and POD in self.owns

    @property
    def manager(self) -> str:
        """The field manager of the module's children and of its CRs' statuses."""
        return f"{FIELD_MANAGER}-{self.name}"

    @property
    def account(self) -> str:
        """The name of the ServiceAccount that the module acts as where it has one of its own."""
        return f"{FIELD_MANAGER}-module-{self.name}"

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
    health: Sequence[Mapping[str, Any]] = (),
) -> Callable[[Reconcile | type], Module]:
    """Make a `Module` of the function below: ``@module(api="example.com/v1", kind="Cache", owns=["v1/Service"])``.

    Of a class, the methods ``reconcile``, ``finalize``, ``observe``, ``act``, ``predict`` and ``foresee`` are taken, each where there is one.
    *owns* lists the kinds of children as ``apps/v1/Deployment``; the name is the kind in lower
    case unless given. The docstring is the module's documentation. *health* is how the CR's status tells its health, where
    it doesn't by its conditions: rules as those of popular kinds are, ``[{"Failed": {"phase": "Broken"}}, {"Current": {"phase": "Up"}}]``.

    Raises:
        ValueError: the name isn't a DNS label of at most 40 characters, a kind isn't ``[group/]version/Kind``, or *health* can't be meant so.
    """
    called = name or kind.lower()
    if len(called) > SUFFIX_MAX or not DNS_LABEL.fullmatch(called):
        raise ValueError(f"module name must be a DNS label of at most {SUFFIX_MAX} characters, not {called!r}")
    kinds = tuple(_kind_of(text) for text in owns)

    def decorate(target: Reconcile | type) -> Module:
        parts = _functions(target)
        if parts.get("act") and not parts.get("observe"):
            raise ValueError(f"module {called}: what acts must observe, so that preconditions can be checked")
        gvk, docs = GroupVersionKind.parse(api, kind), inspect.getdoc(target) or ""
        rule = KindRule.parse({"rules": health}) if health else None
        return Module(
            called, gvk, kinds, tuple(reads), docs=docs, observe_s=observe_s, act_s=act_s, health=rule, **parts
        )

    return decorate


_PARTS = ("reconcile", "finalize", "observe", "act", "predict", "foresee")


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


def health_of(modules: Iterable[Module]) -> dict[GroupKind, KindRule]:
    """Return the rules of health that *modules* declare for their CRs."""
    return {one.gvk.group_kind: one.health for one in modules if one.health is not None}


def modules_in(python_module: types.ModuleType) -> tuple[Module, ...]:
    """Return the modules that a Python module defines, ordered by name."""
    found = {one.name: one for one in vars(python_module).values() if isinstance(one, Module)}
    return tuple(found[name] for name in sorted(found))
