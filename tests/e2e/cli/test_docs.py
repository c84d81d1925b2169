"""What a newcomer types in the order in which the documentation has it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("README.md", "examples/README.md")
COMMAND = re.compile(r"^kubectl reconcile ((?:diff|sync) -f examples/(?:shop|guestbook)[^;#\n]*)", re.MULTILINE)


def commands():
    return [line.split() for page in PAGES for line in COMMAND.findall((ROOT / page).read_text())]


@pytest.fixture
def examples(tmp_path, cluster):
    """The folder of examples, its namespace that of the test."""
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    (tmp_path / ".git").mkdir()  # what an overlay may see ends where the working tree does
    for name in ("kustomization.yaml", "namespace.yaml"):
        file = folder / "shop" / "prod" / name
        text = re.sub(r"namespace: shop\b", f"namespace: {cluster.namespace}", file.read_text())
        file.write_text(text.replace("name: shop\n", f"name: {cluster.namespace}\n"))
    return folder


def test_the_blocks_of_the_readme_and_of_the_examples_work_one_after_the_other(plugin, examples, renders):
    done = [plugin(*(re.sub("^examples/", f"{examples}/", word) for word in line)) for line in commands()]
    assert [(line[0], each.status) for line, each in zip(commands(), done, strict=True)] == [
        ("diff", 1), ("sync", 0), ("diff", 0), ("diff", 1), ("diff", 0), ("sync", 0), ("diff", 1),
    ], [each.err for each in done]  # fmt: skip


@pytest.mark.timeout(1500)
def test_the_demo_plays_to_its_end(renders):
    demo = [sys.executable, ROOT / "examples" / "demo.py", "--pace=0"]
    done = subprocess.run(demo, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1400, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "That was all real" in done.stdout
