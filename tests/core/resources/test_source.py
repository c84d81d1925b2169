"""Where a Sync's files come from, and what is made of them: where each field stands, and where earlier versions had it."""

import pytest

from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.source import SourceSpec, chart_settings, former_fields, path_of
from kubectl_reconcile.core.resources.sync import Sync

GIT = {"url": "https://git.example.com/shop.git"}
CHART = {"repository": "https://charts.example.com", "name": "web", "version": "1.2.3"}
NOW = {"git": GIT, "chart": CHART, "path": "prod", "helm": {"values": {"size": 1}}}
BEFORE = {"git": {**GIT, "path": "prod"}, "helm": {"chart": CHART, "values": {"size": 1}}}


def manifest(source):
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": source}}


def test_a_source_is_the_same_whether_its_fields_stand_where_they_belong_or_where_earlier_versions_had_them():
    assert SourceSpec.of(BEFORE) == SourceSpec.of(NOW)
    assert SourceSpec.of(NOW).told() == chart_settings(manifest(NOW)) == chart_settings(manifest(BEFORE))
    assert path_of(manifest(BEFORE)) == path_of(manifest(NOW)) == "prod"


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
    "neither git nor chart": (
        {"path": "a"}, "spec.source", "has no git, and neither is a chart; give spec.source.git with the url of a repository",
    ),
    "nothing": ({}, "spec.source", "has no git, and neither is a chart; give spec.source.git with the url of a repository"),
    "a chart without git": (
        {"chart": CHART}, "spec.source",
        "has no git: a chart has one beside it, where its values files are; give spec.source.git with the url of a repository",
    ),
    "a chart that says nothing": ({"git": GIT, "chart": {}}, "spec.source.chart.repository", "is required"),
    "a chart without a version": (
        {"git": GIT, "chart": {**CHART, "version": ""}}, "spec.source.chart.version", "is required",
    ),
    "a repository that isn't a URL": (
        {"git": GIT, "chart": {**CHART, "repository": "charts"}}, "spec.source.chart.repository",
        "'charts' isn't the URL of a Helm repository, such as https://charts.example.com",
    ),
    "one in the former place": (
        {"git": GIT, "helm": {"chart": {**CHART, "repository": "charts"}}}, "spec.source.helm.chart.repository",
        "'charts' isn't the URL of a Helm repository, such as https://charts.example.com",
    ),
    "a chart that isn't rendered by Helm": (
        {**NOW, "render": "Raw"}, "spec.source.render", "Raw and spec.source.chart exclude each other; keep one",
    ),
    "a misspelt field": (
        {"git": GIT, "chart": {**CHART, "digset": "x"}}, "spec.source.chart.digset", "isn't a field; did you mean digest?",
    ),
    "a field that nobody knows": (
        {"git": GIT, "bucket": {}}, "spec.source.bucket", "isn't a field; there is git, chart, path, render, helm, substitute",
    ),
    "a chart in one word": ({"git": GIT, "chart": "web"}, "spec", "has a field of another type than its CRD asks for"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_with_what_to_write(source, field, message):
    with pytest.raises(SyncSpecError) as refused:
        Sync.of(manifest(source))
    assert refused.value.field == field
    assert refused.value.message.startswith(message)
