"""Where the fields of an overlay's objects come from, with the commits of those lines, and what is written there to accept drift.

Looked at only when somebody asks: it takes one more rendering, and two git commands for each file that is named; to accept a
field takes a rendering for each way that is tried.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kubectl_reconcile.core.manifests.editing import Edit
from kubectl_reconcile.core.manifests.line_history import bringers
from kubectl_reconcile.core.manifests.parse import Located, Steps
from kubectl_reconcile.core.manifests.revision import Commit, History, Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.planning.explain import as_written, steps_to
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.rendering.accepting import Accepting, why_not_proved
from kubectl_reconcile.core.rendering.origins import FieldLine, Origins, ValueOrigin
from kubectl_reconcile.core.rendering.rendered import objects_of
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.engine.sync.reconcile import Target
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.render.trees import EditedTree

_MOST_VERSIONS = 200
"""How far back a file is read."""

_FEW_OBJECTS = 250
"""Up to so many objects, one more rendering takes less than a second."""


async def with_origins(target: Target, made: Plan, *, asked: bool) -> Plan:
    """Return *made* with the lines that the changed fields of an overlay's members come from, and the commits of those that Git changed.

    Of a large overlay only if that is *asked* for. Costs nothing where no member is updated.
    """
    if not any(_is_updated(change) for change in made.changes):
        return made
    try:
        return await asyncio.to_thread(_with_origins, target, made, asked=asked)
    except SourceError:  # the plan stands without it
        return made


def _with_origins(target: Target, made: Plan, *, asked: bool) -> Plan:
    desired = target.reader.read(target.source, target.sync)
    if not is_overlay(desired.revision) or (len(desired.manifests) > _FEW_OBJECTS and not asked):
        return made
    origins = OverlayOrigins(target, desired.revision)
    places = {(each.path, each.line): each for each in desired.manifests}
    return replace(made, changes=tuple(_told(change, places, origins) for change in made.changes))


def is_overlay(revision: Revision) -> bool:
    """Tell whether kustomize makes a revision's objects."""
    return revision.overlay is not None and not revision.is_chart


def _told(change: Change, places: Mapping[tuple[str, int], Located], origins: OverlayOrigins) -> Change:
    located = places.get((change.provenance.file, change.provenance.line)) if _is_updated(change) else None
    if located is None or change.kind is None:
        return change
    found = [_origin(each, located, change.kind.schema, origins) for each in change.fields]
    by_git = [
        origin.at for each, origin in zip(change.fields, found, strict=True) if origin is not None and _is_by_git(each)
    ]
    commits = origins.commits(by_git)
    told = (_field_told(each, origin, commits) for each, origin in zip(change.fields, found, strict=True))
    return replace(change, fields=tuple(told))


def _origin(each: FieldChange, located: Located, schema: Schema, origins: OverlayOrigins) -> ValueOrigin | None:
    path = as_written(each.path, located.manifest)
    steps = steps_to(path, located.manifest, schema)
    return origins.of(located, steps) if len(steps) == len(path) else None


def _is_by_git(each: FieldChange) -> bool:
    return each.reason in {Reason.GIT, Reason.BOTH}


def _field_told(each: FieldChange, origin: ValueOrigin | None, commits: Mapping[FieldLine, Commit]) -> FieldChange:
    if origin is None:
        return each
    commit = commits.get(origin.at) if _is_by_git(each) else None
    told = replace(each, origin=str(origin))
    return replace(told, commit=commit.sha, author=commit.author) if commit is not None else told


def _is_updated(change: Change) -> bool:
    return change.op in {Op.UPDATE, Op.REPLACE} and change.provenance.owner is None and bool(change.provenance.file)


@dataclass(slots=True)
class OverlayOrigins:
    """Answers where fields of what an overlay of *target* rendered to at *revision* come from. Blocks while it renders or asks git."""

    target: Target
    revision: Revision
    _origins: Origins | None = None
    _commits: dict[tuple[str, int], Commit | None] = field(default_factory=dict)

    def of_object(self, located: Located) -> FieldLine | None:
        """Return where an object comes from; None where that isn't known."""
        number = self._number(located)
        return self._traced().of_object(number) if number is not None else None

    def of(self, located: Located, steps: Steps) -> ValueOrigin | None:
        """Return where the field at *steps* of an object comes from; None where that isn't known, or nothing is there."""
        number = self._number(located)
        return self._traced().of(number, steps) if number is not None else None

    def commits(self, lines: Iterable[FieldLine]) -> Mapping[FieldLine, Commit]:
        """Return the commits that brought these lines, as far as the source remembers."""
        wanted = list(lines)
        by_file: dict[str, set[int]] = defaultdict(set)
        for each in wanted:
            if (each.file, each.line) not in self._commits:
                by_file[each.file].add(each.line)
        for file, numbers in by_file.items():
            found = self._brought(file, numbers)
            self._commits |= {(file, number): found.get(number) for number in numbers}
        known = ((each, self._commits[each.file, each.line]) for each in wanted)
        return {each: commit for each, commit in known if commit is not None}

    def _brought(self, file: str, lines: set[int]) -> Mapping[int, Commit]:
        history = self.target.source
        if not isinstance(history, History):
            return {}
        commits = history.commits_touching(file, self.revision.sha, limit=_MOST_VERSIONS)
        versions = zip(commits, history.versions(file, [each.sha for each in commits]), strict=False)
        now = self._traced().traces.files.get(file, b"")
        return bringers(now, versions, lines, complete=len(commits) < _MOST_VERSIONS)

    def _number(self, located: Located) -> int | None:
        return self._traced().traces.number_of(located)

    def _traced(self) -> Origins:
        if self._origins is None:
            reader, overlay = self.target.reader, self.revision.overlay or ""
            with self.target.source.tree(self.revision.sha) as tree:
                self._origins = Origins(reader.renderer.trace(overlay, tree, reader.limits))
        return self._origins


# --- accepting drift --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class OverlayEditor:
    """Writes values into the overlay of *target* at *revision*, one at a time; *files* are those that have become others.

    *tree* are the files that it is made of.
    """

    target: Target
    revision: Revision
    tree: Tree
    files: dict[str, bytes] = field(default_factory=dict)

    def take(self, located: Located, edit: Edit, schema: Schema) -> tuple[str, str]:
        """Write the value of *edit*, and return into which file; or nothing, and why it can't be. Blocks while it renders.

        What is written is proved: the overlay renders to just that then, and nothing else changes.

        Raises:
            SourceError: a file can't be read.
        """
        reader, overlay = self.target.reader, self.revision.overlay or ""
        origins = Origins(reader.renderer.trace(overlay, EditedTree(self.tree, self.files), reader.limits))
        number = origins.traces.number_of(located)
        rendered = objects_of(origins.traces.rendering).manifests
        if number is None or number >= len(rendered):
            return "", "where it comes from can't be told"
        namespace, before = self.target.sync.default_namespace, [each.manifest for each in rendered]
        path = as_written(edit.path, rendered[number].manifest)
        steps = steps_to(path, rendered[number].manifest, schema)
        way = Accepting(overlay, origins, number, rendered[number], steps, edit)
        reasons: list[str] = []
        for proposal in way.proposals():
            files = {**self.files, **proposal.files}
            rendering = reader.renderer.render(overlay, EditedTree(self.tree, files), reader.limits)
            if not (why := why_not_proved(before, rendering, edit, namespace)):
                self.files = files
                return proposal.file, ""
            reasons.append(why)
        origin = origins.of(number, steps)
        said = (
            f"no patch of {overlay or '.'} can give it that value: {reasons[0]}" if reasons else "no patch can reach it"
        )
        return "", f"{said}; it comes from {origin}" if origin is not None else said
