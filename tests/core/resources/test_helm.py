"""What a Sync says of how its chart is rendered."""

import pytest

from kubectl_reconcile.core.resources.helm import HelmSpec, HelmSpecError, LookupPolicy, Unstable, ValuesFrom
from kubectl_reconcile.core.resources.substitute import Holder, ValueSource, ValueType


def test_all_fields_are_read_as_users_write_them():
    wire = {
        "releaseName": "web.1", "namespace": "shop", "valuesFiles": ["a/./b.yaml", "../c.yaml"], "ignoreMissingValuesFiles": True,
        "values": {"b": 1, "a": {"c": None}}, "skipCRDs": True, "kubeVersion": "v1.34.2", "apiVersions": ["v1", "apps/v1/Deployment"],
        "unstable": "Render", "lookup": "Cluster",
        "valuesFrom": [
            {"kind": "ConfigMap", "name": "cluster"},
            {"kind": "Secret", "name": "db", "valuesKey": "port", "targetPath": "db.ports[0].port", "type": "Integer", "optional": True},
        ],
    }  # fmt: skip
    assert HelmSpec.of(wire) == HelmSpec(
        release_name="web.1",
        namespace="shop",
        values_files=("a/b.yaml", "../c.yaml"),
        ignore_missing=True,
        values='{"a":{"c":null},"b":1}',
        skip_crds=True,
        kube_version="v1.34.2",
        api_versions=("v1", "apps/v1/Deployment"),
        unstable=Unstable.RENDER,
        lookup=LookupPolicy.CLUSTER,
        values_from=(
            ValuesFrom(ValueSource(Holder.CONFIG_MAP, "cluster", "values.yaml")),
            ValuesFrom(ValueSource(Holder.SECRET, "db", "port"), "db.ports[0].port", ValueType.INTEGER, optional=True),
        ),
    )
    assert HelmSpec.of(wire).told()["valuesFrom"] == wire["valuesFrom"]
    assert HelmSpec.of(wire).holders == ((Holder.CONFIG_MAP, "cluster"), (Holder.SECRET, "db"))


def test_what_isnt_said_has_its_default():
    assert HelmSpec.of({}) == HelmSpec()
    assert HelmSpec.of({"values": None, "valuesFiles": None, "valuesFrom": None}) == HelmSpec()


LONG = "a release: up to 53 lower-case letters, digits, hyphens and dots, a letter or digit at both ends"
NO_FILE, ODD_VERSION = (
    "isn't a path of up to 1024 characters",
    "isn't an API version such as apps/v1 or apps/v1/Deployment",
)
MALFORMED = {
    "a release in capitals": ({"releaseName": "Web"}, "releaseName", f"'Web' can't be {LONG}"),
    "a long release": ({"releaseName": "w" * 54}, "releaseName", f"'{'w' * 54}' can't be {LONG}"),
    "a long namespace": ({"namespace": "n" * 64}, "namespace", f"'{'n' * 64}' isn't a name of a namespace"),
    "a namespace that isn't told in full": ({"namespace": "N" * 99}, "namespace", f"'{'N' * 80}' isn't a name of a namespace"),
    "a version of Kubernetes": ({"kubeVersion": "1"}, "kubeVersion", "'1' isn't a version such as 1.34 or v1.34.2"),
    "files that are no list": ({"valuesFiles": "a"}, "valuesFiles", "isn't a list"),
    "too many files": ({"valuesFiles": ["a"] * 33}, "valuesFiles", "has more than 32 entries"),
    "a file that is no text": ({"valuesFiles": ["a", 1]}, "valuesFiles[1]", NO_FILE),
    "a file without a name": ({"valuesFiles": [""]}, "valuesFiles[0]", NO_FILE),
    "a long path": ({"valuesFiles": ["a" * 1025]}, "valuesFiles[0]", NO_FILE),
    "a path that nobody can read": ({"valuesFiles": ["a\x1b"]}, "valuesFiles[0]", NO_FILE),
    "a URL": (
        {"valuesFiles": ["https://a/b"]}, "valuesFiles[0]",
        "is a URL, and nothing is fetched while rendering: commit the file and give its path",
    ),
    "a file of the machine": ({"valuesFiles": ["/etc/a"]}, "valuesFiles[0]", "must be relative to the chart's folder"),
    "an API version": ({"apiVersions": ["v1", "a b"]}, "apiVersions[1]", ODD_VERSION),
    "an API version that is no text": ({"apiVersions": [1]}, "apiVersions[0]", ODD_VERSION),
    "a long API version": ({"apiVersions": ["v" * 253]}, "apiVersions[0]", ODD_VERSION),
    "too many API versions": ({"apiVersions": ["v1"] * 201}, "apiVersions", "has more than 200 entries"),
    "entries that are no list": ({"valuesFrom": "db"}, "valuesFrom", "isn't a list"),
    "too many entries": ({"valuesFrom": [{"kind": "Secret", "name": "a"}] * 33}, "valuesFrom", "has more than 32 entries"),
    "an entry that is no map": ({"valuesFrom": ["db"]}, "valuesFrom[0]", "isn't a map with kind and name"),
    "another kind": (
        {"valuesFrom": [{"kind": "Pod", "name": "a"}]}, "valuesFrom[0].kind", "'Pod' isn't one of ConfigMap, Secret",
    ),
    "no kind": ({"valuesFrom": [{"name": "a"}]}, "valuesFrom[0].kind", "'' isn't one of ConfigMap, Secret"),
    "a name that nothing has": (
        {"valuesFrom": [{"kind": "Secret", "name": "a/b"}]}, "valuesFrom[0].name", "'a/b' isn't a name of a Secret",
    ),
    "a key that nothing has": (
        {"valuesFrom": [{"kind": "Secret", "name": "a", "valuesKey": "a b"}]}, "valuesFrom[0].valuesKey",
        "'a b' isn't a key of a Secret",
    ),
    "a place that can't be read": (
        {"valuesFrom": [{"kind": "Secret", "name": "a", "targetPath": "a..b"}]}, "valuesFrom[0].targetPath",
        "'a..b' isn't a place of a value, such as db.password or hosts[0].name",
    ),
    "a place in a long list": (
        {"valuesFrom": [{"kind": "Secret", "name": "a", "targetPath": "a[1000]"}]}, "valuesFrom[0].targetPath",
        "'a[1000]' isn't a place of a value, such as db.password or hosts[0].name",
    ),
    "a type of a map": (
        {"valuesFrom": [{"kind": "Secret", "name": "a", "type": "Integer"}]}, "valuesFrom[0].type",
        "is for the one value at a targetPath; a map of values says its types itself",
    ),
    "another type": (
        {"valuesFrom": [{"kind": "Secret", "name": "a", "targetPath": "a", "type": "Date"}]}, "valuesFrom[0].type",
        "'Date' isn't one of String, Integer, Number, Boolean",
    ),
    "values that are a list": ({"values": []}, "values", "isn't a map"),
    "large values": (
        {"values": {"a": "x" * (256 * 1024 - 7)}}, "values",
        "is larger than 256 KiB; put the values into a file and name it in valuesFiles",
    ),
    "another word for unstable fields": ({"unstable": "Never"}, "unstable", "'Never' isn't one of Keep, Render, Fail"),
    "another word for lookups": ({"lookup": "cluster"}, "lookup", "'cluster' isn't one of Empty, Cluster"),
}  # fmt: skip


@pytest.mark.parametrize(("wire", "field", "message"), MALFORMED.values(), ids=MALFORMED)
def test_what_cant_be_meant_is_refused_by_its_field(wire, field, message):
    with pytest.raises(HelmSpecError) as error:
        HelmSpec.of(wire)
    assert (error.value.field, error.value.message) == (field, message)


AT_THE_LIMIT = {
    "a release": {"releaseName": "w" * 53},
    "a namespace": {"namespace": "n" * 63},
    "files": {"valuesFiles": ["a" * 1024] * 32},
    "API versions": {"apiVersions": ["v" * 252] * 200},
    "values": {"values": {"a": "x" * (256 * 1024 - 8)}},
}


@pytest.mark.parametrize("wire", AT_THE_LIMIT.values(), ids=AT_THE_LIMIT)
def test_what_is_at_a_limit_is_within_it(wire):
    assert HelmSpec.of(wire) != HelmSpec()


TOLD = {
    "nothing": {},
    "all": {
        "releaseName": "shop", "namespace": "shop", "valuesFiles": ["a.yaml", "b.yaml"], "ignoreMissingValuesFiles": True,
        "values": {"size": 1, "deep": {"list": [1, None]}}, "skipCRDs": True, "kubeVersion": "1.34", "apiVersions": ["apps/v1"],
        "unstable": "Fail", "lookup": "Cluster", "valuesFrom": [{"kind": "Secret", "name": "db"}],
    },
}  # fmt: skip


@pytest.mark.parametrize("wire", TOLD.values(), ids=TOLD)
def test_what_is_told_is_what_was_read(wire):
    assert HelmSpec.of(wire).told() == wire
    assert HelmSpec.of(HelmSpec.of(wire).told()) == HelmSpec.of(wire)
