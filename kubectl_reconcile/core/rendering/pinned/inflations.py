"""Charts that an overlay inflates (``helmCharts``): which they are, and with what they are rendered, as kustomize has it.

kustomize runs Helm for that, which isn't done here. Each chart is rendered as any other, and what that gives stands among the overlay's ``resources``, in place of the field. As in
kustomize, its namespace is that of the kustomization or the nearest one above it, and the field ``namespace`` of the kustomization changes no object of a chart.

Pure.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.editing import restated
from kubectl_reconcile.core.objects import Problem, map_at
from kubectl_reconcile.core.rendering.entries import first_tree, line_of
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.fields import SyncSpecError, check_fields
from kubectl_reconcile.core.resources.helm import HelmSpec, HelmSpecError, Unstable
from kubectl_reconcile.core.ssa.typed import ABSENT

_FIELD: Final = "helmCharts"
_GLOBALS: Final = "helmGlobals"
_HOME: Final = "charts"
_RELEASE: Final = "release-name"
"""What Helm calls a release that has no name."""
_GENERATED: Final = "internal.config.kubernetes.io/helm-generated"
"""The annotation by which kustomize knows what a chart has given; it takes it away."""
_HOOK: Final = "helm.sh/hook"
_MOST: Final = 100
_FIELDS: Final = (
    "name", "version", "repo", "releaseName", "namespace", "additionalValuesFiles", "valuesFile", "valuesInline", "valuesMerge", "includeCRDs",
    "skipHooks", "apiVersions", "kubeVersion", "nameTemplate", "skipTests", "debug", "devel",
)  # fmt: skip
_NOT_HERE: Final = {
    "nameTemplate": "give releaseName",
    "apiVersions": "a chart in a folder of its own is told those of the cluster",
}
"""Fields that aren't supported, and what to do instead."""


class Values(Struct, frozen=True):
    """What values a chart gets, the last of which win: *files* in the folder of the kustomization. An empty one stands for those *inline*, which are JSON; None for the chart's own."""

    files: tuple[str | None, ...] = ()
    inline: str = "{}"


class Inflation(Struct, frozen=True):
    """A chart that the kustomization in *folder* inflates by the entry *at* that number, in *line*.

    *wanted* is bare; None for a chart of the same repository. *home* is where it would be if it were there, from *folder*. *spec* is all that it is
    rendered with but its *values*. With *skips_hooks*, its hooks are left out. One that *inherits* has the namespace of a kustomization above.
    """

    folder: str
    at: int
    line: int
    wanted: ChartSpec | None
    home: str
    spec: HelmSpec
    values: Values
    skips_hooks: bool = False
    inherits: bool = False

    @property
    def name(self) -> str:
        """What its objects' file is called."""
        return f"{posixpath.basename(self.home)}.yaml"


def inflations_of(path: str, data: bytes, above: str, problems: list[Problem]) -> Iterator[Inflation]:
    """Yield the charts that the kustomization at *path* inflates; *above* is the namespace of those above it. What can't be goes to *problems*."""
    tree = first_tree(data)
    listed = tree.get(_FIELD) if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(listed, list):
        return
    home = tree.get(_GLOBALS)
    charts = str(home.get("chartHome") or _HOME) if isinstance(home, dict) else _HOME
    for at, fields in enumerate(listed[:_MOST]):
        line = line_of(data, (0, _FIELD, at))
        try:
            found = _inflation(fields, f"{_FIELD}[{at}]", charts, str(tree.get("namespace") or above))
        except SyncSpecError as error:
            problems.append(Problem(path, line, str(error), _NOT_HERE.get(error.field.rpartition(".")[2], "")))
        except HelmSpecError as error:
            problems.append(Problem(path, line, f"{_FIELD}[{at}].{error}"))
        else:
            inherits = not (fields.get("namespace") or tree.get("namespace"))
            yield replace(found, folder=posixpath.dirname(path), at=at, line=line, inherits=inherits)


def namespace_of(data: bytes, above: str) -> str:
    """Return the namespace of what is below a kustomization, where that of those above it is *above*."""
    tree = first_tree(data)
    return str(tree.get("namespace") or above) if isinstance(tree, dict) else above


def _inflation(fields: Any, above: str, charts: str, namespace: str) -> Inflation:
    """Return the chart of an entry, which is called *above*, wherever that stands.

    Raises:
        SyncSpecError, HelmSpecError: it can't be inflated.
    """
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise SyncSpecError(f"{above}.name", "is required")
    check_fields(fields, _FIELDS, above)
    for name, hint in _NOT_HERE.items():
        if fields.get(name):
            raise SyncSpecError(f"{above}.{name}", f"isn't taken here: {hint}")
    name, repository, version = (str(fields.get(each) or "") for each in ("name", "repo", "version"))
    wanted = ChartSpec.of({"repository": repository, "name": name, "version": version}, above) if repository else None
    home = f"{charts}/{name}-{version}" if repository and version else charts
    spec = HelmSpec.of({
        "releaseName": fields.get("releaseName") or _RELEASE,
        "namespace": fields.get("namespace") or namespace,
        "skipCRDs": not fields.get("includeCRDs"),
        "kubeVersion": fields.get("kubeVersion") or "",
        "unstable": Unstable.FAIL,
    })  # fmt: skip
    skips_hooks = bool(fields.get("skipHooks"))
    place = _inside(f"{home}/{name}", above, "name")
    return Inflation("", 0, 0, wanted, place, spec, _values(fields, above), skips_hooks)


def _values(fields: Mapping[str, Any], above: str) -> Values:
    """Return what values a chart gets, in their order: the last wins."""
    inline, merge = fields.get("valuesInline") or {}, fields.get("valuesMerge") or "override"
    if merge not in {"override", "merge", "replace"}:
        raise SyncSpecError(f"{above}.valuesMerge", "isn't one of merge, override and replace")
    if not isinstance(inline, dict):
        raise SyncSpecError(f"{above}.valuesInline", "isn't a map")
    own = fields.get("valuesFile")
    own = _inside(str(own), above, "valuesFile") if own else None
    more = fields.get("additionalValuesFiles") or []
    others = [_inside(str(each), above, "additionalValuesFiles") for each in more] if isinstance(more, list) else []
    files: list[str | None] = [own] if own else []
    if inline and merge == "override":
        if own and _has_null(inline):
            raise SyncSpecError(
                f"{above}.valuesInline", "has null, which takes a value out of valuesFile: take it out there"
            )
        inline = _without_null(inline)  # kustomize takes the chart's own value out, which Helm puts back
    if inline:
        orders: dict[str, list[str | None]] = {"override": [*files, ""], "merge": ["", own], "replace": [""]}
        files = orders[str(merge)]
    return Values((*files, *others), json.dumps(inline, sort_keys=True))


def _has_null(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and any(map(_has_null, value.values())))


def _without_null(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_null(below) for name, below in value.items() if below is not None}


def _inside(path: str, above: str, field: str) -> str:
    """Return a path within the folder of a kustomization, in its plain form: kustomize takes no other.

    Raises:
        SyncSpecError: it leads out.
    """
    plain = posixpath.normpath(path)
    if (
        path.startswith("/")
        or "://" in path
        or plain in {".", ".."}
        or plain.startswith("../")
        or not path.isprintable()
    ):
        raise SyncSpecError(f"{above}.{field}", f"{path[:80]!r} isn't in or below the folder of the kustomization")
    return plain


# --- in place of the field ------------------------------------------------------------------------------------------


def inflated(objects: Iterable[str], *, skips_hooks: bool) -> bytes:
    """Return the *objects* that a chart rendered to, each as YAML, as a file of resources."""
    found = []
    for text in objects:
        tree = first_tree(text.encode())
        if not isinstance(tree, dict):
            continue
        metadata: Mapping[str, Any] = map_at(tree, "metadata")
        annotations: Mapping[str, Any] = map_at(tree, "metadata", "annotations")
        if skips_hooks and _HOOK in annotations:
            continue
        found.append({**tree, "metadata": {**metadata, "annotations": {**annotations, _GENERATED: "true"}}})
    return "".join(f"---\n{json.dumps(each)}\n" for each in found).encode()


def with_resources(path: str, data: bytes, places: Sequence[str]) -> bytes:
    """Return the kustomization at *path*, which holds *data*, with files of resources at *places* instead of its charts.

    Raises:
        EditError: it can't be changed so.
    """
    for field in (_FIELD, _GLOBALS):
        tree = first_tree(data)
        if isinstance(tree, dict) and field in tree:
            data = restated(data, path, (field,), ABSENT)
    for place in places:
        tree = first_tree(data)
        there = tree.get("resources") if isinstance(tree, dict) else None
        if isinstance(there, list) and there:
            data = restated(data, path, ("resources", len(there)), place)
        else:
            data = restated(data, path, ("resources",), [place])
    return data
