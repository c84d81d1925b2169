"""``kubectl reconcile ui``: a page about the Syncs of a cluster, served to one person on their own machine."""

from __future__ import annotations

import functools
import html
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.views.text import Tone, line

if TYPE_CHECKING:
    from aiohttp import web

    from kubectl_reconcile.engine.sync.session import Session

_LOOPBACK = "127.0.0.1"


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile ui                 opens your browser
  kubectl reconcile ui --no-browser    prints the address
"""
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, metavar="PORT",
    help="Port of 127.0.0.1 to listen on; 0 chooses one.",
)  # fmt: skip
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in your browser.")
@colour
@common
def ui(connection: Connection, *, port: int, browser: bool, color: str) -> int:
    """Open a page about your Syncs: what is broken, why, and what comes next.

    The page runs on this machine until Ctrl-C, with your kubeconfig and your rights. It changes something only if you
    tell it to, and first says what it will change. Its address works once.
    """
    from kubectl_reconcile.cli.session import run_until_interrupted

    out, err = terminals(color)
    work = functools.partial(_served, port=port, browser=browser, out=out, err=err)
    run_until_interrupted(connection, work)
    return ExitStatus.OK


async def _served(session: Session, *, port: int, browser: bool, out: Terminal, err: Terminal) -> None:
    import asyncio
    import webbrowser

    from kubectl_reconcile.engine.telemetry.events import Events
    from kubectl_reconcile.web.app import application
    from kubectl_reconcile.web.asking import Asker
    from kubectl_reconcile.web.fleet_feed import FleetFeed
    from kubectl_reconcile.web.guard import PageRunner
    from kubectl_reconcile.web.local_door import LocalDoor

    async with FleetFeed(session) as fleet:
        door = LocalDoor(Asker(session, fleet, Events(session.client)))
        runner = PageRunner(application(door))
        await runner.setup()
        try:
            await _listen(runner, port)
            door.port = runner.addresses[0][1]
            out.write([line(door.url)])
            err.write([line("the address works once, and only for you; Ctrl-C stops the server", Tone.ASIDE)])
            with leading_to(door.url) if browser else nullcontext() as address:
                if address and not await asyncio.to_thread(webbrowser.open, address):
                    said = "no browser could be opened: open the address in a browser on this machine"
                    err.write([line(said, Tone.WARNING)])
                await _until_ended()
        finally:
            await runner.cleanup()


@contextmanager
def leading_to(url: str) -> Iterator[str]:
    """Give the address of a file that leads to *url* and that only we may read: what a browser is started with can be seen by all users.

    It is in the home folder, where confined browsers may read, and is gone when the context ends.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-ui-", dir=_folder()) as folder:
        page = Path(folder, "open.html")
        page.touch(mode=0o600)
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(url)}">\n')
        yield page.as_uri()


def _folder() -> str | None:
    """Return the home folder where files can be made there; None for the system's folder of temporary files."""
    home = os.environ.get("HOME", "")
    return home if home and os.access(home, os.W_OK | os.X_OK) else None


async def _listen(runner: web.AppRunner, port: int) -> None:
    from aiohttp import web

    try:
        await web.TCPSite(runner, _LOOPBACK, port).start()
    except OSError as error:
        hint = "choose another with --port, or leave it to the system"
        raise Failure(
            f"can't listen on port {port}: {os.strerror(error.errno or 0).lower()}", hint, status=ExitStatus.USAGE
        ) from None


async def _until_ended() -> None:
    """Return when the process is told to end."""
    import asyncio

    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
