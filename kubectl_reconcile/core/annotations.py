"""Every ``reconcile.dev/…`` annotation, label and finalizer: its name, its meaning, and what an object says by it.

Vocabulary: a *name* is the key as it stands in ``metadata``. Names are spelled in kebab-case. Each has a row in
`TABLE`, which says where it stands, on which objects, who writes it and which values it may have; ``docs/annotations.md`` is made of it.

An object's *options* are what its annotations ask for, read once. A value that can't be meant is a *fault*. Reading
never fails: annotations of live objects are anybody's to write, so a fault there costs nothing but the option itself. In doubt
an object stays: an option that keeps it and can't be read counts as given.

Names of earlier versions are honoured until 1.0; whoever reads one says what it is called now. What an object says to other tools
(``other_tools``) counts where it says nothing in our words.

Pure: metadata in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from kubectl_reconcile.core.objects import API_GROUP, Manifest, ObjectRef, annotations_of
from kubectl_reconcile.core.other_tools.translation import NOTHING, PREFIXES, Aspect, Translation, translation
from kubectl_reconcile.core.ssa.merge import ConflictPolicy

PREFIX: Final = f"{API_GROUP}/"
"""What all names begin with."""

# What each name means stands in TABLE.

# On objects in a source, by whoever writes manifests.
WAVE: Final = f"{PREFIX}wave"
DEPENDS_ON: Final = f"{PREFIX}depends-on"
HOOK: Final = f"{PREFIX}hook"
REPLACE: Final = f"{PREFIX}replace"
KEEP: Final = f"{PREFIX}prune"
CONFLICTS: Final = f"{PREFIX}conflicts"
MOVED_FROM: Final = f"{PREFIX}moved-from"
MEMBER_NAMESPACES: Final = f"{PREFIX}member-namespaces"
MEMBERS_FROM: Final = f"{PREFIX}members-from"
MOVED_TO: Final = f"{PREFIX}moved-to"

# On live members, by the program.
SOURCE: Final = f"{PREFIX}source"
HOOK_RUN: Final = f"{PREFIX}hook-run"

# On Secrets with credentials for repositories.
URLS: Final = f"{PREFIX}urls"

# On custom resources that have a module.
PAUSED: Final = f"{PREFIX}paused"
ABANDON: Final = f"{PREFIX}abandon"
APPROVE_ACTIONS: Final = f"{PREFIX}approve-actions"
APPROVED_ACTIONS: Final = f"{PREFIX}approved-actions"
ACTIONS: Final = f"{PREFIX}actions"
OBSERVED: Final = f"{PREFIX}observed"

# On Syncs.
SYNC_REQUESTED_AT: Final = f"{PREFIX}sync-requested-at"
RESUME_REQUESTED_AT: Final = f"{PREFIX}resume-requested-at"
APPROVED_PLAN: Final = f"{PREFIX}approved-plan"
PINNED_FROM: Final = f"{PREFIX}pinned-from"
PUSHED_AT: Final = f"{PREFIX}pushed-at"
PRUNE_FINALIZER: Final = f"{PREFIX}prune"

# On Leases of daemons.
COMPONENT: Final = f"{PREFIX}component"
FOLLOWS: Final = f"{PREFIX}follows"
MEMBERS: Final = f"{PREFIX}members"
ACKNOWLEDGED_GROUP: Final = f"{PREFIX}acknowledged-group"
LEAVING: Final = f"{PREFIX}leaving"
PROCESS: Final = f"{PREFIX}process"
REPLACES: Final = f"{PREFIX}replaces"

# Elsewhere.
MODULE_LABEL: Final = f"{PREFIX}module"
AGGREGATE_TO_WATCH: Final = f"{PREFIX}aggregate-to-watch"
GRANTED_TO: Final = f"{PREFIX}granted-to"
MAY_TELL_OF_PUSHES: Final = f"{PREFIX}may-tell-of-pushes"
MAY_SCRAPE: Final = f"{PREFIX}may-scrape"
MAY_REACH_PAGE: Final = f"{PREFIX}may-reach-page"
EVENT_CONTROLLER: Final = f"{PREFIX}daemon"


def finalizer_of(module: str) -> str:
    """Return the finalizer of a module's CRs."""
    return f"{PREFIX}{module}"


class HookPoint(StrEnum):
    """When a hook runs."""

    PRE_SYNC = "pre-sync"
    """Before anything is written; nothing is, unless it completes."""
    SYNC = "sync"
    """In its wave, with everything else."""
    POST_SYNC = "post-sync"
    """Once everything is written and healthy."""
    SYNC_FAIL = "sync-fail"
    """When something failed."""


# --- the table ----------------------------------------------------------------------------------


class Place(StrEnum):
    """Where in an object a name stands."""

    ANNOTATION = "annotation"
    LABEL = "label"
    FINALIZER = "finalizer"
    EVENT = "`reportingController`"


class WrittenBy(StrEnum):
    """Who writes a name."""

    PERSON = "a person, in Git"
    ANYBODY = "a person, in Git or by hand"
    CLI = "`kubectl reconcile`"
    PROGRAM = "the daemon, and `kubectl reconcile sync`"
    DAEMON = "the daemon"


class Row(Struct, frozen=True):
    """One name: where it stands, on which objects, who writes it, which values it has, and what it is for.

    *former* is what it was called before.
    """

    name: str
    place: Place
    objects: str
    writer: WrittenBy
    values: str
    meaning: str
    former: str = ""


_MEMBERS = "objects in a source"
_CRS = "custom resources with a module"
_BOOLEAN = '`"true"`, `"false"` (the default)'

TABLE: Final = (
    Row(WAVE, Place.ANNOTATION, _MEMBERS, WrittenBy.PERSON, "an integer; `0` is the default",
        "Objects of a lower wave are written first. They must be healthy before the next wave starts."),
    Row(DEPENDS_ON, Place.ANNOTATION, _MEMBERS, WrittenBy.PERSON, "`Kind.group/namespace/name`, separated by commas",
        "The object is written once these objects of the same source are healthy."),
    Row(HOOK, Place.ANNOTATION, "Jobs in a source", WrittenBy.PERSON, ", ".join(f"`{point}`" for point in HookPoint),
        "The Job runs at this point of a sync, once for each state of the files. With an empty value, the Job isn't a hook."),
    Row(REPLACE, Place.ANNOTATION, _MEMBERS, WrittenBy.PERSON, '`"true"`, `"false"`; the default is the Sync\'s `spec.replace`',
        "Whether the object may be deleted and recreated if a changed field is immutable. Data in the object is lost."),
    Row(KEEP, Place.ANNOTATION, _MEMBERS, WrittenBy.ANYBODY, '`"false"`, `"true"` (the default)',
        '`"false"` keeps the object in the cluster when its file is removed.'),
    Row(CONFLICTS, Place.ANNOTATION, _MEMBERS, WrittenBy.PERSON,
        "`Override`, `Yield`, `Fail`; the default is the Sync's `spec.conflicts`",
        "What happens to a field of this object if Git and another field manager want different values."),
    Row(MEMBERS_FROM, Place.ANNOTATION, "Syncs", WrittenBy.ANYBODY, "`NAMESPACE/NAME` of a Sync, or the id of its set",
        "As `moved-from` on each object of the source: for a Sync that was renamed."),
    Row(MOVED_FROM, Place.ANNOTATION, _MEMBERS, WrittenBy.PERSON, "`NAMESPACE/NAME` of a Sync, or the id of its set",
        "This Sync takes over the object from that one, without deleting it. If that Sync is in another namespace, the object must have `moved-to` there."),
    Row(MOVED_TO, Place.ANNOTATION, _MEMBERS, WrittenBy.PERSON, "`NAMESPACE/NAME` of a Sync",
        "That Sync may take over the object. Until it does, this one keeps applying it."),
    Row(SOURCE, Place.ANNOTATION, "members of a Sync", WrittenBy.PROGRAM, "a path, relative to the Sync's own",
        "The file that asks for the object."),
    Row(HOOK_RUN, Place.ANNOTATION, "Jobs that ran as hooks", WrittenBy.PROGRAM, "a digest",
        "The state of the files for which the Job ran."),
    Row(URLS, Place.ANNOTATION, "Secrets with a repository's credentials", WrittenBy.ANYBODY,
        "URLs, separated by white space, such as `https://git.example.com/team`",
        "The credentials are sent only to these URLs and to URLs below them. `kubectl reconcile create` also sets this annotation."),
    Row(PAUSED, Place.ANNOTATION, _CRS, WrittenBy.ANYBODY, _BOOLEAN,
        "Leave the resource, its children and external systems as they are."),
    Row(ABANDON, Place.ANNOTATION, _CRS, WrittenBy.ANYBODY, _BOOLEAN,
        "Delete the resource without cleaning up outside, because the external system is gone for good."),
    Row(APPROVE_ACTIONS, Place.ANNOTATION, _CRS, WrittenBy.PERSON,
        "verbs or keys of actions, separated by commas; `*` means all",
        "These actions need no further approval."),
    Row(APPROVED_ACTIONS, Place.ANNOTATION, _CRS, WrittenBy.CLI, "keys of actions, separated by commas",
        "Actions that a person approved with `kubectl reconcile approve`."),
    Row(ACTIONS, Place.ANNOTATION, _CRS, WrittenBy.PROGRAM, "JSON",
        "The journal of actions: which of them are started, done or failed."),
    Row(OBSERVED, Place.ANNOTATION, _CRS, WrittenBy.DAEMON, "JSON",
        "What the daemon last observed of the resource's pods, and when. Previews that can't reach the pods use it."),
    Row(SYNC_REQUESTED_AT, Place.ANNOTATION, "Syncs", WrittenBy.CLI, "any new value, usually the time",
        "Sync now; the value is echoed in `status.lastHandledSyncAt`."),
    Row(RESUME_REQUESTED_AT, Place.ANNOTATION, f"Syncs, {_CRS}", WrittenBy.CLI, "any new value, usually the time",
        "Write contended fields again, which the daemon had left to another controller.", former=f"{PREFIX}resumeRequestedAt"),
    Row(APPROVED_PLAN, Place.ANNOTATION, "Syncs", WrittenBy.CLI, "approval hashes, separated by commas",
        "Approve what is held. The sync that carries out everything removes it."),
    Row(PINNED_FROM, Place.ANNOTATION, "Syncs", WrittenBy.CLI, 'JSON, as in `{"branch": "main"}`',
        "What the Sync followed, and said of its chart, before `rollback` pinned it to a commit. `resume` restores it."),
    Row(MEMBER_NAMESPACES, Place.ANNOTATION, "Syncs", WrittenBy.PROGRAM, "`Kind.group=NAMESPACE,NAMESPACE`, separated by `;`",
        "In which namespaces the Sync has members of a kind, if not in all that it has members in."),
    Row(PUSHED_AT, Place.ANNOTATION, "Syncs", WrittenBy.DAEMON, "any new value",
        "A webhook reported a push. The replica that works on the Sync checks the repository at once."),
    Row(PRUNE_FINALIZER, Place.FINALIZER, "Syncs with `deletionPolicy: Prune`", WrittenBy.DAEMON, "",
        "The Sync's members are deleted before the Sync."),
    Row(finalizer_of("MODULE"), Place.FINALIZER, _CRS, WrittenBy.DAEMON, "",
        "The module cleans up outside before the resource is deleted."),
    Row(MODULE_LABEL, Place.LABEL, "children of custom resources", WrittenBy.PROGRAM, "the module's name",
        "The module that created the object."),
    Row(AGGREGATE_TO_WATCH, Place.LABEL, "ClusterRoles", WrittenBy.ANYBODY, '`"true"`',
        "The daemon watches the kinds that this role allows once for all Syncs, rather than as each Sync's account."),
    Row(GRANTED_TO, Place.LABEL, "Roles, ClusterRoles and their bindings", WrittenBy.CLI, "the id of a Sync's set",
        "`kubectl reconcile grant` created the object for the account of this Sync. A later grant removes what isn't needed any more."),
    Row(MAY_TELL_OF_PUSHES, Place.LABEL, "namespaces", WrittenBy.ANYBODY, '`"true"`',
        "The installed NetworkPolicy lets pods of the namespace reach the webhook port."),
    Row(MAY_SCRAPE, Place.LABEL, "namespaces", WrittenBy.ANYBODY, '`"true"`',
        "The installed NetworkPolicy lets pods of the namespace reach the daemon's metrics."),
    Row(MAY_REACH_PAGE, Place.LABEL, "namespaces", WrittenBy.ANYBODY, '`"true"`',
        "The NetworkPolicy of `install --ui` lets pods of the namespace reach the page, such as those of the proxy in front of it."),
    Row(COMPONENT, Place.LABEL, "Leases of daemons", WrittenBy.DAEMON, "`daemon`, `group`",
        "Whether the Lease belongs to one replica or to the group of replicas."),
    Row(FOLLOWS, Place.LABEL, "Leases of daemons", WrittenBy.DAEMON, "a namespace",
        "The only namespace whose Syncs the daemon follows. Without this label, the daemon follows all namespaces."),
    Row(MEMBERS, Place.ANNOTATION, "the Lease of the group", WrittenBy.DAEMON, "generation and names",
        "The replicas that share the work."),
    Row(ACKNOWLEDGED_GROUP, Place.ANNOTATION, "Leases of replicas", WrittenBy.DAEMON, "a generation, `@`, and the uid of its Lease",
        "The generation of the group that the replica follows."),
    Row(LEAVING, Place.ANNOTATION, "Leases of replicas", WrittenBy.DAEMON, '`"true"`',
        "The replica is shutting down; others may take over its share."),
    Row(PROCESS, Place.ANNOTATION, "Leases of replicas", WrittenBy.DAEMON, "machine, process id and start",
        "Tells another replica on the same machine whether the process still exists."),
    Row(REPLACES, Place.ANNOTATION, "Leases of replicas", WrittenBy.DAEMON, "the uid of a Lease",
        "The Lease that the replica had before. The replica writes nothing any more under the old Lease."),
    Row(EVENT_CONTROLLER, Place.EVENT, "Events", WrittenBy.DAEMON, "",
        "The program that reports the event."),
)  # fmt: skip
"""All names."""

_FORMER = {row.name: row.former for row in TABLE if row.former}


def names_of(name: str) -> tuple[str, ...]:
    """Return the names under which an annotation counts: its own, and the one that it had before."""
    return (name, _FORMER[name]) if name in _FORMER else (name,)


def renamed(manifest: Manifest) -> Iterator[str]:
    """Yield for each annotation of an earlier version what it is called now, as a sentence."""
    noted = annotations_of(manifest)
    for name, former in _FORMER.items():
        if former in noted:
            yield f"annotation {former} is called {name} now; the old name works until 1.0"


# --- what an object asks for --------------------------------------------------------------------


class Fault(Struct, frozen=True):
    """An annotation whose value can't be meant: what is wrong, and what to do."""

    name: str
    message: str
    hint: str


class MemberOptions(Struct, frozen=True):
    """What an object's annotations ask for; the rows of `TABLE` say what each means.

    *replace* and *conflicts* are None where the Sync decides. *source* is empty unless it is a clean relative path. In *depends_on*
    the namespace is empty where the text names none. *theirs* is what the object says to other tools.
    """

    wave: int = 0
    depends_on: tuple[ObjectRef, ...] = ()
    hook: HookPoint | None = None
    hook_run: str = ""
    replace: bool | None = None
    kept: bool = False
    conflicts: ConflictPolicy | None = None
    moved_from: ObjectRef | None = None
    moved_to: ObjectRef | None = None
    source: str = ""
    paused: bool = False
    abandoned: bool = False
    faults: tuple[Fault, ...] = ()
    theirs: Translation = NOTHING

    @classmethod
    def of(cls, manifest: Manifest) -> MemberOptions:
        """Return the options of an object, live or in a source. Never raises."""
        noted = {name: text for name, text in annotations_of(manifest).items() if name.startswith(_READ)}
        return _read(noted, translated(manifest)) if noted else NO_OPTIONS

    def fault(self, *names: str) -> Fault | None:
        """Return what is wrong with the first of these annotations that has a fault; None where none has."""
        return next((fault for fault in self.faults if fault.name in names), None)


NO_OPTIONS: Final = MemberOptions()
"""The options of an object that asks for nothing."""

_READ: Final = (PREFIX, *PREFIXES)
_ASPECTS: Final = {Aspect.HOOK: HOOK, Aspect.WAVE: WAVE, Aspect.PRUNE: KEEP, Aspect.REPLACE: REPLACE}


def translated(manifest: Manifest) -> Translation:
    """Return what an object says to other tools, but for what it says in our words as well. Never raises."""
    noted = annotations_of(manifest)
    if not any(name.startswith(PREFIXES) for name in noted):
        return NOTHING
    return translation(noted, str(manifest.get("kind")), {each for each, ours in _ASPECTS.items() if ours in noted})


_Value = TypeVar("_Value")
_Reader: TypeAlias = Callable[[str], _Value]


class _UnusableError(ValueError):
    """A value that can't be meant; the first argument is what is wrong, the second what to write."""


def _read(noted: Mapping[str, str], theirs: Translation) -> MemberOptions:
    faults: list[Fault] = []

    def value(name: str, reader: _Reader[_Value], default: _Value, otherwise: _Value) -> _Value:
        """Return what an annotation says, *default* where it isn't there, *otherwise* where it can't be read."""
        if name not in noted:
            return default
        try:
            return reader(noted[name])
        except _UnusableError as error:
            faults.append(Fault(name, f"{name} {error.args[0]}", error.args[1]))
            return otherwise

    return MemberOptions(
        wave=value(WAVE, _integer, theirs.wave or 0, 0),
        depends_on=value(DEPENDS_ON, _targets, (), ()),
        hook=value(HOOK, _hook_point, HookPoint(theirs.point) if theirs.runs else None, None),
        hook_run=noted.get(HOOK_RUN, ""),
        replace=value(REPLACE, _boolean, theirs.replace, False),
        kept=not value(KEEP, _boolean, default=not theirs.kept, otherwise=False),
        conflicts=value(CONFLICTS, _policy, None, ConflictPolicy.FAIL),
        moved_from=value(MOVED_FROM, _origin, None, None),
        moved_to=value(MOVED_TO, _sync, None, None),
        source=noted[SOURCE] if _is_clean_path(noted.get(SOURCE, "")) else "",
        paused=value(PAUSED, _boolean, default=False, otherwise=True),
        abandoned=value(ABANDON, _boolean, default=False, otherwise=False),
        faults=tuple(faults),
        theirs=theirs,
    )


def _integer(text: str) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", text):
        raise _UnusableError(f"must be an integer, not {_shown(text)}", 'write it in digits, as in "2"')
    return int(text)


def _boolean(text: str) -> bool:
    if text not in {"true", "false"}:
        raise _UnusableError(f'must be "true" or "false", not {_shown(text)}', 'write "true" or "false", quoted')
    return text == "true"


def _hook_point(text: str) -> HookPoint | None:
    if not text:
        return None
    try:
        return HookPoint(text)
    except ValueError:
        raise _UnusableError(f"is {_shown(text)}", f"write {', '.join(HookPoint)}") from None


def _policy(text: str) -> ConflictPolicy:
    try:
        return ConflictPolicy(text.lower())
    except ValueError:
        raise _UnusableError(f"is {_shown(text)}", "write Override, Yield or Fail") from None


def _sync(text: str) -> ObjectRef:
    namespace, _, name = text.strip().partition("/")
    if not namespace or not name or "/" in name:
        raise _UnusableError(f"is {_shown(text)}, which isn't the name of a Sync", "write NAMESPACE/NAME")
    return ObjectRef(API_GROUP, "Sync", namespace, name)


def _origin(text: str) -> ObjectRef:
    """Return the Sync that an object comes from; of one whose name nobody knows any more, its set's id stands for it, in no namespace."""
    if _SET_ID.fullmatch(text.strip()):
        return ObjectRef(API_GROUP, "Sync", "", text.strip())
    try:
        return _sync(text)
    except _UnusableError as error:
        raise _UnusableError(error.args[0], f"{error.args[1]}, or the id of its set, as in applyset-…-v1") from None


def origin_of_members(noted: Mapping[str, str]) -> ObjectRef | None:
    """Return the Sync whose members a Sync takes over, going by its annotations; None where it names none that can be meant."""
    try:
        return _origin(noted[MEMBERS_FROM]) if MEMBERS_FROM in noted else None
    except _UnusableError:
        return None


_SET_ID = re.compile(r"applyset-[A-Za-z0-9_-]{43}-v1")

_TARGET = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?:\.([a-z0-9.-]+))?/(?:([a-z0-9-]+)/)?([^/\s,]+)")


def _targets(text: str) -> tuple[ObjectRef, ...]:
    return tuple(_target(entry.strip()) for entry in text.split(",") if entry.strip())


def _target(entry: str) -> ObjectRef:
    found = _TARGET.fullmatch(entry.replace(" ", "/", 1))
    if not found:
        what = "write Kind.group/namespace/name, as in Deployment.apps/shop/web"
        raise _UnusableError(f"has {_shown(entry)}", what)
    kind, group, namespace, name = found.groups()
    return ObjectRef(group or "", kind, namespace or "", name)


def _is_clean_path(path: str) -> bool:
    """Tell whether *path* may name a file of a source: relative, going nowhere up, of printable characters."""
    return path.isprintable() and all(step not in {"", ".", ".."} for step in path.split("/"))


def _shown(text: str) -> str:
    """Return a value as it may be shown: escaped, and not at any length."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


_LONGEST_SHOWN = 80
