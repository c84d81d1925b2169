"""What a domain module is given: the live objects around a CR, facts about external systems, and the context of a call.

The context is the only source of time and of names, so the same input gives the same outcome.

Pure: values and views on values.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol, Self, TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.health.judge import Health, health
from kubectl_reconcile.core.objects import (
    FIELD_MANAGER,
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    labels_of,
    text_at,
)

NAME_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"

Facts: TypeAlias = Mapping[str, Any]
"""What was observed of external systems: plain JSON, empty for modules that have none."""

NAME_MAX = 63
"""The longest name of a child, in characters, as for a DNS label."""

SUFFIX_MAX = 40
"""The longest suffix that tells a child from its CR."""

CEILINGS: Final[Mapping[str, int]] = {
    "--load-max-rate": 1000,
    "--load-max-connections": 100,
    "--load-max-seconds": 600,
    "--job-max-seconds": 3600,
}
"""How far custom resources may have modules go, by the flag of the daemon that says so; what is meant where it says nothing."""

DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


class Select(Struct, frozen=True):
    """Which objects of a kind one CR reads: those with all these *labels*, with one of these *names*, or with *refer* at a *path* of fields.

    They are in the CR's namespace. For a cluster-scoped CR, and for cluster-scoped kinds, they can be anywhere.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    refer: str = ""

    @classmethod
    def named(cls, name: str) -> Self:
        """Select the object of that *name*; nothing if it is empty, because a CR may not name one."""
        return cls(names=(name,) if name else ())

    @classmethod
    def referring(cls, name: str, *path: str) -> Self:
        """Select the objects that have *name* at this path of fields, such as ``spec``, ``clusterRef``, ``name``: objects that refer to the CR, while the CR doesn't refer to them."""
        return cls(path=path, refer=name)

    def matches(self, manifest: Manifest) -> bool:
        """Tell whether *manifest* is selected. Without labels, names and path, nothing is selected."""
        by_label = bool(self.labels) and self.labels.items() <= labels_of(manifest).items()
        by_path = bool(self.path and self.refer) and text_at(manifest, *self.path) == self.refer
        return by_label or by_path or manifest["metadata"]["name"] in self.names


class Reads(Struct, frozen=True):
    """Objects that a module reads without owning them, such as the pods of its Deployment.

    They are watched by *selector*, in kubectl's syntax (``app=web,tier=front``); an empty selector watches
    the whole kind. Each CR sees the objects that *of* selects for it. Without *of*, it sees the
    objects that belong to it by `Context.sees`.

    With *whole_namespace*, a CR sees all objects of the kind in its own namespace, and no others. They are watched in each namespace that has such a
    CR. A change calls the module again, every few seconds at most. Rights are granted by namespace (``kubectl reconcile grant``).

    *on_request* is for Secrets: none is listed, watched or passed to ``reconcile``. ``observe`` and ``act`` may read those that *of* names, and ``act`` may create them.
    With *rewrites*, ``act`` may also own Secrets and give them new values.
    """

    api_version: str
    kind: str
    selector: str = ""
    of: Callable[[Manifest], Select] | None = None
    on_request: bool = False
    rewrites: bool = False
    whole_namespace: bool = False

    def __post_init__(self) -> None:
        """Refuse a selector that isn't made of equalities.

        Raises:
            ValueError: a part of *selector* isn't ``key=value``, or nothing says which objects are a CR's, or two things do.
        """
        if self.whole_namespace:
            if self.selector or self.of is not None or self.on_request:
                raise ValueError(
                    "whole_namespace is all objects of a kind; it can't be combined with selector, of or on_request"
                )
            return
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


class Keeps(Struct, frozen=True):
    """A kind of children that stay when their CR goes, whoever deletes it and in whatever way: they carry no owner.

    Where the CR says *gone* at a *path* of its fields, they carry one, and go with it. The module must see those without an owner by what it `reads`, as with
    `volumes_left`. They are deleted only when an outcome names them in ``dropped``.
    """

    api_version: str
    kind: str
    path: tuple[str, ...] = ("spec", "deletionPolicy")
    gone: str = "Delete"

    def holds(self, cr: Manifest, child: Manifest) -> bool:
        """Tell whether *child* stays when *cr* goes."""
        is_kind = GroupVersionKind.of(child) == GroupVersionKind.parse(self.api_version, self.kind)
        return is_kind and text_at(cr, *self.path) != self.gone


class Unparsed(Protocol):
    """A live object that is parsed when it is asked for; each time again."""

    @property
    def ref(self) -> ObjectRef:
        """Which object this is."""

    @property
    def version(self) -> str:
        """What tells this very state of it from all others, of any object; empty where nothing does."""

    def manifest(self) -> Manifest:
        """Return the whole object, parsed."""


class _ParsedObject(Struct, frozen=True):
    """An object that was parsed already."""

    ref: ObjectRef
    body: Manifest
    version: str = ""

    def manifest(self) -> Manifest:
        return self.body


class Owned:
    """The live objects around one CR: *children* that it controls, and *read* objects of others.

    *around* are the objects that are read for a whole namespace. They can be many, so each is parsed only when the module asks for it. *unread* says which kinds
    couldn't be read, and why. In that case, a module must not conclude anything from missing objects.

    Kinds are named as kubectl does, ``Deployment`` or, where two groups share a kind,
    ``Deployment.apps``. Answers are sorted by name, so they don't depend on the order of events.
    """

    __slots__ = ("_around", "_children", "_read", "unread")

    def __init__(
        self,
        children: Iterable[Manifest] = (),
        read: Iterable[Manifest] = (),
        around: Iterable[Unparsed] = (),
        unread: Mapping[str, str] | None = None,
    ) -> None:
        self._around = tuple(sorted(around, key=lambda each: each.ref))
        self.unread: Mapping[str, str] = unread or {}
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
        """Return the objects of *kind* that belong to the CR but aren't its children."""
        found = tuple(_of_kind(self._read, kind))
        around = (each for each in self._around if kind in _names(each.ref.group_kind))
        return (
            tuple(sorted((*found, *(each.manifest() for each in around)), key=ObjectRef.of)) if self._around else found
        )

    def around(self, kinds: Collection[str]) -> Iterator[Unparsed]:
        """Yield the objects of *kinds* as `read` does, in no order, and without parsing objects that are read for a whole namespace."""
        wanted = frozenset(kinds)
        for each in self._read:
            if wanted & _names((ref := ObjectRef.of(each)).group_kind):
                yield _ParsedObject(ref, each)
        yield from (each for each in self._around if wanted & _names(each.ref.group_kind))

    def other(self, kind: str, name: str) -> Manifest | None:
        """Return the object of *kind* called *name* that belongs to the CR but isn't its child, or None."""
        return next((each for each in self.read(kind) if each["metadata"]["name"] == name), None)

    def known(self, kind: str, name: str) -> Manifest | None:
        """Return the object of *kind* called *name*, a child or one that is read, or None."""
        return self.get(kind, name) or self.other(kind, name)

    @property
    def children(self) -> tuple[Manifest, ...]:
        """All objects that the CR controls."""
        return self._children

    @property
    def others(self) -> tuple[Manifest, ...]:
        """All objects that belong to the CR, or that the module reads, and aren't its children."""
        return (*self._read, *(each.manifest() for each in self._around))

    def __deepcopy__(self, memo: dict[int, Any]) -> Owned:
        """Return a copy that shares what is parsed again for whoever asks."""
        return Owned(copy.deepcopy(self._children, memo), copy.deepcopy(self._read, memo), self._around, self.unread)

    def __iter__(self) -> Iterator[Manifest]:
        yield from self._children
        yield from self._read


@lru_cache(maxsize=1024)
def _names(kind: GroupKind) -> frozenset[str]:
    return frozenset({kind.kind, str(kind)})


def _of_kind(manifests: Iterable[Manifest], kind: str) -> Iterator[Manifest]:
    for manifest in manifests:
        if kind in _names(GroupVersionKind.of(manifest).group_kind):
            yield manifest


class Context(Struct, frozen=True):
    """The surroundings of one call for *cr*: the time (*now*, RFC 3339), names and labels for its children.

    *module* is the module's name. *unobserved* says why external systems couldn't be observed. In that case the
    facts are empty, children stay as they are, and no action runs. *ceilings* are the limits of the daemon, by their flags.
    """

    now: str
    module: str
    cr: Manifest
    unobserved: str = ""
    ceilings: Mapping[str, int] = field(default_factory=lambda: CEILINGS)

    @property
    def namespace(self) -> str:
        """The namespace of the CR and its children; empty for a cluster-scoped CR."""
        found: str = self.cr["metadata"].get("namespace") or ""
        return found

    def name(self, suffix: str = "") -> str:
        """Return the name of a child: the CR's, then *suffix*; always a valid DNS label.

        The same CR and suffix give the same name forever. A CR's name that is too long for
        this (63 characters) or has dots is shortened and told apart by a hash.

        Raises:
            ValueError: *suffix* isn't lower-case letters, digits and dashes, or is longer than 40.
        """
        if suffix and (len(suffix) > SUFFIX_MAX or not DNS_LABEL.fullmatch(suffix)):
            raise ValueError(f"suffix must be a DNS label of at most {SUFFIX_MAX} characters, not {suffix!r}")
        cr_name: str = self.cr["metadata"]["name"]
        tail = f"-{suffix}" if suffix else ""
        plain = cr_name + tail
        if len(plain) <= NAME_MAX and DNS_LABEL.fullmatch(plain):
            return plain
        tail = f"-{hashlib.sha256(cr_name.encode()).hexdigest()[:8]}{tail}"
        head = re.sub(r"[^a-z0-9]+", "-", cr_name.lower())[: NAME_MAX - len(tail)]
        return (head + tail).strip("-")

    def number_of(self, name: str) -> int:
        """Return the number for which *name* is ``self.name(str(number))``, -1 if there is none (or if it is 100,000 or more)."""
        tail = name.rpartition("-")[2]
        return int(tail) if tail.isdecimal() and len(tail) < 6 and name == self.name(str(int(tail))) else -1

    def selector(self, component: str = "") -> dict[str, str]:
        """Return the labels that select what belongs to this CR (or a *component* of it), and nothing else there.

        The set never grows: a Deployment's selector can't be changed once it exists.
        """
        whole = {NAME_LABEL: self.module, INSTANCE_LABEL: self.name(), MODULE_LABEL: self.module}
        return {**whole, COMPONENT_LABEL: component} if component else whole

    def labels(self, component: str = "") -> dict[str, str]:
        """Return the labels for a child: those of its selector, and the module that manages it."""
        return {**self.selector(component), MANAGED_BY_LABEL: FIELD_MANAGER}

    def sees(self, manifest: Manifest) -> bool:
        """Tell whether an object that the module reads belongs to this CR, by its namespace and its labels."""
        if self.namespace and manifest["metadata"].get("namespace") != self.namespace:
            return False
        return self.selector().items() <= labels_of(manifest).items()


def volumes_left(module: str) -> Reads:
    """Let a custom resource of *module* see the volume claims that an earlier one of its name has left."""

    def by_labels(cr: Manifest) -> Select:
        return Select(labels=Context("", module, cr).selector())

    return Reads("v1", "PersistentVolumeClaim", selector=f"{MODULE_LABEL}={module}", of=by_labels)
