"""Where a Sync's files come from, and what is made of them: where each field stands, and where earlier versions had it."""

import pytest

from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.source import (
    Render,
    SourceSpec,
    address_of,
    chart_settings,
    former_fields,
    has_git,
    has_oci,
    path_of,
)
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.resources.verification import VerifySpec

GIT = {"url": "https://git.example.com/shop.git"}
CHART = {"repository": "https://charts.example.com", "name": "web", "version": "1.2.3"}
OCI = {"url": "oci://registry.example.com/team/shop"}
DIGEST = "sha256:" + "ab" * 32
NOW = {"git": GIT, "chart": CHART, "path": "prod", "helm": {"values": {"size": 1}}}
BEFORE = {"git": {**GIT, "path": "prod"}, "helm": {"chart": CHART, "values": {"size": 1}}}


def manifest(source):
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": source}}


def test_a_source_is_the_same_whether_its_fields_stand_where_they_belong_or_where_earlier_versions_had_them():
    assert SourceSpec.of(BEFORE) == SourceSpec.of(NOW)
    assert SourceSpec.of(NOW).told() == chart_settings(manifest(NOW)) == chart_settings(manifest(BEFORE))
    assert path_of(manifest(BEFORE)) == path_of(manifest(NOW)) == "prod"


ALONE = {
    "chart": {**CHART, "digest": DIGEST, "secretRef": {"name": "charts"}, "interval": "5m"},
    "helm": {"values": {"size": 1}},
}


def test_a_chart_alone_says_who_is_asked_how_often_and_with_which_secret():
    found = SourceSpec.of(ALONE)
    assert (found.git, found.path, found.render, found.interval_s) == (None, ".", Render.HELM, 300.0)
    assert (found.address, found.secret, found.secrets) == ("https://charts.example.com", "charts", {"charts"})
    assert found.verify is None
    assert SourceSpec.of({"chart": CHART}).interval_s == 60.0
    assert address_of(manifest(ALONE)) == found.address
    assert not has_git(manifest(ALONE))


def test_an_artifact_has_a_path_and_says_who_is_asked_how_often_and_with_which_secret():
    written = {
        "oci": {**OCI, "secretRef": {"name": "registry"}, "interval": "5m"},
        "path": "prod",
        "helm": {"valuesFiles": ["a.yaml"]},
    }
    found = SourceSpec.of(written)
    assert (found.git, found.path, found.render, found.interval_s) == (None, "prod", Render.AUTO, 300.0)
    assert (found.address, found.secret, found.secrets) == (OCI["url"], "registry", {"registry"})
    assert found.verify is None
    assert address_of(manifest(written)) == OCI["url"]
    assert (has_oci(manifest(written)), has_git(manifest(written))) == (True, False)


def test_with_git_beside_a_chart_git_is_asked():
    git = {**GIT, "secretRef": {"name": "git"}, "webhookSecretRef": {"name": "hook"}, "interval": "5m"}
    found = SourceSpec.of({**ALONE, "git": git, "chart": {**CHART, "secretRef": {"name": "charts"}}})
    assert (found.address, found.secret, found.interval_s) == (GIT["url"], "git", 300.0)
    assert found.secrets == {"git", "hook", "charts"}
    assert address_of(manifest(NOW)) == GIT["url"]
    assert has_git(manifest(NOW))


PUSHED = {**CHART, "repository": "oci://registry.example.com/charts"}
VERIFY = {"verify": {"secretRef": {"name": "keys"}}}
SIGNED = {
    "commits": ({"git": {**GIT, **VERIFY}}, "spec.source.git.verify"),
    "an artifact": ({"oci": {**OCI, **VERIFY}}, "spec.source.oci.verify"),
    "commits beside a chart": ({**NOW, "git": {**GIT, **VERIFY}}, "spec.source.git.verify"),
    "a chart": ({"chart": {**PUSHED, **VERIFY}}, "spec.source.chart.verify"),
}


@pytest.mark.parametrize(("source", "field"), SIGNED.values(), ids=SIGNED)
def test_whose_signatures_count_is_said_where_it_comes_from(source, field):
    found = SourceSpec.of(source)
    assert (found.verify, found.verify_field) == (VerifySpec("Secret", "keys"), field)
    assert found.keys == (found.verify,)


def test_a_chart_beside_git_says_itself_whose_signatures_count():
    found = SourceSpec.of({**NOW, "chart": {**PUSHED, **VERIFY}})
    assert (found.verify, found.verify_field) == (None, "spec.source.git.verify")
    assert found.chart.verify == VerifySpec("Secret", "keys")
    assert found.keys == (VerifySpec("Secret", "keys"),)
    both = SourceSpec.of({**NOW, "git": {**GIT, **VERIFY}, "chart": {**PUSHED, **VERIFY}})
    assert len(both.keys) == 2


def test_of_a_chart_of_a_helm_repository_nothing_can_be_verified():
    assert SourceSpec.of({"chart": CHART}).verify_field == ""


def test_whose_signatures_count_is_none_of_the_settings_of_a_chart():
    """Else whoever goes back to a state from before would go back to no signatures."""
    signed = {"chart": {**PUSHED, **VERIFY}}
    assert SourceSpec.of(signed).told() == chart_settings(manifest(signed)) == {"chart": PUSHED}


def test_how_often_a_chart_is_looked_at_is_none_of_its_settings():
    """Else whoever changes it had another chart rendered, and another row of history."""
    assert SourceSpec.of(ALONE).told() == chart_settings(manifest(ALONE))
    assert "interval" not in SourceSpec.of(ALONE).told()["chart"]


def test_a_chart_in_its_former_place_needs_no_git_either():
    assert SourceSpec.of({"helm": {"chart": CHART}}) == SourceSpec.of({"chart": CHART})


FORMER = {
    "both": (
        BEFORE,
        "helm.chart is spec.source.chart now and git.path is spec.source.path now",
    ),
    "the chart": ({"git": GIT, "helm": {"chart": CHART}}, "helm.chart is spec.source.chart now"),
    "the path": ({"git": {**GIT, "path": "prod"}}, "git.path is spec.source.path now"),
}


@pytest.mark.parametrize(("source", "message"), FORMER.values(), ids=FORMER)
def test_a_field_in_its_former_place_is_one_warning_that_names_the_new_one(source, message):
    [told] = Sync.of(manifest(source)).former_fields
    assert (told.path, told.message, told.is_error) == ("spec.source", message, False)
    assert told.hint.startswith("move what it says there")


UNTOLD = {
    "fields that are where they belong": NOW,
    "the default that earlier versions had the server write": {"git": {**GIT, "path": "."}, "path": "prod"},
    "a chart that isn't one": {"git": GIT, "helm": {"chart": None}},
}


@pytest.mark.parametrize("source", UNTOLD.values(), ids=UNTOLD)
def test_nothing_is_told_of(source):
    assert former_fields(source) == Sync.of(manifest(source)).former_fields == ()


def test_the_path_that_earlier_versions_had_the_server_write_gives_way():
    assert SourceSpec.of({"git": {**GIT, "path": "."}, "path": "prod"}).path == "prod"
    assert SourceSpec.of({"git": {**GIT, "path": "."}}).path == SourceSpec.of({"git": GIT}).path == "."


REFUSED = {
    "a chart in both places": (
        {**NOW, "helm": {"chart": CHART}}, "spec.source.helm.chart", "is what spec.source.chart says; keep that, and remove this",
    ),
    "a path in both places": (
        {"git": {**GIT, "path": "a"}, "path": "b"}, "spec.source.git.path",
        "'a' isn't what spec.source.path says; keep that, and remove this",
    ),
    "neither git nor chart": ({"path": "a"}, "spec.source", "says nowhere to get anything from; give git, oci or chart"),
    "nothing": ({}, "spec.source", "says nowhere to get anything from; give git, oci or chart"),
    "a path of a chart alone": (
        {"chart": CHART, "path": "prod"}, "spec.source.path", "is a path in a Git repository, and there is no spec.source.git",
    ),
    "values files of a chart alone": (
        {"chart": CHART, "helm": {"valuesFiles": ["values.yaml"]}}, "spec.source.helm.valuesFiles",
        "are files of a Git repository, and there is no spec.source.git; give the values in spec.source.helm.values",
    ),
    "a range of versions beside a branch": (
        {"git": {**GIT, "branch": "main", "semver": "1.x"}}, "spec.source.git", "branch and semver are both set; keep one",
    ),
    "a range of versions beside a tag": (
        {"git": {**GIT, "tag": "v1", "semver": "1.x"}}, "spec.source.git", "tag and semver are both set; keep one",
    ),
    "a range of versions beside a commit": (
        {"git": {**GIT, "semver": "1.x", "commit": "ab" * 20}}, "spec.source.git", "semver and commit are both set; keep one",
    ),
    "a range that is none": (
        {"git": {**GIT, "semver": "newest"}}, "spec.source.git.semver", "has 'newest', which is no version or bound",
    ),
    "an artifact beside Git": ({"git": GIT, "oci": OCI}, "spec.source.oci", "and git exclude each other; keep one"),
    "an artifact beside a chart": ({"chart": CHART, "oci": OCI}, "spec.source.oci", "and chart exclude each other; keep one"),
    "an artifact at no time": ({"oci": {**OCI, "interval": "0s"}}, "spec.source.oci.interval", "a duration can't be zero"),
    "manifests of a chart alone": (
        {"chart": CHART, "render": "Raw"}, "spec.source.render", "Raw and spec.source.chart exclude each other; keep one",
    ),
    "a chart alone that says in words how often": (
        {"chart": {**CHART, "interval": "often"}}, "spec.source.chart.interval", "'often' isn't a duration",
    ),
    "how often a chart is looked at that has Git beside it": (
        {"git": GIT, "chart": {**CHART, "interval": "5m"}}, "spec.source.chart.interval",
        "is for a chart without Git; spec.source.git.interval says it here",
    ),
    "a chart that says nothing": ({"git": GIT, "chart": {}}, "spec.source.chart.repository", "is required"),
    "a chart without a version": (
        {"git": GIT, "chart": {**CHART, "version": ""}}, "spec.source.chart.version", "is required",
    ),
    "a repository that isn't a URL": (
        {"git": GIT, "chart": {**CHART, "repository": "charts"}}, "spec.source.chart.repository",
        "'charts' isn't the URL of a Helm repository, such as https://charts.example.com or oci://registry.example.com/charts",
    ),
    "one in the former place": (
        {"git": GIT, "helm": {"chart": {**CHART, "repository": "charts"}}}, "spec.source.helm.chart.repository",
        "'charts' isn't the URL of a Helm repository, such as https://charts.example.com or oci://registry.example.com/charts",
    ),
    "a chart that isn't rendered by Helm": (
        {**NOW, "render": "Raw"}, "spec.source.render", "Raw and spec.source.chart exclude each other; keep one",
    ),
    "a misspelt field": (
        {"git": GIT, "chart": {**CHART, "digset": "x"}}, "spec.source.chart.digset", "isn't a field; did you mean digest?",
    ),
    "a field that nobody knows": (
        {"git": GIT, "bucket": {}}, "spec.source.bucket", "isn't a field; there is git, oci, chart, path, render, helm, kustomize, substitute",
    ),
    "signatures of a chart of a Helm repository": (
        {"chart": {**CHART, "verify": {"secretRef": {"name": "keys"}}}}, "spec.source.chart.verify",
        "is for charts of registries (oci://…): of a chart of a Helm repository over HTTP no signature can be verified, only its digest",
    ),
    "a chart that is signed by nobody's key": (
        {"chart": {**CHART, "verify": {}}}, "spec.source.chart.verify", "secretRef and configMapRef exclude each other; give one",
    ),
    "a chart in one word": ({"git": GIT, "chart": "web"}, "spec", "has a field of another type than its CRD asks for"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_what_to_write(source, field, message):
    with pytest.raises(SyncSpecError) as refused:
        Sync.of(manifest(source))
    assert refused.value.field == field
    assert refused.value.message.startswith(message)
