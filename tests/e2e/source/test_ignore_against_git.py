"""What .reconcileignore leaves out is what git itself leaves out: random patterns and paths, put to ``git check-ignore``."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.which_files import SourceIgnore

PIECES = [
    "a", "b", "ab", "*", "**", "***", "?", "/", "**/", "/**", "/**/", "[ab]", "[!a]", "[^b]", "[a-c]", "[c-a]", "[]a]", "[a-]", "[!]-]",
    "[[:alpha:]]", "[[:punct:]b]", "[[:nope:]]", "[[:a]", "[a", "]", "-", "\\a", "\\*", "\\[", "\\", "[\\]a]", "[/]", "a/", "!", "#", " ", "é", "\\ ",
]  # fmt: skip
MANY = 300
FOLDER = "abc"
NAMES = ["a", "b", "c", "ab", "aab", "abab", "a*", "*", "[", "]", "-", "a b", "é", "\\", "a ", "!a", "#a"]

patterns = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)
lines = st.builds("{}{}".format, st.sampled_from(["", "", "", "!", "/", "\\!"]), patterns)
ignore_files = st.lists(lines, min_size=1, max_size=5).map("\n".join)
below = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
paths = st.builds("{}{}".format, st.sampled_from(["", f"{FOLDER}/"]), below)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    subprocess.run(["git", "init", "-q", folder], check=True, timeout=300)
    return folder


def ignored_by_git(repository, texts, asked):
    """Return those of the paths *asked* that git leaves out where these ignore files stand."""
    for folder, text in texts.items():
        (repository / folder).mkdir(parents=True, exist_ok=True)
        (repository / folder / ".gitignore").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=repository, input="\0".join(asked).encode(), capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    shutil.rmtree(repository / FOLDER, ignore_errors=True)
    assert done.returncode in {0, 1}, done.stderr
    return set(done.stdout.decode().split("\0")) - {""}


@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(root=ignore_files, deeper=st.none() | ignore_files, asked=st.lists(paths, min_size=1, max_size=12, unique=True))
def test_git_agrees(repository, root, deeper, asked):
    texts = {"": root} if deeper is None else {"": root, FOLDER: deeper}
    ignore = SourceIgnore({folder: text.encode() for folder, text in texts.items()})
    ours = {path for path in asked if ignore.matches(path)}
    assert ours == ignored_by_git(repository, texts, asked)
