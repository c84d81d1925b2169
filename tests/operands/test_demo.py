"""The demo with a database in it, and the one on a cluster that somebody has."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.minutes(4)
@pytest.mark.usefixtures("_real_pods", "renders")
def test_the_demo_with_etcd_plays_to_its_end():
    demo = [sys.executable, ROOT / "examples" / "etcd_demo.py", "--pace=0"]
    done = subprocess.run(demo, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "That was all real" in done.stdout


def held(cluster):
    return cluster("get", "namespaces,customresourcedefinitions,clusterroles", "-o", "name").split()


def test_the_demo_on_a_cluster_leaves_nothing_there_when_it_is_interrupted(own_sandbox, kubectl, tmp_path, eventually):
    sandbox = own_sandbox()
    cluster = kubectl.using(sandbox.kubeconfig)
    eventually(lambda: "namespace/kube-node-lease" in held(cluster), "the cluster has made its own namespaces")
    before, said = held(cluster), tmp_path / "said"
    path = os.pathsep.join([str(kubectl.folder), os.environ["PATH"]])
    with said.open("w") as out:
        demo = subprocess.Popen(
            [sys.executable, ROOT / "examples" / "current_demo.py", "--pace=0", "--keep"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env={**os.environ, "PATH": path, "KUBECONFIG": str(sandbox.kubeconfig)},
        )  # fmt: skip
    try:
        eventually(lambda: "daemon.log\n" in said.read_text() or demo.poll() is not None, "it has ended", timeout_s=600)
        assert demo.poll() is None, said.read_text()
        assert "namespace/reconcile-demo" in held(cluster)
        [address] = re.findall(r"The page about it: (http://127.0.0.1:\S+)", said.read_text())
        with urllib.request.urlopen(address, timeout=60) as page:  # noqa: S310 - an address of this machine
            assert page.status == 200
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        assert demo.wait(timeout=400) == 0
    finally:
        demo.kill()
    announced, _, _ = said.read_text().partition("1. ")
    assert re.findall(r"^  (\S+ [\w.-]+)", announced, re.MULTILINE) == [
        "Namespace reconcile-demo",
        "CustomResourceDefinition memcacheds.cache.example.com",
        "CustomResourceDefinition syncs.reconcile.dev",
    ]
    assert held(cluster) == before, said.read_text()
