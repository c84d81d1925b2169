"""What a daemon does about modules that fail: each ends as an error of that module, and soon."""

from __future__ import annotations

import contextlib
import signal
import time

import pytest

from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.call import ModuleError
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.engine.modules.call_timeout import ModuleCalls
from kubectl_reconcile.engine.telemetry.metrics import Metrics

CR = {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "web", "namespace": "shop", "uid": "u"}}


def ask(reconcile):
    longest_s = 0.3 if reconcile in {loops, swallows} else 100.0
    body = {"reconcile": lambda _, *given: reconcile(*given)}
    one = module(api="example.com/v1", kind="Cache", owns=["v1/Pod"], name="cache")(type("Cache", (), body))
    return ModuleCalls(Metrics(), longest_s)(one, CR, Owned(), None, Context("2026-11-20T12:00:00Z", "cache", CR))


def loops(*_):
    while True:
        pass


def swallows(*_):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def raises(*_):
    raise RuntimeError("no idea")


def a_child(**content):
    return lambda *_: Outcome([{"apiVersion": "v1", "kind": "Pod", **content}])


WRONG = {
    "raises": (raises, "RuntimeError: no idea"),
    "loops for ever": (loops, "no outcome within 0.3 s"),
    "sleeps for ever and swallows exceptions": (swallows, "no outcome within 0.3 s"),
    "returns nothing": (lambda *_: None, "returned NoneType, not an Outcome"),
    "returns a mapping": (lambda *_: {"children": []}, "returned dict, not an Outcome"),
    "makes a child that is no mapping": (lambda *_: Outcome(["pod"]), "its outcome can't be used"),
    "makes a child without a name": (a_child(metadata={}), "has no name"),
    "makes a child of another's kind": (
        lambda *_: Outcome([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}]),
        "isn't among the kinds it owns",
    ),
    "makes a child that is no JSON": (a_child(metadata={"name": "p"}, spec={1, 2}), "its outcome can't be used"),
    "has a status that is no JSON": (lambda *_: Outcome(status={"at": object()}), "its outcome can't be used"),
    "has a status with no number": (lambda *_: Outcome(status={"at": float("nan")}), "its outcome can't be used"),
}


@pytest.mark.parametrize(("reconcile", "said"), WRONG.values(), ids=WRONG)
def test_a_module_at_fault_is_named_and_nothing_hangs(reconcile, said):
    with pytest.raises(ModuleError, match="cache") as caught:
        ask(reconcile)
    assert said in str(caught.value)


def test_a_module_in_time_is_answered_and_no_alarm_is_left_behind():
    assert ask(lambda *_: Outcome()).children == ()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_a_spec_that_makes_no_sense_is_no_fault_of_the_module():
    def complains(*_):
        raise SpecError("spec.size", "is negative")

    with pytest.raises(SpecError):
        ask(complains)


@pytest.mark.parametrize("ends", [True, False])
def test_how_long_a_call_kept_all_others_waiting_is_told_however_it_ends(ends):
    told = []

    def reconcile(*_):
        while time.thread_time() < until_s:
            pass
        if not ends:
            raise RuntimeError
        return Outcome([])

    body = {"reconcile": lambda _, *given: reconcile(*given)}
    one = module(api="example.com/v1", kind="Cache", owns=["v1/Pod"], name="cache")(type("Cache", (), body))
    calls = ModuleCalls(Metrics(), 100.0, lambda ref, seconds: told.append((str(ref), seconds)))
    until_s = time.thread_time() + 0.05
    with contextlib.nullcontext() if ends else pytest.raises(ModuleError):
        calls(one, CR, Owned(), None, Context("2026-11-20T12:00:00Z", "cache", CR))
    ((ref, seconds),) = told
    assert ref == "Cache.example.com shop/web"
    assert seconds >= 0.04
