"""What is said where no Sync was named and there is no single one, or where the one named isn't there."""

import pytest

from kubectl_reconcile.cli.options.sync_name import sync_named
from kubectl_reconcile.cli.output.failures import ExitStatus, status_of
from kubectl_reconcile.engine.sync.targets import NoSuchSync, WhichSync


def test_several_are_listed_with_their_namespace_and_how_to_name_one():
    error = WhichSync("shop", ["back", "front"], [])
    assert str(error) == "name a Sync; there are shop/back, shop/front"
    assert error.hint == "give its name, and its namespace by -n: back -n shop"
    assert status_of(error) is ExitStatus.USAGE


def test_those_of_other_namespaces_are_listed_where_none_is_here():
    error = WhichSync("default", [], ["gitops/shop", "infra/dns"])
    assert (
        str(error) == "no Sync of namespace default follows a repository; other namespaces have gitops/shop, infra/dns"
    )
    assert error.hint == "give its name, and its namespace by -n: shop -n gitops"


def test_no_sync_anywhere_says_how_there_can_be_one():
    error = WhichSync("default", [], [])
    assert str(error) == "no Sync of namespace default follows a repository"
    assert "kubectl reconcile create" in error.hint


def test_ten_are_listed_and_the_rest_counted():
    names = [f"s{number:02}" for number in range(13)]
    assert str(WhichSync("shop", names[:10], [])).endswith("shop/s08, shop/s09")
    assert str(WhichSync("shop", names, [])).endswith("shop/s08, shop/s09 and 3 more")
    assert str(WhichSync("x", [], [f"shop/{name}" for name in names])).endswith("shop/s09 and 3 more")
    assert str(NoSuchSync("other", "shop", names)).endswith("there is " + ", ".join(names[:10]) + " and 3 more")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("shop", "shop"),
        ("sync/shop", "shop"),
        ("Sync/shop", "shop"),
        ("syncs.reconcile.dev/shop", "shop"),
        ("candy/shop", "candy/shop"),
        ("sync/", "sync/"),
        ("./sync/shop", "./sync/shop"),
        ("sync", "sync"),
    ],
)
def test_a_sync_may_be_named_as_kubectl_names_objects(text, name):
    assert sync_named(text) == name
