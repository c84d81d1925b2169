"""The ``sandbox`` commands: a real control plane on this machine, to try things out on.

What they print for people goes to standard error; standard output is what a script would want: the status, the names,
the lines for a shell to evaluate.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.sandbox.names import DEFAULT_NAME
from kubectl_reconcile.views.text import clean

if TYPE_CHECKING:
    from kubectl_reconcile.sandbox.controlplane import ComponentStatus, Sandbox, SandboxStatus


@click.group(
    epilog="""\b
Example:
  kubectl reconcile sandbox up
  eval "$(kubectl reconcile sandbox env)"
  kubectl get nodes
"""
)
def sandbox() -> None:
    """Run a real control plane on this machine, without containers.

    etcd, the API server, the controllers, the scheduler and simulated nodes run as ordinary processes that only this
    machine can reach. Pods become Ready, but no container runs. In namespaces with the label
    sandbox.reconcile.dev/pods=processes, pods run as processes (Linux). You can have several sandboxes, by name.
    """


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of sandboxes that begin so; to find them imports what knows about processes."""
    from kubectl_reconcile.sandbox.controlplane import list_sandboxes

    return [one.name for one in list_sandboxes() if one.name.startswith(incomplete)]


_NAME = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which sandbox.", shell_complete=_names)
_NAMESPACE = click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the pod.")
_CONTAINER = click.option("-c", "--container", default="", help="Only this container.  [default: all of the pod]")
_MIB = 1024 * 1024


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Show what the program that failed has said, and pass on the rest as every other failure."""
    from kubectl_reconcile.sandbox.errors import SandboxError

    try:
        yield
    except SandboxError as error:
        for line in error.output.splitlines():
            _write(f"  {clean(line)}")
        raise Failure(error.message, error.hint) from error


@sandbox.command("build")
@click.option(
    "--image",
    help="Build the program that replaces an image instead, such as etcd or etcd:3.6.16; `all` for all images.",
)
def build_command(image: str | None) -> None:
    """Build the control plane's programs into your cache folder.

    The first build of a version takes some minutes and 300 MB of downloads; after that there is nothing to do. `up`
    builds them, too, if needed. This needs Go, unless KUBEBUILDER_ASSETS names a folder with prebuilt programs. The
    output is the folder of the programs.
    """
    from kubectl_reconcile.sandbox.build import build
    from kubectl_reconcile.sandbox.images import catalog

    with _explained():
        if image is not None:
            for name in catalog.build(_write, only="" if image == "all" else image):
                click.echo(name)
            return
        click.echo(build(_write).folder)


@sandbox.command()
@_NAME
@click.option("--crds/--no-crds", default=True, show_default=True, help="Install the CRDs of kubectl-reconcile, too.")
def up(name: str, *, crds: bool) -> None:
    """Start a sandbox, or the parts of it that aren't running, with the CRDs that kubectl-reconcile needs.

    If everything is running, this does nothing. After a reboot or a crash, the sandbox comes back with its data.
    """
    import asyncio

    from kubectl_reconcile.sandbox.controlplane import Sandbox

    with _explained():
        one = Sandbox(name)
        status = one.up(log=_write)
        if crds:
            asyncio.run(_install_crds(one.kubeconfig))
        _show(one, status)
        _write(f'to use it: eval "$({_command("env", name)})"')


async def _install_crds(kubeconfig: Path) -> None:
    """Install the CRDs of kubectl-reconcile, or bring them up to date."""
    from kubectl_reconcile.cluster.access import Access
    from kubectl_reconcile.engine.commands.install import ensure_crds
    from kubectl_reconcile.engine.sync.session import Session

    async with Session.open(Access(kubeconfig=str(kubeconfig))) as session:
        await ensure_crds(session)


@sandbox.command()
@_NAME
def down(name: str) -> None:
    """Stop a sandbox and delete its data."""
    from kubectl_reconcile.sandbox.controlplane import Sandbox

    with _explained():
        _write(f"removed sandbox {name}" if Sandbox(name).down() else f"there is no sandbox {name}: nothing to do")


@sandbox.command("status")
@_NAME
def status_command(name: str) -> int:
    """Show the state of a sandbox and of each of its components. Writes nothing.

    Exit status: 0 if it is running and healthy, 3 if not.
    """
    from kubectl_reconcile.sandbox.controlplane import Sandbox, SandboxState

    with _explained():
        one = Sandbox(name)
        status = one.status()
        _show(one, status)
    if status.state is not SandboxState.RUNNING:
        _write(_advice(status))
        return ExitStatus.CLUSTER
    return ExitStatus.OK


@sandbox.command(epilog='Example: eval "$(kubectl reconcile sandbox env)"')
@_NAME
def env(name: str) -> None:
    """Print the shell commands that point kubectl at a sandbox. Writes nothing.

    The sandbox's own kubectl, which has the version of its API server, comes first on PATH.
    """
    from kubectl_reconcile.sandbox.controlplane import Sandbox, SandboxState
    from kubectl_reconcile.sandbox.errors import SandboxError

    with _explained():
        one = Sandbox(name)
        if one.status().state is SandboxState.ABSENT:
            raise SandboxError(f"there is no sandbox {name}", f"start it: {_command('up', name)}")
        click.echo(f"export KUBECONFIG={shlex.quote(str(one.kubeconfig))}")
        click.echo(f'export PATH={shlex.quote(str(one.programs))}:"$PATH"')


@sandbox.command("list")
def list_command() -> None:
    """List your sandboxes and their state. Writes nothing."""
    from kubectl_reconcile.sandbox.controlplane import list_sandboxes

    states = [(one.name, _state(one)) for one in list_sandboxes()]
    if not states:
        _write(f"there are no sandboxes; to start one: {_command('up', DEFAULT_NAME)}")
        return
    for line in _table([("NAME", "STATE"), *states]):
        click.echo(line)


@sandbox.command(epilog="Example: kubectl reconcile sandbox partition db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@click.option(
    "--from", "peers", metavar="POD", multiple=True, help="Only from this pod. May be repeated.  [default: all]"
)
def partition(pod: str, namespace: str, name: str, peers: tuple[str, ...]) -> None:
    """Cut a process pod off from the network, until `heal`.

    Everything that it sends and receives is lost, by way of Services too. Commands in it (`kubectl exec`, probes that run one) still work; a daemon and other probes don't reach it.
    """
    from kubectl_reconcile.sandbox.controlplane import Sandbox

    with _explained():
        Sandbox(name).pods.partition(namespace, pod, peers)
        whom = ", ".join(peers) or "all other pods"
        _write(f"pod {namespace}/{pod} no longer reaches {whom}")


@sandbox.command(epilog="Example: kubectl reconcile sandbox heal db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
def heal(pod: str, namespace: str, name: str) -> None:
    """Undo `partition` and `pause` of a process pod."""
    from kubectl_reconcile.sandbox.controlplane import Sandbox

    with _explained():
        Sandbox(name).pods.heal(namespace, pod)
        _write(f"pod {namespace}/{pod} runs, and its network is back")


@sandbox.command(epilog="Example: kubectl reconcile sandbox pause db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@_CONTAINER
def pause(pod: str, namespace: str, name: str, container: str) -> None:
    """Pause the processes of a process pod, as if it hung, until `heal`."""
    from kubectl_reconcile.sandbox.controlplane import Sandbox

    with _explained():
        Sandbox(name).pods.pause(namespace, pod, container)
        _write(f"pod {namespace}/{pod} is paused")


@sandbox.command(epilog="Example: kubectl reconcile sandbox kill db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@_CONTAINER
@click.option("--signal", "signal_name", default="KILL", show_default=True, help="Which signal.")
def kill(pod: str, namespace: str, name: str, container: str, signal_name: str) -> None:
    """Send a signal to a process pod. The default, KILL, is a crash."""
    from kubectl_reconcile.sandbox.controlplane import Sandbox

    with _explained():
        Sandbox(name).pods.signal(namespace, pod, signal_name, container)
        _write(f"pod {namespace}/{pod} was sent {signal_name}")


def _state(one: Sandbox) -> str:
    from kubectl_reconcile.sandbox.errors import SandboxError

    try:
        return one.status().state
    except SandboxError:  # one that can't be read must not hide the others
        return "unreadable"


def _write(line: str) -> None:
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


def _row(one: ComponentStatus) -> tuple[str, ...]:
    memory = f"{one.rss_bytes // _MIB} MiB" if one.pid else "-"
    return one.component, str(one.pid or "-"), str(one.port or "-"), memory, one.problem or "ok"


def _advice(status: SandboxStatus) -> str:
    from kubectl_reconcile.sandbox.controlplane import SandboxState

    up, down = _command("up", status.name), _command("down", status.name)
    if status.state is SandboxState.ABSENT:
        return f"to start it: {up}"
    said = "its processes ended unexpectedly (a reboot?); " if status.state is SandboxState.STALE else ""
    return f"{said}to start it again, with its data: {up}; to remove it: {down}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
