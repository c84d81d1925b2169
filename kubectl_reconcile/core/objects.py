"""The words that every other file uses: references, paths into objects, conditions, problems.

A *manifest* is wire JSON exactly as the API server speaks it: a mapping with camelCase keys,
never mutated and never copied into model classes. An *object reference* names an object
without its version, since the same object is served at several. A *field path* is a tuple of
``fieldsV1`` path elements (KEP-555), so paths and ``managedFields`` share one spelling.

Pure: no I/O, no clock, no logging.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self, TypeAlias

from msgspec import Struct

Manifest: TypeAlias = Mapping[str, Any]
"""Wire JSON of one object. Treat it as frozen: producers never mutate it after handing it out."""

FIELD_MANAGER = "kubectl-reconcile"
"""Field manager of everything that comes from Git. Modules append ``-<module>`` for their children."""
DEFAULT_ACCOUNT = "kubectl-reconcile"
"""The ServiceAccount of a Sync that names none."""
ACCOUNT_USERS = "system:serviceaccount:"
"""How the users begin that ServiceAccounts are (Authenticating, "Service account tokens")."""


API_GROUP = "reconcile.dev"
"""Our API group, and the prefix of our labels and annotations."""


def account_user(namespace: str, name: str) -> str:
    """Return what the API server calls a ServiceAccount."""
    return f"{ACCOUNT_USERS}{namespace}:{name}"


class GroupKind(NamedTuple):
    """A kind without its version. Prints as kubectl's ``Deployment.apps`` (core kinds: ``Service``)."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersionKind(NamedTuple):
    """A kind at one version, as ``apiVersion`` and ``kind`` of a manifest say it."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """The same kind without its version."""
        return GroupKind(self.group, self.kind)

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Return the kind of *manifest*, which must carry ``apiVersion`` and ``kind``."""
        return cls.parse(manifest["apiVersion"], manifest["kind"])

    @classmethod
    def parse(cls, api_version: str, kind: str) -> Self:
        """Split an ``apiVersion`` (``apps/v1`` or ``v1``) and join it with *kind*."""
        group, _, version = api_version.rpartition("/")
        return cls(group, version, kind)

    def __str__(self) -> str:
        return f"{self.kind} {self.api_version}"


class ObjectRef(NamedTuple):
    """Versionless identity of an object, ordered; prints ``Deployment.apps shop/web``.

    *namespace* is empty for cluster-scoped objects.
    """

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Return the reference of *manifest* as it stands (no namespace is filled in)."""
        metadata = manifest.get("metadata") or {}
        group = manifest["apiVersion"].rpartition("/")[0]
        return cls(group, manifest["kind"], metadata.get("namespace") or "", metadata.get("name") or "")

    @property
    def group_kind(self) -> GroupKind:
        """The kind of the object referred to."""
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.group_kind} {place}"


class FieldPath(tuple[str, ...]):
    """A path into an object: a tuple of ``fieldsV1`` elements; prints as people write it.

    Elements are the wire's: ``f:name`` a field, ``k:{"name":"web"}`` the list item with these
    keys, ``v:"x"`` the item of a set, ``i:0`` an index. So
    ``FieldPath(("f:spec", "f:containers", 'k:{"name":"web"}', "f:image"))`` prints
    ``.spec.containers[name="web"].image``.
    """

    __slots__ = ()

    @classmethod
    def fields(cls, *names: str) -> Self:
        """Return the path of nested plain fields: ``fields("spec", "replicas")``."""
        return cls(f"f:{name}" for name in names)

    def __str__(self) -> str:
        return "".join(_element_text(element) for element in self) or "."

    def __repr__(self) -> str:
        return f"FieldPath({str(self)!r})"


_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def _element_text(element: str) -> str:
    kind, _, body = element.partition(":")
    if kind == "f":
        return f".{body}" if _PLAIN_NAME.fullmatch(body) else f"[{json.dumps(body, ensure_ascii=False)}]"
    if kind == "k":
        keys = json.loads(body)
        inner = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in keys.items())
        return f"[{inner}]"
    return f"[={body}]" if kind == "v" else f"[{body}]"


class Severity(StrEnum):
    """How much a problem stands in the way."""

    ERROR = "error"
    """Something can't be used as it is: deletions wait until it is fixed, and the Sync isn't Ready meanwhile."""
    WARNING = "warning"
    """It is used as it is, though most likely meant otherwise: nothing waits for it, and the Sync is still Ready."""


class Problem(Struct, frozen=True):
    """Something wrong in the source. Problems are data: one never hides the rest.

    *path* is relative to the repository or folder, *line* counts from 1 (0: the whole file). Where not *in_source*, it
    is wrong with what a module looks at, and *path* names the CR.
    """

    path: str
    line: int
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    in_source: bool = True

    @property
    def is_error(self) -> bool:
        """Tell whether something can't be used because of it."""
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        where = place_of(self.path, self.line)
        hint = f" (hint: {self.hint})" if self.hint else ""
        return f"{where}: {self.message}{hint}"


def place_of(path: str, line: int) -> str:
    """Return a place in the source as people write it; only a line above zero is one."""
    return f"{path}:{line}" if line > 0 else path


def errors_among(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return those of *problems* because of which something can't be used."""
    return tuple(problem for problem in problems if problem.is_error)


def warnings_among(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return those of *problems* that nothing waits for."""
    return tuple(problem for problem in problems if not problem.is_error)


class Condition(Struct, frozen=True):
    """One entry of ``status.conditions``, after KEP-1623; *status* is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str
    message: str = ""

    def __post_init__(self) -> None:
        """Refuse what the API server would refuse later.

        Raises:
            ValueError: *status* isn't one of the three words, or *reason* isn't CamelCase.
        """
        if self.status not in {"True", "False", "Unknown"}:
            raise ValueError(f"condition {self.type}: status must be True, False or Unknown, not {self.status!r}")
        if not re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", self.reason):
            raise ValueError(f"condition {self.type}: reason must be one CamelCase word, not {self.reason!r}")


def merge_conditions(live: Any, wanted: Iterable[Condition], *, generation: int, now: str) -> list[dict[str, Any]]:
    """Return ``status.conditions`` as they must become.

    ``lastTransitionTime`` moves only where the status changes, so an unchanged condition costs
    no write; live conditions of types that nobody mentions stay. *now* is RFC 3339.
    """
    found = {str(condition["type"]): dict(condition) for condition in maps_in(live) if condition.get("type")}
    for condition in wanted:
        before = found.get(condition.type)
        moved = before is None or before.get("status") != condition.status
        found[condition.type] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": generation,
            "lastTransitionTime": now if moved or before is None else before.get("lastTransitionTime", now),
        }
    return list(found.values())


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return *value* if it is a map, else an empty one: what an object says of itself may have any shape."""
    if type(value) is dict:  # nearly always, and ten times as fast as asking the abstract class
        return value
    return value if value is not None and isinstance(value, Mapping) else {}


def map_at(manifest: Manifest, *path: str) -> Mapping[str, Any]:
    """Return the map at a *path* of fields; empty if there is none."""
    found: Any = manifest
    for name in path:
        found = mapping_of(found).get(name)
    return mapping_of(found)


def text_at(manifest: Manifest, *path: str) -> str:
    """Return the text at a *path* of fields; empty if there is none."""
    found = map_at(manifest, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def maps_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the maps in a list; empty if *value* isn't a list."""
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value if type(item) is dict or isinstance(item, Mapping)]


def number_of(value: Any) -> int | None:
    """Return a whole number, also one in quotes or with a zero fraction; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else None


def metadata_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the metadata of an object; empty where it has none."""
    return mapping_of(manifest.get("metadata"))


def conditions_of(manifest: Manifest) -> list[Mapping[str, Any]]:
    """Return the live conditions of an object, those that say of which type they are."""
    found = maps_in(mapping_of(manifest.get("status")).get("conditions"))
    return [condition for condition in found if isinstance(condition.get("type"), str)]


def condition_of(manifest: Manifest, type_: str) -> Manifest | None:
    """Return the live condition *type_* of an object, or None."""
    return next((condition for condition in conditions_of(manifest) if condition["type"] == type_), None)


def has_condition(manifest: Manifest, type_: str) -> bool:
    """Tell whether the live condition *type_* of an object is True."""
    found = condition_of(manifest, type_)
    return found is not None and found.get("status") == "True"


def labels_of(manifest: Manifest) -> Mapping[str, str]:
    """Return the labels of an object; empty if it has none."""
    return _texts(metadata_of(manifest).get("labels"))


def annotations_of(manifest: Manifest) -> Mapping[str, str]:
    """Return the annotations of an object; empty if it has none."""
    return _texts(metadata_of(manifest).get("annotations"))


def _texts(value: Any) -> Mapping[str, str]:
    found = mapping_of(value)
    for text in found.values():
        if type(text) is not str:
            return {name: text for name, text in found.items() if isinstance(text, str)}
    return found


def controller_of(manifest: Manifest) -> Manifest | None:
    """Return the owner reference with ``controller: true``, or None. At most one exists."""
    owners = maps_in(metadata_of(manifest).get("ownerReferences"))
    return next((owner for owner in owners if owner.get("controller") is True), None)


def decoded(value: object) -> bytes:
    """Return what a *value* of a Secret stands for, or one of a ConfigMap's ``binaryData``.

    Raises:
        ValueError: it isn't base64.
    """
    return base64.b64decode(str(value), validate=True)


def decoded_text(value: object) -> str:
    """Return the text that a *value* of a Secret stands for.

    Raises:
        ValueError: it isn't base64, or what it stands for isn't text.
    """
    return decoded(value).decode()


def walk(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every leaf of a JSON tree with its plain path (names and indexes)."""
    if isinstance(tree, Mapping) and tree:
        for name, value in tree.items():
            yield from walk(value, (*path, name))
    elif isinstance(tree, list | tuple) and tree:
        for index, value in enumerate(tree):
            yield from walk(value, (*path, index))
    else:
        yield path, tree
