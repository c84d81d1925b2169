"""The wheel with the program that decrypts: what is in it, and that it is found where it is installed."""

import os
import subprocess
import sys
import zipfile

import pytest

from kubectl_reconcile.source.sops.program import SOPS
from releasing import sops_wheel

TAG = "manylinux_2_17_x86_64.manylinux2014_x86_64"


@pytest.fixture
def wheel(tmp_path):
    program = tmp_path / "built"
    program.write_text("#!/bin/sh\n")
    return sops_wheel.write(program, "1.2.3", TAG, "as is", tmp_path)


def test_it_says_the_same_for_the_same_program(wheel, tmp_path):
    first = wheel.read_bytes()
    assert sops_wheel.write(tmp_path / "built", "1.2.3", TAG, "as is", tmp_path).read_bytes() == first
    names = zipfile.ZipFile(wheel).namelist()
    about = zipfile.ZipFile(wheel).read("kubectl_reconcile_sops-1.2.3.dist-info/WHEEL").decode()
    assert f"kubectl_reconcile_sops/{SOPS.name}" in names
    assert about.count("Tag: py3-none-") == 2


def test_the_program_is_found_where_it_is_installed(wheel, tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    script = "from kubectl_reconcile.source.sops.program import SOPS; print(SOPS.find())"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    found = subprocess.run([sys.executable, "-c", script], env=environ, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == str(site / "kubectl_reconcile_sops" / SOPS.name)
