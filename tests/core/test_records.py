"""Records that keep secrets out of their ``repr``."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import ClassVar

import pytest
from msgspec import Struct
from msgspec.structs import replace

import kubectl_reconcile
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.access.cluster import Route, Tls
from kubectl_reconcile.cluster.messages import Request
from kubectl_reconcile.core.manifests.parse import VariableUse
from kubectl_reconcile.core.module.api import SeenSecret
from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.core.rendering.lookups import Answers
from kubectl_reconcile.core.rendering.unstable import Held
from kubectl_reconcile.source.remote import Credentials

SECRET = "hunter2"


class Login(Guarded, frozen=True):
    """A record as others are."""

    hidden: ClassVar = frozenset({"password"})

    name: str
    password: str = ""


def test_a_repr_shows_what_is_not_hidden() -> None:
    assert repr(Login("ann", SECRET)) == "Login(name='ann')"


def test_a_hidden_field_is_compared_and_replaced_as_any_other() -> None:
    login = Login("ann", SECRET)
    assert login != Login("ann")
    assert replace(login, password="") == Login("ann")


@pytest.mark.parametrize(
    "record",
    [
        Access(token=SECRET),
        Request("GET", "/api", impersonation=(("Impersonate-User", SECRET),)),
        Tls(certificate=SECRET.encode(), key=SECRET.encode()),
        Route("https://server", "default", Tls(), (("Authorization", SECRET),)),
        Credentials(SECRET, SECRET, SECRET, SECRET, SECRET, SECRET),
        VariableUse(("data",), ("name",), secret=True, texts=(SECRET,)),
        Answers({"v1/Secret/shop/db": SECRET}),
        Held({"data": SECRET}),
        SeenSecret({"password": SECRET}, is_own=True, version="1"),
    ],
    ids=lambda record: type(record).__name__,
)
def test_no_record_shows_a_secret(record: Struct) -> None:
    assert SECRET not in repr(record)


def records(kind: type[Struct] = Struct) -> Iterator[type[Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from records(each)


def test_no_record_has_a_field_of_a_dataclass_as_its_default() -> None:
    for each in pkgutil.walk_packages(kubectl_reconcile.__path__, f"{kubectl_reconcile.__name__}."):
        if not each.name.endswith("__main__") and ".agent" not in each.name:
            importlib.import_module(each.name)
    wrong = [
        each
        for each in records()
        if any(isinstance(default, dataclasses.Field) for default in each.__struct_defaults__)
    ]
    assert wrong == []
