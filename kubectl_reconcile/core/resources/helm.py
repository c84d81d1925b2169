"""``spec.source.helm``: how a chart is rendered, as users write it.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from msgspec import Struct

from kubectl_reconcile.core.resources.substitute import KEY, OBJECT, Holder, ValueSource, ValueType

MOST_VALUES_FILES: Final = 32
MOST_VALUES_FROM: Final = 32
MOST_VALUES_BYTES: Final = 256 * 1024
MOST_API_VERSIONS: Final = 200
LONGEST_RELEASE: Final = 53
"""As Helm has it, so that charts may append to it."""

_LONGEST_PATH: Final = 1024
_LONGEST_NAME: Final = 63
_RELEASE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VERSION: Final = re.compile(r"v?\d+\.\d+(\.\d+)?([-+][0-9A-Za-z.+-]*)?")
_API_VERSION: Final = re.compile(r"[a-z0-9.-]+(/[a-z0-9]+)?(/[A-Za-z0-9]+)?")
_VALUES_KEY: Final = "values.yaml"
_LONGEST_TARGET: Final = 250
_NAME_IN_TARGET: Final = r"(?:[A-Za-z0-9_/-]|\\[.\\])+(?:\[[0-9]{1,3}\])*"
_TARGET: Final = re.compile(rf"{_NAME_IN_TARGET}(?:\.{_NAME_IN_TARGET})*")


class Unstable(StrEnum):
    """``spec.source.helm.unstable``: what happens to fields that get a new value with each rendering."""

    KEEP = "Keep"
    """They stay as they are in the cluster; one that isn't there yet is drawn."""
    RENDER = "Render"
    """Each rendering is applied as it is."""
    FAIL = "Fail"
    """They are a problem."""


class LookupPolicy(StrEnum):
    """``spec.source.helm.lookup``: what a chart is told that looks up objects in the cluster."""

    EMPTY = "Empty"
    """That nothing is there, whatever is."""
    CLUSTER = "Cluster"
    """What is there, as far as the Sync's account may read it."""


class HelmSpecError(ValueError):
    """A field below ``spec.source.helm`` that can't be meant so; *field* is its path from there."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


class ValuesFrom(Struct, frozen=True):
    """One entry of ``valuesFrom``: a map of values as YAML, where *source* says; or with a *target* the one value there, of a *type*. An *optional* one may be missing."""

    source: ValueSource
    target: str = ""
    type: ValueType = ValueType.STRING
    optional: bool = False

    def told(self) -> dict[str, Any]:
        """Return it in its wire form, without what is as it would be anyway."""
        found = {
            "kind": self.source.holder.value,
            "name": self.source.name,
            "valuesKey": "" if self.source.key == _VALUES_KEY else self.source.key,
            "targetPath": self.target,
            "type": "" if self.type is ValueType.STRING else self.type.value,
            "optional": self.optional,
        }
        return {name: value for name, value in found.items() if value}


class HelmSpec(Struct, frozen=True):
    """What a Sync says of its chart. *values_files* are paths from the chart, *values* JSON; empty fields have defaults elsewhere."""

    release_name: str = ""
    namespace: str = ""
    values_files: tuple[str, ...] = ()
    ignore_missing: bool = False
    values: str = "{}"
    skip_crds: bool = False
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    unstable: Unstable = Unstable.KEEP
    lookup: LookupPolicy = LookupPolicy.EMPTY
    values_from: tuple[ValuesFrom, ...] = ()

    @property
    def holders(self) -> tuple[tuple[Holder, str], ...]:
        """The ConfigMaps and Secrets that hold values, each once, by kind and name."""
        return tuple(sorted({(each.source.holder, each.source.name) for each in self.values_from}))

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> HelmSpec:
        """Read it from its wire form.

        Raises:
            HelmSpecError: a field is malformed; it names the field.
        """
        return cls(
            release_name=release_name(fields.get("releaseName") or ""),
            namespace=_matching(fields, "namespace", _NAMESPACE, _LONGEST_NAME, "isn't a name of a namespace"),
            values_files=tuple(_path(name, index) for index, name in enumerate(_list(fields, "valuesFiles", MOST_VALUES_FILES))),
            ignore_missing=bool(fields.get("ignoreMissingValuesFiles", False)),
            values=_values(fields.get("values")),
            skip_crds=bool(fields.get("skipCRDs", False)),
            kube_version=_matching(fields, "kubeVersion", _VERSION, _LONGEST_NAME, "isn't a version such as 1.34 or v1.34.2"),
            api_versions=tuple(
                _api_version(name, index) for index, name in enumerate(_list(fields, "apiVersions", MOST_API_VERSIONS))
            ),
            unstable=_one_of(Unstable, "unstable", fields.get("unstable", Unstable.KEEP)),
            lookup=_one_of(LookupPolicy, "lookup", fields.get("lookup", LookupPolicy.EMPTY)),
            values_from=tuple(
                _values_from(entry, f"valuesFrom[{index}]") for index, entry in enumerate(_list(fields, "valuesFrom", MOST_VALUES_FROM))
            ),
        )  # fmt: skip

    def told(self) -> dict[str, Any]:
        """Return it in its wire form, without what is as it would be anyway."""
        found = {
            "releaseName": self.release_name,
            "namespace": self.namespace,
            "valuesFiles": [*self.values_files],
            "ignoreMissingValuesFiles": self.ignore_missing,
            "values": json.loads(self.values),
            "valuesFrom": [each.told() for each in self.values_from],
            "skipCRDs": self.skip_crds,
            "kubeVersion": self.kube_version,
            "apiVersions": [*self.api_versions],
            "unstable": "" if self.unstable is Unstable.KEEP else self.unstable.value,
            "lookup": "" if self.lookup is LookupPolicy.EMPTY else self.lookup.value,
        }
        return {name: value for name, value in found.items() if value}


NO_HELM: Final = HelmSpec()
"""That of a Sync which doesn't mention charts."""


def release_name(name: str) -> str:
    """Return *name* if it can be a release's; empty is for the default.

    Raises:
        HelmSpecError: it can't.
    """
    if name and (len(name) > LONGEST_RELEASE or not _RELEASE.fullmatch(name)):
        raise HelmSpecError(
            "releaseName",
            f"{name!r} can't be a release: up to {LONGEST_RELEASE} lower-case letters, digits, hyphens and dots, a letter or digit at both ends",
        )
    return name


def _matching(fields: Mapping[str, Any], field: str, pattern: re.Pattern[str], most: int, what: str) -> str:
    text: str = fields.get(field) or ""
    if text and (len(text) > most or not pattern.fullmatch(text)):
        raise HelmSpecError(field, f"{text[:80]!r} {what}")
    return text


def _list(fields: Mapping[str, Any], field: str, most: int) -> list[Any]:
    found = fields.get(field) or []
    if not isinstance(found, list):
        raise HelmSpecError(field, "isn't a list")
    if len(found) > most:
        raise HelmSpecError(field, f"has more than {most} entries")
    return found


def _path(name: Any, index: int) -> str:
    field = f"valuesFiles[{index}]"
    if not isinstance(name, str) or not name or len(name) > _LONGEST_PATH or not name.isprintable():
        raise HelmSpecError(field, f"isn't a path of up to {_LONGEST_PATH} characters")
    if "://" in name:
        raise HelmSpecError(
            field, "is a URL, and nothing is fetched while rendering: commit the file and give its path"
        )
    if name.startswith("/"):
        raise HelmSpecError(field, "must be relative to the chart's folder")
    return posixpath.normpath(name)


def _values_from(entry: Any, field: str) -> ValuesFrom:
    if not isinstance(entry, dict):
        raise HelmSpecError(field, "isn't a map with kind and name")
    holder = _one_of(Holder, f"{field}.kind", entry.get("kind") or "")
    name, key, target = entry.get("name") or "", entry.get("valuesKey") or _VALUES_KEY, entry.get("targetPath") or ""
    if not isinstance(name, str) or not OBJECT.fullmatch(name):
        raise HelmSpecError(f"{field}.name", f"{name!r} isn't a name of a {holder}")
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise HelmSpecError(f"{field}.valuesKey", f"{key!r} isn't a key of a {holder}")
    if target and (not isinstance(target, str) or len(target) > _LONGEST_TARGET or not _TARGET.fullmatch(target)):
        raise HelmSpecError(
            f"{field}.targetPath", f"{target!r} isn't a place of a value, such as db.password or hosts[0].name"
        )
    kind = _one_of(ValueType, f"{field}.type", entry.get("type") or ValueType.STRING)
    if kind is not ValueType.STRING and not target:
        raise HelmSpecError(
            f"{field}.type", "is for the one value at a targetPath; a map of values says its types itself"
        )
    return ValuesFrom(ValueSource(holder, name, key), target, kind, bool(entry.get("optional", False)))


def _api_version(name: Any, index: int) -> str:
    if not isinstance(name, str) or len(name) > _LONGEST_NAME * 4 or not _API_VERSION.fullmatch(name):
        raise HelmSpecError(f"apiVersions[{index}]", "isn't an API version such as apps/v1 or apps/v1/Deployment")
    return name


_Policy = TypeVar("_Policy", bound=StrEnum)


def _one_of(policy: type[_Policy], field: str, text: Any) -> _Policy:
    try:
        return policy(text)
    except ValueError:
        raise HelmSpecError(field, f"{text!r} isn't one of {', '.join(policy)}") from None


def _values(values: Any) -> str:
    if values is None:
        return "{}"
    if not isinstance(values, dict):
        raise HelmSpecError("values", "isn't a map")
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    if len(text) > MOST_VALUES_BYTES:
        raise HelmSpecError(
            "values",
            f"is larger than {MOST_VALUES_BYTES // 1024} KiB; put the values into a file and name it in valuesFiles",
        )
    return text
