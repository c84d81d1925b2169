"""Argo CD's Applications as Syncs, with the AppProjects and the credentials that they have.

Vocabulary: Argo CD's own. A *source* of an Application is one entry of ``spec.sources``, or ``spec.source``.

Rules: a Sync has the name of its Application, and its namespace unless another is asked for. Of several sources each becomes a Sync, but
for those that only have values files of a chart. An account for each project keeps rights apart as projects did.

Pure: objects in, Syncs and findings out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import WAVE
from kubectl_reconcile.core.importing.argocd_fields import ARGOPROJ, NOT_READ, SYNC_OPTIONS, TABLES
from kubectl_reconcile.core.importing.fields import Fate, Finding
from kubectl_reconcile.core.importing.paths import ALL_ITEMS, any_item, exact_version, image_of, is_range, path_of_jq
from kubectl_reconcile.core.importing.units import (
    ODD_TYPES,
    PIN,
    CredentialNeed,
    Imported,
    Placed,
    Unit,
    judged,
    odd,
    sync_manifest,
)
from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.objects import Manifest, ObjectRef, annotations_of, decoded_text, labels_of, map_at, maps_in
from kubectl_reconcile.core.other_tools.translation import ARGO_WAVE
from kubectl_reconcile.core.rendering.given_values import GivenValueError, merged, over

_TABLES: Final = {each.kind: each for each in TABLES}
_HERE: Final = frozenset({"https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local"})
_FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"
_SECRET_TYPE: Final = "argocd.argoproj.io/secret-type"  # noqa: S105 - a label
_KNOWN_HOSTS: Final = "argocd-ssh-known-hosts-cm"
_DEFAULT_PROJECT: Final = "default"
_OPTIONS: Final = {row.place.lower(): row for row in SYNC_OPTIONS}


class Repository(NamedTuple):
    """A Secret of Argo CD with credentials: the *url* that it is for, alone or with all below it (*is_prefix*), and the names of its *keys*."""

    namespace: str
    name: str
    url: str
    is_prefix: bool
    keys: frozenset[str]


def repository_of(secret: Manifest) -> Repository | None:
    """Return what is known of a Secret of Argo CD, but for what nobody else may know; None of another Secret."""
    kind = labels_of(secret).get(_SECRET_TYPE)
    if kind not in {"repository", "repo-creds"}:
        return None
    given, encoded = map_at(secret, "stringData"), map_at(secret, "data")
    url = str(given.get("url") or decoded_text(encoded.get("url")) or "")
    keys = frozenset(name for fields in (given, encoded) for name, value in fields.items() if value)
    ref = ObjectRef.of(secret)
    return Repository(ref.namespace, ref.name, url, kind == "repo-creds", keys) if url else None


class _Draft(Struct):
    """What is found out of one Application."""

    findings: list[Finding] = field(default_factory=list)
    needs: list[CredentialNeed] = field(default_factory=list)

    def stop(self, place: str, text: str) -> None:
        self.findings.append(Finding(place, Fate.NOT_POSSIBLE, text))

    def approximate(self, place: str, text: str) -> None:
        self.findings.append(Finding(place, Fate.APPROXIMATED, text))


def translate(objects: Iterable[Placed], repositories: Sequence[Repository] = (), *, into: str = "") -> Imported:
    """Return what *objects* become, with the credentials of *repositories*; *into* is the namespace of the Syncs, if it isn't that of the Applications."""
    applications, projects, others = [], {}, []
    for placed in objects:
        ref = ObjectRef.of(placed.manifest)
        if ref.group != ARGOPROJ:
            continue
        if (ref.group, ref.kind) in NOT_READ:
            finding = Finding(ref.kind, Fate.NOT_POSSIBLE, NOT_READ[ref.group, ref.kind])
            others.append(Unit(ref, placed.file, findings=(finding,)))
        elif ref.kind == "AppProject":
            projects[ref.name] = placed.manifest
            findings = tuple(_TABLES[ref.kind].findings(placed.manifest))
            others.append(Unit(ref, placed.file, findings=findings, is_source=True))
        elif ref.kind == "Application":
            applications.append(placed)
    made = _Applications(tuple(repositories), projects, into)
    return Imported(tuple(made.unit(each) for each in applications), tuple(others))


class _Applications(Struct):
    """Applications, among the *projects* and *repositories* of their Argo CD."""

    repositories: tuple[Repository, ...]
    projects: Mapping[str, Manifest]
    into: str

    def unit(self, placed: Placed) -> Unit:
        """Return what an Application becomes."""
        try:
            return self._translated(placed)
        except ODD_TYPES as error:
            return odd(ObjectRef.of(placed.manifest), placed.file, error)

    def _translated(self, placed: Placed) -> Unit:
        manifest = placed.manifest
        ref, spec, draft = ObjectRef.of(manifest), map_at(manifest, "spec"), _Draft()
        draft.findings += _TABLES["Application"].findings(manifest)
        is_elsewhere = _is_elsewhere(map_at(spec, "destination"))
        if is_elsewhere:
            draft.stop("spec.destination", "another cluster: a daemon writes to its own; run a daemon there")
        if _windows(self.projects.get(str(spec.get("project")), {})):
            draft.stop("spec.project", "its AppProject has sync windows, which no Sync keeps")
        place = self.into or ref.namespace
        common = self._common(manifest, draft)
        annotations = {WAVE: wave} if (wave := annotations_of(manifest).get(ARGO_WAVE)) else {}
        syncs = []
        for name, source, beside in _sources(ref.name, spec, draft):
            made = self._source(source, beside, ref.name, place, spec, draft)
            if name != ref.name:
                made.setdefault("helm", {"releaseName": ref.name})
            syncs.append(sync_manifest(name, place, {"source": made, **common}, annotations))
        if len(syncs) > 1:
            draft.approximate("spec.sources", "one Sync for each source; waves and hooks count within each")
        return judged(
            Unit(ref, placed.file, tuple(syncs), tuple(draft.findings), tuple(draft.needs), is_elsewhere=is_elsewhere)
        )

    # --- what isn't about a source ---------------------------------------------------------------------------------------

    def _common(self, manifest: Manifest, draft: _Draft) -> dict[str, Any]:
        spec = map_at(manifest, "spec")
        policy, project = map_at(spec, "syncPolicy"), str(spec.get("project") or _DEFAULT_PROJECT)
        automated = policy.get("automated")
        is_automated = automated is not None and map_at(policy, "automated").get("enabled") is not False
        options = _sync_options(policy.get("syncOptions"), draft)
        ends = _FINALIZER in " ".join(map(str, map_at(manifest, "metadata").get("finalizers") or ()))
        keeps = {"delete=false", "delete=confirm"} & options
        prunes = not is_automated or bool(map_at(policy, "automated").get("prune"))
        return {
            "approval": None if is_automated else "Always",
            "prune": None if prunes and "prune=false" not in options else False,
            "drift": "Report" if is_automated and not map_at(policy, "automated").get("selfHeal") else None,
            "deletionPolicy": "Prune" if ends and not keeps else None,
            "maxDeletes": 0 if "prune=confirm" in options else None,
            "targetNamespace": map_at(spec, "destination").get("namespace"),
            "createNamespace": True if "createnamespace=true" in options else None,
            "replace": True if "force=true" in options else None,
            "serviceAccountName": None if project == _DEFAULT_PROJECT else project,
            "ignore": [*_ignore(spec, "Always" if "respectignoredifferences=true" in options else "Drift", draft)],
        }

    # --- a source ----------------------------------------------------------------------------------------------------------

    def _source(self, source: Manifest, beside: Manifest | None, name: str, place: str, spec: Manifest, draft: _Draft) -> dict[str, Any]:  # fmt: skip
        url = _url(str(source.get("repoURL") or ""), is_chart=bool(source.get("chart")))
        found: dict[str, Any] = {}
        root = ""
        if source.get("chart"):
            found["chart"] = self._chart(source, url, place, draft)
            if beside is not None:
                git = _url(str(beside.get("repoURL") or ""), is_chart=False)
                found["git"] = self._git(git, str(beside.get("targetRevision") or ""), place, draft)
        else:
            root = posixpath.normpath(str(source.get("path") or ".").lstrip("/") or ".")
            found |= {"git": self._git(url, str(source.get("targetRevision") or ""), place, draft), "path": root}
        _directory(source, draft)
        if source.get("chart") or source.get("helm"):
            found["helm"] = _helm(map_at(source, "helm"), name, root, beside, draft, is_chart=bool(source.get("chart")))
        found["kustomize"] = _kustomize(map_at(source, "kustomize"), map_at(spec, "destination"), draft)
        return found

    def _git(self, url: str, revision: str, place: str, draft: _Draft) -> dict[str, Any]:
        return {"url": url, **_revision(revision, draft), "secretRef": self._secret(url, place, draft)}

    def _chart(self, source: Manifest, url: str, place: str, draft: _Draft) -> dict[str, Any]:
        version = str(source.get("targetRevision") or "")
        name = str(source.get("chart"))
        if not exact_version(version):
            draft.stop(
                "spec.source.targetRevision",
                f"{version or '*'} of the chart {name} is a range: write one exact version",
            )
        else:
            draft.approximate("spec.source.targetRevision", PIN)
        if url.startswith("oci://"):
            above, _, last = name.rpartition("/")
            url, name = f"{url}/{above}" if above else url, last
        asked = f"{url}/{name}" if url.startswith("oci://") else url
        return {"repository": url, "name": name, "version": version, "secretRef": self._secret(asked, place, draft)}

    def _secret(self, url: str, place: str, draft: _Draft) -> dict[str, str] | None:
        found = max(
            (each for each in self.repositories if _covers(each, url)), key=lambda each: len(each.url), default=None
        )
        if found is None:
            return None
        if unusable := found.keys & {"githubAppPrivateKey", "gcpServiceAccountKey", "tlsClientCertData"}:
            draft.stop(
                "spec.source.repoURL",
                f"its credentials are {', '.join(sorted(unusable))}: make a Secret with a token, or a key",
            )
            return None
        if not found.keys & {"username", "password", "bearerToken", "sshPrivateKey"}:
            return None
        keys, hosts, name = _SAME_KEYS, "", found.name
        if "sshPrivateKey" in found.keys:
            keys, hosts = (("identity", "sshPrivateKey"),), _KNOWN_HOSTS
            name = found.name if place != found.namespace else f"{found.name}-git"
        elif place == found.namespace:
            keys = ()
        draft.needs.append(CredentialNeed(place, name, found.namespace, found.name, url, keys, hosts))
        return {"name": name}


_SAME_KEYS: Final = tuple((name, name) for name in ("username", "password", "bearerToken"))


def _covers(repository: Repository, url: str) -> bool:
    ours, asked = (text.removesuffix("/").removesuffix(".git").removeprefix("oci://") for text in (repository.url, url))
    if not repository.is_prefix:
        return asked == ours or (url.startswith("oci://") and asked.startswith(f"{ours}/"))
    return asked.startswith(ours)


def _is_elsewhere(destination: Manifest) -> bool:
    name, server = str(destination.get("name") or ""), str(destination.get("server") or "")
    return bool((name and name != "in-cluster") or (server and server.rstrip("/").removesuffix(":443") not in _HERE))


def _windows(project: Manifest) -> bool:
    return bool(map_at(project, "spec").get("syncWindows"))


def _url(text: str, *, is_chart: bool) -> str:
    """Return a URL; what has no scheme is a registry's, of a chart."""
    if is_chart and "://" not in text:
        return f"oci://{text.rstrip('/')}"
    return text.rstrip("/") if is_chart else text


def _sources(name: str, spec: Manifest, draft: _Draft) -> Iterator[tuple[str, Manifest, Manifest | None]]:
    """Yield what becomes a Sync: its name, the source, and the repository with its values files, if there is one beside it."""
    if hydrator := map_at(spec, "sourceHydrator"):
        synced, dry = map_at(hydrator, "syncSource"), map_at(hydrator, "drySource")
        url = synced.get("repoURL") or dry.get("repoURL")
        yield name, {"repoURL": url, "targetRevision": synced.get("targetBranch"), "path": synced.get("path")}, None
        return
    sources = maps_in(spec.get("sources")) or ([map_at(spec, "source")] if spec.get("source") else [])
    if not sources:
        draft.stop("spec.source", "there is none")
    values = {str(each["ref"]): each for each in sources if each.get("ref")}
    applied = [each for each in sources if each.get("path") or each.get("chart") or not each.get("ref")]
    if sources and not applied:
        draft.stop("spec.sources", "none of them has objects, only values files")
    for number, source in enumerate(applied, 1):
        suffix = "" if number == 1 else f"-{source.get('name') or number}"
        yield f"{name}{suffix}", source, _beside(source, values, draft)


def _beside(source: Manifest, values: Mapping[str, Manifest], draft: _Draft) -> Manifest | None:
    files = [str(each) for each in map_at(source, "helm").get("valueFiles") or ()]
    named = {each[1:].partition("/")[0] for each in files if each.startswith("$")}
    if not named:
        return None
    if len(named) > 1 or not named <= values.keys():
        draft.stop(
            "spec.sources[].helm.valueFiles",
            "values files of more than one repository beside the chart: put them into one",
        )
        return None
    [ref] = named
    if not source.get("chart") and values[ref].get("repoURL") != source.get("repoURL"):
        draft.stop(
            "spec.sources[].helm.valueFiles", "values files of another repository than the chart's: put them into that"
        )
    return values[ref]


_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_VERSION: Final = re.compile(r"v?[0-9]+(\.[0-9]+){1,2}([-+][0-9A-Za-z.+-]+)?")


def _revision(text: str, draft: _Draft) -> dict[str, str]:
    if text in {"", "HEAD"}:
        return {}
    if text.startswith("refs/"):
        for prefix, kind in (("refs/heads/", "branch"), ("refs/tags/", "tag")):
            if text.startswith(prefix):
                return {kind: text.removeprefix(prefix)}
        draft.stop("spec.source.targetRevision", f"{text}: a branch or a tag can be followed")
    if _COMMIT.fullmatch(text):
        return {"commit": text}
    if is_range(text):
        return {"semver": text}
    if _VERSION.fullmatch(text):
        draft.approximate(
            "spec.source.targetRevision",
            "what looks like a version is taken for a tag: write branch in its place if it is one",
        )
        return {"tag": text}
    return {"branch": text}


def _directory(source: Manifest, draft: _Draft) -> None:
    is_folder = not (source.get("chart") or source.get("helm") or source.get("kustomize") or source.get("plugin"))
    if is_folder and source.get("path") and not map_at(source, "directory").get("recurse"):
        said = "of plain manifests, files in folders below the path are read too: list those in `.reconcileignore`, if there are any"
        draft.approximate("spec.source.directory.recurse", said)


# --- a chart -------------------------------------------------------------------------------------------------------------


def _helm(
    asked: Manifest, name: str, root: str, beside: Manifest | None, draft: _Draft, *, is_chart: bool
) -> dict[str, Any]:
    return {
        "releaseName": asked.get("releaseName") or name,
        "namespace": asked.get("namespace"),
        "valuesFiles": [*_values_files(asked, root, beside, draft, is_chart=is_chart)],
        "ignoreMissingValuesFiles": True if asked.get("ignoreMissingValueFiles") else None,
        "values": _values(asked, draft) or None,
        "skipCRDs": True if asked.get("skipCrds") else None,
        "kubeVersion": asked.get("kubeVersion"),
        "apiVersions": asked.get("apiVersions"),
    }


def _values_files(
    asked: Manifest, root: str, beside: Manifest | None, draft: _Draft, *, is_chart: bool
) -> Iterator[str]:
    for number, file in enumerate(map(str, asked.get("valueFiles") or ())):
        if "://" in file:
            draft.stop("spec.source.helm.valueFiles", f"{file}: nothing is fetched for a chart; commit the file")
        elif file.startswith("$"):
            path = posixpath.normpath(file.partition("/")[2])
            yield path if is_chart or beside is None else posixpath.relpath(path, root)
        elif is_chart and (number or posixpath.normpath(file) != "values.yaml"):
            draft.stop(
                "spec.source.helm.valueFiles",
                f"{file}: a file of a chart that isn't in Git; write its values into spec.source.helm",
            )
        elif is_chart:
            continue
        else:
            yield posixpath.relpath(file.lstrip("/"), root) if file.startswith("/") else file


def _values(asked: Manifest, draft: _Draft) -> dict[str, Any]:
    found: Mapping[str, Any] = {}
    if isinstance(text := asked.get("values"), str) and text.strip() and not asked.get("valuesObject"):
        documents, problems = yaml_reader.read(text.encode(), "spec.source.helm.values")
        trees = [each.tree for each in documents if each.tree is not None]
        if (
            any(each.is_error for each in problems)
            or len(trees) > 1
            or not all(isinstance(each, Mapping) for each in trees)
        ):
            draft.stop("spec.source.helm.values", "isn't a map of values, as it stands")
            return {}
        found = trees[0] if trees else {}
    found = over(found, map_at(asked, "valuesObject"))
    for each in maps_in(asked.get("parameters")):
        name, value = str(each.get("name") or ""), str(each.get("value") or "")
        try:
            if each.get("forceString"):
                found = over_at(found, name, value)
            else:
                found = merged([found], [f"{name}={_escaped(value)}"])
        except GivenValueError as error:
            draft.stop("spec.source.helm.parameters", str(error))
    return dict(found)


def over_at(values: Mapping[str, Any], name: str, text: str) -> dict[str, Any]:
    """Return *values* with *text* at the place that *name* says in the syntax of ``--set``, as it stands.

    Raises:
        GivenValueError: it isn't a place.
    """
    marked = merged([values], [f"{name}={_MARK}"])
    found: dict[str, Any] = _replaced(marked, text)
    return found


_MARK: Final = "\x00text"


def _replaced(tree: Any, text: str) -> Any:
    if isinstance(tree, Mapping):
        return {name: _replaced(value, text) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_replaced(each, text) for each in tree]
    return text if tree == _MARK else tree


def _escaped(value: str) -> str:
    """Return a value in which commas are text, as Argo CD gives it to Helm."""
    return value if value.startswith("{") and value.endswith("}") else re.sub(r"(?<!\\),", r"\\,", value)


# --- an overlay ------------------------------------------------------------------------------------------------------------


def _kustomize(asked: Manifest, destination: Manifest, draft: _Draft) -> dict[str, Any]:
    if not asked:
        return {}
    labels = map_at(asked, "commonLabels")
    if labels and not asked.get("labelWithoutSelector"):
        draft.stop(
            "spec.source.kustomize.commonLabels",
            "labels of selectors and of templates of pods: commit them to the overlay",
        )
    if (namespace := asked.get("namespace")) and namespace != destination.get("namespace"):
        draft.stop(
            "spec.source.kustomize.namespace",
            f"{namespace} isn't the destination's namespace: commit it to the overlay",
        )
    replicas = [_scaled(each) for each in maps_in(asked.get("replicas"))]
    names = ("patch", "target", "options")
    return {
        "components": asked.get("components"),
        "patches": [
            *({name: each[name] for name in names if each.get(name)} for each in maps_in(asked.get("patches"))),
            *replicas,
        ],
        "images": [image_of(str(each)) for each in asked.get("images") or ()],
        "commonMetadata": {"labels": labels},
        "namePrefix": asked.get("namePrefix"),
        "nameSuffix": asked.get("nameSuffix"),
    }


def _scaled(entry: Manifest) -> dict[str, Any]:
    kinds = "Deployment|StatefulSet|ReplicaSet|ReplicationController"
    patch = f"- op: add\n  path: /spec/replicas\n  value: {int(entry.get('count') or 0)}\n"
    return {"patch": patch, "target": {"kind": kinds, "name": str(entry.get("name") or "")}}


# --- how it is synced --------------------------------------------------------------------------------------------------------


def _sync_options(options: Any, draft: _Draft) -> set[str]:
    found = set()
    for text in options if isinstance(options, list) else ():
        row = _OPTIONS.get(str(text).lower())
        if row is None:
            draft.findings.append(
                Finding("spec.syncPolicy.syncOptions", Fate.UNKNOWN, f"{text} isn't a known option: see what it does")
            )
            continue
        found.add(row.place.lower())
        if row.fate is not Fate.TRANSLATED:
            draft.findings.append(Finding("spec.syncPolicy.syncOptions", row.fate, f"{row.place}: {row.here}"))
    return found


_ALL_OF: Final = ("spec", "data", "metadata", "rules", "webhooks")


def _ignore(spec: Manifest, of: str, draft: _Draft) -> Iterator[dict[str, Any]]:
    for rule in maps_in(spec.get("ignoreDifferences")):
        target = {name: rule[name] for name in ("kind", "name", "namespace") if rule.get(name) not in {None, "", "*"}}
        if rule.get("group") != "*":
            target["group"] = rule.get("group") or ""
        told = {"target": target}
        for pointer in rule.get("jsonPointers") or ():
            path = any_item(str(pointer))
            if path != pointer:
                draft.approximate("spec.ignoreDifferences[].jsonPointers", f"{pointer}: {ALL_ITEMS}")
            yield {"path": path, "from": of, **told}
        for expression in rule.get("jqPathExpressions") or ():
            if path := path_of_jq(str(expression)):
                if re.search(r"\[\d+\]", str(expression)):
                    draft.approximate("spec.ignoreDifferences[].jqPathExpressions", f"{expression}: {ALL_ITEMS}")
                yield {"path": path, "from": of, **told}
            else:
                draft.stop(
                    "spec.ignoreDifferences[].jqPathExpressions",
                    f"{expression}: more than a path; write a rule into spec.ignore",
                )
        for manager in rule.get("managedFieldsManagers") or ():
            yield from ({"path": f".{name}", "manager": manager, "from": of, **told} for name in _ALL_OF)
