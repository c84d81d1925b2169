"""diff says what isn't well before a sync, and which pods a change replaces, on a real cluster."""

from __future__ import annotations

import json

import pytest

CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxUnavailable: 30%}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""


@pytest.fixture
def synced(plugin, tmp_path):
    """A folder whose claim finds no volume and whose Deployment runs, as they are in the cluster."""
    (tmp_path / "claim.yaml").write_text(CLAIM)
    (tmp_path / "web.yaml").write_text(DEPLOYMENT)
    done = plugin("sync", "-f", str(tmp_path), "--name", "hand", "--yes", "--no-wait")
    assert done.status == 0, done.err
    return tmp_path


def test_diff_tells_what_is_not_well_and_how_many_pods_a_change_rolls(synced, plugin, namespace):
    (synced / "web.yaml").write_text(DEPLOYMENT.replace("web:1", "web:2"))
    done = plugin("diff", "-f", str(synced), "--name", "hand")
    assert done.status == 1
    assert "# rolls 5 pods; at most 1 unavailable\n" in done.out
    unwell = f"unhealthy now: PersistentVolumeClaim {namespace}/data: InProgress: not bound to a volume yet\n"
    assert unwell in done.out
    assert "1 to update, 1 unchanged, " in done.out.splitlines()[-1]
    assert done.out.splitlines()[-1].endswith(" unhealthy")

    made = json.loads(plugin("diff", "-f", str(synced), "--name", "hand", "-o", "json").out)
    assert [each["rollout"] for each in made["changes"]] == ["rolls 5 pods; at most 1 unavailable"]
    assert {
        "object": {"group": "", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": "data"},
        "health": "InProgress",
        "message": "not bound to a volume yet",
    } in made["unhealthy"]
    assert made["hash"] == json.loads(plugin("diff", "-f", str(synced), "--name", "hand", "-o", "json").out)["hash"]


def test_no_change_is_no_change_though_something_is_not_well(synced, plugin):
    done = plugin("diff", "-f", str(synced), "--name", "hand", "claim.yaml")
    assert (done.status, done.out.splitlines()[-1]) == (0, "no changes, 1 unchanged, 1 unhealthy")


def test_what_is_not_chosen_is_not_told(synced, plugin):
    assert "PersistentVolumeClaim" not in plugin("diff", "-f", str(synced), "--name", "hand", "deploy/web").out
