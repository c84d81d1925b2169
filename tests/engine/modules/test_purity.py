"""A module that isn't pure is told so, by what it called."""

import datetime as dt
import functools
import gc
import importlib
import random
import socket
import time
import uuid
from pathlib import Path

import pytest

from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.call import ModuleError
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.engine.modules.purity import Sampling, asked
from kubectl_reconcile.modules.memcached import memcached
from kubectl_reconcile.modules.threetierapp import ThreeTierApp
from kubectl_reconcile.modules.webserver import webserver
from tests import yaml_text

EXAMPLES = Path(__file__).parents[3] / "examples"
NOW = "2026-01-01T00:00:00Z"


def ask(one, cr, by=asked):
    return by(one, cr, Owned(), {}, Context(NOW, one.name, cr))


def doing(what):
    def reconcile(*_):
        what()
        return Outcome()

    return module(api="example.com/v1", kind="Cache", owns=[])(reconcile)


CR = {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "a", "namespace": "b"}}
IMPURE = {
    "the time": (time.time, "time.time, the clock"),
    "a date": (lambda: dt.datetime.now(dt.UTC), "datetime.now, the clock"),
    "today": (dt.date.today, "datetime.today, the clock"),
    "a random number": (random.random, "random.random, randomness"),
    "a uuid": (uuid.uuid4, "posix.urandom, the operating system"),
    "a file": (lambda: Path(__file__).read_text(), "open, files"),
    "a folder": (lambda: list(Path("/").iterdir()), "posix.listdir, the operating system"),
    "a connection": (lambda: socket.create_connection(("127.0.0.1", 1)), "_socket.getaddrinfo, the network"),
    "a print": (lambda: print("x"), "print, the terminal"),  # noqa: T201 - the point
}  # fmt: skip


@pytest.mark.parametrize(("what", "named"), IMPURE.values(), ids=IMPURE)
def test_what_reaches_outside_is_named(what, named):
    with pytest.raises(ModuleError, match="module cache: it isn't pure: it called ") as told:
        ask(doing(what), CR)
    assert str(told.value).endswith(named)


@pytest.mark.parametrize("one", [memcached, webserver, ThreeTierApp], ids=lambda one: one.name)
def test_our_modules_are_pure(one):
    cr = yaml_text.document((EXAMPLES / f"{one.name}.yaml").read_text())
    assert ask(one, {**cr, "metadata": {**cr["metadata"], "namespace": "shop"}}).children


def test_a_garbage_collection_meanwhile_is_not_laid_to_the_module():
    def litter():
        for _ in range(10_000):
            ring: list = []
            ring.append(ring)

    def callback(*_):
        time.perf_counter()

    gc.callbacks.append(callback)
    try:
        assert ask(doing(litter), CR).children == ()
    finally:
        gc.callbacks.remove(callback)


def test_a_value_that_is_worked_out_once_is_pure():
    class Sum:
        @functools.cached_property
        def value(self):  # up to Python 3.11 a lock guards it
            return 1 + 1

    assert ask(doing(lambda: Sum().value), CR).children == ()


def test_an_invalid_spec_is_still_an_invalid_spec():
    with pytest.raises(SpecError, match=r"\.spec\.replicas: is required"):
        ask(webserver, {**CR, "spec": {}})


def test_only_a_few_are_watched():
    sampling, impure = Sampling(each=2), doing(time.time)
    for _ in range(2):
        with pytest.raises(ModuleError):
            ask(impure, CR, by=sampling)
    assert ask(impure, CR, by=sampling).children == ()


def test_a_module_may_import_late_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "needed_late.py").write_text("import time\nNUMBER = 1 if time.time() else 0\n")

    def reconcile(*_):
        return Outcome(status={"number": importlib.import_module("needed_late").NUMBER})

    late = module(api="example.com/v1", kind="Late", owns=[])(reconcile)
    cr = {"apiVersion": "example.com/v1", "kind": "Late", "metadata": {"name": "x", "namespace": "shop"}}
    assert asked(late, cr, Owned(), {}, Context("2026-01-01T00:00:00Z", "late", cr)).status == {"number": 1}
