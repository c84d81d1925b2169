"""Which rights the account of a Sync needs, by namespace and cluster-wide.

Vocabulary: *needs* are the rights that the objects of a source ask for, and what can't be given with them. A right is
*sensitive* where whoever holds it can come by others: ``escalate``, ``bind``, ``impersonate``, and whatever has a ``*`` in it.

Rules:

- Objects of namespaces: all of their kind there, since a commit may bring another. Cluster-scoped objects: by name, but for
  what RBAC can't limit so, which is to create, list and watch.
- RBAC lets nobody give what they don't hold. So whoever writes a Role needs the rights within, and whoever binds one
  needs those too: in the namespace where they apply. A ClusterRole's apply everywhere.
- What is sensitive is left out, and said, unless it is allowed. A Role of which anything is left out can't be written at
  all, so nothing of it is given.
- Pods, and ReplicaSets, of namespaces with workloads are listed, so that a rollout that fails names its pod.
- A Sync of another namespace that ``dependsOn`` names is read by name.
- Where the Sync says so, namespaces of its objects that aren't there are made.
- What the server asks of whoever sets a field of a custom resource that runs a pod, or hands out a Secret (``entrusted``).
- What a chart looks up, where the Sync has that read: an object by its name, or all of a kind.
- The Secrets that a Sync names, and the ConfigMap with the keys that it trusts, are read by name.
- What a module reads of whole namespaces, its own account reads in those of its custom resources.
- No module may read all Secrets. Where one makes or reads any for a custom resource, its own account needs those of that namespace.

Pure: manifests in, rights out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.module.api import Module, UnloadedModule
from kubectl_reconcile.core.module.rbac import LOOK, MANAGE, plural
from kubectl_reconcile.core.objects import (
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    Problem,
    Severity,
    mapping_of,
)
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, WORKLOADS, Kind, kinds_of_crd
from kubectl_reconcile.core.planning.rights.entrusted import EntrustedFields, rights_to_set
from kubectl_reconcile.core.planning.rights.rules import Right, TooManyRights, least, rights_in
from kubectl_reconcile.core.resources.sync import Sync

RBAC = "rbac.authorization.k8s.io"
ROLE, CLUSTER_ROLE = GroupKind(RBAC, "Role"), GroupKind(RBAC, "ClusterRole")
ROLE_BINDING, CLUSTER_ROLE_BINDING = GroupKind(RBAC, "RoleBinding"), GroupKind(RBAC, "ClusterRoleBinding")
_BINDINGS = {ROLE_BINDING, CLUSTER_ROLE_BINDING}
_ROLES = {ROLE: "roles", CLUSTER_ROLE: "clusterroles"}

_SECRET = GroupKind("", "Secret")

OF_ANY_NAME = ("create", "list", "watch")
"""What RBAC can't limit to names: a create has none yet, and members are listed by label."""

OF_A_NAME = ("get", "update", "patch", "delete")
"""What it can. To update is asked for by the trial of a takeover alone, and is no more than to patch."""

_OF_PODS = frozenset({Right("", "pods", "list"), Right("apps", "replicasets", "list")})
"""By which it is found which pod of a workload doesn't come up, and of which template it is."""

_ON_REQUEST = ("get", "create")
"""What a module needs that reads Secrets by name and makes those that are missing."""

_REWRITING = (*_ON_REQUEST, "patch")
"""What it needs to give new values to those that it has made."""

_SHOWN = 3


class Sensitive(StrEnum):
    """Rights with which other rights can be gained: never given unasked."""

    BIND = "bind"
    """To bind Roles whose rights one doesn't hold."""
    ESCALATE = "escalate"
    """To write rights into Roles that one doesn't hold."""
    IMPERSONATE = "impersonate"
    """To act as somebody else."""
    WILDCARDS = "wildcards"
    """Whatever has a ``*`` in it: it grows with the cluster."""

    @classmethod
    def of(cls, right: Right) -> Sensitive | None:
        """Return why *right* is sensitive; None where it isn't."""
        if right.is_wildcard:
            return cls.WILDCARDS
        return cls(right.verb) if right.verb in {cls.BIND, cls.ESCALATE, cls.IMPERSONATE} else None


class Needs(Struct, frozen=True):
    """What an account needs: *here*, by namespace, and *everywhere*. Neither takes the other for granted.

    *problems* say what can't be given with these, or wasn't understood. *made* are the namespaces that the source holds. *of_modules* is
    what modules need for the source's custom resources, by namespace and account.
    """

    here: Mapping[str, frozenset[Right]] = field(default_factory=dict)
    everywhere: frozenset[Right] = frozenset()
    problems: tuple[Problem, ...] = ()
    made: frozenset[str] = frozenset()
    of_modules: Mapping[tuple[str, str], frozenset[Right]] = field(default_factory=dict)

    def placed(self) -> Iterator[tuple[str, Right]]:
        """Yield each right with its namespace, which is empty for those that are needed everywhere; always in the same order."""
        yield from (("", right) for right in sorted(self.everywhere))
        yield from ((place, right) for place in sorted(self.here) for right in sorted(self.here[place]))

    def only(self, wanted: Collection[tuple[str, Right]]) -> Needs:
        """Return these needs without the rights that aren't *wanted*, each with its namespace."""
        here = {
            place: frozenset(one for one in rights if (place, one) in wanted) for place, rights in self.here.items()
        }
        everywhere = frozenset(one for one in self.everywhere if ("", one) in wanted)
        return replace(self, here={place: rights for place, rights in here.items() if rights}, everywhere=everywhere)


class RightsInputs(Struct, frozen=True):
    """What needs are found from: what the source of *sync* asks for, the *kinds* that the cluster serves, live *roles*.

    *members* are objects that belong to the set and that the source doesn't ask for any more: they are to be deleted.
    *allowed* are the sensitive rights that a person asks for. *modules* are installed, by the kind that each owns.
    *looked_up* are the rights to read what a chart looks up, each with its namespace. *entrusted* are the fields of custom resources that
    take further rights to set.
    """

    sync: Sync
    desired: Collection[Located]
    kinds: Mapping[GroupVersionKind, Kind]
    roles: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    members: Collection[tuple[ObjectRef, Kind]] = ()
    allowed: frozenset[Sensitive] = frozenset()
    modules: Mapping[GroupVersionKind, Module] = field(default_factory=dict)
    looked_up: frozenset[tuple[str, Right]] = frozenset()
    entrusted: EntrustedFields = field(default_factory=dict)

    def having(self, members: Collection[tuple[ObjectRef, Kind]]) -> RightsInputs:
        """Return these inputs with *members* that are to be deleted."""
        return replace(self, members=members)

    def known_kinds(self) -> Mapping[GroupVersionKind, Kind]:
        """Return the kinds that are served, and those that the source's own CRDs bring."""
        brought: dict[GroupVersionKind, Kind] = {}
        for located in self.desired:
            if located.gvk.group_kind == CRD:
                brought.update(kinds_of_crd(located.manifest))
        return {**brought, **self.kinds}

    def own_roles(self) -> dict[ObjectRef, Manifest]:
        """Return the Roles and ClusterRoles that the source asks for."""
        return {self.placed(each): each.manifest for each in self.desired if each.gvk.group_kind in _ROLES}

    def placed(self, located: Located) -> ObjectRef:
        """Return the reference of an RBAC object of the source, in its namespace."""
        ref = located.ref
        if ref.group_kind in {CLUSTER_ROLE, CLUSTER_ROLE_BINDING}:
            return ref._replace(namespace="")
        return ref._replace(namespace=ref.namespace or self.sync.default_namespace)


def roles_to_read(sync: Sync, desired: Collection[Located]) -> frozenset[ObjectRef]:
    """Return the Roles and ClusterRoles that bindings of a source refer to, and that it doesn't hold itself."""
    source = RightsInputs(sync, desired, {})
    own = source.own_roles()
    bindings = (located for located in desired if located.gvk.group_kind in _BINDINGS)
    found = (role_bound_by(source.placed(located), located.manifest) for located in bindings)
    return frozenset(ref for ref in found if ref is not None and ref not in own)


def needs_of(source: RightsInputs) -> Needs:
    """Return what the account of a Sync needs for all that its source asks for. The order of the source doesn't matter."""
    gathering = _Gathering(source, source.own_roles())
    kinds = source.known_kinds()
    for located in source.desired:
        kind = kinds.get(located.gvk)
        if kind is None:
            gathering.tell(located, f"the cluster knows no kind {located.gvk}: no rights for it", "apply its CRD first")
            continue
        ref = gathering.ref_of(located, kind)
        gathering.member(ref, kind)
        gathering.modules(ref.namespace, located)
        if fields := source.entrusted.get(located.gvk.group_kind):
            gathering.rights[ref.namespace] |= rights_to_set(fields, located.manifest)
        if located.gvk.group_kind in _ROLES:
            gathering.role(located)
        elif located.gvk.group_kind in _BINDINGS:
            gathering.binding(located)
    for ref, kind in source.members:
        gathering.member(ref, kind)
    gathering.secrets()
    gathering.lookups()
    gathering.dependencies()
    gathering.namespaces()
    return gathering.needs()


class _Gathering(Struct):
    """Needs so far; *own* are the Roles of the source."""

    source: RightsInputs
    own: Mapping[ObjectRef, Manifest]
    rights: dict[str, set[Right]] = field(default_factory=lambda: defaultdict(set))
    problems: set[tuple[str, int, str, str]] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    of_modules: dict[tuple[str, str], set[Right]] = field(default_factory=lambda: defaultdict(set))

    def needs(self) -> Needs:
        here = {place: least(rights) for place, rights in sorted(self.rights.items()) if place and rights}
        problems = tuple(
            Problem(path, line, message, hint, Severity.WARNING) for path, line, message, hint in sorted(self.problems)
        )
        of_modules = {key: frozenset(rights) for key, rights in sorted(self.of_modules.items())}
        return Needs(here, least(self.rights.get("", set())), problems, frozenset(self.made), of_modules)

    def ref_of(self, located: Located, kind: Kind) -> ObjectRef:
        place = (located.ref.namespace or self.source.sync.default_namespace) if kind.namespaced else ""
        return located.ref._replace(namespace=place)

    def member(self, ref: ObjectRef, kind: Kind) -> None:
        """Have the account manage an object."""
        group, resource = kind.gvk.group, kind.plural
        name = "" if kind.namespaced else ref.name
        self.rights[ref.namespace] |= {Right(group, resource, verb) for verb in OF_ANY_NAME}
        self.rights[ref.namespace] |= {Right(group, resource, verb, name) for verb in OF_A_NAME}
        if ref.group_kind == NAMESPACE:
            self.made.add(ref.name)
        if ref.group_kind in WORKLOADS:
            self.rights[ref.namespace] |= _OF_PODS

    def modules(self, place: str, located: Located) -> None:
        """Have the modules behind a custom resource manage the Secrets that they make or read there, and read what they read all of."""
        queue, seen = [located.gvk] if place else [], set[str]()
        while queue:
            module = self.source.modules.get(queue.pop())
            if module is None or module.name in seen:
                continue
            if isinstance(module, UnloadedModule):
                self.tell(located, f"the rights of a module aren't known: {module.why}", module.hint)
            seen.add(module.name)
            queue.extend(module.owns)
            for each in module.reads:
                if each.whole_namespace:
                    group, resource = each.gvk.group, plural(each.gvk.kind)
                    self.of_modules[place, module.account] |= {Right(group, resource, verb) for verb in LOOK}
            verbs = {verb for each in module.owns if each.group_kind == _SECRET for verb in MANAGE}
            for each in module.reads:
                if each.gvk.group_kind == _SECRET and not each.whole_namespace:
                    verbs |= {*(_REWRITING if each.rewrites else _ON_REQUEST if each.on_request else LOOK)}
            if verbs:
                self.of_modules[place, module.account] |= {Right("", "secrets", verb) for verb in verbs}

    def role(self, located: Located) -> None:
        """Have the account hold what a Role gives, so that it may write it."""
        ref = self.source.placed(located)
        if ref.group_kind == CLUSTER_ROLE and located.manifest.get("aggregationRule") is not None:
            self._aggregated(ref, located)
            return
        rights = self._rights_in(located, ref, located.manifest)
        if rights is None:
            return
        if held := self._not_allowed(rights):
            what, words = _told(held)
            self.tell(located, f"{ref} grants {what}, so the account may not write it", f"--allow {words} grants that")
            return
        self._hold(ref.namespace, rights)

    def _hold(self, place: str, rights: Iterable[Right]) -> None:
        """Give rights in a place; those on URLs are given by ClusterRoles alone, and everywhere."""
        for right in rights:
            self.rights["" if right.url else place].add(right)

    def _aggregated(self, ref: ObjectRef, located: Located) -> None:
        if Sensitive.ESCALATE in self.source.allowed:
            self.rights[""].add(Right(RBAC, "clusterroles", "escalate", ref.name))
            return
        self.tell(
            located,
            f"{ref} aggregates the rules of other ClusterRoles (aggregationRule); only accounts with all rights may write it",
            "apply it by hand, or --allow escalate lets the account write it, no matter what it aggregates",
        )

    def binding(self, located: Located) -> None:
        """Have the account hold what a binding gives to others, so that it may write it."""
        ref = self.source.placed(located)
        role = role_bound_by(ref, located.manifest)
        if role is None:
            self.tell(located, f"{ref} refers to no Role or ClusterRole", "correct its roleRef")
            return
        found = self.own.get(role) or self.source.roles.get(role)
        why = "can't be read, so it isn't known which rights it grants"
        if found is not None and not (role in self.own and found.get("aggregationRule") is not None):
            rights = self._rights_in(located, role, found)
            if rights is None:
                return
            if not self._is_better_bound(rights):
                self._hold(ref.namespace, rights)
                if found.get("aggregationRule") is not None:
                    what = f"{ref} binds {role}, which aggregates the rules of other ClusterRoles"
                    self.tell(
                        located,
                        what,
                        "run grant again when its rules have changed; otherwise the account may not write the binding",
                    )
                return
            why = f"gives {_told(_sensitive(rights))[0]}"
        elif found is not None:
            why = "aggregates the rules of other ClusterRoles"
        if Sensitive.BIND in self.source.allowed:
            self.rights[ref.namespace].add(Right(RBAC, _ROLES[role.group_kind], "bind", role.name))
            return
        hint = f"--allow bind lets the account bind {role.name}, no matter which rights it has"
        self.tell(located, f"{ref} binds {role}, which {why}, so the account may not write it", hint)

    def dependencies(self) -> None:
        """Note the right to read Syncs of other namespaces that this one waits for."""
        sync = self.source.sync
        for ref in (each.ref for each in sync.depends_on):
            if ref.namespace != sync.namespace:
                self.rights[ref.namespace] |= {Right(ref.group, "syncs", "get", ref.name)}

    def lookups(self) -> None:
        """Have the account read what the chart looks up."""
        for place, right in self.source.looked_up:
            self.rights[place].add(right)

    def secrets(self) -> None:
        """Have the account read the Secrets that the Sync names, the ConfigMaps with the keys that it trusts, and what holds values of variables or of a chart."""
        if (source := self.source.sync.source) is None:
            return
        here = self.rights[self.source.sync.namespace]
        here |= {Right("", "secrets", "get", name) for name in source.secrets}
        here |= {Right("", f"{each.kind.lower()}s", "get", each.name) for each in source.keys}
        for holder, name in source.holders:
            here |= {Right("", f"{holder.lower()}s", verb, name) for verb in ("get", "list", "watch")}

    def namespaces(self) -> None:
        """Have the account make the namespaces of its objects that aren't there, where the Sync says so."""
        sync = self.source.sync
        places = (
            {place for place in self.rights if place not in {"", sync.namespace}} if sync.create_namespace else set()
        )
        for place in places - self.made:
            self.made.add(place)
            self.rights[""] |= {Right("", "namespaces", "create"), Right("", "namespaces", "get", place)}

    def tell(self, located: Located, message: str, hint: str) -> None:
        self.problems.add((located.path, located.line, message, hint))

    def _rights_in(self, located: Located, ref: ObjectRef, role: Manifest) -> frozenset[Right] | None:
        try:
            return rights_in(role.get("rules"))
        except TooManyRights as error:
            self.tell(located, f"{ref} amounts to {error}, which are too many to grant", "use fewer rules")
            return None

    def _not_allowed(self, rights: Iterable[Right]) -> list[Right]:
        """Return the sensitive ones of *rights*, but for those that are allowed."""
        return [right for right in _sensitive(rights) if Sensitive.of(right) not in self.source.allowed]

    def _is_better_bound(self, rights: Iterable[Right]) -> bool:
        """Tell whether a role is to be bound without holding *rights*: to bind one role is less than to hold a wildcard."""
        return bool(_sensitive(rights) if Sensitive.BIND in self.source.allowed else self._not_allowed(rights))


def _sensitive(rights: Iterable[Right]) -> list[Right]:
    return sorted(right for right in rights if Sensitive.of(right))


def is_binding(ref: ObjectRef) -> bool:
    """Tell whether *ref* is that of a RoleBinding or ClusterRoleBinding."""
    return ref.group_kind in _BINDINGS


def resource_of_role(ref: ObjectRef) -> str:
    """Return ``roles`` or ``clusterroles`` for the reference of one; empty for any other."""
    return _ROLES.get(ref.group_kind, "")


def role_bound_by(ref: ObjectRef, binding: Manifest) -> ObjectRef | None:
    """Return the Role or ClusterRole that the binding *ref* refers to; None where it refers to none."""
    named = mapping_of(binding.get("roleRef"))
    kind, name = GroupKind(RBAC, str(named.get("kind"))), named.get("name")
    if kind not in _ROLES or not isinstance(name, str) or not name or (kind == ROLE and not ref.namespace):
        return None
    return ObjectRef(*kind, ref.namespace if kind == ROLE else "", name)


def _told(rights: list[Right]) -> tuple[str, str]:
    """Return what sensitive *rights* are as a sentence has them, and the flags that allow them."""
    words = sorted({str(Sensitive.of(right)) for right in rights})
    shown = first_few((f"“{right}”" for right in rights), _SHOWN, rest="more like these")
    return shown, " --allow ".join(words)
