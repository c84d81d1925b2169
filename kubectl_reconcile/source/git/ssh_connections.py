"""SSH connections that several gits use one after the other, or at once: the way in is the dearest part of a short question.

A connection is a master of ssh(1) (``ControlMaster``), a child of ours in a process group of its own. Its socket is in a folder that only
we may enter. It is for one user at one host and port, with one set of credentials, so nobody comes in by what somebody else may.

Rules: a server must have taken the same credentials a few times before a connection to it is kept, so a command of a person, or
credentials that are refused, never have one. It ends when nobody has used it for a while, when it is old (a name may lead to
another host by then), when anything fails along it, and with us, however we end. Where there is none, git's own ssh connects.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.resources.credential_scope import Address, NoAddressError
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.remote import Credentials, Repository, Scheme, ssh_words
from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.running.guardian import GUARDIAN
from kubectl_reconcile.source.running.process import limited

_OF_THE_CONNECTION: Final = {
    SourceFault.UNREACHABLE, SourceFault.UNTRUSTED, SourceFault.UNAUTHORIZED, SourceFault.FAILED,
}  # fmt: skip
"""What may be the connection's fault: another repository may be missing there, without any harm to it."""
_TIMES_BEFORE: Final = 3
"""How often git has to have come in by itself: asked, fetched commits, and fetched files, as a command does once."""
_IDLE_S: Final = 150.0
_OLDEST_S: Final = 600.0
_MOST: Final = 50
_READY_S: Final = 20.0
_LOOK_S: Final = 0.01
_LONGEST_FOLDER: Final = 60
"""How long the path of the folder may be: that of a socket has some hundred bytes, and ssh adds to it while it makes one."""


class WayIn(Struct, frozen=True):
    """Whom the connection is for: *user* at a *host*, with *credentials*."""

    user: str
    host: str
    port: int
    credentials: Credentials


class _Master(Struct, eq=False):
    """A master that runs, since when, and who uses it."""

    process: subprocess.Popen[bytes]
    socket: Path
    since_s: float = field(default_factory=time.monotonic)
    used_s: float = field(default_factory=time.monotonic)
    users: int = 0

    def is_over(self, now_s: float) -> bool:
        """Tell whether nobody should begin to use it."""
        return self.process.poll() is not None or now_s - self.since_s > _OLDEST_S or now_s - self.used_s > _IDLE_S

    def end(self) -> None:
        """End it, with what it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        GUARDIAN.leave(self.process.pid)
        self.socket.unlink(missing_ok=True)


class SshConnections:
    """The connections of one process, from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._times: dict[WayIn, int] = {}
        self._masters: dict[WayIn, _Master] = {}
        self._retired: list[_Master] = []
        self._folder: Path | None = None
        self._sweeper: threading.Thread | None = None
        self._is_over = False

    @contextmanager
    def connection(self, repository: Repository, limits: GitLimits) -> Iterator[Path | None]:
        """Yield the socket of a connection for the time of a block, None where git is to connect by itself.

        Raises:
            SourceError: nobody waits any more.
        """
        way = _way_in(repository)
        if way is None:
            yield None
            return
        master = self._begun(way, repository, limits)
        try:
            yield master.socket if master else None
        except SourceError as error:
            if error.fault in _OF_THE_CONNECTION:
                self._forget(way)
            raise
        else:
            with self._guard:
                self._times[way] = self._times.get(way, 0) + 1
        finally:
            if master is not None:
                self._left(master)

    def close(self) -> None:
        """End all connections; there won't be others."""
        with self._guard:
            self._is_over = True
            masters = [*self._masters.values(), *self._retired]
            self._masters.clear()
            self._retired.clear()
            folder, self._folder = self._folder, None
        for each in masters:
            each.end()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _begun(self, way: WayIn, repository: Repository, limits: GitLimits) -> _Master | None:
        """Return the connection to use: the one that is there, or a new one unless somebody else is making it."""
        with self._guard:
            master = self._masters.get(way)
            if master is not None and master.is_over(time.monotonic()):
                self._retired.append(self._masters.pop(way))
                master = None
            if master is not None:
                master.users += 1
                return master
            if self._is_over or self._times.get(way, 0) < _TIMES_BEFORE or len(self._masters) >= _MOST:
                return None
            self._times[way] = 0  # whoever comes meanwhile goes alone
            place = self._place()
        return self._made(way, repository, limits, place) if place is not None else None

    def _place(self) -> Path | None:
        """Return where the next socket is to be, None where paths are too long here."""
        if self._folder is None:
            folder = Path(tempfile.mkdtemp(prefix="krc-"))  # for us alone
            if len(str(folder)) > _LONGEST_FOLDER:
                folder.rmdir()
                return None
            self._folder = folder
        return self._folder / f"{time.monotonic_ns():x}"

    def _made(self, way: WayIn, repository: Repository, limits: GitLimits, place: Path) -> _Master | None:
        """Return a new connection once it stands; its key is on the disk until then."""
        waited, deadline_s = ending(), time.monotonic() + _READY_S
        with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-") as private:
            words = ssh_words(repository, Path(private))
            where = [*(["-l", way.user] if way.user else []), "-p", str(way.port), "--", way.host]
            kept = ["-M", "-N", "-n", "-S", str(place), "-o", "ControlPersist=no", *where]
            process = subprocess.Popen(
                limited([*words, *kept], limits),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"}, start_new_session=True, cwd="/",
            )  # fmt: skip
            GUARDIAN.watch(process.pid)
            master = _Master(process, place, users=1)
            try:
                with waited.around(lambda: _kill(process)):
                    while not place.exists() and process.poll() is None and time.monotonic() < deadline_s:
                        time.sleep(_LOOK_S)
                waited.check()
            except BaseException:
                master.end()
                raise
            if process.poll() is not None or not place.exists():
                master.end()
                return None
        with self._guard:
            if self._is_over:
                self._retired.append(master)
            else:
                self._masters[way] = master
                self._times[way] = _TIMES_BEFORE
                self._sweep_from_now_on()
        return master

    def _left(self, master: _Master) -> None:
        with self._guard:
            master.users -= 1
            master.used_s = time.monotonic()
        self._end_retired()

    def _forget(self, way: WayIn) -> None:
        """Have nobody else use the connection: something failed along it."""
        with self._guard:
            self._times.pop(way, None)
            if (master := self._masters.pop(way, None)) is not None:
                self._retired.append(master)

    def _end_retired(self) -> None:
        with self._guard:
            ended = [each for each in self._retired if each.users <= 0]
            self._retired = [each for each in self._retired if each.users > 0]
        for each in ended:
            each.end()

    def _sweep_from_now_on(self) -> None:
        if self._sweeper is None or not self._sweeper.is_alive():
            self._sweeper = threading.Thread(target=self._sweep, name="ssh-connections", daemon=True)
            self._sweeper.start()

    def _sweep(self) -> None:
        """End connections that nobody uses, as long as there are any."""
        while True:
            time.sleep(_IDLE_S / 10)
            now_s = time.monotonic()
            with self._guard:
                for way in [way for way, each in self._masters.items() if not each.users and each.is_over(now_s)]:
                    self._retired.append(self._masters.pop(way))
                if not self._masters and not self._retired:
                    self._sweeper = None
                    return
            self._end_retired()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _way_in(repository: Repository) -> WayIn | None:
    """Return how git would come in, None where that isn't for us to say."""
    if repository.scheme is not Scheme.SSH or repository.user_config:
        return None
    try:
        address = Address.of(repository.url)
    except NoAddressError:
        return None
    return WayIn(address.user, address.host.strip("[]"), address.port, repository.credentials)


SHARED: Final = SshConnections()
"""Those of this process."""
atexit.register(SHARED.close)
