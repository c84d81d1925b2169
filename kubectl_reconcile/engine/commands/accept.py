"""Drift, taken into the files, or into patches of the Sync: what somebody changed in the cluster becomes what is asked for.

Only fields that drifted are taken: Git still asks for what was applied last, and the cluster holds something else. A
field that was changed in both places is for a person to decide; a module's child is its CR's business; and
the values of a Secret never go into a file or a patch.

What is written where is decided here; `write`, `push` and `patch` then do it, to a folder, to a branch, or to the Sync.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.editing import Edit, EditError, edited
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.outlook.origins import named
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.rendering.over import changed_entries, changed_lists
from kubectl_reconcile.core.rendering.uses import hiding, names_at, texts_of
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.core.ssa.typed import ABSENT
from kubectl_reconcile.engine.api.sync_requests import SYNCS
from kubectl_reconcile.engine.commands import own_patches
from kubectl_reconcile.engine.commands.overlays import RenderedEditor
from kubectl_reconcile.engine.sync import reconcile as engine
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.commit import FilesCommit


class Taken(Struct, frozen=True):
    """One field whose live value goes into *file*."""

    file: str
    ref: ObjectRef
    field: FieldChange


class Accepted(Struct, frozen=True):
    """The files with the live values in them, what was taken, and what was left and why, a sentence each.

    *rendered* tells that objects are made of the files, whose paths are from the top of the tree then. Where drift goes into the Sync itself, the file of what was taken
    is a field of it. *said* is what it says in ``spec.source.kustomize`` then, the lists that change, and *entries* are those of their items that do, by their fields.
    """

    files: Mapping[str, bytes]
    taken: tuple[Taken, ...]
    left: tuple[str, ...]
    rendered: bool = False
    said: Mapping[str, Any] | None = None
    entries: Mapping[str, Any] | None = None


async def accept(session: Session, target: Target, plan: Plan, *, patches: bool = False) -> Accepted:
    """Return what the files of *target* become if the drift that *plan* would correct is accepted, or with *patches* what its Sync says then. Writes nothing.

    Raises:
        SourceError: a file can't be read.
        ApiError: the server doesn't answer.
    """
    desired = await engine.read(session, target)
    revision = desired.revision
    drifted = [change for change in plan.changes if _drifted(change)]
    taking = [change for change in drifted if not _why_not(change)]
    left = [f"{change.ref}: {why}" for change in drifted if (why := _why_not(change))]
    left += [
        f"{change.ref}: {field.path} was changed in Git too; edit {change.provenance.file}"
        for change in taking
        for field in change.fields
        if field.reason is Reason.BOTH
    ]
    left += [
        f"{change.ref}: {field.path} comes from {' and '.join(map(named, names))}; change that value"
        for change in taking
        for field in change.fields
        if field.reason is Reason.DRIFT and (names := _variables(change, field))
    ]
    left += [
        f"{change.ref}: {each.path}: the value of a Secret stands in it, which doesn't belong in a file"
        for change in taking
        for each in change.fields
        if each.reason is Reason.DRIFT and not _variables(change, each) and _tells_secret(change, each)
    ]
    work = _into_files if revision.overlay is None else _into_rendered
    work = _into_sync if patches else work
    found = await asyncio.to_thread(work, target, desired, taking)
    return replace(found, left=(*left, *found.left))


def _into_files(target: Target, desired: Desired, taking: Sequence[Change]) -> Accepted:
    """Return the files of manifests with the drift in them. Blocks while they are read."""
    by_file: dict[str, list[Change]] = defaultdict(list)
    for change in taking:
        by_file[change.provenance.file].append(change)
    files, taken, left = {}, [], []
    for file, changes in sorted(by_file.items()):
        data = target.source.read(desired.revision.files[file])
        if contents.is_sealed(data, file):
            left.append(f"{file}: it is encrypted with SOPS, whose MAC is for all that it says; edit it by sops")
            continue
        edits = [_edit(change, field) for change in changes for field in _drifts(change)]
        try:
            files[file] = edited(data, file, edits, target.sync.default_namespace)
        except EditError as error:
            left.append(str(error))
        else:
            taken += [Taken(file, change.ref, field) for change in changes for field in _drifts(change)]
    return Accepted(files, tuple(taken), tuple(left))


def _into_rendered(target: Target, desired: Desired, taking: Sequence[Change]) -> Accepted:
    """Return the files of an overlay or a chart with the drift in them, as far as it can be read there. Blocks while it renders."""
    places = {(each.path, each.line): each for each in desired.manifests}
    taken, left = [], []
    with target.source.tree(desired.revision.sha) as tree:
        editor = RenderedEditor(target, desired.revision, tree)
        for change, field in [(each, field) for each in taking for field in _drifts(each)]:
            located = places.get((change.provenance.file, change.provenance.line))
            if located is None or change.kind is None:
                continue
            file, why = editor.take(located, _edit(change, field), change.kind.schema)
            if file:
                taken.append(Taken(file, change.ref, field))
            else:
                left.append(f"{change.ref}: {field.path}: {why}")
    return Accepted(editor.files, tuple(taken), tuple(left), rendered=True)


def _into_sync(target: Target, desired: Desired, taking: Sequence[Change]) -> Accepted:
    """Return what the Sync itself says with the drift in it, as far as it can be read there. Blocks while it renders."""
    places = {(each.path, each.line): each for each in desired.manifests}
    taken, left, edits = [], [], []
    with target.source.tree(desired.revision.sha) as tree:
        editor = own_patches.PatchEditor.of(target, desired.revision, tree)
        for change, each in [(one, each) for one in taking for each in _drifts(one)]:
            located = places.get((change.provenance.file, change.provenance.line))
            if located is None or change.kind is None:
                continue
            edit = _edit(change, each)
            place, why = editor.take(located, edit, change.kind.schema)
            if place:
                taken.append(Taken(place, change.ref, each))
                edits.append(edit)
            else:
                left.append(f"{change.ref}: {each.path}: {why}")
        if not taken:
            return Accepted({}, (), tuple(left))
        if why := own_patches.why_not_read(target, desired, editor.spec, edits):
            return Accepted({}, (), (*left, f"nothing is taken: {why}"))
    before = own_patches.spec_of(target)
    return Accepted(
        {},
        tuple(taken),
        tuple(left),
        said=changed_lists(before, editor.spec),
        entries=changed_entries(before, editor.spec),
    )


def _drifted(change: Change) -> bool:
    return change.op in {Op.UPDATE, Op.REPLACE} and any(
        field.reason in {Reason.DRIFT, Reason.BOTH} for field in change.fields
    )


def _drifts(change: Change) -> list[FieldChange]:
    return [
        field
        for field in change.fields
        if field.reason is Reason.DRIFT and not _variables(change, field) and not _tells_secret(change, field)
    ]


def _variables(change: Change, field: FieldChange) -> tuple[str, ...]:
    """Return the variables whose values stand in a field: what the file has there is good for others, too."""
    return names_at(change.provenance.uses, field.path, change.after or change.intent)


def _tells_secret(change: Change, field: FieldChange) -> bool:
    """Tell whether the live value spells a value of a Secret that the object is made with, wherever that belongs."""
    texts = texts_of(use for use in change.provenance.uses if use.secret)
    return field.op != "add" and hiding(field.before, texts, "") != field.before


def _why_not(change: Change) -> str:
    """Return why no drift of an object can be accepted; empty where it can."""
    if change.is_child:
        return f"it is a child of {change.provenance.owner}; change that"
    if change.ref.kind == "Secret":
        return "the values of a Secret don't belong in a file"
    return "" if change.provenance.file and change.kind is not None else "no file asks for it"


def _edit(change: Change, field: FieldChange) -> Edit:
    if change.kind is None:
        raise TypeError(f"{change.ref} has no kind")  # left out above
    value = ABSENT if field.op == "add" else field.before
    return Edit(change.ref, field.path, value, change.kind.schema.root)


def write(target: Target, files: Mapping[str, bytes], *, rendered: bool = False) -> None:
    """Write *files* into the folder of *target*; those that it is *rendered* from, into its tree.

    Raises:
        SourceError: it has no folder, or one of them can't be written.
    """
    folder = target.source.folder
    if folder is None:
        raise SourceError(SourceFault.UNREADABLE, "a repository isn't a folder to write to", "give --local or --branch")
    for path, data in files.items():
        place = folder.place_of(path, rendered=rendered)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        except OSError as error:
            raise SourceError(SourceFault.UNREADABLE, f"{place}: {error.strerror}", "check its permissions") from None


async def patch(session: Session, target: Target, said: Mapping[str, Any]) -> None:
    """Have the Sync of *target* say in ``spec.source.kustomize`` what is *said*, all else staying as it is.

    Raises:
        Conflict: it was changed since it was read.
        ApiError: the server refuses, or doesn't answer.
    """
    if target.parent is None:
        raise TypeError("there is no Sync to write to")  # a Sync was named, and read
    metadata = target.parent["metadata"]
    body = {
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "spec": {"source": {"kustomize": dict(said)}},
    }
    path = f"{SYNCS}/namespaces/{metadata['namespace']}/syncs/{metadata['name']}"
    await session.client.patch(path, body, manager="kubectl-reconcile-cli")


async def push(
    session: Session, target: Target, parent: str, branch: str, files: Mapping[str, bytes], message: str
) -> str:
    """Commit *files* on top of the commit *parent*, push that to *branch*, and return the new commit.

    Raises:
        SourceError: the Sync follows no repository, or it can't be pushed to.
    """
    git = target.sync.source.git if target.sync.source else None
    if git is None:
        raise SourceError(SourceFault.UNREADABLE, "the Sync follows no repository, so there is nothing to push to")
    commit = FilesCommit(git.url, parent, branch, signed=git.verify is not None)
    return await asyncio.to_thread(commit.commit, files, message, session.cache_dir / "git")
