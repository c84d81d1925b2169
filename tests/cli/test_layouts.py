"""Golden texts of a plan's other forms: tree, table, fields with reasons, two columns, Markdown, and the board of a sync."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.cli.output import layouts, markdown, progress, render
from kubectl_reconcile.cli.output.layouts import columns
from kubectl_reconcile.cli.output.progress import Busy, SyncProgress
from kubectl_reconcile.cli.output.terminal import Terminal
from kubectl_reconcile.core.objects import FieldPath, ObjectRef, Problem
from kubectl_reconcile.core.planning.plan import Nested, Op, Plan
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.views.changes import PlanView
from kubectl_reconcile.views.text import is_clean
from tests.core.planning.changes import a_change

VIEW = PlanView("2026-11-20T12:00:00Z")
CACHE = ObjectRef("cache.example.com", "Memcached", "shop", "sessions")
SYNC = ObjectRef("reconcile.dev", "Sync", "shop", "shop")


def memcached(size, **spec):
    named = {"name": "sessions", "namespace": "shop"}
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": named,
        "spec": {"size": size, **spec},
    }


def deployment(name, replicas, **spec):
    named = {"name": name, "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named, "spec": {"replicas": replicas, **spec}}


def secret(password):
    named = {"name": "login", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": named, "data": {"password": password}}


def field(path, reason, before, after, **rest):
    return FieldChange(FieldPath.fields(*path.split(".")), "replace", before, after, reason, **rest)


def update(before, after, *fields, **rest):
    return a_change(ObjectRef.of(after), Op.UPDATE, before=before, after=after, fields=fields, **rest)


def ours(change):
    """The change of an object that is a member of the Sync, before and after it."""
    mark = {PART_OF: applyset_id(SYNC)}
    sides = {
        side: {**body, "metadata": {**body["metadata"], "labels": mark}}
        for side in ("before", "after") if (body := getattr(change, side))
    }  # fmt: skip
    return replace(change, **sides)


DRIFT = {"manager": "kubectl-edit", "time": "2026-11-20T11:56:00Z"}
MADE = Plan(
    SYNC,
    "3f9c2e1d0b",
    (
        update(memcached(2), memcached(3), field("spec.size", Reason.GIT, 2, 3, commit="88aa0011ff"), file="cache.yaml", line=1, wave=3),
        a_change(ObjectRef("", "ConfigMap", "shop", "new"), Op.CREATE, after={"kind": "ConfigMap"}, file="new.yaml", line=7),
        update(
            deployment("sessions", 2), deployment("sessions", 3), field("spec.replicas", Reason.GIT, 2, 3),
            owner=CACHE, manager="kubectl-reconcile-memcached", wave=4,
        ),
        update(
            deployment("web", 5, paused=True), deployment("web", 2, paused=False),
            field("spec.replicas", Reason.DRIFT, 5, 2, **DRIFT),
            field("spec.paused", Reason.BOTH, True, False, commit="88aa0011ff", **DRIFT),
            file="apps/web.yaml", line=41,
        ),
        update(secret("b2xk"), secret("bmV3"), field("data.password", Reason.GIT, "b2xk", "bmV3"), file="login.yaml", line=1),
        a_change(ObjectRef("", "ConfigMap", "shop", "old"), Op.DELETE, before={"kind": "ConfigMap"}, file="old.yaml", line=1),
        a_change(ObjectRef("", "ConfigMap", "shop", "same"), Op.UNCHANGED),
    ),
)  # fmt: skip


def written(lines, terminal=Terminal()):  # noqa: B008 - it is frozen
    return "".join(f"{terminal.text(one)}\n" for one in lines)


TREE = """\
Sync shop/shop  3f9c2e1
├─ update Memcached.cache.example.com shop/sessions  .spec.size changed in Git (88aa001)
│  └─ update Deployment.apps shop/sessions  .spec.replicas wanted by memcached
├─ create ConfigMap shop/new
├─ update Deployment.apps shop/web  .spec.paused changed in Git (88aa001), and drifted in the cluster (kubectl-edit 4m ago); .spec.replicas drifted in the cluster (kubectl-edit 4m ago)
├─ update Secret shop/login  .data.password changed in Git
└─ delete ConfigMap shop/old
"""


def test_tree():
    assert written(layouts.tree(MADE, VIEW)) == TREE


def test_a_tree_on_a_screen_fits_it():
    text = written(layouts.tree(MADE, VIEW, 80))
    assert max(map(len, text.splitlines())) == 80
    assert [line.partition("  ")[0] for line in text.splitlines()] == [
        line.partition("  ")[0] for line in TREE.splitlines()
    ]


def test_wide():
    assert written(layouts.wide(MADE, VIEW)).splitlines()[:5] == [
        "OP       KIND                          NAMESPACE   NAME       WAVE   FIELDS   FROM               WHY",
        "update   Memcached.cache.example.com   shop        sessions   3      1        cache.yaml:1       .spec.size changed in Git (88aa001)",
        "update   Deployment.apps               shop        sessions   4      1        memcached          .spec.replicas wanted by memcached",
        "create   ConfigMap                     shop        new        0      -        new.yaml:7",
        "update   Deployment.apps               shop        web        0      2        apps/web.yaml:41   .spec.paused changed in Git (88aa001), and drifted in the cluster (kubectl-edit 4m ago); .spec.replicas drifted in the cluster (kubectl-edit 4m ago)",
    ]


def test_reasons():
    assert (
        written(layouts.reasons(MADE, VIEW, 80))
        == """\
update Memcached.cache.example.com shop/sessions  cache.yaml:1
  .spec.size  2 → 3  git 88aa001
update Deployment.apps shop/sessions
  .spec.replicas  2 → 3  wanted by memcached
create ConfigMap shop/new  new.yaml:7
update Deployment.apps shop/web  apps/web.yaml:41
  .spec.replicas  5 → 2  drift by kubectl-edit 4m ago
  .spec.paused  true → false  git 88aa001, and drift by kubectl-edit 4m ago
update Secret shop/login  login.yaml:1
  .data.password  *** → *** (changed)  git 3f9c2e1
delete ConfigMap shop/old
"""
    )


def test_a_field_too_long_for_the_screen_takes_three_lines():
    long = update(
        deployment("web", 1),
        deployment("web", 2),
        field("spec.template.metadata.annotations", Reason.DRIFT, "a" * 30, "b" * 90, **DRIFT),
    )
    assert written(layouts.reasons(replace(MADE, changes=(long,)), VIEW, 80)).splitlines()[1:] == [
        "  .spec.template.metadata.annotations",
        f"    {'a' * 30} → {'b' * 59}…",
        "    drift by kubectl-edit 4m ago",
    ]


def test_side_by_side():
    web = replace(MADE, changes=(MADE.changes[3],))
    text = written(layouts.side_by_side(web, VIEW, 63))
    assert [line.rstrip() for line in text.splitlines()] == [
        "update Deployment.apps shop/web",
        "# .spec.paused changed in Git (88aa001), and drifted in the cluster (kubectl-edit 4m ago)",
        "# .spec.replicas drifted in the cluster (kubectl-edit 4m ago)",
        "  name: web                        name: web",
        "  namespace: shop                  namespace: shop",
        "spec:                            spec:",
        "  paused: true                 |   paused: false",
        "  replicas: 5                  |   replicas: 2",
    ]


def test_what_is_too_long_for_its_column_goes_on_below():
    long = update(memcached(1), memcached(1, note="x" * 50))
    lines = written(layouts.side_by_side(replace(MADE, changes=(long,)), VIEW, 63)).splitlines()
    assert [line[31:] for line in lines if "x" in line[33:]] == [f">   note: {'x' * 22}", f"> {'x' * 28}"]


@given(st.text(max_size=30), st.integers(20, 200))
def test_two_columns_fit_the_screen_whatever_they_hold(text, width):
    made = replace(MADE, changes=(update(memcached(1), memcached(1, note=text)),))
    rows = written(layouts.side_by_side(made, VIEW, width)).splitlines()[1:]
    assert all(columns(row) <= max(width, 43) for row in rows)


# --- Markdown ---------------------------------------------------------------------------------------------------------

MARKDOWN = """\
<!-- kubectl-reconcile diff shop/shop -->
### <code>shop/shop</code>: 1 to update, 1 unchanged

| | object | why |
|---|---|---|
| update | <code>Memcached.cache.example.com shop/sessions</code> | .spec.size changed in Git (88aa001) |

> [!WARNING]
> - bad.yaml:3: not YAML (hint: indent it)

<details><summary>update <code>Memcached.cache.example.com shop/sessions</code></summary>

```diff
@@ -6,4 +6,4 @@
   name: sessions
   namespace: shop
 spec:
-  size: 2
+  size: 3
```

</details>

<sub>kubectl reconcile diff at 3f9c2e1, not tried by the API server</sub>
"""


def test_a_comment_for_a_pull_request():
    made = replace(
        MADE,
        changes=(ours(MADE.changes[0]), MADE.changes[-1]),
        problems=(Problem("bad.yaml", 3, "not YAML", "indent it"),),
    )
    assert written(markdown.github(made, VIEW)) == MARKDOWN.replace("1 unchanged", "1 unchanged, 1 problem")


def test_a_comment_never_outgrows_what_a_forge_takes():
    big = [
        a_change(ObjectRef("", "ConfigMap", "shop", f"c{n}"), Op.CREATE, after={"kind": "ConfigMap", "data": {f"k{m}": "v" * 60 for m in range(50)}})
        for n in range(300)
    ]  # fmt: skip
    text = written(markdown.github(replace(MADE, changes=tuple(big)), VIEW))
    assert len(text) <= markdown.MOST_CHARACTERS
    assert "and 200 more" in text
    assert re.search(r"\d+ diffs are too long for a comment; see `kubectl reconcile diff`.", text)


@pytest.mark.parametrize(
    "hostile", ["</details>", "|x|", "@team", "[a](http://b)", "<img src=x>", "`code`", "# title", "\x1b[31m"]
)
def test_markup_in_names_is_text(hostile):
    made = replace(
        MADE,
        changes=(ours(update(memcached(1), memcached(2), field("spec.size", Reason.DRIFT, 1, 2, manager=hostile))),),
    )
    row = next(line for line in written(markdown.github(made, VIEW)).splitlines() if line.startswith("| update"))
    assert hostile not in row
    assert row.count("|") == 4


def test_a_fence_is_longer_than_any_in_the_text():
    made = replace(MADE, changes=(ours(update(memcached(1), memcached(1, note="a\n````\nb\n"))),))
    text = written(markdown.github(made, VIEW))
    assert "\n`````diff\n" in text


# --- plans of Syncs that change ----------------------------------------------------------------------------------------

WEB, GONE = ObjectRef("reconcile.dev", "Sync", "shop", "web"), ObjectRef("reconcile.dev", "Sync", "shop", "gone")
ROLLED = update(deployment("web", 2), deployment("web", 3), field("spec.replicas", Reason.GIT, 2, 3))
NESTED = replace(
    MADE,
    changes=(ours(MADE.changes[0]),),
    nested=(
        Nested(WEB, Op.UPDATE, (), ("chart web 1.2.3 → 1.3.0",), Plan(WEB, "1.3.0@sha256:3f9c", (ROLLED,), (Problem("x.yaml", 1, "not YAML"),))),
        Nested(GONE, Op.DELETE, (WEB,), not_planned="3 objects are deleted along with it"),
    ),
)  # fmt: skip


def test_a_comment_has_a_section_for_each_sync_that_changes():
    text = written(markdown.github(NESTED, VIEW))
    assert "#### ↳ <code>shop/web</code>: 1 to update, 0 unchanged, 1 problem\n\nchart web 1.2.3 → 1.3.0\n" in text
    assert "| update | <code>Deployment.apps shop/web</code> |" in text
    assert "> - x.yaml:1: not YAML" in text
    assert "#### ↳ ↳ <code>shop/gone</code>\n\ndeleted; 3 objects are deleted along with it\n" in text
    assert text.index("shop/web</code>: 1") < text.index("+  replicas: 3") < text.index("shop/gone")


def test_a_comment_says_how_many_syncs_it_has_no_room_for():
    many = [replace(NESTED.nested[0], sync=WEB._replace(name=f"web-{n}")) for n in range(400)]
    text = written(markdown.github(replace(NESTED, nested=tuple(many)), VIEW))
    assert len(text) <= markdown.MOST_CHARACTERS
    assert re.search(r"\d+ Syncs are too long for a comment; see `kubectl reconcile diff`.", text)


@pytest.mark.parametrize("hostile", ["</details>", "@team", "[a](http://b)", "<img src=x>"])
def test_markup_in_reasons_of_a_sync_is_text(hostile):
    one = replace(NESTED.nested[0], sync=WEB._replace(name=hostile), why=(hostile,), plan=None, not_planned=hostile)
    assert hostile not in written(markdown.github(replace(NESTED, nested=(one,)), VIEW)).replace("</details>\n", "")


def test_a_nested_plan_is_headed_by_its_sync_and_the_reason():
    assert written(map(render.title_of, NESTED.nested)) == (
        "Sync shop/web  chart web 1.2.3 → 1.3.0\n  Sync shop/gone  deleted; 3 objects are deleted along with it\n"
    )
    assert written(render.summary_below(NESTED)) == "through 2 Syncs: 1 to update, 1 problem\n"
    assert written(render.attention_below(NESTED)) == "Sync shop/web: x.yaml:1: not YAML\n"


def test_a_nested_plan_of_nothing_says_so():
    one = Nested(WEB, Op.UPDATE, (), ("spec.interval",), Plan(WEB, "3f9c2e1", ()))
    assert written([render.title_of(one)]) == "Sync shop/web  spec.interval; nothing else changes\n"


# --- safety -----------------------------------------------------------------------------------------------------------

FORMS = {
    "tree": lambda made: layouts.tree(made, VIEW),
    "tree on a screen": lambda made: layouts.tree(made, VIEW, 60),
    "wide": lambda made: layouts.wide(made, VIEW),
    "reasons": lambda made: layouts.reasons(made, VIEW, 60),
    "side by side": lambda made: layouts.side_by_side(made, VIEW, 60),
    "github": lambda made: markdown.github(made, VIEW),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_form_shows_a_secret(form):
    text = written(form(MADE))
    assert "login" in text
    assert not [value for value in ("b2xk", "bmV3") if value in text]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(text=st.text(max_size=8))
def test_no_form_lets_an_escape_sequence_through(form, text):
    hostile = f"\x1b[31m{text}\x9b2J\r\u202e"
    ref = ObjectRef(hostile, hostile, hostile, hostile)
    change = a_change(
        ref, Op.UPDATE, before=memcached(1), after=memcached(2, note=hostile), file=hostile, line=1, blocked=hostile,
        fields=(FieldChange(FieldPath((f"f:{hostile}",)), "add", hostile, hostile, Reason.DRIFT, manager=hostile, time=hostile),),
    )  # fmt: skip
    made = Plan(SYNC._replace(name=hostile), hostile, (change,))
    assert all(is_clean(line) for line in written(form(made)).split("\n"))


# --- the board of a sync ----------------------------------------------------------------------------------------------


def test_the_board_tells_wave_counts_time_and_what_takes_longest():
    busy = {f"Deployment.apps shop/web-{n}": Busy(float(n), f"{n} of 3 replicas are ready") for n in range(5)}
    lines = progress.board(SyncProgress(40, 12, 1, 2, 5, 17.4), busy, 30.0, 80)
    assert (
        written(lines)
        == """\
wave 2 of 5  ######..............  12 of 40 done  1 failed  about 17 s left
   30 s  Deployment.apps shop/web-0: 0 of 3 replicas are ready
   29 s  Deployment.apps shop/web-1: 1 of 3 replicas are ready
   28 s  Deployment.apps shop/web-2: 2 of 3 replicas are ready
         and 2 more
"""
    )


@given(st.text(max_size=200), st.integers(10, 200))
def test_the_board_fits_the_screen(name, width):
    lines = progress.board(SyncProgress(3, 1, 0, 1, 2), {name: Busy(0.0, name)}, 1.0, width)
    assert all(len(one[0].text) < max(width, 14) for one in lines)
