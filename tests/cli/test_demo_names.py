"""Demos at the same time don't take each other's sandbox."""

import importlib.util
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples/demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo_under_test", DEMO)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # dataclasses look their module up
    spec.loader.exec_module(found)
    return found


def test_demos_at_once_have_names_of_their_own(demo, tmp_path):
    with (
        demo.name_of_its_own(tmp_path) as first,
        demo.name_of_its_own(tmp_path) as second,
        demo.name_of_its_own(tmp_path / "elsewhere") as apart,
    ):
        assert (first, second, apart) == ("demo", "demo-2", "demo")


def test_a_name_is_free_again_after_its_demo(demo, tmp_path):
    with demo.name_of_its_own(tmp_path) as first:
        assert first == "demo"
    with demo.name_of_its_own(tmp_path) as again:
        assert again == "demo"
