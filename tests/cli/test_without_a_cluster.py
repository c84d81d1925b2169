"""diff --offline of files where no cluster is configured: what they ask for, and what is wrong with them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FILES = """apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: web, namespace: shop}
"""
BROKEN = FILES + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n"


@pytest.fixture
def diff(tmp_path):
    """diff(text, …) -> its status, what it printed, and what it complained of."""
    home = {name: text for name, text in os.environ.items() if name not in {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"}}

    def run(text, *flags):
        (tmp_path / "a.yaml").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "kubectl_reconcile.cli.main", "diff", "-f", str(tmp_path / "a.yaml"), "--no-pager", *flags],
            env={**home, "HOME": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return run


def test_files_are_shown_as_they_would_be_created(diff):
    status, out, err = diff(FILES, "--offline", "-o", "summary")
    assert (status, "no cluster is configured: each object is shown" in err) == (1, True)
    assert [line.split()[:3] for line in out.splitlines()[:2]] == [
        ["create", "Namespace", "shop"], ["create", "Thing.example.com", "shop/web"],
    ]  # fmt: skip


def test_what_is_wrong_with_them_is_told(diff):
    status, _, err = diff(BROKEN, "--offline")
    assert (status, 'a.yaml:11: metadata.name is a boolean, not text (hint: quote it: "y")' in err) == (4, True)


@pytest.mark.parametrize("flags", [[], ["--offline", "deploy/web"]], ids=["asked for the cluster", "only one of them"])
def test_what_needs_a_cluster_says_so(diff, flags):
    status, out, err = diff(FILES, *flags)
    assert (status in {2, 6}, out, "cluster" in err) == (True, "", True)
