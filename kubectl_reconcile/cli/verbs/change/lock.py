"""``kubectl reconcile lock``: pins by digests and commits what a chart or an overlay has fetched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import rendering
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.views.text import Line, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.commands.lock import Locking
    from kubectl_reconcile.engine.sync.session import Session


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile lock charts/web    write charts/web/reconcile.lock.yaml
  kubectl reconcile lock prod          the same of an overlay
  kubectl reconcile lock charts/web --secret registry -n shop
"""
)
@click.argument("folder", metavar="[FOLDER]", default=".", type=click.Path(exists=True, file_okay=False))
@rendering("How the folder is rendered.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME",
    help="Secret in the namespace with credentials, for the URLs that it names. Repeat it for several.",
)
@colour
@common
def lock(connection: Connection, *, folder: str, render: str | None, secrets: tuple[str, ...], color: str) -> int:
    """Write reconcile.lock.yaml in FOLDER, a chart or an overlay, with digests of what it has fetched. Writes nothing to the cluster.

    Of a chart, these are the dependencies that aren't in charts/, in the versions that Chart.lock says; of an overlay, its
    helmCharts, bases and components in other repositories, by commits, and files of web servers. What the lock file has already stays as it is;
    anything else is fetched. Commit the file: whoever follows the folder fetches what it says and nothing else. No cluster is
    needed without --secret.
    """
    from kubectl_reconcile.cache_folder import cache_dir
    from kubectl_reconcile.core.apply import causes
    from kubectl_reconcile.core.resources.source import Render
    from kubectl_reconcile.engine.commands import lock as command
    from kubectl_reconcile.engine.sync.fetching import SyncFetching
    from kubectl_reconcile.source.policy import SourcePolicy

    out, err = terminals(color)
    held = _secrets(connection, secrets) if secrets else ()
    fetching = SyncFetching(connection.cache_dir or cache_dir(), SourcePolicy.of_person(), held, person=True)
    done = command.lock(Path(folder), fetching, Render(render or "Auto"))
    if done.problems:
        err.write(line(text, Tone.BAD) for text in causes.of_problems(done.problems))
        return ExitStatus.SOURCE
    out.write(_told(done))
    return ExitStatus.OK


def _secrets(connection: Connection, names: tuple[str, ...]) -> tuple[Manifest, ...]:
    """Return the Secrets of these names, as whoever asks may read them."""
    from kubectl_reconcile.cli.session import run
    from kubectl_reconcile.engine.sync.credentials import secret_of

    async def read(session: Session) -> tuple[Manifest, ...]:
        return tuple([await secret_of(session, session.client.namespace, name) for name in names])

    return run(connection, read)


def _told(done: Locking) -> Iterator[Line]:
    from kubectl_reconcile.core.rendering.pinned.pins import known_by

    yield from (line(f"pinned {pin} to {known_by(pin)}", Tone.GOOD) for pin in done.new)
    yield from (line(f"kept {pin} at {known_by(pin)}", Tone.ASIDE) for pin in done.kept)
    yield from (line(f"removed {pin}, which nothing needs", Tone.WARNING) for pin in done.gone)
    if done.new or done.gone:
        yield line(f"wrote {done.place}")
    elif not done.kept:
        yield line("nothing has to be pinned: nothing is fetched to render it")
