"""A nodelet that dies, a runtime that dies, a sandbox that ends: pods go on, start over, or are gone; never twice."""

import contextlib
import functools
import signal

import psutil
import pytest

from kubectl_reconcile.sandbox.processes import ProcessId
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient
from tests.real_pods import Real, labelled

COUNTED = "test -e /data/started && echo again >> /data/started || echo first > /data/started; exec sleep 100"
DATA = {"volumes": [{"name": "data", "emptyDir": {}}], "terminationGracePeriodSeconds": 0}
MOUNT = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}


@pytest.fixture
def own(own_sandbox, _real_pods, kubectl, eventually) -> Real:
    """A sandbox for this test, and a namespace of it whose pods run as processes."""
    sandbox = own_sandbox()
    mine = kubectl.using(sandbox.kubeconfig)
    mine("create", "namespace", "real")
    mine("wait", "--for=create", "serviceaccount/default", "-n", "real", "--timeout=300s")
    with contextlib.closing(
        Real(sandbox, mine, "real", functools.partial(eventually, timeout_s=240, pause_s=0.1))
    ) as real:
        yield labelled(real)


def starts(own, name) -> str:
    found = (own.sandbox.folder / "pods" / own.pod(name)["metadata"]["uid"] / "volumes").rglob("started")
    return "".join(each.read_text() for each in found)


def test_pods_are_taken_over_or_started_again_and_end_with_the_sandbox(own):
    for name in ("stays", "goes", "ends"):
        own.run("sh", "-c", COUNTED, name=name, pod=DATA, **MOUNT)
    for name in ("stays", "goes", "ends"):
        own.ready(name)
    own.eventually(lambda: starts(own, "stays") == "first\n", "it has noted that it runs")
    before = own.pod("stays")["status"]

    own.sandbox.signal("nodelet", signal.SIGKILL)
    own.kubectl("delete", "pod", "goes", "-n", own.namespace, "--wait=false")
    own.kubectl("delete", "pod", "ends", "-n", own.namespace, "--force", "--grace-period=0")
    own.sandbox.pods.signal(own.namespace, "ends", "CONT")  # it runs on, though nobody wants it
    own.sandbox.start("nodelet")
    own.gone("goes", "ends")
    runtime = RuntimeClient(own.sandbox.folder / "pods")
    own.eventually(lambda: len(list((own.sandbox.folder / "pods").glob("*/root"))) == 1, "what nobody wants has ended")
    own.ready("stays")
    after = own.pod("stays")["status"]
    assert after["containerStatuses"] == before["containerStatuses"]
    assert after["podIP"] == before["podIP"]
    assert starts(own, "stays") == "first\n"
    own.sandbox.pods.signal(own.namespace, "stays")
    own.eventually(lambda: own.container("stays")["restartCount"] == 1, "it is watched as before")
    own.eventually(lambda: starts(own, "stays") == "first\nagain\n", "it runs again")

    holder, inner = runtime.processes()
    psutil.Process(holder.pid).kill()
    own.eventually(lambda: own.container("stays")["restartCount"] == 2, "its end with the runtime is seen")
    own.ready("stays")
    assert own.container("stays")["lastState"]["terminated"]["exitCode"] == 137
    own.eventually(lambda: starts(own, "stays") == "first\nagain\nagain\n", "it runs again")
    own.eventually(lambda: not inner.alive, "the runtime that was killed has ended")

    inside = psutil.Process(runtime.processes()[0].pid).children(recursive=True)
    left = [*runtime.processes(), *filter(None, (ProcessId.of(one.pid) for one in inside))]
    assert len(left) >= 5
    own.sandbox.down()
    assert not [one for one in left if one.alive]
    assert not own.sandbox.folder.exists()
