"""``spec.source``: where desired state comes from, and beside that what is made of it.

*Where* is a Git repository, an artifact of a registry, or a chart; beside a chart may be Git, where its values files are then. *What* is the path, the way in which files become objects,
and what they are rendered with. Who only needs to know whether a Sync follows something, who is asked and how often, or how it is rendered, asks this; what is only Git's is
in ``git``.

Pure: a typed view on wire JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest, Problem, Severity, map_at
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION_SPEC, DecryptionSpec, DecryptionSpecError
from kubectl_reconcile.core.resources.fields import SyncSpecError, check_fields, duration_s, one_of
from kubectl_reconcile.core.resources.helm import NO_HELM, HelmSpec, HelmSpecError
from kubectl_reconcile.core.resources.kustomize import NO_KUSTOMIZE, KustomizeSpec, KustomizeSpecError
from kubectl_reconcile.core.resources.oci.spec import OciSpec
from kubectl_reconcile.core.resources.semver import RangeError, VersionRange
from kubectl_reconcile.core.resources.substitute import NO_SUBSTITUTION, Holder, SubstituteSpec, SubstituteSpecError
from kubectl_reconcile.core.resources.verification import VerifySpec


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
    """``spec.source.git``: the repository to follow. At most one of *branch*, *tag*, *semver* and *commit* is set."""

    url: str
    branch: str = ""
    tag: str = ""
    commit: str = ""
    secret: str = ""
    webhook_secret: str = ""
    verify: VerifySpec | None = None
    semver: str = ""

    @classmethod
    def of(cls, fields: Manifest) -> Self:
        """Read it from its wire form.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        refs = [name for name in ("branch", "tag", "semver", "commit") if fields.get(name)]
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
            verify=VerifySpec.of(fields.get("verify"), "spec.source.git.verify", modes=True),
            semver=_semver(fields),
        )


class SourceSpec(Struct, frozen=True):
    """``spec.source``: *git*, *oci* and *chart* are where it comes from, one of them, or *git* and *chart*; the rest is what is made of it.

    A *chart* of a Helm repository stands in the folder at *path* as if its archive were a folder there; paths of values files are from that folder then.
    """

    git: GitSpec | None = None
    chart: ChartSpec | None = None
    path: str = "."
    interval_s: float = 60.0
    render: Render = Render.AUTO
    helm: HelmSpec = NO_HELM
    kustomize: KustomizeSpec = NO_KUSTOMIZE
    substitute: SubstituteSpec = NO_SUBSTITUTION
    oci: OciSpec | None = None
    decryption: DecryptionSpec = NO_DECRYPTION_SPEC

    @classmethod
    def of(cls, fields: Manifest) -> Self:
        """Read it from its wire form.

        Raises:
            SyncSpecError: a field is malformed; it names the field.
        """
        check_fields(fields, _FIELDS, "spec.source")
        git, oci, chart = fields.get("git"), fields.get("oci"), _chart(fields)
        if git is None and oci is None and chart is None:
            raise SyncSpecError("spec.source", "says nowhere to get anything from; give git, oci or chart")
        if oci is not None and (git is not None or chart is not None):
            raise SyncSpecError(
                "spec.source.oci", f"and {'git' if git is not None else 'chart'} exclude each other; keep one"
            )
        found = cls(
            git=None if git is None else GitSpec.of(git),
            chart=chart,
            path=_path(fields, git or {}),
            interval_s=_interval_s(fields),
            render=_render(fields, chart),
            helm=_helm(fields.get("helm") or {}),
            kustomize=_kustomize(fields.get("kustomize") or {}),
            substitute=_substitute(fields),
            oci=None if oci is None else OciSpec.of(oci),
            decryption=_decryption(fields),
        )
        if git is None and oci is None:
            _check_alone(found)
        return found

    @property
    def address(self) -> str:
        """The URL of who is asked what there is to apply: the Git repository, that of an artifact, or that of a chart alone."""
        return self.git.url if self.git else self.oci.url if self.oci else self.chart.repository if self.chart else ""

    @property
    def secret(self) -> str:
        """The name of the Secret with credentials for that address; empty where there is none."""
        return (self.git or self.oci or self.chart or _NOBODY).secret

    @property
    def verify(self) -> VerifySpec | None:
        """What must be signed of what it comes from; None where nothing has to be, or can be. A chart with Git beside it has its own."""
        return (self.git or self.oci or self.chart or _NOBODY).verify

    @property
    def verify_field(self) -> str:
        """The field that says so; empty where nothing of it can be verified."""
        place = "git" if self.git else "oci" if self.oci else "chart" if self.chart and self.chart.registry else ""
        return f"spec.source.{place}.verify" if place else ""

    @property
    def keys(self) -> tuple[VerifySpec, ...]:
        """All that say whose signatures count, of whatever it comes from."""
        return tuple(each.verify for each in (self.git, self.oci, self.chart) if each and each.verify)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of all Secrets that say how repositories are reached, or by whom, and with which keys files of theirs are decrypted."""
        git = (self.git.secret, self.git.webhook_secret) if self.git else ()
        others = (each.secret for each in (self.oci, self.chart) if each is not None)
        return frozenset(name for name in (*git, *others, self.decryption.secret) if name)

    @property
    def holders(self) -> tuple[tuple[Holder, str], ...]:
        """The ConfigMaps and Secrets that hold values of variables or of a chart, each once, by kind and name."""
        return tuple(sorted({*self.substitute.holders, *self.helm.holders}))

    def told(self) -> dict[str, Any]:
        """Return what it says of charts and of patches, in wire form and without what is as it would be anyway: no revision tells that."""
        chart = {"chart": self.chart.told()} if self.chart else {}
        kustomize = {"kustomize": told} if (told := self.kustomize.told()) else {}
        return {**chart, **self.helm.told(), **kustomize}


BESIDE_CHART: Final = ("interval", "verify")
"""What stands beside a chart and doesn't decide which one it is, so no revision has it: whoever goes back to another chart leaves it."""
_NOBODY: Final = OciSpec("")
_FIELDS: Final = ("git", "oci", "chart", "path", "render", "helm", "kustomize", "substitute", "decryption")


def former_fields(source: Manifest) -> tuple[Problem, ...]:
    """Return a warning that tells which fields of ``spec.source`` stand where earlier versions had them, and where they belong; nothing where none does."""
    moved = [f"{was} is {now} now" for was, now in _moved(source)]
    if not moved:
        return ()
    hint = "move what it says there as it is; nothing else changes by that"
    return (Problem("spec.source", 0, " and ".join(moved), hint, Severity.WARNING, in_source=False),)


def _moved(source: Manifest) -> Iterator[tuple[str, str]]:
    if map_at(source, "helm", "chart"):
        yield "helm.chart", "spec.source.chart"
    if (map_at(source, "git").get("path") or ".") != ".":  # earlier versions had the server write the default
        yield "git.path", "spec.source.path"


def path_of(sync: Manifest) -> str:
    """Return the path that the manifest of a Sync names, whatever else is in it."""
    source = map_at(sync, "spec", "source")
    return str(source.get("path") or map_at(source, "git").get("path") or ".")


def has_git(sync: Manifest) -> bool:
    """Tell whether the manifest of a Sync names a Git repository."""
    return bool(map_at(sync, "spec", "source", "git"))


def has_oci(sync: Manifest) -> bool:
    """Tell whether the manifest of a Sync names an artifact of a registry."""
    return bool(map_at(sync, "spec", "source", "oci"))


def address_of(sync: Manifest) -> str:
    """Return the URL that the manifest of a Sync names, as ``SourceSpec.address`` has it; empty where it names none."""
    repository = map_at(chart_settings(sync), "chart").get("repository")
    urls = (map_at(sync, "spec", "source", place).get("url") for place in ("git", "oci"))
    return str(next(filter(None, urls), repository) or "")


def chart_settings(sync: Manifest) -> dict[str, Any]:
    """Return what the manifest of a Sync says of a chart and of patches, in the form of ``SourceSpec.told``, wherever it stands."""
    source = map_at(sync, "spec", "source")
    chart = {name: value for name, value in map_at(source, "chart").items() if name not in BESIDE_CHART}
    beside = {name: found for name, found in (("chart", chart), ("kustomize", map_at(source, "kustomize"))) if found}
    return {**map_at(source, "helm"), **beside}


def _chart(fields: Manifest) -> ChartSpec | None:
    """Return the chart, from where it belongs or from where earlier versions had it."""
    chart, former = fields.get("chart"), (fields.get("helm") or {}).get("chart")
    if chart is not None and former:
        raise SyncSpecError("spec.source.helm.chart", "is what spec.source.chart says; keep that, and remove this")
    if former:
        return ChartSpec.of(former, "spec.source.helm.chart")
    if chart is None:
        return None
    known = ("repository", "name", "version", "digest", "secretRef", *BESIDE_CHART)
    check_fields(chart, known, "spec.source.chart")
    return ChartSpec.of(chart, "spec.source.chart")


def _interval_s(fields: Manifest) -> float:
    """Return how often the source is looked at, as it says where it comes from: of a chart with Git beside it, Git."""
    git, oci, chart = fields.get("git"), fields.get("oci"), fields.get("chart") or {}
    if oci is not None:
        return duration_s(oci.get("interval", "1m"), "spec.source.oci.interval")
    if git is None:
        return duration_s(chart.get("interval", "1m"), "spec.source.chart.interval")
    if chart.get("interval"):
        raise SyncSpecError(
            "spec.source.chart.interval", "is for a chart without Git; spec.source.git.interval says it here"
        )
    return duration_s(git.get("interval", "1m"), "spec.source.git.interval")


def _check_alone(found: SourceSpec) -> None:
    """Return if a source without Git names no files of a repository.

    Raises:
        SyncSpecError: it does.
    """
    if found.path != ".":
        raise SyncSpecError(
            "spec.source.path", "is a path in a Git repository, and there is no spec.source.git; remove it"
        )
    if found.kustomize.components:
        raise SyncSpecError(
            "spec.source.kustomize.components",
            "are folders of a Git repository, and there is no spec.source.git; give patches instead",
        )
    if found.helm.values_files:
        raise SyncSpecError(
            "spec.source.helm.valuesFiles",
            "are files of a Git repository, and there is no spec.source.git; give the values in spec.source.helm.values",
        )


def _path(fields: Manifest, git: Manifest) -> str:
    """Return the path, from where it belongs or from where earlier versions had it."""
    path: str = fields.get("path") or ""
    former: str = git.get("path") or "."
    if path and former not in {".", path}:
        raise SyncSpecError(
            "spec.source.git.path", f"{former!r} isn't what spec.source.path says; keep that, and remove this"
        )
    return path or former


def _render(fields: Manifest, chart: ChartSpec | None) -> Render:
    """Return how files become objects; with a chart of a repository there is but one way."""
    asked = one_of(Render, fields, "render", Render.AUTO, "spec.source")
    if chart is None:
        return asked
    if asked not in {Render.AUTO, Render.HELM}:
        raise SyncSpecError("spec.source.render", f"{asked} and spec.source.chart exclude each other; keep one")
    return Render.HELM


def _helm(fields: Manifest) -> HelmSpec:
    try:
        return HelmSpec.of(fields) if fields else NO_HELM
    except HelmSpecError as error:
        raise SyncSpecError(f"spec.source.helm.{error.field}", error.message) from None


def _kustomize(fields: Manifest) -> KustomizeSpec:
    try:
        return KustomizeSpec.of(fields) if fields else NO_KUSTOMIZE
    except KustomizeSpecError as error:
        raise SyncSpecError(f"spec.source.kustomize.{error.field}", error.message) from None


def _decryption(fields: Manifest) -> DecryptionSpec:
    asked = fields.get("decryption")
    try:
        return DecryptionSpec.of(asked) if asked else NO_DECRYPTION_SPEC
    except DecryptionSpecError as error:
        raise SyncSpecError(f"spec.source.decryption.{error.field}", error.message) from None


def _substitute(fields: Manifest) -> SubstituteSpec:
    asked = fields.get("substitute")
    try:
        return SubstituteSpec.of(asked) if asked else NO_SUBSTITUTION
    except SubstituteSpecError as error:
        raise SyncSpecError(f"spec.source.substitute.{error.field}", error.message) from None


def _semver(git: Manifest) -> str:
    """Return the range of versions of which the newest tag is followed; empty for none."""
    text, field = git.get("semver") or "", "spec.source.git.semver"
    if not isinstance(text, str):
        raise SyncSpecError(field, "isn't text")
    try:
        return VersionRange.of(text).text if text else ""
    except RangeError as error:
        raise SyncSpecError(field, str(error)) from None
