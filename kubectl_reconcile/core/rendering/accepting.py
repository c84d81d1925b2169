"""Where a value of the cluster is written when an overlay is to ask for it: which files become what, one way after the other.

Vocabulary: a *proposal* is what files of the overlay may become so that it renders to the value. Whether it does, and whether
anything else changes, is for the caller to see by rendering it: what is proposed here is likely, not certain.

Proposed is what changes least: the line of this overlay that owns the field; else a patch that this overlay has for the object;
else a new patch, which its kustomization lists. Never a file of a base: others may share it. What a Sync itself changes is an overlay of one file, which
has its patches in it.

Pure: bytes in, bytes out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.editing import Edit, EditError, dumped, edited, made, restated
from kubectl_reconcile.core.manifests.parse import Located, Steps
from kubectl_reconcile.core.objects import FieldPath, Manifest, ObjectRef, errors_among
from kubectl_reconcile.core.rendering.entries import StepEntry, beside, first_tree, kustomization_among
from kubectl_reconcile.core.rendering.origins import (
    OWN,
    ObjectTrace,
    Origins,
    PatchText,
    TracedField,
    operation_at,
    patch_texts,
)
from kubectl_reconcile.core.rendering.over import FILE
from kubectl_reconcile.core.rendering.rendered import Rendering, objects_of
from kubectl_reconcile.core.ssa.typed import ABSENT, elements_of
from kubectl_reconcile.core.ssa.values import same

_PATCHES: Final = frozenset(("PatchTransformer", "PatchStrategicMergeTransformer", "PatchJson6902Transformer"))


class Proposal(Struct, frozen=True):
    """What *files* become, and which of them holds the value then."""

    files: Mapping[str, bytes]
    file: str


class Accepting(Struct, frozen=True):
    """One field of one object of the overlay in *folder*, and the value that it is to get, as *edit* says of what is rendered now.

    *steps* is where the field stands in that, as far as it does.
    """

    folder: str
    origins: Origins
    number: int
    located: Located
    steps: Steps
    edit: Edit

    @property
    def files(self) -> Mapping[str, bytes]:
        """The files that were read to render it."""
        return self.origins.traces.files

    @property
    def trace(self) -> ObjectTrace:
        """What is traced of the object."""
        return self.origins.traces.objects[self.number]

    def proposals(self) -> Iterator[Proposal]:
        """Yield the ways to write the value, the one that changes least first."""
        traced = self.origins.field(self.number, self.steps) if len(self.steps) == len(self.edit.path) else None
        yield from self._where_it_is_set(traced)
        yield from self._in_patches_of_the_object()
        yield from self._in_a_new_patch()
        yield from self._in_new_operations()

    # --- the line that owns it ------------------------------------------------------------------------------------

    def _where_it_is_set(self, traced: TracedField | None) -> Iterator[Proposal]:
        setters = self.origins.setters(traced) if traced is not None else []
        if traced is None or not setters or setters[-1] == OWN:
            return
        step, entry = self.origins.traces.steps[setters[-1]], self.origins.entry(setters[-1])
        if step.folder != self.folder:
            return
        if step.by in _PATCHES:
            for text in patch_texts(step, entry, self.files):
                yield from self._in_patch(text, traced)
        elif step.by == "ImageTagTransformer" and isinstance(self.edit.value, str):
            yield from self._restated(entry, _image(entry, self.edit.value))
        elif step.by == "ReplicaCountTransformer" and isinstance(self.edit.value, int):
            yield from self._restated(entry, {"count": self.edit.value})
        elif step.by == "ConfigMapGenerator" and isinstance(self.edit.value, str):
            yield from self._literal(entry, traced.key, self.edit.value)

    def _restated(self, entry: StepEntry, fields: Mapping[str, Any]) -> Iterator[Proposal]:
        """Yield an entry of the kustomization with other fields; those that are ABSENT go."""
        data = self.files[entry.file]
        stated = entry.states if isinstance(entry.states, dict) else {}
        try:
            for name, value in fields.items():
                if value is not ABSENT or name in stated:
                    data = restated(data, entry.file, (*entry.place[1:], name), value)
        except EditError:
            return
        yield Proposal({entry.file: data}, entry.file)

    def _literal(self, entry: StepEntry, key: Sequence[Any], value: str) -> Iterator[Proposal]:
        """Yield another literal of a generator. Where the map's name has a hash of them, it becomes another, which the proof refuses."""
        literals = entry.states.get("literals") if isinstance(entry.states, dict) else None
        for at, literal in enumerate(literals if isinstance(literals, list) else ()):
            if key[:1] == ("data",) and str(literal).partition("=")[0] == key[-1]:
                yield from self._restated_at(entry, ("literals", at), f"{key[-1]}={value}")

    def _restated_at(self, entry: StepEntry, steps: Steps, value: Any) -> Iterator[Proposal]:
        try:
            data = restated(self.files[entry.file], entry.file, (*entry.place[1:], *steps), value)
        except EditError:
            return
        yield Proposal({entry.file: data}, entry.file)

    def _in_patch(self, text: PatchText, traced: TracedField) -> Iterator[Proposal]:
        """Yield a patch that states the field, with the value instead."""
        operations = first_tree(text.data)
        if isinstance(operations, list):
            found = operation_at(operations, traced.at)
            if found is not None and self.edit.value is not ABSENT:
                number, rest = found
                yield from self._written(text, (number, "value", *rest), self.edit.value)
        else:
            yield from self._merged(text)

    def _written(self, text: PatchText, steps: Steps, value: Any) -> Iterator[Proposal]:
        try:
            data = restated(text.data, text.file, steps, value)
        except EditError:
            return
        yield from self._put(text, data)

    def _put(self, text: PatchText, data: bytes) -> Iterator[Proposal]:
        """Yield a patch's new text, in its file or in the kustomization."""
        try:
            if text.place:
                new = data.decode() if text.data.endswith(b"\n") else data.decode().rstrip("\n")
                data = restated(self.files[text.file], text.file, text.place[1:], new)
        except EditError:
            return
        yield Proposal({text.file: data}, text.file)

    # --- a patch of the object ------------------------------------------------------------------------------------

    def _in_patches_of_the_object(self) -> Iterator[Proposal]:
        """Yield the patches of this overlay that are for the object, with the value added."""
        for number, step in enumerate(self.origins.traces.steps):
            if step.folder == self.folder and step.by in _PATCHES:
                for text in patch_texts(step, self.origins.entry(number), self.files):
                    if not isinstance(first_tree(text.data), list):
                        yield from self._merged(text)

    def _merged(self, text: PatchText) -> Iterator[Proposal]:
        """Yield a strategic merge patch with the value in it; what is to go is left out, and then said to go."""
        documents, _ = yaml_reader.read(text.data, "patch.yaml")
        called = {self.trace.first, self.trace.entered}
        for tree in (document.tree for document in documents):
            if not isinstance(tree, dict) or not tree.get("kind") or not isinstance(tree.get("metadata"), dict):
                continue
            ref = ObjectRef.of(tree)
            if ref not in called and ref._replace(namespace=self.trace.entered.namespace) not in called:
                continue
            for value in (ABSENT, _gone(self.edit.path[-1])) if self.edit.value is ABSENT else (self.edit.value,):
                for edits in self._edits(ref, value):
                    try:
                        data = edited(text.data, text.file if not text.place else "patch.yaml", edits, "")
                    except (EditError, TypeError, LookupError, AttributeError):
                        continue  # its form isn't that of the object
                    yield from self._put(text, data)

    def _edits(self, ref: ObjectRef, value: Any) -> Iterator[list[Edit]]:
        """Yield what to do to a patch for *ref*: to state the value, or before that all items of the lists above it.

        kustomize puts the items that a patch has before all others; a patch that has them all keeps their order.
        """
        edit = replace(self.edit, ref=ref, value=value, creates=True)
        yield [edit]
        if beside_it := list(_items_above(edit, self.located.manifest)):
            yield [*beside_it, edit]

    # --- a new one ------------------------------------------------------------------------------------------------

    def _in_a_new_patch(self) -> Iterator[Proposal]:
        value = _gone(self.edit.path[-1]) if self.edit.value is ABSENT else self.edit.value
        head = {"apiVersion": self.located.manifest["apiVersion"], "kind": self.located.manifest["kind"]}
        entered = self.trace.entered
        space = {"namespace": entered.namespace} if entered.namespace else {}
        patch = {**head, "metadata": {"name": entered.name, **space}}
        for edits in self._edits(ObjectRef.of(patch), value):
            try:
                text = dumped(made(patch, edits, ""))
            except (EditError, TypeError, LookupError, AttributeError):
                continue
            yield from self._listed("", text, {})

    def _in_new_operations(self) -> Iterator[Proposal]:
        """Yield a JSON patch: it reaches what a merge can't, such as an item of a list without names."""
        at, value = self.steps, self.edit.value
        is_there = len(at) == len(self.edit.path)
        last = self.edit.path[-1]
        if not is_there and (len(at) < len(self.edit.path) - 1 or not last.startswith("f:")):
            return
        whole = at if is_there else (*at, last[2:])
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in whole)
        operation = {"op": "remove"} if value is ABSENT else {"op": "replace" if is_there else "add"}
        ref = self.trace.entered
        target = {"group": ref.group, "kind": ref.kind, "name": ref.name, "namespace": ref.namespace}
        said = [{**operation, "path": pointer, **({} if value is ABSENT else {"value": value})}]
        yield from self._listed("-operations", dumped(said), {"target": {k: v for k, v in target.items() if v}})

    def _listed(self, kind: str, text: bytes, entry: Mapping[str, Any]) -> Iterator[Proposal]:
        """Yield a new file of the overlay, and its kustomization with an entry for it."""
        own = kustomization_among(self.folder, self.files)
        fields = first_tree(self.files.get(own, b""))
        if not isinstance(fields, dict) or own not in self.files:
            return
        listed = fields.get("patches")
        if own == FILE:
            yield from self._with_entry(own, listed, {"patch": text.decode(), **entry}, {}, own)
            return
        names = (
            {str(each.get("path")) for each in listed or () if isinstance(each, dict)}
            if isinstance(listed, list)
            else set()
        )
        ref = self.trace.entered
        name = f"accepted-{ref.kind.lower()}-{ref.name}{kind}".replace(":", "-")
        number = 1
        while (file := f"{name}{f'-{number}' if number > 1 else ''}.yaml") in names or beside(own, file) in self.files:
            number += 1
        yield from self._with_entry(own, listed, {"path": file, **entry}, {beside(own, file): text}, beside(own, file))

    def _with_entry(
        self, own: str, listed: Any, item: Mapping[str, Any], files: Mapping[str, bytes], file: str
    ) -> Iterator[Proposal]:
        """Yield the kustomization *own* with one more patch than are *listed*, and the new *files* that it is in; the value is in *file* then."""
        try:
            steps: Steps = ("patches", len(listed)) if isinstance(listed, list) else ("patches",)
            data = restated(self.files[own], own, steps, item if isinstance(listed, list) else [item])
        except EditError:
            return
        yield Proposal({**files, own: data}, file)


def _items_above(edit: Edit, manifest: Manifest) -> Iterator[Edit]:
    """Yield an edit for each item of the lists above the field of *edit*, which states what identifies it."""
    here: Any = manifest
    of = edit.type
    for at, element in enumerate(edit.path):
        if element.startswith("f:"):
            below = of.map.type_at(element[2:]) if of.map is not None else None
            here = here.get(element[2:]) if isinstance(here, Mapping) else None
        elif element.startswith("k:") and isinstance(here, list) and of.list is not None:
            try:
                known = elements_of(here, of.list)
            except ValueError:  # an item that nothing identifies
                return
            for each in known:
                name, value = next(iter(json.loads(each[2:]).items()))
                yield replace(edit, path=FieldPath((*edit.path[:at], each, f"f:{name}")), value=value)
            below, here = of.list.item, here[known.index(element)] if element in known else None
        else:
            return
        if below is None or here is None:
            return
        of = below


def _gone(element: str) -> Any:
    """Return what a strategic merge patch says of what is to go: nothing for a field, a directive for an item."""
    return {**json.loads(element[2:]), "$patch": "delete"} if element.startswith("k:") else None


def _image(entry: StepEntry, image: str) -> Mapping[str, Any]:
    """Return what an entry of ``images`` says so that its image becomes this one."""
    rest, _, digest = image.partition("@")
    name, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        name, tag = rest, ""
    own = str(entry.states.get("name")) if isinstance(entry.states, dict) else ""
    return {"newName": ABSENT if name == own else name, "newTag": tag or ABSENT, "digest": digest or ABSENT}


# --- the proof --------------------------------------------------------------------------------------------------


def why_not_proved(before: Sequence[Manifest], rendering: Rendering, edit: Edit, namespace: str) -> str:
    """Return why a rendering isn't what was rendered *before* with *edit* made, and nothing else changed; empty where it is."""
    found = objects_of(rendering)
    if wrong := errors_among(found.problems):
        return wrong[0].message
    wanted = [made(each, [edit], namespace) for each in before]
    now = {each.ref: each.manifest for each in found.manifests}
    others = [ref for each in wanted if (ref := ObjectRef.of(each)) not in now or not same(now[ref], each)]
    if len(now) != len(wanted) or not others:
        return "" if len(now) == len(wanted) else "it would render to more or fewer objects"
    ours = [ref for ref in others if edit.ref in {ref, ref._replace(namespace=ref.namespace or namespace)}]
    return f"{edit.path} would not get that value" if ours else f"{others[0]} would change too"
