"""A session with the cluster that the flags say, and what other flags mean there: a target, a part of a plan.

Imports all that talks to clusters: for what verbs do, not for how they are declared.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from kubectl_reconcile.cli.chart_flags import pin_of, values_given
from kubectl_reconcile.cli.early import Asked, access_of, taken
from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.options.origin import Origin
from kubectl_reconcile.cli.options.selection import Chosen, is_path
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.engine.sync import targets
from kubectl_reconcile.engine.sync.decryption import own_decryption
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.telemetry import logs
from kubectl_reconcile.source.render.renderer import RENDERER
from kubectl_reconcile.source.sops.decrypter import DECRYPTER

if TYPE_CHECKING:  # most work is about everything
    from kubectl_reconcile.engine.commands.selection import Selection, SelectionError

_T = TypeVar("_T")

_LOGS_WORK, _LOGS_REQUESTS = 2, 6


# --- the session ------------------------------------------------------------------------------------------------------


def log_to_stderr(connection: Connection) -> None:
    """Have the work logged on standard error, as far as the user wants to know of it."""
    if connection.verbosity >= _LOGS_WORK:
        logs.set_up("debug" if connection.verbosity >= _LOGS_REQUESTS else "info", "text")
    else:
        logs.keep_quiet()


def run(connection: Connection, work: Callable[[Session], Coroutine[Any, Any, _T]]) -> _T:
    """Open a session, and return what *work* makes of it."""
    log_to_stderr(connection)
    made: list[_T] = []
    RENDERER.build_log = DECRYPTER.build_log = partial(click.echo, err=True)
    asked = taken(connection)
    with asked.runner if asked else asyncio.Runner() as runner:
        runner.run(_run(connection, work, made.append, asked))
    return made[0]


def run_until_interrupted(
    connection: Connection, work: Callable[[Session], Coroutine[Any, Any, _T]]
) -> _T | ExitStatus:
    """Do the same for work that only looks, and that a person ends by Ctrl-C: that is no news to them."""
    try:
        return run(connection, work)
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED


async def _run(
    connection: Connection,
    work: Callable[[Session], Coroutine[Any, Any, _T]],
    done: Callable[[_T], None],
    asked: Asked | None,
) -> None:
    """Call *done* with what *work* makes; asyncio spells out what its main task returns, and a plan is long."""
    begun = (
        Session.begun(asked.client, asked.discovery, asked.folder)
        if asked
        else Session.open(access_of(connection), connection.cache_dir)
    )
    async with begun as session:
        done(await work(session))


# --- what flags mean there --------------------------------------------------------------------------------------------


@contextmanager
def readable(origin: Origin) -> Iterator[Origin]:
    """Yield *origin* with standard input put into a file, where it is one."""
    if origin.file != "-":
        yield origin
        return
    with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-") as folder:
        file = Path(folder, "stdin")
        file.write_bytes(sys.stdin.buffer.read())
        yield replace(origin, file=str(file))


async def target_of(session: Session, origin: Origin) -> Target:
    """Return what *origin* stands for.

    Raises:
        NoSuchSync: there is no such Sync, or there are several and none was named.
        ApiError: the server refuses, or doesn't answer.
    """
    session.decryption = own_decryption(origin.decrypt, os.environ)
    target = await _target_of(session, origin)
    if origin.values or origin.sets:
        target.reader.give(values_given(origin.values, origin.sets))
    return target


async def _target_of(session: Session, origin: Origin) -> Target:
    namespace = origin.namespace or session.client.namespace
    render = Render(origin.render)
    if origin.chart:
        return await targets.chart_target(session, pin_of(origin), origin.name, namespace, manager=origin.manager)
    if origin.file:
        folder = Path(origin.file)
        return await targets.folder_target(
            session, folder, origin.name, namespace, recursive=origin.recursive, manager=origin.manager, render=render
        )
    if origin.repo:
        return await targets.repository_target(
            session, origin.repo, origin.ref, origin.path, origin.name, namespace, manager=origin.manager, render=render
        )
    if origin.revision:
        return await targets.revision_target(session, origin.name, namespace, origin.revision)
    if origin.local:
        return await targets.working_tree_target(session, origin.name, namespace, Path(origin.local))
    return await targets.sync_target(session, origin.name, namespace)


def selected(session: Session, chosen: Chosen, plan: Plan, *, among: list[Plan] | None = None) -> Plan:
    """Return the part of *plan* that is *chosen*.

    Where names may be meant for other plans, *plan* is added to those *among* which `unmatched` looks for them at last.

    Raises:
        SelectionError: a name, a kind or the selector can't be meant as it is written, or a name means nothing here.
    """
    if chosen.is_everything:
        return plan
    selection = _selection(session, chosen, plan)
    if among is not None:
        among.append(plan)
    elif missing := selection.unmatched(plan):
        raise missing[0]
    return selection.chosen(plan)


def unmatched(session: Session, chosen: Chosen, among: list[Plan]) -> list[SelectionError]:
    """Return an error for each name that means nothing in any of the plans *among* which it was looked for."""
    return _selection(session, chosen, among[0]).unmatched(*among) if among else []


def _selection(session: Session, chosen: Chosen, plan: Plan) -> Selection:
    files = [each for each in chosen.objects if is_path(each)]
    names = [each for each in chosen.objects if not is_path(each)]
    selection = importlib.import_module("kubectl_reconcile.engine.commands.selection")
    happenings = frozenset(map(selection.Only, chosen.only))
    terms = selection.SelectionTerms(names, chosen.kinds, chosen.selector, files, happenings)
    found: Selection = selection.Selection.of(terms, session.discovery, plan)
    return found


async def live_sync(session: Session, name: str) -> Manifest:
    """Return the live Sync *name*, or the only one of the namespace that follows something.

    Raises:
        NotInstalled: the cluster doesn't know Syncs.
        NoSuchSync: there is none, or there are several and none was named.
        ApiError: the server refuses, or doesn't answer.
    """
    return await targets.live_sync(session, name, session.client.namespace)
