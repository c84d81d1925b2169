"""One EtcdCluster called db for the tests of a module, and the programs that its members are."""

import pytest

from kubectl_reconcile.sandbox.images import catalog
from tests.operators.real.etcd.backups import forget
from tests.operators.real.etcd.cluster import Db
from tests.real_pods import Real


@pytest.fixture(scope="session", autouse=True)
def _programs():
    """Built where this user has none yet: that takes minutes."""
    catalog.build(print, only="etcd")


@pytest.fixture(scope="module")
def real(world) -> Real:
    """The namespace of all tests of a module."""
    return world.real


@pytest.fixture(scope="module")
def db(world) -> Db:
    found = Db(world.real, world.new_daemon().start())
    yield found
    for kind in ("etcdbackup", "etcdrestore"):
        forget(world.real, kind)
    found.end()
