"""Fixtures of the attackers' room: the real API server, daemon, plugin and Git server of the end-to-end tests.

Tests are named after classes of attacks. Each says what the attacker did *not* get, and that the others' work went on.
"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import (  # noqa: F401 - pytest finds them here
    api,
    cluster,
    config_map,
    crds,
    daemon,
    eventually,
    follow,
    may,
    memcached,
    new_daemon,
    plugin,
    starting_with,
)
from tests.security.tenants import attack, bakery, evil, hook, world  # noqa: F401 - as above


@pytest.fixture(autouse=True)
def _not_forever(request) -> None:
    """An attack that stops us is a failure, not a test that never ends."""
    if not request.node.get_closest_marker("timeout"):
        request.node.add_marker(pytest.mark.timeout(900))
