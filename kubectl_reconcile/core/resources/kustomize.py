"""``spec.source.kustomize``: what is changed of objects after their files are read or rendered, in the syntax of kustomize and Flux.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self

from msgspec import Struct

MOST_ENTRIES: Final = 100
"""How many patches, images or components there may be."""
MOST_PATCH_BYTES: Final = 32 * 1024
"""How long one patch may be."""

_LONGEST_TEXT: Final = 1024
_FIELDS: Final = ("components", "patches", "images", "commonMetadata", "namePrefix", "nameSuffix")
_OF_PATCH: Final = ("patch", "target", "options")
_OF_TARGET: Final = ("group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector")
_OF_OPTIONS: Final = ("allowNameChange", "allowKindChange")
_OF_IMAGE: Final = ("name", "newName", "newTag", "digest")
_OF_METADATA: Final = ("labels", "annotations")


class KustomizeSpecError(ValueError):
    """A field below ``spec.source.kustomize`` that can't be meant so; *field* is its path from there."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


class KustomizeSpec(Struct, frozen=True):
    """What a Sync changes of its objects. *components* are paths from the Sync's own, all else is JSON in kustomize's syntax."""

    components: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    labels: str = ""
    annotations: str = ""
    name_prefix: str = ""
    name_suffix: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Read it from its wire form.

        Raises:
            KustomizeSpecError: a field is malformed; it names the field.
        """
        _known(fields, _FIELDS, "")
        metadata = _map(fields, "commonMetadata", "commonMetadata")
        _known(metadata, _OF_METADATA, "commonMetadata")
        labels, annotations = (_texts(metadata, name) for name in _OF_METADATA)
        return cls(
            components=tuple(_entries(fields, "components", _component)),
            patches=tuple(_entries(fields, "patches", _patch)),
            images=tuple(_entries(fields, "images", _image)),
            labels=_json(labels) if labels else "",
            annotations=_json(annotations) if annotations else "",
            name_prefix=_text(fields, "namePrefix", "namePrefix"),
            name_suffix=_text(fields, "nameSuffix", "nameSuffix"),
        )

    def told(self) -> dict[str, Any]:
        """Return it in its wire form, without what is as it would be anyway."""
        metadata = {
            name: json.loads(text)
            for name, text in (("labels", self.labels), ("annotations", self.annotations))
            if text
        }
        found = {
            "components": [*self.components],
            "patches": [json.loads(each) for each in self.patches],
            "images": [json.loads(each) for each in self.images],
            "commonMetadata": metadata,
            "namePrefix": self.name_prefix,
            "nameSuffix": self.name_suffix,
        }
        return {name: value for name, value in found.items() if value}


NO_KUSTOMIZE: Final = KustomizeSpec()
"""That of a Sync which changes nothing of its objects."""


def _entries(fields: Mapping[str, Any], name: str, read: Callable[[Any, str], str]) -> Sequence[str]:
    found = fields.get(name) or []
    if not isinstance(found, list):
        raise KustomizeSpecError(name, "isn't a list")
    if len(found) > MOST_ENTRIES:
        raise KustomizeSpecError(name, f"has more than {MOST_ENTRIES} entries; make a component of them")
    return [read(each, f"{name}[{number}]") for number, each in enumerate(found)]


def _component(path: Any, field: str) -> str:
    if not isinstance(path, str) or not path or len(path) > _LONGEST_TEXT or not path.isprintable():
        raise KustomizeSpecError(field, f"isn't a path of up to {_LONGEST_TEXT} characters")
    if "://" in path or path.startswith("/"):
        raise KustomizeSpecError(field, "must be a folder of the repository, by its path from spec.source.path")
    return posixpath.normpath(path)


def _patch(entry: Any, field: str) -> str:
    fields = _entry(entry, field)
    if "path" in fields:
        raise KustomizeSpecError(
            f"{field}.path", "isn't read here; write the text under patch, or make a component of the file"
        )
    _known(fields, _OF_PATCH, field)
    text = fields.get("patch")
    if not isinstance(text, str) or not text.strip():
        raise KustomizeSpecError(f"{field}.patch", "is required: the text of a patch")
    if len(text.encode()) > MOST_PATCH_BYTES:
        raise KustomizeSpecError(
            f"{field}.patch", f"is longer than {MOST_PATCH_BYTES // 1024} KiB; make a component of it"
        )
    target, options = _map(fields, "target", f"{field}.target"), _map(fields, "options", f"{field}.options")
    _known(target, _OF_TARGET, f"{field}.target")
    _known(options, _OF_OPTIONS, f"{field}.options")
    for name in target:
        _text(target, name, f"{field}.target.{name}")
    for name, value in options.items():
        if not isinstance(value, bool):
            raise KustomizeSpecError(f"{field}.options.{name}", "isn't true or false")
    found = {"patch": text, "target": target, "options": options}
    return _json({name: value for name, value in found.items() if value})


def _image(entry: Any, field: str) -> str:
    fields = _entry(entry, field)
    _known(fields, _OF_IMAGE, field)
    found = {name: text for name in _OF_IMAGE if (text := _text(fields, name, f"{field}.{name}"))}
    if not found.get("name"):
        raise KustomizeSpecError(f"{field}.name", "is required: the image that is meant, without its tag")
    if len(found) == 1:
        raise KustomizeSpecError(field, "changes nothing; give newName, newTag or digest")
    return _json(found)


def _entry(entry: Any, field: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise KustomizeSpecError(field, "isn't a map")
    return entry


def _map(fields: Mapping[str, Any], name: str, field: str) -> Mapping[str, Any]:
    found = fields.get(name) or {}
    if not isinstance(found, dict):
        raise KustomizeSpecError(field, "isn't a map")
    return found


def _texts(metadata: Mapping[str, Any], name: str) -> Mapping[str, str]:
    found = _map(metadata, name, f"commonMetadata.{name}")
    for key, value in found.items():
        if not isinstance(value, str):
            raise KustomizeSpecError(f"commonMetadata.{name}.{key}", "isn't text; put it in quotes")
    return found


def _text(fields: Mapping[str, Any], name: str, field: str) -> str:
    found = fields.get(name) or ""
    if not isinstance(found, str) or len(found) > _LONGEST_TEXT or not found.isprintable():
        raise KustomizeSpecError(field, f"isn't a line of text of up to {_LONGEST_TEXT} characters")
    return found


def _known(fields: Mapping[str, Any], names: Sequence[str], field: str) -> None:
    if unknown := sorted(fields.keys() - set(names)):
        where = f"{field}.{unknown[0]}" if field else unknown[0]
        raise KustomizeSpecError(where, f"isn't known; there are {', '.join(names)}")


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
