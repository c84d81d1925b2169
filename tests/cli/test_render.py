"""What a plan looks like: golden texts, masked Secrets, and nothing that could harm a terminal."""

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.cli.output import render
from kubectl_reconcile.cli.output.data import structured
from kubectl_reconcile.cli.output.terminal import Terminal, table
from kubectl_reconcile.cli.verbs.inspect import status
from kubectl_reconcile.core.health.health import failed
from kubectl_reconcile.core.manifests.parse import VariableUse
from kubectl_reconcile.core.objects import FieldPath, ObjectRef, Problem
from kubectl_reconcile.core.planning.hold import Hold, approval_of
from kubectl_reconcile.core.planning.outlook.origins import variables_of
from kubectl_reconcile.core.planning.plan import Op, Plan, Unhealthy, fingerprint
from kubectl_reconcile.core.ssa.merge import FieldChange, FieldConflict, Reason
from kubectl_reconcile.views import ages, changes, syncs
from kubectl_reconcile.views import plan as plan_file
from kubectl_reconcile.views.changes import PlanView
from kubectl_reconcile.views.document import plain
from kubectl_reconcile.views.masking import CHANGED, HIDDEN, masked
from kubectl_reconcile.views.text import Span, Tone, clean, is_clean, line
from kubectl_reconcile.views.yamltext import dump
from tests import yaml_text
from tests.core.planning.changes import a_change

NOW = "2026-11-20T12:00:00Z"
VIEW = PlanView(NOW)
PLAIN, COLOURED = Terminal(), Terminal(colour=True)
CACHE = ObjectRef("cache.example.com", "Memcached", "shop", "sessions")
DEPLOYMENT = ObjectRef("apps", "Deployment", "shop", "sessions")
SHOP = ObjectRef("reconcile.dev", "Sync", "shop", "shop")


def memcached(size, **metadata):
    named = {"name": "sessions", "namespace": "shop", **metadata}
    return {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": named, "spec": {"size": size}}


def deployment(replicas):
    named = {"name": "sessions", "namespace": "shop"}
    spec = {
        "replicas": replicas,
        "template": {"spec": {"containers": [{"name": "memcached", "image": "memcached:1.6"}]}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named, "spec": spec}


def config(name, data):
    named = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}


def secret(values, **annotations):
    named = {"name": "login", "namespace": "shop"} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": named, "data": values}


def field(path, reason, before=None, after=None, **rest):
    return FieldChange(FieldPath.fields(*path.split(".")), "replace", before, after, reason, **rest)


def update(before, after, **rest):
    return a_change(ObjectRef.of(after), Op.UPDATE, before=before, after=after, **rest)


def plan(*changes, unchanged=0, **rest):
    same = (a_change(ObjectRef("", "ConfigMap", "shop", f"same-{n}"), Op.UNCHANGED) for n in range(unchanged))
    return Plan(**{"sync": SHOP, "revision": "3f9c2e1d0b", "changes": (*changes, *same)} | rest)


def written(lines, terminal=PLAIN):
    return "".join(f"{terminal.text(one)}\n" for one in lines)


def shown(made, terminal=PLAIN, view=VIEW):
    return written([*render.diff(made, view), render.summary(made)], terminal)


SCALED = plan(
    update(
        memcached(2, uid="u1", resourceVersion="7", managedFields=[{}]),
        memcached(3, uid="u1", resourceVersion="7", managedFields=[]),
        file="cache.yaml",
        line=1,
        fields=(field("spec.size", Reason.GIT, 2, 3, commit="3f9c2e1d0b"),),
    ),
    a_change(ObjectRef("", "ConfigMap", "shop", "old"), Op.DELETE, before=config("old", {"a": "1"}), file="old.yaml"),
    update(
        deployment(2),
        deployment(3),
        owner=CACHE,
        manager="kubectl-reconcile-memcached",
        fields=(field("spec.replicas", Reason.GIT, 2, 3),),
    ),
    unchanged=996,
)

SCALED_TEXT = """\
# .spec.size changed in Git (3f9c2e1)
--- live/Memcached.cache.example.com shop/sessions
+++ git/Memcached.cache.example.com shop/sessions (cache.yaml:1, 3f9c2e1)
@@ -4,4 +4,4 @@
   name: sessions
   namespace: shop
 spec:
-  size: 2
+  size: 3
# by memcached for Memcached.cache.example.com shop/sessions
# .spec.replicas wanted by memcached
--- live/Deployment.apps shop/sessions
+++ memcached/Deployment.apps shop/sessions
@@ -4,7 +4,7 @@
   name: sessions
   namespace: shop
 spec:
-  replicas: 2
+  replicas: 3
   template:
     spec:
       containers:
--- live/ConfigMap shop/old
+++ /dev/null
@@ -1,7 +0,0 @@
-apiVersion: v1
-data:
-  a: "1"
-kind: ConfigMap
-metadata:
-  name: old
-  namespace: shop
2 to update, 1 to delete, 996 unchanged
"""


def test_a_module_s_children_follow_their_resource_and_say_so():
    assert shown(SCALED) == SCALED_TEXT


def test_colour_adds_nothing_but_colour():
    coloured = shown(SCALED, COLOURED)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == SCALED_TEXT
    assert "\x1b[31m-  size: 2\x1b[0m\n\x1b[32m+  size: 3\x1b[0m\n" in coloured


def test_a_create_is_all_additions():
    made = plan(a_change(CACHE, Op.CREATE, after=memcached(1), file="cache.yaml", line=4), revision="worktree-88aa")
    assert (
        shown(made)
        == """\
--- /dev/null
+++ file/Memcached.cache.example.com shop/sessions (cache.yaml:4)
@@ -0,0 +1,7 @@
+apiVersion: cache.example.com/v1alpha1
+kind: Memcached
+metadata:
+  name: sessions
+  namespace: shop
+spec:
+  size: 1
1 to create, 0 unchanged
"""
    )


NOTES = {
    "drift names who and when": (
        {"fields": (field("spec.size", Reason.DRIFT, manager="kubectl-edit", time="2026-11-20T11:56:00Z"),)},
        ".spec.size drifted in the cluster (kubectl-edit 4m ago)",
    ),
    "a field changed on both sides says both": (
        {"fields": (field("spec.size", Reason.BOTH, manager="kubectl-edit", commit="3f9c2e1d0b"),)},
        ".spec.size changed in Git (3f9c2e1), and drifted in the cluster (kubectl-edit)",
    ),
    "drift is told before what Git asks": (
        {"fields": (field("spec.a", Reason.GIT), field("spec.b", Reason.DRIFT), field("spec.c", Reason.GIT))},
        ".spec.b drifted in the cluster\n.spec.a, .spec.c changed in Git",
    ),
    "many fields are counted": (
        {"fields": tuple(field(f"spec.f{n}", Reason.ADOPT) for n in range(6))},
        ".spec.f0, .spec.f1, .spec.f2, .spec.f3 and 2 more taken over",
    ),
    "a field left to its owner": (
        {"conflicts": (FieldConflict(FieldPath.fields("spec", "size"), "autoscaler", 5, 3),)},
        ".spec.size left to autoscaler",
    ),
    "a field taken from its owner": (
        {
            "fields": (field("spec.size", Reason.GIT),),
            "conflicts": (FieldConflict(FieldPath.fields("spec", "size"), "autoscaler", 5, 3),),
        },
        ".spec.size changed in Git\n.spec.size overrides autoscaler",
    ),
    "a drifted field's owner isn't named twice": (
        {
            "fields": (field("spec.size", Reason.DRIFT, manager="kubectl-edit"),),
            "conflicts": (FieldConflict(FieldPath.fields("spec", "size"), "kubectl-edit", 5, 3),),
        },
        ".spec.size drifted in the cluster (kubectl-edit)",
    ),
    "a refusal": ({"blocked": "spec.size: must be positive"}, "blocked: spec.size: must be positive"),
    "a doubt": ({"unsure": True}, "the server may find nothing to change"),
}


@pytest.mark.parametrize(("facts", "expected"), NOTES.values(), ids=NOTES)
def test_notes(facts, expected):
    made = plan(update(memcached(2), memcached(3), **facts))
    told = [text.removeprefix("# ") for text in shown(made).splitlines() if text.startswith("# ")]
    assert "\n".join(told) == expected


def test_what_the_garbage_collector_takes_is_named_not_spelt_out():
    gone = a_change(CACHE, Op.DELETE, before=memcached(1))
    child = a_change(DEPLOYMENT, Op.DELETE, before=deployment(1), owner=CACHE, cascade=True)
    text = shown(plan(child, gone))
    assert f"# {DEPLOYMENT}: deleted along with {CACHE}\n2 to delete" in text
    assert "replicas" not in text


def test_fields_that_only_the_server_writes_make_no_diff():
    before = {**memcached(2, resourceVersion="1", generation=1), "status": {"nodes": []}}
    after = {**memcached(2, resourceVersion="2", generation=2), "status": {"nodes": ["a"]}}
    assert shown(plan(update(before, after))).splitlines()[0] == (
        f"# {CACHE}: only fields that aren't shown here differ"
    )


def test_managed_fields_show_when_asked_for():
    made = plan(update(memcached(2, managedFields=[{"manager": "me"}]), memcached(2)))
    assert "-  - manager: me" in shown(made, view=replace(VIEW, show_managed_fields=True))


def test_owners_that_own_each_other_are_shown_all_the_same():
    one = a_change(CACHE, Op.CREATE, after=memcached(1), owner=DEPLOYMENT)
    other = a_change(DEPLOYMENT, Op.CREATE, after=deployment(1), owner=CACHE)
    assert {change.ref for change, _ in changes.in_order(plan(one, other))} == {CACHE, DEPLOYMENT}


def test_a_change_deep_in_a_long_text_shows_its_surroundings_and_right_line_numbers():
    lines = [f"line {n}" for n in range(1, 3001)]
    changed = [*lines[:1499], "line 1500 changed", *lines[1500:]]
    before, after = (config("long", {"text": "\n".join(text)}) for text in (lines, changed))
    assert "@@ -1500,7 +1500,7 @@\n     line 1497\n" in shown(plan(update(before, after)))


SUMMARIES = {
    "nothing to do": (plan(unchanged=3), "no changes, 3 unchanged"),
    "one of each": (
        plan(
            a_change(CACHE, Op.CREATE),
            a_change(CACHE, Op.REPLACE),
            a_change(CACHE, Op.DELETE, held=True),
            a_change(CACHE, Op.UPDATE, blocked="no"),
            problems=(Problem("a.yaml", 1, "bad"),),
        ),
        "1 to create, 1 to replace, 1 held, 1 blocked, 0 unchanged, 1 problem",
    ),
    "problems alone": (plan(problems=(Problem("a", 1, "b"), Problem("c", 1, "d"))), "0 unchanged, 2 problems"),
}


@pytest.mark.parametrize(("made", "expected"), SUMMARIES.values(), ids=SUMMARIES)
def test_summary(made, expected):
    assert PLAIN.text(render.summary(made)) == expected


def test_overview_indents_what_a_module_makes():
    assert (
        written(render.overview(SCALED, VIEW))
        == """\
update  Memcached.cache.example.com shop/sessions  .spec.size changed in Git (3f9c2e1)
update    Deployment.apps shop/sessions  .spec.replicas wanted by memcached
delete  ConfigMap shop/old
"""
    )


def test_names_are_kubectl_s():
    assert written(render.names(SCALED)) == (
        "memcached.cache.example.com/sessions\ndeployment.apps/sessions\nconfigmap/old\n"
    )


def test_obstacles_say_where_what_and_what_to_do():
    made = plan(
        SCALED.changes[0].gated(blocked="spec.size: must be positive"),
        problems=(Problem("bad.yaml", 3, "not YAML", "indent it"),),
        holds=(Hold("EmptySource", "no manifest is left", (CACHE, DEPLOYMENT)),),
    )
    assert (
        written(render.attention(made))
        == f"""\
cache.yaml:1: Memcached.cache.example.com shop/sessions: spec.size: must be positive
bad.yaml:3: not YAML (hint: indent it)
held (EmptySource): no manifest is left
  Memcached.cache.example.com shop/sessions
  Deployment.apps shop/sessions
to approve them: kubectl reconcile approve shop -n shop --plan-hash {approval_of((CACHE, DEPLOYMENT))}
"""
    )


# --- Secrets ----------------------------------------------------------------------------------------------------------

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ROTATED = update(
    secret({"user": "YWRtaW4=", "password": "b2xk"}, **{LAST_APPLIED: json.dumps(secret({"password": "b2xk"}))}),
    secret(
        {"user": "YWRtaW4=", "password": "bmV3LXNlY3JldA=="},
        **{LAST_APPLIED: json.dumps(secret({"password": "bmV3LXNlY3JldA=="}))},
    ),
    intent=secret({"password": "bmV3LXNlY3JldA=="}),
    fields=(
        field("data.password", Reason.GIT, "b2xk", "bmV3LXNlY3JldA=="),
        field("metadata.annotations", Reason.GIT, {LAST_APPLIED: "b2xk"}, {LAST_APPLIED: "bmV3LXNlY3JldA=="}),
    ),
    conflicts=(FieldConflict(FieldPath.fields("data", "password"), "vault", "b2xk", "bmV3LXNlY3JldA=="),),
)
VALUES = ("YWRtaW4=", "b2xk", "bmV3LXNlY3JldA==")


def test_a_changed_secret_shows_that_it_changes_and_nothing_else():
    text = shown(plan(ROTATED))
    assert f'-  password: "{HIDDEN}"\n+  password: "{CHANGED}"\n   user: "{HIDDEN}"\n' in text
    assert not [value for value in VALUES if value in text]


def test_who_is_asked_is_shown_all_that_ends_also_along_with_others():
    old, taken, left = (ObjectRef("", "ConfigMap", "shop", name) for name in ("old", "taken", "left"))
    made = plan(
        a_change(old, Op.DELETE),
        a_change(taken, Op.DELETE, owner=old, cascade=True),
        a_change(left, Op.DELETE, held=True),
        a_change(left, Op.DELETE, owner=old, cascade=True, held=True),
        a_change(CACHE, Op.REPLACE),
        a_change(DEPLOYMENT, Op.UPDATE),
    )
    assert written(render.ending(made)).splitlines() == [
        "delete   ConfigMap shop/old",
        "delete   ConfigMap shop/taken, along with ConfigMap shop/old",
        "replace  Memcached.cache.example.com shop/sessions",
    ]


def test_a_plan_in_json_holds_no_secret():
    text = json.dumps(plain(plan_file.document(plan(ROTATED), VIEW)))
    assert not [value for value in VALUES if value in text]


def test_secrets_show_to_those_who_ask():
    text = shown(plan(ROTATED), view=replace(VIEW, show_secrets=True))
    assert "-  password: b2xk\n" in text


TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=6,
)


@given(
    before=st.none() | st.dictionaries(TEXT, JSON, max_size=3) | JSON,
    after=st.dictionaries(TEXT, JSON, max_size=3) | JSON,
    copied=st.booleans(),
)
def test_no_value_of_a_secret_survives_masking(before, after, copied):
    token = "s3cr3t-value"
    poisoned = {**after, "key": token} if isinstance(after, dict) else [after, token]
    annotations = {LAST_APPLIED: json.dumps(secret(poisoned))} if copied else {}
    old = None if before is None else secret(before)
    new = secret(poisoned, **annotations) | {"stringData": poisoned}
    for change in (
        a_change(ObjectRef.of(new), Op.UPDATE, before=old, after=new),
        a_change(ObjectRef.of(new), Op.DELETE, before=new),
    ):
        assert token not in json.dumps([masked(change).before, masked(change).after])


def test_a_malformed_copy_in_the_annotation_is_masked_whole():
    change = masked(update(secret({}, **{LAST_APPLIED: "s3cr3t"}), secret({}, **{LAST_APPLIED: "s3cr3t2"})))
    assert change.before["metadata"]["annotations"][LAST_APPLIED] == HIDDEN
    assert change.after["metadata"]["annotations"][LAST_APPLIED] == CHANGED


# --- safety of terminals ----------------------------------------------------------------------------------------------

HOSTILE = {
    "a colour": ("\x1b[31mred", "\\x1b[31mred"),
    "a title": ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
    "an eight-bit escape": ("\x9b2J", "\\x9b2J"),
    "a line that overwrites itself": ("good\rbad", "good\\rbad"),
    "a second line": ("one\ntwo", "one\\ntwo"),
    "text turned around": ("\u202egnp.exe", "\\u202egnp.exe"),
    "an invisible letter": ("ad\u200bmin", "ad\\u200bmin"),
    "a tag": ("\U000e0041", "\\U000e0041"),
    "half a character": ("\ud800", "\\ud800"),
    "letters of the world": ("Größe 大小 🍫", "Größe 大小 🍫"),
}


@pytest.mark.parametrize(("text", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_clean(text, expected):
    assert clean(text) == expected


@given(name=TEXT, value=JSON, message=TEXT, colour=st.booleans())
def test_nothing_that_a_plan_holds_reaches_a_terminal_raw(name, value, message, colour):
    ref = ObjectRef(message, name, name, message)
    change = a_change(
        ref, Op.UPDATE, before=None, after={"apiVersion": "v1", "kind": name, "metadata": {"name": value}, message: value},
        fields=(FieldChange(FieldPath((f"f:{name}",)), "add", None, value, Reason.DRIFT, manager=message, time=message),),
        conflicts=(FieldConflict(FieldPath((f"f:{name}",)), message, value, value),), file=message, blocked=message,
    )  # fmt: skip
    made = plan(
        change, problems=(Problem(name, 1, message, message),), holds=(Hold("R", message, (ref,)),), revision=message
    )
    lines = [
        *render.diff(made, VIEW), *render.overview(made, VIEW), *render.names(made), *render.attention(made),
        *structured.json_lines(plan_file.document(made, VIEW)), *structured.yaml_lines(plan_file.document(made, VIEW)),
    ]  # fmt: skip
    text = re.sub(r"\x1b\[[0-9;]+m", "", written(lines, Terminal(colour=colour))) if colour else written(lines)
    assert all(is_clean(part) for part in text.split("\n"))
    assert text.count("\n") == len(lines)


def test_a_dumb_terminal_and_no_color_get_no_colour():
    class Screen(io.StringIO):
        def isatty(self):
            return True

    cases = [
        ({}, "auto"),
        ({"TERM": "dumb"}, "auto"),
        ({"NO_COLOR": "1"}, "auto"),
        ({"NO_COLOR": "1"}, "always"),
        ({}, "never"),
    ]
    assert [Terminal.of(Screen(), how, env).colour for env, how in cases] == [True, False, False, True, False]
    assert not Terminal.of(io.StringIO(), "auto", {}).colour


# --- YAML -------------------------------------------------------------------------------------------------------------

ODD_TEXT = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.text(" \n\tab:#-'\"|>{}[]&*!%@`?,~=\\0x1.e+_/ny")
    | st.text("0123456789.eExob_-+:TZinfm")
)
TREE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ODD_TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(ODD_TEXT, below, max_size=3),
)


@given(TREE)
def test_yaml_reads_back_as_the_same_tree_and_is_safe_to_show(tree):
    lines = dump({"tree": tree})
    assert yaml_text.document("\n".join(lines) + "\n") == {"tree": tree}
    assert all(map(is_clean, lines))


def test_yaml_looks_like_kubectl_s():
    tree = {
        "spec": {
            "args": ["-c", "sleep 1; echo: no"],
            "on": "yes",
            "count": 1,
            "ratio": "1.5",
            "cpu": "100m",
            "empty": {},
            "none": None,
        },
        "data": {"script": "#!/bin/sh\n\techo hi\n", "tail": "a\nb", "kept": "a\n\n", "bell": "a\x07\nb"},
        "list": [{"name": "web", "ports": [{"port": 80}]}, [1, 2]],
    }
    assert (
        "\n".join(dump(tree))
        == """\
data:
  bell: "a\\u0007\\nb"
  kept: |+
    a

  script: |
    #!/bin/sh
    \techo hi
  tail: |-
    a
    b
list:
- name: web
  ports:
  - port: 80
- - 1
  - 2
spec:
  args:
  - "-c"
  - "sleep 1; echo: no"
  count: 1
  cpu: 100m
  empty: {}
  none: null
  "on": "yes"
  ratio: "1.5\""""
    )


# --- status -----------------------------------------------------------------------------------------------------------

SYNC = {
    "metadata": {"name": "shop", "namespace": "shop"},
    "spec": {"source": {"git": {"url": "https://git.example.com/shop.git", "branch": "main"}, "path": "deploy"}},
    "status": {
        "lastAppliedRevision": "3f9c2e1d0b",
        "lastAttemptedRevision": "77aa01ff00",
        "summary": {"total": 12, "created": 0, "updated": 1, "deleted": 0, "unchanged": 10, "failed": 1},
        "problems": ["apps/web.yaml:41: two ports are the same"],
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ApplyFailed", "message": "1 failed", "lastTransitionTime": "2026-11-20T11:00:00Z"},
            {"type": "Stalled", "status": "False", "reason": "NotStalled", "message": "", "lastTransitionTime": "2026-11-18T11:00:00Z"},
        ],
        "history": [{"revision": "77aa01ff00", "time": "2026-11-20T11:59:30Z", "result": "ApplyFailed", "total": 12, "updated": 1, "failed": 1}],
    },
}  # fmt: skip


def test_status_in_a_table():
    assert (
        written(status.overview([SYNC], NOW, width=60))
        == """\
NAME   READY   REVISION   OBJECTS   LAST SYNC   MESSAGE
shop   False   3f9c2e1    12        30s ago     1 failed
"""
    )


def test_status_of_one():
    assert (
        written(status.details(SYNC, NOW))
        == """\
shop/shop  False  1 failed
Source:   https://git.example.com/shop.git main deploy
Applied:  3f9c2e1
Tried:    77aa01f
Objects:  12 (1 failed)
Conditions:
  Ready       False   60m ago  ApplyFailed
  Stalled     False   2d ago   NotStalled
Problems:
  apps/web.yaml:41: two ports are the same
History:
  30s ago  77aa01f  ApplyFailed  12 objects, 1 updated, 1 failed
"""
    )


def test_status_names_what_is_unhealthy():
    web = {"object": "Deployment.apps shop/web", "health": "Failed", "message": "pod web-1: CrashLoopBackOff", "since": "2026-11-20T11:00:00Z"}  # fmt: skip
    health = {"counts": {"Current": 11, "Failed": 1}, "unhealthy": [web]}
    found = {**SYNC, "status": {**SYNC["status"], "health": health}}
    shown = written(status.details(found, NOW))
    assert "Health:   11 Current, 1 Failed\n" in shown
    assert "Unhealthy:\n  Deployment.apps shop/web  Failed  60m ago  pod web-1: CrashLoopBackOff\n" in shown
    assert "11 Current, 1 Failed" in written(status.overview([found], NOW, wide=True))


def test_status_never_tells_an_old_pass_s_writes_as_if_they_were_of_now():
    emptied = {"total": 0, "created": 0, "updated": 4, "deleted": 2, "failed": 0}
    row = {"revision": "77aa01ff00", "time": "2026-11-20T11:59:30Z", "result": "Synced", **emptied, "total": 1}
    shown = written(status.details({**SYNC, "status": {"summary": emptied, "history": [row]}}, NOW))
    assert "Objects:  0\n" in shown
    assert "  30s ago  77aa01f  Synced  1 object, 4 updated, 2 deleted\n" in shown


WORDS = {
    "suspended": ({"spec": {"suspend": True}}, "Suspended"),
    "never looked at": ({"status": {}}, "Unknown"),
    "applied by hand": ({"spec": {}, "status": {}}, "-"),
    "held": ({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Held"}]}}, "Held"),
    "synced, and members on their way": (
        {
            "status": {
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "InProgress"},
                    {"type": "Reconciling", "status": "True", "reason": "InProgress"},
                ]
            }
        },
        "InProgress",
    ),
    "synced, and broken": (
        {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Failed"}]}},
        "Failed",
    ),
    "at work": ({"status": {"conditions": [{"type": "Reconciling", "status": "True"}]}}, "Syncing"),
}


@pytest.mark.parametrize(("difference", "expected"), WORDS.values(), ids=WORDS)
def test_readiness(difference, expected):
    assert syncs.readiness({**SYNC, **difference})[0] == expected


def test_a_table_cuts_its_last_column_only():
    rows = [[Span("a-long-name"), Span("a message that is too long")]]
    assert [PLAIN.text(one) for one in table(["NAME", "MESSAGE"], rows, 26)] == [
        "NAME          MESSAGE",
        "a-long-name   a message t…",
    ]


def test_a_span_without_text_has_no_colour():
    assert COLOURED.text(line("", Tone.BAD)) == ""


AGES = {
    "seconds": ("2026-11-20T11:59:15Z", "45s ago"),
    "minutes": ("2026-11-20T11:56:00Z", "4m ago"),
    "hours": ("2026-11-20T09:00:00Z", "3h ago"),
    "days": ("2026-11-08T12:00:00Z", "12d ago"),
    "a clock that runs ahead": ("2026-11-20T12:00:09Z", "0s ago"),
    "no time at all": ("", ""),
    "nonsense": ("yesterday", ""),
}


@pytest.mark.parametrize(("then", "expected"), AGES.values(), ids=AGES)
def test_age(then, expected):
    assert ages.age_of(then, NOW) == expected


def test_one_sentence_of_a_held_sync_is_said_once():
    held = "3 objects would be deleted, more than maxDeletes allows"
    conditions = [
        {"type": "Ready", "status": "False", "reason": "Held", "message": held},
        {"type": "Stalled", "status": "True", "reason": "Held", "message": held},
        {"type": "SourceVerified", "status": "True", "reason": "Signed", "message": "by alice"},
    ]
    found = {**SYNC, "status": {"conditions": conditions, "problems": [held, "web.yaml:3: no kind"]}}
    text = written(status.details(found, NOW))
    assert text.count(held) == 1
    assert "False" in text
    assert text.count("Held") >= 3
    assert all(each in text for each in ("by alice", "web.yaml:3: no kind"))


def test_what_is_not_well_before_a_sync_is_named_up_to_a_bound():
    ill = tuple(
        Unhealthy(ObjectRef("", "Pod", "shop", f"web-{number:02}"), failed("container web: CrashLoopBackOff"))
        for number in range(12)
    )
    lines = written(render.unhealthy(plan(unhealthy=ill))).splitlines()
    assert lines[0] == "unhealthy now: Pod shop/web-00: Failed: container web: CrashLoopBackOff"
    assert lines[-1] == "unhealthy now: 2 more"
    assert len(lines) == 11
    assert render.summary(plan(unhealthy=ill, unchanged=12)) == line(
        "no changes, 12 unchanged, 12 unhealthy", Tone.WARNING
    )
    assert written(render.unhealthy(plan(unchanged=1))) == ""


# --- values of Secrets that variables brought elsewhere -----------------------------------------------------------------


def test_what_a_variable_brought_from_a_secret_is_hidden_and_so_is_what_stood_there_before():
    def job(value, note="old-key"):
        env = [{"name": "A", "value": "plain"}, {"name": "KEY", "value": value}]
        template = {"spec": {"containers": [{"name": "x", "env": env}]}}
        return {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "x", "annotations": {"note": note}},
            "template": template,
        }

    key = ("f:template", "f:spec", "f:containers", 'k:{"name":"x"}', "f:env", 'k:{"name":"KEY"}', "f:value")
    uses = (
        VariableUse(
            ("template", "spec", "containers", 0, "env", 1, "value"), ("KEY",), secret=True, texts=("new-key",)
        ),
        VariableUse(("metadata", "annotations", "note"), ("NOTE",)),
    )
    fields = (FieldChange(FieldPath(key), "replace", "old-key", "new-key", Reason.GIT),)
    change = a_change(
        ObjectRef("", "PodTemplate", "shop", "x"), Op.UPDATE, before=job("old-key"), after=job("new-key"), intent=job("new-key"),
        fields=fields, uses=uses,
    )  # fmt: skip
    told = masked(change)
    assert [told.fields[0].before, told.fields[0].after] == [HIDDEN, CHANGED]
    env = [tree["template"]["spec"]["containers"][0]["env"] for tree in (told.before, told.after, told.intent)]
    assert env == [
        [{"name": "A", "value": "plain"}, {"name": "KEY", "value": each}] for each in (HIDDEN, CHANGED, HIDDEN)
    ]
    assert told.before["metadata"]["annotations"]["note"] == "old-key"  # nobody says that this came from a Secret
    assert list(variables_of(change)) == [f"{fields[0].path} from ${{KEY}}"]
    assert change.told("the server says: new-key is odd") == "the server says: *** is odd"
    other = change.attributed(uses=(replace(uses[0], texts=("other",)), uses[1]))
    assert fingerprint(change) == fingerprint(replace(other, intent=job("other")))
