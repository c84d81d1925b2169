"""Who may write Checkups and no pods: the API server refuses those of their Checkups that would run some, by the policy that is installed with the daemon."""

from __future__ import annotations

import secrets

from kubectl_reconcile.core.checkup_policy import checkup_policy
from tests.e2e.cluster import until_may
from tests.kubectl import KubectlError

CHECKS = "checks.reconcile.dev"
JOB = {"job": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:1.37"}]}}}, "suspend": True}


def checkup(cluster, name, spec):
    metadata = {"name": name, "namespace": cluster.namespace}
    return {"apiVersion": f"{CHECKS}/v1alpha1", "kind": "Checkup", "metadata": metadata, "spec": spec}


def refusal(cluster, name, spec, *user):
    """What the API server says to a Checkup; nothing if it takes it."""
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", *user)
    try:
        cluster.kubectl(*words, stdin=checkup(cluster, name, spec))
    except KubectlError as error:
        return str(error)
    return ""


def test_who_may_not_make_pods_may_not_have_a_checkup_make_them(cluster, eventually):
    name, here = f"rights-{secrets.token_hex(4)}", {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}
    rules, binding = checkup_policy({})
    rules["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = name
    binding["spec"]["matchResources"] = {"namespaceSelector": here}
    kubectl, place = cluster.kubectl, ("-n", cluster.namespace)
    cluster.apply(checkup(cluster, "there", JOB))
    kubectl("create", "role", name, f"--resource=checkups.{CHECKS}", "--verb=get,create,update,patch", *place)
    kubectl("create", "rolebinding", name, f"--role={name}", f"--user={name}", *place)
    until_may(kubectl, name, "patch", f"checkups.{CHECKS}", cluster.namespace)
    kubectl.apply([rules, binding])
    try:
        told = eventually(lambda: refusal(cluster, "new", JOB, "--as", name), "the policy is in force")
        assert "you may not create pods in this namespace" in told
        other = {"job": {"template": {"spec": {**JOB["job"]["template"]["spec"], "serviceAccountName": "admin"}}}}
        assert "you may not create pods" in refusal(cluster, "there", other, "--as", name)
        assert refusal(cluster, "there", {**JOB, "suspend": False}, "--as", name) == ""
        assert refusal(cluster, "new", {"scan": {}}, "--as", name) == ""
        assert refusal(cluster, "new", JOB) == "", "who may make pods may have them made"
    finally:
        kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)
