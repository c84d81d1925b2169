"""Where the fields of a rendered object come from: a line of a patch, of the overlay's own entries, or of the file that a base lists.

Vocabulary: the *trace* of an object says for each of its fields which steps of kustomize's gave it its value, one after the other;
OWN stands for the file that the object comes from. The *origin* of a field is the line that the last of them read; its *base* is
the line that the first of them read, where that is another.

A step that only carries a name on (a Service that got a prefix is called so wherever it is referred to) is no origin.

Pure: what is traced and the files that were read in, lines out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.parse import Located, Steps
from kubectl_reconcile.core.manifests.yaml_reader import Place
from kubectl_reconcile.core.objects import ObjectRef, place_of
from kubectl_reconcile.core.rendering.entries import (
    BuildStep,
    StepEntry,
    beside,
    entry_of,
    first_tree,
    line_of,
    replacement_targets,
)
from kubectl_reconcile.core.rendering.over import FIELD, FILE, field_at
from kubectl_reconcile.core.rendering.rendered import Rendering

OWN: Final = -1
"""Stands among steps for the file that an object comes from."""

Key: TypeAlias = Sequence[Any]
"""Where a field stands: names, indexes, and for an item of a list a map with what identifies it, as ``{"name": "web"}``."""

_RENAMES: Final = "NameReferenceTransformer"
_PATCHES: Final = frozenset(("PatchTransformer", "PatchStrategicMergeTransformer", "PatchJson6902Transformer"))
_REPLACES: Final = "ReplacementTransformer"
_MAPS: Final = frozenset(("labels", "commonLabels", "commonAnnotations"))
_SETS: Final = {"images": ("digest", "newTag", "newName"), "imageTags": ("digest", "newTag"), "replicas": ("count",)}
"""What items of these fields set; where they set several things, first the one that changes most often."""
_GENERATORS: Final = frozenset(("ConfigMapGenerator", "SecretGenerator"))


class OriginKind(StrEnum):
    """What a field was given its value by."""

    FILE = "file"
    """The file that its object comes from."""
    PATCH = "patch"
    """A patch, in a file of its own or in the kustomization."""
    TRANSFORMER = "transformer"
    """Another entry of a kustomization, as of ``images`` or ``labels``."""
    GENERATOR = "generator"
    """What a ConfigMap or Secret is made of."""


class FieldLine(Struct, frozen=True):
    """One line that a field has its value from: *by* what, and in which *entry* of a kustomization if it is one."""

    file: str
    line: int
    by: OriginKind = OriginKind.FILE
    entry: str = ""

    def __str__(self) -> str:
        if self.file.startswith(FIELD):  # which says what it is
            return self.file
        told = {OriginKind.FILE: "", OriginKind.PATCH: " (patch)"}.get(self.by, f" ({self.entry or self.by.value})")
        return f"{place_of(self.file, self.line)}{told}"


class ValueOrigin(Struct, frozen=True):
    """Where a field's value comes from, and the *base* that it replaces there."""

    at: FieldLine
    base: FieldLine | None = None

    def __str__(self) -> str:
        return f"{self.at}, base: {self.base}" if self.base is not None else str(self.at)


class TracedField(Struct, frozen=True):
    """One field: where it stands in the object, the same by what identifies items, and the steps that set it."""

    at: Steps
    key: Key
    by: tuple[int, ...]


class ObjectTrace(Struct, frozen=True):
    """What is traced of one object: what it is called in its file, what it was when the overlay's own steps began, its fields."""

    first: ObjectRef
    entered: ObjectRef
    fields: tuple[TracedField, ...]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> ObjectTrace:
        """Read what the program that renders says."""
        fields = (
            TracedField(tuple(each["at"]), tuple(each["key"]), tuple(each["by"])) for each in said.get("fields") or ()
        )
        return cls(_ref(said["first"]), _ref(said["entered"]), tuple(fields))


def _ref(said: Mapping[str, str]) -> ObjectRef:
    return ObjectRef(said["group"], said["kind"], said["namespace"], said["name"])


class Traces(Struct, frozen=True):
    """A rendering with the trace of each of its objects, the steps that they name, and the files that were read for it."""

    rendering: Rendering
    objects: tuple[ObjectTrace, ...] = ()
    steps: tuple[BuildStep, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, rendering: Rendering, done: Mapping[str, Any], files: Mapping[str, bytes]) -> Traces:
        """Read what the program that renders says; without a trace of each object, as of one that failed, there is none."""
        said = [each.get("trace") for each in done.get("objects") or ()]
        if not all(said) or len(said) != len(rendering.objects):
            return cls(rendering)
        steps = tuple(BuildStep.of(each) for each in done.get("steps") or ())
        return cls(rendering, tuple(ObjectTrace.of(each) for each in said), steps, dict(files))

    def number_of(self, located: Located) -> int | None:
        """Return the number of the object that *located* was rendered to; None where it isn't among these."""
        number = -located.line - 1
        return number if 0 <= number < len(self.objects) else None


class Origins:
    """Answers where the fields of what was traced come from; what it has read of the files it keeps."""

    def __init__(self, traces: Traces) -> None:
        self.traces = traces
        self._texts = _Texts()
        self._entries: dict[int, StepEntry] = {}

    def entry(self, step: int) -> StepEntry:
        """Return the entry of a step."""
        if step not in self._entries:
            self._entries[step] = entry_of(self.traces.steps[step], self.traces.files)
        return self._entries[step]

    def field(self, number: int, steps: Steps) -> TracedField | None:
        """Return what is traced of the field at *steps* of the object *number*; of a map or list, of its first field."""
        fields = self.traces.objects[number].fields
        return next(
            (each for each in fields if each.at[: len(steps)] == steps or steps[: len(each.at)] == each.at), None
        )

    def of(self, number: int, steps: Steps) -> ValueOrigin | None:
        """Return where the field at *steps* of the object *number* comes from; None where nothing is there."""
        traced = self.field(number, steps)
        if traced is None:
            return None
        setters = self.setters(traced) or [OWN]  # what a generator adds to isn't seen before
        lines = [line for by in setters if (line := self._line(number, by, traced)) is not None]
        if not lines:
            return ValueOrigin(self.of_object(number))
        return ValueOrigin(lines[-1], lines[0] if lines[0] != lines[-1] else None)

    def of_object(self, number: int) -> FieldLine:
        """Return where an object comes from: the line in its file, or the entry of what generates it."""
        trace = self.traces.objects[number]
        by = next((each.by[0] for each in trace.fields if each.key == ("kind",) and each.by), OWN)
        file = self.traces.rendering.objects[number].file
        if by != OWN and self.entry(by).file != file:
            by = OWN  # a generator only adds to it
        return self._line(number, by, TracedField((), (), (by,))) or FieldLine(file, 0)

    def setters(self, traced: TracedField) -> list[int]:
        """Return the steps that set a field, without those that only carry a name on."""
        return [by for by in traced.by if by == OWN or self.traces.steps[by].by != _RENAMES]

    def _line(self, number: int, by: int, traced: TracedField) -> FieldLine | None:
        """Return the line that a step had a field from, or the field of the Sync; None where it turns out to have nothing to do with it."""
        found = self._line_in_file(number, by, traced)
        if found is None or found.file != FILE:
            return found
        text = self.traces.files.get(FILE, b"").decode()
        return replace(found, file=field_at(text, found.line), line=0)

    def _line_in_file(self, number: int, by: int, traced: TracedField) -> FieldLine | None:
        trace, files = self.traces.objects[number], self.traces.files
        if by == OWN:
            file = self.traces.rendering.objects[number].file
            return FieldLine(file, self._texts.line(files.get(file, b""), [trace.first], traced.key) or 0)
        step, entry = self.traces.steps[by], self.entry(by)
        if step.by in _PATCHES:
            return self._patched(step, entry, trace, traced)
        if step.by in _GENERATORS:
            return _generated(entry, traced.key, files)
        return (
            _replaced(step, entry, traced.key, files)
            if step.by == _REPLACES
            else _transformed(step, entry, traced.key, files)
        )

    def _patched(self, step: BuildStep, entry: StepEntry, trace: ObjectTrace, traced: TracedField) -> FieldLine | None:
        """Return the line of a patch; that of its entry where the patch isn't understood.

        A JSON patch has kustomize rewrite the whole object: None where no operation of it has to do with the field.
        """
        for text in patch_texts(step, entry, self.traces.files):
            operations = first_tree(text.data)
            if isinstance(operations, list):
                found = operation_at(operations, traced.at)
                if found is None and len(traced.by) > 1:
                    return None
                place = (0, found[0], "value", *found[1]) if found else (0,)
                line: int | None = line_of(text.data, place) if found else 0
            else:
                line = self._texts.line(text.data, [trace.first, trace.entered], traced.key, strictly=True)
            if line and text.file != FILE:
                return FieldLine(text.file, line + text.above, OriginKind.PATCH)
        return FieldLine(entry.file, entry.line, OriginKind.PATCH)


# --- patches ----------------------------------------------------------------------------------------------------


class PatchText(Struct, frozen=True):
    """The text of a patch: of the whole *file*, or inline in a kustomization at *place*, where it begins behind *above* lines."""

    file: str
    data: bytes
    place: Place = ()
    above: int = 0


def patch_texts(step: BuildStep, entry: StepEntry, files: Mapping[str, bytes]) -> Iterator[PatchText]:
    """Yield the texts of the patches that a step applies: one, or for the oldest form as many as are listed."""
    if step.by == "PatchStrategicMergeTransformer":
        for at, item in enumerate(entry.states if isinstance(entry.states, list) else ()):
            if isinstance(item, str):
                yield _patch_text(entry, item, (*entry.place, at), item, files)
        return
    fields = entry.states if isinstance(entry.states, dict) else {}
    path, text = str(fields.get("path") or ""), str(fields.get("patch") or fields.get("jsonOp") or "")
    name = "patch" if "patch" in fields else "jsonOp"
    if path or text:
        yield _patch_text(entry, path, (*entry.place, name), text, files)


def _patch_text(entry: StepEntry, path: str, place: Place, text: str, files: Mapping[str, bytes]) -> PatchText:
    file = beside(entry.file, path) if path and "\n" not in path else ""
    if file in files:
        return PatchText(file, files[file])
    data = files.get(entry.file, b"")
    line = line_of(data, place)
    lines = data.decode(errors="replace").splitlines()
    is_block = 0 < line <= len(lines) and re.search(r"[|>][-+0-9]*\s*(#.*)?$", lines[line - 1])
    return PatchText(entry.file, text.encode(), place, line if is_block else line - 1)


def operation_at(operations: Sequence[Any], at: Steps) -> tuple[int, Steps] | None:
    """Return the number of the last operation of a JSON patch that sets the field *at*, and what is left of its path below."""
    for number in range(len(operations) - 1, -1, -1):
        operation = operations[number]
        if not isinstance(operation, dict) or operation.get("op") in {"remove", "test"}:
            continue
        pointer = [
            part.replace("~1", "/").replace("~0", "~") for part in str(operation.get("path") or "").split("/")[1:]
        ]
        if len(pointer) <= len(at) and all(part in {str(step), "-"} for part, step in zip(pointer, at, strict=False)):
            return number, tuple(at[len(pointer) :])
    return None


# --- generators and other transformers --------------------------------------------------------------------------


def _generated(entry: StepEntry, key: Key, files: Mapping[str, bytes]) -> FieldLine:
    """Return what a generated field is made of: a literal, a line of a file of variables, or the first line of a file."""
    name = str(entry.place[1]) if len(entry.place) > 1 else ""
    fields = entry.states if isinstance(entry.states, dict) else {}
    if len(key) > 1 and key[0] in {"data", "binaryData"}:
        for at, literal in enumerate(_strings(fields.get("literals"))):
            if literal.partition("=")[0] == key[1]:
                line = line_of(files.get(entry.file, b""), (*entry.place, "literals", at))
                return FieldLine(entry.file, line, OriginKind.GENERATOR, name)
        for listed in _strings(fields.get("files")):
            called, _, file = listed.rpartition("=")
            if (called or posixpath.basename(file)) == key[1]:
                return FieldLine(beside(entry.file, file), 1, OriginKind.GENERATOR, name)
        for listed in (*_strings(fields.get("envs")), *_strings([fields.get("env")])):
            file = beside(entry.file, listed)
            for number, line_text in enumerate(files.get(file, b"").decode(errors="replace").splitlines(), start=1):
                if line_text.partition("=")[0].strip() == key[1]:
                    return FieldLine(file, number, OriginKind.GENERATOR, name)
    return FieldLine(entry.file, entry.line, OriginKind.GENERATOR, name)


def _transformed(step: BuildStep, entry: StepEntry, key: Key, files: Mapping[str, bytes]) -> FieldLine:
    """Return the line of another transformer that sets the field: whoever changed that line changed the field."""
    name = str(entry.place[1]) if len(entry.place) > 1 else step.by
    place, states = entry.place, entry.states
    if isinstance(states, dict) and isinstance(states.get("pairs"), dict):
        place, states = (*place, "pairs"), states["pairs"]
    if name in _MAPS and isinstance(states, dict) and key and key[-1] in states:
        place = (*place, key[-1])
    sets = next((each for each in _SETS.get(name, ()) if isinstance(states, dict) and each in states), None)
    place = (*place, sets) if sets else place
    line = line_of(files.get(entry.file, b""), place) or entry.line
    return FieldLine(entry.file, line, OriginKind.TRANSFORMER, name)


def _replaced(step: BuildStep, entry: StepEntry, key: Key, files: Mapping[str, bytes]) -> FieldLine:
    """Return the target of a replacement that a field may have its value from: the last of which a path ends as its own does."""
    found = [each for each in replacement_targets(step, files) if any(_ends_alike(path, key) for path in _paths(each))]
    file, line = (found[-1].file, line_of(files.get(found[-1].file, b""), found[-1].place)) if found else ("", 0)
    return FieldLine(file or entry.file, line or entry.line, OriginKind.TRANSFORMER, "replacements")


def _paths(target: StepEntry) -> Sequence[str]:
    return _strings(target.states.get("fieldPaths")) if isinstance(target.states, dict) else []


def _ends_alike(path: str, key: Key) -> bool:
    return bool(key) and isinstance(key[-1], str) and re.split(r"[.\[\]]+", path.rstrip("]"))[-1] == key[-1]


# --- lines ------------------------------------------------------------------------------------------------------


class _Texts:
    """Finds lines of fields in YAML; reads each text once, and the lines of each of its objects once."""

    def __init__(self) -> None:
        self._objects: dict[bytes, list[tuple[Any, Place, int]]] = {}
        self._lines: dict[tuple[bytes, Place], Mapping[Place, int]] = {}

    def line(self, data: bytes, refs: Sequence[ObjectRef], key: Key, *, strictly: bool = False) -> int | None:
        """Return the line of a field of the object that is called as one of *refs*; if it isn't stated, of the nearest above it.

        *strictly* it must be stated; then an object that is called otherwise will do.
        """
        found = self._objects_of(data)
        named = [each for each in found if any(_is_called(each[0], ref) for ref in refs)]
        for tree, place, line in (*named, *(found if strictly else ())):
            steps = stated_at(tree, key)
            if not strictly or len(steps) == len(key):
                return self._line(data, tree, place, steps) or line
        return None

    def _objects_of(self, data: bytes) -> list[tuple[Any, Place, int]]:
        if data not in self._objects:
            documents, _ = yaml_reader.read(data, "one.yaml")
            self._objects[data] = [
                each for document in documents for each in objects_in(document.tree, (document.number,), document.line)
            ]
        return self._objects[data]

    def _line(self, data: bytes, tree: Any, place: Place, steps: Steps) -> int:
        if not steps and len(place) == 1:
            return 0  # a document knows its line
        if (data, place) not in self._lines:
            self._lines[data, place] = yaml_reader.lines(data, set(_places(tree, place)))
        lines = self._lines[data, place]
        above = (lines.get((*place, *steps[:length]), 0) for length in range(len(steps), -1, -1))
        return next((line for line in above if line), 0)


def _places(tree: Any, place: Place) -> Iterator[Place]:
    yield place
    if isinstance(tree, dict):
        for name, below in tree.items():
            yield from _places(below, (*place, name))
    elif isinstance(tree, list):
        for at, below in enumerate(tree):
            yield from _places(below, (*place, at))


def objects_in(tree: Any, place: Place, line: int) -> Iterator[tuple[Any, Place, int]]:
    """Yield the objects of a document, those of a list one by one, with their places and their first lines."""
    items = tree.get("items") if isinstance(tree, dict) and str(tree.get("kind")).endswith("List") else None
    if not isinstance(items, list):
        yield tree, place, line
        return
    for at, item in enumerate(items):
        yield from objects_in(item, (*place, "items", at), line)


def _is_called(tree: Any, ref: ObjectRef) -> bool:
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    return (
        isinstance(metadata, dict)
        and tree.get("kind") == ref.kind
        and metadata.get("name") == ref.name
        and str(metadata.get("namespace") or "") in {ref.namespace, ""}
    )


def stated_at(tree: Any, key: Key) -> Steps:
    """Return where a field stands in *tree*: names and indexes, as far as it is stated there."""
    steps: list[int | str] = []
    for part in key:
        at = _index(tree, part) if isinstance(tree, list) else part if isinstance(tree, dict) and part in tree else None
        if at is None:
            break
        steps.append(at)
        tree = tree[at]
    return tuple(steps)


def _index(items: Sequence[Any], part: Any) -> int | None:
    if isinstance(part, Mapping):
        wanted = [(name, str(value)) for name, value in part.items()]
        return next(
            (
                at
                for at, item in enumerate(items)
                if isinstance(item, dict) and all(str(item.get(name)) == value for name, value in wanted)
            ),
            None,
        )
    return part if isinstance(part, int) and part < len(items) else None


def _strings(value: Any) -> Sequence[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
