"""Which cluster is meant: kubectl's common flags, as a verb takes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from kubectl_reconcile.cli.options.flags import cluster_options, common_flags, given


class Connection(Struct, frozen=True):
    """What the common flags say: the cluster to talk to, and where to keep what is learned of it."""

    flags: Mapping[str, Any]

    @property
    def timeout_s(self) -> float | None:
        """How long one request may take; None leaves it to the client."""
        return self.flags["request_timeout"] or None

    @property
    def cache_dir(self) -> Path | None:
        """The folder for clones and schemas; None is the usual one."""
        given = self.flags["cache_dir"]
        return Path(given).expanduser() if given else None

    @property
    def namespace(self) -> str:
        """The namespace as given; empty is the kubeconfig's."""
        return self.flags["namespace"] or ""

    @property
    def verbosity(self) -> int:
        """How much of the work to log on standard error."""
        return self.flags["verbosity"] or 0


def common(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command kubectl's common flags; it is called with a `Connection` called *connection*."""

    @functools.wraps(command)
    def connected(**values: Any) -> Any:
        after = {name: values.pop(name) for name in (flag.name or "" for flag in common_flags())}
        before = click.get_current_context().find_root().params
        return command(connection=Connection(_merged(before, after)), **values)

    return given(cluster_options(), connected)


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags as given after the verb, or else before it. An empty text is given too."""
    return {name: before.get(name, value) if value in (None, (), False) else value for name, value in after.items()}
