"""The demo on a cluster of one's own begins only where it can end, and says why it doesn't."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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
    config = yaml.safe_load(Path(kubeconfig).read_text())
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
