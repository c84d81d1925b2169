"""Which objects a replica holds whole: members of its own Syncs, and all by which replicas find out what is whose."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.daemon.holding import Holding
from kubectl_reconcile.core.daemon.watch_events import ItemIndex
from kubectl_reconcile.core.objects import GroupKind
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.sync import SYNC, Sync

CONFIG_MAP, CANDY = GroupKind("", "ConfigMap"), GroupKind("example.com", "Candy")


def manifest(name):
    git = {"url": "https://git.example.com/shop", "path": "."}
    return {
        "apiVersion": SYNC.api_version, "kind": SYNC.kind, "metadata": {"name": name, "namespace": "shop"},
        "spec": {"source": {"git": git}},
    }  # fmt: skip


def member_of(name):
    return {PART_OF: set_id_of(Sync.of(manifest(name)))}


@pytest.fixture
def mine():
    return {"mine"}


@pytest.fixture
def holding(mine):
    index = ItemIndex()
    for name in ("mine", "another's"):
        index.sync_came(manifest(name))
    return Holding(index, lambda ref: ref.name in mine, lambda kind: kind == CANDY)


CASES = {
    "a member of a Sync that is ours": (PART_OF, CONFIG_MAP, "mine", True),
    "a member of another replica's": (PART_OF, CONFIG_MAP, "another's", False),
    "a member of a set that no Sync is known for": (PART_OF, CONFIG_MAP, "nobody's", False),
    "a custom resource that a module is shared out by": (PART_OF, CANDY, "another's", True),
    "a Sync that is a member of a Sync": (PART_OF, SYNC.group_kind, "another's", True),
    "a CRD": (PART_OF, GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"), "another's", True),
    "a namespace": (PART_OF, GroupKind("", "Namespace"), "another's", True),
    "what is watched for something else": ("reconcile.dev/module=candy", CONFIG_MAP, "another's", True),
}


@pytest.mark.parametrize(("selector", "kind", "sync", "expected"), CASES.values(), ids=CASES)
def test_what_is_held_whole(holding, selector, kind, sync, expected):
    assert holding.is_whole(selector, kind, member_of(sync)) is expected


def test_whose_a_sync_is_is_asked_once_for_each_share(holding, mine):
    mine.add("another's")
    assert holding.is_whole(PART_OF, CONFIG_MAP, member_of("another's"))
    mine.clear()
    assert holding.is_whole(PART_OF, CONFIG_MAP, member_of("another's")), "nobody said that the share changed"
    holding.share_changed()
    assert not holding.is_whole(PART_OF, CONFIG_MAP, member_of("another's"))
