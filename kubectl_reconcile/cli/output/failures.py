"""What went wrong -> one clear message and an exit status.

Every error that a user can cause or meet has a row in the table below; anything else is a fault of this
program, told in one line, with the traceback for those who ask (``--debug``).

The table names classes by text, so that starting up imports none of them.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from enum import IntEnum

import click

from kubectl_reconcile.cli.output.terminal import Terminal
from kubectl_reconcile.views.text import Line, Span, Tone


class ExitStatus(IntEnum):
    """Exit statuses, the same for every command."""

    OK = 0
    """Done; for ``diff``: nothing to change."""
    DIFFERENT = 1
    """``diff`` only: changes are pending."""
    USAGE = 2
    """The command line, the kubeconfig or a name in it is wrong."""
    CLUSTER = 3
    """The cluster doesn't answer, or denies access."""
    SOURCE = 4
    """The source, or a file of it, can't be read or used."""
    HELD = 5
    """A person is waited for: deletions are held, the Sync is suspended, or a question was answered with No."""
    FAILED = 6
    """The cluster refused something, time ran out, or this program has a bug."""
    FINDINGS = 7
    """``diff --fail-on new-findings`` only: the sync would add security findings."""
    INTERRUPTED = 130
    """Ctrl-C."""
    BROKEN_PIPE = 141
    """Nobody reads the output any more, as in ``… | head``."""


EXIT_STATUSES = """\b
Exit status: 0 done, 2 usage or kubeconfig, 3 cluster unreachable or no
  access to it, 4 source or one of its files unusable, 5 held, 6 failed.
"""
"""The same for help texts, laid out for click."""

STATUS_OF_REASON: Mapping[str, ExitStatus] = {
    "Synced": ExitStatus.OK,
    "Suspended": ExitStatus.HELD,
    "Held": ExitStatus.HELD,
    "SourceUnavailable": ExitStatus.SOURCE,
    "Unverified": ExitStatus.SOURCE,
    "ProblemsInSource": ExitStatus.SOURCE,
    "ClusterUnavailable": ExitStatus.CLUSTER,
    "InvalidSpec": ExitStatus.USAGE,
}
"""Exit statuses for what the conditions of a Sync give as the reason; any other is a failure."""


class Failure(Exception):  # noqa: N818 - it is what the user reads, not a fault of the program
    """What the command line itself has to refuse; *hint* says what to do about it."""

    def __init__(self, message: str, hint: str = "", *, status: ExitStatus = ExitStatus.FAILED) -> None:
        self.message, self.hint, self.status = message, hint, status
        super().__init__(message)


class Interrupted(Exception):  # noqa: N818 - says what happened
    """A person pressed Ctrl-C. The message says what that leaves behind; empty where there is nothing to say."""


_BY_CLASS: Mapping[str, ExitStatus] = {
    "kubectl_reconcile.cluster.errors.KubeconfigError": ExitStatus.USAGE,
    "kubectl_reconcile.cluster.errors.Unreachable": ExitStatus.CLUSTER,
    "kubectl_reconcile.cluster.errors.Unauthorized": ExitStatus.CLUSTER,
    "kubectl_reconcile.cluster.errors.Forbidden": ExitStatus.CLUSTER,
    "kubectl_reconcile.cluster.errors.ApiError": ExitStatus.FAILED,
    "kubectl_reconcile.source.errors.SourceError": ExitStatus.SOURCE,
    "kubectl_reconcile.core.resources.fields.SyncSpecError": ExitStatus.USAGE,
    "kubectl_reconcile.core.planning.planfile.PlanFileError": ExitStatus.USAGE,
    "kubectl_reconcile.core.planning.planfile.PlanMoved": ExitStatus.FAILED,
    "kubectl_reconcile.engine.commands.selection.SelectionError": ExitStatus.USAGE,
    "kubectl_reconcile.engine.sync.targets.NoSuchSync": ExitStatus.USAGE,
    "kubectl_reconcile.engine.sync.targets.NotInstalled": ExitStatus.USAGE,
    "kubectl_reconcile.engine.commands.find_object.NoSuchKind": ExitStatus.USAGE,
    "kubectl_reconcile.engine.commands.install.InstallError": ExitStatus.FAILED,
    "kubectl_reconcile.engine.daemon.http.ListenError": ExitStatus.USAGE,
}


def exit_status(action: Callable[[], object], *, debug: bool) -> int:
    """Return the exit status of *action*, having told the user what went wrong, if anything did."""
    try:
        status = action()
        sys.stdout.flush()
    except BrokenPipeError:
        _close_quietly()
        return ExitStatus.BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort, Interrupted) as interruption:
        _write("; ".join(text for text in ("interrupted", str(interruption)) if text))
        return ExitStatus.INTERRUPTED
    except click.UsageError as error:
        _write(_usage(error), _see(error))
        return ExitStatus.USAGE
    except click.ClickException as error:
        _write(error.format_message())
        return ExitStatus.USAGE
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence
        if debug:
            traceback.print_exc()
        return _explained(error, debug=debug)
    return status if isinstance(status, int) else ExitStatus.OK


def status_of(error: BaseException) -> ExitStatus | None:
    """Return the exit status of an error that users can meet; None is a fault of this program."""
    if isinstance(error, Failure):
        return error.status
    names = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__)
    return next((_BY_CLASS[name] for name in names if name in _BY_CLASS), None)


def report(error: Exception, about: str = "") -> ExitStatus:
    """Tell an error that users can meet, with what it is *about* before it, and return its exit status.

    Raises:
        Exception: the error, where it is a fault of this program.
    """
    status = status_of(error)
    if status is None:
        raise error
    hint = getattr(error, "hint", "")
    _write(about + str(error).removesuffix(f" (hint: {hint})"), hint)
    return status


def _explained(error: Exception, *, debug: bool) -> int:
    if isinstance(error, BaseExceptionGroup):
        known = [one for one in error.exceptions if status_of(one) is not None]
        if known and isinstance(known[0], Exception):
            return _explained(known[0], debug=debug)
    status = status_of(error)
    if status is None:
        advice = "" if debug else "this is a fault of kubectl-reconcile; run with --debug for the traceback"
        _write(f"{type(error).__name__}: {error}", advice)
        return ExitStatus.FAILED
    hint = getattr(error, "hint", "")
    _write(str(error).removesuffix(f" (hint: {hint})"), hint)
    return status


def _usage(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


def _see(error: click.UsageError) -> str:
    return f"see '{error.ctx.command_path} --help'" if error.ctx else ""


def _write(message: str, hint: str = "") -> None:
    """Write an error, and below it what to do, to standard error."""
    lines: list[Line] = [(Span("error: ", Tone.BAD), Span(message))]
    if hint:
        lines.append((Span("hint: ", Tone.ASIDE), Span(hint)))
    try:
        Terminal.of(sys.stderr).write(lines)
    except BrokenPipeError:
        _close_quietly()


def _close_quietly() -> None:
    """Point standard output to nowhere, so that the interpreter's last flush can't complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
