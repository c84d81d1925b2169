"""The demo that the README begins with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.timeout(1500)
def test_the_demo_plays_to_its_end(renders):
    demo = [sys.executable, ROOT / "examples" / "demo.py", "--pace=0"]
    done = subprocess.run(demo, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1400, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "That was all real" in done.stdout
