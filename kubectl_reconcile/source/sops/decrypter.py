"""Decrypting, once for as long as file and keys stay the same.

One process decrypts, one file after the other, in turns of tenants; it is started when the first is met, and again when it was killed or others' keys are
asked for: one process never has keys of two. What came of a file is held in memory by the digests of file and keys, within a budget, and so is why
nothing did. Nothing of it is on a disk.
"""

from __future__ import annotations

import atexit
import base64
import hashlib
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from kubectl_reconcile.core.fair.shares import Limits
from kubectl_reconcile.core.manifests.encrypted import SopsFormat
from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.core.resources.decryption import Decryption
from kubectl_reconcile.go_programs import GoBuildError, Log
from kubectl_reconcile.source.fenced.process import FencedProcess, ProgramEndedError, ProgramLateError
from kubectl_reconcile.source.limits import MEBIBYTE
from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.running.kept import KeptByDigest
from kubectl_reconcile.source.running.memory import Memory
from kubectl_reconcile.source.running.places import TENANT, TenantPlaces
from kubectl_reconcile.source.sops.program import HOW_TO_GET, SOPS

SECONDS: Final = 10.0
"""How long one file may take."""

MEMORY_BYTES: Final = 192 * MEBIBYTE
"""What the process may take; it has 40 MiB in use, and of a file of a MiB 100."""

_MOST_KEPT_BYTES: Final = 64 * MEBIBYTE
_BESIDE_BYTES: Final = 300
_LATE: Final = Limits(late=1, late_in_all=2)
_MOMENT_S: Final = 2.0


class Decrypted(Guarded, frozen=True, weakref=True):
    """What came of a file: what it says, or a *fault*, a sentence about it, with the path of the key and the line where that is, and what to do.

    It *passes* where another try may end otherwise.
    """

    hidden: ClassVar = frozenset({"data"})

    data: bytes = b""
    fault: str = ""
    at: str = ""
    line: int = 0
    hint: str = ""
    is_mac_only_encrypted: bool = False
    passes: bool = False


class Decrypter(Struct, eq=False):
    """Decrypts files, from any thread, each for *seconds* at most. *decrypted* counts them.

    Where the program isn't there it is built if *build_log* is set, which hears of it: that takes minutes.
    """

    seconds: float = SECONDS
    decrypted: int = 0
    build_log: Log | None = None
    _places: TenantPlaces = field(default_factory=lambda: TenantPlaces(1, _LATE, _MOMENT_S, one_each=True))
    _memory: Memory = field(default_factory=Memory)
    _kept: KeptByDigest = field(default_factory=lambda: KeptByDigest(_MOST_KEPT_BYTES))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _idle: tuple[tuple[str, str], FencedProcess] | None = None

    def of(self, data: bytes, form: SopsFormat, decryption: Decryption) -> Decrypted:
        """Return what came of a file of SOPS that holds *data*. Blocks.

        Raises:
            SourceError: nobody waits any more.
        """
        if decryption.fault:
            return Decrypted(fault=f"is encrypted with SOPS, and {decryption.fault}", hint=decryption.hint)
        key = (decryption.key, hashlib.sha256(data).hexdigest(), form.value)
        if (known := self._kept.find(key, Decrypted)) is not None:
            return known
        with self._places.one():
            if (known := self._kept.find(key, Decrypted)) is not None:  # decrypted by somebody else while we waited
                return known
            try:
                found = self._decrypted(data, form, decryption)
            except GoBuildError as error:
                return Decrypted(
                    fault=f"is encrypted with SOPS, and can't be decrypted: {error.message}",
                    hint=HOW_TO_GET,
                    passes=True,
                )
            except ProgramLateError as error:
                return Decrypted(fault=f"can't be decrypted: {error}", hint=_SMALLER, passes=True)
            except ProgramEndedError as error:
                found = Decrypted(fault=f"can't be decrypted: {error}", hint=_SMALLER)
            self.decrypted += 1
            self._kept.keep(key, found, len(found.data) + _BESIDE_BYTES)
            return found

    def close(self) -> None:
        """End what waits for the next file; that starts another."""
        with self._guard:
            idle, self._idle = self._idle, None
        if idle is not None:
            idle[1].close()

    def _decrypted(self, data: bytes, form: SopsFormat, decryption: Decryption) -> Decrypted:
        """Return what the program makes of a file.

        Raises:
            GoBuildError: the program isn't there.
            ProgramEndedError: it ends, or is of another version.
            SourceError: nobody waits any more.
        """
        order = {
            "decrypt": {
                "format": form.value, "data": base64.b64encode(data).decode(), "age": decryption.age,
                "openpgp": decryption.openpgp, "alter": decryption.alter.value,
            }
        }  # fmt: skip
        whose = (TENANT.get(), repr((decryption.age, decryption.openpgp)))
        process = self._process(whose)
        waited = ending()
        try:
            with waited.around(process.kill):
                done = process.carry_out(order, _refuse, self.seconds)
        except BaseException:
            process.close()
            waited.check()
            raise
        process.rests()
        with self._guard:
            before, self._idle = self._idle, (whose, process)
        if before is not None:
            before[1].close()
        return _told(done)

    def _process(self, whose: tuple[str, str]) -> FencedProcess:
        """Return a process that has nothing else to do, and has never had the keys of others."""
        with self._guard:
            idle, self._idle = self._idle, None
        if idle is not None:
            if idle[0] == whose and idle[1].wakes():
                return idle[1]
            idle[1].close()
        return FencedProcess(SOPS, SOPS.at_hand(self.build_log, _MISSING), MEMORY_BYTES, 3 * MEMORY_BYTES, self._memory)


_MISSING: Final = "the program that does isn't here"
_SMALLER: Final = "split it into smaller ones"


def _refuse(_question: str, _path: str) -> Mapping[str, Any]:
    """Answer what it has no reason to ask."""
    return {"kind": "refused", "why": "is never read"}


def _told(done: Mapping[str, Any]) -> Decrypted:
    if fault := str(done.get("fault") or ""):
        line = done.get("line")
        return Decrypted(
            fault=fault, at=str(done.get("at") or ""), line=line if isinstance(line, int) else 0,
            hint=str(done.get("hint") or ""),
        )  # fmt: skip
    data = base64.b64decode(done.get("data") or "")
    return Decrypted(data, is_mac_only_encrypted=bool(done.get("macOnlyEncrypted")))


DECRYPTER: Final = Decrypter()
"""That of this process."""

atexit.register(DECRYPTER.close)
