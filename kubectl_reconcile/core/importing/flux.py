"""Flux's Kustomizations and HelmReleases as Syncs, with the sources that they name.

Vocabulary: Flux's own. A *source* is a GitRepository, an OCIRepository, a HelmRepository or a HelmChart.

Rules: a Sync has the name and the namespace of the unit; a HelmRelease that has the name of a Kustomization beside it becomes ``NAME-release``.
What a source says counts for each unit that follows it, and so does what isn't possible there.

Pure: objects in, Syncs and findings out.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.importing.fields import Fate, Finding
from kubectl_reconcile.core.importing.flux_fields import NOT_READ, SOURCES, TABLES
from kubectl_reconcile.core.importing.paths import (
    ALL_ITEMS,
    any_item,
    cel_of_self,
    exact_version,
    variable_type,
    whole_text,
)
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
from kubectl_reconcile.core.objects import Manifest, ObjectRef, map_at, maps_in, text_at

_TABLES: Final = {(each.group, each.kind): each for each in TABLES}
_Key: TypeAlias = tuple[str, str, str]


_SOURCE_REFS: Final = (("sourceRef",), ("chartRef",), ("chart", "spec", "sourceRef"))
"""Where units name their sources."""


class _Draft(Struct):
    """What is found out of one unit: parts of a Sync's spec, what is to be known, and Secrets."""

    namespace: str
    source: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    needs: list[CredentialNeed] = field(default_factory=list)
    is_elsewhere: bool = False

    def stop(self, place: str, text: str) -> None:
        self.findings.append(Finding(place, Fate.NOT_POSSIBLE, text))

    def approximate(self, place: str, text: str) -> None:
        self.findings.append(Finding(place, Fate.APPROXIMATED, text))


def translate(objects: Iterable[Placed], *, url: str = "", overlays: Collection[str] = ()) -> Imported:
    """Return what *objects* become; *url* is the repository of GitRepositories that aren't among them, *overlays* are folders in it with a kustomization."""
    known = _Known(url, frozenset(overlays))
    for each in objects:
        known.add(each)
    return known.imported()


class _Known(Struct):
    """All objects that were read, by kind, namespace and name."""

    url: str = ""
    overlays: frozenset[str] = frozenset()
    units: list[Placed] = field(default_factory=list)
    sources: dict[_Key, list[Placed]] = field(default_factory=dict)
    holders: dict[_Key, Manifest] = field(default_factory=dict)
    others: list[Unit] = field(default_factory=list)

    def add(self, placed: Placed) -> None:
        ref = ObjectRef.of(placed.manifest)
        key = (ref.kind, ref.namespace, ref.name)
        if ref.group == "" and ref.kind in {"ConfigMap", "Secret"}:
            self.holders[key] = placed.manifest
        elif (ref.group, ref.kind) in NOT_READ:
            finding = Finding(ref.kind, Fate.NOT_POSSIBLE, NOT_READ[ref.group, ref.kind])
            self.others.append(Unit(ref, placed.file, findings=(finding,)))
        elif (ref.group, ref.kind) not in _TABLES:
            if ref.group.endswith(".fluxcd.io"):
                finding = Finding(ref.kind, Fate.UNKNOWN, "a kind of Flux that isn't known here: see what it does")
                self.others.append(Unit(ref, placed.file, findings=(finding,)))
        elif ref.group == SOURCES:
            self.sources.setdefault(key, []).append(placed)
            findings = tuple(_TABLES[ref.group, ref.kind].findings(placed.manifest))
            self.others.append(Unit(ref, placed.file, findings=findings, is_source=True))
        elif not any(text_at(placed.manifest, "spec", *path, "name") for path in _SOURCE_REFS):
            said = "it names no source: it is a patch of another file, which is what counts"
            self.others.append(Unit(ref, placed.file, findings=(Finding("spec", Fate.APPROXIMATED, said),)))
        else:
            self.units.append(placed)

    def imported(self) -> Imported:
        taken = {(ref.namespace, ref.name) for ref in map(_ref, self.units) if ref.kind == "Kustomization"}
        return Imported(tuple(self._unit(each, taken) for each in self.units), tuple(self.others))

    def _unit(self, placed: Placed, taken: Collection[tuple[str, str]]) -> Unit:
        try:
            return self._translated(placed, taken)
        except ODD_TYPES as error:
            return odd(_ref(placed), placed.file, error)

    def _translated(self, placed: Placed, taken: Collection[tuple[str, str]]) -> Unit:
        ref, spec = _ref(placed), map_at(placed.manifest, "spec")
        draft = _Draft(ref.namespace)
        draft.findings += _TABLES[ref.group, ref.kind].findings(placed.manifest)
        draft.is_elsewhere = bool(spec.get("kubeConfig"))
        name = ref.name
        if ref.kind == "Kustomization":
            self._kustomization(placed, draft)
        else:
            name = _sync_name(ref.namespace, ref.name, taken)
            self._release(placed, draft, taken)
        manifest = sync_manifest(name, ref.namespace, {"source": draft.source, **draft.spec}, {})
        return judged(
            Unit(
                ref,
                placed.file,
                (manifest,),
                tuple(draft.findings),
                tuple(draft.needs),
                is_elsewhere=draft.is_elsewhere,
            )
        )

    # --- sources ---------------------------------------------------------------------------------------------------------

    def _found(self, kind: str, namespace: str, name: str, beside: str) -> Placed | None:
        """Return a source; of several of the name, that in the nearest folder to the file *beside*."""
        found = self.sources.get((kind, namespace, name), [])
        return max(found, key=lambda each: len(posixpath.commonprefix([each.file, beside])), default=None)

    def _source(self, ref: Manifest, placed: Placed, draft: _Draft, place: str) -> Placed | None:
        kind, name = str(ref.get("kind") or ""), str(ref.get("name") or "")
        namespace = str(ref.get("namespace") or draft.namespace)
        found = self._found(kind, namespace, name, placed.file)
        if found is None and kind == "GitRepository" and self.url:
            named = {"apiVersion": f"{SOURCES}/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}
            return Placed({**named, "spec": {"url": self.url}})
        if (SOURCES, kind) in NOT_READ:
            draft.stop(f"{place}.kind", f"{kind}: {NOT_READ[SOURCES, kind]}")
        elif found is None:
            hint = "; --url says which repository it is" if kind == "GitRepository" else ""
            draft.stop(f"{place}.name", f"{kind} {namespace}/{name} isn't among what was read{hint}")
        else:
            table = _TABLES[SOURCES, kind]
            draft.findings += [
                each._replace(place=f"{kind}: {each.place}")
                for each in table.findings(found.manifest)
                if each.fate is not Fate.APPROXIMATED
            ]
            if map_at(found.manifest, "spec").get("suspend"):
                draft.spec["suspend"] = True
        return found

    def _need(self, source: Placed, name: str, url: str, draft: _Draft) -> dict[str, str] | None:
        if not name:
            return None
        home = text_at(source.manifest, "metadata", "namespace")
        draft.needs.append(CredentialNeed(draft.namespace, name, home, name, url))
        return {"name": name}

    def _git(self, source: Placed, draft: _Draft) -> dict[str, Any]:
        spec = map_at(source.manifest, "spec")
        url = str(spec.get("url") or "")
        verify = map_at(spec, "verify")
        keys = text_at(verify, "secretRef", "name")
        if keys and text_at(source.manifest, "metadata", "namespace") != draft.namespace:
            self._copied_keys(source, keys, draft)
        return {
            "url": url,
            **_git_ref(map_at(spec, "ref"), draft),
            "interval": spec.get("interval"),
            "secretRef": self._need(source, text_at(spec, "secretRef", "name"), url, draft),
            "verify": {"mode": _MODES.get(str(verify.get("mode") or ""), "Commit"), "secretRef": {"name": keys}}
            if keys
            else None,
        }

    def _copied_keys(self, source: Placed, name: str, draft: _Draft) -> None:
        """Have the Secret with keys, which are no credentials, copied to the Sync's namespace."""
        home = text_at(source.manifest, "metadata", "namespace")
        draft.needs.append(CredentialNeed(draft.namespace, name, home, name, ""))

    def _verify(self, source: Placed, draft: _Draft) -> dict[str, Any] | None:
        verify = map_at(source.manifest, "spec", "verify")
        if not verify:
            return None
        name = text_at(verify, "secretRef", "name")
        if verify.get("provider", "cosign") != "cosign":
            draft.stop("spec.verify.provider", f"{verify['provider']}: signatures of cosign with keys can be required")
        elif not name:
            return self._identities(source, verify, draft)
        elif text_at(source.manifest, "metadata", "namespace") != draft.namespace:
            self._copied_keys(source, name, draft)
        return {"secretRef": {"name": name}}

    def _identities(self, source: Placed, verify: Manifest, draft: _Draft) -> dict[str, Any] | None:
        root, who = text_at(verify, "trustedRootSecretRef", "name"), maps_in(verify.get("matchOIDCIdentity"))
        if not root or not who:
            said = "signatures by certificates: say whose in matchOIDCIdentity, and name a Secret with the trusted root in trustedRootSecretRef"
            draft.stop("spec.verify", said)
            return None
        if text_at(source.manifest, "metadata", "namespace") != draft.namespace:
            self._copied_keys(source, root, draft)
        identities = [{name: whole_text(str(each.get(name) or "")) for name in ("issuer", "subject")} for each in who]
        return {"matchOIDCIdentity": identities, "trustedRootSecretRef": {"name": root}}

    def _secret(self, source: Placed, url: str, draft: _Draft) -> dict[str, str] | None:
        spec = map_at(source.manifest, "spec")
        secret, authority = text_at(spec, "secretRef", "name"), text_at(spec, "certSecretRef", "name")
        if secret and authority:
            draft.approximate(
                f"{source.manifest['kind']}: spec.certSecretRef",
                f"put the ca.crt of Secret {authority} into Secret {secret}: a Sync names one",
            )
        return self._need(source, secret or authority, url, draft)

    def _oci(self, source: Placed, draft: _Draft) -> dict[str, Any]:
        spec = map_at(source.manifest, "spec")
        url, ref = str(spec.get("url") or ""), map_at(spec, "ref")
        layer = text_at(spec, "layerSelector", "mediaType")
        return {
            "url": url,
            "tag": None if ref.get("semver") or ref.get("digest") else ref.get("tag"),
            "semver": None if ref.get("digest") else ref.get("semver"),
            "digest": ref.get("digest"),
            "interval": spec.get("interval"),
            "layerSelector": {"mediaType": layer},
            "secretRef": self._secret(source, url, draft),
            "verify": self._verify(source, draft),
        }

    # --- a Kustomization -------------------------------------------------------------------------------------------------

    def _kustomization(self, placed: Placed, draft: _Draft) -> None:
        spec = map_at(placed.manifest, "spec")
        source = self._source(map_at(spec, "sourceRef"), placed, draft, "spec.sourceRef")
        if source is not None:
            kind = source.manifest["kind"]
            draft.source |= (
                {"git": self._git(source, draft)} if kind == "GitRepository" else {"oci": self._oci(source, draft)}
            )
        path = draft.source["path"] = _path(str(spec.get("path") or ""))
        if path not in self.overlays and any(path == "." or each.startswith(f"{path}/") for each in self.overlays):
            draft.approximate("spec.path", f"{path}: {_MADE_UP}")
        draft.source["kustomize"] = {
            "components": spec.get("components"),
            "patches": spec.get("patches"),
            "images": spec.get("images"),
            "commonMetadata": spec.get("commonMetadata"),
            "namePrefix": spec.get("namePrefix"),
            "nameSuffix": spec.get("nameSuffix"),
        }
        _note_patches(spec.get("patches"), "spec.patches", draft)
        draft.source["substitute"] = self._substitute(map_at(spec, "postBuild"), draft)
        draft.source["decryption"] = _decryption(map_at(spec, "decryption"), draft)
        asks_health = bool(spec.get("wait") or spec.get("healthChecks") or spec.get("healthCheckExprs"))
        prunes = bool(spec.get("prune"))
        policy = spec.get("deletionPolicy") or "MirrorPrune"
        draft.spec |= {
            "suspend": True if spec.get("suspend") else draft.spec.get("suspend"),
            "prune": None if prunes else False,
            "deletionPolicy": "Prune" if policy in {"Delete", "WaitForTermination"} or (policy == "MirrorPrune" and prunes) else None,
            "targetNamespace": spec.get("targetNamespace"),
            "serviceAccountName": spec.get("serviceAccountName"),
            "dependsOn": _depends_on(spec),
            "timeout": spec.get("timeout"),
            "replace": True if spec.get("force") else None,
            "ignore": _ignore(maps_in(spec.get("ignore")), "spec.ignore", draft),
            "health": {"wait": None if asks_health else False, "rules": _health_rules(spec)},
        }  # fmt: skip

    def _substitute(self, post: Manifest, draft: _Draft) -> dict[str, Any] | None:
        if not post:
            return None
        found: dict[str, dict[str, Any]] = {}
        for entry in maps_in(post.get("substituteFrom")):
            kind, name = str(entry.get("kind") or ""), str(entry.get("name") or "")
            holder = self.holders.get((kind, draft.namespace, name))
            if holder is None:
                if not entry.get("optional"):
                    said = f"{kind} {draft.namespace}/{name} isn't among what was read, so its keys aren't known: a Sync declares each variable (spec.source.substitute.variables)"
                    draft.stop("spec.postBuild.substituteFrom", said)
                continue
            ref = "secretKeyRef" if kind == "Secret" else "configMapKeyRef"
            keys = [*map_at(holder, "data"), *(map_at(holder, "stringData") if kind == "Secret" else ())]
            for key in sorted(set(keys)):
                text = map_at(holder, "data").get(key) if kind == "ConfigMap" else ""
                type_ = variable_type(text) if isinstance(text, str) else None
                found[key] = {"name": key, "type": type_, "valueFrom": {ref: {"name": name}}}
        for key, value in map_at(post, "substitute").items():
            found[key] = {"name": key, "type": variable_type(str(value)), "value": str(value)}
        if not found:
            return None
        variables = [{name: value for name, value in each.items() if value is not None} for each in found.values()]
        return {"variables": variables, "expressions": "Defaults", "alsoIn": ["ConfigMap", "Secret", "CustomResourceDefinition"]}  # fmt: skip

    # --- a HelmRelease ---------------------------------------------------------------------------------------------------

    def _release(self, placed: Placed, draft: _Draft, taken: Collection[tuple[str, str]]) -> None:
        spec, metadata = map_at(placed.manifest, "spec"), map_at(placed.manifest, "metadata")
        install, upgrade = map_at(spec, "install"), map_at(spec, "upgrade")
        self._chart_of_release(placed, draft)
        target = str(spec.get("targetNamespace") or "")
        name = str(spec.get("releaseName") or (f"{target}-{metadata['name']}" if target else metadata["name"]))
        policies = {str(each.get("crds") or "") for each in (install, upgrade)}
        helm = draft.source.setdefault("helm", {})
        helm |= {
            "releaseName": short_release(name),
            "skipCRDs": True if policies == {"Skip"} or install.get("skipCRDs") else None,
            "values": spec.get("values") or None,
            "valuesFrom": [_values_from(each, draft) for each in maps_in(spec.get("valuesFrom"))],
        }
        renderers = [map_at(each, "kustomize") for each in maps_in(spec.get("postRenderers"))]
        draft.source["kustomize"] = {
            "patches": [patch for each in renderers for patch in maps_in(each.get("patches"))],
            "images": [image for each in renderers for image in maps_in(each.get("images"))],
            "commonMetadata": spec.get("commonMetadata"),
        }
        drift = map_at(spec, "driftDetection")
        draft.spec |= {
            "suspend": True if spec.get("suspend") else draft.spec.get("suspend"),
            "deletionPolicy": "Prune",
            "drift": "Correct" if drift.get("mode") == "enabled" else "Report",
            "targetNamespace": target,
            "createNamespace": True if install.get("createNamespace") else None,
            "serviceAccountName": spec.get("serviceAccountName"),
            "dependsOn": _depends_on(spec, taken, draft.namespace),
            "timeout": spec.get("timeout"),
            "replace": True if upgrade.get("force") else None,
            "ignore": _ignore(maps_in(drift.get("ignore")), "spec.driftDetection.ignore", draft, "Drift"),
            "health": {
                "wait": False if install.get("disableWait") or upgrade.get("disableWait") else None,
                "rules": _health_rules(spec),
            },
        }

    def _chart_of_release(self, placed: Placed, draft: _Draft) -> None:
        spec = map_at(placed.manifest, "spec")
        ref = map_at(spec, "chartRef")
        if not ref:
            asked, verify = map_at(spec, "chart", "spec"), placed
            self._chart(asked, placed, verify, draft, "spec.chart.spec", _running(placed.manifest))
            return
        source = self._source(ref, placed, draft, "spec.chartRef")
        if source is None:
            return
        if source.manifest["kind"] == "HelmChart":
            asked = map_at(source.manifest, "spec")
            home = text_at(source.manifest, "metadata", "namespace")
            ref_below = {**map_at(asked, "sourceRef"), "namespace": home}
            self._chart(
                {**asked, "sourceRef": ref_below},
                source,
                source,
                draft,
                "HelmChart: spec",
                _running_chart(source.manifest),
            )
            return
        self._chart_in_registry(source, draft, _running(placed.manifest))

    def _chart_in_registry(self, source: Placed, draft: _Draft, running: str) -> None:
        spec = map_at(source.manifest, "spec")
        url, ref = str(spec.get("url") or "").rstrip("/"), map_at(spec, "ref")
        repository, _, name = url.rpartition("/")
        tag, digest = _artifact(source.manifest)
        version = str(ref.get("tag") or "") if not ref.get("semver") else tag or running
        digest = str(ref.get("digest") or digest)
        version = version or tag or running
        self._pinned(
            {"repository": repository, "name": name, "version": version, "digest": digest}, "spec.chartRef", draft
        )
        draft.source["chart"] |= {
            "interval": spec.get("interval"),
            "secretRef": self._secret(source, url, draft),
            "verify": self._verify(source, draft),
        }

    def _chart(
        self, asked: Manifest, placed: Placed, verifies: Placed, draft: _Draft, place: str, running: str
    ) -> None:
        source = self._source(map_at(asked, "sourceRef"), placed, draft, f"{place}.sourceRef")
        if source is None:
            return
        helm = draft.source.setdefault("helm", {})
        files = [str(each) for each in asked.get("valuesFiles") or ()]
        helm["ignoreMissingValuesFiles"] = True if asked.get("ignoreMissingValuesFiles") else None
        name = str(asked.get("chart") or "")
        if source.manifest["kind"] == "GitRepository":
            path = _path(name)
            draft.source |= {"git": self._git(source, draft), "path": path, "render": "Helm"}
            helm["valuesFiles"] = [posixpath.relpath(_path(each), path) for each in files] or None
            return
        if source.manifest["kind"] != "HelmRepository":
            draft.stop(f"{place}.sourceRef.kind", f"{source.manifest['kind']} has no charts here")
            return
        if files not in ([], ["values.yaml"]):
            draft.stop(
                f"{place}.valuesFiles",
                f"{', '.join(files)}: files of a chart that isn't in Git; write their values into spec.values",
            )
        spec = map_at(source.manifest, "spec")
        repository = str(spec.get("url") or "").rstrip("/")
        version = str(asked.get("version") or "")
        if not exact_version(version):
            version = running
        digest = "" if repository.startswith("oci://") or files else _chart_digest(self._made_for(placed), version)
        self._pinned(
            {"repository": repository, "name": name, "version": version, "digest": digest}, f"{place}.version", draft
        )
        url = f"{repository}/{name}" if repository.startswith("oci://") else repository
        draft.source["chart"] |= {
            "interval": asked.get("interval"),
            "secretRef": self._secret(source, url, draft),
            "verify": self._verify_chart(asked, verifies, draft, place),
        }

    def _made_for(self, placed: Placed) -> Manifest:
        """Return the HelmChart that Flux has made for a HelmRelease, or the object itself."""
        namespace, _, name = text_at(placed.manifest, "status", "helmChart").partition("/")
        found = self._found("HelmChart", namespace, name, placed.file)
        return found.manifest if found else placed.manifest

    def _verify_chart(self, asked: Manifest, beside: Placed, draft: _Draft, place: str) -> dict[str, Any] | None:
        verify = map_at(asked, "verify")
        if not verify:
            return None
        return self._verify(
            Placed({"kind": place, "metadata": beside.manifest["metadata"], "spec": {"verify": verify}}), draft
        )

    def _pinned(self, chart: dict[str, Any], place: str, draft: _Draft) -> None:
        if not exact_version(str(chart["version"])):
            said = "it asks for a range of versions, and which one runs isn't known: write one exact version"
            draft.stop(place, said)
        elif not chart["digest"]:
            draft.approximate(place, PIN)
        draft.source["chart"] = chart


_MADE_UP: Final = "folders below it have kustomizations, and it has none, so Flux makes one up: commit that, as made there by kustomize create --autodetect --recursive"
_MODES: Final = {"head": "Commit", "HEAD": "Commit", "Tag": "Tag", "TagAndHEAD": "CommitAndTag"}


def _ref(placed: Placed) -> ObjectRef:
    return ObjectRef.of(placed.manifest)


def _path(text: str) -> str:
    return posixpath.normpath(text.lstrip("/") or ".")


def _sync_name(namespace: str, name: str, taken: Collection[tuple[str, str]]) -> str:
    return f"{name}-release" if (namespace, name) in taken else name


_LONGEST_RELEASE: Final = 53
_KEPT: Final = 40


def short_release(name: str) -> str:
    """Return the name of a release as helm-controller shortens it: 40 characters, a hyphen and 12 digits of its SHA-256."""
    if len(name) <= _LONGEST_RELEASE:
        return name
    return f"{name[:_KEPT]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _git_ref(ref: Manifest, draft: _Draft) -> dict[str, Any]:
    """Return what is followed; as in Flux, a commit counts before a name, that before a range, that before a tag, that before a branch."""
    if ref.get("commit"):
        return {"commit": ref["commit"]}
    if name := str(ref.get("name") or ""):
        for prefix, kind in (("refs/heads/", "branch"), ("refs/tags/", "tag")):
            if name.startswith(prefix):
                return {kind: name.removeprefix(prefix)}
        draft.stop("GitRepository: spec.ref.name", f"{name}: a branch or a tag can be followed")
        return {}
    for kind in ("semver", "tag", "branch"):
        if ref.get(kind):
            return {kind: ref[kind]}
    return {"branch": None if not ref else ref.get("branch")}


def _decryption(said: Manifest, draft: _Draft) -> dict[str, Any] | None:
    """Return what decrypts the files of a Kustomization, and note that its Secret has to say for which source."""
    if not said:
        return None
    name = text_at(said, "secretRef", "name")
    if said.get("provider") != "sops":
        draft.stop("spec.decryption.provider", f"{said.get('provider')}: files of SOPS can be decrypted")
    elif not name:
        draft.stop(
            "spec.decryption.secretRef",
            "without a Secret only key services of clouds have the keys: encrypt for an age or OpenPGP key",
        )
    url = text_at(draft.source, "git", "url") or text_at(draft.source, "oci", "url")
    draft.needs.append(CredentialNeed(draft.namespace, name, draft.namespace, name, url))
    return {"provider": "SOPS", "secretRef": {"name": name}}


def _depends_on(spec: Manifest, taken: Collection[tuple[str, str]] = (), home: str = "") -> list[dict[str, Any]]:
    found = []
    for each in maps_in(spec.get("dependsOn")):
        namespace, name = str(each.get("namespace") or home), str(each.get("name") or "")
        found.append(
            {
                "name": _sync_name(namespace, name, taken),
                **({"namespace": each["namespace"]} if each.get("namespace") else {}),
            }
        )
    return found


def _ignore(rules: Sequence[Manifest], place: str, draft: _Draft, of: str = "") -> list[dict[str, Any]]:
    found = []
    for rule in rules:
        target = {name: str(text) for name, text in map_at(rule, "target").items() if name in _OF_TARGET}
        for name, text in target.items():
            if name != "labelSelector" and not _LITERAL.fullmatch(text):
                draft.stop(
                    f"{place}[].target.{name}", f"{text}: a regular expression; write a rule for each into spec.ignore"
                )
        for path in map(str, rule.get("paths") or ()):
            if (pointer := any_item(path)) != path:
                draft.approximate(f"{place}[].paths", f"{path}: {ALL_ITEMS}")
            found.append({"path": pointer, **({"from": of} if of else {}), **({"target": target} if target else {})})
    return found


_OF_TARGET: Final = ("group", "kind", "namespace", "name", "labelSelector")
_LITERAL: Final = re.compile(r"[A-Za-z0-9.-]*")
"""What stands for itself alone, and for nothing else in a cluster, where Flux reads a regular expression."""


def _health_rules(spec: Manifest) -> list[dict[str, Any]]:
    found = []
    for each in maps_in(spec.get("healthCheckExprs")):
        group = str(each.get("apiVersion") or "").rpartition("/")[0]
        rule = {"kind": f"{each.get('kind')}.{group}" if group else str(each.get("kind"))}
        rule |= {name: cel_of_self(str(each[name])) for name in ("failed", "inProgress", "current") if each.get(name)}
        found.append(rule)
    return found


def _note_patches(patches: Any, place: str, draft: _Draft) -> None:
    for each in maps_in(patches):
        target = map_at(each, "target")
        if str(target.get("group") or "").endswith(".fluxcd.io") or target.get("kind") == "HelmRelease":
            draft.approximate(
                place, "a patch of Flux's own objects: write what it says into the Syncs that take their place"
            )


def _values_from(entry: Manifest, draft: _Draft) -> dict[str, Any]:
    if entry.get("targetPath") and not entry.get("literal"):
        draft.approximate(
            "spec.valuesFrom[].targetPath",
            "the value is text; set type where the chart wants a number or true or false",
        )
    names = ("kind", "name", "valuesKey", "targetPath", "optional")
    return {name: entry[name] for name in names if entry.get(name)}


# --- what runs ------------------------------------------------------------------------------------------------------------


def _running(release: Manifest) -> str:
    """Return the version of the chart that a HelmRelease has installed last."""
    history = maps_in(map_at(release, "status").get("history"))
    newest = str(history[0].get("chartVersion") or "") if history else ""
    return newest or str(map_at(release, "status").get("lastAttemptedRevision") or "")


def _running_chart(chart: Manifest) -> str:
    return text_at(chart, "status", "artifact", "revision")


def _artifact(source: Manifest) -> tuple[str, str]:
    """Return the tag and the digest of the artifact that a source has fetched last."""
    tag, _, digest = text_at(source, "status", "artifact", "revision").partition("@")
    return tag, digest


def _chart_digest(chart: Manifest, version: str) -> str:
    """Return the digest of the archive that a HelmChart has fetched, if that is *version*."""
    artifact = map_at(chart, "status", "artifact")
    return str(artifact.get("digest") or "") if artifact.get("revision") == version else ""


def without_values(secret: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Secret with the names of its keys, and without what it holds."""
    metadata = {name: value for name, value in map_at(secret, "metadata").items() if name in {"name", "namespace"}}
    keys = {*map_at(secret, "data"), *map_at(secret, "stringData")}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": dict.fromkeys(sorted(keys), "")}
