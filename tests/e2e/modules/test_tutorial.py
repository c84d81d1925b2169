"""The commands of docs/modules.md, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "modules.md"


def commands():
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def installed(folder, site):
    """What ``pip install -e .`` would leave behind, without touching this environment."""
    (site / "teapot-0.1.dist-info").mkdir(parents=True)
    (site / "teapot-0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: teapot\nVersion: 0.1\n")
    points = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"][
        "kubectl_reconcile.modules"
    ]
    named = "\n".join(f"{name} = {place}" for name, place in points.items())
    (site / "teapot-0.1.dist-info" / "entry_points.txt").write_text(f"[kubectl_reconcile.modules]\n{named}\n")
    return os.pathsep.join([str(folder), str(site)])


def test_the_tutorial_is_true(kubectl, cluster, tmp_path):
    folder, paths = tmp_path, os.environ.get("PYTHONPATH", "")
    own = kubectl.using(tmp_path / "kubeconfig")  # with the test's namespace, which others must not see
    Path(own.kubeconfig).write_bytes(Path(kubectl.kubeconfig).read_bytes())
    own("config", "set-context", "--current", f"--namespace={cluster.namespace}")
    environ = {**os.environ, "KUBECONFIG": own.kubeconfig}
    environ["PATH"] = os.pathsep.join([str(kubectl.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = []
    for command in commands():
        if command.startswith("cd "):
            folder /= command.removeprefix("cd ")
            continue
        if command.startswith("pip install"):
            paths = os.pathsep.join([installed(folder, tmp_path / "site"), paths])
            continue
        run = subprocess.run(  # noqa: S602 - a reader's shell runs them, too
            command,
            shell=True,
            cwd=folder,
            env={**environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
        done.append(command)
    assert len(done) >= 10
    assert cluster.get("Deployment", "example")["spec"]["replicas"] == 2
