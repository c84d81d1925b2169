"""Charts: what one is rendered with, and what is said when it can't be.

Helm calls templates by the names of charts rather than by their paths, and a template may put any value into a message. Here its
sentences come to the file of the repository that they are about, and lose the values that a chart was given.

Pure.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.redaction import without
from kubectl_reconcile.core.rendering.derived import altered
from kubectl_reconcile.core.rendering.given_values import over
from kubectl_reconcile.core.rendering.held_values import NO_HELD, HeldValues
from kubectl_reconcile.core.rendering.lookups import NO_ANSWERS, SHORT_NUMBER, TELLS_NOTHING, Answers
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.helm import LONGEST_RELEASE, HelmSpec, HelmSpecError, LookupPolicy, release_name

CHART_FILE: Final = "Chart.yaml"
"""The file that makes a folder a chart."""

SCHEMA_FILE: Final = "values.schema.json"
_UNNAMED: Final = "release-name"
"""What Helm calls a release that has no name."""


class Release(Struct, frozen=True):
    """What a chart is rendered with: the names of Sync and namespace, what the Sync says, and what the cluster has.

    *chart* is one of a Helm repository, *held* are values below those that the Sync says. Without *kube_version* and *api_versions* they are those that Helm was built with.
    """

    name: str = ""
    namespace: str = ""
    spec: HelmSpec = field(default_factory=HelmSpec)
    kube_version: str = ""
    api_versions: tuple[str, ...] | None = None
    answers: Answers = NO_ANSWERS
    chart: ChartSpec | None = None
    held: HeldValues = NO_HELD

    def answered(self, answers: Answers) -> Release:
        """Return this release with what its chart looks up, if the Sync has that read."""
        return replace(self, answers=answers) if self.spec.lookup is LookupPolicy.CLUSTER else self

    def given(self, values: Mapping[str, Any]) -> Release:
        """Return this release with *values* over those that the Sync says."""
        return replace(self, spec=replace(self.spec, values=_json(over(json.loads(self.spec.values), values))))

    def secrets(self) -> tuple[str, ...]:
        """What people call the Secrets that a value in it comes from, each once."""
        return tuple(dict.fromkeys((*self.answers.secrets().values(), *self.held.names())))

    def altered(self) -> Release:
        """Return this release with other values in all these Secrets."""
        return replace(self, answers=altered(self.answers), held=self.held.altered())

    @property
    def told(self) -> str:
        """What tells that which the Sync says, and ConfigMaps hold for it, from something else. No Secret is in it."""
        held = [(each.place, each.stamp) for each in self.held.parts if not each.secret]
        return _digest(self.name, self.namespace, self.spec, self.chart, held)

    @property
    def stamp(self) -> str:
        """What tells all of it from something else, without giving away a value of a Secret."""
        return _digest(self.told, self.kube_version, self.api_versions, self.held.stamp, self.answers.stamp)

    def secret_values(self) -> list[Any]:
        """Return what no message may have of what was read of the cluster."""
        return [*self.answers.values(), *self.held.values()]

    @property
    def key(self) -> str:
        """What names all of this: with another key, a chart may render to something else."""
        return _digest(
            self.name,
            self.namespace,
            self.spec,
            self.kube_version,
            self.api_versions,
            self.answers.key,
            self.chart,
            self.held.key,
        )

    def order(self, chart: str, most_bytes: int) -> Mapping[str, Any]:
        """Return the order to render the folder *chart* to at most so many bytes.

        Raises:
            HelmSpecError: the release would have a name that it can't have.
        """
        spec, served = self.spec, self.api_versions
        asked = None if served is None and not spec.api_versions else sorted({*(served or ()), *spec.api_versions})
        return {
            "path": chart,
            "mostBytes": most_bytes,
            "release": spec.release_name or self._own_name(chart),
            "namespace": spec.namespace or self.namespace or "default",
            "valuesFiles": [{"path": file, "ignoreMissing": spec.ignore_missing} for file in self.values_files(chart)],
            "values": _json(over(self.held.merged(), json.loads(spec.values))) if self.held.parts else spec.values,
            "skipCRDs": spec.skip_crds,
            "kubeVersion": spec.kube_version or self.kube_version,
            "apiVersions": asked,
            "lookups": self.answers.told(),
        }

    def values_files(self, chart: str) -> Sequence[str]:
        """Return the files of values that the Sync names, by their paths from the root."""
        base = posixpath.dirname(chart) if self.chart else chart
        return [posixpath.normpath(posixpath.join(base, file)) for file in self.spec.values_files]

    def folder(self, path: str) -> str:
        """Return the folder of the chart where the Sync's own is *path*: one of a repository is put into it."""
        return posixpath.join(path, self.chart.file) if self.chart else path

    def _own_name(self, chart: str) -> str:
        """Return the name of the release where the Sync gives none: its own; that of the chart's folder where there is no Sync."""
        if self.name:
            try:
                return release_name(self.name)
            except HelmSpecError:
                said = f"must be given: the Sync's own name has more than the {LONGEST_RELEASE} characters that a release may have"
                raise HelmSpecError("releaseName", said) from None
        try:
            return release_name(self.chart.name if self.chart else posixpath.basename(chart)) or _UNNAMED
        except HelmSpecError:
            return _UNNAMED


def _digest(*said: Any) -> str:
    return hashlib.sha256(repr(said).encode()).hexdigest()


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def chart_file(chart: str) -> str:
    """Return the path of the file that makes the folder *chart* one."""
    return posixpath.join(chart, CHART_FILE)


# --- what is said of a failure ---------------------------------------------------------------------------------

_BUILD: Final = (
    "nothing is fetched while rendering: run helm dependency build in the chart's folder, and commit charts/"
)
_HINTS: Final = (
    (re.compile(r"isn't in charts/|is wanted in version"), _BUILD),
    (re.compile(r"is a symbolic link"), "link within the repository, or commit the file itself"),
    (re.compile(r"nothing is fetched while rendering"), "put the definition into the schema, under $defs"),
    (re.compile(r"values file isn't there"), "commit it, or set spec.source.helm.ignoreMissingValuesFiles"),
    (re.compile(r"^kubeVersion: "), "follow another version of the chart, or set spec.source.helm.kubeVersion"),
    (re.compile(r"^values of "), "give it in spec.source.helm.values, or in a file named in valuesFiles"),
)
_LOCATION: Final = re.compile(r"([^\s():\"'<>]+):(\d+)(?::\d+)?")
_NAMED: Final = re.compile(r"[^\s():\"'<>]+")
_DEPENDENCY: Final = re.compile(r"^dependencies: (\S+) ")
_FIELD: Final = re.compile(r"^(kubeVersion|apiVersion)\b")
_VALUE: Final = re.compile(r"at '((?:/[^'/]+)+)'")
_QUOTED: Final = re.compile(r"`[^`]*`")
"""What a reader of YAML quotes of what it reads."""
_MOST_SAID: Final = 600


class Said(Struct, frozen=True):
    """What Helm said of a chart.

    *text* is about the file *at* where that is known; *templates* are the files of templates by the names that it has for them, *values*
    what a message must not have. *given* are the files of values that the Sync names, the one that wins at the end.
    """

    text: str
    at: str = ""
    templates: Mapping[str, str] = field(default_factory=dict)
    values: Sequence[Any] = ()
    given: Sequence[str] = ()


def failure(said: Said, chart: str, files: Mapping[str, bytes]) -> Problem:
    """Return the problem that the folder *chart* can't be rendered, by what Helm *said*; *files* are those that it read."""
    path, line = _place(said, chart, files)
    text = without_values(said, files)
    hint = next((hint for pattern, hint in _HINTS if pattern.search(said.text)), "")
    return Problem(path, line, f"Helm can't render it: {_shortened(text)}", hint)


def warning(said: Said, chart: str, files: Mapping[str, bytes]) -> Problem:
    """Return a warning that comes with the objects of the folder *chart*."""
    path, line = _place(said, chart, files)
    name, _, rest = (text := _shortened(without_values(said, files))).partition(": ")
    return Problem(path, line, rest if said.templates.get(name) == path else text, severity=Severity.WARNING)


def _shortened(text: str) -> str:
    """Return a text on one line; of a long one its beginning and its end, since what was called last is what fails."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST_SAID else f"{flat[: _MOST_SAID // 2]} … {flat[-_MOST_SAID // 2 :]}"


def _place(said: Said, chart: str, files: Mapping[str, bytes]) -> tuple[str, int]:
    """Return file and line of what is at fault: the last template that is named, which is the innermost, or an entry of a file."""
    if said.at:
        return said.at, _entry(said.text, files.get(said.at, b""))
    if values := _VALUE.search(said.text):
        return _given(values[1].rpartition("/")[2], chart, said.given, files)
    for found in reversed(list(_LOCATION.finditer(said.text))):
        if (path := said.templates.get(found[1])) is not None:
            return path, int(found[2]) if path.endswith(found[1].rpartition("/")[2]) else 0
    named = [path for each in _NAMED.findall(said.text) if (path := said.templates.get(each)) is not None]
    return (named[-1] if named else chart_file(chart)), 0


def _entry(text: str, content: bytes) -> int:
    """Return the line of a Chart.yaml that a sentence is about; 0 where it is about all of it."""
    lines = content.decode(errors="replace").splitlines()
    if found := _DEPENDENCY.search(text):
        pattern = re.compile(rf"^[\s-]*name:\s*[\"']?{re.escape(found[1])}[\"']?\s*(#.*)?$")
        after = next((number for number, line in enumerate(lines) if line.startswith("dependencies:")), 0)
    elif found := _FIELD.search(text):
        pattern, after = re.compile(rf"^{found[1]}:"), 0
    else:
        return 0
    return next((number for number, line in enumerate(lines, 1) if number > after and pattern.search(line)), 0)


def _given(key: str, chart: str, named: Sequence[str], files: Mapping[str, bytes]) -> tuple[str, int]:
    """Return the place that gives a value, by its last key: in the values file that wins, or else in the chart; at last the schema."""
    pattern = re.compile(rf"(^|[\s{{,\"'-]){re.escape(key)}[\"']?\s*:")
    for path in (*reversed(named), posixpath.join(chart, "values.yaml")):
        for number, line in enumerate(files.get(path, b"").decode(errors="replace").splitlines(), 1):
            if pattern.search(line):
                return path, number
    return posixpath.join(chart, SCHEMA_FILE), 0


# --- values that nobody is to read -----------------------------------------------------------------------------

_SENSITIVE: Final = re.compile(r"pass|secret|token|credential|private|key|auth|cert|dsn|connection", re.IGNORECASE)


def without_values(said: Said, files: Mapping[str, bytes]) -> str:
    """Return what Helm said without the values that the chart has.

    A value may be shown that stands in a template as well, or is a small number, unless its key says that it is secret.
    """
    if said.at and (_DEPENDENCY.search(said.text) or _FIELD.search(said.text)):
        return said.text  # it has what a Chart.yaml says, and no value
    text = _QUOTED.sub("***", said.text)
    public = "\n".join(
        (*said.templates, *(data.decode(errors="replace") for path, data in files.items() if _is_public(path)))
    )
    hidden = {
        part
        for value, is_secret in _leaves(said.values, is_secret=False)
        for part in (value, *map(str.strip, value.splitlines()))
        if is_secret or (not _is_harmless(part) and part not in public)
    }
    return without(text, hidden)


def _is_public(path: str) -> bool:
    return posixpath.basename(path) in (CHART_FILE, SCHEMA_FILE) or "templates/" in path


def _is_harmless(text: str) -> bool:
    return text.lower() in TELLS_NOTHING or (text.isdigit() and len(text) <= SHORT_NUMBER)


def _leaves(value: Any, *, is_secret: bool) -> Iterator[tuple[str, bool]]:
    """Yield each scalar as text, and whether a key above it says that it is secret."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, is_secret=is_secret or bool(_SENSITIVE.search(str(key))))
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _leaves(below, is_secret=is_secret)
    elif value is not None and not isinstance(value, bool):
        yield str(value), is_secret
