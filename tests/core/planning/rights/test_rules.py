"""Rules taken apart and put together: the same rights, no more, in one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.planning.rights.rules import Right, TooManyRights, covers, least, rights_in, rules_of
from tests.core.planning.rights.rbac_judge import includes, parts

texts = st.sampled_from
resource_rules = st.fixed_dictionaries(
    {
        "apiGroups": st.lists(texts(["", "apps", "*"]), min_size=1, max_size=2),
        "resources": st.lists(texts(["pods", "pods/log", "deployments", "*", "*/log"]), min_size=1, max_size=3),
        "verbs": st.lists(texts(["get", "list", "create", "*"]), min_size=1, max_size=3),
    },
    optional={"resourceNames": st.lists(texts(["web", "db"]), max_size=2)},
)
url_rules = st.fixed_dictionaries(
    {
        "nonResourceURLs": st.lists(texts(["/metrics", "/metrics/*", "/*", "*"]), min_size=1, max_size=2),
        "verbs": st.lists(texts(["get", "post", "*"]), min_size=1, max_size=2),
    }
)
many_rules = st.lists(resource_rules | url_rules, max_size=4)


@given(many_rules)
def test_rules_of_rights_give_all_that_the_rights_were_taken_from(rules):
    again = rules_of(rights_in(rules))
    assert all(any(_within(rule, part) for rule in again) for whole in rules for part in parts(whole))


@given(many_rules)
def test_rules_of_rights_give_nothing_that_the_rights_were_not_taken_from(rules):
    again = rules_of(rights_in(rules))
    assert all(any(_within(rule, part) for rule in rules) for whole in again for part in parts(whole))


def _within(rule, part):
    """As the server has it, where ``*/log`` includes the logs of pods."""
    if "resources" in part and "/" in part["resources"][0]:
        sub = part["resources"][0].partition("/")[2]
        any_of_it = {**part, "resources": [f"*/{sub}"]}
        return includes(rule, part) or includes(rule, any_of_it)
    return includes(rule, part)


@given(many_rules, st.randoms(use_true_random=False))
def test_the_same_rights_make_the_same_rules_in_whatever_order_they_came(rules, random):
    mixed = [dict(rule) for rule in rules]
    random.shuffle(mixed)
    for rule in mixed:
        for values in rule.values():
            random.shuffle(values)
    assert rules_of(rights_in(mixed)) == rules_of(rights_in(rules))


@given(many_rules)
def test_no_right_is_given_twice(rules):
    kept = least(rights_in(rules))
    assert not any(covers(kept - {each}, each) for each in kept)


def test_resources_with_the_same_verbs_share_a_rule_and_verbs_stand_in_the_order_of_their_use():
    rights = {Right("", resource, verb) for resource in ("secrets", "configmaps") for verb in ("patch", "use", "get")}
    assert rules_of(rights) == [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "patch", "use"]}
    ]


def test_what_may_be_limited_to_names_stands_apart_from_what_may_not():
    rights = {
        Right("", "namespaces", "list"),
        Right("", "namespaces", "get", "shop"),
        Right("", "namespaces", "get", "bar"),
        Right("", "namespaces", "delete", "shop"),
    }
    assert rules_of(rights) == [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["bar", "shop"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["shop"], "verbs": ["delete"]},
    ]


SHAPES = {
    "no list": "all",
    "no rule": ["all"],
    "verbs that are no list": [{"apiGroups": [""], "resources": ["pods"], "verbs": "*"}],
    "no resources": [{"apiGroups": [""], "verbs": ["get"]}],
    "names of nothing": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [""]}],
    "names that are no texts": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [7]}],
    "nothing": None,
}


@pytest.mark.parametrize("rules", SHAPES.values(), ids=SHAPES)
def test_what_is_no_rule_gives_no_rights(rules):
    assert rights_in(rules) == frozenset()


def test_rules_that_stand_for_too_much_are_not_taken_apart():
    names = [f"n{number}" for number in range(100)]
    with pytest.raises(TooManyRights, match="more than 50000 single rights"):
        rights_in([{"apiGroups": names, "resources": names, "verbs": names, "resourceNames": names}])


def test_a_right_reads_as_kubectl_writes_it():
    assert str(Right("apps", "deployments", "get")) == "get deployments.apps"
    assert str(Right("", "secrets", "get", "token")) == "get secrets token"
    assert str(Right("", "", "get", url="/metrics")) == "get /metrics"
