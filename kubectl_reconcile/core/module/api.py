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
from typing import Any, ClassVar, Protocol, TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import finalizer_of
from kubectl_reconcile.core.health.kind_table import KindRule
from kubectl_reconcile.core.module.inputs import DNS_LABEL, SUFFIX_MAX, Context, Facts, Keeps, Owned, Reads
from kubectl_reconcile.core.module.outcome import Action, Outcome
from kubectl_reconcile.core.objects import FIELD_MANAGER, GroupKind, GroupVersionKind, Manifest
from kubectl_reconcile.core.records import Guarded

POD = GroupVersionKind.parse("v1", "Pod")

Reconcile: TypeAlias = Callable[[Manifest, Owned, Facts, Context], Outcome]
"""The heart of a module: pure, total for every CR that the API server admits."""


class Observation(Struct, frozen=True):
    """What was found of external systems for one CR; *error* says why nothing could be.

    *as_of* is the time of facts that aren't of now: pods can't be reached from here, and these are what the daemon published last.
    *unreached* says why, then. *unheard* names pods that are ready and yet let a call time out, and how: the facts lack what they would say.
    """

    facts: Facts = field(default_factory=dict)
    error: str = ""
    as_of: str = ""
    unreached: str = ""
    unheard: str = ""


class Answer(Struct, frozen=True):
    """The answer of an external system: its status code, its body as JSON (None if it isn't JSON), and the body as text."""

    status: int
    body: Any = None
    text: str = ""


class SilentPodError(Exception):
    """A pod doesn't answer; the message names it and says why. Other pods may answer."""


class PodTls(Struct, frozen=True):
    """TLS to a pod: *secret*, in the CR's namespace, holds ``ca.crt``, ``tls.crt`` and ``tls.key``; the certificate shown is for *server_name*."""

    secret: str
    server_name: str


class SeenSecret(Guarded, frozen=True):
    """A Secret in the CR's namespace as it is now: its values, whether the CR controls it, and its *version*, which detects changes."""

    hidden: ClassVar = frozenset({"values"})

    values: Mapping[str, str]
    is_own: bool
    version: str


class PodStream(Protocol):
    """An open connection to a port of a pod, for protocols other than HTTP."""

    async def read(self, most: int) -> bytes:
        """Return what has arrived: at least one byte, at most this many. One connection delivers at most 1 MiB.

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
        """Send a request that changes nothing: by GET, or by POST with *body* as JSON, if the pod is queried that way.

        Raises:
            SilentPodError: the pod doesn't answer.
        """

    async def send(self, method: str, path: str, body: Any = None, *, within_s: float = 3.0) -> Answer:
        """Send a request that changes something and may take *within_s* seconds. Only ``act`` may call this.

        Raises:
            SilentPodError: the pod doesn't answer.
        """

    def connect(self) -> AbstractAsyncContextManager[PodStream]:
        """Open a connection for the duration of a block. The engine doesn't know what the bytes mean, so ``observe`` itself must make sure that they change nothing.

        Raises:
            SilentPodError: nobody listens, or the pod doesn't answer.
        """


class Io(Protocol):
    """How a module's ``observe`` and ``act`` reach systems outside: external systems, by name, and the CR's own pods.

    The cluster administrator sets the address of a system, never a CR. Answers of any status are returned.
    A system that doesn't answer raises an error, and so does a write in ``observe``.
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
        """Request *path*, without changing anything."""

    async def send(self, method: str, system: str, path: str, body: Any = None) -> Answer:
        """Send *body* as JSON, with the idempotency key of the action."""

    async def secret(self, name: str) -> Mapping[str, str] | None:
        """Return the values of a Secret in the CR's namespace, None if it doesn't exist. The module must declare that it reads the Secret (`Reads.on_request`)."""

    async def make_secret(self, name: str, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Create such a Secret, without an owner. Only ``act`` may call this. An existing Secret stays as it is."""

    async def see_secret(self, name: str) -> SeenSecret | None:
        """Return such a Secret, and whether it belongs to the CR; None if it doesn't exist."""

    async def put_secret(
        self, name: str, values: Mapping[str, str], labels: Mapping[str, str], *, over: SeenSecret | None
    ) -> None:
        """Create such a Secret as a child of the CR, or replace all values of such a child. Only ``act`` may call this.

        *over* is the Secret that `see_secret` returned, or None. A Secret that belongs to somebody else, or has changed since, stays as it is, and
        this raises an error. The module must declare that it rewrites the Secret (`Reads.rewrites`).
        """


Observe: TypeAlias = Callable[[Manifest, Io], Awaitable[Facts]]
Act: TypeAlias = Callable[[Manifest, Action, Io], Awaitable[Any]]
Predict: TypeAlias = Callable[[Manifest, Facts, Action], Facts]
Foresee: TypeAlias = Callable[[Manifest, Owned, Facts], Facts]


class Module(Struct, frozen=True):
    """A domain module as data: the kind that it handles, the kinds that it owns and reads, and its functions.

    *reconcile* and *finalize* are pure. *observe* reads external systems, within *observe_s* seconds. *act* runs
    one action, within *act_s*. For previews of later passes, *predict* returns the facts after an action, and
    *foresee* the facts once the given children run; both are pure. *keeps* are kinds of children that outlive their CR.
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
    keeps: tuple[Keeps, ...] = ()

    def holds(self, cr: Manifest, child: Manifest) -> bool:
        """Tell whether *child* stays when *cr* goes, and so carries no owner."""
        return any(each.holds(cr, child) for each in self.keeps)

    @property
    def publishes(self) -> bool:
        """Whether its facts are recorded on the CR, for previews that can't reach pods: it observes its own pods."""
        return self.observe is not None and POD in self.owns

    @property
    def manager(self) -> str:
        """The field manager of the module's children and of its CRs' statuses."""
        return f"{FIELD_MANAGER}-{self.name}"

    @property
    def account(self) -> str:
        """The name of the module's own ServiceAccount, if it has one."""
        return f"{FIELD_MANAGER}-module-{self.name}"

    @property
    def finalizer(self) -> str:
        """The finalizer that keeps a CR until its module has cleaned up."""
        return finalizer_of(self.name)


class UnloadedModule(Module, frozen=True):
    """What stands for a module that can't be loaded: *why* it can't, and the *hint* what to do about it.

    What it is called isn't known, nor what it owns. So nothing is done in its place: CRs of its kind stay as they are.
    """

    why: str = ""
    hint: str = ""


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
    keeps: Sequence[Keeps] = (),
) -> Callable[[Reconcile | type], Module]:
    """Make a `Module` of the function below: ``@module(api="example.com/v1", kind="Cache", owns=["v1/Service"])``.

    A class can have the methods ``reconcile``, ``finalize``, ``observe``, ``act``, ``predict`` and ``foresee``; all but ``reconcile`` are optional.
    *owns* lists the kinds of children, such as ``apps/v1/Deployment``. The default name is the kind in lower
    case. The docstring is the module's documentation. If the CR's status doesn't report health by conditions, *health* has
    rules like those of popular kinds: ``[{"Failed": {"phase": "Broken"}}, {"Current": {"phase": "Up"}}]``. *keeps* says which children stay when the CR is deleted.

    Raises:
        ValueError: the name isn't a DNS label of at most 40 characters, a kind isn't ``[group/]version/Kind``, or *health* is invalid.
    """
    called = name or kind.lower()
    if len(called) > SUFFIX_MAX or not DNS_LABEL.fullmatch(called):
        raise ValueError(f"module name must be a DNS label of at most {SUFFIX_MAX} characters, not {called!r}")
    kinds = tuple(_kind_of(text) for text in owns)

    def decorate(target: Reconcile | type) -> Module:
        parts = _functions(target)
        if parts.get("act") and not parts.get("observe"):
            raise ValueError(
                f"module {called}: a module that acts must also observe, so that preconditions can be checked"
            )
        gvk, docs = GroupVersionKind.parse(api, kind), inspect.getdoc(target) or ""
        rule = KindRule.parse({"rules": health}) if health else None
        return Module(
            called,
            gvk,
            kinds,
            tuple(reads),
            docs=docs,
            observe_s=observe_s,
            act_s=act_s,
            health=rule,
            keeps=tuple(keeps),
            **parts,
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
