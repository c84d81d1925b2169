"""How a program of a backup's Job ends: with one line of JSON, which is its termination message too: what it did, or ``error`` and ``message``."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kubectl_reconcile_operators.backups.agent.kinds import PlaceError, Written
from kubectl_reconcile_operators.backups.agent.place import BackupPlace
from kubectl_reconcile_operators.backups.retention import BackupNames, RetentionRule

_MESSAGE_MAX = 3000


@dataclass(frozen=True, slots=True)
class FailureError(Exception):
    """Why it wasn't done: a word for it, and a sentence with what to do."""

    reason: str
    message: str


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what every program takes."""
    parser.add_argument("--termination-log", type=Path, default=Path("/dev/termination-log"))


def run(
    do: Callable[[argparse.Namespace], dict[str, Any]], given: argparse.Namespace, faults: Mapping[type[Exception], str]
) -> int:
    """Do it, and tell; return the exit status. *faults* are errors that it may end with, each with its word."""
    signal.signal(signal.SIGTERM, _end)
    try:
        found, status = do(given), 0
    except (PlaceError, FailureError) as error:
        text = error.message if isinstance(error, FailureError) else str(error)
        found, status = {"error": error.reason, "message": text[:_MESSAGE_MAX]}, 1
    except tuple(faults) as error:
        reason = next(word for kind, word in faults.items() if isinstance(error, kind))
        found, status = {"error": reason, "message": str(error)[:_MESSAGE_MAX]}, 1
    line = json.dumps(found)
    sys.stdout.write(f"{line}\n")
    with contextlib.suppress(OSError):  # outside of a pod there is none
        if given.termination_log.exists():
            given.termination_log.write_text(line)
    return status


def _end(*_: object) -> None:
    """End so that what was begun is taken back; the first process of a container isn't ended by a signal otherwise."""
    sys.exit(128 + signal.SIGTERM)


def add_retention_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which backups stay, and when something that broke off goes."""
    parser.add_argument("--keep", type=int, default=0, help="how many backups stay; 0 is all")
    parser.add_argument("--max-age-days", type=float, default=0, help="how old they get; 0 is without limit")
    parser.add_argument(
        "--ours",
        action="append",
        default=[],
        help="a backup that doesn't say what it is of, and is of the same as this one",
    )
    parser.add_argument(
        "--stale-after", type=float, default=3600.0, help="seconds after which nobody still writes a file"
    )


def retained(
    given: argparse.Namespace, place: BackupPlace, names: BackupNames, written: Written, now: datetime
) -> tuple[list[str], str]:
    """Delete what is more than the arguments keep, of what *written* is of; return what went, and what is to be known besides: no reason to doubt the new backup."""
    rule = RetentionRule(given.keep, given.max_age_days, written.of, frozenset(given.ours))
    try:
        there = place.names()
        gone = names.surplus(there, rule, now)
        place.delete(gone)
    except (PlaceError, OSError) as error:
        return [], f"old backups couldn't be deleted: {error}"
    others = names.strangers([each for each in there if each not in gone], rule)
    if not others:
        return gone, ""
    text = f"{len(others)} earlier backups here are of something else that had this name, or nobody knows of what, and stay: the last one is {others[-1]}"
    return gone, text
