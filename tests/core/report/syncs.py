"""Syncs as a report meets them: as they usually are, and at their worst."""

from tests.modules.checkup.world import deployment, meta

NOW, BEFORE = "2026-11-20T12:00:00Z", "2026-11-19T12:00:00Z"


def condition(type_, status="True", reason="X", message=""):
    return {"type": type_, "status": status, "reason": reason, "message": message}


def sync(name="web", spec=None, **status):
    git = {"url": "https://git.example.com/shop", "path": "apps"}
    spec = {"source": {"git": git}, **(spec or {})}
    return {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": meta(name),
        "spec": spec,
        "status": status,
    }


def entry(revision, time, **counts):
    return {"revision": revision, "time": time, "result": "Synced", "message": "…", "total": 3, **counts}


def broken(name="web", message="it has no more time"):
    found = deployment(name)
    conditions = [condition("Progressing", "False", "ProgressDeadlineExceeded", message)]
    return {**found, "status": {"observedGeneration": 1, "conditions": conditions}}


WORDS = {"markup": "#" * 250, "emoji": "\N{PILE OF POO}" * 250, "control characters": "\x01" * 250}


def at_its_worst(word):
    """Objects that fill all lists of a report with as much text as they take."""
    long = word[:200]
    syncs = [
        sync(
            f"s-{number:03d}",
            {"suspend": True, "source": {"git": {"url": word}, "path": word}},
            lastAppliedRevision="a" * 40,
            history=[
                entry(word, f"2026-11-20T08:00:0{row}Z", signer=word, author=word, subject=word) for row in range(10)
            ],
            problems=[word] * 20,
            putBack=[{"object": word, "message": word, "time": NOW, "times": 2}] * 20,
            undeletable=[word] * 100,
            conditions=[condition(each, message=word) for each in ("Drifted", "Contended", "Ready")],
        )
        for number in range(120)
    ]
    pods = [{"name": f"c-{number}", "image": f"{long}{number}"} for number in range(20)]
    workloads = [broken(f"{'d' * 240}-{number:03d}", word) for number in range(120)]
    for each in workloads:
        each["spec"]["template"]["spec"]["containers"] = pods
    return [*syncs, *workloads]
