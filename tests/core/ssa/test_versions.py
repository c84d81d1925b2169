"""Owners whose versions the server can't use any more: what is restated, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entry, field_sets

from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.managed_fields import has_failed_at_versions, restated

TEXT, SIZE = ("f:spec", "f:text"), ("f:spec", "f:size")
OLD, NEW = "example.com/v1", "example.com/v2"


def owned(manager, *paths, **more):
    return entry(manager, FieldSet.of(paths), **more)


def live(*entries):
    return {"metadata": {"name": "one", "resourceVersion": "7", "managedFields": list(entries)}}


def owners(patch):
    """Who owns what at which version once *patch* is applied."""
    return [
        (each["manager"], each["apiVersion"], [*map(str, FieldSet.of_wire(each["fieldsV1"]))])
        for each in patch[0]["value"]
    ]


def test_all_owners_are_restated_at_the_version_that_is_applied():
    found = live(
        owned("us", TEXT, operation="Apply", api_version=OLD),
        owned("editor", SIZE, operation="Update", api_version=OLD),
        owned("controller", ("f:status", "f:ready"), operation="Update", api_version=OLD, subresource="status"),
    )
    patch = restated(found, NEW)
    assert owners(patch) == [
        ("us", NEW, [".spec.text"]), ("editor", NEW, [".spec.size"]), ("controller", NEW, [".status.ready"]),
    ]  # fmt: skip
    assert patch[1]["value"] == "7", "nothing is written over what somebody has changed meanwhile"
    assert found["metadata"]["managedFields"][0]["apiVersion"] == OLD


def test_what_one_manager_wrote_at_two_versions_is_joined():
    found = live(
        owned("editor", SIZE, operation="Update", api_version=OLD),
        owned("editor", TEXT, operation="Update", api_version=NEW),
    )
    assert owners(restated(found, NEW)) == [("editor", NEW, [".spec.size", ".spec.text"])]


def test_owners_at_that_version_stay_as_they_are():
    assert restated(live(owned("us", TEXT, operation="Apply", api_version=NEW)), NEW) == ()
    assert restated(live(), NEW) == ()


@given(st.lists(st.tuples(st.sampled_from(["us", "them"]), field_sets, st.sampled_from([OLD, NEW])), max_size=5))
def test_no_field_loses_its_owner(made):
    entries = [entry(manager, fields, operation="Update", api_version=version) for manager, fields, version in made]
    patch = restated(live(*entries), NEW)
    kept = {manager: FieldSet() for manager, _, _ in made}
    for each in patch[0]["value"] if patch else entries:
        kept[each["manager"]] |= FieldSet.of_wire(each["fieldsV1"])
    for manager, fields, _ in made:
        assert (kept[manager] | fields) == kept[manager]


ERRORS = {
    "a field that the last version doesn't know": (
        500,
        "failed to prune fields: failed to convert merged object at last applied version: .spec.new: field not declared in schema",
        True,
    ),
    "a version that isn't served": (
        500, "request to convert CR to an invalid group/version: example.com/v1", True,
    ),
    "a webhook that converts and is down": (
        500, "failed to convert old object: conversion webhook for example.com/v1, Kind=One failed: no endpoints", False,
    ),
    "a webhook that admits and is down": (500, "Internal error occurred: failed calling webhook", False),
    "a refusal": (422, "failed to convert", False),
}  # fmt: skip


@pytest.mark.parametrize(("status", "message", "is_so"), ERRORS.values(), ids=ERRORS)
def test_the_server_failed_at_versions(status, message, is_so):
    assert has_failed_at_versions(status, message) is is_so
