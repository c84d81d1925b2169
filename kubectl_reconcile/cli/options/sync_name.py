"""Names of Syncs on the command line: ``shop``, or ``sync/shop`` as kubectl writes names of objects."""

from __future__ import annotations

from typing import Any, Final

import click

_KINDS: Final = frozenset({"sync", "syncs", "sync.reconcile.dev", "syncs.reconcile.dev"})


def sync_named(text: str) -> str:
    """Return the name of the Sync that *text* names; what names none, or something else, as it is."""
    kind, _, name = text.partition("/")
    return name if kind.lower() in _KINDS and name else text


class _SyncName(click.ParamType[str]):
    """A Sync, or what a verb takes besides."""

    name = "sync"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002 - click's
        """Return the name without what says that it is one of a Sync."""
        return sync_named(value) if isinstance(value, str) else value


SYNC_NAME: Final = _SyncName()
"""The type of arguments that name a Sync."""
