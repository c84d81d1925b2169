"""Pages about what stands in the cluster, from its definitions: every field of our custom resources, conditions and reasons, metrics."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import yaml
from prometheus_client.metrics import MetricWrapperBase

from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.engine.commands.install import data_folder
from kubectl_reconcile.engine.telemetry.metrics import Metrics

_E = TypeVar("_E", bound=StrEnum)

_RESOURCES = """\
# Custom resources

Every field of every custom resource. `make manifests` generates this page from the CRDs in `crds/`. `kubectl explain sync.spec` shows the same in a terminal. A field
in **bold** is required where its parent is set. `[]` stands for each item of a list, `*` for each key of a map.
"""


def resources_page() -> str:
    """Return the reference of all custom resources, the Sync first."""
    files = sorted(data_folder("crds").glob("*.yaml"), key=lambda each: (not each.name.startswith("syncs."), each.name))
    return "\n".join([_RESOURCES, *(line for each in files for line in _kind(yaml.safe_load(each.read_text("utf-8"))))])


def _kind(crd: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sections of one kind."""
    kind, group = crd["spec"]["names"]["kind"], crd["spec"]["group"]
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        yield f"## {kind}\n\n`apiVersion: {group}/{version['name']}`\n\n{schema.get('description', '')}\n"
        for part in ("spec", "status"):
            if rows := [*_fields(schema["properties"].get(part, {}), "")]:
                yield from (
                    f"### {part} of {kind}\n",
                    "| field | type | default | meaning |",
                    "|---|---|---|---|",
                    *rows,
                    "",
                )


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield a row for each field below *path*, parents before what is in them."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        shown = f"**`{here}`**" if name in schema.get("required", ()) else f"`{here}`"
        default = (
            f"`{yaml.safe_dump(field['default'], default_flow_style=True).splitlines()[0]}`"
            if "default" in field
            else ""
        )
        yield f"| {shown} | {_type(field)} | {default} | {_cell(_meaning(field))} |"
        yield from _below(field, here)


def _below(field: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the rows of what is in a field."""
    yield from _fields(field, path)
    if isinstance(items := field.get("items"), Mapping):
        yield from _below(items, f"{path}[]")
    if isinstance(values := field.get("additionalProperties"), Mapping):
        yield from _below(values, f"{path}.*")


def _type(field: Mapping[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if isinstance(items := field.get("items"), Mapping):
        return f"list of {_type(items)}s"
    if isinstance(values := field.get("additionalProperties"), Mapping):
        return f"map to {_type(values)}"
    return "time" if field.get("format") == "date-time" else str(field.get("type", "any"))


def _meaning(field: Mapping[str, Any]) -> str:
    """Return what a field means, and which values it takes."""
    said = str(field.get("description", ""))
    if "enum" in field and not all(f"{each}:" in said for each in field["enum"]):
        said += f" One of {', '.join(f'`{each}`' for each in field['enum'])}."
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None or most is not None:
        said += " " + (
            f"At least {least}."
            if most is None
            else f"At most {most}."
            if least is None
            else f"From {least} to {most}."
        )
    return said


_CONDITIONS = """\
# Conditions and reasons of a Sync

`make manifests` generates this page from the source.

| condition | true when |
|---|---|
| `Synced` | the cluster is what the source asks for |
| `Healthy` | all members are healthy; otherwise the message names the worst, with the pod that causes it |
| `Ready` | both; with `spec.health.wait: false`, `Synced` alone |
| `Reconciling` | something is being written, or members are in progress |
| `Stalled` | nothing will happen until a person acts |
| `SourceVerified` | the newest [commit](git-sources.md#signed-commits-and-tags) or [artifact](oci.md#signatures) is signed as the Sync requires; only there if it requires signatures |
| `Contended` | [another controller](operating.md#when-somebody-else-writes-the-same-field) keeps overwriting fields, which are left to it for a while |

What to do about each of them is in [Operating](operating.md#status-of-a-sync).
"""


def conditions_page() -> str:
    """Return the reference of conditions, of their reasons and of the verdicts of health."""
    reasons = "## Reasons of Synced\n\nIf `Synced` isn't true, `Ready` has the same reason. If *stalled* is yes, waiting doesn't help.\n"
    head = ["| reason | stalled | meaning |", "|---|---|---|"]
    rows = [
        f"| `{each}` | {'yes' if each.is_stalled else 'no'} | {_cell(text)} |"
        for each, text in _members(ConditionReason)
    ]
    verdicts = "\n## Verdicts of health\n\nVerdicts on members, in `status.health.counts`, `tree` and elsewhere. [Health of objects](health.md) has the rules.\n"
    words = [f"| `{each}` | {_cell(text)} |" for each, text in _members(HealthStatus)]
    return "\n".join([_CONDITIONS, reasons, *head, *rows, verdicts, "| verdict | meaning |", "|---|---|", *words])


def _members(enum: type[_E]) -> Iterator[tuple[_E, str]]:
    """Yield the members of an enum, and what is written below each."""
    written = inspect.getsource(enum).partition("@property")[0].split('"""')[3::2]
    yield from zip(enum, written, strict=True)


_METRICS = """\
# Metrics

A daemon exports these metrics at `/metrics`, for Prometheus. `make manifests` generates this page from the source. A histogram has `_bucket`, `_sum` and `_count` after its name.
`deploy/grafana-dashboard.json` shows all of them; [Operating](operating.md#probes-metrics-and-logs) says how to reach them.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def metrics_page() -> str:
    """Return the reference of metrics."""
    collectors = vars(Metrics().registry)[
        "_collector_to_names"
    ]  # the library names labels nowhere else before there are samples
    return _METRICS + "\n".join(sorted(_metric(each) for each in collectors))


def _metric(declared: MetricWrapperBase) -> str:
    """Return the row of a metric, under the name that it is exported by."""
    [family] = declared.describe()
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{each}`" for each in vars(declared)["_labelnames"])
    return f"| `{name}` | {family.type} | {labels or '-'} | {_cell(family.documentation)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("``", "`")
