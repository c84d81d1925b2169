"""Pages for those who write programs: every field of a plan file, from its schema, and the module API, from what it exports."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_reconcile import module_api, module_testing
from kubectl_reconcile.views import schemas

_PLAN = """\
# Fields of a plan file

Every field of what `kubectl reconcile diff -o json` writes and `sync --plan` reads. `make manifests` generates this page from the JSON Schema,
`kubectl_reconcile/core/planning/plan.schema.json`. [Plan files](plan-file.md) says what they are for. A field in **bold** is always there. `[]` stands for each item of a list,
`*` for each key of a map.
"""

_MODULES = """\
# Module API

Everything that a [domain module](modules.md) may import from `kubectl_reconcile.module_api`. These names are stable within a major version. `make manifests` generates the list of
names from the source, and `make docs` adds signatures and descriptions.

The modules for etcd, PostgreSQL and Kafka are built on these names alone. What they share among themselves (certificates, backups, volumes) is in
`kubectl_reconcile_operators`, which may change at any time. Packages name their modules by [entry points](modules.md#how-a-module-is-found), such as `TeaPot.v1alpha1.example.com`.
"""

_OTHERS: Final = "names of labels, and limits"
_TESTING: Final = "for tests"


def plan_fields_page() -> str:
    """Return the reference of plan files."""
    schema = schemas.plan_file()
    parts = {"The file": schema, **{name.capitalize(): part for name, part in schema["definitions"].items()}}
    return "\n".join([_PLAN, *(line for name, part in parts.items() for line in _table(name, part))])


def _table(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"## {name}\n", "| field | type | meaning |", "|---|---|---|", *_fields(schema, ""), "")


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield a row for each field below *path*, parents before what is in them."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        shown = f"**`{here}`**" if name in schema.get("required", ()) else f"`{here}`"
        yield f"| {shown} | {_type(field)} | {_meaning(field)} |"
        yield from _below(field, here)


def _below(field: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from _fields(field, path)
    for choice in field.get("anyOf", ()):
        yield from _below(choice, path)
    if "items" in field:
        yield from _below(field["items"], f"{path}[]")


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "anyOf" in field:
        return " or ".join(sorted((_type(choice) for choice in field["anyOf"]), key="null".__eq__))
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if isinstance(values := field.get("additionalProperties"), Mapping):
        return f"map to {_type(values)}"
    if "enum" in field:
        return "string"
    kinds = field.get("type", "any")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _meaning(field: Mapping[str, Any]) -> str:
    said = str(field.get("description", ""))
    if words := [f"`{each}`" for each in field.get("enum", ())]:
        said += f" One of {', '.join(words)}." if len(words) > 1 else f" Always {words[0]}."
    return said.strip()


def module_api_page() -> str:
    """Return the list of all that modules may import, by what it is for, for mkdocstrings to fill in."""
    return "\n".join([_MODULES, *(line for name, names in _groups() for line in _section(name, names))])


def _groups() -> Iterator[tuple[str, list[str]]]:
    """Yield what the names of the module API are for, as its docstring says, and then all that it leaves out."""
    left = dict.fromkeys(module_api.__all__)
    text = inspect.cleandoc(module_api.__doc__ or "")
    for item in re.findall(r"^- (.+)", text, re.MULTILINE):
        names = [name for name in re.findall(r"(?<!`)`(\w+)`(?!`)", item) if name in left]
        yield item.partition(":")[0], [f"{module_api.__name__}.{name}" for name in names]
        for name in names:
            left.pop(name)
    yield _OTHERS, [f"{module_api.__name__}.{name}" for name in left]
    yield _TESTING, [f"{module_testing.__name__}.{name}" for name in module_testing.__all__]


def _section(name: str, names: list[str]) -> Iterator[str]:
    yield f"## {name[0].upper()}{name[1:]}\n"
    for each in names:
        yield f"::: {each}\n"
