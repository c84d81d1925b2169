"""What a newcomer types in the order in which the documentation has it."""

from __future__ import annotations

import os
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


def steps(text):
    """The commands of a page's console blocks, and what each prints; lines of a here-document belong to its command."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            if command.endswith("<<EOF"):
                command, printed = step, ""
            yield command, printed


def alike(text):
    """What is printed, but for what differs from run to run: durations."""
    return re.sub(r"\bin \d+(\.\d+)? m?s\b|\bin \d+ min\b", "in a moment", text).strip()


def test_here_documents_and_what_is_printed_are_told_apart():
    page = "```console\n$ cat > a <<EOF\nx\nEOF\n$ ls\na\nb\n```\n```sh\n$ no\n```\n"
    assert list(steps(page)) == [("cat > a <<EOF\nx\nEOF\n", ""), ("ls", "a\nb\n")]


def test_the_quick_start_prints_what_it_says(cluster, kubectl, plugin, tmp_path):
    own = kubectl.using(tmp_path / "kubeconfig")
    Path(own.kubeconfig).write_bytes(Path(kubectl.kubeconfig).read_bytes())
    own("config", "set-context", "--current", f"--namespace={cluster.namespace}")
    path = os.pathsep.join([str(kubectl.folder), os.environ["PATH"]])
    environ = {**os.environ, "KUBECONFIG": str(own.kubeconfig), "PATH": path}

    def typed(command):
        if command.startswith("kubectl reconcile "):  # not by kubectl, which starts Python each time
            words = command.removeprefix("kubectl reconcile ").replace("-f hello", f"-f {tmp_path}/hello").split()
            answer = plugin(*words)
            return answer.out, answer.err
        run = subprocess.run(  # noqa: S602 - a reader's shell runs them, too
            command, shell=True, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return run.stdout, run.stderr

    walked = list(steps((ROOT / "docs" / "quick-start.md").read_text()))
    assert len(walked) >= 12
    for command, printed in walked:
        out, err = typed(command)
        assert alike(re.sub(rf"\b{cluster.namespace}\b", "hello", out)) == alike(printed), f"{command}\n{err}"


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
