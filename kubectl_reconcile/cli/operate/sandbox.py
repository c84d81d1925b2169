"""The ``sandbox`` commands: a real control plane on this machine, to try things out on.

What they print for people goes to standard error; standard output is what a script would want: the status, the names,
the lines for a shell to evaluate.
"""

from __future__ import annotations

import contextlib
import importlib
import shlex
from collections.abc import Iterator

import click

from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.sandbox.build import build
from kubectl_reconcile.sandbox.controlplane import (
    ComponentStatus,
    Sandbox,
    SandboxState,
    SandboxStatus,
    list_sandboxes,
)
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.names import DEFAULT_NAME
from kubectl_reconcile.views.text import clean

_MIB = 1024 * 1024


def names() -> list[str]:
    """Return the names of the sandboxes that there are."""
    return [one.name for one in list_sandboxes()]


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Show what the program that failed has said, and pass on the rest as every other failure."""
    try:
        yield
    except SandboxError as error:
        for line in error.output.splitlines():
            _write(f"  {clean(line)}")
        raise Failure(error.message, error.hint) from error


def build_command(image: str | None) -> None:
    """Build the control plane's programs into your cache folder, or what stands in for an image."""
    with _explained():
        if image is not None:
            for name in catalog.build(_write, only="" if image == "all" else image):
                click.echo(name)
            return
        click.echo(build(_write).folder)


def up(name: str, *, crds: bool) -> None:
    """Start a sandbox, or what is missing of it, with the CRDs that kubectl-reconcile needs."""
    with _explained():
        one = Sandbox(name)
        status = one.up(log=_write)
        if crds:
            # what talks to clusters is slow to import, and only needed here
            importlib.import_module("kubectl_reconcile.cli.operate.sandbox_crds").install(one.kubeconfig)
        _show(one, status)
        _write(f'to use it: eval "$({_command("env", name)})"')


def down(name: str) -> None:
    """End a sandbox and delete all that it has stored."""
    with _explained():
        _write(f"removed sandbox {name}" if Sandbox(name).down() else f"there is no sandbox {name}: nothing to do")


def status_command(name: str) -> int:
    """Show how a sandbox and each of its components is."""
    with _explained():
        one = Sandbox(name)
        status = one.status()
        _show(one, status)
    if status.state is not SandboxState.RUNNING:
        _write(_advice(status))
        return ExitStatus.CLUSTER
    return ExitStatus.OK


def env(name: str) -> None:
    """Print the shell commands that point kubectl at a sandbox."""
    with _explained():
        one = Sandbox(name)
        if one.status().state is SandboxState.ABSENT:
            raise SandboxError(f"there is no sandbox {name}", f"start it: {_command('up', name)}")
        click.echo(f"export KUBECONFIG={shlex.quote(str(one.kubeconfig))}")
        click.echo(f'export PATH={shlex.quote(str(one.programs))}:"$PATH"')


def list_command() -> None:
    """List your sandboxes and how they are."""
    states = [(one.name, _state(one)) for one in list_sandboxes()]
    if not states:
        _write(f"there are no sandboxes; to start one: {_command('up', DEFAULT_NAME)}")
        return
    for line in _table([("NAME", "STATE"), *states]):
        click.echo(line)


def partition(pod: str, namespace: str, name: str, peers: tuple[str, ...]) -> None:
    """Cut a process pod off from other pods."""
    with _explained():
        Sandbox(name).pods.partition(namespace, pod, peers)
        whom = ", ".join(peers) or "all other pods"
        _write(f"pod {namespace}/{pod} no longer reaches {whom}")


def heal(pod: str, namespace: str, name: str) -> None:
    """Undo a partition and a pause of a process pod."""
    with _explained():
        Sandbox(name).pods.heal(namespace, pod)
        _write(f"pod {namespace}/{pod} runs, and its network is back")


def pause(pod: str, namespace: str, name: str, container: str) -> None:
    """Stop the processes of a process pod."""
    with _explained():
        Sandbox(name).pods.pause(namespace, pod, container)
        _write(f"pod {namespace}/{pod} is paused")


def kill(pod: str, namespace: str, name: str, container: str, signal_name: str) -> None:
    """Send a signal to a process pod."""
    with _explained():
        Sandbox(name).pods.signal(namespace, pod, signal_name, container)
        _write(f"pod {namespace}/{pod} was sent {signal_name}")


def _state(one: Sandbox) -> str:
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
    up, down = _command("up", status.name), _command("down", status.name)
    if status.state is SandboxState.ABSENT:
        return f"to start it: {up}"
    said = "its processes ended unexpectedly (a reboot?); " if status.state is SandboxState.STALE else ""
    return f"{said}to start it again, with its data: {up}; to remove it: {down}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
