"""What a chart made of a Secret that it looked up is shown to nobody, whatever it did with it."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.parse import Located, Parsed
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.derived import altered, concealed, with_marks, with_safe_ids
from kubectl_reconcile.core.rendering.lookups import Answers
from kubectl_reconcile.core.rendering.uses import hiding, texts_of

ASKED = "v1 Secret shop/db"
NAMES = ("lookup Secret shop/db",)


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def answers(**values):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}}
    return Answers({ASKED: json.dumps({**secret, "data": {name: encoded(value) for name, value in values.items()}})})


def value_in(found, name="password"):
    return base64.b64decode(json.loads(found.found[ASKED])["data"][name]).decode()


def rendered(*manifests, problems=()):
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    each = [
        {**head, "metadata": {"name": "web", **manifest.pop("metadata", {})}, **manifest}
        for manifest in map(dict, manifests)
    ]
    return Parsed(tuple(Located.of(one, "a.yaml", -at) for at, one in enumerate(each, 1)), tuple(problems))


SPELT = {
    "as it is": str,
    "in capitals": str.upper,
    "backwards": lambda value: value[::-1],
    "letter by letter": ".".join,
    "its beginning": lambda value: value[:3],
    "its digest": lambda value: base64.b16encode(value.encode()[:16]).decode(),
    "how long it is": len,
    "whether it begins so": lambda value: value.startswith("h"),
}


@pytest.mark.parametrize("spell", SPELT.values(), ids=SPELT)
def test_whatever_comes_from_a_value_is_marked_and_the_rest_is_not(spell):
    known = answers(password="hunter2-of-shop")

    def chart(told):
        return rendered({"data": {"x": "fine", "y": spell(value_in(told)), "list": [1, {"z": spell(value_in(told))}]}})

    marked = with_marks(chart(known), chart(altered(known)), NAMES)
    [located] = marked.manifests
    assert {use.steps for use in located.uses} == {("data", "y"), ("data", "list", 1, "z")}
    assert all(use.secret and use.names == ("lookup Secret shop/db",) for use in located.uses)
    shown = hiding(located.manifest["data"], texts_of(located.uses), "***")
    assert shown["x"] == "fine"
    assert shown["y"] == "***"


def test_what_a_chart_says_of_a_value_is_not_told():
    said = [Problem("a.yaml", 0, "bad: HUNTER2", "use another"), Problem("a.yaml", 0, "something else")]
    marked = with_marks(rendered(problems=said), rendered(problems=[said[1]]), NAMES)
    assert [each.message for each in marked.problems] == [
        "what it says depends on the value of a Secret, and isn't shown", "something else",
    ]  # fmt: skip
    told = Problem("a.yaml", 0, "it looks up Secret shop/HUNTER2 in the cluster, which may not be read")
    marked = with_marks(rendered(problems=[told]), rendered(problems=[told]), NAMES, ["v1 Secret shop/HUNTER2"])
    assert "HUNTER2" not in str(marked.problems)


NAMED = {
    "an object": ({"metadata": {"name": "hunter2"}}, {"metadata": {"name": "uhagre7"}}),
    "an object that is there because of it": ({"metadata": {"name": "h"}}, None),
    "an entry": ({"data": {"hunter2": 1}}, {"data": {"uhagre7": 1}}),
    "an entry in a list": ({"data": {"a": [{"h": 1}]}}, {"data": {"a": [{"u": 1}]}}),
}


@pytest.mark.parametrize(("one", "other"), NAMED.values(), ids=NAMED)
def test_what_is_called_by_a_value_is_in_no_preview(one, other):
    plain = {"metadata": {"name": "plain"}, "data": {"a": [{"b": 1}]}}
    first, second = rendered(one, plain), rendered(*filter(None, [other]), plain)
    shown = concealed(first, second)
    assert [each.ref.name for each in shown.manifests] == ["plain"]
    [problem] = shown.problems
    assert problem.is_error
    assert "hunter2" not in str(problem)
    assert concealed(second, second) is second


@given(st.text(min_size=1).filter(lambda text: any(char.isascii() and char.isalnum() for char in text)))
def test_another_value_is_another_and_of_the_same_sort(value):
    other = value_in(altered(answers(password=value)))
    assert other != value
    assert [(char.isalpha(), char.isdigit(), char.isupper()) for char in other[: len(value.rstrip())]] == [
        (char.isalpha(), char.isdigit(), char.isupper()) for char in value.rstrip()
    ]


def test_a_text_of_a_secret_within_a_marked_one_is_hidden_by_itself_too():
    first, second = (
        rendered({"data": {"url": "db://shop:hunter2@db", "x": "hunter2"}}),
        rendered({"data": {"url": "db://"}}),
    )
    [located] = with_marks(first, second, NAMES, (), {"hunter2", "another"}).manifests
    assert {use.steps: use.texts for use in located.uses}["data", "url"] == ("db://shop:hunter2@db", "hunter2")
    assert texts_of(located.uses) == {"db://shop:hunter2@db", "hunter2"}


def test_ids_of_files_tell_no_value_and_change_with_all_that_is_shown_and_with_the_stamp():
    def ids(value, stamp="1", **more):
        first, second = rendered({"data": {"x": value}, **more}), rendered({"data": {"x": "other"}, **more})
        found = with_marks(first, second, NAMES)
        files = {"a.yaml": f"rendered-{value}", "b.yaml": "rendered-b"}
        return with_safe_ids(Revision("1", "", files), found.manifests, stamp)

    one = ids("hunter2")
    assert one == ids("hunter3")
    assert "hunter2" not in repr(one)
    assert one.stamps == {"a.yaml": "1"}
    assert ids("hunter2", "2").files == one.files
    assert ids("hunter2", immutable=True).files["a.yaml"] != one.files["a.yaml"]
    assert with_safe_ids(Revision("1", "", {"a.yaml": "x"}), rendered({}).manifests, "1").stamps == {}


def test_where_other_values_cant_be_rendered_all_is_marked_and_a_preview_shows_nothing_and_says_why():
    first, second = rendered({"data": {"x": "a"}}), Parsed((), (Problem("Chart.yaml", 0, "Helm can't render it"),))
    marked = with_marks(first, second, NAMES)
    assert {use.steps for use in marked.manifests[0].uses} == {("data", "x")}
    hidden = concealed(marked, second)
    assert hidden.manifests == ()
    [problem] = hidden.problems
    assert (problem.path, problem.is_error) == ("Chart.yaml", True)
    assert problem.message.startswith("it can't be rendered with other values in its Secrets")
