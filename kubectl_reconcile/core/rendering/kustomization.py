"""What is said of kustomizations: why one can't be rendered, and what kustomize itself skips silently.

Kustomize names files relative to whatever folder it was in, rarely a line, and may quote the values of Secrets. Here its
sentences come to the entry of the kustomization file that they are about, and lose those values. A patch for something that
isn't there is no error for it; here it is a warning.

Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.redaction import redacted, without
from kubectl_reconcile.core.rendering.entries import (
    KUSTOMIZATIONS,
    BuildStep,
    beside,
    entry_of,
    first_tree,
    kustomization_among,
    line_of,
    top_level,
)

_QUOTES: Final = re.compile(r"['\"`\[\]]")
"""What kustomize has around what it quotes, also within quotes."""
_PATHS: Final = re.compile(r"\bopen ([^\s:]+):|'(/[^']+)'")
"""Where it names a file or folder by its path from the root."""
_BETWEEN: Final = re.compile(r"[\s,\[\]{}\"']+")
_UNREADABLE: Final = re.compile(r"error unmarshaling|cannot unmarshal|converting YAML to JSON")
_INVALID: Final = re.compile(r"invalid Kustomization")
_NAMED_FIELD: Final = re.compile(r"(?:unknown field \"|Go struct field \w+\.)(\w+)")
_NESTED: Final = re.compile(
    r"(?:accumulating (?:resources|components): )?accumulation err='accumulating resources from '[^']*': "
    r"'[^']*' must resolve to a file': (?:recursed accumulation of path '[^']*': )?"
)
"""How each base says which one it is in; the place says that better."""
_CONFIG: Final = re.compile(r" with config: `.*`(?=: )| with config:(?!.*`: ).*", re.DOTALL)
_WORDS: Final = range(3, 200)
_REMOTE: Final = re.compile(r"no such program|executable file not found|no 'git' program|rendering has no network")
_HINTS: Final = (
    (_REMOTE, "nothing is fetched while rendering: copy it into the repository and name its folder"),
    (
        re.compile(r"must specify --enable-helm"),
        "charts aren't rendered by kustomize here; commit what helm template prints",
    ),
    (
        re.compile(r"external plugins disabled|unable to load external plugin"),
        "only plugins that are built into kustomize run",
    ),
    (re.compile(r"is not in or below"), "copy the file into the folder, or make its own folder a base"),
    (re.compile(r"symbolic link"), "link within the repository, or commit the file itself"),
    (re.compile(r"cycle detected"), "remove one of these entries"),
    (
        re.compile(r"no resource matches strategic merge patch"),
        "name an object that is there; with a target, a patch that matches nothing is a warning",
    ),
    (re.compile(r"unable to parse SM or JSON patch"), "write a part of an object, or a list of JSON patch operations"),
)


def failure(message: str, overlay: str, files: Mapping[str, bytes], failed: BuildStep | None = None) -> Problem:
    """Return the problem that an overlay can't be rendered, by kustomize's *message*.

    *files* are those that it read, in that order: one of the kustomization files among them has the entry that is at fault,
    the one of the step that *failed* if it was a step.
    """
    said = without_secrets(message, files)
    path, line = _place_of_step(said, failed, files) if failed is not None else _place(said, overlay, files)
    hint = next((hint for pattern, hint in _HINTS if pattern.search(said)), "")
    return Problem(path, line, f"kustomize can't build it: {_flat(_NESTED.sub('', said))}", hint)


def _place_of_step(said: str, step: BuildStep, files: Mapping[str, bytes]) -> tuple[str, int]:
    """Return file and line of the entry of a step that failed; within a list that is one step, of the item that is quoted."""
    entry = entry_of(step, files)
    if isinstance(entry.states, list):
        for at, each in enumerate(entry.states):
            item = each.get("path") if isinstance(each, dict) else each
            if isinstance(item, str) and _is_quoted(said, item, beside(entry.file, item), files):
                return entry.file, line_of(files[entry.file], (*entry.place, at))
    return entry.file, entry.line


def _is_quoted(said: str, item: str, file: str, files: Mapping[str, bytes]) -> bool:
    """Tell whether a message quotes an item, or names the object that a patch which is its text, or its file, is for."""
    patch = first_tree(files.get(file) or item.encode())
    if not isinstance(patch, dict):
        return item in said
    metadata = patch.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return item in said or bool(name and patch.get("kind") and re.search(rf"{patch['kind']}\b.*/{name}\.", said))


def _place(said: str, overlay: str, files: Mapping[str, bytes]) -> tuple[str, int]:
    """Return file and line of the entry that a message is about: the last kustomization that has something it quotes."""
    quoted = [words for each in _QUOTES.split(said) if len(words := each.strip()) in _WORDS]
    named = [path.strip("/") for match in _PATHS.finditer(said) if (path := match[1] or match[2])]
    if _UNREADABLE.search(said) and files:
        named.insert(0, list(files)[-1])  # it names no file, so it is the one that was read last
    kustomizations = [path for path in files if posixpath.basename(path) in KUSTOMIZATIONS]
    if (invalid := _INVALID.search(said)) and kustomizations:  # the one that was read last is no kustomization
        last = kustomizations[-1]
        named_fields = _NAMED_FIELD.findall(said, invalid.start())
        entries = (entry for name in named_fields for entry in top_level(name, {last: files[last]}))
        return next(((entry.file, entry.line) for entry in entries), (last, 0))
    for path in reversed(kustomizations):
        lines = list(enumerate(files[path].decode(errors="replace").splitlines(), start=1))
        found = next((number for words in reversed(quoted) for number, line in lines if _states(line, words)), 0)
        found = found or next(
            (number for name in reversed(named) for number, line in lines if _leads(line, path, name)), 0
        )
        if found:
            return path, found
    return kustomization_among(overlay, kustomizations), 0


def _leads(line: str, kustomization: str, name: str) -> bool:
    """Tell whether a line of a kustomization has a path that leads to what is called *name* from the root."""
    return any(beside(kustomization, word) == name for word in _BETWEEN.split(line) if word)


def _states(line: str, words: str) -> bool:
    """Tell whether a line of a kustomization names *words* as a whole: as an item, a value or a key."""
    return bool(re.search(rf"(^|[\s:\[{{,\"'-]){re.escape(words)}($|[\s\]}},\"':#])", line))


# --- what kustomize passes over ---------------------------------------------------------------------------------

_DEPRECATED: Final = re.compile(r"'(\w+)' is deprecated")
_SUBJECTS: Final = {
    "PatchTransformer": "the patch changes nothing",
    "PatchJson6902Transformer": "the patch changes nothing",
    "ReplacementTransformer": "the replacement has no target",
}
_TAKE_OUT: Final = "name something that exists, or remove the entry"


def notices(said: Iterable[str], overlay: str, files: Mapping[str, bytes]) -> Iterator[Problem]:
    """Yield what kustomize said by the way as warnings: of a deprecated field one for each line that has it."""
    for notice in said:
        message = notice.removeprefix("# Warning: ")
        match = _DEPRECATED.search(message)
        places = [(each.file, each.line) for each in top_level(match[1], files)] if match else []
        for path, line in places or [(kustomization_among(overlay, files), 0)]:
            yield Problem(path, line, message, severity=Severity.WARNING)


def unmatched(steps: Iterable[BuildStep], files: Mapping[str, bytes]) -> Iterator[Problem]:
    """Yield a warning for each of these steps, which were for something that isn't there."""
    for step in steps:
        entry = entry_of(step, files)
        if step.by == "ImageTagTransformer":
            image = step.entry.get("imageTag")
            name = image.get("name") if isinstance(image, dict) else ""
            said = f"no container has an image {name}, so no name or tag changes"
        else:
            target = entry.states if step.by == "ReplacementTransformer" else step.entry
            said = f"{_SUBJECTS.get(step.by, 'it changes nothing')}: no object is {_told(target)}"
        yield Problem(entry.file, entry.line, _flat(said), _TAKE_OUT, Severity.WARNING)


def _told(entry: Any) -> str:
    """Return in words what a patch or a replacement is for."""
    fields = entry if isinstance(entry, dict) else {}
    target = fields.get("target") or fields.get("select")
    told = [f"{name}={value}" for name, value in (target.items() if isinstance(target, dict) else ()) if value]
    rejected = " that isn't rejected" if fields.get("reject") else ""
    return f"{' '.join(sorted(told)) or 'its target'}{rejected}"


def unused_configurations(kinds: Iterable[tuple[str, str]], files: Mapping[str, bytes]) -> Iterator[Problem]:
    """Yield a warning for each file of ``configurations`` in which nothing is for any of the *kinds*, group and kind, that are there."""
    known: frozenset[tuple[str, str]] | None = None
    for listed in top_level("configurations", files):
        for at, name in enumerate(_strings(listed.states)):
            configured = first_tree(files.get(beside(listed.file, name), b""))
            specs = list(_field_specs(configured))
            known = frozenset(kinds) if known is None else known
            if specs and not any(_is_for(spec, kind) for spec in specs for kind in known):
                line = line_of(files[listed.file], (*listed.place, at))
                said = f"{name} configures nothing: no object has a kind that it is for"
                yield Problem(listed.file, line, said, _TAKE_OUT, Severity.WARNING)


def _field_specs(configured: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what says of which kind a field is."""
    for specs in configured.values() if isinstance(configured, dict) else ():
        for spec in _maps(specs):
            below = _maps(spec.get("fieldSpecs"))
            yield from below or (spec,)


def _is_for(spec: Mapping[str, Any], kind: tuple[str, str]) -> bool:
    return all(not spec.get(name) or spec[name] == value for name, value in zip(("group", "kind"), kind, strict=True))


# --- what is never said -----------------------------------------------------------------------------------------


def _flat(said: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in said).split())[:600]


def without_secrets(message: str, files: Mapping[str, bytes]) -> str:
    """Return a message of kustomize's without the values of Secrets that the *files* hold, or that they generate or patch."""
    said = _CONFIG.sub("", message)
    for path, data in files.items():
        name = posixpath.basename(path)
        if name in KUSTOMIZATIONS:
            said = without(said, _stated_values(path, data, files))
        elif name.endswith((".yaml", ".yml", ".json")) and b"Secret" in data:
            said = redacted(said, *(each.manifest for each in parse(data, path).manifests))
    return said


def _stated_values(path: str, data: bytes, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the values that the kustomization at *path* puts into Secrets."""
    fields = first_tree(data)
    if not isinstance(fields, dict):
        return
    yield from _generated(path, fields, files)
    for name in ("patches", "patchesJson6902", "patchesStrategicMerge"):
        for patch in _list(fields.get(name)):
            yield from _patched(path, patch, files)
    for replacement in _replacements(path, fields, files):
        if (value := replacement.get("sourceValue")) is not None and any(
            _may_be_secret(target.get("select")) for target in _maps(replacement.get("targets"))
        ):
            yield str(value)


def _generated(path: str, fields: Mapping[str, Any], files: Mapping[str, bytes]) -> Iterator[str]:
    for generator in _maps(fields.get("secretGenerator")):
        for literal in _strings(generator.get("literals")):
            yield literal
            yield literal.partition("=")[2]
        named = (
            *_strings(generator.get("files")),
            *_strings(generator.get("envs")),
            str(generator.get("env") or ""),
        )
        for file in named:
            text = files.get(beside(path, file.rpartition("=")[2]), b"")
            yield from _parts(text.decode(errors="replace"))


def _patched(path: str, patch: Any, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the values of a patch, in the kustomization or a file of its own, that is or may be for a Secret."""
    entry = patch if isinstance(patch, dict) else {"patch": patch, "path": patch}
    file = files.get(beside(path, str(entry.get("path") or ".")), b"")
    text = file.decode(errors="replace") or str(entry.get("patch") or "")
    operations = first_tree(text.encode())
    if isinstance(operations, list):
        if _may_be_secret(entry.get("target")):
            for operation in _maps(operations):
                yield from _leaves(operation.get("value"))
    elif "Secret" in str(patch) or "Secret" in text:
        yield from _scalars(text)
        documents, _ = yaml_reader.read(text.encode(), KUSTOMIZATIONS[0])
        for document in documents:
            for name in ("data", "stringData") if isinstance(document.tree, dict) else ():
                yield from _leaves(document.tree.get(name))
    if operations is None and _may_be_secret(entry.get("target")):
        yield from _scalars(text)  # it can't be read, so anything may be one


def _may_be_secret(target: Any) -> bool:
    """Tell whether what is selected so may be a Secret; without a kind it may be anything."""
    kind = target.get("kind") if isinstance(target, dict) else None
    try:
        return not kind or bool(re.fullmatch(str(kind), "Secret"))
    except re.error:
        return True


def _replacements(path: str, fields: Mapping[str, Any], files: Mapping[str, bytes]) -> Iterator[Mapping[str, Any]]:
    for entry in _maps(fields.get("replacements")):
        tree = first_tree(files.get(beside(path, str(entry.get("path") or ".")), b""))
        yield from _maps(tree) or ([tree] if isinstance(tree, dict) else [entry])


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from _leaves(below)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _parts(text: str) -> Iterator[str]:
    yield text.strip()
    for line in text.splitlines():
        yield line.strip()
        yield line.partition("=")[2].strip()


def _scalars(text: str) -> Iterator[str]:
    """Yield what stands behind a colon, line by line."""
    for line in text.splitlines():
        yield line.partition(":")[2].strip().strip("\"'")


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _maps(value: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in _list(value) if isinstance(each, dict)]


def _strings(value: Any) -> Sequence[str]:
    return [each for each in _list(value) if isinstance(each, str)]
