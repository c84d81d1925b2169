"""What a chart is told that looks up objects in the cluster, what is said of that, and what nobody may see of it."""

from __future__ import annotations

import base64
import json

import pytest

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.redaction import without
from kubectl_reconcile.core.rendering.charts import Release, Said, failure
from kubectl_reconcile.core.rendering.lookups import (
    MOST_BYTES,
    MOST_LOOKUPS,
    Answers,
    Lookup,
    about,
    answer,
    answer_of_all,
    marked,
    one_of,
    problems_of,
    warnings_of,
)
from kubectl_reconcile.core.rendering.substitution import Value, Values, substituted
from kubectl_reconcile.core.rendering.uses import without_secrets
from kubectl_reconcile.core.resources.helm import HelmSpec

PASSWORD = "hunter2-hunter2"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()
ASKED = "v1 Secret shop/db"
ALL = "v1 Secret shop/"


def secret(name="db", **data):
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    metadata = {"name": name, "namespace": "shop", "managedFields": [{"manager": "x"}]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


ANSWERS = Answers({ASKED: answer(secret(password=PASSWORD, tls="true", port="5432", place="shop"))})

# -- what is asked for -------------------------------------------------------------------------------------------------

NOT_READ = {
    "a path in a name": "v1 Secret shop/db/../../x",
    "a subresource": "v1 Pod shop/web/log",
    "a path in a namespace": "v1 Secret ../x",
    "a query": "v1 Secret shop/db?watch=1",
    "an escape": "v1 Secret shop/%2e%2e",
    "words in a version": "v1 x Secret shop/db",
    "nothing": " /",
    "less than that": "odd",
}


@pytest.mark.parametrize("asked", NOT_READ.values(), ids=NOT_READ)
def test_what_nothing_can_be_called_is_not_read(asked):
    assert Lookup.of(asked) is None


def test_objects_and_lists_are_asked_for_by_name_and_place():
    assert Lookup.of(ASKED) == Lookup("v1", "Secret", "shop", "db")
    assert Lookup.of("rbac.authorization.k8s.io/v1 ClusterRole /system:node") == Lookup(
        "rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node"
    )
    assert Lookup.of("v1 Node /") == Lookup("v1", "Node", "", "")
    asked = [ASKED, ALL, "v1 Node /", "v1 Node /a", "odd"]
    assert list(map(one_of, asked)) == ["Secret shop/db", "every Secret of shop", "every Node", "Node a", "every "]


# -- what is told ------------------------------------------------------------------------------------------------------


def test_an_object_is_told_without_who_manages_its_fields():
    assert json.loads(answer(secret(a="b"))) == {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}, "data": {"a": "Yg=="},
    }  # fmt: skip
    told = json.loads(answer_of_all(Lookup("v1", "Secret", "shop", ""), [secret("a"), secret("b")]))
    assert (told["apiVersion"], told["kind"]) == ("v1", "SecretList")
    assert [each["metadata"] for each in told["items"]] == [{"name": name, "namespace": "shop"} for name in "ab"]


def test_a_chart_is_told_answers_only_where_its_sync_says_so():
    empty = Release("web", "shop").answered(ANSWERS)
    cluster = Release("web", "shop", HelmSpec.of({"lookup": "Cluster"}))
    assert empty.order("web", 1)["lookups"] == {}
    assert cluster.answered(ANSWERS).order("web", 1)["lookups"] == dict(ANSWERS.found)
    assert cluster.answered(Answers({ASKED: ""})).order("web", 1)["lookups"] == {}
    keys = [each.key for each in (empty, cluster, cluster.answered(ANSWERS), cluster.answered(Answers({ASKED: ""})))]
    assert len(set(keys)) == 4
    others = [Answers({}, {ASKED: "why"}), Answers({}, {}, {ASKED: "why"}), Answers(beyond="why")]
    assert len({*keys, *(cluster.answered(each).key for each in others)}) == 7


def test_what_was_answered_or_could_not_be_read_is_not_asked_for_again():
    known = Answers({"a": "{}", "b": ""}, {"c": "why"}, {"d": "why"})
    assert known.lack("abcde") == ("e",)
    assert known.and_also(Answers({"e": ""})).lack("abcde") == ()
    assert Answers(beyond="too much").lack("abcde") == ()


def test_more_than_the_bounds_is_a_problem_and_no_answers():
    most = Answers({str(number): "" for number in range(MOST_LOOKUPS)})
    assert not Answers().and_also(most).beyond
    for more in (Answers({"one more": ""}), Answers({}, {"one more": "why"}), Answers({}, {}, {"one more": "why"})):
        many = most.and_also(more)
        assert many == Answers(beyond="it looks up more than 100 objects")
        [told] = problems_of("web/Chart.yaml", many)
        assert (str(told).startswith("web/Chart.yaml: it looks up more than 100 objects"), told.is_error) == (
            True,
            True,
        )
    assert not Answers().and_also(Answers({"a": "x" * MOST_BYTES})).beyond
    long = Answers({"a": "x" * MOST_BYTES}).and_also(Answers({"b": "x"}))
    assert long.beyond == "the objects that it looks up have more than 1024 KiB"
    assert many.and_also(Answers({"a": "{}"})).beyond == many.beyond


def test_each_lookup_is_named_with_what_it_was_told():
    answers = Answers({ASKED: "{}", "v1 Node /a": ""}, {ALL: "the cluster serves no Secret"})
    found = list(warnings_of("web/Chart.yaml", [ASKED, "v1 Node /a", ALL, "v1 Pod /"], answers))
    assert [each.message.removeprefix("it looks up ") for each in found] == [
        "Secret shop/db in the cluster, and finds it",
        "Node a in the cluster, and finds nothing",
        "every Secret of shop in the cluster, and finds nothing: the cluster serves no Secret",
        "every Pod in the cluster, and finds nothing",
    ]
    assert not any(each.is_error for each in found)
    assert list(problems_of("web/Chart.yaml", answers)) == []


def test_a_chart_that_looks_up_without_end_is_told_of_in_few_words():
    found = list(warnings_of("web/Chart.yaml", [f"v1 Node /n{number}" for number in range(100_000)], Answers()))
    assert (len(found), found[0].message) == (101, "it looks up 99,900 more objects than are listed here")
    [long] = warnings_of("web/Chart.yaml", [f"v1 {'K' * 100_000} shop/db"], Answers())
    assert len(long.message) < 1000


def test_each_object_that_may_not_be_read_is_a_problem_with_the_right_that_is_lacking():
    refused = Answers({ASKED: "{}"}, {}, {ALL: "a may not list secrets", "v1 Node /a": "a may not get nodes"})
    found = list(problems_of("web/Chart.yaml", refused))
    assert [str(each) for each in found] == [
        "web/Chart.yaml: it looks up every Secret of shop in the cluster, which may not be read: a may not list secrets",
        "web/Chart.yaml: it looks up Node a in the cluster, which may not be read: a may not get nodes",
    ]
    assert all(each.is_error for each in found)


CHANGED = {
    "the object itself": (ObjectRef("", "Secret", "shop", "db"), [ASKED, ALL, "v1 Secret /"]),
    "another of its kind": (ObjectRef("", "Secret", "shop", "other"), [ALL, "v1 Secret /"]),
    "one of another namespace": (ObjectRef("", "Secret", "x", "db"), ["v1 Secret /"]),
    "one of the whole cluster": (ObjectRef("", "Node", "", "a"), ["v1 Node /a"]),
    "one of a group": (ObjectRef("apps", "Deployment", "shop", "web"), ["apps/v1 Deployment shop/web"]),
    "one of another group": (ObjectRef("x", "Secret", "shop", "db"), []),
}


@pytest.mark.parametrize(("ref", "expected"), CHANGED.values(), ids=CHANGED)
def test_a_change_of_an_object_concerns_the_lookups_that_find_it(ref, expected):
    asked = [ASKED, ALL, "v1 Secret /", "v1 Node /a", "apps/v1 Deployment shop/web", "odd"]
    assert list(about(asked, [ref])) == expected


def test_answers_are_compared_for_some_lookups_alone():
    one = Answers({"a": "1", "b": "2"}, {"c": "why"}, {"d": "why"})
    assert one.of("ac") == Answers({"a": "1"}, {"c": "why"})
    assert one.of("d") == Answers({}, {}, {"d": "why"})
    assert Answers(beyond="x").of("a") == Answers(beyond="x")


# -- what nobody may see -----------------------------------------------------------------------------------------------


def test_no_text_of_answers_has_a_value():
    assert PASSWORD not in repr(ANSWERS)
    assert ENCODED not in repr(Release("a", "b", HelmSpec.of({"lookup": "Cluster"})).answered(ANSWERS))
    assert ENCODED not in ANSWERS.key


@pytest.mark.parametrize("asked", [ASKED, ALL])
@pytest.mark.parametrize("text", [PASSWORD, ENCODED])
def test_no_message_has_a_value_that_was_looked_up(asked, text):
    tree = secret(password=PASSWORD)
    told = answer(tree) if asked == ASKED else answer_of_all(Lookup("v1", "Secret", "shop", ""), [tree])
    values = Answers({asked: told}).values()
    said = failure(Said(f"execution error at (web/a.yaml:1:2): {text}!", values=values), "web", {})
    assert said.message.endswith(": ***!")


def located(data, kind="ConfigMap", **metadata):
    tree = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "shop", **metadata}, "data": data}
    return Located.of(tree, "web/a.yaml", -1)


def test_what_comes_of_a_secret_is_marked_wherever_it_stands():
    data = {"url": f"db://{PASSWORD}@db", "plain": "db", "list": [ENCODED], "tls": "true", "port": "5432", "in": "shop"}
    [found] = marked((located(data, annotations={"a": PASSWORD}),), ANSWERS)
    assert [each.steps for each in found.uses] == [
        ("metadata", "annotations", "a"), ("data", "url"), ("data", "list", 0),
    ]  # fmt: skip
    assert {each.names for each in found.uses} == {("lookup Secret shop/db",)}
    assert all(each.secret and PASSWORD not in repr(each) for each in found.uses)
    assert without(data["url"], found.uses[1].texts) == "***"
    assert PASSWORD not in str(without_secrets(found))
    assert ENCODED not in str(without_secrets(found))


def test_what_comes_of_other_kinds_is_not_marked():
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "anything-else"}}
    objects = (located({"a": "anything-else"}),)
    assert marked(objects, Answers({"v1 ConfigMap shop/a": answer(config)})) is objects


def test_marks_stay_beside_those_of_variables():
    objects = marked((located({"url": PASSWORD, "name": "${NAME}"}, "Service"),), ANSWERS)
    done = substituted(objects, Values({"NAME": Value("web", stamp="web")}), lambda *_: 0)
    assert done.problems == ()
    assert [each.names for each in done.manifests[0].uses] == [("lookup Secret shop/db",), ("NAME",)]
    assert done.names == {"web/a.yaml": frozenset({"NAME"})}
