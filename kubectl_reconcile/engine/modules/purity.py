"""Watches a module's pure functions at work, and says what they do that they mustn't.

In previews and tests each call is made twice, on the same input, and must agree. While it runs, every call of a builtin is
looked at: those that reach the clock, the network, files, processes, randomness or the environment are reported by
name. What is watched runs many times slower, so a preview watches a few CRs of each module, and the daemon none.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections import Counter
from collections.abc import Iterator
from types import BuiltinFunctionType, FrameType
from typing import Any

from msgspec import Struct, field

from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.call import ModuleError, check_purity, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Facts, Owned
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import Manifest

_FORBIDDEN = {
    "time": "the clock",
    "posix": "the operating system",
    "nt": "the operating system",
    "_io": "files",
    "io": "files",
    "_socket": "the network",
    "_ssl": "the network",
    "_random": "randomness",
    "random": "randomness",
    "_thread": "threads",
    "_posixsubprocess": "processes",
    "select": "the network",
}
_CLOCKS = {"now", "utcnow", "today"}
_HARMLESS = {
    "fspath",
    "get_ident",
    "allocate_lock",
    "RLock",
    "text_encoding",
    "StringIO",
    "BytesIO",
    "strptime",
    "gmtime",
}


def asked(module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
    """Return what *module* wants, having called it twice and watched: the strict form of `outcome_of`.

    Raises:
        SpecError: the CR makes no sense to the module.
        ModuleError: the module isn't pure; the message says what it did. Or it failed otherwise.
    """
    checked(module, cr, owned, facts, ctx)
    return outcome_of(module, cr, owned, facts, ctx)


class Sampling(Struct):
    """Asks modules strictly for the first *each* CRs of each module, and plainly for the others."""

    each: int = 3
    _asked: Counter[str] = field(default_factory=Counter)

    def __call__(self, module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Return what *module* wants.

        Raises:
            SpecError: the CR makes no sense to the module.
            ModuleError: the module isn't pure, or failed.
        """
        self._asked[module.name] += 1
        strictly = self._asked[module.name] <= self.each
        return (asked if strictly else outcome_of)(module, cr, owned, facts, ctx)


def checked(module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
    """Return the outcome of watched calls that agree; an invalid spec is an outcome, too.

    Raises:
        ModuleError: the module isn't pure, or failed.
    """
    return check_purity(module, cr, owned, facts, ctx, ask=_watched)


def _watched(module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
    seen: list[str] = []

    def look(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and (what := _reaches(called)) and not (_reads_data(frame) or _caches(frame, what)):
            seen.append(what)

    with _no_collection():
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            outcome = outcome_of(module, cr, owned, facts, ctx)
        except ModuleError as error:
            sys.setprofile(before)
            raise (_impure(module, seen) if seen else error) from error
        finally:
            sys.setprofile(before)
    if seen:
        raise _impure(module, seen)
    return outcome


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Put off garbage collection: finalizers and callbacks of others would look like the module's own doing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _impure(module: Module, seen: list[str]) -> ModuleError:
    return ModuleError(module.name, f"it isn't pure: it called {seen[0]}")


def _reads_data(frame: FrameType | None) -> bool:
    """Tell whether it is the standard library that reads a time zone, or code that is imported late: data, which comes in files."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in {"zoneinfo", "importlib"}:
            return True
        frame = frame.f_back
    return False


def _caches(frame: FrameType, what: str) -> bool:
    """Tell whether it is the lock by which functools works out a value once: up to Python 3.11, ``cached_property`` has one."""
    return frame.f_globals.get("__name__") == "functools" and what.startswith("_thread.")


def _reaches(called: Any) -> str:
    """Return what a builtin reaches beyond its arguments, nothing where it stays with them."""
    name = getattr(called, "__name__", "")
    owner = getattr(called, "__self__", None)
    place = getattr(called, "__module__", None) or getattr(type(owner), "__module__", "")
    if name in _CLOCKS and isinstance(called, BuiltinFunctionType) and getattr(owner, "__module__", "") == "datetime":
        return f"datetime.{name}, the clock"
    if name in {"print", "input"} and place == "builtins":
        return f"{name}, the terminal"
    if name == "open" and place in {"io", "_io"}:
        return "open, files"
    if place in _FORBIDDEN and name not in _HARMLESS:
        return f"{place}.{name}, {_FORBIDDEN[place]}"
    return ""
