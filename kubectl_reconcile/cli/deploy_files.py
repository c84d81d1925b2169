"""Writes what ``deploy/`` has to install the daemon by, from the one source that ``kubectl reconcile install`` has, too.

``python -m kubectl_reconcile.cli.deploy_files deploy`` writes ``install.yaml``, which the kustomize base lists, and a Helm chart in ``chart/``, as
``make manifests`` does; with ``--check`` besides, it ends with status 1 if one of them isn't current.

The chart's template is what is installed with marks in place of what users choose, and each mark replaced by what Helm fills in.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import kubectl_reconcile
from kubectl_reconcile.cli.verbs.operate.install import manifests_of
from kubectl_reconcile.core import installation
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.views.yamltext import dump

_NAMESPACE, _IMAGE, _REPLICAS, _URL = "x-namespace-x", "x-image-x", 987654321, "https://x-url-x"
_DEFINITION = "CustomResourceDefinition"

VALUES = f"""\
# The daemon's image.
image: {kubectl_reconcile.IMAGE}

# How many daemons share the work.
replicas: 1

# Whether the chart creates the namespace of the release, labelled for Pod Security. Not with helm install --create-namespace.
createNamespace: false

ui:
  # Whether the daemon serves the page to people, who sign in with a token of the cluster.
  enabled: false
  # Addresses of that page: https, through a proxy. Without any, only localhost, by port-forward.
  urls: []

# More flags of the daemon, as kubectl reconcile daemon --help lists them: ["--require-verify"]
flags: []
"""

CHART = f"""\
apiVersion: v2
name: kubectl-reconcile
description: GitOps for Kubernetes, custom resources above all, with a preview you can trust
type: application
version: {kubectl_reconcile.__version__}
appVersion: {kubectl_reconcile.__version__}
"""

_TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "image": {"type": "string", "minLength": 1},
        "replicas": {"type": "integer", "minimum": 1},
        "createNamespace": {"type": "boolean"},
        "ui": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"enabled": {"type": "boolean"}, "urls": _TEXTS},
        },
        "flags": _TEXTS,
        "global": {"type": "object"},
    },
}

_FLAGS = """\
{{- if .Values.ui.enabled }}
%(page)s
{{- range .Values.ui.urls }}
%(indent)s- {{ printf "--ui-url=%%s" . | quote }}
{{- end }}
{{- end }}
{{- range .Values.flags }}
%(indent)s- {{ . | quote }}
{{- end }}"""


def install_yaml() -> str:
    """Return all that ``install`` applies by default, as it prints it."""
    return _documents(manifests_of(None, None))


def files() -> dict[str, str]:
    """Return all files by their names in ``deploy/``."""
    definitions = {
        f"chart/crds/{each['metadata']['name']}.yaml": _documents([each])
        for each in manifests_of(None, None)
        if each["kind"] == _DEFINITION
    }
    return {
        "install.yaml": install_yaml(),
        "chart/Chart.yaml": CHART,
        "chart/values.yaml": VALUES,
        "chart/values.schema.json": json.dumps(SCHEMA, indent=2) + "\n",
        "chart/templates/daemon.yaml": template(),
        **definitions,
    }


def template() -> str:
    """Return the chart's template: all but the definitions, each under its condition if it has one."""
    marked = manifests_of(_NAMESPACE, _IMAGE, replicas=_REPLICAS, page_urls=[_URL])
    page = {(each["kind"], each["metadata"]["name"]) for each in installation.page_objects(_NAMESPACE)}
    return "".join(
        _templated(each, of_page=(each["kind"], each["metadata"]["name"]) in page)
        for each in marked
        if each["kind"] != _DEFINITION
    )


def _templated(manifest: Manifest, *, of_page: bool) -> str:
    lines = [*dump(manifest)]
    condition = ""
    if manifest["kind"] == "Namespace":
        condition, lines = ".Values.createNamespace", [*_enforced(lines)]
    elif of_page:
        condition = ".Values.ui.enabled"
    elif manifest["kind"] == "Deployment":
        lines = [*_with_flags(lines)]
    text = "".join(f"{line}\n" for line in ["---", *(_filled(line) for line in lines)])
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _filled(line: str) -> str:
    """Put what Helm fills in where the marks are; quoted where it is all there is, for a name may look like a number."""
    for mark, value in ((_NAMESPACE, ".Release.Namespace"), (_IMAGE, ".Values.image")):
        if line.endswith(f": {mark}"):
            line = line.replace(mark, f"{{{{ {value} | quote }}}}")
        line = line.replace(mark, f"{{{{ {value} }}}}")
    return line.replace(str(_REPLICAS), "{{ .Values.replicas }}")


def _enforced(lines: Iterable[str]) -> Iterable[str]:
    """Have pods that could do harm refused in our own namespace alone, as ``install`` does."""
    for line in lines:
        yield line
        if "pod-security.kubernetes.io/audit" in line:
            yield f'{{{{- if eq .Release.Namespace "{installation.NAMESPACE}" }}}}'
            yield line.replace("/audit", "/enforce")
            yield "{{- end }}"


def _with_flags(lines: Iterable[str]) -> Iterable[str]:
    """Replace the page's flags, which come last, by those that the values ask for."""
    for line in lines:
        if line.strip().startswith("- --ui=") or line.strip().startswith('- "--ui='):
            yield _FLAGS % {"page": line, "indent": line[: line.index("-")]}
        elif _URL not in line:
            yield line


def _documents(manifests: Iterable[Manifest]) -> str:
    return "".join(f"{line}\n" for each in manifests for line in ["---", *dump(each)])


def stale(folder: Path) -> list[str]:
    """Return the names of the files that aren't in *folder* as they must be, or shouldn't be in its chart."""
    wanted = files()
    there = {str(file.relative_to(folder)) for file in (folder / "chart").rglob("*") if file.is_file()}
    return [
        *(name for name, text in wanted.items() if not _is(folder / name, text)),
        *sorted(there - wanted.keys()),
    ]


def _is(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text(encoding="utf-8") == text


def write(folder: Path) -> None:
    """Write all files; what else is in the chart goes."""
    shutil.rmtree(folder / "chart", ignore_errors=True)
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Write the files, or name those that aren't current."""
    folder, *asked = sys.argv[1:]
    if asked != ["--check"]:
        write(Path(folder))
    elif names := stale(Path(folder)):
        sys.exit("\n".join(f"{folder}/{name} isn't current: run make manifests" for name in names))


if __name__ == "__main__":
    main()
