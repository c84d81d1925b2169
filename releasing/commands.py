"""What all that makes a release has in common: programs that are run, and the addresses that it is told."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

_BIN = Path(sys.executable).parent


class CommandError(Exception):
    """A program failed; the message says which, how, and what it said."""


def run(*command: str, folder: Path | None = None, **environ: str) -> str:
    """Return what a program prints. One of the virtual environment that runs this one is found by its name alone.

    Raises:
        CommandError: it failed, or there is no such program.
    """
    own = _BIN / command[0]
    words = [str(own) if own.is_file() else command[0], *command[1:]]
    told = " ".join(command).replace(f"{_BIN}/", "")
    try:
        done = subprocess.run(
            words, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise CommandError(f"{told}: there is no {error.filename}") from None
    if done.returncode:
        raise CommandError(f"{told} ended with status {done.returncode}:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


def take_addresses(parser: argparse.ArgumentParser) -> None:
    """Declare the flags by which the addresses of a release are told."""
    parser.add_argument("--release-url", default="", help="where the files of this release will be downloaded from")
    parser.add_argument(
        "--homepage",
        default="",
        help="page of the project, for the metadata and krew, which has the release URL otherwise",
    )
