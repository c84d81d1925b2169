"""Flags: kubectl's common ones, and the parts that other flags are made of.

kubectl's common flags may stand before or after the verb; what stands after it wins. Only those
that people reach for daily are in each command's help, the rest in ``kubectl reconcile options``,
as kubectl does it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


class DurationType(click.ParamType[float]):
    """A duration as kubectl takes it: ``30s``, ``1m30s``, or bare seconds; 0 means no limit."""

    name = "duration"
    _FORM = re.compile(r"(?=[\d.])(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        if isinstance(value, int | float):
            return float(value)
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value)
        found = self._FORM.fullmatch(value)
        if not found or not any(found.groups()):
            self.fail(f"{value!r} isn't a duration; write it as 30s, 5m or 1h30m", param, ctx)
        hours, minutes, seconds, millis = (float(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + seconds + millis / 1000


DURATION = DurationType()


def cluster_options() -> tuple[Decorator, ...]:
    """Return kubectl's common flags; those marked hidden show in ``kubectl reconcile options`` only."""
    return (
        click.option(
            "-n", "--namespace", metavar="NAME", help="Namespace of the Sync, and of objects that don't name one."
        ),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig to use."),
        click.option(
            "--kubeconfig", metavar="FILE", help="Kubeconfig to use instead of $KUBECONFIG or ~/.kube/config."
        ),
        click.option("--cluster", metavar="NAME", hidden=True, help="Cluster of the kubeconfig to use."),
        click.option("--user", metavar="NAME", hidden=True, help="User of the kubeconfig to use."),
        click.option("--as", "as_user", metavar="USER", hidden=True, help="User to impersonate."),
        click.option(
            "--as-group",
            "as_groups",
            metavar="GROUP",
            multiple=True,
            hidden=True,
            help="Group to impersonate. May be repeated.",
        ),
        click.option("--as-uid", metavar="UID", hidden=True, help="UID to impersonate."),
        click.option("-s", "--server", metavar="URL", hidden=True, help="Address of the API server."),
        click.option("--token", metavar="TOKEN", hidden=True, help="Bearer token for the API server."),
        click.option(
            "--request-timeout",
            type=DURATION,
            metavar="DURATION",
            hidden=True,
            help="How long one request may take, such as 5s or 2m; 0 means no limit.",
        ),
        click.option(
            "--certificate-authority",
            metavar="FILE",
            hidden=True,
            help="Certificate of the authority that signed the server's.",
        ),
        click.option("--client-certificate", metavar="FILE", hidden=True, help="Client certificate for TLS."),
        click.option("--client-key", metavar="FILE", hidden=True, help="Key of the client certificate."),
        click.option(
            "--insecure-skip-tls-verify",
            is_flag=True,
            hidden=True,
            help="Don't check the server's certificate. Not safe.",
        ),
        click.option(
            "--tls-server-name", metavar="NAME", hidden=True, help="Name that the server's certificate must have."
        ),
        click.option(
            "--cache-dir",
            metavar="FOLDER",
            hidden=True,
            help="Where clones and schemas are kept between runs.  [default: $XDG_CACHE_HOME/kubectl-reconcile]",
        ),
        click.option(
            "-v",
            "--v",
            "verbosity",
            type=click.IntRange(0, 10),
            metavar="LEVEL",
            hidden=True,
            help="Verbosity on standard error: 2 shows the steps, 6 shows each request.  [default: 0]",
        ),
        click.option("--debug", is_flag=True, hidden=True, help="Show a traceback with an error, for a bug report."),
    )


@functools.cache
def common_flags() -> tuple[click.Option, ...]:
    """Return kubectl's common flags as click's parameters."""
    command = given(cluster_options(), lambda: None)
    return tuple(reversed(command.__click_params__))  # type: ignore[attr-defined]  # where click's decorators keep them


def given(options: tuple[Decorator, ...], command: Callable[..., Any]) -> Callable[..., Any]:
    """Give *command* several flags, which help lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def accept_common_flags(command: Command) -> Command:
    """Let a group take kubectl's common flags before the verb, for the verb to find."""
    return given(cluster_options(), command)  # type: ignore[return-value]


def colour(command: Command) -> Command:
    """Give a command ``--color``; it is called with *color*."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="When to colour output; auto is on a terminal, unless NO_COLOR is set.",
    )(command)
