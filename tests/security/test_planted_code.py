"""Somebody's folder holds modules named as ours and our dependencies': looking at it must execute none of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import yaml_text

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PLANTED = ("click", "json", "yaml", "orjson", "kubectl_reconcile", "sitecustomize", "usercustomize", "encodings")
PLANT = "import pathlib\npathlib.Path({mark!r}).touch()\n"
FOREIGN = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONHOME")


@pytest.fixture
def planted(tmp_path):
    """A folder that an attacker wrote, which notes whether anything of it was executed."""
    folder = tmp_path / "looked-at"
    for name in PLANTED:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(PLANT.format(mark=str(folder / "executed")))
    (folder / "web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    return folder


def started_in(folder, *command, **environ):
    """What *command* prints when it is started in *folder*."""
    ours = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env={**ours, **environ}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout


def alone(script, tmp_path):
    """A script of plugin/ as an installation has it, without the checkout's virtual environment."""
    place = tmp_path / "installed"
    place.mkdir()
    return shutil.copy(ROOT / "plugin" / script, place)


def was_executed(folder):
    return (folder / "executed").exists()


def test_the_plant_is_executed_where_the_current_folder_is_searched(planted):
    started_in(planted, sys.executable, "-c", "import click")
    assert was_executed(planted)


ENTRIES = {
    "the plugin": ("kubectl-reconcile", ["version"], "kubectl-reconcile"),
    "the plugin's completer": ("kubectl_complete-reconcile", ["ver"], "version\tShow the version."),
}


@pytest.mark.parametrize("place", ["installed", "in its checkout"])
@pytest.mark.parametrize(("script", "words", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_a_script_of_the_plugin_executes_nothing_of_the_current_folder(
    script, words, expected, place, planted, tmp_path
):
    program = alone(script, tmp_path) if place == "installed" else ROOT / "plugin" / script
    assert expected in started_in(planted, program, *words, PYTHON=sys.executable)
    assert not was_executed(planted)


@pytest.mark.parametrize(("script", "words", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_a_program_that_pip_installs_executes_nothing_of_the_current_folder(script, words, expected, planted):
    assert expected in started_in(planted, BIN / script, *words)
    assert not was_executed(planted)


@pytest.fixture(scope="module")
def self_contained(tmp_path_factory):
    """The program of a release, packed as releasing/dist.py packs it, with as little as ``version`` needs."""
    site, out = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("archive")
    installed = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for name in ("click", next(installed.glob("kubectl_reconcile-*.dist-info")).name):
        shutil.copytree(installed / name, site / name)
    shutil.copytree(
        ROOT / "kubectl_reconcile", site / "kubectl_reconcile", ignore=shutil.ignore_patterns("__pycache__")
    )
    packing = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from releasing import dist; import pathlib; "
    packing += f"dist.self_contained(pathlib.Path({str(site)!r}), pathlib.Path({str(out)!r}))"
    subprocess.run([sys.executable, "-c", packing], check=True, timeout=120, capture_output=True)
    return out


SELF_CONTAINED = {"the program": ENTRIES["the plugin"], "the completer": ENTRIES["the plugin's completer"]}


@pytest.mark.parametrize(("script", "words", "expected"), SELF_CONTAINED.values(), ids=SELF_CONTAINED)
def test_a_self_contained_program_executes_nothing_of_the_current_folder(
    script, words, expected, self_contained, planted, tmp_path
):
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    there = {"PATH": path, "SHIV_ROOT": str(tmp_path / "unpacked")}
    assert expected in started_in(planted, self_contained / script, *words, **there)
    assert not was_executed(planted)


def environment_of_the_image():
    """What the Dockerfile's last stage sets in the environment of everything that runs in the image."""
    last = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    words = " ".join(re.findall(r"^ENV (.*)$", last, re.MULTILINE)).split()
    return {name: value for name, _, value in (word.partition("=") for word in words) if name.startswith("PYTHON")}


def environment_of_the_pod():
    """What the Deployment sets."""
    documents = yaml_text.documents((ROOT / "deploy" / "install.yaml").read_text())
    [deployment] = [one for one in documents if one["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if each["name"].startswith("PYTHON")}


@pytest.mark.parametrize("environment", [environment_of_the_image, environment_of_the_pod], ids=["image", "pod"])
@pytest.mark.parametrize(
    "command", [["-c", "import click"], ["-m", "kubectl_reconcile.cli.complete", "ver"]], ids=["-c", "-m"]
)
def test_no_python_in_the_daemons_container_searches_the_current_folder(environment, command, planted):
    started_in(planted, sys.executable, *command, **environment())
    assert not was_executed(planted)


def test_what_looks_at_the_folder_executes_nothing_of_it(planted, plugin, cluster, tmp_path):
    place = Path(alone("kubectl-reconcile", tmp_path)).parent
    shutil.copy(ROOT / "plugin" / "kubectl_complete-reconcile", place)
    path = os.pathsep.join([str(place), str(cluster.kubectl.folder), os.environ["PATH"]])
    environ = {"PATH": path, "PYTHON": sys.executable, "KUBECONFIG": cluster.kubectl.kubeconfig}
    said = started_in(
        planted, "kubectl", "reconcile", "sync", "-f", "web.yaml", "-n", cluster.namespace, "--name=x", "-y", **environ
    )
    assert "1 created" in said
    assert cluster.get("ConfigMap", "web")
    assert "diff" in started_in(planted, "kubectl", "__complete", "reconcile", "di", **environ)
    assert not was_executed(planted)
