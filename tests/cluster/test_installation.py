"""What ``install`` puts into a cluster, judged by a real API server's admission."""

from __future__ import annotations

from kubectl_reconcile.cluster.client import Forbidden
from kubectl_reconcile.core.installation import NAMESPACE, objects
from tests.waiting import until


async def test_the_namespace_takes_the_daemons_pod_and_no_pod_that_could_do_harm(client, namespace):
    installation = {each["kind"]: each for each in objects(NAMESPACE, "example.com/image:1", ())}
    labels = installation["Namespace"]["metadata"]["labels"]
    place = f"/api/v1/namespaces/{namespace}"  # the test's own in its place
    await client.patch(place, {"metadata": {"labels": labels}})
    metadata = {"name": "kubectl-reconcile", "namespace": namespace}
    await client.create(
        f"{place}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    )
    template = installation["Deployment"]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    assert (await client.create(f"{place}/pods", pod, dry_run=True))["kind"] == "Pod"
    harmful = {**pod, "spec": {**pod["spec"], "hostPID": True}}

    async def refusal() -> str:
        try:
            await client.create(f"{place}/pods", harmful, dry_run=True)
        except Forbidden as refused:
            return str(refused)
        return ""

    assert "violates PodSecurity" in await until(refusal, "admission has heard of the labels, and refuses")
