"""Fixtures of the engine room: a folder of manifests, planned and synced into a real cluster, in this process.

What happened is judged by what the API server holds; what was said, by the plan, the results and the report.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.engine.sync.session import Session
from tests.engine.manifests import MAKERS
from tests.engine.shop import Shop


@pytest.fixture
async def session(kubeconfig, namespace, crds, tmp_path) -> AsyncIterator[Session]:
    """A session of the shared cluster in the test's namespace."""
    async with Session.open(Access(kubeconfig=kubeconfig, namespace=namespace), tmp_path / "cache") as found:
        yield found


@pytest.fixture
def shop(session, namespace, tmp_path) -> Shop:
    """A folder and its Sync, in the test's namespace."""
    return Shop(session, tmp_path / "shop", namespace)


@pytest.fixture
def another_shop(session, namespace, tmp_path) -> Shop:
    """Another folder and Sync in the same namespace."""
    return Shop(session, tmp_path / "another", namespace, "another")


@pytest.fixture(scope="session")
def manifests() -> Callable[..., Any]:
    """manifests("config_map") -> the maker of that kind."""
    return MAKERS.__getitem__
