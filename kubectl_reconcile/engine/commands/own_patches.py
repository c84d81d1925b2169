"""Drift, taken into what a Sync itself changes of its objects: ``spec.source.kustomize``, over manifests, overlays and charts.

A patch or an image of the Sync that owns the field is changed, else a patch of the object, else there is one more. What is written is proved twice: field
by field, as it is rendered before values of variables are in it; and in the end as the Sync would read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.editing import Edit, made
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.objects import Manifest, ObjectRef, errors_among
from kubectl_reconcile.core.planning.outlook.explain import as_written, steps_to
from kubectl_reconcile.core.rendering.accepting import Accepting, why_not_proved
from kubectl_reconcile.core.rendering.origins import Origins
from kubectl_reconcile.core.rendering.over import FIELD, FILE, Over, changed_entries, is_for_secrets, stated_by
from kubectl_reconcile.core.rendering.rendered import PlainObjects, objects_of
from kubectl_reconcile.core.rendering.substitution import Substitution
from kubectl_reconcile.core.resources.kustomize import NO_KUSTOMIZE, KustomizeSpec, KustomizeSpecError
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.core.ssa.values import same
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.target import Target


class PatchEditor(Struct):
    """Writes values into what the Sync of *target* says of its objects, one at a time: *spec* is what it says then.

    *folder* and *tree* are where its files are, *plain* its objects where nothing renders them, and *asked* what it asks for by now, without values of
    variables. *refs* is what objects were called at first, by their places.
    """

    target: Target
    folder: str
    tree: Tree
    plain: PlainObjects | None
    asked: tuple[Located, ...]
    refs: Mapping[tuple[str, int], ObjectRef]
    spec: KustomizeSpec

    @classmethod
    def of(cls, target: Target, revision: Revision, tree: Tree) -> Self:
        """Return one for what *target* has read last, at *revision*, whose files are *tree*. Blocks.

        Raises:
            SourceError: a file can't be read.
        """
        asked = target.reader.read_last()
        is_plain = revision.overlay is None or revision.is_plain
        folder = revision.folder if revision.overlay is None else revision.overlay
        plain = target.reader.plain_objects(tree, folder) if is_plain else None
        refs = {(each.path, each.line): each.ref for each in asked}
        return cls(target, folder, tree, plain, asked, refs, spec_of(target))

    def take(self, located: Located, edit: Edit, schema: Schema) -> tuple[str, str]:
        """Write the value of *edit*, and return into which field of the Sync; or nothing, and why it can't be. Blocks while it renders.

        Raises:
            SourceError: a file can't be read.
        """
        ref = self.refs.get((located.path, located.line))
        over = Over(self.spec, self.folder)
        traces = self.target.reader.traced_over(self.target.source, self.folder, self.tree, over, self.plain)
        found = objects_of(traces.rendering)
        number = next((at for at, each in enumerate(found.manifests) if each.ref == ref), None)
        if ref is None or number is None or number >= len(traces.objects):
            wrong = errors_among(found.problems)
            return "", f"no patch can be made over it{f': {wrong[0].message}' if wrong else ''}"
        here, edit, origins = found.manifests[number], replace(edit, ref=ref), Origins(traces)
        path = as_written(edit.path, here.manifest)
        steps = steps_to(path, here.manifest, schema)
        field, why = self._proved(Accepting(FIELD, origins, number, here, steps, edit), edit)
        origin = origins.of(number, steps)
        return field, f"{why}; it comes from {origin}" if why and origin is not None else why

    def _proved(self, way: Accepting, edit: Edit) -> tuple[str, str]:
        """Return the field with the first proposal that renders to what is wanted, and why it isn't the first of all."""
        first = ""
        for proposal in way.proposals():
            before = self.spec
            why = self._tried(proposal.files[FILE], edit)
            if not why:
                return next(iter(changed_entries(before, self.spec)), FIELD), ""
            first = first or f"no patch of the Sync can set that value: {why}"
        return "", first or "no patch can set it"

    def _tried(self, text: bytes, edit: Edit) -> str:
        """Have the Sync say what *text* is if that renders to what is wanted; else return why it doesn't."""
        try:
            spec = stated_by(text, self.spec)
        except KustomizeSpecError as error:
            return f"{FIELD}.{error}"
        if is_for_secrets(spec, self.spec):
            return "the patch that sets it is for a Secret, too"
        rendering = self.target.reader.rendered_over(self.tree, Over(spec, self.folder), self.plain)
        before = [each.manifest for each in self.asked]
        why = why_not_proved(before, rendering, edit, self.target.sync.default_namespace)
        if why:
            return why
        asked = objects_of(rendering).manifests
        if self._is_replaced(asked, edit):
            return "the Sync would take something in it for a variable"
        self.spec, self.asked = spec, asked
        return ""

    def _is_replaced(self, asked: Iterable[Located], edit: Edit) -> bool:
        """Tell whether the value of *edit* wouldn't stay what it is when values of variables are put into what is *asked*."""
        work = Substitution(self.target.values)
        done = (work.of(each).manifest for each in asked if each.ref == edit.ref)
        return not all(same(made(each, [edit], self.target.sync.default_namespace), each) for each in done)


def spec_of(target: Target) -> KustomizeSpec:
    """Return what the Sync of *target* changes of its objects."""
    return target.sync.source.kustomize if target.sync.source is not None else NO_KUSTOMIZE


def why_not_read(target: Target, desired: Desired, spec: KustomizeSpec, edits: Sequence[Edit]) -> str:
    """Return why the Sync of *target* wouldn't ask for what is *desired* with *edits* made if it said *spec*; empty where it would. Blocks.

    Raises:
        SourceError: the source can't be read any more.
    """
    sync = target.sync
    if sync.source is None:
        return "the Sync follows nothing"
    said = replace(sync, source=replace(sync.source, kustomize=spec))
    found = replace(target, sync=said, reader=replace(target.reader)).read()
    if (
        found.revision.sha != desired.revision.sha and not found.revision.is_of_folder
    ):  # whose sha is of what is looked at
        return "the source has moved meanwhile; try again"
    if wrong := errors_among(found.problems):
        return wrong[0].message
    wanted = _by_ref(made(each.manifest, edits, sync.default_namespace) for each in desired.manifests)
    now = _by_ref(each.manifest for each in found.manifests)
    others = [
        ref for ref in sorted({*wanted, *now}) if not (ref in wanted and ref in now and same(now[ref], wanted[ref]))
    ]
    return f"{others[0]} wouldn't be what is live" if others else ""


def _by_ref(manifests: Iterable[Manifest]) -> dict[ObjectRef, Manifest]:
    return {ObjectRef.of(each): each for each in manifests}
