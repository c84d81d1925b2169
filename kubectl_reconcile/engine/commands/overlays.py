"""Where the fields of an overlay's objects come from, with the commits of those lines, and what is written there to accept drift.

Looked at only when somebody asks: it takes one more rendering, and two git commands for each file that is named; to accept a
field takes a rendering for each way that is tried.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.editing import Edit
from kubectl_reconcile.core.manifests.line_history import bringers
from kubectl_reconcile.core.manifests.parse import Located, Steps
from kubectl_reconcile.core.manifests.revision import Commit, Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.planning.outlook.explain import as_written, steps_to
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.rendering.accepting import Accepting, Proposal, why_not_proved
from kubectl_reconcile.core.rendering.chart_values import ValuesFile, proposals
from kubectl_reconcile.core.rendering.origins import FieldLine, Origins, ValueOrigin
from kubectl_reconcile.core.rendering.over import FIELD
from kubectl_reconcile.core.rendering.rendered import Rendering, objects_of
from kubectl_reconcile.core.ssa.lookup import value_at
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.core.ssa.typed import ABSENT
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.render.trees import EditedTree
from kubectl_reconcile.source.running.threads import in_thread

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
        return await in_thread(_with_origins, target, made, asked=asked)
    except SourceError:  # the plan stands without it
        return made


def _with_origins(target: Target, made: Plan, *, asked: bool) -> Plan:
    desired = target.reader.read(target.source, target.sync, target.values.held)
    if not is_overlay(desired.revision) or (len(desired.manifests) > _FEW_OBJECTS and not asked):
        return made
    origins = OverlayOrigins(target, desired.revision)
    places = {(each.path, each.line): each for each in desired.manifests}
    return made.with_changes(_told(change, places, origins) for change in made.changes)


def is_overlay(revision: Revision) -> bool:
    """Tell whether kustomize makes a revision's objects."""
    return revision.overlay is not None and (revision.is_over or not revision.is_chart)


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


class OverlayOrigins(Struct):
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
        history = self.target.source.history
        if history is None or file.startswith(FIELD):
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
                self._origins = Origins(reader.traced(self.target.source, overlay, tree))
        return self._origins


# --- accepting drift --------------------------------------------------------------------------------------------------


class RenderedEditor(Struct):
    """Writes values into what *target* is rendered from at *revision*, one at a time; *files* are those that have become others.

    *tree* are the files that it is made of.
    """

    target: Target
    revision: Revision
    tree: Tree
    files: dict[str, bytes] = field(default_factory=dict)

    def take(self, located: Located, edit: Edit, schema: Schema) -> tuple[str, str]:
        """Write the value of *edit*, and return into which file; or nothing, and why it can't be. Blocks while it renders.

        What is written is proved: just that is rendered then, and nothing else changes.

        Raises:
            SourceError: a file can't be read.
        """
        if self.revision.is_plain:
            return (
                "",
                f"{FIELD} changes what {located.path} says; edit one of them, or take it into the Sync with --patches",
            )
        number = -located.line - 1
        before = objects_of(self._rendered({})).manifests
        if not 0 <= number < len(before):
            return "", "its origin isn't known"
        path = as_written(edit.path, before[number].manifest)
        steps = steps_to(path, before[number].manifest, schema)
        if self.revision.is_chart:
            now = value_at(before[number].manifest, path, schema.root)
            said = "none of its values has the field's current value, so accept can't find the value that sets it"
            return self._proved(self._of_chart(now, edit), before, edit, said)
        reader = self.target.reader
        overlay = self.revision.overlay or ""
        origins = Origins(reader.traced(self.target.source, overlay, EditedTree(self.tree, self.files)))
        if number >= len(origins.traces.objects):
            return "", "its origin isn't known"
        way = Accepting(overlay, origins, number, before[number], steps, edit)
        file, why = self._proved(way.proposals(), before, edit, "no patch can set it")
        origin = origins.of(number, steps)
        if not why or origin is None:
            return file, why
        is_of_sync = origin.at.file.startswith(FIELD)
        return file, f"{why}; it comes from {origin}{', which --patches writes to' if is_of_sync else ''}"

    def _of_chart(self, now: Any, edit: Edit) -> Iterator[Proposal]:
        release, folder = self.target.reader.release, self.revision.overlay or ""
        if release is None or now is ABSENT or edit.value is ABSENT:
            return
        named = [ValuesFile(path, self._held(path)) for path in reversed(release.values_files(release.folder(folder)))]
        defaults = posixpath.join(folder, _DEFAULTS)
        own = [] if release.chart else [ValuesFile(defaults, self._held(defaults), is_default=True)]
        yield from proposals([*named, *own], now, edit.value)

    def _held(self, path: str) -> bytes:
        return EditedTree(self.tree, self.files).read(path) or b""

    def _proved(
        self, found: Iterable[Proposal], before: Sequence[Located], edit: Edit, otherwise: str
    ) -> tuple[str, str]:
        """Return the file of the first proposal that renders to what is wanted, and why it isn't the first of all; *otherwise* if none is made."""
        first, manifests = "", [each.manifest for each in before]
        for proposal in found:
            rendering = self._rendered(proposal.files)
            why = why_not_proved(manifests, rendering, edit, self.target.sync.default_namespace)
            if not why:
                self.files |= proposal.files
                return proposal.file, ""
            first = first or f"nothing in {self.revision.overlay or '.'} can set that value: {why}"
        return "", first or otherwise

    def _rendered(self, files: Mapping[str, bytes]) -> Rendering:
        tree = EditedTree(self.tree, {**self.files, **files})
        return self.target.reader.rendered_again(self.revision.overlay or "", tree)


_DEFAULTS = "values.yaml"
"""The file of a chart that has its defaults."""
