"""A Checkup's load on a real server: a Job sends the requests, and what it tells is the result."""

import pytest

from tests.e2e.conftest import crds, new_daemon  # noqa: F401 - fixtures

HEARD_OF = """
import time, urllib.request
while True:
    try:
        urllib.request.urlopen("http://web:8080/", timeout=60).read()
        break
    except OSError:
        time.sleep(0.1)  # until nodes have heard of the Service
"""


@pytest.mark.usefixtures("crds")
def test_load_is_sent_to_a_service_and_told(real, new_daemon):  # noqa: F811 - a fixture
    new_daemon(real.kubectl.kubeconfig, real.namespace).start()
    ports = [{"port": 8080}]
    real.apply(
        {
            "kind": "Pod",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "python", "command": ["python", "-m", "http.server", "8080"]}]
            },
        },
        {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}},
    )
    real.run("python", "-c", HEARD_OF, name="client", image="python", pod={"restartPolicy": "Never"})
    real.phase("Succeeded", "client")
    load = {"service": "web", "port": 8080, "path": "/?q=1", "ratePerSecond": 10, "durationSeconds": 2}
    spec = {"load": {**load, "timeoutSeconds": 120, "image": "python"}, "passes": "result.errors == 0"}
    api = "checks.reconcile.dev/v1alpha1"
    real.apply({"apiVersion": api, "kind": "Checkup", "metadata": {"name": "speed"}, "spec": spec})

    at = f"/apis/{api}/namespaces/{real.namespace}/checkups/speed"
    status = real.eventually(lambda: (found := real.get(at)["status"]).get("result") and found, "it has a result")
    result, conditions = status["result"], {each["type"]: each for each in status["conditions"]}
    assert (result["requests"], result["statuses"]) == (20, {"200": 20})
    assert 0 < result["p50_ms"] <= result["p99_ms"] <= result["max_ms"]
    assert conditions["Passed"]["status"] == "True", conditions
    asked = [line for line in real.logs("web") if "/?q=1" in line]
    assert len(asked) == 20
