"""Every field of Argo CD's Applications and AppProjects, and what happens to it.

Pure: data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_reconcile.core.importing.fields import KindTable, Row, approximated, not_possible, translated

ARGOPROJ: Final = "argoproj.io"

_PLUGIN = "plugins aren't run: render in a pipeline, and follow what it commits"
_JSONNET = "Jsonnet isn't evaluated: render it in a pipeline, and follow what it commits"
_OVERLAY = "commit it to the overlay"
_WHO_MAY = "the rights of the project's ServiceAccount: `kubectl reconcile grant` gives what the source needs, and whoever grants it decides"
_ROLES = "people have rights of Kubernetes (RBAC) on Syncs"
_WINDOW = "times at which nothing is synced: kubectl reconcile suspend and resume, in a CronJob for example"


def _source(place: str) -> Iterator[Row]:
    yield translated(f"{place}.repoURL", "`spec.source.git.url`, or `spec.source.chart.repository`")
    yield translated(f"{place}.path", "`spec.source.path`")
    yield translated(
        f"{place}.targetRevision",
        "`branch`, `tag`, `semver` or `commit` of `spec.source.git`; what looks like a version is a tag. Of a chart, `spec.source.chart.version`",
    )
    yield translated(f"{place}.chart", "`spec.source.chart.name`")
    yield translated(
        f"{place}.ref",
        "`spec.source.git` beside `spec.source.chart`, for the chart's values files"
        if place.endswith("[]")
        else "nothing is needed",
    )
    yield translated(f"{place}.name", "part of the name of the Sync, where there are several")
    yield not_possible(
        f"{place}.tagPrefix", "a prefix of tags beside a range: follow a branch, or tags without a prefix"
    )
    yield from _directory(f"{place}.directory")
    yield from _helm(f"{place}.helm")
    yield from _kustomize(f"{place}.kustomize")
    yield not_possible(f"{place}.plugin", _PLUGIN)


def _directory(place: str) -> Iterator[Row]:
    yield translated(
        f"{place}.recurse",
        "nothing is needed: folders below are read too. Without it, list them in `.reconcileignore`",
    )
    yield not_possible(
        f"{place}.include", "list all other files in `.reconcileignore` in that folder, then remove this"
    )
    yield not_possible(f"{place}.exclude", "list these files in `.reconcileignore` in that folder, then remove this")
    yield approximated(f"{place}.disableExtensionFilter", "manifests are files named .yaml, .yml or .json")
    yield not_possible(f"{place}.jsonnet", _JSONNET)


def _helm(place: str) -> Iterator[Row]:
    yield translated(f"{place}.releaseName", "`spec.source.helm.releaseName`, always written")
    yield translated(f"{place}.namespace", "`spec.source.helm.namespace`")
    yield translated(f"{place}.values", "`spec.source.helm.values`")
    yield translated(f"{place}.valuesObject", "`spec.source.helm.values`")
    yield translated(f"{place}.valueFiles", "`spec.source.helm.valuesFiles`; URLs aren't possible")
    yield translated(f"{place}.ignoreMissingValueFiles", "`spec.source.helm.ignoreMissingValuesFiles`")
    for name in ("name", "value", "forceString"):
        yield translated(f"{place}.parameters[].{name}", "`spec.source.helm.values`, over the others")
    yield not_possible(f"{place}.fileParameters", "values from the text of files: write them into a values file")
    yield translated(f"{place}.skipCrds", "`spec.source.helm.skipCRDs`")
    yield translated(f"{place}.skipTests", "nothing is needed: tests of a chart are left out")
    yield approximated(f"{place}.skipSchemaValidation", "a chart's `values.schema.json` always counts")
    yield translated(f"{place}.kubeVersion", "`spec.source.helm.kubeVersion`")
    yield translated(f"{place}.apiVersions", "`spec.source.helm.apiVersions`")
    yield approximated(f"{place}.version", "charts of Helm 2 and 3 are rendered alike", "v3")
    yield not_possible(f"{place}.passCredentials", "credentials are never sent to another host than the repository's")


def _kustomize(place: str) -> Iterator[Row]:
    yield translated(f"{place}.namePrefix", "`spec.source.kustomize.namePrefix`")
    yield translated(f"{place}.nameSuffix", "`spec.source.kustomize.nameSuffix`")
    yield translated(f"{place}.images", "`spec.source.kustomize.images`")
    yield translated(f"{place}.components", "`spec.source.kustomize.components`")
    yield approximated(f"{place}.ignoreMissingComponents", "a component that isn't there is a problem: remove it from the list")  # fmt: skip
    yield translated(
        f"{place}.commonLabels",
        "`spec.source.kustomize.commonMetadata.labels`, with `labelWithoutSelector`; otherwise not possible: it is part of selectors and templates of pods, so commit it to the overlay",
    )
    yield translated(f"{place}.labelWithoutSelector", "see `commonLabels`")
    yield not_possible(f"{place}.labelIncludeTemplates", f"labels of templates of pods: {_OVERLAY}")
    yield not_possible(f"{place}.commonAnnotations", f"annotations of templates of pods: {_OVERLAY}")
    yield not_possible(f"{place}.commonAnnotationsEnvsubst", f"values of Argo CD's build environment: {_OVERLAY}")
    for name in ("forceCommonAnnotations", "forceCommonLabels"):
        yield translated(f"{place}.{name}", "nothing is needed: what a Sync says wins")
    yield translated(f"{place}.namespace", "`spec.targetNamespace`, if it is the destination's; otherwise not possible: commit it to the overlay")  # fmt: skip
    for name in ("name", "count"):
        yield translated(f"{place}.replicas[].{name}", "a patch in `spec.source.kustomize.patches`")
    yield translated(f"{place}.patches[].patch", "`spec.source.kustomize.patches[].patch`")
    yield translated(f"{place}.patches[].options", "`spec.source.kustomize.patches[].options`")
    yield not_possible(f"{place}.patches[].path", "a patch in a file: write its text, or make a component of it")
    for name in ("group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"):
        yield translated(f"{place}.patches[].target.{name}", "the same")
    for name in ("version", "kubeVersion", "apiVersions"):
        yield approximated(f"{place}.{name}", "overlays are built by the kustomize that comes with the daemon")


_APPLICATION = (
    translated("spec.project", "`spec.serviceAccountName`: an account for each project; `default` is the default account"),
    translated("spec.destination.namespace", "`spec.targetNamespace`"),
    translated("spec.destination.server", "the cluster of the daemon; others aren't possible: run a daemon there"),
    translated("spec.destination.name", "`in-cluster` is the cluster of the daemon; others aren't possible: run a daemon there"),
    *_source("spec.source"),
    *_source("spec.sources[]"),
    approximated("spec.sourceHydrator.drySource", "what renders the branch stays as it is; the Sync follows what is rendered"),
    translated("spec.sourceHydrator.syncSource.repoURL", "`spec.source.git.url`"),
    translated("spec.sourceHydrator.syncSource.targetBranch", "`spec.source.git.branch`"),
    translated("spec.sourceHydrator.syncSource.path", "`spec.source.path`"),
    not_possible("spec.sourceHydrator.hydrateTo", "a branch that waits for a promotion: follow the branch that it is merged into"),
    approximated("spec.syncPolicy.automated.allowEmpty", "many deletions wait for approval; spec.maxDeletes says how many"),
    translated("spec.syncPolicy.automated.enabled", "`spec.approval: Always` if it is false, or without `automated`: each revision waits for kubectl reconcile approve"),
    translated("spec.syncPolicy.automated.prune", "`spec.prune`"),
    translated("spec.syncPolicy.automated.selfHeal", "`spec.drift`: `Correct`, otherwise `Report`"),
    translated("spec.syncPolicy.syncOptions", "[each option](#sync-options)"),
    approximated("spec.syncPolicy.retry", "what fails is tried again with growing pauses of up to 60 s, without an end"),
    approximated("spec.syncPolicy.managedNamespaceMetadata", "a namespace is made without labels, and keeps those that it has: commit a Namespace with them"),
    translated("spec.ignoreDifferences[].group", "`spec.ignore[].target.group`"),
    translated("spec.ignoreDifferences[].kind", "`spec.ignore[].target.kind`"),
    translated("spec.ignoreDifferences[].name", "`spec.ignore[].target.name`"),
    translated("spec.ignoreDifferences[].namespace", "`spec.ignore[].target.namespace`"),
    translated("spec.ignoreDifferences[].jsonPointers", "`spec.ignore[].path`, with `from: Drift`; with `RespectIgnoreDifferences=true`, `from: Always`"),
    translated("spec.ignoreDifferences[].jqPathExpressions", "the same, of plain paths; of list items by number and of expressions it isn't possible: write a rule for `spec.ignore`"),
    translated("spec.ignoreDifferences[].managedFieldsManagers", "`spec.ignore[].manager`, one rule for each top-level field of an object"),
    approximated("spec.revisionHistoryLimit", "the last revisions are in the Sync's status"),
    approximated("spec.info", "nobody shows it: write it as annotations of the Sync"),
    approximated("operation", "a sync that is under way is left to Argo CD"),
)  # fmt: skip

_PROJECT = (
    approximated("spec.destinations", _WHO_MAY),
    approximated("spec.destinationServiceAccounts", "`spec.serviceAccountName` of the Syncs: write it where it isn't the project's"),
    approximated("spec.clusterResourceWhitelist", _WHO_MAY),
    approximated("spec.clusterResourceBlacklist", _WHO_MAY),
    approximated("spec.namespaceResourceWhitelist", _WHO_MAY),
    approximated("spec.namespaceResourceBlacklist", _WHO_MAY),
    approximated("spec.sourceRepos", "a daemon with --allow-url-prefix follows nothing else; a Secret's reconcile.dev/urls says what its credentials are for", ["*"]),
    approximated("spec.sourceNamespaces", "a Sync acts with the rights of an account of its own namespace"),
    approximated("spec.description", "nobody shows it"),
    approximated("spec.orphanedResources", "what is in no Sync isn't listed; kubectl reconcile adopt writes manifests for objects that you name"),
    approximated("spec.permitOnlyProjectScopedClusters", "a daemon writes to its own cluster alone"),
    approximated("spec.roles", _ROLES),
    approximated("spec.signatureKeys", "`spec.source.git.verify` of each Sync, with the keys in a Secret or ConfigMap"),
    approximated("spec.sourceIntegrity", "`spec.source.git.verify` of each Sync, with the keys in a Secret or ConfigMap"),
    not_possible("spec.syncWindows", _WINDOW),
)  # fmt: skip

TABLES: Final = (
    KindTable(ARGOPROJ, "Application", _APPLICATION),
    KindTable(ARGOPROJ, "AppProject", _PROJECT),
)
"""The tables of Argo CD's kinds that are read."""

NOT_READ: Final = {
    (ARGOPROJ, "ApplicationSet"): "nothing generates Syncs: import the Applications that it has made from the cluster, or render them in a pipeline",
}  # fmt: skip
"""Argo CD's kinds that no Sync is made of, and why."""

SYNC_OPTIONS: Final = (
    translated("CreateNamespace=true", "`spec.createNamespace: true`"),
    translated("CreateNamespace=false", "the default"),
    translated("RespectIgnoreDifferences=true", "`from: Always` of the rules in `spec.ignore`"),
    translated("RespectIgnoreDifferences=false", "`from: Drift` of the rules in `spec.ignore`"),
    translated("Prune=false", "`spec.prune: false`"),
    translated("Prune=true", "the default"),
    translated("Prune=confirm", "`spec.maxDeletes: 0`: every deletion waits for approval"),
    translated("Delete=false", "`spec.deletionPolicy: Orphan`"),
    translated("Delete=true", "`spec.deletionPolicy`, as the finalizer of the Application says"),
    approximated("Delete=confirm", "`spec.deletionPolicy: Orphan`: when a Sync is deleted, nobody can be asked"),
    translated("Force=true", "`spec.replace: true`, for changes of immutable fields"),
    translated("Force=false", "the default"),
    translated("ServerSideApply=true", "always the case"),
    approximated("ServerSideApply=false", "objects are always applied server-side"),
    approximated("Replace=true", "objects are applied server-side, so none is too large for it"),
    translated("Replace=false", "always the case"),
    approximated("Validate=false", "the API server always validates"),
    translated("Validate=true", "always the case"),
    translated("ApplyOutOfSyncOnly=true", "always the case"),
    translated("ApplyOutOfSyncOnly=false", "only what differs is written"),
    translated("PruneLast=true", "always the case"),
    translated("PruneLast=false", "deletions come last"),
    translated("PrunePropagationPolicy=background", "always the case"),
    approximated("PrunePropagationPolicy=foreground", "deletion is in the background: what objects own goes after them"),
    approximated("PrunePropagationPolicy=orphan", "what objects own is deleted with them"),
    translated("SkipDryRunOnMissingResource=true", "always the case"),
    translated("SkipDryRunOnMissingResource=false", "objects of kinds that aren't there yet wait for their CRD"),
    translated("FailOnSharedResource=true", "always the case: an object belongs to one Sync"),
    translated("FailOnSharedResource=false", "the default"),
    translated("ClientSideApplyMigration=true", "always the case"),
    approximated("ClientSideApplyMigration=false", "fields of client-side tools are taken over, as spec.takeOver says"),
    approximated("DisableClientSideApplyMigration=true", "fields of client-side tools are taken over, as spec.takeOver says"),
)  # fmt: skip
"""Every sync option of an Application, and what happens to it."""
