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

    etcd, the API server, the controllers, the scheduler and simulated nodes run as ordinary processes that only this
    machine can reach. Pods become Ready, but no container runs. In namespaces with the label
    sandbox.reconcile.dev/pods=processes, pods run as processes (Linux). You can have several sandboxes, by name.
    """


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of sandboxes that begin so; to find them imports what knows about processes."""
    names: list[str] = importlib.import_module("kubectl_reconcile.cli.operate.sandbox").names()
    return [name for name in names if name.startswith(incomplete)]


_NAME = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which sandbox.", shell_complete=_names)


@sandbox.command("build")
@click.option(
    "--image",
    help="Build the program that replaces an image instead, such as etcd or etcd:3.6.16; `all` for all images.",
)
@loaded
def build_command() -> None:
    """Build the control plane's programs into your cache folder.

    The first build of a version takes some minutes and 300 MB of downloads; after that there is nothing to do. `up`
    builds them, too, if needed. This needs Go, unless KUBEBUILDER_ASSETS names a folder with prebuilt programs. The
    output is the folder of the programs.
    """


@sandbox.command()
@_NAME
@click.option("--crds/--no-crds", default=True, show_default=True, help="Install the CRDs of kubectl-reconcile, too.")
@loaded
def up() -> None:
    """Start a sandbox, or the parts of it that aren't running, with the CRDs that kubectl-reconcile needs.

    If everything is running, this does nothing. After a reboot or a crash, the sandbox comes back with its data.
    """


@sandbox.command()
@_NAME
@loaded
def down() -> None:
    """Stop a sandbox and delete its data."""


@sandbox.command("status")
@_NAME
@loaded
def status_command() -> None:
    """Show the state of a sandbox and of each of its components. Writes nothing.

    Exit status: 0 if it is running and healthy, 3 if not.
    """


@sandbox.command(epilog='Example: eval "$(kubectl reconcile sandbox env)"')
@_NAME
@loaded
def env() -> None:
    """Print the shell commands that point kubectl at a sandbox. Writes nothing.

    The sandbox's own kubectl, which has the version of its API server, comes first on PATH.
    """


@sandbox.command("list")
@loaded
def list_command() -> None:
    """List your sandboxes and their state. Writes nothing."""


_NAMESPACE = click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the pod.")
_CONTAINER = click.option("-c", "--container", default="", help="Only this container.  [default: all of the pod]")


@sandbox.command(epilog="Example: kubectl reconcile sandbox partition db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@click.option(
    "--from", "peers", metavar="POD", multiple=True, help="Only from this pod. May be repeated.  [default: all]"
)
@loaded
def partition() -> None:
    """Cut a process pod off from the network, until `heal`.

    Everything that it sends and receives is lost, by way of Services too. Commands in it (`kubectl exec`, probes that run one) still work; a daemon and other probes don't reach it.
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
    """Pause the processes of a process pod, as if it hung, until `heal`."""


@sandbox.command(epilog="Example: kubectl reconcile sandbox kill db-0 -n shop")
@click.argument("pod")
@_NAMESPACE
@_NAME
@_CONTAINER
@click.option("--signal", "signal_name", default="KILL", show_default=True, help="Which signal.")
@loaded
def kill() -> None:
    """Send a signal to a process pod. The default, KILL, is a crash."""
