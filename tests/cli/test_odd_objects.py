"""What people are shown of live objects: whatever these say of themselves, nothing raises, and nothing but text reaches the terminal."""

from __future__ import annotations

import io
import itertools
import json
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.cli.output.data.structured import structured
from kubectl_reconcile.cli.output.terminal import Terminal
from kubectl_reconcile.cli.verbs.change import history as history_verb
from kubectl_reconcile.cli.verbs.change import suspend, sync
from kubectl_reconcile.cli.verbs.inspect import events, get, status, tree
from kubectl_reconcile.core.health.judge import health
from kubectl_reconcile.core.objects import annotations_of
from kubectl_reconcile.core.resources.history import previous_of
from kubectl_reconcile.engine.api import sync_requests
from kubectl_reconcile.engine.commands import doctor
from kubectl_reconcile.engine.commands import history as history_engine
from kubectl_reconcile.engine.commands.event_stream import StreamedEvent
from kubectl_reconcile.engine.commands.owner_tree import OwnedObject
from kubectl_reconcile.views import events as events_views
from kubectl_reconcile.views.changes import PlanView, yaml_of
from kubectl_reconcile.views.document import plain
from kubectl_reconcile.views.masking import _manifest
from kubectl_reconcile.views.text import is_clean
from tests.odd_json import KINDS

NOW = "2026-11-20T12:00:00+00:00"
JSONPATH = "jsonpath={.status.conditions[*].type}{.metadata.labels}"
OUTPUTS = [None, "wide", "name", "json", "yaml", JSONPATH]
HOSTILE = ["\x1b[2J\x1b[H", "\r\n\x07", "\u202egnp.exe", "\x9b31m", "a\tb"]
ODD = [
    *HOSTILE, *([text] for text in HOSTILE), *({text: text} for text in HOSTILE), None, True, 0, -3, 2.5, 2**63, "", "good", "9" * 30, [], {},
    [None], [[]], [{}, 3, "x"], {"a": None}, {"a": {"b": [None]}}, "2026-11-20T11:00:00Z", "2026-11-20T11:00:00", "user:secret@host:path",
    "https://user:secret@host", '{"branch": 3}', "False", "True", "Held", "worktree-1",
]  # fmt: skip

widths = st.none() | st.integers(1, 200)
odd = st.sampled_from(ODD)
rows = odd | st.lists(
    odd | st.fixed_dictionaries({}, optional=dict.fromkeys(("revision", "time", "result", "message", "digest", "total", "created"), odd)),
    max_size=3,
)  # fmt: skip
conditions = odd | st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["Ready", "Reconciling", "Stalled"]) | odd},
        optional=dict.fromkeys(("status", "reason", "message", "lastTransitionTime"), odd),
    ),
    max_size=3,
)
COUNTED = ("summary", "problems", "warnings", "lastAppliedRevision", "lastAttemptedRevision", "lastHandledSyncAt")
sync_statuses = odd | st.fixed_dictionaries(
    {}, optional={"conditions": conditions, "history": rows, **dict.fromkeys(COUNTED, odd)}
)
gits = odd | st.fixed_dictionaries({}, optional=dict.fromkeys(("url", "branch", "tag", "commit", "path"), odd))
specs = odd | st.fixed_dictionaries({}, optional={"suspend": odd, "source": odd | st.fixed_dictionaries({"git": gits})})
notes = odd | st.fixed_dictionaries({}, optional={"reconcile.dev/pinned-from": odd | gits.map(json.dumps)})


def objects(kinds, **parts):
    """Live objects of which the server vouches for the names alone."""
    names = {"name": st.just("web"), "namespace": st.just("shop"), "uid": st.just("u-1")}
    more = dict.fromkeys(
        (
            "labels",
            "ownerReferences",
            "finalizers",
            "managedFields",
            "creationTimestamp",
            "deletionTimestamp",
            "generation",
        ),
        odd,
    )
    metadata = st.fixed_dictionaries(names, optional=more | {"annotations": parts.pop("annotations", odd)})
    return st.sampled_from(kinds).flatmap(lambda kind: st.fixed_dictionaries(
        {"apiVersion": st.just(kind[0]), "kind": st.just(kind[1]), "metadata": metadata}, optional=parts
    ))  # fmt: skip


syncs = objects([("reconcile.dev/v1alpha1", "Sync")], annotations=notes, spec=specs, status=sync_statuses)
live_objects = objects(
    KINDS, spec=odd, data=odd, status=odd | st.fixed_dictionaries({}, optional={"conditions": conditions, "phase": odd})
)


def shown(lines, *, width=None):
    """The text that reaches a terminal; each line of it does no harm."""
    texts = [Terminal(width=width).text(one) for one in lines]
    assert all(map(is_clean, texts))
    return "\n".join(texts)


def without_managed_fields(found):
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key != "managedFields"}}


@settings(deadline=None, max_examples=200)
@given(found=syncs, width=widths)
def test_status_and_get_show_a_sync_of_any_shape(found, width):
    for output, one in itertools.product(OUTPUTS, (True, False)):
        text = shown(status._shown([found], output, one=one, everywhere=not one, width=width))
        if output == "json":
            told = json.loads(text)
            assert (told if one else told["items"][0]) == without_managed_fields(found)
        table = get._Table(Terminal(width=width), Terminal(), output or "", everywhere=not one, headers=True)
        assert "web" in shown(table._lines([found], one=False)) or output == JSONPATH


@settings(deadline=None, max_examples=200)
@given(found=syncs, below=st.lists(live_objects, max_size=2), width=widths)
def test_tree_shows_objects_of_any_shape(found, below, width):
    root = OwnedObject(found, health(found), tuple(OwnedObject(each, health(each)) for each in (*below, found)))
    for output, one in itertools.product(OUTPUTS[:-1], (root, tree._unwell(root))):
        text = shown(tree._shown(one, output, width))
        if output == "json":
            assert json.loads(text)["name"] == "web"


@settings(deadline=None, max_examples=200)
@given(found=syncs, width=widths)
def test_history_shows_a_sync_of_any_shape(found, width):
    entries = history_engine.entries_of(found)
    for output in OUTPUTS[:-1]:
        text = shown(history_verb._shown(found, entries, output, width))
        if output == "json":
            assert len(json.loads(text)["entries"]) == len(entries)
    previous_of(history_engine._rows(found))


@settings(deadline=None, max_examples=200)
@given(
    event=st.dictionaries(st.sampled_from(["regarding", "eventTime", "type", "reason", "note", "metadata", "reportingInstance"]), odd),
    width=widths,
)  # fmt: skip
def test_events_of_any_shape_are_shown(event, width):
    said = StreamedEvent.of({"metadata": {"uid": "u"}, **event})
    for everywhere in (True, False):
        options = SimpleNamespace(everywhere=everywhere, out=Terminal(width=width), warnings=True, since_s=60.0)
        shown(events._lines(said, options))
        events._is_wanted(said, options)
    assert json.loads(shown([(events.Span(json.dumps(plain(events_views.document(said)))),)]))["message"] == said.note


@settings(deadline=None, max_examples=200)
@given(found=syncs)
def test_verbs_that_follow_or_steer_a_sync_take_one_of_any_shape(found):
    screens = {"out": Terminal(), "err": Terminal()}
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        for output in (None, "json"):
            sync._outcome(found, SimpleNamespace(look=SimpleNamespace(output=output), **screens))
        suspend.warn_of_keeper(found, Terminal())
    assert all(map(is_clean, told.getvalue().split("\n")))
    sync._doing(found)
    sync_requests.is_handled(found, "token")
    doctor._state("a Sync", found, "Git answers")


@settings(deadline=None, max_examples=200)
@given(live=live_objects, before=st.none() | live_objects)
def test_manifests_of_any_shape_are_shown_as_yaml(live, before):
    view = PlanView(NOW)
    assert all(map(is_clean, yaml_of(live, view)))
    shown(structured(live, "yaml"))
    _manifest(live, before)
    annotations_of(live)
