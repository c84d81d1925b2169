"""What tests of modules that make Jobs share: Jobs are as the module made them, end as the test says, and have pods as the Job controller makes them."""

from __future__ import annotations

import copy
import json


def of_job(job):
    """Return the labels and owners of the pods of a live Job."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    labels = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": uid}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    return {"labels": labels, "ownerReferences": [owner]}


class JobsOfModule:
    """The Jobs of a CR and their pods, by the Job's name, and the names of all that were *begun*."""

    def __init__(self):
        self.jobs, self.pods, self.begun = {}, {}, []

    def take(self, outcome, now):
        """Make the Jobs that an outcome wants, and take away those that it doesn't."""
        wanted = {each["metadata"]["name"]: each for each in outcome.children if each["kind"] == "Job"}
        self.jobs = {name: job for name, job in self.jobs.items() if name in wanted}
        for name in [each for each in wanted if each not in self.jobs]:
            self.jobs[name] = job = copy.deepcopy(wanted[name])
            self.begun.append(name)
            job["metadata"] |= {"creationTimestamp": now, "namespace": "shop", "uid": f"u-{name}-{len(self.begun)}"}

    def end(self, name, message, /, *, at, ok=True, labels=None, **condition):
        """End a Job at a time; its pod tells *message*, text or JSON."""
        said = message if isinstance(message, str) else json.dumps(message)
        state = {"terminated": {"exitCode": 0 if ok else 1, "message": said}}
        own = of_job(self.jobs[name])
        self.pods[name] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-x",
                "namespace": "shop",
                **own,
                "labels": {**(labels or {}), **own["labels"]},
            },
            "status": {"containerStatuses": [{"name": "main", "state": state}]},
        }
        type_ = "Complete" if ok else "Failed"
        told = {"type": type_, "status": "True", "lastTransitionTime": at, **condition}
        self.jobs[name]["status"] = {"conditions": [told], **({"completionTime": at} if ok else {})}
