"""Which rows a page of the fleet has: searched, filtered, sorted, grouped, and counted."""

import pytest

from kubectl_reconcile.views.document import plain
from kubectl_reconcile.views.fleet import MOST_ROWS, FleetQuery, page
from kubectl_reconcile.views.syncs import RowDocument


def row(
    namespace,
    name,
    state="Ready",
    grade="good",
    url="https://git.example.com/shop.git",
    message="",
    changed="2026-01-01T00:00:00Z",
):
    return RowDocument(
        namespace=namespace, name=name, state=state, grade=grade, revision="3f9c2e1", ref="branch main", url=url, path=".",
        objects=1, health={}, message=message, changed_at=changed,
    )  # fmt: skip


ROWS = [
    row("shop", "web"),
    row(
        "shop",
        "caches",
        "Failed",
        "bad",
        message="Memcached shop/sessions: no node answers",
        changed="2026-01-03T00:00:00Z",
    ),
    row("bank", "web", "Held", "warn", url="https://git.example.com/bank.git", changed="2026-01-02T00:00:00Z"),
    row("bank", "ledger", url=""),
]


def asked(**parameters):
    return plain(page(ROWS, FleetQuery.of(parameters)))


def names(found):
    return [
        f"{each['namespace']}/{each['name']}" if "name" in each else f"# {each['heading']} {each['count']}"
        for each in found["rows"]
    ]


CASES = {
    "what is worst comes first, then in order of names": ({}, ["shop/caches", "bank/web", "bank/ledger", "shop/web"]),
    "all words of a search count": ({"q": "shop  sessions"}, ["shop/caches"]),
    "a search looks into repositories, whatever the case": ({"q": "BANK.git"}, ["bank/web"]),
    "of several states each counts": ({"state": "Held,Failed"}, ["shop/caches", "bank/web"]),
    "a namespace is meant whole": ({"namespace": "ban"}, []),
    "sorting goes by what is named": ({"sort": "name"}, ["shop/caches", "bank/ledger", "bank/web", "shop/web"]),
    "a minus turns it round": ({"sort": "-changed"}, ["shop/caches", "bank/web", "bank/ledger", "shop/web"]),
    "a group has a heading and a count": (
        {"group": "namespace"}, ["# bank 2", "bank/web", "bank/ledger", "# shop 2", "shop/caches", "shop/web"],
    ),
    "a page begins and ends anywhere": ({"offset": "1", "limit": "2"}, ["bank/web", "bank/ledger"]),
    "a page past the end is empty": ({"offset": "9"}, []),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "expected"), CASES.values(), ids=CASES)
def test_rows(parameters, expected):
    assert names(asked(**parameters)) == expected


def test_counts_say_what_another_choice_of_states_would_show():
    found = asked(namespace="shop", state="Failed")
    assert found["states"] == [
        {"state": "Failed", "grade": "bad", "count": 1},
        {"state": "Ready", "grade": "good", "count": 1},
    ]
    assert (found["total"], found["matching"], found["length"]) == (4, 1, 1)


def test_a_page_holds_so_many_rows_and_no_more():
    found = plain(page([row("shop", f"sync-{at:04}") for at in range(1000)], FleetQuery.of({"limit": "5000"})))
    assert len(found["rows"]) == MOST_ROWS
    assert found["matching"] == 1000


@pytest.mark.parametrize(
    "wrong", [{"sort": "age"}, {"group": "team"}, {"offset": "-1"}, {"limit": "many"}, {"offset": "٣"}]
)
def test_what_cant_be_meant_is_refused(wrong):
    with pytest.raises(ValueError, match=r"sort by|a number"):
        FleetQuery.of(wrong)
