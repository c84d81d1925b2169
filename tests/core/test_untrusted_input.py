"""What live objects say of themselves may be anything: every function that reads them takes arbitrary JSON."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.annotations import MemberOptions, renamed
from kubectl_reconcile.core.apply.replace import as_restored
from kubectl_reconcile.core.daemon import watch_events
from kubectl_reconcile.core.health.cel_rules import HealthRules, Rule
from kubectl_reconcile.core.health.judge import HealthStatus, health
from kubectl_reconcile.core.manifests.export import as_manifest, why_not
from kubectl_reconcile.core.module.action_journal import ActionJournal, approving, is_approved
from kubectl_reconcile.core.module.inputs import Context, Owned, Select
from kubectl_reconcile.core.module.outcome import Action
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.objects import (
    Condition,
    GroupVersionKind,
    annotations_of,
    condition_of,
    conditions_of,
    controller_of,
    labels_of,
    merge_conditions,
)
from kubectl_reconcile.core.planning.kinds import kinds_of_crd
from kubectl_reconcile.core.planning.outlook.explain import ExplainFacts, explained, outlook
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.redaction import redacted
from kubectl_reconcile.core.resources.applyset import Contents, is_marked_by_us
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.status import ConditionReason, Report, reconciling, sync_status
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.csa_upgrade import managers_to_take_over
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.managed_fields import entry_of, owners_of, repeats_an_owner
from kubectl_reconcile.core.ssa.merge import MergeError, Verdict, three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.commands.event_stream import StreamedEvent
from kubectl_reconcile.modules import memcached, threetierapp, webserver
from tests.core.ssa.built_in_schemas import SCHEMAS
from tests.odd_json import KINDS, objects, statuses, values

ODD = {
    "a status in one word": {"status": "ok"},
    "conditions by name": {"status": {"conditions": {"a": 1}}},
    "conditions in words": {"status": {"conditions": ["x", None, 3]}},
    "a condition without a type": {"status": {"conditions": [{"status": "True"}]}},
    "a status in a list": {"status": []},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_object_that_says_nothing_usable_has_nothing_to_wait_for(odd):
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "generation": 3}, **odd}
    assert health(thing).status is HealthStatus.CURRENT


@pytest.mark.parametrize(
    ("observed", "status"), [("3", HealthStatus.CURRENT), ("2", HealthStatus.IN_PROGRESS), (3.0, HealthStatus.CURRENT)]
)
def test_an_observed_generation_in_quotes_is_a_number(observed, status):
    """Argo Rollouts writes it so."""
    rollout = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "a", "generation": 3},
        "status": {"observedGeneration": observed, "phase": "Healthy"},
    }  # fmt: skip
    assert health(rollout).status is status


@given(objects())
def test_health_of_anything_is_a_verdict(manifest):
    rules = HealthRules(rules=(Rule.parse({"kind": "Thing.example.com", "current": "self.status.replicas > 1"}),))
    for verdict in (health(manifest), health(manifest, strict=True), rules.judge(manifest), rules.passes(manifest)):
        assert isinstance(verdict.status, HealthStatus)
        assert isinstance(str(verdict), str)


@given(objects())
def test_metadata_and_conditions_of_anything_can_be_read(manifest):
    assert all(isinstance(text, str) for text in (*labels_of(manifest).values(), *annotations_of(manifest).values()))
    assert all(isinstance(each["type"], str) for each in conditions_of(manifest))
    controller_of(manifest)
    assert condition_of(manifest, "Ready") in (None, *conditions_of(manifest))
    status = manifest["status"] if isinstance(manifest["status"], dict) else {}
    merged = merge_conditions(status.get("conditions"), [Condition("Ready", "True", "Fine")], generation=1, now="now")
    assert [each["status"] for each in merged if each["type"] == "Ready"] == ["True"]


@given(objects())
def test_membership_and_options_of_anything_can_be_read(manifest):
    Contents.recorded(manifest)
    is_marked_by_us(manifest)
    is_marked_by_us(manifest, "kubectl-reconcile")
    MemberOptions.of(manifest)
    list(renamed(manifest))
    why_not(manifest)
    redacted("some text", manifest)
    Objects([manifest])
    Select(labels={"a": "b"}).matches(manifest)
    Select.referring("a", "spec", "clusterRef", "name").matches(manifest)
    Context("now", "cache", manifest).sees(manifest)


journals = values.map(json.dumps) | st.text(max_size=20) | st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("key", "verb", "progress", "at", "attempts", "message"), values)), max_size=2
).map(json.dumps)  # fmt: skip


@given(journals, st.text(max_size=20))
def test_a_journal_of_anything_can_be_read(journal, approved):
    noted = {"reconcile.dev/actions": journal, "reconcile.dev/approved-actions": approved}
    cr = {"metadata": {"name": "a", "annotations": noted}}
    ActionJournal.of(cr).text()
    is_approved(Action("k", "v", "s", needs_approval=True), cr)
    approving(cr, ("k",))


@given(objects())
def test_owners_of_anything_are_read_or_refused(manifest):
    with suppress(ValueError):  # the one answer to entries that the server couldn't read either
        owners_of(manifest)
    for manager in ("kubectl-reconcile", "ok"):
        entry_of(manifest, manager)
        managers_to_take_over(manifest, manager)
    repeats_an_owner(manifest)


@given(objects(kinds=(("reconcile.dev/v1alpha1", "Sync"),)))
def test_a_sync_of_any_shape_is_read_or_refused_by_its_field(manifest):
    with suppress(SyncSpecError):
        Sync.of(manifest)
    watch_events.is_asked(manifest)
    list(watch_events.sync_events(manifest, manifest))
    watch_events.sync_priority(None, manifest)
    watch_events.ItemIndex().sync_came(manifest)
    before = manifest["status"] if isinstance(manifest["status"], dict) else {}
    report = Report(ConditionReason.SYNCED, "synced", "c0ffee")
    found = sync_status(before, report, generation=1, requested_at="", now="now")
    assert found["lastAppliedRevision"] == "c0ffee"
    reconciling(before, "writing", generation=1, now="now")


@given(objects(kinds=(("apiextensions.k8s.io/v1", "CustomResourceDefinition"),)))
def test_a_crd_of_any_shape_brings_kinds_or_none(manifest):
    kinds_of_crd(manifest)
    watch_events.crd_facts(manifest)
    watch_events.established_kinds(manifest)


@given(st.dictionaries(st.sampled_from(["regarding", "eventTime", "type", "reason", "note", "metadata"]), values))
def test_an_event_of_any_shape_can_be_told(event):
    said = StreamedEvent.of({"metadata": {"uid": "u"}, **event})
    assert isinstance(said.note, str)


@given(objects(kinds=(("batch/v1", "Job"), ("v1", "Secret")), metadata=st.none()))
def test_a_deleted_object_can_be_recreated_whatever_its_status_says(manifest):
    manifest = {**manifest, "spec": {"template": {}}}  # which the server has checked
    assert as_restored(manifest)["metadata"]["name"] == "web"


MODULES = {
    "memcached": (memcached.memcached, {"size": 2}),
    "webserver": (webserver.webserver, {"replicas": 2}),
    "threetierapp": (
        threetierapp.ThreeTierApp, {"frontend": {"image": "a"}, "backend": {"image": "b"}, "database": {"image": "c"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("module", "spec"), MODULES.values(), ids=MODULES)
@settings(max_examples=30)
@given(children=st.lists(objects(kinds=tuple(KINDS[:1] + KINDS[5:7]), metadata=st.none()), max_size=2), status=statuses)
def test_a_module_of_ours_answers_whatever_its_children_say(module, spec, children, status):
    cr = {
        "apiVersion": module.gvk.api_version, "kind": module.gvk.kind, "spec": spec, "status": status,
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1},
    }  # fmt: skip
    sound = {"replicas": 2, "template": {"spec": {"containers": []}}}  # which the server has checked
    children = [{**child, "spec": sound} for child in children]
    with suppress(SpecError):
        module.reconcile(cr, Owned(children, children), {}, Context("2026-11-20T12:00:00Z", module.name, cr))


# -- whose fields are whose, explained, exported and merged ------------------------------------------------------------

owner_entries = values | st.lists(
    values
    | st.fixed_dictionaries(
        {
            "manager": st.just("hand") | values,
            "operation": st.sampled_from(["Apply", "Update"]),
            "fieldsType": st.just("FieldsV1"),
            "apiVersion": st.just("v1") | values,
            "fieldsV1": values | st.fixed_dictionaries({}, optional={"f:spec": values, "f:data": values}),
        },
        optional={"time": values, "subresource": values},
    ),
    max_size=3,
)


@st.composite
def owned_objects(draw):
    live = draw(objects())
    live["metadata"]["managedFields"] = draw(owner_entries)
    return live


@settings(deadline=None, max_examples=40)
@given(live=owned_objects(), unread=st.sampled_from(["", "nobody knows"]))
def test_any_object_is_explained(live, unread):
    facts = ExplainFacts(live, UNKNOWN, unread=unread)
    for query in (None, IgnoreRule.parse(".spec"), IgnoreRule.parse(".status")):
        assert all(outlook(each, facts) for each in explained(facts, query))


@settings(deadline=None, max_examples=40)
@given(live=owned_objects())
def test_any_object_is_exported_or_refused(live):
    if not why_not(live):
        manifest = as_manifest(live, UNKNOWN, "shop")
        assert (manifest["kind"], manifest["metadata"]["name"]) == (live["kind"], "web")


@settings(deadline=None, max_examples=40)
@given(live=owned_objects(), wanted=values)
def test_any_object_is_merged_or_left_to_the_server(live, wanted):
    desired = {name: live[name] for name in ("apiVersion", "kind")} | {"metadata": {"name": "web"}, "spec": wanted}
    with suppress(MergeError):
        assert three_way(desired=desired, live=live, schema=UNKNOWN).verdict is not Verdict.SAME


@settings(deadline=None, max_examples=100)
@given(entries=owner_entries, data=values, labels=values)
def test_an_object_of_a_known_kind_is_merged_whatever_it_says_of_its_owners_and_its_fields(entries, data, labels):
    metadata = {"name": "web", "labels": {"app": "web"}}
    desired = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"type": "ClusterIP"}}
    schema = SCHEMAS[GroupVersionKind("", "v1", "Service")]
    for odd in ({"metadata": {**metadata, "labels": labels}}, {"spec": data}, {}):
        live = {**desired, **odd}
        live["metadata"] = {**live["metadata"], "managedFields": entries}
        assert three_way(desired=desired, live=live, schema=schema, manager="hand").verdict in Verdict


ODD_OWNERS = {
    "owners that are no list": True,
    "fields that are no map": [{"manager": "hand", "operation": "Apply", "fieldsType": "FieldsV1", "apiVersion": "v1",
                                "fieldsV1": {"f:spec": None}}],
    "a manager and a time that are no text": [{"manager": ["hand"], "operation": "Update", "fieldsType": "FieldsV1",
                                               "apiVersion": "v1", "fieldsV1": {"f:spec": {}}, "time": 3}],
}  # fmt: skip


@pytest.mark.parametrize("entries", ODD_OWNERS.values(), ids=ODD_OWNERS)
def test_owners_of_any_shape_end_nothing(entries):
    live = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "managedFields": entries}, "spec": {"a": 1}}
    assert not explained(ExplainFacts(live, UNKNOWN), IgnoreRule.parse(".status"))
    assert as_manifest(live, UNKNOWN, "shop")["kind"] == "Pod"
    assert three_way(desired={**live, "metadata": {"name": "web"}}, live=live, schema=UNKNOWN).verdict is Verdict.UNSURE


LABELLED = {"f:metadata": {"f:labels": {"f:app": {}}}}
ODD_OWN_ENTRIES = {
    "no version": {"fieldsV1": LABELLED},
    "no fields": {"apiVersion": "v1"},
    "fields of the metadata that are no map": {"apiVersion": "v1", "fieldsV1": {"f:metadata": 3}},
    "labels that are no map": {"apiVersion": "v1", "fieldsV1": {"f:metadata": {"f:labels": 3}}},
    "fields of the spec that are no map": {"apiVersion": "v1", "fieldsV1": {**LABELLED, "f:spec": 3}},
    "a port that isn't a map": {"apiVersion": "v1", "fieldsV1": {**LABELLED, "f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': 3}}}},
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD_OWN_ENTRIES.values(), ids=ODD_OWN_ENTRIES)
def test_what_we_own_of_a_known_kind_may_be_of_any_shape(odd):
    entry = {"manager": "hand", "operation": "Apply", "fieldsType": "FieldsV1", **odd}
    metadata = {"name": "web", "labels": {"app": "web"}}
    desired = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}
    live = {**desired, "metadata": {**metadata, "managedFields": [entry]}}
    schema = SCHEMAS[GroupVersionKind("", "v1", "Service")]
    assert three_way(desired=desired, live=live, schema=schema, manager="hand").verdict is not Verdict.SAME
