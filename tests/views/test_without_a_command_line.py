"""Whoever serves the page needs nothing of the command line: no document loads a file of it, nor click."""

import subprocess
import sys

MAKES_EACH = """
import sys

from kubectl_reconcile.core.health.health import failed
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.outlook.explain import ExplainFacts
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.commands.event_stream import StreamedEvent
from kubectl_reconcile.engine.commands.explain import Explanation
from kubectl_reconcile.engine.commands.history import entries_of
from kubectl_reconcile.engine.commands.owner_tree import OwnedObject
from kubectl_reconcile.views import changes, events, explanation, fleet, history, plan, plan_review, syncs, tree
from kubectl_reconcile.web import app, in_cluster
from kubectl_reconcile.web.spelling import as_json

metadata = {"name": "shop", "namespace": "shop"}
live = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": metadata}
made = Plan(sync=ObjectRef.of(live), revision="3f9c2e1d0b", changes=())
said = StreamedEvent("", "Normal", "Synced", "all is well", ObjectRef.of(live), "", "daemon")
documents = (
    fleet.page([syncs.row(live)], fleet.FleetQuery()),
    syncs.document(live, may_write=True),
    tree.document(OwnedObject(live, failed("broken"))),
    events.EventsDocument(events=[events.document(said)]),
    history.document(live, entries_of(live)),
    plan.document(made, changes.PlanView("2026-11-20T12:00:00Z")),
    plan_review.document(made, ""),
    explanation.document(Explanation(ExplainFacts(live, UNKNOWN), (), "nobody asks for it")),
)
assert all(len(as_json(each)) > 2 for each in documents)
print(*sorted(name for name in sys.modules if name == "click" or name.startswith("kubectl_reconcile.cli")))
"""


def test_making_each_document_loads_nothing_of_the_command_line():
    made = subprocess.run([sys.executable, "-c", MAKES_EACH], capture_output=True, text=True, check=False)
    assert (made.stdout.strip(), made.stderr) == ("", "")
