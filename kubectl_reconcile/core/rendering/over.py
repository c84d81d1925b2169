"""What ``spec.source.kustomize`` makes of objects: a kustomization that no file of the source holds.

Vocabulary: it is built *over* something: an overlay, which is its base then, or the objects that manifests or a chart gave. Its text has one line for each
entry, so that a line of it tells which entry is meant; what is said of it names the field of the Sync instead.

Pure.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.entries import first_tree
from kubectl_reconcile.core.resources.kustomize import KustomizeSpec

FIELD: Final = "spec.source.kustomize"
"""What stands for the Sync among files, and is the folder of the kustomization that isn't one of the source."""
FILE: Final = f"{FIELD}/kustomization.yaml"
"""That kustomization."""

_MOUNTED: Final = "reconcile-source"
_SOURCE: Final = f"../{_MOUNTED}"
"""Where the root of the source is from there."""
_COMPONENT: Final = re.compile(r'- "(\.\./.*)"')
_SHOWN: Final = {"labels": "commonMetadata.labels", "transformers": "commonMetadata.annotations"}
"""Fields of the Sync that kustomize has other names for."""


class Over(Struct, frozen=True):
    """What the Sync says, and the folder that it follows, from the root of the source."""

    spec: KustomizeSpec
    folder: str

    @property
    def key(self) -> str:
        """What names all of this: with another key, the same objects may become others."""
        return hashlib.sha256(repr((self.spec, self.folder)).encode()).hexdigest()

    def text(self, objects: int | None) -> str:
        """Return the kustomization over so many objects, or over the overlay that the folder is."""
        resources = [_path(self.folder)] if objects is None else [f"{number}.yaml" for number in range(objects)]
        return "".join(f"{line}\n" for line in _lines(self.spec, self.folder, resources))

    def order(self, most_bytes: int, objects: Sequence[tuple[str, str]] | None = None) -> dict[str, Any]:
        """Return what the program that renders is told, which may render to so many bytes. *objects* are texts with the files that they come from."""
        text = self.text(None if objects is None else len(objects))
        resources = [{"yaml": each, "file": file} for each, file in objects or ()]
        return {"path": "", "mostBytes": most_bytes, "over": {"kustomization": text, "resources": resources}}


def _lines(spec: KustomizeSpec, folder: str, resources: Sequence[str]) -> Iterator[str]:
    yield f"resources: {json.dumps(resources)}"
    if spec.components:
        yield "components:"
        yield from (f"- {json.dumps(_path(posixpath.join(folder, each)))}" for each in spec.components)
    for name, entries in (("patches", spec.patches), ("images", spec.images)):
        if entries:
            yield f"{name}:"
            yield from (f"- {each}" for each in entries)
    for name, text in (("namePrefix", spec.name_prefix), ("nameSuffix", spec.name_suffix)):
        if text:
            yield f"{name}: {json.dumps(text)}"
    if spec.labels:
        yield "labels:"
        yield f'- {{"pairs": {spec.labels}}}'
    if spec.annotations:  # commonAnnotations would go into templates of pods, too
        transformer = {
            "apiVersion": "builtin",
            "kind": "AnnotationsTransformer",
            "metadata": {"name": "commonMetadata"},
            "annotations": json.loads(spec.annotations),
            "fieldSpecs": [{"path": "metadata/annotations", "create": True}],
        }
        yield "transformers:"
        yield f"- {json.dumps(json.dumps(transformer))}"


def stated_by(text: bytes, spec: KustomizeSpec) -> KustomizeSpec:
    """Return what a Sync says whose kustomization became *text*: patches and images as they are in it, all else as in *spec*.

    Raises:
        KustomizeSpecError: a Sync can't say that.
    """
    fields = first_tree(text)
    stated = {name: fields[name] for name in _EDITED if name in fields} if isinstance(fields, dict) else {}
    return KustomizeSpec.of({**spec.told(), **stated})


def changed_lists(before: KustomizeSpec, after: KustomizeSpec) -> dict[str, Any]:
    """Return the lists of a Sync that aren't the same any more, as they are now."""
    old, new = before.told(), after.told()
    return {name: new.get(name, []) for name in _EDITED if new.get(name) != old.get(name)}


def changed_entries(before: KustomizeSpec, after: KustomizeSpec) -> dict[str, Any]:
    """Return the items of those lists that are new, or aren't the same any more, by the fields of the Sync that they are."""
    old = before.told()
    return {
        f"{FIELD}.{name}[{number}]": item
        for name, items in changed_lists(before, after).items()
        for number, item in enumerate(items)
        if item != next(iter(old.get(name, [])[number : number + 1]), None)
    }


def is_for_secrets(after: KustomizeSpec, before: KustomizeSpec) -> bool:
    """Tell whether a patch that isn't as it was *before* is for Secrets, as it says itself: whoever shows it would show what is in them."""
    known = frozenset(before.patches)
    return any(_is_for_secrets(json.loads(each)) for each in after.patches if each not in known)


def _is_for_secrets(patch: Mapping[str, Any]) -> bool:
    documents, _ = yaml_reader.read(str(patch["patch"]).encode(), "patch.yaml")
    kinds = (each.tree.get("kind") for each in documents if isinstance(each.tree, dict))
    return "Secret" in {patch.get("target", {}).get("kind"), *kinds}


_EDITED: Final = ("patches", "images")
"""What of it is changed when drift is accepted."""


def readable(said: str) -> str:
    """Return a message of kustomize's with paths from the root of the source."""
    return said.replace(f"/{_MOUNTED}", "")


def _path(path: str) -> str:
    """Return the path of a folder of the source from the kustomization; one that leads out of the source leads to nothing."""
    return posixpath.normpath(posixpath.join(_SOURCE, path))


def field_at(text: str, line: int) -> str:
    """Return which field of the Sync a line of a kustomization is."""
    name, number = "", -1
    for each in text.splitlines()[:line]:
        if each.startswith("- "):
            number += 1
        else:
            name, number = each.partition(":")[0], -1
    if not name or name == "resources":
        return FIELD
    shown = f"{FIELD}.{_SHOWN.get(name, name)}"
    return f"{shown}[{number}]" if number >= 0 and name not in _SHOWN else shown


def placed(problem: Problem, text: str) -> Problem:
    """Return a problem of a kustomization as one of the Sync's field; any other as it is."""
    if problem.path != FILE:
        return problem
    line, hint = problem.line, problem.hint
    if not line and "accumulating components" in problem.message:
        numbered = enumerate(text.splitlines(), start=1)
        line = next((number for number, each in numbered if _names_component(each, problem.message)), 0)
        hint = hint or "a component is a folder of the repository, by its path from the one that the Sync follows"
    return replace(problem, path=field_at(text, line), line=0, hint=hint)


def _names_component(line: str, message: str) -> bool:
    """Tell whether a line of a kustomization is a path that a message is about; it has folders of the source from the root of that."""
    match = _COMPONENT.fullmatch(line)
    return match is not None and match[1].removeprefix(_SOURCE).strip("./") in message
