"""Declares ``kubectl reconcile sandbox`` and the verbs below it."""

from __future__ import annotations

import importlib

import click

from kubectl_reconcile.cli.verbs.loading import loaded
from kubectl_reconcile.sandbox.names import DEFAULT_NAME


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

    etcd, the API server, the controllers, the scheduler and simulated nodes, as ordinary processes that only this machine
    can reach. Pods become Ready, but no container runs, except in namespaces with the label
    sandbox.reconcile.dev/pods=processes: there they run as processes (Linux). Any number of sandboxes live side by side, by name.
    """


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of sandboxes that begin so; to find them imports what tells of processes."""
    names: list[str] = importlib.import_module("kubectl_reconcile.cli.operate.sandbox").names()
    return [name for name in names if name.startswith(incomplete)]


_NAME = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which sandbox.", shell_complete=_names)


@sandbox.command("build")
@click.option("--image", help="Build what stands in for an image instead, as etcd or etcd:3.6.16; `all` for each.")
@loaded
def build_command() -> None:
    """Build the control plane's programs into your cache folder.

    Done once per version: some minutes and 300 MB of downloads the first time, nothing from then on. `up` does it too,
    if need be. Needs Go, unless KUBEBUILDER_ASSETS names a folder with prebuilt programs. Prints where they are.
    """


@sandbox.command()
@_NAME
@click.option("--crds/--no-crds", default=True, show_default=True, help="Install the CRDs of kubectl-reconcile too.")
@loaded
def up() -> None:
    """Start a sandbox, or what is missing of it, with the CRDs that kubectl-reconcile needs.

    Does nothing if it runs. After a reboot or a crash it comes back with what it had stored.
    """


@sandbox.command()
@_NAME
@loaded
def down() -> None:
    """End a sandbox and delete all that it has stored."""


@sandbox.command("status")
@_NAME
@loaded
def status_command() -> None:
    """Show how a sandbox and each of its components is. Writes nothing.

    Exit status: 0 if it runs and all of it is well, 3 if not.
    """


@sandbox.command(epilog='Example: eval "$(kubectl reconcile sandbox env)"')
@_NAME
@loaded
def env() -> None:
    """Print the shell commands that point kubectl at a sandbox. Writes nothing.

    Also puts the sandbox's own kubectl, which has the version of its API server, first on PATH.
    """


@sandbox.command("list")
@loaded
def list_command() -> None:
    """List your sandboxes and how they are. Writes nothing."""


_NAMESPACE = click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the pod.")
_CONTAINER = click.option("-c", "--container", default="", help="This container alone.  [default: all of the pod]")


@sandbox.command(epilog="Example: kubectl reconcile sandbox partition db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@click.option(
    "--from", "peers", metavar="POD", multiple=True, help="From this pod alone; can be repeated.  [default: all]"
)
@loaded
def partition() -> None:
    """Cut a process pod off from other pods, until `heal`.

    What it sends to them is lost. Probes, name service and addresses of Services still work.
    """


@sandbox.command(epilog="Example: kubectl reconcile sandbox heal db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@loaded
def heal() -> None:
    """Undo `partition` and `pause` of a process pod."""


@sandbox.command(epilog="Example: kubectl reconcile sandbox pause db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@_CONTAINER
@loaded
def pause() -> None:
    """Stop the processes of a process pod, as if it hung, until `heal`."""


@sandbox.command(epilog="Example: kubectl reconcile sandbox kill db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@_CONTAINER
@click.option("--signal", "signal_name", default="KILL", show_default=True, help="Which signal.")
@loaded
def kill() -> None:
    """Send a signal to a process pod: a crash, unless you ask for another."""
