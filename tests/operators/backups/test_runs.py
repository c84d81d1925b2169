"""What happened to each backup, as its Job, its pods and the status tell it."""

import json

import pytest

from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile_operators.backups.runs import (
    BackupProgress,
    BackupRun,
    BackupWords,
    kept,
    last_lines,
    last_success,
    runs_of,
)

SLOT = "example.com/slot"
WORDS = BackupWords(SLOT, ("file", "revision", "seconds", "note"), frozenset({"revision", "seconds"}), "revision")
BEGAN, ENDED, NOW = "2026-11-21T03:30:02Z", "2026-11-21T03:30:09Z", "2026-11-21T03:31:00Z"
TOLD = {"file": "a/1.db", "revision": 42, "seconds": 0.5, "note": ""}
RUNNING, SUCCEEDED, FAILED, MISSED = BackupProgress


def a_job(name="a", slot="2026-11-21T03:30:00Z", **status):
    metadata = {"name": name, "uid": f"u-{name}", "creationTimestamp": BEGAN, "annotations": {SLOT: slot}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": status}


def ending(kind, **more):
    """A condition of a Job, and what else its status says."""
    return {"conditions": [{"type": kind, "status": "True", "lastTransitionTime": ENDED, **more}]}


def a_pod(*states, job="a", began=BEGAN, **status):
    """A pod of a Job; the last of *states* is that of its container, the others are those of its init containers."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"u-{job}", "controller": True}
    labels = {"batch.kubernetes.io/job-name": job}
    metadata = {"name": f"{job}-{began}", "labels": labels, "ownerReferences": [owner], "creationTimestamp": began}
    first, last = [{"name": "x", "state": each} for each in states[:-1]], states[-1:]
    found = {"initContainerStatuses": first, "containerStatuses": [{"name": "y", "state": each} for each in last]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {**found, **status}}


def ended(message="", code=0):
    return {"terminated": {"exitCode": code, "message": message if isinstance(message, str) else json.dumps(message)}}


def waiting(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


def told(*objects, history=(), now=NOW):
    """All runs that these Jobs and pods and a history tell."""
    jobs = [each for each in objects if each["kind"] == "Job"]
    pods = [each for each in objects if each["kind"] == "Pod"]
    return runs_of({"status": {"history": list(history)}}, Owned(jobs, pods), now, WORDS)


def one_told(*objects, **more):
    (run,) = told(*objects, **more)
    return run


# --- a success ------------------------------------------------------------------------------------


def test_a_run_has_the_name_of_its_job_and_tells_what_the_pod_wrote():
    job = a_job(**ending("Complete"), completionTime=ENDED)
    assert told(job, a_pod(ended(TOLD))) == (
        BackupRun("a", "2026-11-21T03:30:00Z", SUCCEEDED, began=BEGAN, ended=ENDED, message="", told=TOLD),
    )


def test_what_a_pod_notes_is_the_message_of_a_success():
    job = a_job(**ending("Complete"))
    assert one_told(job, a_pod(ended({**TOLD, "note": "one member was away"}))).message == "one member was away"


def test_of_several_pods_the_first_one_that_wrote_counts():
    first, second, third = (
        a_pod(ended(words), began=f"2026-11-21T03:30:0{at}Z")
        for at, words in enumerate(({"error": "NoRoom"}, TOLD, {**TOLD, "revision": 43}))
    )
    assert one_told(a_job(**ending("Complete")), third, second, first).told == TOLD


UNTOLD = {
    "nothing": "",
    "no proof": {"file": "a/1.db"},
    "a proof that is no number": {**TOLD, "revision": "42"},
    "no file": {"revision": 42},
}


@pytest.mark.parametrize("words", UNTOLD.values(), ids=UNTOLD)
def test_a_success_of_which_no_pod_tells_is_one_of_unknown_result(words):
    found = one_told(a_job(**ending("Complete")), a_pod(ended(words)))
    assert (found.progress, found.told, found.ended) == (SUCCEEDED, {}, NOW)
    assert found.message == "its pod is gone, so its result isn't known"


def test_what_isnt_to_be_told_is_left_out_and_long_text_is_cut():
    words = {"file": "x" * 301, "revision": 42, "seconds": "soon", "other": 1, "note": ["odd"]}
    found = one_told(a_job(**ending("Complete")), a_pod(ended(words)))
    assert found.told == {"file": "x" * 299 + "…", "revision": 42, "note": "['odd']"}


PATIENCE = {
    "just now": (ENDED, RUNNING, "it is finished, but the result of its pod isn't known yet"),
    "almost half a minute ago": ("2026-11-21T03:30:38Z", RUNNING, "it is finished, but the result of its pod isn't known yet"),
    "half a minute ago": ("2026-11-21T03:30:39Z", SUCCEEDED, "its pod is gone, so its result isn't known"),
}  # fmt: skip


@pytest.mark.parametrize(("now", "progress", "message"), PATIENCE.values(), ids=PATIENCE)
def test_the_words_of_a_pod_are_waited_for_half_a_minute(now, progress, message):
    found = one_told(a_job(**ending("Complete"), completionTime=ENDED), now=now)
    assert (found.progress, found.message) == (progress, message)
    assert found.ended == (ENDED if progress is SUCCEEDED else "")


def test_what_was_told_of_a_run_stays_known_when_its_pod_is_gone():
    line = {"name": "a", "phase": "Succeeded", **TOLD, "note": "one member was away"}
    found = one_told(a_job(**ending("Complete"), completionTime=ENDED), history=[line], now=ENDED)
    assert (found.progress, found.told["revision"], found.message) == (SUCCEEDED, 42, "one member was away")


# --- a failure ------------------------------------------------------------------------------------

LATE = {"reason": "DeadlineExceeded", "message": "it was active longer"}
TIMES = {"reason": "BackoffLimitExceeded", "message": "it failed twice"}
FAILURES = {
    "in the words of its program": ((ended({"error": "NoRoom", "message": "20 bytes"}, 1),), TIMES, "NoRoom: 20 bytes"),
    "in one word": ((ended({"error": "NoRoom"}, 1),), TIMES, "NoRoom: "),
    "in the last words of a crash": ((ended("Traceback\n", 1),), TIMES, "Traceback"),
    "by the exit code of a program that said nothing": ((ended("", 137),), TIMES, "exit code 137"),
    "by the first container that failed": ((ended("one", 1), ended("two", 1)), TIMES, "one"),
    "by the last container if the others did not fail": ((ended("one"), ended("two", 1)), TIMES, "two"),
    "by the Job if a container is still at work": ((ended("one"), {"running": {}}), TIMES, "BackoffLimitExceeded: it failed twice"),
    "by the Job if its pods wrote": ((ended(TOLD),), TIMES, "BackoffLimitExceeded: it failed twice"),
    "by what its pod waits for": ((waiting("ErrImagePull"),), TIMES, "its pod waits: ErrImagePull"),
    "by its deadline": (({"running": {}},), LATE, "DeadlineExceeded: it was active longer"),
    "by its deadline, and what its pod waited for": (
        (waiting("ErrImagePull"),), LATE, "DeadlineExceeded: it was active longer; its pod waits: ErrImagePull",
    ),
    "by a Job that says nothing": (({"running": {}},), {}, ": "),
}  # fmt: skip


@pytest.mark.parametrize(("states", "condition", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failed_run_says_why(states, condition, message):
    found = one_told(a_job(**ending("Failed", **condition)), a_pod(*states))
    assert (found.progress, found.ended, found.message) == (FAILED, ENDED, message)


def test_a_pod_that_a_node_evicted_tells_it_by_its_status():
    pod = a_pod(message="the node was low on memory")
    assert one_told(a_job(**ending("Failed", **TIMES)), pod).message == "the node was low on memory"


def test_the_last_of_several_attempts_says_why_and_never_at_length():
    pods = [a_pod(ended(words, 1), began=f"2026-11-21T03:30:0{at}Z") for at, words in enumerate(["one", "x" * 400])]
    assert one_told(a_job(**ending("Failed", **TIMES)), *reversed(pods)).message == "x" * 300
    late = one_told(a_job(**ending("Failed", **LATE)), *pods).message
    assert late == f"DeadlineExceeded: it was active longer; {'x' * 300}"[:299] + "…"


def test_words_of_a_program_are_preferred_to_what_a_pod_waits_for():
    pods = [a_pod(ended("one", 1)), a_pod(waiting("ErrImagePull"), began=NOW)]
    assert one_told(a_job(**ending("Failed", **TIMES)), *pods).message == "one"


EARLIER = {
    "a failure": ({"name": "a", "phase": "Failed", "message": "NoRoom: 20 bytes"}, "NoRoom: 20 bytes"),
    "a run at work": ({"name": "a", "phase": "Running", "message": "its pod waits"}, "BackoffLimitExceeded: it failed twice"),
    "another run": ({"name": "b", "phase": "Failed", "message": "NoRoom"}, "BackoffLimitExceeded: it failed twice"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "message"), EARLIER.values(), ids=EARLIER)
def test_why_a_run_failed_stays_known_when_its_pod_is_gone(line, message):
    found = {run.name: run for run in told(a_job(**ending("Failed", **TIMES)), history=[line])}
    assert found["a"].message == message


def test_a_failure_of_unknown_time_ended_now():
    job = a_job(conditions=[{"type": "Failed", "status": "True"}])
    assert one_told(job) == BackupRun("a", "2026-11-21T03:30:00Z", FAILED, BEGAN, NOW, ": ")


# --- at work --------------------------------------------------------------------------------------

AT_WORK = {
    "nothing yet": ([], ""),
    "that it runs": ([a_pod({"running": {}})], ""),
    "what its pod waits for": ([a_pod(waiting("ErrImagePull", "not found"))], "its pod waits: ErrImagePull: not found"),
    "why the last attempt failed": (
        [a_pod(ended("one", 1)), a_pod(ended("two", 1), began=ENDED), a_pod({"running": {}}, began=NOW)],
        "the last attempt failed: two",
    ),
    "what its pod waits for, rather than why the last attempt failed": (
        [a_pod(ended("one", 1)), a_pod(waiting("ErrImagePull"), began=ENDED)], "its pod waits: ErrImagePull",
    ),
    "nothing at length": ([a_pod(waiting("x" * 400))], f"its pod waits: {'x' * 284}…"),
}  # fmt: skip


@pytest.mark.parametrize(("pods", "message"), AT_WORK.values(), ids=AT_WORK)
def test_a_run_at_work_says(pods, message):
    assert one_told(a_job(), *pods) == BackupRun("a", "2026-11-21T03:30:00Z", RUNNING, BEGAN, "", message)


def test_a_condition_that_doesnt_hold_says_nothing():
    for kind in ("Complete", "Failed"):
        assert one_told(a_job(conditions=[{"type": kind, "status": "False"}])).progress is RUNNING


def test_a_job_that_isnt_there_yet_is_a_run_at_work():
    job = a_job(slot="")
    del job["status"], job["metadata"]["creationTimestamp"], job["metadata"]["uid"]
    assert told(job) == (BackupRun("a", "", RUNNING),)


def test_pods_without_a_time_came_first():
    pods = [a_pod(ended("one", 1), began=""), a_pod(ended("two", 1), began=None), a_pod(ended("three", 1))]
    assert one_told(a_job(), *reversed(pods)).message == "the last attempt failed: three"


# --- the history ----------------------------------------------------------------------------------

LINE = {
    "name": "a", "slot": "2026-11-20T03:30:00Z", "phase": "Failed", "startTime": BEGAN, "completionTime": ENDED,
    "message": "NoRoom", "file": "a/1.db", "revision": 42,
}  # fmt: skip


def test_a_run_is_read_from_the_status_as_it_was_written():
    found = one_told(history=[LINE])
    expected = BackupRun("a", LINE["slot"], FAILED, BEGAN, ENDED, "NoRoom", {"file": "a/1.db", "revision": 42})
    assert (found, found.line()) == (expected, LINE)


def test_a_status_has_no_empty_fields():
    line = {"name": "a", "phase": "Missed"}
    assert one_told(history=[line]).line() == line
    assert BackupRun("a", "", SUCCEEDED, told={"revision": 0, "note": ""}).line() == {
        "name": "a",
        "phase": "Succeeded",
        "revision": 0,
    }


def test_a_history_may_have_another_name_or_be_missing():
    status = {"status": {"backups": [LINE]}}
    assert [run.name for run in runs_of(status, Owned(), NOW, WORDS, history="backups")] == ["a"]
    assert runs_of(status, Owned(), NOW, WORDS) == runs_of({}, Owned(), NOW, WORDS) == ()


def test_a_line_that_somebody_spoilt_is_overlooked_and_no_other():
    spoilt = [{"name": 1}, "x", {"phase": "Odd", "name": "b"}, None, {"phase": "Failed"}]
    assert [run.name for run in told(history=[*spoilt, LINE])] == ["a"]


def test_a_job_says_more_than_the_history():
    assert one_told(a_job(), history=[LINE]).progress is RUNNING


def test_a_run_at_work_whose_job_is_gone_has_failed():
    line = {**LINE, "phase": "Running", "message": "", "completionTime": ""}
    expected = BackupRun(
        "a", LINE["slot"], FAILED, BEGAN, NOW, "its Job was deleted before it finished", {"file": "a/1.db", "revision": 42}
    )  # fmt: skip
    assert told(history=[line]) == (expected,)


def test_jobs_that_are_no_backups_and_pods_of_others_say_nothing():
    other = a_job("b")
    del other["metadata"]["annotations"]
    assert told(other, a_pod(ended(TOLD), job="b")) == ()
    assert one_told(a_job(**ending("Complete")), a_pod(ended(TOLD), job="b")).told == {}


def test_runs_come_in_the_order_of_their_slots_and_of_their_beginning_where_they_have_none():
    first = a_job("c", slot="")
    later = {"name": "b", "slot": "2026-11-22T03:30:00Z", "phase": "Missed"}
    again = {"name": "a", "phase": "Failed", "startTime": "2026-11-21T03:30:01Z"}
    assert [run.name for run in told(first, history=[later, again])] == ["a", "c", "b"]


def runs(*progresses):
    return tuple(BackupRun(str(at), "", each) for at, each in enumerate(progresses))


KEPT = {
    "the last ones": (runs(SUCCEEDED, FAILED, SUCCEEDED), 2, "12"),
    "and the last success": (runs(SUCCEEDED, SUCCEEDED, FAILED, FAILED), 1, "13"),
    "and those at work": (runs(RUNNING, FAILED, FAILED), 1, "02"),
    "all of them": (runs(FAILED, MISSED), 3, "01"),
}


@pytest.mark.parametrize(("found", "limit", "names"), KEPT.values(), ids=KEPT)
def test_of_the_history_are_kept(found, limit, names):
    assert "".join(run.name for run in kept(iter(found), limit)) == names
    assert last_lines(found, limit) == [run.line() for run in kept(found, limit)]


def test_the_last_success_is_the_latest_of_them():
    found = runs(SUCCEEDED, SUCCEEDED, FAILED)
    assert last_success(iter(found)) is found[1]
    assert last_success(found[2:]) is None
