"""Verbs without a Sync's name, or with one of another namespace: which Syncs there are, and how to name one."""

from __future__ import annotations

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus

VERBS = ("diff", "sync", "tree", "history")


@pytest.mark.parametrize("verb", VERBS)
def test_several_syncs_are_listed_with_their_namespace(verb, plugin, follow, namespace):
    for name in ("front", "back"):
        follow("https://git.example.com/shop.git", name, suspend=True)
    done = plugin(verb)
    assert done.status == ExitStatus.USAGE
    assert f"name a Sync; there are {namespace}/back, {namespace}/front\n" in done.err
    assert f"hint: give its name, and its namespace by -n: back -n {namespace}\n" in done.err


@pytest.fixture
def elsewhere(cluster, follow):
    """A namespace without a Sync, beside one that has the Sync a."""
    follow("https://git.example.com/shop.git", "a", suspend=True)
    empty = f"{cluster.namespace}-empty"
    cluster.kubectl("create", "namespace", empty)
    yield cluster.at(empty)
    cluster.kubectl("delete", "namespace", empty, "--wait=false")


@pytest.mark.parametrize("verb", VERBS)
def test_syncs_of_other_namespaces_are_listed_where_none_is_here(verb, plugin, elsewhere):
    done = plugin.on(elsewhere)(verb)
    assert done.status == ExitStatus.USAGE
    assert f"no Sync of namespace {elsewhere.namespace} follows a repository; other namespaces have " in done.err
    assert "hint: give its name, and its namespace by -n: " in done.err


@pytest.mark.parametrize("verb", ["status", "get"])
def test_a_table_without_rows_names_the_syncs_of_other_namespaces(verb, plugin, elsewhere):
    done = plugin.on(elsewhere)(verb)
    assert (done.status, done.out) == (0, "")
    assert f"no Syncs in namespace {elsewhere.namespace}; other namespaces have " in done.err
    assert done.err.endswith(": add -n NAMESPACE or -A\n")
