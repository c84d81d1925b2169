"""What a failure stops and what a wave waits for, on plain values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.apply.dependents import RunProgress, first_of, is_followed_up
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.module.api import Action
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import CRD, Kind
from kubectl_reconcile.core.planning.plan import Op, Plan, Schedule
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import a_change

PLURALS = {
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "Job": "jobs",
    "Widget": "widgets",
    "Namespace": "namespaces",
}
GROUPS = {"Deployment": "apps", "Job": "batch", "Widget": "example.com"}


def ref(kind, name, namespace="shop"):
    return ObjectRef(GROUPS.get(kind, ""), kind, namespace, name)


def change(kind, name, op=Op.CREATE, namespace="shop", **more):
    gvk = GroupVersionKind(GROUPS.get(kind, ""), "v1", kind)
    return a_change(
        ref(kind, name, namespace),
        op,
        Kind(gvk, PLURALS[kind], bool(namespace), UNKNOWN, custom=kind == "Widget"),
        **more,
    )


CONFIG, WEB, WIDGET = change("ConfigMap", "a"), change("Deployment", "web", wave=1), change("Widget", "w", wave=2)
SHOP = ref("Namespace", "shop", "")
WIDGETS = ObjectRef(CRD.group, CRD.kind, "", "widgets.example.com")
REFUSED = "no such thing"

STOPPED = {
    "nothing failed": ([], CONFIG, ""),
    "another object": ([ref("ConfigMap", "b")], CONFIG, ""),
    "its namespace": ([SHOP], CONFIG, "its namespace shop failed"),
    "another namespace": ([ref("Namespace", "office", "")], CONFIG, ""),
    "its CRD": ([WIDGETS], WIDGET, "its CRD widgets.example.com failed"),
    "another CRD": ([WIDGETS], CONFIG, ""),
    "its owner": ([ref("Widget", "w")], change("ConfigMap", "a", owner=ref("Widget", "w")), f"its owner {ref('Widget', 'w')} failed"),
    "what it depends on": (
        [ref("ConfigMap", "b")], change("ConfigMap", "a", needs=(ref("ConfigMap", "b"),)), "it depends on ConfigMap shop/b, which failed",
    ),
    "a deletion outlives its namespace": ([SHOP], change("ConfigMap", "a", Op.DELETE), ""),
    "a deletion outlives its CRD": ([WIDGETS], change("Widget", "w", Op.DELETE), ""),
}  # fmt: skip


@pytest.mark.parametrize(("failed", "candidate", "why"), STOPPED.values(), ids=STOPPED)
def test_a_failure_stops_only_what_depends_on_it(failed, candidate, why):
    progress = RunProgress(Plan(None, "", ()))
    for each in failed:
        progress.fail(each, REFUSED)
    assert progress.reason_to_skip(candidate) == why


def test_an_atomic_run_stops_at_the_first_failure_and_names_it():
    progress = RunProgress(Plan(None, "", ()), atomic=True)
    assert progress.reason_to_skip(CONFIG) == ""
    progress.fail(ref("ConfigMap", "b"), REFUSED)
    progress.fail(ref("ConfigMap", "c"), REFUSED)
    assert progress.reason_to_skip(CONFIG) == "the Sync is atomic, and ConfigMap shop/b failed"


def test_actions_stop_after_one_that_failed_and_children_go_on():
    owner = ref("Widget", "w")
    first = change("Widget", "w", Op.ACT, action=Action("one", "run", "first"), owner=owner)
    second = change("Widget", "v", Op.ACT, action=Action("two", "run", "second"), owner=owner)
    progress = RunProgress(Plan(None, "", ()))
    progress.refuse(
        a_change(ObjectRef("reconcile.dev", "Action", "shop", "w/one"), Op.ACT, action=first.action, owner=owner),
        REFUSED,
    )
    assert progress.reason_to_skip(second) == "an action before it failed"
    assert progress.reason_to_skip(change("ConfigMap", "child", owner=owner)) == ""


def test_a_hook_that_fails_before_a_sync_stops_all_of_it_and_one_after_it_stops_nothing():
    progress = RunProgress(Plan(None, "", ()))
    progress.fail_hook(change("Job", "notify", hook="post-sync"), "it broke")
    assert progress.reason_to_skip(CONFIG) == ""
    progress.fail_hook(change("Job", "migrate", hook="pre-sync"), "it broke")
    assert progress.reason_to_skip(CONFIG) == "the hook Job.batch shop/migrate failed: it broke"


def test_a_hook_of_an_earlier_sync_is_waited_for_only_if_something_is_to_be_written():
    hook = change("Job", "migrate", Op.UNCHANGED, hook="pre-sync")
    other = change("Job", "other", Op.UNCHANGED)
    idle = RunProgress(Plan(None, "", (hook,), schedule=Schedule(awaited=(hook, other))))
    busy = RunProgress(Plan(None, "", (hook, CONFIG), schedule=Schedule(awaited=(hook, other))))
    assert (idle.hooks_awaited(), busy.hooks_awaited()) == ((), (hook.ref,))
    busy.halt([(hook.ref, "")])
    assert busy.reason_to_skip(CONFIG) == ""
    busy.halt([(hook.ref, "not healthy in time")])
    assert busy.reason_to_skip(CONFIG) == "waits for the hook Job.batch shop/migrate: not healthy in time"


def done(change, **more):
    return Result(change, ResultState.SUCCEEDED, **more)


def progress_of(*changes, barriers, awaited=()):
    return RunProgress(Plan(None, "", changes, schedule=Schedule(barriers, awaited)))


def test_a_wave_without_a_barrier_waits_for_nothing():
    progress = progress_of(CONFIG, WEB, barriers=frozenset({2}))
    progress.finish_wave([done(CONFIG)])
    assert (progress.entry([WEB], 0).is_barrier, progress.entry([WEB], 0).pending) == (False, ())


def test_a_barrier_waits_for_all_that_was_written_and_for_what_was_unhealthy_before_it():
    early, late = change("Deployment", "early", Op.UNCHANGED), change("Deployment", "late", Op.UNCHANGED, wave=3)
    progress = progress_of(CONFIG, WEB, barriers=frozenset({1}), awaited=(early, late))
    progress.finish_wave([done(CONFIG), Result(WIDGET, ResultState.FAILED)])
    assert progress.entry([WEB], 0).pending == (CONFIG.ref, early.ref)


def test_a_barrier_that_lies_between_two_waves_counts_for_the_later_one():
    progress = progress_of(CONFIG, WIDGET, barriers=frozenset({1}))
    progress.finish_wave([done(CONFIG)])
    assert progress.entry([WIDGET], 0).pending == (CONFIG.ref,)
    assert progress.entry([WIDGET], 1).pending == ()


def test_deletions_wait_until_what_was_deleted_before_them_is_gone_and_for_nothing_else():
    gone, next_ = change("ConfigMap", "old", Op.DELETE), change("Namespace", "shop", Op.DELETE, namespace="", wave=1)
    progress = progress_of(CONFIG, gone, next_, barriers=frozenset({1}), awaited=(WEB,))
    progress.finish_wave([done(CONFIG), done(gone, live={"metadata": {"uid": "u"}})])
    entry = progress.entry([next_], 0)
    assert (entry.pending, entry.deletes) == ((gone.ref,), True)
    assert progress.going(gone.ref).change is gone
    assert progress.going(CONFIG.ref) is None


def test_a_wave_is_refused_for_what_it_waited_for_or_for_what_failed_before_it():
    progress = progress_of(CONFIG, WEB, barriers=frozenset({1}))
    progress.finish_wave([done(CONFIG)])
    entry = progress.entry([WEB], 0)
    assert progress.refusal(entry, [""]) == ""
    assert progress.refusal(entry, ["not yet"]) == "waits for ConfigMap shop/a: not yet"
    progress.fail(CONFIG.ref, REFUSED)
    assert progress.refusal(entry, [""]) == "an earlier wave failed: ConfigMap shop/a: no such thing"
    progress.forgive()
    progress.fail(WEB.ref, REFUSED)  # of the same wave
    assert progress.refusal(entry, [""]) == ""


def test_nobody_is_asked_for_what_nobody_doubts():
    sick = change("Deployment", "sick", Op.UNCHANGED)
    progress = progress_of(CONFIG, barriers=frozenset(), awaited=(sick,))
    progress.finish_wave([done(CONFIG), done(change("ConfigMap", "old", Op.DELETE))])
    assert progress.in_doubt(CONFIG.ref) is CONFIG
    assert progress.in_doubt(sick.ref) is sick
    assert progress.in_doubt(ref("ConfigMap", "stranger")) is None
    assert progress.in_doubt(ref("ConfigMap", "old")) is None
    progress.judge(CONFIG.ref, "")
    progress.judge(sick.ref, "crashing")
    assert (progress.in_doubt(CONFIG.ref), progress.in_doubt(sick.ref)) == (None, None)
    assert progress.failed == {sick.ref: "crashing"}


def test_hooks_for_a_failed_sync_start_only_then_and_only_where_their_namespace_is():
    alarm, elsewhere = change("Job", "alarm"), change("Job", "alarm", namespace="office")
    blocked = change("Job", "never", blocked="it isn't ours")
    progress = RunProgress(Plan(None, "", (), schedule=Schedule(fallbacks=(alarm, elsewhere, blocked))))
    assert progress.fallbacks([done(CONFIG)]) == []
    assert progress.fallbacks([Result(CONFIG, ResultState.FAILED)]) == [alarm, elsewhere]
    progress.fail(ref("Namespace", "office", ""), REFUSED)
    assert progress.fallbacks([Result(CONFIG, ResultState.FAILED)]) == [alarm]
    progress.halt([(WEB.ref, "broken")])
    progress.forgive()
    assert progress.reason_to_skip(alarm) == ""


FOLLOWED = {
    "all was created": ([done(CONFIG), done(WEB)], True),
    "something was taken": ([Result(CONFIG, ResultState.TAKEN), Result(WEB, ResultState.FAILED)], True),
    "something was deleted": ([done(CONFIG), done(change("ConfigMap", "b", Op.DELETE))], False),
    "something failed": ([done(CONFIG), Result(WEB, ResultState.FAILED)], False),
    "nothing was done": ([], False),
}


@pytest.mark.parametrize(("results", "expected"), FOLLOWED.values(), ids=FOLLOWED)
def test_a_first_status_is_left_to_a_run_that_comes_at_once(results, expected):
    assert is_followed_up(results) is expected


def test_the_first_fault_is_told_and_the_others_counted():
    assert first_of("waits for", []) == ""
    assert first_of("waits for", [("a", ""), ("b", "no"), ("c", "no"), ("d", "no")]) == "waits for b: no (and 2 more)"


names = st.sampled_from("abcd")


@given(st.lists(st.tuples(names, names), max_size=6), st.sets(names, max_size=2))
def test_what_no_failed_object_is_needed_by_is_never_skipped(needs, failed):
    progress = RunProgress(Plan(None, "", ()))
    for name in failed:
        progress.fail(ref("ConfigMap", name), REFUSED)
    for name in "abcd":
        wanted = tuple(ref("ConfigMap", target) for who, target in needs if who == name)
        skipped = progress.reason_to_skip(change("ConfigMap", name, needs=wanted))
        assert bool(skipped) is bool({each.name for each in wanted} & failed)
