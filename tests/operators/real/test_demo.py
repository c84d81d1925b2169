"""The demo with a database in it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.scenario(minutes=4)
ROOT = Path(__file__).parents[3]


@pytest.mark.usefixtures("_real_pods", "renders")
def test_the_demo_with_etcd_plays_to_its_end():
    demo = [sys.executable, ROOT / "examples" / "etcd_demo.py", "--pace=0"]
    done = subprocess.run(demo, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "That was all real" in done.stdout
