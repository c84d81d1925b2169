"""One MyDatabase called db for the tests of a module, on the PostgreSQL that is installed here."""

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from tests.operators.real.postgres.database import Db


@pytest.fixture(scope="module")
def version() -> int:
    """The major version of the PostgreSQL that is installed here."""
    try:
        return int(catalog.find("postgres").environ["PG_MAJOR"])
    except ImageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def db(world, version) -> Db:
    found = Db(world.real, world.new_daemon().start(), version)
    yield found
    found.lose()
