"""Which policies ask for more than those that are there: Syncs that they would refuse are named before an upgrade."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.planning.rights.policy import asks_for_more, policies
from kubectl_reconcile.engine.commands.install import crds

ALL = policies([located.manifest for located in crds()], [], "reconcile-system", {})


def without(policy, part, at):
    kept = [each for number, each in enumerate(policy["spec"][part]) if number != at]
    return {**policy, "spec": {**policy["spec"], part: kept}}


@pytest.mark.parametrize("policy", ALL, ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_what_is_there_as_it_should_be_asks_for_no_more(policy):
    stored = {**policy, "metadata": {**policy["metadata"], "uid": "u"}, "status": {"observedGeneration": 1}}
    assert not asks_for_more(policy, stored)
    assert asks_for_more(policy, None)


@given(st.sampled_from([one for one in ALL if "validations" in one["spec"]]), st.data())
def test_one_that_asked_for_a_field_less_asked_for_less(policy, data):
    at = data.draw(st.integers(0, len(policy["spec"]["validations"]) - 1))
    before = without(policy, "validations", at)
    assert asks_for_more(policy, before)
    assert not asks_for_more(before, policy)


def test_one_that_was_only_told_of_asked_for_nothing():
    binding = next(one for one in ALL if one["kind"].endswith("Binding"))
    before = {**binding, "spec": {**binding["spec"], "validationActions": ["Audit"]}}
    assert asks_for_more(binding, before)
