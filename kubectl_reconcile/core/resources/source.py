"""``spec.source``: where desired state comes from, and beside that what is made of it.

*Where* is a Git repository, and may be a chart of a Helm repository beside it; *what* is the path, the way in which files become objects, and what they are rendered with.
Who only needs to know whether a Sync follows something, how often it is asked, or how it is rendered, asks this; what is only Git's is in ``git``.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.fields import SyncSpecError, duration_s, one_of
from kubectl_reconcile.core.resources.helm import NO_HELM, HelmSpec, HelmSpecError
from kubectl_reconcile.core.resources.substitute import NO_SUBSTITUTION, SubstituteSpec, SubstituteSpecError
from kubectl_reconcile.core.resources.verification import VerifyMode, VerifySpec


class Render(StrEnum):
    """``spec.source.render``: how the files at the path become objects."""

    AUTO = "Auto"
    """A folder with a kustomization file or a chart is rendered, any other is read as manifests."""
    RAW = "Raw"
    """Files are manifests, also beside a kustomization file or a chart's."""
    KUSTOMIZE = "Kustomize"
    """The folder is an overlay, and it is a problem if it isn't."""
    HELM = "Helm"
    """The folder is a chart, and it is a problem if it isn't."""


class GitSpec(Struct, frozen=True):
    """``spec.source.git``: the repository to follow. At most one of *branch*, *tag* and *commit* is set."""

    url: str
    branch: str = ""
    tag: str = ""
    commit: str = ""
    secret: str = ""
    webhook_secret: str = ""
    verify: VerifySpec | None = None

    @classmethod
    def of(cls, fields: Manifest) -> Self:
        """Read it from its wire form.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        refs = [name for name in ("branch", "tag", "commit") if fields.get(name)]
        if len(refs) > 1:
            raise SyncSpecError("spec.source.git", f"{' and '.join(refs)} are both set; keep one")
        if not fields.get("url"):
            raise SyncSpecError("spec.source.git.url", "is required")
        return cls(
            url=fields["url"],
            branch=fields.get("branch", ""),
            tag=fields.get("tag", ""),
            commit=fields.get("commit", ""),
            secret=(fields.get("secretRef") or {}).get("name", ""),
            webhook_secret=(fields.get("webhookSecretRef") or {}).get("name", ""),
            verify=_verify(fields),
        )


class SourceSpec(Struct, frozen=True):
    """``spec.source``: *git* and *chart* are where it comes from, and the rest is what is made of it.

    A *chart* of a Helm repository stands in the folder at *path* as if its archive were a folder there; paths of values files are from that folder then.
    """

    git: GitSpec
    chart: ChartSpec | None = None
    path: str = "."
    interval_s: float = 60.0
    render: Render = Render.AUTO
    helm: HelmSpec = NO_HELM
    substitute: SubstituteSpec = NO_SUBSTITUTION

    @classmethod
    def of(cls, fields: Manifest) -> Self:
        """Read it from its wire form.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        git, helm = fields["git"], fields.get("helm") or {}
        chart = ChartSpec.of(helm["chart"], "spec.source.helm.chart") if helm.get("chart") else None
        return cls(
            git=GitSpec.of(git),
            chart=chart,
            path=git.get("path", "."),
            interval_s=duration_s(git.get("interval", "1m"), "spec.source.git.interval"),
            render=_render(fields, chart),
            helm=_helm(helm),
            substitute=_substitute(fields),
        )

    def told(self) -> dict[str, Any]:
        """Return what it says of charts, in wire form and without what is as it would be anyway: no revision tells that."""
        chart = {"chart": self.chart.told()} if self.chart else {}
        return {**chart, **self.helm.told()}


def _render(fields: Manifest, chart: ChartSpec | None) -> Render:
    """Return how files become objects; with a chart of a repository there is but one way."""
    asked = one_of(Render, fields, "render", Render.AUTO, "spec.source")
    if chart is None:
        return asked
    if asked not in {Render.AUTO, Render.HELM}:
        raise SyncSpecError("spec.source.render", f"{asked} and spec.source.helm.chart exclude each other; keep one")
    return Render.HELM


def _helm(fields: Manifest) -> HelmSpec:
    try:
        return HelmSpec.of(fields) if fields else NO_HELM
    except HelmSpecError as error:
        raise SyncSpecError(f"spec.source.helm.{error.field}", error.message) from None


def _substitute(fields: Manifest) -> SubstituteSpec:
    asked = fields.get("substitute")
    try:
        return SubstituteSpec.of(asked) if asked else NO_SUBSTITUTION
    except SubstituteSpecError as error:
        raise SyncSpecError(f"spec.source.substitute.{error.field}", error.message) from None


def _verify(git: Manifest) -> VerifySpec | None:
    found, field = git.get("verify"), "spec.source.git.verify"
    if found is None:
        return None
    named = {kind: name for key, kind in _KEPT_IN.items() if (name := (found.get(key) or {}).get("name"))}
    if len(named) != 1:
        raise SyncSpecError(field, f"{' and '.join(_KEPT_IN)} exclude each other; give one, which holds the keys")
    [(kind, name)] = named.items()
    text = found.get("mode", VerifyMode.COMMIT)
    try:
        mode = VerifyMode(text)
    except ValueError:
        raise SyncSpecError(f"{field}.mode", f"{text!r} isn't one of {', '.join(VerifyMode)}") from None
    return VerifySpec(kind, name, mode)


_KEPT_IN = {"secretRef": "Secret", "configMapRef": "ConfigMap"}
"""Where the keys may be whose signatures are trusted."""
