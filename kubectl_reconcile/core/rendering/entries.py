"""Entries of kustomizations: which line of which file a step of kustomize's is for.

Vocabulary: a *step* is one of kustomize's transformers or generators at work; its *entry* is what configures it, such as an item
of ``patches`` or ``images``. kustomize hands a step its entry without the line; here it is found again in the files that were
read, by what it says.

Pure.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.yaml_reader import Place

KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The names of a file that makes its folder an overlay."""

_AS_YAML: Final = "kustomization.yaml"


@dataclass(frozen=True, slots=True)
class BuildStep:
    """A step *by* one of kustomize's plugins for the *entry* of a kustomization in *folder*.

    All replacements are one step: *at* is the number of the one, *target* that of its target; -1 where it isn't about a single one.
    """

    by: str
    folder: str
    entry: Mapping[str, Any] = field(hash=False)
    at: int = -1
    target: int = -1

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> BuildStep:
        """Read what the program that renders says of a step."""
        tree = first_tree(str(said.get("entry") or "").encode())
        entry = (
            {f"{name[:1].lower()}{name[1:]}": value for name, value in tree.items()} if isinstance(tree, dict) else {}
        )
        at, target = (number if isinstance(number := said.get(name), int) else -1 for name in ("at", "target"))
        return cls(str(said.get("by")), str(said.get("folder")), entry, at, target)


class StepEntry(Struct, frozen=True):
    """Where an entry stands: *file*, *line* (0: somewhere in it) and *place* in that file; *states* is what it says itself."""

    file: str
    line: int
    place: Place = ()
    states: Any = None


def kustomization_among(overlay: str, consulted: Iterable[str]) -> str:
    """Return the path of the kustomization file of a folder; the usual one where none was found."""
    names = [posixpath.join(overlay, name) for name in KUSTOMIZATIONS]
    there = frozenset(consulted)
    return next((name for name in names if name in there), names[0])


def entry_of(step: BuildStep, files: Mapping[str, bytes]) -> StepEntry:
    """Return the entry that a *step* is for, as exactly as the *files* that were read tell."""
    path = kustomization_among(step.folder, files)
    data = files.get(path, b"")
    fields = tree if isinstance(tree := first_tree(data), dict) else {}
    if "apiVersion" in step.entry:  # not of a field, but of a file that configures a plugin by its name
        return _configured(step, path, fields, files)
    if step.by == "ReplacementTransformer" and step.at >= 0:
        return _replacement(step, path, fields, files)
    for name, is_it in _FIELDS.get(step.by, ()):
        if name not in fields:
            continue
        stated = fields[name]
        if is_it is None:
            return _entry(path, data, (0, name), stated)
        found = next((at for at, item in enumerate(_items(stated)) if is_it(item, step.entry)), None)
        if found is not None:
            return _entry(path, data, (0, name, found), _items(stated)[found])
    known = next((name for name, _ in _FIELDS.get(step.by, ()) if name in fields), None)
    return _entry(path, data, (0, known), fields[known]) if known else StepEntry(path, 0)


def top_level(name: str, files: Mapping[str, bytes]) -> Iterator[StepEntry]:
    """Yield where the kustomizations among *files* have a field *name*."""
    for path, data in files.items():
        if posixpath.basename(path) in KUSTOMIZATIONS and name.encode() in data:
            fields = first_tree(data)
            if isinstance(fields, dict) and name in fields:
                yield _entry(path, data, (0, name), fields[name])


def beside(path: str, name: str) -> str:
    """Return the path from the root of what the kustomization at *path* calls *name*."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def first_tree(data: bytes) -> Any:
    """Return the first document of YAML, None where there is none that can be read."""
    documents, _ = yaml_reader.read(data, _AS_YAML)
    return documents[0].tree if documents else None


def line_of(data: bytes, place: Place) -> int:
    """Return the line of *place* in YAML, or of the nearest thing above it; 0 where none is found."""
    above = {place[:length] for length in range(1, len(place) + 1)}
    found = yaml_reader.lines(data, above)
    return next((found[place[:length]] for length in range(len(place), 1, -1) if place[:length] in found), 0)


def _entry(path: str, data: bytes, place: Place, states: Any) -> StepEntry:
    return StepEntry(path, line_of(data, place), place, states)


def _configured(step: BuildStep, path: str, fields: Mapping[str, Any], files: Mapping[str, bytes]) -> StepEntry:
    """Return the document that configures a plugin: of a file among ``transformers``, or in the kustomization itself."""
    named = [name for name in ("transformers", "generators", "validators") if name in fields]
    wanted = (step.entry.get("kind"), _name_of(step.entry))
    for name in named:
        for at, item in enumerate(_items(fields[name])):
            file = beside(path, item) if isinstance(item, str) and "\n" not in item else ""
            data = files.get(file, str(item).encode() if not file else b"")
            documents, _ = yaml_reader.read(data, _AS_YAML)
            for document in documents:
                tree = document.tree
                if isinstance(tree, dict) and (tree.get("kind"), _name_of(tree)) == wanted:
                    own = _entry(path, files.get(path, b""), (0, name, at), item)
                    return StepEntry(file, document.line, (document.number,), tree) if file else own
    return _entry(path, files.get(path, b""), (0, named[0]), None) if named else StepEntry(path, 0)


def _name_of(tree: Mapping[str, Any]) -> Any:
    metadata = tree.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None


def _replacement(step: BuildStep, path: str, fields: Mapping[str, Any], files: Mapping[str, bytes]) -> StepEntry:
    """Return a replacement, or its target: they are counted over all entries, of which some are files with several."""
    found = next((each for number, each in enumerate(_replacements(path, fields, files)) if number == step.at), None)
    if found is None:
        return _entry(path, files.get(path, b""), (0, "replacements"), None)
    targets = _items(found.states.get("targets")) if isinstance(found.states, dict) else []
    if 0 <= step.target < len(targets):
        place = (*found.place, "targets", step.target)
        return _entry(found.file, files.get(found.file, b""), place, targets[step.target])
    return _entry(found.file, files.get(found.file, b""), found.place, found.states)


def replacement_targets(step: BuildStep, files: Mapping[str, bytes]) -> Iterator[StepEntry]:
    """Yield the targets of all replacements that a step makes, without their lines."""
    path = kustomization_among(step.folder, files)
    fields = first_tree(files.get(path, b""))
    for each in _replacements(path, fields, files) if isinstance(fields, dict) else ():
        for at, target in enumerate(_items(each.states.get("targets")) if isinstance(each.states, dict) else []):
            yield StepEntry(each.file, 0, (*each.place, "targets", at), target)


def _replacements(path: str, fields: Mapping[str, Any], files: Mapping[str, bytes]) -> Iterator[StepEntry]:
    """Yield the replacements of a kustomization one after the other, without their lines."""
    for at, item in enumerate(_items(fields.get("replacements"))):
        if isinstance(item, dict) and isinstance(name := item.get("path"), str) and name:
            file = beside(path, name)
            tree = first_tree(files.get(file, b""))
            if isinstance(tree, list):
                yield from (StepEntry(file, 0, (0, number), each) for number, each in enumerate(tree))
            else:
                yield StepEntry(file, 0, (0,), tree)
        else:
            yield StepEntry(path, 0, (0, "replacements", at), item)


# --- which fields a step is for, and which of their items ------------------------------------------------------

_Is = Callable[[Any, Mapping[str, Any]], bool]
"""Tells whether an item of a kustomization is the entry of a step."""


def _is_patch(item: Any, entry: Mapping[str, Any]) -> bool:
    return (
        isinstance(item, dict)
        and (item.get("path") or "") == (entry.get("path") or "")
        and str(item.get("patch") or "").strip() == str(entry.get("patch") or entry.get("jsonOp") or "").strip()
        and _stated(item.get("target")) == _stated(entry.get("target"))
    )


def _stated(target: Any) -> Mapping[str, str]:
    return {name: str(value) for name, value in target.items() if value} if isinstance(target, dict) else {}


def _is_within(name: str, *others: str) -> _Is:
    """Return what compares an item with what a step has as *name*, by these fields of both."""

    def is_it(item: Any, entry: Mapping[str, Any]) -> bool:
        own = entry.get(name)
        return (
            isinstance(item, dict)
            and isinstance(own, dict)
            and all(str(item.get(other) or "") == str(own.get(other) or "") for other in others)
        )

    return is_it


def _is_named(item: Any, entry: Mapping[str, Any]) -> bool:
    return isinstance(item, dict) and item.get("name") == entry.get("name")


def _is_paired(item: Any, entry: Mapping[str, Any]) -> bool:
    return isinstance(item, dict) and item.get("pairs") == entry.get("labels")


_FIELDS: Final[Mapping[str, Sequence[tuple[str, _Is | None]]]] = {
    "PatchTransformer": (("patches", _is_patch),),
    "PatchJson6902Transformer": (("patchesJson6902", _is_patch),),
    "PatchStrategicMergeTransformer": (("patchesStrategicMerge", None),),
    "ImageTagTransformer": (
        ("images", _is_within("imageTag", "name", "newName", "newTag", "digest")),
        ("imageTags", _is_within("imageTag", "name", "newName", "newTag", "digest")),
    ),
    "ReplicaCountTransformer": (("replicas", _is_within("replica", "name", "count")),),
    "ReplacementTransformer": (("replacements", None),),
    "ConfigMapGenerator": (("configMapGenerator", _is_named),),
    "SecretGenerator": (("secretGenerator", _is_named),),
    "LabelTransformer": (("labels", _is_paired), ("commonLabels", None)),
    "AnnotationsTransformer": (("commonAnnotations", None),),
    "NamespaceTransformer": (("namespace", None),),
    "PrefixTransformer": (("namePrefix", None),),
    "SuffixTransformer": (("nameSuffix", None),),
    "HelmChartInflationGenerator": (("helmCharts", _is_named),),
}
"""The fields of a kustomization that a step is for, and how its items are told apart; None where the whole field is one entry."""


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []
