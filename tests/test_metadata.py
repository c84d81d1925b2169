"""What packages are told of this one is true: commands begin, dependencies are used, and patterns of data find some."""

import sys
import tomllib
from importlib.metadata import EntryPoint, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.closure import said

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OURS = ("kubectl_reconcile", "kubectl_reconcile_operators")
NEVER_IMPORTED = {"tzdata"}  # zoneinfo reads it
OF_AIOHTTP = {"yarl", "multidict"}  # it takes and gives their values


@pytest.mark.parametrize(("name", "place"), PROJECT["project"]["scripts"].items())
def test_a_command_begins_where_the_metadata_says(name, place):
    assert callable(EntryPoint(name, place, "console_scripts").load())


def test_each_dependency_is_imported_and_each_import_is_of_a_dependency():
    stated = PROJECT["project"]
    lines = [*stated["dependencies"], *(line for extra in stated["optional-dependencies"].values() for line in extra)]
    wanted = {canonicalize_name(Requirement(line).name) for line in lines}
    files = [file for package in OURS for file in (ROOT / package).rglob("*.py")]
    tops = {name.partition(".")[0] for file in files for name in said(file.read_text(), str(file)).imports}
    known = packages_distributions()
    used = {canonicalize_name(each) for top in tops - {*OURS, *sys.stdlib_module_names} for each in known.get(top, ())}
    assert used - OF_AIOHTTP == wanted - NEVER_IMPORTED


@pytest.mark.parametrize(
    ("package", "pattern"),
    [(package, one) for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items() for one in patterns],
)
def test_each_pattern_of_data_finds_some(package, pattern):
    beside = package.removeprefix("kubectl_reconcile.")  # manifests at the top of the repository, see setup.py
    folder = ROOT / (beside if package != beside else package)
    assert any(each.is_file() for each in folder.glob(f"{pattern}/*" if pattern.endswith("**") else pattern))
