"""The demo on a cluster of one's own begins only where it can end, says why it doesn't, and leaves nothing there."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests import yaml_text

DEMO = Path(__file__).parents[3] / "examples" / "current_demo.py"


@pytest.fixture
def refused(kubectl):
    """refused(kubeconfig) -> what the demo says that ends at once."""

    def run(kubeconfig):
        path = os.pathsep.join([str(kubectl.folder), os.environ["PATH"]])
        done = subprocess.run(
            [sys.executable, DEMO, "--pace=0"], text=True, capture_output=True, timeout=300, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig)},
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        return done.stderr

    return run


def test_without_a_kubeconfig_nothing_is_guessed(refused):
    assert "KUBECONFIG isn't set: name the cluster" in refused("")


def test_a_cluster_that_does_not_answer_is_named_with_the_reason(refused, kubeconfig, tmp_path):
    config = yaml_text.document(Path(kubeconfig).read_text())
    file = tmp_path / "kubeconfig"
    with socket.socket() as taken:  # by nobody who listens
        taken.bind(("127.0.0.1", 0))
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{taken.getsockname()[1]}"
        file.write_text(yaml.safe_dump(config))
        assert "the cluster of KUBECONFIG can't be reached: " in refused(file)


def test_rights_that_are_missing_are_listed_before_anything_is_created(refused, sandbox, namespace):
    said = refused(sandbox.kubeconfig_for(f"system:serviceaccount:{namespace}:nobody"))
    assert "you may not do in this cluster what the demo needs: get customresourcedefinitions" in said
    assert said.endswith("; nothing was created\n")


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
            [sys.executable, DEMO, "--pace=0", "--keep"],
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
