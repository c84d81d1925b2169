"""What a session knows of the server's kinds."""

import pytest

from kubectl_reconcile.cluster.errors import ServerError
from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.resources.sync import SYNC


async def test_a_kind_that_is_not_served_at_the_moment_is_the_servers_trouble(session):
    assert (await session.kind(SYNC)).plural == "syncs"
    with pytest.raises(ServerError, match=r"serves no example\.com/v9 Nothing at the moment"):
        await session.kind(GroupVersionKind("example.com", "v9", "Nothing"))
