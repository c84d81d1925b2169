"""Fields by which a module acts for whoever writes them: no CRD forgets one, and who changes one is who is asked."""

from pathlib import Path

import pytest
import yaml

from kubectl_reconcile.core.module.api import Outcome, module
from kubectl_reconcile.core.planning.rights.entrusted import EntrustedField, entrusted_fields, rights_to_set
from kubectl_reconcile.core.planning.rights.policy import policies
from kubectl_reconcile.core.planning.rights.rules import Right

CRDS = [yaml.safe_load(path.read_text()) for path in sorted((Path(__file__).parents[4] / "crds").glob("*.yaml"))]
FIELDS = {kind.kind: fields for kind, fields in entrusted_fields(CRDS).items()}
PODS = Right("", "pods", "create")


def secret(name):
    return Right("", "secrets", "get", name)


def fields_below(schema, path=()):
    """All fields of a schema with their paths."""
    for name, below in schema.get("properties", {}).items():
        yield (*path, name), below
        yield from fields_below(below, (*path, name))
    if isinstance(schema.get("items"), dict):
        yield from fields_below(schema["items"], (*path, "[]"))


SUSPICIOUS = ("image", "secret", "secretname", "claimname", "env", "job", "template", "pod")
INNOCENT = {
    "spec.job.template": "it is judged with all of spec.job",
    "spec.pod": "what in it matters is judged field by field",
}
OWN = "Sync"  # names accounts and Secrets of its namespace, which are read as its own account


def may_act(path, schema):
    """Whether a field looks as if a module ran or handed out what it names."""
    last = path[-1].lower()
    return last in SUSPICIOUS or last.endswith(("image", "secret", "secretname", "pullsecrets", "template"))


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd["spec"]["names"]["kind"])
def test_no_field_that_names_an_image_a_secret_or_a_claim_lacks_its_mark(crd):
    kind = crd["spec"]["names"]["kind"]
    marked = {each.path for each in FIELDS.get(kind, ())}
    [version] = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found = {path for path, schema in fields_below(spec, ("spec",)) if may_act(path, schema)}
    assert kind == OWN or {".".join(path) for path in found - marked} <= INNOCENT.keys()
    assert all(path[-1] != "kind" for path in marked)


def test_the_kinds_of_operators_have_such_fields_and_those_without_pods_have_none():
    assert {
        "Checkup",
        "EtcdBackup",
        "EtcdCluster",
        "EtcdRestore",
        "Kafka",
        "Memcached",
        "MyDatabase",
        "ThreeTierApp",
    } == FIELDS.keys()
    assert EntrustedField(("spec", "load", "image"), names_secret=False) in FIELDS["Checkup"]
    assert EntrustedField(("spec", "listeners", "[]", "tls", "secretName"), names_secret=True) in FIELDS["Kafka"]


IMAGE = EntrustedField(("spec", "image"), names_secret=False, default='"usual:1"')
KEY = EntrustedField(("spec", "s3", "key"), names_secret=True, beside=True)
ITEMS = EntrustedField(("spec", "on", "[]", "tls"), names_secret=True)
SET = {
    "an image": ({"image": "a"}, None, {PODS}),
    "the default": ({"image": "usual:1"}, None, set()),
    "an image that stays": ({"image": "a", "other": 1}, {"image": "a"}, set()),
    "another image": ({"image": "b"}, {"image": "a"}, {PODS}),
    "an image that goes": ({}, {"image": "a"}, set()),
    "a Secret": ({"s3": {"key": "k"}}, None, {secret("k")}),
    "a Secret that stays": ({"s3": {"key": "k"}, "other": 1}, {"s3": {"key": "k"}}, set()),
    "a Secret that is sent elsewhere": (
        {"s3": {"key": "k", "to": "evil"}},
        {"s3": {"key": "k", "to": "us"}},
        {secret("k")},
    ),
    "no name": ({"s3": {"key": ""}}, None, set()),
    "items": ({"on": [{"tls": "a"}, {}, {"tls": "b"}]}, {"on": [{"tls": "b"}]}, {secret("a")}),
    "odd shapes": ({"s3": "text", "on": {"tls": 1}, "image": None}, {"s3": [], "on": 3}, set()),
}


@pytest.mark.parametrize(("after", "before", "rights"), SET.values(), ids=SET)
def test_who_sets_a_field_needs_the_right_and_who_leaves_it_doesnt(after, before, rights):
    live = None if before is None else {"spec": before}
    assert rights_to_set([IMAGE, KEY, ITEMS], {"spec": after}, live) == rights


def test_the_module_that_makes_such_resources_is_let_through_and_no_other():
    backup = next(each for each in CRDS if each["spec"]["names"]["kind"] == "EtcdBackup")
    owner = module(api="x/v1", kind="A", owns=["etcd.database.coreos.com/v1beta2/EtcdBackup"], name="a")(
        lambda *_: Outcome()
    )
    other = module(api="x/v1", kind="B", owns=["v1/Service"], name="b")(lambda *_: Outcome())
    [policy, binding] = policies([backup], [owner, other], "ours", {"a": "b"})
    [condition] = policy["spec"]["matchConditions"]
    assert condition["expression"] == (
        "!(request.userInfo.username in ['system:serviceaccount:ours:kubectl-reconcile-module-a'])"
    )
    assert binding["spec"] == {"policyName": "reconcile-etcdbackup-rights", "validationActions": ["Deny"]}
    assert policy["metadata"]["labels"] == {"a": "b"}
    assert len(policy["spec"]["validations"]) == len(FIELDS["EtcdBackup"])
