"""Log lines are for daemons, and for those who ask for them: a command tells what it has to tell in its own words."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.session import log_to_stderr
log_to_stderr(Connection({"verbosity": int(sys.argv[1])}))
logging.getLogger("kubectl_reconcile.cluster.reflector").warning('feed failed feed="%s"', "pods")
"""


@pytest.mark.parametrize(("verbosity", "is_told"), [(0, False), (9, True)])
def test_a_command_writes_log_lines_only_where_it_is_told_to(verbosity, is_told):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(verbosity)], capture_output=True, text=True, check=True, timeout=300
    )
    assert ("feed failed" in ran.stderr) is is_told
