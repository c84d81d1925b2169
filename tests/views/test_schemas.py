"""Documents and their schemas: the files are as the Structs make them, and a document is as its schema says."""

import functools
import json
from pathlib import Path

import fastjsonschema
import pytest
from msgspec.structs import replace

from kubectl_reconcile.core import planning
from kubectl_reconcile.core.health.health import failed
from kubectl_reconcile.core.objects import FieldPath, ObjectRef, Problem
from kubectl_reconcile.core.planning.hold import Hold
from kubectl_reconcile.core.planning.plan import Nested, Op, Plan, Unhealthy
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.engine.commands.event_stream import StreamedEvent
from kubectl_reconcile.engine.commands.history import entries_of
from kubectl_reconcile.engine.commands.owner_tree import OwnedObject
from kubectl_reconcile.views import events, history, plan, plan_review, schemas, syncs, tree
from kubectl_reconcile.views.changes import PlanView
from kubectl_reconcile.views.document import plain
from tests.core.planning.changes import a_change

DOCS = Path(__file__).parents[2] / "docs"
PRINTED = json.loads((DOCS / "printed.json").read_text())


def test_the_schema_of_plan_files_is_as_the_documents_make_it():
    kept = Path(planning.__path__[0], "plan.schema.json").read_text()
    assert kept == schemas.plan_file_text(), "run make manifests"


def test_the_schema_of_what_is_printed_is_as_the_documents_make_it():
    assert schemas.printed_text() == (DOCS / "printed.json").read_text(), "run make manifests"


@functools.cache
def shape(name):
    return fastjsonschema.compile({"$ref": f"#/definitions/{name}", "definitions": PRINTED["definitions"]})


@functools.cache
def answer(name):
    return fastjsonschema.compile(
        {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas.answers()}}
    )


SYNC = {
    "apiVersion": "reconcile.dev/v1alpha1",
    "kind": "Sync",
    "metadata": {"name": "shop", "namespace": "shop"},
    "spec": {"source": {"git": {"url": "https://github.com/example/shop.git", "branch": "main"}}},
    "status": {
        "lastAppliedRevision": "3f9c2e1d0b",
        "history": [{"revision": "3f9c2e1d0b", "time": "2026-11-20T12:00:00Z", "result": "Synced", "created": 2}],
        "problems": ["web.yaml:3: no name"],
        "health": {"counts": {"Failed": 1}, "unhealthy": [{"object": "Deployment.apps shop/web", "health": "Failed"}]},
    },
}
REF = ObjectRef("apps", "Deployment", "shop", "web")
BEFORE, AFTER = ({"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": n}} for n in (1, 2))
FIELD = FieldChange(FieldPath.fields("spec", "replicas"), "replace", 1, 2, Reason.GIT, commit="3f9c2e1d0b")
CHANGE = a_change(REF, Op.UPDATE, before=BEFORE, after=AFTER, fields=(FIELD,), file="web.yaml", line=1)
PLAN = Plan(
    sync=ObjectRef.of(SYNC),
    revision="3f9c2e1d0b",
    changes=(CHANGE,),
    problems=(Problem("web.yaml", 1, "no name"),),
    holds=(Hold("maxDeletes", "too many", (REF,)),),
    unhealthy=(Unhealthy(REF, failed("crashes")),),
)
ENTRIES = entries_of(SYNC)
MADE = {
    "Plan": plan.document(PLAN, PlanView("2026-11-20T12:00:00Z")),
    "History": history.document(SYNC, ENTRIES),
    "Node": tree.document(
        OwnedObject(SYNC, failed("broken"), (OwnedObject(BEFORE | {"apiVersion": "v1"}, failed("")),))
    ),
    "Event": events.document(StreamedEvent("", "Normal", "Synced", "all is well", REF, "", "daemon")),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_printed_is_as_its_schema_says(name):
    shape(name)(plain(MADE[name]))


ANSWERED = {
    "Sync": syncs.document(SYNC, may_write=True),
    "Plan": plan_review.document(PLAN, "https://github.com/example/shop.git"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_what_the_page_is_answered_is_as_its_schema_says(name):
    answer(name)(plain(ANSWERED[name]))


BELOW = ObjectRef("reconcile.dev", "Sync", "shop", "web")
NESTED = replace(
    PLAN,
    base="3f9c2e1d0b",
    nested=(
        Nested(BELOW, Op.UPDATE, (), ("spec.source.path",), replace(PLAN, sync=BELOW, remarks={PLAN.changes[0].ref: ("not checked",)})),
        Nested(BELOW, Op.DELETE, (BELOW,), not_planned="its members stay, and belong to nobody then"),
    ),
)  # fmt: skip


def test_nested_plans_are_as_their_schemas_say():
    printed = plain(plan.document(NESTED, PlanView("2026-11-20T12:00:00Z")))
    shape("Plan")(printed)
    answer("Plan")(plain(plan_review.document(NESTED, "https://github.com/example/shop.git")))
    first, gone = printed["nested"]
    assert first["plan"]["changes"][0]["remarks"] == ["not checked"]
    assert (gone["op"], "plan" in gone, gone["above"]) == ("delete", False, [{"namespace": "shop", "name": "web"}])


def test_of_nested_plans_no_link_is_guessed():
    """They may be of another repository than the plan itself."""
    first, _ = plain(plan_review.document(NESTED, "https://github.com/example/shop.git"))["nested"]
    assert first["plan"]["link"] == ""


def test_a_review_has_rows_and_links_for_what_a_plan_file_has_whole():
    (whole,), (reviewed,) = (plain(each)["changes"] for each in (MADE["Plan"], ANSWERED["Plan"]))
    assert whole["before"] == BEFORE
    assert {"before", "after", "delta", "fingerprint"}.isdisjoint(reviewed)
    assert [row for row in reviewed["rows"] if row[0] in "+-"] == [
        ["-", 5, 0, "  replicas: 1"],
        ["+", 0, 5, "  replicas: 2"],
    ]
    assert reviewed["fields"] == [
        {
            "path": ".spec.replicas", "op": "replace", "reason": "git", "commit": "3f9c2e1d0b",
            "link": "https://github.com/example/shop/commit/3f9c2e1d0b",
        }
    ]  # fmt: skip


ODD = {
    "a field of nobody": {"more": 1},
    "another kind of value": {"children": "none"},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_is_not_as_its_schema_says_is_found(odd):
    with pytest.raises(fastjsonschema.JsonSchemaException):
        shape("Node")(plain(MADE["Node"]) | odd)
