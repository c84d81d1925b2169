"""Lets the tests of the pure core import their strategies."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
