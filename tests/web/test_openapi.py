"""The description of the API: of each route, whole, and true of real answers, which the fixtures hold against it in all tests here."""

import fastjsonschema
import pytest

from kubectl_reconcile.web import app
from kubectl_reconcile.web.reference import openapi
from tests.web.described import DOCUMENT, answer_to, as_described, shape


def test_it_is_as_the_program_makes_it():
    assert openapi.document() == DOCUMENT, "run make manifests"


def test_a_route_without_a_description_is_a_fault(monkeypatch):
    monkeypatch.setitem(app.API, ("GET", "/api/v1/new"), app.API["GET", "/api/v1/about"])
    with pytest.raises(LookupError, match="/api/v1/new"):
        openapi.document()


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_each_shape_is_one(name):
    shape(name)


def test_what_is_said_of_an_object_is_found_where_it_is_asked():
    assert answer_to("GET", "/api/v1/objects/Pod/shop/web/logs") == "Logs"
    assert answer_to("POST", "/api/v1/objects/Pod/shop/web/approve") == "Said"
    assert answer_to("POST", "/api/v1/syncs/shop/web/sync") == "Said"


ODD = {
    "a field that nobody described": {"said": "done", "more": ""},
    "a field that is missing": {},
    "another kind of value": {"said": 1},
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_an_answer_that_is_not_as_described_is_found(answer):
    with pytest.raises(fastjsonschema.JsonSchemaException):
        as_described("POST", "/api/v1/syncs/shop/web/sync", 200, answer)
