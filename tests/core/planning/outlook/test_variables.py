"""Which variables stand in a change, in words."""

import pytest

from kubectl_reconcile.core.manifests.parse import VariableUse
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.outlook.origins import named, variables_of
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from tests.core.planning.changes import a_change

REF = ObjectRef("", "ConfigMap", "shop", "web")
KEYS = ("a", "b", "c", "d", "e")
TREE = {"data": dict.fromkeys(KEYS, "x")}


def use(field, *names):
    return VariableUse(("data", field), names)


def said(*uses, fields=(), op=Op.UPDATE, **more):
    changes = tuple(FieldChange(FieldPath.fields("data", each), "replace", "", "x", Reason.GIT) for each in fields)
    given = {"intent": TREE, "after": TREE, **more}
    return list(variables_of(a_change(REF, op, fields=changes, uses=uses, **given)))


SAID = {
    "a field, and its variable": ([use("a", "SIZE")], ["a"], [".data.a from ${SIZE}"]),
    "nothing of fields that stay": ([use("a", "SIZE")], ["b"], []),
    "nothing without variables": ([], ["a"], []),
    "all variables of a field": ([use("a", "HOST", "PORT")], ["a"], [".data.a from ${HOST} and ${PORT}"]),
    "fields of one variable together": (
        [use("a", "SIZE"), use("b", "NAME"), use("c", "SIZE")], ["a", "b", "c"],
        [".data.a, .data.c from ${SIZE}", ".data.b from ${NAME}"],
    ),
    "four fields, and how many more": (
        [use(each, "SIZE") for each in KEYS], KEYS, [".data.a, .data.b, .data.c, .data.d and 1 more from ${SIZE}"],
    ),
    "four fields, if there are no more": (
        [use(each, "SIZE") for each in KEYS], KEYS[:4], [".data.a, .data.b, .data.c, .data.d from ${SIZE}"],
    ),
    "the variables of what has no single fields": (
        [use("a", "SIZE"), use("b", "NAME"), use("c", "SIZE")], [], ["with the values of ${NAME}, ${SIZE}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("uses", "fields", "sentences"), SAID.values(), ids=SAID)
def test_a_change_says(uses, fields, sentences):
    assert said(*uses, fields=fields) == sentences


def test_an_object_that_the_server_hasnt_seen_is_read_as_it_is_to_be():
    assert said(use("a", "SIZE"), fields=["a"], after=None) == [".data.a from ${SIZE}"]


def test_a_child_has_no_variables_of_its_own():
    assert said(use("a", "SIZE"), fields=["a"], owner=REF) == []


def test_what_a_chart_looked_up_has_words_of_its_own():
    assert (named("SIZE"), named("Secret shop/login")) == ("${SIZE}", "Secret shop/login")
