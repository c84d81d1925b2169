"""The server's word on a plan: every change tried by a dry run before anything is written.

Preview and sync go through the same trial, so what the one shows the other meets. What the server
would refuse is blocked, with its words; what it finds unchanged is unchanged, each field of an object
too; defaults and webhooks show in what comes after. An update that fails only because fields can't change becomes a
replacement where that is allowed, and only once the server has accepted the new object by a second
dry run; what ends with it is listed then, counted and held as with a deletion. Who gives an object other owners must be allowed to delete it.

Objects whose namespace, kind or owner the plan itself creates can't be tried, and stay as planned. So does what is refused only for what
the plan makes before it, such as a role that a binding names.
What is new is tried by a preview alone, and before a person is asked: right ahead of writing that would double the work and change
nothing, for a create that the server refuses leaves nothing behind, and stops none but its dependents either way. An atomic Sync
tries each and every one. What can't be judged because whoever serves or converts its kind is down is blocked with the server's words, and nothing else with it. Writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec.structs import replace

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unreachable,
)
from kubectl_reconcile.core.apply.left_behind import advice_on_rest
from kubectl_reconcile.core.apply.made_before import MadeBefore, TrialRefusal
from kubectl_reconcile.core.apply.replace import advice_on, is_immutable
from kubectl_reconcile.core.health.workload_rules import removes_itself
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing
from kubectl_reconcile.core.planning.endings.replacements import with_replacements
from kubectl_reconcile.core.planning.endings.updates import is_rewired
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.planning.rights.needs import is_binding, role_bound_by
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.managed_fields import has_failed_at_versions, restated
from kubectl_reconcile.core.ssa.verdict import FieldChange, confirmed
from kubectl_reconcile.engine.apply.flow_control import FlowControl, Pacing, patiently

Along: TypeAlias = Callable[[Iterable[Listing]], Awaitable[Mapping[Listing, Listed]]]
"""Lists objects that may go along with others."""

_FIRST_LOAD = 100
"""Creates in one plan from which on each is its own trial, whoever looks."""


async def confirm_before_writing(
    client: Client,
    made: Plan,
    sync: Sync | None = None,
    *,
    along: Along,
    pace: Pacing | None = None,
    members: Client | None = None,
    looks: bool = False,
) -> Plan:
    """Return *made* as the server judges it, but for creates: those it judges as they are written.

    Before a person *looks*, it is asked about them, too, unless there are so many that they are a first load.

    Raises:
        ApiError: the server doesn't answer.
    """
    creates = sum(1 for change in made.acting() if change.op is Op.CREATE)
    tries = (looks and creates < _FIRST_LOAD) or (sync is not None and sync.atomic)
    skipped = frozenset(() if tries else {Op.CREATE})
    return await confirm(client, made, sync, along=along, pace=pace, skipped=skipped, members=members)


async def confirm(
    client: Client,
    made: Plan,
    sync: Sync | None = None,
    *,
    along: Along,
    pace: Pacing | None = None,
    skipped: frozenset[Op] = frozenset(),
    members: Client | None = None,
    for_others: bool = False,
) -> Plan:
    """Return *made* as the server judges it, under the limits of *sync*. Changes of the *skipped* sorts stay as planned.

    *along* lists what goes along with replacements. *members* tries what belongs to the set, where that isn't *client*, too. Where it is *for_others* to make the changes, those that
    *client* may not try stay as planned: its rights say nothing about theirs. The plan isn't confirmed then.

    Raises:
        ApiError: the server doesn't answer.
    """
    pending, before = _made_by(made), MadeBefore.of(made.changes)
    trial = _DryRun(client, pace or FlowControl(), before, for_others=for_others)
    of_members = _DryRun(members or client, trial.pace, before, for_others=for_others)
    wanted = [change for change in made.acting() if change.op not in skipped and _can_be_tried(change, pending)]
    tried = await asyncio.gather(*((trial if each.is_child else of_members).judged(each) for each in wanted))
    judged = {id(before): after for before, after in zip(wanted, tried, strict=True)}
    found = made.with_changes(map(judged.get, map(id, made.changes), made.changes))
    if sync is not None:
        found = await _with_replacements(found, sync, along)
    return replace(
        found,
        verdicts={**made.verdicts, **_verdicts(wanted, tried)},
        confirmed=not (trial.untried or of_members.untried),
    )


def trouble(made: Plan) -> str:
    """Return the first thing that keeps a plan from being carried out in full; empty where there is none."""
    for problem in made.errors:
        return str(problem)
    for hold in made.holds:
        return hold.message
    return next((f"{change.ref}: {change.gate.blocked}" for change in made.changes if change.gate.blocked), "")


# --- what can be tried --------------------------------------------------------------------------


def _made_by(made: Plan) -> set[Any]:
    """Return namespaces, kinds and objects that don't exist until the plan is carried out."""
    pending: set[Any] = set()
    for change in made.acting():
        if change.op is Op.CREATE:
            pending.add(change.ref)
            if change.ref.group_kind == NAMESPACE:
                pending.add(change.ref.name)
        if change.ref.group_kind == CRD and change.op in {Op.CREATE, Op.UPDATE} and change.after:
            pending.update(kinds_of_crd(change.after))
    return pending


def _can_be_tried(change: Change, pending: set[Any]) -> bool:
    if change.op not in {Op.CREATE, Op.UPDATE, Op.REPLACE} or not change.writes:
        return False
    if change.kind is None or change.intent is None:
        return False
    return not pending & {change.ref.namespace or None, change.kind.gvk, change.provenance.owner}


# --- one change -------------------------------------------------------------------------------------


class _DryRun:
    """Tries changes on one server. *untried* are those *for_others* that it may not try."""

    def __init__(self, client: Client, pace: Pacing, made_before: MadeBefore, *, for_others: bool = False) -> None:
        self._client = client
        self.pace = pace
        self._made_before = made_before
        self._for_others = for_others
        self.untried: list[ObjectRef] = []

    async def judged(self, change: Change) -> Change:
        """Return one change as the server judges it."""
        kind, intent = change.kind, change.intent
        if kind is None or intent is None:
            return change
        if change.op is Op.REPLACE:
            return await self._recreated(change, kind, intent)
        try:
            answer = await self._applied(change, kind, intent)
        except ApiError as error:
            if isinstance(error, Invalid) and change.op is Op.UPDATE and is_immutable(error.causes):
                return await self._immutable(change, kind, intent, error)
            return await self._restated(change, kind, error) or self._refused(change, error)
        return _found(change, kind, answer)

    async def _applied(self, change: Change, kind: Kind, intent: Manifest) -> Manifest:
        path = kind.path(change.ref.namespace, change.ref.name)

        async def attempt() -> Manifest:
            if change.takeover:
                return await self._taken_over(change, path)
            return await self._client.apply(
                path, intent, manager=change.provenance.manager, force=change.gate.force, dry_run=True
            )

        answer: Manifest = await patiently(attempt, pace=self.pace)
        if change.op is Op.UPDATE and is_rewired(change):
            await self._delete(change, path)
        return answer

    async def _taken_over(self, change: Change, path: str) -> Manifest:
        """Try the end of a takeover and an apply: two steps can't be tried one after the other."""
        metadata = {**(change.after or {})["metadata"]}
        metadata["resourceVersion"] = (await self._client.get(path))["metadata"]["resourceVersion"]
        body = {**(change.after or {}), "metadata": metadata}
        return await self._client.replace(path, body, manager=change.provenance.manager, dry_run=True)

    async def _restated(self, change: Change, kind: Kind, error: ApiError) -> Change | None:
        """Return a change with its owners restated at its version, where the server failed at theirs and accepts it so."""
        if change.before is None or not has_failed_at_versions(error.status, error.message):
            return None
        again = replace(change, takeover=restated(change.before, kind.gvk.api_version))
        if not again.takeover:
            return None
        path = kind.path(change.ref.namespace, change.ref.name)
        try:
            answer: Manifest = await patiently(lambda: self._taken_over(again, path), pace=self.pace)
        except ApiError as refused:
            return self._refused(change, refused)
        return replace(again, after=answer, fields=_made(change, kind, answer), unsure=False)

    async def _immutable(self, change: Change, kind: Kind, intent: Manifest, error: Invalid) -> Change:
        if not change.is_child and change.gate.replaceable:
            return await self._recreated(replace(change, op=Op.REPLACE, after=intent), kind, intent)
        hint = f" (hint: {advice_on(change)})" if not change.is_child else ""
        return _blocked(change, error, hint)

    async def _delete(self, change: Change, path: str) -> None:
        """Try a deletion: who gives an object other owners, which take it along when they go, must be allowed that.

        Raises:
            ApiError: it is refused.
        """
        uid = (change.before or {})["metadata"]["uid"]
        with suppress(NotFound, Conflict):
            await patiently(lambda: self._client.delete(path, uid=uid, dry_run=True), pace=self.pace)

    async def _recreated(self, change: Change, kind: Kind, intent: Manifest) -> Change:
        """Ask whether the object could be created if it weren't there: its name being taken is the best of answers."""
        path = kind.path(change.ref.namespace)
        try:
            await patiently(
                lambda: self._client.create(path, intent, manager=change.provenance.manager, dry_run=True),
                pace=self.pace,
            )
        except AlreadyExists:
            return change
        except ApiError as error:
            return self._refused(change, error)
        return change

    def _refused(self, change: Change, error: ApiError) -> Change:
        if self._for_others and isinstance(error, Forbidden) and error.is_for_lack_of_rights:
            self.untried.append(change.ref)
            return change
        if self._made_before.explains(change, _said(error)):
            return change
        return _refused(change, error)


def _said(error: ApiError) -> TrialRefusal:
    lacks_rights = isinstance(error, Forbidden) and error.is_for_lack_of_rights
    return TrialRefusal(error.message, lacks_rights, error.user if isinstance(error, Forbidden) else "")


def _refused(change: Change, error: ApiError) -> Change:
    if isinstance(error, Unreachable | TooManyRequests):
        raise error
    advice = advice_on_rest(change) if isinstance(error, Invalid) else ""
    return _blocked(change, error, f" (hint: {advice})" if advice else _hint_about_missing(change, error))


def _hint_about_missing(change: Change, error: ApiError) -> str:
    """Return what to do where something isn't there that the server looked for; nothing where it was the object itself."""
    if not isinstance(error, NotFound):
        return ""
    if change.ref.namespace and error.message.startswith("namespaces "):
        return f" (hint: does the namespace {change.ref.namespace} exist? add it to the source, create it, or set spec.createNamespace of the Sync)"
    role = role_bound_by(change.ref, change.intent or {}) if is_binding(change.ref) else None
    return f" (hint: {role} isn't there: add it to the source, or create it)" if role else ""


def _found(change: Change, kind: Kind, answer: Manifest) -> Change:
    """Return a change as the server's answer has it."""
    if change.before is not None and answer["metadata"]["uid"] != change.before["metadata"]["uid"]:
        return _of_what_went(change, answer)
    if change.before is not None and not change.takeover and _same(change.before, answer):
        return replace(change, op=Op.UNCHANGED, before=None, after=None, intent=None, fields=(), unsure=False)
    return replace(change, after=answer, fields=_made(change, kind, answer), unsure=False)


def _of_what_went(change: Change, answer: Manifest) -> Change:
    """Return the change of an object that went since it was looked at: it is created again, but for what removes itself once it has run."""
    if removes_itself(change.intent or {}):
        return replace(change, op=Op.UNCHANGED, before=None, after=None, intent=None, fields=(), unsure=False)
    return replace(change, op=Op.CREATE, before=None, after=answer, fields=(), unsure=False)


def _blocked(change: Change, error: ApiError, hint: str = "") -> Change:
    return change.gated(blocked=change.told(str(error)) + hint)


def _made(change: Change, kind: Kind, answer: Manifest) -> Sequence[FieldChange]:
    """Return the field changes that were foreseen, but for those that the server doesn't make."""
    if change.before is None:
        return change.fields
    return confirmed(change.fields, change.before, answer, kind.schema)


_COUNTED = frozenset({"resourceVersion", "generation"})


def _same(live: Manifest, answer: Manifest) -> bool:
    """Tell whether a dry run changed nothing that is stored."""
    return _comparable(live) == _comparable(answer)


def _comparable(manifest: Manifest) -> dict[str, Any]:
    """Return what of an object can differ in substance. Some kinds count a generation for an empty list where none is stored (NetworkPolicy)."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _COUNTED}
    metadata["managedFields"] = [
        {key: value for key, value in entry.items() if key != "time"} for entry in metadata.get("managedFields") or ()
    ]
    return {**manifest, "metadata": metadata}


# --- what follows -----------------------------------------------------------------------------------


async def _with_replacements(made: Plan, sync: Sync, along: Along) -> Plan:
    """Return *made* with what ends with its replacements, listed level by level."""
    listed: dict[Listing, Listed] = {}
    while missing := (found := with_replacements(made, sync, listed)).lacking - listed.keys():
        listed |= await along(missing)
    return found


def _verdicts(wanted: Sequence[Change], tried: Sequence[Change]) -> dict[ObjectRef, tuple[str, str]]:
    """Return what the server found unchanged, to be remembered until either side moves."""
    return {
        before.ref: (before.provenance.key, before.before["metadata"]["resourceVersion"])
        for before, after in zip(wanted, tried, strict=True)
        if after.op is Op.UNCHANGED and before.provenance.key and before.before is not None
    }
