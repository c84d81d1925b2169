"""Who this process is, among all that may run beside it.

A process of the same machine that is gone can be told from one that merely doesn't answer: nobody has to wait for the
Lease of the former to expire. What can't be seen from here (another machine, another container) proves nothing.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_PROC = Path("/proc")
_GONE = frozenset("ZX")


def identity() -> str:
    """Return who this process is, as a DNS label: host and process id."""
    host = "".join(letter if letter.isalnum() else "-" for letter in socket.gethostname().lower())
    return f"{host[:40].strip('-') or 'daemon'}-{os.getpid()}"


def proof() -> str:
    """Return what tells this process from all others of this machine; empty where the system doesn't say."""
    place, start = _place(), _start(os.getpid())
    return f"{place} {os.getpid()} {start}" if place and start else ""


def is_gone(proof: str) -> bool:
    """Tell whether the process of *proof* ran on this machine, within sight, and certainly doesn't any more."""
    place, _, process = proof.rpartition(" ")[0].rpartition(" ")
    start = proof.rpartition(" ")[2]
    return bool(place) and place == _place() and process.isdecimal() and _start(int(process)) != start


def _place() -> str:
    """Return which boot of which machine this is, and which of its process tables we see."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start(process: int) -> str:
    """Return when a process began, in ticks since boot, whatever the clock says; empty if it isn't running."""
    try:
        state, *rest = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in _GONE else rest[18]
