"""Webhooks that serve as modules and don't answer: they hold up the custom resources that are theirs, and nobody else."""

import json

import pytest

from kubectl_reconcile.engine.daemon.cr_controller import MOST_OF_A_NAMESPACE
from tests.e2e.modules.hooks import API, controller, crd
from tests.security.tarpit import tarpit

MANY = 40


@pytest.fixture
def hanging(kubectl, tmp_path, monkeypatch, cluster, new_daemon):
    """A webhook that is waited for for an hour, and a daemon that has it as a module."""
    kubectl("apply", "--server-side", "-f", "-", stdin=[crd("Slow")])
    kubectl("wait", "--for=condition=Established", "--timeout=300s", "crd/slows.hooks.example.com")
    with tarpit() as server:
        slow = controller("Slow", f"{server.urls[0]}/hook", ("pods", "Recreate"), timeout="3600s")
        (tmp_path / "slow.json").write_text(json.dumps(slow))
        monkeypatch.setenv("KUBECTL_RECONCILE_WEBHOOKS", str(tmp_path / "slow.json"))
        new_daemon(cluster.kubectl.kubeconfig, cluster.namespace).start()
        yield server


def test_forty_webhooks_that_hang_hold_up_nobody_else(hanging, cluster, kubectl, memcached, eventually):
    kubectl(
        "apply", "--server-side", "-n", cluster.namespace, "-f", "-",
        stdin=[{"apiVersion": API, "kind": "Slow", "metadata": {"name": f"hangs-{number}"}} for number in range(MANY)],
    )  # fmt: skip
    eventually(lambda: hanging.waiting == MOST_OF_A_NAMESPACE, "as many as may are waited for")
    kubectl("apply", "--server-side", "-n", cluster.namespace, "-f", "-", stdin=memcached("web", size=1))
    eventually(lambda: "web" in cluster.names("Deployment"), "another one is served")
    assert hanging.taken == hanging.waiting == MOST_OF_A_NAMESPACE, "the others wait for their turn"
