"""Charts of Helm repositories: which one a Sync names."""

import pytest

from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.fields import SyncSpecError

AT = "spec.source.chart"
DIGEST = f"sha256:{'0a' * 32}"
CHART = {"repository": "https://charts.example.com/stable/", "name": "web", "version": "1.2.3"}


def test_a_chart_of_a_repository_is_one_version_by_its_digest():
    pin = ChartSpec.of({**CHART, "digest": DIGEST, "secretRef": {"name": "charts"}}, AT)
    assert pin == ChartSpec("https://charts.example.com/stable", "web", "1.2.3", DIGEST, "charts")
    assert (pin.file, str(pin)) == ("web-1.2.3.tgz", "chart web 1.2.3 of https://charts.example.com/stable")


@pytest.mark.parametrize("more", [{}, {"digest": "", "secretRef": None}, {"secretRef": {}}], ids=str)
def test_a_chart_may_be_without_a_digest_and_without_credentials(more):
    assert ChartSpec.of({**CHART, **more}, AT) == ChartSpec("https://charts.example.com/stable", "web", "1.2.3", "", "")


REPOSITORY = (
    "isn't the URL of a Helm repository, such as https://charts.example.com or oci://registry.example.com/charts"
)
NAME = "isn't a name of a chart: lower-case letters, digits, - and ."
VERSION = "isn't an exact version, such as 1.2.3"
NO_DIGEST = "isn't a digest: write sha256: and the 64 hexadecimal digits that sha256sum prints for the .tgz"
REFUSED = {
    "no repository": ({"repository": None}, "spec.source.chart.repository", "is required"),
    "an empty name": ({"name": ""}, "spec.source.chart.name", "is required"),
    "no version": ({"version": None}, "spec.source.chart.version", "is required"),
    "a registry without a name": (
        {"repository": "oci://charts.example.com"}, "spec.source.chart.repository",
        "oci://charts.example.com has no proper name of a repository: lower-case letters, digits, -, _ and . between slashes",
    ),
    "a registry with a tag": (
        {"repository": "oci://charts.example.com/web:1"}, "spec.source.chart.repository",
        "oci://charts.example.com/web:1 has a tag or a digest, which are fields of their own",
    ),
    "a password in the URL": ({"repository": "https://a:b@c.de"}, "spec.source.chart.repository", f"'https://a:b@c.de' {REPOSITORY}"),
    "a path as a name": ({"name": "../web"}, "spec.source.chart.name", f"'../web' {NAME}"),
    "a name that is no text": ({"name": ["web"]}, "spec.source.chart.name", f"\"['web']\" {NAME}"),
    "a long name, which isn't told in full": ({"name": "w" * 254}, "spec.source.chart.name", f"'{'w' * 80}' {NAME}"),
    "a range of versions": ({"version": "^1.2.0"}, "spec.source.chart.version", f"'^1.2.0' {VERSION}"),
    "a version that is longer than a path": ({"version": "1.2.3-" + "a" * 1019}, "spec.source.chart.version", f"'1.2.3-{'a' * 74}' {VERSION}"),
    "a digest of another kind": ({"digest": "md5:00"}, "spec.source.chart.digest", NO_DIGEST),
    "a digest that is too short": ({"digest": DIGEST[:-1]}, "spec.source.chart.digest", NO_DIGEST),
    "a digest that is no text": ({"digest": 1}, "spec.source.chart.digest", NO_DIGEST),
}  # fmt: skip


@pytest.mark.parametrize(("more", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_chart_is_refused_by_its_field(more, field, message):
    with pytest.raises(SyncSpecError) as error:
        ChartSpec.of({**CHART, **more}, AT)
    assert (error.value.field, error.value.message) == (field, message)


def test_names_and_versions_may_be_as_long_as_a_path_allows():
    assert ChartSpec.of({**CHART, "name": "w" * 253}, AT).name == "w" * 253
    longest = "1.2.3-" + "a" * 1018
    assert ChartSpec.of({**CHART, "version": longest}, AT).version == longest


TOLD = {
    "by digest": {"repository": "https://charts.example.com", "name": "web", "version": "1.2.3", "digest": DIGEST},
    "with credentials": {
        "repository": "https://charts.example.com", "name": "web", "version": "1.2.3", "secretRef": {"name": "charts"}
    },
}  # fmt: skip


@pytest.mark.parametrize("wire", TOLD.values(), ids=TOLD)
def test_what_is_told_of_a_chart_is_what_was_read(wire):
    assert ChartSpec.of(wire, AT).told() == wire
