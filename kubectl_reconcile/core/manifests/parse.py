"""From the files of a source to the manifests they hold, with a line for everything.

Which files are read is in ``files``. Every document of such a file must be an object: one that isn't
is a problem, never skipped silently, since an object that vanishes from the source is pruned from
the cluster.

A *list* (``kind: List``, or ``PodList`` and the like) stands for its items.

What is checked here is what holds for objects of every kind: ``apiVersion``, ``kind``,
``metadata`` with its name, namespace, labels and annotations. Everything else is the API
server's to judge. A document with an error yields no manifest, and hides no other document; one with a
warning is used as it is, without what only a server can have written.

Pure: bytes in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import translated
from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.limits import MAX_BYTES, MAX_PROBLEMS
from kubectl_reconcile.core.manifests.scalars import shown, written
from kubectl_reconcile.core.manifests.which_files import IGNORE_FILE, STDIN
from kubectl_reconcile.core.manifests.yaml_reader import Place
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, Problem, Severity, map_at
from kubectl_reconcile.core.other_tools.translation import sentence_of
from kubectl_reconcile.core.records import Guarded

Steps: TypeAlias = tuple[int | str, ...]
"""Where a field stands in a manifest: names and indexes from its root."""


class VariableUse(Guarded, frozen=True):
    """A scalar that has values of variables in it: where it stands, and their *names*; the *texts* of one that has a secret in it, which nobody may see."""

    hidden: ClassVar = frozenset({"texts"})

    steps: Steps
    names: tuple[str, ...]
    secret: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """A field that a rendering drew: what it drew this time, and what is *before* and *after* that each time."""

    path: Steps
    value: Any = field(repr=False, compare=False)
    before: str = field(default="", repr=False)
    after: str = field(default="", repr=False)


class Located(Struct, frozen=True):
    """A manifest, the path of its file, and the line of its first key; path and line together are its alone.

    What was rendered stands in no file as it is: its line is below zero, and no place to show. *uses* are where values of variables
    stand in it. Fields that were *drawn* have a placeholder in the manifest.

    *gvk* and *ref* are as the manifest says them, read once: every pass over a large set needs each of them.
    """

    manifest: Manifest
    path: str
    line: int
    gvk: GroupVersionKind
    ref: ObjectRef
    uses: tuple[VariableUse, ...] = ()
    drawn: tuple[Drawn, ...] = ()

    @classmethod
    def of(cls, manifest: Manifest, path: str, line: int) -> Self:
        """Read what a manifest says it is."""
        gvk = _shared(GroupVersionKind.of(manifest))
        return cls(manifest, path, line, gvk, ObjectRef.of(manifest)._replace(group=gvk.group, kind=gvk.kind))


@lru_cache(maxsize=1024)
def _shared(gvk: GroupVersionKind) -> GroupVersionKind:
    """Return one value for all of a kind: there are far fewer of these than objects."""
    return gvk


class Parsed(Struct, frozen=True):
    """What one file holds, and how heavy that is (as of ``MAX_WEIGHT``). With errors among the problems, the file may hold more objects than *manifests* has.

    *sealed* is the digest of the file as it is committed, where it was decrypted.
    """

    manifests: tuple[Located, ...]
    problems: tuple[Problem, ...]
    weight: int = 0
    sealed: str = ""


def parse(data: bytes, path: str, *, most_bytes: int = MAX_BYTES) -> Parsed:
    """Return the manifests of one file in order, lists expanded, and its problems, both with lines.

    Never raises for anything that *data* holds. A file that can't be read to its end yields what
    stands before that point, and a problem: nothing of a file with errors may be pruned.
    """
    found, unread = yaml_reader.read(data, path, most_bytes=most_bytes)
    objects: list[tuple[Manifest, _Where]] = []
    faults: list[_Fault] = []
    for document in found:
        start = _Where((document.number,), document.line)
        for tree, where in _expand(document.tree, start):
            own = list(_faults(tree, where))
            if not own:
                own = list(_oddities(tree, where))
                objects.append((_without_bookkeeping(tree), where))
            faults.extend(own)
    line_of = _LineIndex(data, [where for _, where in objects] + [fault.where for fault in faults])
    manifests = tuple(Located.of(manifest, path, line_of(where)) for manifest, where in objects)
    text = data.decode("utf-8", "replace").split("\n") if any(each.unquoted is not None for each in faults) else ()
    problems = [fault.problem(path, line_of(fault.where), text) for fault in faults]
    problems += (replace(each, hint=_fitting(each.hint, path)) for each in unread)
    problems.sort(key=lambda problem: (not problem.is_error, problem.line == 0, problem.line))
    return Parsed(manifests, tuple(problems[: MAX_PROBLEMS + 1]), sum(document.weight for document in found))


def stated(data: bytes, path: str) -> tuple[tuple[Any, int], ...]:
    """Return what the documents of a file state, lists expanded, and the line of each one's document; be that objects or not."""
    found, _ = yaml_reader.read(data, path)
    return tuple(
        (_without_bookkeeping(tree) if isinstance(tree, dict) else tree, document.line)
        for document in found
        for tree, _ in _expand(document.tree, _Where((document.number,), document.line))
    )


def field_lines(data: bytes, located: Located, fields: Collection[Steps]) -> Mapping[Steps, int]:
    """Return the line of each of *fields*, names and indexes from its root, of a manifest that *data* holds.

    What the manifest doesn't state has the line of the nearest thing above it. Of a document that SOPS has encrypted only the names are those of the manifest.
    """
    found, _ = yaml_reader.read(data, located.path)
    for document in found:
        for tree, where in _expand(document.tree, _Where((document.number,), document.line)):
            if isinstance(tree, dict) and ("sops" in tree or _without_bookkeeping(tree) == located.manifest):
                places = {steps: where.at(*steps) for steps in fields}
                line_of = _LineIndex(data, [where, *places.values()])
                if line_of(where) == located.line:
                    return {
                        steps: line_of(place) if len(place.place) > 1 else located.line
                        for steps, place in places.items()
                    }
    return dict.fromkeys(fields, located.line)


# --------------------------------------------------------------------------------------- lines


class _Where(Struct, frozen=True):
    """A place in the file, and the line to name should the place not be found (JSON, aliases, merges)."""

    place: Place
    line: int

    def at(self, *steps: int | str) -> _Where:
        return replace(self, place=(*self.place, *steps))


class _Fault(Struct, frozen=True):
    """What is wrong with the field at *where*; *unquoted* is what it means, where it is to be quoted as it is written."""

    where: _Where
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    unquoted: Any = None

    def problem(self, path: str, line: int, text: Sequence[str]) -> Problem:
        hint = self.hint
        if self.unquoted is not None:
            own = text[line - 1] if 0 < line <= len(text) else ""
            hint = f"quote it: {shown(written(own, str(self.where.place[-1]), self.unquoted))}"
        return Problem(path, line, self.message, _fitting(hint, path), self.severity)


def _fitting(hint: str, path: str) -> str:
    """Return *hint* as far as it can be followed: nobody can ignore what is piped in."""
    if path != STDIN or IGNORE_FILE not in hint:
        return hint
    return hint.partition(", or list")[0] if ", or list" in hint else ""


class _LineIndex:
    """Answers with the line of a place. Whole documents know theirs; the rest costs a second pass over the file."""

    def __init__(self, data: bytes, places: list[_Where]) -> None:
        wanted = {
            where.place[:length]
            for where in places
            if len(where.place) > 1
            for length in range(2, len(where.place) + 1)
        }
        self._found = yaml_reader.lines(data, wanted) if wanted else {}

    def __call__(self, where: _Where) -> int:
        place = where.place
        while len(place) > 1:
            if place in self._found:
                return self._found[place]
            place = place[:-1]
        return where.line


# ------------------------------------------------------------------------------------- oddities

_OF_SERVER = ("uid", "resourceVersion", "managedFields")
"""What marks an export from a cluster. An apply with one of them would be refused, or never fit again."""


def _oddities(tree: Manifest, where: _Where) -> Iterator[_Fault]:
    """Yield what is most likely meant otherwise in an object that can be used as it is."""
    metadata, at = tree["metadata"], where.at("metadata")
    exported = [name for name in _OF_SERVER if metadata.get(name)]
    if exported:
        names = [f"metadata.{name}" for name in exported] + ["status"] * ("status" in tree)
        said = f"{' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))} {_are(names)} set by the server"
        hint = "remove it; exports contain it, but it isn't applied"
        yield _Fault(at.at(exported[0]), said, hint, Severity.WARNING)
    theirs = translated(tree)
    for ignored in theirs.ignored:
        place = at.at("annotations", ignored.name)
        yield _Fault(place, sentence_of(ignored), ignored.hint, Severity.WARNING)
    if theirs.runs and map_at(tree, "spec").get("ttlSecondsAfterFinished") is not None:
        said = "spec.ttlSecondsAfterFinished of a hook is ignored: the Job stays until it runs again, as the record that it ran"
        yield _Fault(where.at("spec", "ttlSecondsAfterFinished"), said, severity=Severity.WARNING)


def _are(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _without_bookkeeping(tree: Manifest) -> Manifest:
    """Return an object without what only a server can have written into it."""
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict) or not any(name in metadata for name in _OF_SERVER):
        return tree
    return {**tree, "metadata": {name: value for name, value in metadata.items() if name not in _OF_SERVER}}


# -------------------------------------------------------------------------------------- checks


def _expand(tree: Any, where: _Where) -> Iterator[tuple[Any, _Where]]:
    """Yield the object of a document, or for a list the objects of its items."""
    if not _is_list(tree):
        yield tree, where
        return
    kind, items = tree["kind"], tree.get("items")
    if not isinstance(items, list):
        items = [] if items is None else [items]
    implied = {"apiVersion": tree["apiVersion"], "kind": kind.removesuffix("List")} if kind != "List" else {}
    for index, item in enumerate(items):
        typed = {**implied, **item} if implied and isinstance(item, dict) else item
        yield from _expand(typed, where.at("items", index))


def _is_list(tree: Any) -> bool:
    """Return whether *tree* stands for its items: a CR may be called ``AllowList`` and is an object anyway."""
    if (
        not isinstance(tree, dict)
        or not isinstance(tree.get("kind"), str)
        or not isinstance(tree.get("apiVersion"), str)
    ):
        return False
    if tree["kind"] == "List" and tree["apiVersion"] == "v1":
        return True
    metadata = tree.get("metadata")
    named = isinstance(metadata, dict) and "name" in metadata
    return tree["kind"].endswith("List") and isinstance(tree.get("items"), list) and not named


_API_VERSION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_KIND = re.compile(r"[A-Za-z](?:[-A-Za-z0-9]*[A-Za-z0-9])?")
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")

_NAMED_FREELY = frozenset(("rbac.authorization.k8s.io", "certificates.k8s.io", "networking.k8s.io"))
"""Groups with kinds whose names are no DNS names: ``system:node``, ``example.com:root``, ``2001:db8::1``."""

_NO_MANIFEST_HINT = f"if the file holds no manifests, list it in {IGNORE_FILE}"
_LEAVE_OUT = f"list the file in {IGNORE_FILE}"


def _filled(text: str) -> str:
    """Return *text* as it may be once the variables of a Sync are in it; which these are isn't known here."""
    return _VARIABLE.sub("x", text) if "${" in text else text


_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*((?::?=|:-)[^{}]*)?\}")


def metadata_faults(manifest: Manifest) -> Iterator[tuple[Steps, str, str]]:
    """Yield what keeps a manifest from being an object that was one with variables in it: where, what is wrong, and what to do."""
    for fault in _metadata_faults(manifest, _Where((0,), 0)):
        yield fault.where.place[1:], fault.message, fault.hint
    for steps, text in _named(manifest):
        if left := _VARIABLE.search(text):
            what, hint = (
                ("a variable with a default in it", "set spec.source.substitute.expressions of the Sync to Defaults")
                if left[1]
                else ("a variable in it that isn't declared", "declare it in spec.source.substitute of the Sync")
            )
            yield steps, f"{'.'.join(map(str, steps))} {shown(text)} has {what}", hint


def is_named_by_variables(located: Located) -> bool:
    """Tell whether names of an object have variables in them still."""
    return any("${" in text for _, text in _named(located.manifest))


def _named(manifest: Manifest) -> Iterator[tuple[Steps, str]]:
    """Yield what of an object can't have braces in it."""
    metadata = manifest["metadata"]
    for name in ("name", "namespace"):
        if isinstance(text := metadata.get(name), str):
            yield ("metadata", name), text
    for name, text in (metadata.get("labels") or {}).items():
        if isinstance(text, str):
            yield ("metadata", "labels", name), text


def _faults(tree: Any, where: _Where) -> Iterator[_Fault]:
    """Yield what keeps *tree* from being an object."""
    if not isinstance(tree, dict):
        yield _Fault(where, f"{_kind_of(tree)}, not an object", "each document is one object; separate them with ---")
        return
    if isinstance(tree.get("sops"), dict) and "mac" in tree["sops"]:  # what else is wrong may be the encryption's doing
        said = "encrypted with SOPS: nothing of this document is applied or pruned"
        yield _Fault(
            where.at("sops"),
            said,
            f"decrypt its file by spec.source.decryption; {_LEAVE_OUT} to apply it by other means",
        )
        return
    if not tree.get("apiVersion") and not tree.get("kind") and "metadata" not in tree:
        yield _Fault(where, "no apiVersion and no kind", _NO_MANIFEST_HINT)
        return
    yield from _header_faults(tree, where)
    yield from _metadata_faults(tree, where)


def _header_faults(tree: Manifest, where: _Where) -> Iterator[_Fault]:
    for key, pattern, example in (("apiVersion", _API_VERSION, "apps/v1"), ("kind", _KIND, "Deployment")):
        value = tree.get(key)
        if value is None or value == "":
            yield _Fault(where, f"no {key}", _NO_MANIFEST_HINT)
        elif not isinstance(value, str):
            yield _Fault(where.at(key), f"{key} is {_kind_of(value)}, not text", f"as in {key}: {example}")
        elif not pattern.fullmatch(value):
            yield _Fault(where.at(key), f"{key} {shown(value)} isn't valid", f"as in {key}: {example}")


def _metadata_faults(tree: Manifest, where: _Where) -> Iterator[_Fault]:
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        what = "no metadata" if metadata is None else f"metadata is {_kind_of(metadata)}, not a map"
        yield _Fault(where if metadata is None else where.at("metadata"), what, "an object needs metadata.name")
        return
    where = where.at("metadata")
    yield from _name_faults(tree, metadata, where)
    yield from _namespace_faults(metadata, where)
    yield from _text_map_faults(metadata, "labels", where)
    yield from _text_map_faults(metadata, "annotations", where)


def _name_faults(tree: Manifest, metadata: Manifest, where: _Where) -> Iterator[_Fault]:
    name = metadata.get("name")
    if name is None or name == "":
        if metadata.get("generateName"):
            where = where.at("generateName")
            yield _Fault(where, "generateName would create a new object at every sync", "give it a metadata.name")
        else:
            yield _Fault(where if name is None else where.at("name"), "no metadata.name", "give the object a name")
        return
    where = where.at("name")
    if not isinstance(name, str):
        yield _unquoted(where, "metadata.name", name)
    elif len(name) > 253:
        yield _Fault(where, f"metadata.name has {len(name)} characters; at most 253 are allowed")
    elif name in {".", ".."} or "/" in name or "%" in name:
        yield _Fault(
            where,
            f"metadata.name {shown(name)} can't be part of a URL",
            "a name can't be . or .., and can't contain / or %",
        )
    elif not _SUBDOMAIN.fullmatch(_filled(name)) and not _named_freely(tree.get("apiVersion")):
        hint = "lower-case letters, digits, - and . only; it starts and ends with a letter or digit"
        yield _Fault(where, f"metadata.name {shown(name)} isn't a DNS name", hint)


def _named_freely(api_version: Any) -> bool:
    group = api_version.rpartition("/")[0] if isinstance(api_version, str) else ""
    return group in _NAMED_FREELY or group.endswith(".openshift.io")


def _namespace_faults(metadata: Manifest, where: _Where) -> Iterator[_Fault]:
    namespace = metadata.get("namespace")
    where = where.at("namespace")
    if namespace is None or namespace == "":
        return
    if not isinstance(namespace, str):
        yield _unquoted(where, "metadata.namespace", namespace)
    elif not _LABEL.fullmatch(_filled(namespace)):
        hint = "lower-case letters, digits and - only, at most 63"
        yield _Fault(where, f"metadata.namespace {shown(namespace)} isn't a DNS label", hint)


def _text_map_faults(metadata: Manifest, key: str, where: _Where) -> Iterator[_Fault]:
    found = metadata.get(key)
    where = where.at(key)
    if found is None:
        return
    if not isinstance(found, dict):
        yield _Fault(where, f"metadata.{key} is {_kind_of(found)}, not a map of text to text")
        return
    for name, value in found.items():
        if not isinstance(value, str):
            told = _unquoted(where.at(name), f"{key[:-1]} {shown(name)}", value)
            # An annotation may be a copy of a Secret's value.
            may_tell = key == "labels" or isinstance(value, dict | list)
            yield told if may_tell else _Fault(told.where, told.message, "quote it")
        elif key == "labels" and not _LABEL_VALUE.fullmatch(_filled(value)):
            hint = "at most 63 letters, digits, - _ and ., starting and ending with a letter or digit"
            yield _Fault(
                where.at(name), f"label {shown(name)} has the value {shown(value)}, which is not allowed", hint
            )


def _kind_of(value: Any) -> str:
    names = {
        dict: "a map",
        list: "a list",
        str: "text",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names[type(value)]


def _unquoted(where: _Where, what: str, value: Any) -> _Fault:
    """Return that a field is no text, and that it is one once it is quoted; a map or a list isn't."""
    message = f"{what} is {_kind_of(value)}, not text"
    if value is None or isinstance(value, dict | list):
        return _Fault(where, message, 'quote it: ""' if value is None else "")
    return _Fault(where, message, unquoted=value)
