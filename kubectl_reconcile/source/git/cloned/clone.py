"""The bare clone of one repository on this machine, and the only place that has git do something.

Whoever changes a clone holds its *lock*, a lock of the operating system on a file beside it: it
excludes threads and processes alike and vanishes with its holder, however that dies. Reading needs
no lock, since git replaces files and never rewrites them.

A clone is *partial* where this git can hold one safely: it has all commits and folders of the refs that were fetched, and of
the files those that somebody asked for. That the server has the rest is said to the commands that fetch, for their
time alone: to a reader a file that isn't here is just missing, and is fetched by name, in one request for all of them.

How git runs is told in ``running``. What it complains of is turned into one of ``SourceFault``, in a line that holds no secret.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from kubectl_reconcile.source.destination import UnresolvedError
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.objects import ABSENT, GONE, announced, content, reader_of
from kubectl_reconcile.source.git.complaints import explained, judge, unread
from kubectl_reconcile.source.git.ssh_connections import SHARED
from kubectl_reconcile.source.limits import MEBIBYTE, MOST_OUTPUT_BYTES, MOST_REFS_BYTES, GitLimits, raising
from kubectl_reconcile.source.remote import Repository
from kubectl_reconcile.source.running.budget import PARSING
from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.running.memory import FETCHES, HEAVY, LIGHT_GIT_BYTES, MEMORY, all_bytes
from kubectl_reconcile.source.running.places import TenantPlaces
from kubectl_reconcile.source.running.process import NOWHERE, QUIET, given, running
from kubectl_reconcile.source.tls import why_untrusted

T = TypeVar("T")

FETCH = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]

_VERSION_TIMEOUT_S = 60.0
"""How long git may take to say its version, in seconds."""

_HELD_SINCE = (2, 37)
"""The git that was the first to take addresses for hosts (``http.curloptResolve``)."""

_FEW = 64
"""Up to so many objects are asked for one by one."""

_ABANDONED_S = 3600.0
"""After how long a pack that isn't written to any more is what a killed fetch has left."""

_PARTIAL = "reconcile-partial"
"""The file in a clone that says that files may be missing from it."""


class _OthersLockError(SourceError):
    """Somebody else has the clone locked."""


class Clone:
    """One bare clone in a cache folder; the repository's URL alone decides which."""

    def __init__(self, repository: Repository, cache_dir: Path, limits: GitLimits | None = None) -> None:
        self.limits = limits or GitLimits()
        self.repository = repository
        self.folder, self._lock_file = _places_of(repository.url, cache_dir)
        self.reader = reader_of(repository, self.folder, self.place(), self.limits)
        self.by_sha256 = False
        """Whether the server names objects by SHA-256: a clone that is made then does too."""

    def exists(self) -> bool:
        """Return whether there is a clone, sound or not. Without a proper HEAD git takes a folder for nothing at all."""
        try:
            head = (self.folder / "HEAD").read_bytes()
        except OSError:
            return False
        return head.startswith(b"ref: refs/") and (self.folder / "objects").is_dir()

    def ready(self) -> None:
        """Make the clone if it isn't there, and remove the locks of a git that was killed. Call it locked."""
        partial = never_fetches_lazily(git_version())
        if not self.exists() or (self.is_partial and not partial) or _is_by_sha256(self.folder) != self.by_sha256:
            self.begin(partial=partial)
        for stale in (*self.folder.glob("*.lock"), *self.folder.glob("refs/**/*.lock")):
            stale.unlink(missing_ok=True)
        for begun, facts in _packs(self.folder, "tmp_*"):
            if time.time() - facts.st_mtime > _ABANDONED_S:
                begun.unlink(missing_ok=True)

    def begin(self, *, partial: bool) -> None:
        """Make an empty clone in place of what is there. Call it locked."""
        self.discard()
        form = "sha256" if self.by_sha256 else "sha1"
        self.run(["init", "--quiet", "--bare", "--template=", f"--object-format={form}", "--", str(self.folder)])
        if partial:
            (self.folder / _PARTIAL).touch()

    @property
    def is_partial(self) -> bool:
        """Whether files may be missing from it that its commits hold."""
        return (self.folder / _PARTIAL).exists()

    def fetching(self, timeout_s: float, work: Callable[[GitLimits], T]) -> T:
        """Return what *work*, which fetches, returns for the limits that it has: in the locked clone, within little memory at first.

        Where that isn't enough it is done again with as much as may be, when it is its turn. The lock is never held by
        who waits for a turn, and who waits for the lock has no turn meanwhile, but for a moment.

        Raises:
            SourceError: as *work*; another holds the lock for longer than *timeout_s*; or nobody waits any more.
        """
        light = replace(self.limits, memory_bytes=min(LIGHT_GIT_BYTES, self.limits.memory_bytes))
        try:
            return self._in_turn(FETCHES, light, timeout_s, work)
        except SourceError as error:
            if error.hint != raising("memory_bytes") or light == self.limits:
                raise
        return self._in_turn(HEAVY, self.limits, timeout_s, work)

    def _in_turn(self, places: TenantPlaces, limits: GitLimits, timeout_s: float, work: Callable[[GitLimits], T]) -> T:
        deadline_s = time.monotonic() + timeout_s
        while True:
            with places.one(), MEMORY.held_for(limits.memory_bytes, all_bytes(self.limits)), ExitStack() as held:
                if self._is_locked_now(held):
                    return work(limits)
            with self.locked(max(deadline_s - time.monotonic(), 0.0)):
                pass  # whoever fetches now may take long

    def _is_locked_now(self, held: ExitStack) -> bool:
        """Lock the clone until *held* ends if nobody has it locked; tell whether that was so."""
        try:
            held.enter_context(self.locked(0.0))
        except _OthersLockError:
            return False
        return True

    def fetch(self, refspec: str, timeout_s: float, limits: GitLimits) -> None:
        """Fetch a ref with its history, into a partial clone without files, as work that is ``fetching``.

        Raises:
            SourceError: the server can't be reached or refuses, or has no such ref.
        """
        self.talk(
            [*FETCH, "--force", "--update-shallow", "--", self.repository.url, refspec],
            timeout_s,
            fills=self.is_partial,
            limits=limits,
        )

    def discard(self) -> None:
        """Remove the clone, or whatever else is in its place. Call it locked."""
        self.reader.close()
        if self.folder.is_dir() and not self.folder.is_symlink():
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self.folder.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, timeout_s: float) -> Iterator[None]:
        """Hold the clone's lock against other threads and processes; it vanishes with its holder.

        Raises:
            SourceError: another holds it for longer than *timeout_s*, or the cache can't be written.
        """
        try:
            self._lock_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            message = f"{self._lock_file.parent}: {error.strerror}"
            raise SourceError(SourceFault.UNREADABLE, message, "the cache folder must be writable") from None
        try:
            if not _held_within(lock, timeout_s):
                message = f"{self.repository}: another process is still fetching it"
                raise _OthersLockError(
                    SourceFault.UNREACHABLE, message, f"find the process that holds {self._lock_file}"
                )
            yield
        finally:
            os.close(lock)

    def repairing(self, work: Callable[[], T], renew: Callable[[], object] | None = None) -> T:
        """Do *work*; if the clone is damaged, *renew* it (or only remove it) and do the work once more."""
        try:
            return work()
        except SourceError as error:
            if error.fault is not SourceFault.CORRUPT:
                raise
        if renew is not None:
            renew()
        else:
            with self.locked(self.limits.seconds):
                self.discard()
        return work()

    def run(self, arguments: list[str], *, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> bytes:
        """Run a git command that stays on this machine and return what it prints.

        Raises:
            SourceError: it failed.
        """
        return self._run(arguments, {**QUIET, **self.place(), **(environment or {})}, self.limits.seconds, stdin)

    def talk(
        self,
        arguments: list[str],
        timeout_s: float,
        *,
        stdin: bytes = b"",
        fills: bool = False,
        limits: GitLimits | None = None,
    ) -> bytes:
        """Run a git command that talks to the server and return what it prints; it *fills* a partial clone. What fetches is given its *limits*.

        Raises:
            SourceError: it failed, or took longer than *timeout_s*.
        """
        if self.repository.may is not None and git_version() < _HELD_SINCE:
            message = f"{self.repository}: this git connects to whatever address it finds by itself"
            raise SourceError(SourceFault.FAILED, message, "install git 2.37 or newer")
        place = NOWHERE if arguments[0] == "ls-remote" else self.place()
        before = _begun_in(self.folder)
        try:
            with (
                SHARED.connection(self.repository, self.limits) as shared,
                self.repository.environment(partial=fills, shared=shared) as environment,
            ):
                output = self._run(arguments, {**QUIET, **place, **environment}, timeout_s, stdin, limits)
        except UnresolvedError as error:
            raise explained(self.repository, str(error)) from None
        except SourceError as error:
            for begun in (
                _begun_in(self.folder) - before
            ):  # its git is dead, and who fails again and again would fill the disk
                begun.unlink(missing_ok=True)
            if error.fault is not SourceFault.UNTRUSTED:
                raise
            why = why_untrusted(self.repository.destination, self.repository.credentials.ca_bundle)
            raise (explained(self.repository, why) if why else error) from None
        if FETCH[0] in arguments and _bytes_of(self.folder) > (most := self.limits.clone_bytes):
            self.discard()
            message = f"{self.repository}: its clone takes more than {most // MEBIBYTE} MiB"
            raise SourceError(SourceFault.REFUSED, message, raising("clone_bytes"))
        return output

    def objects(self, names: list[str], *, kind: bytes = b"blob") -> Generator[bytes | None]:
        """Yield the content of each object of that kind, None for any other; one byte more of it than may be parsed.

        Each counts in what is held of files that are parsed, until the next is asked for. Many have a git of their own,
        which needn't wait for each question.
        """
        if len(names) <= _FEW:
            yield from self._few(names, kind)
            return
        questions = "".join(f"{name}\n" for name in names).encode()
        command = ["cat-file", "--batch", "--buffer"]
        with (
            given(questions) as stdin,
            running(command, {**QUIET, **self.place()}, self.limits, self.limits.seconds, stdin) as git,
        ):
            for _ in names:
                found, size = announced(git.popen.stdout)
                if found == GONE:
                    raise unread(self.repository, git)
                if found == ABSENT:
                    yield None
                    continue
                kept = min(size, self.limits.file_bytes + 1)
                with PARSING.room(kept, self.limits.parsing_bytes):
                    data = content(git.popen.stdout, kept, size)
                    if data is None:
                        raise unread(self.repository, git)
                    yield data if found == kind else None

    def _few(self, names: list[str], kind: bytes) -> Generator[bytes | None]:
        for name, facts in zip(names, self.reader.facts(names), strict=True):
            if facts is None or facts.kind != kind:
                yield None
                continue
            with PARSING.room(min(facts.size, self.limits.file_bytes + 1), self.limits.parsing_bytes):
                found = self.reader.ask(name)
                yield found.data if found else None

    def place(self) -> dict[str, str]:
        """Return what tells git where the clone is."""
        return {"GIT_DIR": str(self.folder), "GIT_OBJECT_DIRECTORY": str(self.folder / "objects")}

    def _run(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        timeout_s: float,
        data: bytes = b"",
        limits: GitLimits | None = None,
    ) -> bytes:
        with given(data) as stdin, running(arguments, environment, limits or self.limits, timeout_s, stdin) as git:
            output, complaint, excess = git.heard(MOST_REFS_BYTES if arguments[0] == "ls-remote" else MOST_OUTPUT_BYTES)
            judge(self.repository, git, complaint, excess, timeout_s)
        return output


@functools.lru_cache(maxsize=1024)
def _places_of(url: str, cache_dir: Path) -> tuple[Path, Path]:
    """Return where a repository's clone and its lock are, the same values for all who follow it."""
    digest = hashlib.sha256(url.encode()).hexdigest()[:32]
    return cache_dir / f"{digest}.git", cache_dir / f"{digest}.lock"


def _is_by_sha256(clone: Path) -> bool:
    """Return whether a clone names objects by SHA-256."""
    try:
        return b"objectformat = sha256" in (clone / "config").read_bytes().lower()
    except OSError:  # it is damaged, which git will say
        return False


def _held_within(lock: int, timeout_s: float) -> bool:
    """Wait for a lock, and tell whether it is ours within so many seconds.

    Raises:
        SourceError: it isn't needed any more.
    """
    pause_s, waited, deadline_s = 0.005, ending(), time.monotonic() + timeout_s
    while True:
        waited.check()
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.1)


def _begun_in(clone: Path) -> set[Path]:
    """Return the packs of a clone that a fetch has begun and not finished."""
    return set(clone.glob("objects/pack/tmp_*"))


def _bytes_of(clone: Path) -> int:
    """Return what the packs of a clone take, in bytes; its other files are small."""
    return sum(facts.st_size for _, facts in _packs(clone))


def _packs(clone: Path, names: str = "*") -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of a clone's packs with such *names*, and what is known of each; git may be repacking them meanwhile."""
    for file in clone.glob(f"objects/pack/{names}"):
        with contextlib.suppress(FileNotFoundError):
            yield file, file.stat()


def git_version() -> tuple[int, ...]:
    """Return the version of the git on this machine, as in (2, 39, 5). It is asked once, and again when it is another program.

    Raises:
        SourceError: there is none, or it didn't answer; nobody who asks next is given that for an answer.
    """
    place = shutil.which("git") or ""
    return _version_at(place, Path(place).stat().st_mtime_ns if place else 0)


@functools.lru_cache(maxsize=8)
def _version_at(_place: str, _changed_ns: int) -> tuple[int, ...]:
    with running(["version"], {**QUIET, **NOWHERE}, GitLimits(), _VERSION_TIMEOUT_S) as git:
        output, *_ = git.heard()
    if (found := re.search(rb"\d+(?:\.\d+)+", output)) is None or git.popen.returncode != 0:
        ending().check()  # it was killed, since nobody waits for us: the next who asks may well be told
        raise SourceError(SourceFault.FAILED, "git doesn't say which version it is", "see what `git version` prints")
    return tuple(map(int, found[0].split(b".")))


def never_fetches_lazily(version: tuple[int, ...]) -> bool:
    """Return whether that git obeys ``GIT_NO_LAZY_FETCH``: 2.45, and older lines since the releases of May 2024.

    Any other fetches what is missing one by one, each in a process that may start the next: from a server with a shallow
    clone without end.
    """
    since = {39: 4, 40: 2, 41: 1, 42: 2, 43: 4, 44: 1}
    line, patch = version[:2], version[2] if len(version) > 2 else 0
    return line >= (2, 45) or (len(line) == 2 and line[0] == 2 and line[1] in since and patch >= since[line[1]])
