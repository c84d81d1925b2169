"""The ``sandbox`` commands: a real control plane on this machine, to try things out on.

What they print for people goes to standard error; standard output is what a script would want: the status, the names,
the lines for a shell to evaluate.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator

import click

from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import clean
from kubectl_reconcile.sandbox.build import build
from kubectl_reconcile.sandbox.controlplane import (
    DEFAULT_NAME,
    ComponentStatus,
    Sandbox,
    SandboxState,
    SandboxStatus,
    list_sandboxes,
)
from kubectl_reconcile.sandbox.errors import SandboxError

_MIB = 1024 * 1024


@click.group()
def sandbox() -> None:
    r"""Run a real control plane on this machine, without containers.

    etcd, the API server, the controllers, the scheduler and simulated nodes, as ordinary processes that only this machine
    can reach. Pods become Ready, but no container runs. Any number of sandboxes live side by side, by name.

    \b
    Example:
      kubectl reconcile sandbox up
      eval "$(kubectl reconcile sandbox env)"
      kubectl get nodes
    """


def _complete_name(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [one.name for one in list_sandboxes() if one.name.startswith(incomplete)]


def _named(command: Callable[..., None]) -> Callable[..., None]:
    option = click.option(
        "--name", default=DEFAULT_NAME, show_default=True, help="Which sandbox.", shell_complete=_complete_name
    )
    return option(command)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Show what the program that failed has said, and pass on the rest as every other failure."""
    try:
        yield
    except SandboxError as error:
        for line in error.output.splitlines():
            _tell(f"  {clean(line)}")
        raise Failure(error.message, error.hint) from error


@sandbox.command("build")
def build_command() -> None:
    """Build the control plane's programs into your cache folder.

    Done once per version: some minutes and 300 MB of downloads the first time, nothing from then on. `up` does it too,
    if need be. Needs Go, unless KUBEBUILDER_ASSETS names a folder with prebuilt programs. Prints where they are.
    """
    with _explained():
        click.echo(build(_tell).folder)


@sandbox.command()
@_named
@click.option("--crds/--no-crds", default=True, show_default=True, help="Install the CRDs of kubectl-reconcile too.")
def up(name: str, *, crds: bool) -> None:
    """Start a sandbox, or what is missing of it, with the CRDs that kubectl-reconcile needs.

    Does nothing if it runs. After a reboot or a crash it comes back with what it had stored.
    """
    with _explained():
        one = Sandbox(name)
        status = one.up(log=_tell)
        if crds:
            _install_crds(one)
        _show(one, status)
        _tell(f'to use it: eval "$({_command("env", name)})"')


@sandbox.command()
@_named
def down(name: str) -> None:
    """End a sandbox and delete all that it has stored."""
    with _explained():
        _tell(f"sandbox {name} is gone" if Sandbox(name).down() else f"there is no sandbox {name}: nothing to do")


@sandbox.command("status")
@_named
@click.pass_context
def status_command(context: click.Context, name: str) -> None:
    """Show how a sandbox and each of its components is. Writes nothing.

    Exit status: 0 if it runs and all of it is well, 3 if not.
    """
    with _explained():
        one = Sandbox(name)
        status = one.status()
        _show(one, status)
    if status.state is not SandboxState.RUNNING:
        _tell(_advice(status))
        context.exit(ExitStatus.CLUSTER)


@sandbox.command()
@_named
def env(name: str) -> None:
    r"""Print the shell commands that point kubectl at a sandbox. Writes nothing.

    Also puts the sandbox's own kubectl, which has the version of its API server, first on PATH.

    \b
    Example:
      eval "$(kubectl reconcile sandbox env)"
    """
    with _explained():
        one = Sandbox(name)
        if one.status().state is SandboxState.ABSENT:
            raise SandboxError(f"there is no sandbox {name}", f"start it: {_command('up', name)}")
        click.echo(f"export KUBECONFIG={shlex.quote(str(one.kubeconfig))}")
        click.echo(f'export PATH={shlex.quote(str(one.programs))}:"$PATH"')


@sandbox.command("list")
def list_command() -> None:
    """List your sandboxes and how they are. Writes nothing."""
    states = [(one.name, _state(one)) for one in list_sandboxes()]
    if not states:
        _tell(f"there are no sandboxes; to start one: {_command('up', DEFAULT_NAME)}")
        return
    for line in _table([("NAME", "STATE"), *states]):
        click.echo(line)


def _state(one: Sandbox) -> str:
    try:
        return one.status().state
    except SandboxError:  # one that can't be read must not hide the others
        return "unreadable"


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _command(verb: str, name: str) -> str:
    return f"kubectl reconcile sandbox {verb}" + ("" if name == DEFAULT_NAME else f" --name {name}")


def _show(one: Sandbox, status: SandboxStatus) -> None:
    where = f"  {one.server}  {one.folder}" if status.components else ""
    click.echo(f"sandbox {status.name}: {status.state}{where}")
    if status.components:
        rows = [("COMPONENT", "PID", "PORT", "MEMORY", "HEALTH"), *map(_row, status.components)]
        for line in _table(rows):
            click.echo(line)


def _install_crds(one: Sandbox) -> None:
    import asyncio  # noqa: PLC0415 - only this verb talks to the cluster

    from kubectl_reconcile.cluster.access import Access  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.commands.install import ensure_crds  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.sync.session import Session  # noqa: PLC0415 - the same

    async def install() -> None:
        async with Session.open(Access(kubeconfig=str(one.kubeconfig))) as session:
            await ensure_crds(session)

    asyncio.run(install())


def _row(one: ComponentStatus) -> tuple[str, ...]:
    memory = f"{one.rss_bytes // _MIB} MiB" if one.pid else "-"
    return one.component, str(one.pid or "-"), str(one.port or "-"), memory, one.problem or "ok"


def _advice(status: SandboxStatus) -> str:
    up, down = _command("up", status.name), _command("down", status.name)
    if status.state is SandboxState.ABSENT:
        return f"to start it: {up}"
    said = "its processes ended without being stopped (a reboot?); " if status.state is SandboxState.STALE else ""
    return f"{said}to have it again, with what it stores: {up}; to be rid of it: {down}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
