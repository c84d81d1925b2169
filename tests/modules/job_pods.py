"""What tests of modules that make Jobs share: pods are those of a Job as the Job controller makes them."""


def of_job(job):
    """Return the labels and owners of the pods of a live Job."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    labels = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": uid}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    return {"labels": labels, "ownerReferences": [owner]}
