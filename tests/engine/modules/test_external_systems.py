"""What is said when an external system gives no answer: where it was asked for, and why, in words."""

from __future__ import annotations

import socket

import pytest

from kubectl_reconcile.engine.modules.external_systems import ExternalSystems, OutsideError


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


async def why(url: str) -> str:
    systems = ExternalSystems()
    try:
        with pytest.raises(OutsideError) as raised:
            await systems.request("POST", url, body={})
    finally:
        await systems.close()
    return str(raised.value)


async def test_a_port_where_nobody_listens_is_told_without_the_library_s_notes(closed_port):
    url = f"http://127.0.0.1:{closed_port}/sync"
    assert await why(url) == f"{url} doesn't answer: connection refused"


async def test_a_name_that_nobody_has_is_told(closed_port):
    said = await why("http://nobody.invalid/sync")
    assert said.startswith("http://nobody.invalid/sync doesn't answer: ")
    assert "ssl" not in said
    assert "Cannot connect" not in said
