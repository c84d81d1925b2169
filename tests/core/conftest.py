"""Lets the tests of the pure core import their strategies, and tells hypothesis that this machine may be busy."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("core", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "mutants", settings.get_profile("core"), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "core"))
