"""Every field of Flux's sources, Kustomizations and HelmReleases, and what happens to it.

Pure: data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_reconcile.core.importing.fields import KindTable, Row, approximated, not_possible, translated

SOURCES: Final = "source.toolkit.fluxcd.io"
KUSTOMIZE: Final = "kustomize.toolkit.fluxcd.io"
HELM: Final = "helm.toolkit.fluxcd.io"

_ELSEWHERE = "another cluster: a daemon writes to its own; run a daemon there"
_LOGIN = "credentials of a cloud's workload identity: a Sync takes them from a Secret"
_PROXY = "a proxy is what the daemon's environment names (HTTPS_PROXY), for all Syncs"
_KEYLESS = "signatures by certificates need a trusted root, which a HelmChart can't name: verify an OCIRepository with trustedRootSecretRef, and use chartRef"
_TIMEOUT = "limits are the daemon's, for all Syncs"
_LABEL = "the labels and annotations of the HelmChart: there is no such object"
_NO_RELEASE = "there is no Helm release: objects are applied, and an earlier state is rolled back to with kubectl reconcile rollback"
_RETRIED = (
    "what fails is tried again with growing pauses, without an end; nothing is rolled back or uninstalled by itself"
)
_HOOKS = "hooks would run: remove them with a patch (spec.source.kustomize.patches)"
_ANNOTATION_SELECTOR = "rules are for a group, kind, name, namespace and labels: give the objects a label"


def _selector(place: str, annotations: Row | None = None) -> Iterator[Row]:
    for name in ("group", "version", "kind", "name", "namespace", "labelSelector"):
        yield translated(f"{place}.{name}", "the same")
    yield annotations or translated(f"{place}.annotationSelector", "the same")


def _ignore(place: str) -> Iterator[Row]:
    yield translated(f"{place}[].paths", "`spec.ignore`, one rule for each path; of a HelmRelease, with `from: Drift`")
    for name in ("group", "kind", "name", "namespace", "labelSelector"):
        yield translated(
            f"{place}[].target.{name}",
            f"`spec.ignore[].target.{name}`, of text; a regular expression isn't possible"
            if name != "labelSelector"
            else "the same",
        )
    yield not_possible(f"{place}[].target.annotationSelector", _ANNOTATION_SELECTOR)
    yield approximated(f"{place}[].target.version", "rules are for all versions of a group")


def _patches(place: str) -> Iterator[Row]:
    yield translated(f"{place}.patches[].patch", "`spec.source.kustomize.patches[].patch`")
    yield from _selector(f"{place}.patches[].target")
    for name in ("name", "newName", "newTag", "digest"):
        yield translated(f"{place}.images[].{name}", f"`spec.source.kustomize.images[].{name}`")


def _metadata(place: str) -> Iterator[Row]:
    for name in ("labels", "annotations"):
        yield translated(f"{place}.commonMetadata.{name}", f"`spec.source.kustomize.commonMetadata.{name}`")


def _health() -> Iterator[Row]:
    for name in ("apiVersion", "kind"):
        yield translated(f"spec.healthCheckExprs[].{name}", "`spec.health.rules[].kind`")
    for name in ("current", "inProgress", "failed"):
        yield translated(
            f"spec.healthCheckExprs[].{name}", f"`spec.health.rules[].{name}`, with `self.` before the object's fields"
        )


def _depends() -> Iterator[Row]:
    yield translated("spec.dependsOn[].name", "`spec.dependsOn[].name`")
    yield translated("spec.dependsOn[].namespace", "`spec.dependsOn[].namespace`")
    yield approximated(
        "spec.dependsOn[].readyExpr", "it is waited until that Sync is Ready; the expression is about fields of Flux's object"
    )  # fmt: skip


def _cluster() -> Iterator[Row]:
    yield not_possible("spec.kubeConfig", _ELSEWHERE)


def _verify(place: str, *, key: str) -> Iterator[Row]:
    yield translated(f"{place}.provider", "`cosign` with keys; `notation` isn't possible")
    yield translated(f"{place}.secretRef.name", f"`{key}.verify.secretRef.name`: the same Secret works")


def _identities(key: str) -> Iterator[Row]:
    for name in ("issuer", "subject"):
        yield translated(
            f"spec.verify.matchOIDCIdentity[].{name}",
            f"`{key}.verify.matchOIDCIdentity[].{name}`, as an expression for the whole text",
        )


_GIT = (
    translated("spec.url", "`spec.source.git.url`"),
    translated("spec.ref.branch", "`spec.source.git.branch`"),
    translated("spec.ref.tag", "`spec.source.git.tag`"),
    translated("spec.ref.semver", "`spec.source.git.semver`"),
    translated("spec.ref.commit", "`spec.source.git.commit`"),
    translated("spec.ref.name", "`branch` of `refs/heads/…`, `tag` of `refs/tags/…`; others aren't possible"),
    translated("spec.secretRef.name", "`spec.source.git.secretRef.name`: the same Secret, once it names the URL in `reconcile.dev/urls`"),
    translated("spec.interval", "`spec.source.git.interval`"),
    translated("spec.suspend", "`spec.suspend` of each Sync that follows it"),
    translated("spec.verify.mode", "`spec.source.git.verify.mode`: `HEAD` is `Commit`, `TagAndHEAD` is `CommitAndTag`"),
    translated("spec.verify.secretRef.name", "`spec.source.git.verify.secretRef.name`: the same Secret works"),
    translated("spec.sparseCheckout", "nothing is needed: only files at the path are read"),
    approximated("spec.ignore", "list files below the path in `.reconcileignore` there, in the same syntax; others aren't read anyway"),
    approximated("spec.timeout", _TIMEOUT),
    not_possible("spec.include", "a tree of several repositories: make one Sync of each, or refer to the other in an overlay"),
    not_possible("spec.recurseSubmodules", "submodules aren't fetched: refer to the other repository in an overlay"),
    not_possible("spec.provider", _LOGIN, "generic"),
    not_possible("spec.serviceAccountName", _LOGIN),
    approximated("spec.proxySecretRef", _PROXY),
)  # fmt: skip

_OCI = (
    translated("spec.url", "`spec.source.oci.url`; of a chart, `spec.source.chart.repository` and `name`"),
    translated("spec.ref.tag", "`spec.source.oci.tag`; of a chart, `spec.source.chart.version`"),
    translated("spec.ref.semver", "`spec.source.oci.semver`; of a chart, the version that runs"),
    translated("spec.ref.digest", "`spec.source.oci.digest`; of a chart, `spec.source.chart.digest`"),
    not_possible("spec.ref.semverFilter", "a pattern of tags beside a range: write the range so that it excludes them"),
    translated("spec.layerSelector.mediaType", "`spec.source.oci.layerSelector.mediaType`; of a chart, nothing is needed"),
    translated("spec.layerSelector.operation", "nothing is needed: an archive is unpacked, a chart is read as it is"),
    translated("spec.secretRef.name", "`secretRef.name` of `spec.source.oci` or `spec.source.chart`: the same Secret"),
    translated("spec.interval", "`spec.source.oci.interval`"),
    translated("spec.suspend", "`spec.suspend` of each Sync that follows it"),
    *_verify("spec.verify", key="spec.source.oci"),
    *_identities("spec.source.oci"),
    translated("spec.verify.trustedRootSecretRef.name", "`spec.source.oci.verify.trustedRootSecretRef.name`: the same Secret works; without one it isn't possible"),
    translated("spec.certSecretRef.name", "`secretRef.name` where there is no other: its `ca.crt` is trusted; a client's certificate isn't possible"),
    approximated("spec.ignore", "list files below the path in `.reconcileignore` there, in the same syntax; others aren't read anyway"),
    approximated("spec.timeout", _TIMEOUT),
    not_possible("spec.insecure", "a registry is always asked over https"),
    not_possible("spec.provider", _LOGIN, "generic"),
    not_possible("spec.serviceAccountName", _LOGIN),
    approximated("spec.proxySecretRef", _PROXY),
)  # fmt: skip

_HELM_REPOSITORY = (
    translated("spec.url", "`spec.source.chart.repository`"),
    translated("spec.type", "nothing is needed: the URL says it"),
    translated("spec.secretRef.name", "`spec.source.chart.secretRef.name`: the same Secret, once it names the URL in `reconcile.dev/urls`"),
    translated("spec.certSecretRef.name", "`spec.source.chart.secretRef.name` where there is no other: its `ca.crt` is trusted; a client's certificate isn't possible"),
    translated("spec.interval", "nothing is needed: a version is pinned by its digest"),
    translated("spec.suspend", "`spec.suspend` of each Sync with a chart of it"),
    approximated("spec.timeout", _TIMEOUT),
    approximated("spec.accessFrom", "a Sync uses Secrets of its own namespace alone"),
    not_possible("spec.passCredentials", "credentials are never sent to another host than the repository's"),
    not_possible("spec.insecure", "a registry is always asked over https"),
    not_possible("spec.provider", _LOGIN, "generic"),
)  # fmt: skip

_CHART_SPEC = (
    ("chart", translated, "`spec.source.chart.name`, or `spec.source.path` of a chart in Git"),
    ("version", translated, "`spec.source.chart.version`: an exact version; of a range, the version that runs"),
    ("sourceRef.apiVersion", translated, "nothing is needed"),
    ("sourceRef.kind", translated, "`GitRepository` and `HelmRepository`; `Bucket` isn't possible"),
    ("sourceRef.name", translated, "`spec.source.git` or `spec.source.chart`, with what that object says"),
    ("interval", translated, "`spec.source.chart.interval`"),
    ("valuesFiles", translated, "`spec.source.helm.valuesFiles` of a chart in Git; of another, only its own `values.yaml` is possible"),
    ("ignoreMissingValuesFiles", translated, "`spec.source.helm.ignoreMissingValuesFiles`"),
    ("reconcileStrategy", translated, "nothing is needed: what is rendered is applied whenever it changes"),
)  # fmt: skip


def _chart(place: str) -> Iterator[Row]:
    yield from (made(f"{place}.{name}", text) for name, made, text in _CHART_SPEC)
    yield from _verify(f"{place}.verify", key="spec.source.chart")


_HELM_CHART = (
    *_chart("spec"),
    translated("spec.suspend", "`spec.suspend` of the Sync"),
    not_possible("spec.verify.matchOIDCIdentity", _KEYLESS),
)

_KUSTOMIZATION = (
    translated("spec.path", "`spec.source.path`. Flux makes up a kustomization for a folder without one; if folders below it have one, commit that (`kustomize create --autodetect --recursive`)"),
    translated("spec.sourceRef.apiVersion", "nothing is needed"),
    translated("spec.sourceRef.kind", "`GitRepository` and `OCIRepository`; `Bucket` and `ExternalArtifact` aren't possible"),
    translated("spec.sourceRef.name", "`spec.source.git` or `spec.source.oci`, with what that object says"),
    translated("spec.sourceRef.namespace", "`spec.source.git` or `spec.source.oci`; its Secrets must be in the Sync's namespace"),
    translated("spec.components", "`spec.source.kustomize.components`"),
    approximated("spec.ignoreMissingComponents", "a component that isn't there is a problem: remove it from the list"),
    *_patches("spec"),
    *_metadata("spec"),
    translated("spec.namePrefix", "`spec.source.kustomize.namePrefix`"),
    translated("spec.nameSuffix", "`spec.source.kustomize.nameSuffix`"),
    translated("spec.postBuild.substitute", "`spec.source.substitute.variables`, each with the type that its value looks like. `kustomize.toolkit.fluxcd.io/substitute: disabled` isn't read: leave out the object's kind in `alsoIn`"),
    translated("spec.postBuild.substituteFrom[].kind", "`valueFrom` of a variable for each key of the ConfigMap or Secret"),
    translated("spec.postBuild.substituteFrom[].name", "the same; not possible if its keys aren't known, because it isn't among what is read"),
    translated("spec.postBuild.substituteFrom[].optional", "nothing is declared of what isn't there"),
    approximated("spec.postBuild.substituteStrategy", "text is replaced where variables are declared", "WithVariables"),
    translated("spec.targetNamespace", "`spec.targetNamespace`. An object that names another namespace keeps it; Flux moves it"),
    translated("spec.prune", "`spec.prune`"),
    translated("spec.deletionPolicy", "`spec.deletionPolicy`: `Orphan`, else `Prune`; `MirrorPrune` is as `spec.prune` says"),
    *_depends(),
    translated("spec.wait", "`spec.health.wait`"),
    approximated("spec.healthChecks", "the Sync waits until all of its members are healthy; what isn't a member isn't waited for"),
    *_health(),
    translated("spec.timeout", "`spec.timeout`"),
    translated("spec.interval", "nothing is needed: drift is noticed at once; the source's interval counts"),
    approximated("spec.retryInterval", "what fails is tried again after 1 s, then with growing pauses of up to 60 s"),
    translated("spec.force", "`spec.replace`"),
    translated("spec.suspend", "`spec.suspend`"),
    translated("spec.serviceAccountName", "`spec.serviceAccountName`"),
    *_ignore("spec.ignore"),
    approximated("spec.buildMetadata", "where an object comes from is in its annotation `reconcile.dev/source`"),
    translated("spec.decryption.provider", "`spec.source.decryption.provider`"),
    translated("spec.decryption.secretRef.name", "`spec.source.decryption.secretRef.name`, for keys of age and OpenPGP; not possible without it"),
    not_possible("spec.decryption.serviceAccountName", "key services of clouds aren't asked: encrypt for an age or OpenPGP key"),
    *_cluster(),
)  # fmt: skip


def _release() -> Iterator[Row]:
    yield from _chart("spec.chart.spec")
    yield translated("spec.chart.spec.sourceRef.namespace", "the same; its Secrets must be in the Sync's namespace")
    yield approximated("spec.chart.metadata", _LABEL)
    yield translated("spec.chartRef.apiVersion", "nothing is needed")
    yield translated("spec.chartRef.kind", "`OCIRepository` and `HelmChart`; `ExternalArtifact` isn't possible")
    yield translated("spec.chartRef.name", "`spec.source.chart`, with what that object says")
    yield translated("spec.chartRef.namespace", "the same; its Secrets must be in the Sync's namespace")
    yield translated("spec.releaseName", "`spec.source.helm.releaseName`, always written")
    yield translated("spec.targetNamespace", "`spec.targetNamespace`, which is the release's namespace too")
    yield translated("spec.values", "`spec.source.helm.values`")
    for name in ("kind", "name", "valuesKey", "optional"):
        yield translated(f"spec.valuesFrom[].{name}", f"`spec.source.helm.valuesFrom[].{name}`")
    yield translated(
        "spec.valuesFrom[].targetPath",
        "`spec.source.helm.valuesFrom[].targetPath`; the value is text there, unless you set `type`",
    )
    yield translated("spec.valuesFrom[].literal", "nothing is needed: a value at a `targetPath` is never taken apart")
    yield from _patches("spec.postRenderers[].kustomize")
    yield approximated("spec.postRenderStrategy", "patches are for all objects of the chart, hooks included")
    yield from _metadata("spec")
    yield from _depends()
    yield from _health()
    yield translated("spec.driftDetection.mode", "`spec.drift`: `enabled` is `Correct`, others are `Report`")
    yield from _ignore("spec.driftDetection.ignore")
    yield translated("spec.timeout", "`spec.timeout`")
    yield translated("spec.interval", "nothing is needed: drift is noticed at once; a version is pinned by its digest")
    yield translated("spec.suspend", "`spec.suspend`")
    yield translated("spec.serviceAccountName", "`spec.serviceAccountName`")
    yield from _cluster()
    for name in ("storageNamespace", "maxHistory"):
        yield approximated(f"spec.{name}", _NO_RELEASE)
    yield translated("spec.persistentClient", "nothing is needed")
    yield approximated(
        "spec.waitStrategy", "health is judged by kstatus, and by rules for popular kinds", {"name": "poller"}
    )
    yield not_possible(
        "spec.test.enable",
        "tests of a chart aren't run: run helm test in a pipeline, or make its test a hook of the Sync",
    )
    for name in ("filters", "ignoreFailures", "timeout"):
        yield approximated(f"spec.test.{name}", "tests of a chart aren't run")
    yield from _install()
    yield from _upgrade()
    yield approximated("spec.rollback", _NO_RELEASE)
    yield not_possible(
        "spec.uninstall.disableHooks", "nothing runs when a Sync is deleted anyway: remove the field", False
    )
    for name in ("deletionPropagation", "disableWait", "keepHistory", "timeout"):
        yield approximated(f"spec.uninstall.{name}", "what the Sync has made is deleted with it, in the background, and nothing is kept")  # fmt: skip


def _install() -> Iterator[Row]:
    yield approximated("spec.install.crds", "CRDs of the chart are applied and updated; if install and upgrade say `Skip`, they are left out", "CreateReplace", "Skip")  # fmt: skip
    yield translated("spec.install.createNamespace", "`spec.createNamespace`")
    yield translated("spec.install.skipCRDs", "`spec.source.helm.skipCRDs`")
    yield from _action("spec.install")
    yield approximated("spec.install.replace", _NO_RELEASE)


def _upgrade() -> Iterator[Row]:
    yield approximated("spec.upgrade.crds", "CRDs of the chart are applied and updated; if install and upgrade say `Skip`, they are left out", "CreateReplace", "Skip")  # fmt: skip
    yield from _action("spec.upgrade")
    yield translated("spec.upgrade.force", "`spec.replace`")
    yield approximated(
        "spec.upgrade.cleanupOnFail", "what a failed sync has made stays until the next one goes through"
    )
    yield not_possible(
        "spec.upgrade.preserveValues", "values of earlier releases aren't known: write them into `spec.values`"
    )
    yield approximated(
        "spec.upgrade.chartNameChangeStrategy", "objects of another chart take the place of the former ones"
    )


def _action(place: str) -> Iterator[Row]:
    yield not_possible(f"{place}.disableHooks", _HOOKS)
    yield translated(f"{place}.disableWait", "`spec.health.wait: false`")
    yield approximated(f"{place}.disableWaitForJobs", "Jobs are waited for like other objects")
    yield approximated(f"{place}.disableOpenAPIValidation", "the API server always validates")
    yield approximated(f"{place}.disableSchemaValidation", "a chart's `values.schema.json` always counts")
    yield approximated(f"{place}.disableTakeOwnership", "objects that exist are adopted; the preview names them")
    yield translated(f"{place}.serverSideApply", "nothing is needed: objects are always applied server-side")
    yield approximated(f"{place}.timeout", "`spec.timeout` of the release counts for both")
    yield approximated(f"{place}.remediation", _RETRIED)
    yield approximated(f"{place}.strategy", _RETRIED)


TABLES: Final = (
    KindTable(SOURCES, "GitRepository", _GIT),
    KindTable(SOURCES, "OCIRepository", _OCI),
    KindTable(SOURCES, "HelmRepository", _HELM_REPOSITORY),
    KindTable(SOURCES, "HelmChart", _HELM_CHART),
    KindTable(KUSTOMIZE, "Kustomization", _KUSTOMIZATION),
    KindTable(HELM, "HelmRelease", tuple(_release())),
)
"""The tables of Flux's kinds that are read."""

NOT_READ: Final = {
    (SOURCES, "Bucket"): "buckets aren't followed: push the files to a registry (spec.source.oci) or to Git",
    (SOURCES, "ExternalArtifact"): "artifacts of other controllers aren't followed: follow what they are made of",
    ("source.extensions.fluxcd.io", "ArtifactGenerator"): "artifacts aren't generated: follow what they are made of",
    ("fluxcd.controlplane.io", "ResourceSet"): "nothing generates Syncs: render them in a pipeline, or write them",
    ("fluxcd.controlplane.io", "ResourceSetInputProvider"): "nothing generates Syncs: render them in a pipeline, or write them",
    ("fluxcd.controlplane.io", "FluxInstance"): "it installs Flux; if it makes a GitRepository, --url says what that is",
    ("image.toolkit.fluxcd.io", "ImageRepository"): "images aren't updated: Renovate opens pull requests instead",
    ("image.toolkit.fluxcd.io", "ImagePolicy"): "images aren't updated: Renovate opens pull requests instead",
    ("image.toolkit.fluxcd.io", "ImageUpdateAutomation"): "images aren't updated: Renovate opens pull requests instead",
    ("notification.toolkit.fluxcd.io", "Alert"): "there are no messages to chats: use events, metrics and conditions",
    ("notification.toolkit.fluxcd.io", "Provider"): "there are no messages to chats: use events, metrics and conditions",
    ("notification.toolkit.fluxcd.io", "Receiver"): "set spec.source.git.webhookSecretRef of the Syncs, and their addresses at the forge",
}  # fmt: skip
"""Flux's kinds that no Sync is made of, and why."""
