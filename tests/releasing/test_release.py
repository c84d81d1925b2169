"""A release made in a clone of this repository: what is written, committed and tagged, and what is refused."""

import hashlib
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from releasing.__main__ import ReleaseError, check, prepare, record, repository

ROOT = Path(__file__).parents[2]
WHEN = datetime(2026, 11, 24, 12, 30, 1, tzinfo=UTC)
URL = "https://example.com/releases/v9.8.7"


def git(folder, *words):
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path):
    """A clone of what is committed here."""
    if not (ROOT / ".git").exists():
        pytest.skip("a release is made of a clone, and this is none")
    git(tmp_path, "clone", "--quiet", str(ROOT), "clone")
    return tmp_path / "clone"


def make_release(clone, *words):
    """``make release`` in a clone, with the Python that runs this."""
    return subprocess.run(
        [sys.executable, "-m", "releasing", *words], cwd=clone, env={**os.environ, "PYTHONPATH": str(clone)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_a_release_writes_its_version_everywhere_and_is_committed_and_tagged(clone):
    before, versions = git(clone, "rev-parse", "HEAD"), repository(clone).version
    prepare(clone, "9.8.7", WHEN)
    record(clone, "9.8.7", WHEN)
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "rev-parse", "HEAD~1") == before
    assert git(clone, "cat-file", "-t", "v9.8.7") == "tag"
    assert git(clone, "log", "-1", "--format=%s %ct", "v9.8.7") == f"Release 9.8.7 {WHEN.timestamp():.0f}"
    changed = git(clone, "diff", "--name-only", "HEAD~1").split()
    assert {"CHANGELOG.md", "deploy/chart/Chart.yaml", "deploy/install.yaml", "kubectl_reconcile/__init__.py"} <= set(
        changed
    )
    left = [name for name in changed if re.search(rf"\b{re.escape(versions)}\b", (clone / name).read_text())]
    assert left in ([], ["CHANGELOG.md"])
    assert "## [9.8.7] - 2026-11-24\n" in (clone / "CHANGELOG.md").read_text()
    assert repository(clone).tags[-1] == "v9.8.7"


def test_a_release_that_is_refused_says_all_that_stands_against_it_and_changes_nothing(clone):
    (clone / "README.md").write_text("changed\n")
    (clone / "new").write_text("new\n")
    done = make_release(clone, "v1", "--release-url", "ftp://x")
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["error"] * 3 + ["Nothing was changed."]
    assert "README.md, new" in done.stderr
    assert (git(clone, "tag"), git(clone, "status", "--short")) == (git(ROOT, "tag"), "M README.md\n?? new")


def test_a_release_that_can_t_be_built_leaves_all_files_as_they_were(clone):
    (clone / "setup.py").write_text("raise SystemExit('broken')\n")
    git(clone, "commit", "--quiet", "--all", "--message=Break it")
    done = make_release(clone, "9.8.7", "--release-url", URL, "--platform=linux_amd64")
    assert done.returncode == 2
    assert "broken" in done.stderr
    assert done.stderr.endswith("No release was made; all files are as they were before.\n")
    assert (git(clone, "status", "--porcelain"), git(clone, "log", "-1", "--format=%s")) == ("", "Break it")
    assert "v9.8.7" not in git(clone, "tag")


def test_a_file_that_isn_t_what_was_summed_is_found(tmp_path):
    (tmp_path / "a.whl").write_text("other")
    (tmp_path / "SHA256SUMS").write_text(f"{hashlib.sha256(b'built').hexdigest()}  a.whl\n")
    with pytest.raises(ReleaseError, match=r"a\.whl isn't the file that dist/SHA256SUMS was written for"):
        check(tmp_path, "9.8.7")
