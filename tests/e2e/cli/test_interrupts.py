"""Ctrl-C: at a question, while something is watched, while something is written. And readers that leave early."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests.e2e.cli.terminal import CTRL_C, CTRL_D, on_terminal

PROGRAM = Path(sys.executable).parent / "kubectl-reconcile"


def config(name, **metadata):
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}})


@pytest.fixture
def shrunk(plugin, tmp_path):
    """A folder from which files have gone since it was synced as shop."""
    for name in ("web", "old"):
        (tmp_path / f"{name}.yaml").write_text(config(name))
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    (tmp_path / "old.yaml").unlink()
    return tmp_path


@pytest.fixture
def at(kubeconfig, namespace, crds):
    """at("sync", …) -> the words of a command on the test's cluster and namespace."""
    return lambda *words: (*words, "--kubeconfig", kubeconfig, "-n", namespace)


def test_one_ctrl_c_at_a_question_ends_the_program_and_says_that_nothing_was_written(at, shrunk, cluster):
    words = at("sync", "-f", str(shrunk), "--name", "shop")
    status, seen = on_terminal(*words, typed={"[y/N]": CTRL_C})
    assert status == ExitStatus.INTERRUPTED
    assert re.search(r"\n\S*error: \S*interrupted; nothing was written", seen), seen
    assert "Unclosed" not in seen
    assert cluster.get("ConfigMap", "old")


def test_the_end_of_input_at_a_question_is_no(at, shrunk, cluster):
    status, seen = on_terminal(*at("sync", "-f", str(shrunk), "--name", "shop"), typed={"[y/N]": CTRL_D})
    assert (status, "nothing was written" in seen) == (ExitStatus.HELD, True)
    assert cluster.get("ConfigMap", "old")


WATCHES = {
    "a folder": (("diff", "-f", "{folder}", "--name", "shop", "--watch"), "1 to delete"),
    "a table": (("get", "--watch"), "shop"),
}


@pytest.mark.parametrize(("words", "shown"), WATCHES.values(), ids=WATCHES)
def test_ctrl_c_ends_a_watch_with_the_status_of_the_docs(words, shown, at, shrunk):
    words = [word.format(folder=shrunk) for word in words]
    status, seen = on_terminal(*at(*words), typed={shown: CTRL_C})
    assert (status, "Unclosed" in seen, "Traceback" in seen) == (ExitStatus.INTERRUPTED, False, False)


def test_ctrl_c_while_a_sync_waits_says_what_was_written(at, tmp_path, plugin, cluster):
    (tmp_path / "first.yaml").write_text(config("first"))
    later = {"annotations": {"reconcile.dev/wave": "1"}}
    (tmp_path / "later.yaml").write_text(config("later", **later))
    job = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "never"},
        "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "a", "image": "a"}]},
    }  # fmt: skip
    (tmp_path / "never.yaml").write_text(yaml.safe_dump(job))
    status, seen = on_terminal(*at("sync", "-f", str(tmp_path), "--name", "shop"), typed={"never: ": CTRL_C})
    assert status == ExitStatus.INTERRUPTED
    assert "interrupted; 2 objects were written and stay" in seen
    assert "Unclosed" not in seen
    assert cluster.get("ConfigMap", "later") is None


@pytest.mark.parametrize("words", [("doctor",), ("get", "--watch")])
def test_a_reader_that_leaves_early_leaves_nothing_open(words, at, shrunk):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([PROGRAM, *at(*words)], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (ExitStatus.BROKEN_PIPE, "")
