"""What git stores by name, asked for one by one: ``git cat-file`` prints each object behind a line that announces it.

A *reader* asks for objects of one clone, and is shared by all who follow it: its git is started with the first question,
serves all threads, one after the other, and ends when nobody has asked for a while. Reading a revision whose files are known
starts no process at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, TypeVar

from msgspec import Struct, field

from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.complaints import unread
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.remote import Repository
from kubectl_reconcile.source.running.ending import ENDING, taking
from kubectl_reconcile.source.running.process import QUIET, GitProcess, running
from kubectl_reconcile.source.running.shared import Shared

Place: TypeAlias = tuple[int, int, int]
"""What tells one clone from another: the device, the number and the time of its ``HEAD``."""

GONE, ABSENT = b"gone", b"absent"
"""Instead of a kind: git has ended; it has no such object."""

_IDLE_S: Final = 5.0
"""How long a git waits for the next question before it is ended."""
_MOST_OPEN: Final = 32
"""How many clones are read at a time before the one goes that was asked longest ago."""
_AT_ONCE: Final = 400
"""How many names are put to git before its answers are read: they fit into a pipe, as do these."""
_LOOK_S: Final = 1.0
_OF_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\^\{(?:commit|tree)\}")
"""What names a commit, or its folder, by the commit's hash."""
_MOST_KNOWN: Final = 256

T = TypeVar("T")


def announced(stream: BinaryIO) -> tuple[bytes, int]:
    """Return kind and size of what ``git cat-file --batch`` prints next."""
    header = stream.readline()
    if not header:
        return GONE, 0
    if header.split()[-1:] in ([b"missing"], [b"ambiguous"]):
        return ABSENT, 0
    kind, size = header.split()[-2:]
    return kind, int(size)


def content(stream: BinaryIO, kept: int, size: int) -> bytes | None:
    """Return the first *kept* bytes of an object of that size, and pass over the others; None if git ends before."""
    data: bytes = stream.read(kept)
    rest = size + 1 - len(data)
    while rest > 0 and (skipped := stream.read(min(rest, MEBIBYTE))):
        rest -= len(skipped)
    return None if rest else data


class GitObject(Struct, frozen=True):
    """One object of a clone: its *kind* (``blob``, ``tree``, ``commit``) and what it holds."""

    kind: bytes
    data: bytes


class ObjectFacts(Struct, frozen=True):
    """What is known of an object without its content: its full *name*, its kind, and how many bytes it has."""

    name: str
    kind: bytes
    size: int


class ObjectReader:
    """Asks for the objects of the clone in *folder*, from any thread. *environment* tells git where that is."""

    def __init__(self, repository: Repository, folder: Path, environment: Mapping[str, str], limits: GitLimits) -> None:
        self._folder = folder
        self._contents = _Pipe(repository, ("cat-file", "--batch"), environment, limits)
        self._facts = _Pipe(repository, ("cat-file", "--batch-check"), environment, limits)
        self._most = limits.file_bytes
        self._turn = threading.Lock()
        self._is: Place = (0, 0, 0)
        self._known: OrderedDict[str, tuple[Place, ObjectFacts]] = OrderedDict()

    def ask(self, name: str, most_bytes: int = 0) -> GitObject | None:
        """Return the object *name*, None where there is no such; of one larger than *most_bytes*, one byte more than that.

        That is as much as may be read of a file, unless something else is said.

        Raises:
            SourceError: the clone can't be read.
        """
        with self._my_turn():
            return self._contents.again(lambda: self._asked(name, (most_bytes or self._most) + 1))

    def facts(self, names: Sequence[str]) -> list[ObjectFacts | None]:
        """Return what is known of each of these objects, None where there is no such.

        Raises:
            SourceError: the clone can't be read.
        """
        if len(names) == 1 and (known := self._known_of(names[0])) is not None:
            return [known]
        found: list[ObjectFacts | None] = []
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
            with self._my_turn():
                found += self._facts.again(lambda some=some: self._looked(some))  # type: ignore[misc]
                self._remember(some, found)
        return found

    def close(self) -> None:
        """End what runs; the next question starts it again."""
        with self._turn:
            self._close()

    def rest(self, idle_s: float) -> None:
        """End what nobody has asked for so long, and kill what takes too long for its answer."""
        for pipe in (self._contents, self._facts):
            pipe.kill_late()
        if self._turn.acquire(blocking=False):
            try:
                for pipe in (self._contents, self._facts):
                    pipe.rest(idle_s)
            finally:
                self._turn.release()

    @property
    def is_open(self) -> bool:
        """Whether a git runs."""
        return self._contents.is_open or self._facts.is_open

    def _close(self) -> None:
        self._contents.close()
        self._facts.close()

    @contextlib.contextmanager
    def _my_turn(self) -> Iterator[None]:
        """Wait for our turn. A clone that was recreated meanwhile is another: what reads the old one is ended."""
        with taking(self._turn):
            if (now := self.place()) is not None and now != self._is:
                self._close()
                self._is = now
            try:
                yield
            finally:
                _KEEPER.keeps(self)

    def place(self) -> Place | None:
        """Return what tells the clone from any other, such as one that is recreated; None where there is none.

        Git writes ``HEAD`` as it makes a clone, and then no more. A folder that is recreated may have the number of the one before it.
        """
        try:
            facts = (self._folder / "HEAD").stat()
        except OSError:
            return None
        return facts.st_dev, facts.st_ino, facts.st_mtime_ns

    def packs(self) -> int:
        """Return what tells whether packs of objects have come or gone, 0 where the clone can't hold any."""
        try:
            return (self._folder / "objects" / "pack").stat().st_mtime_ns
        except OSError:
            return 0

    def _known_of(self, name: str) -> ObjectFacts | None:
        """Return what was said of a commit or its folder, which never changes as long as the clone is the same."""
        known = self._known.get(name)
        return known[1] if known is not None and known[0] == self.place() else None

    def _remember(self, names: Sequence[str], found: Sequence[ObjectFacts | None]) -> None:
        if len(names) == len(found) == 1 and found[0] is not None and _OF_COMMIT.fullmatch(names[0]):
            self._known[names[0]] = self._is, found[0]
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)

    def _asked(self, name: str, most: int) -> GitObject | None:
        stream = self._contents.put([name])
        kind, size = announced(stream)
        if kind == ABSENT:
            return None
        data = content(stream, min(size, most), size) if kind != GONE else None
        if data is None:
            raise _GoneError
        return GitObject(kind, data)

    def _looked(self, names: Sequence[str]) -> list[ObjectFacts | None]:
        stream = self._facts.put(names)
        return [_facts_of(stream.readline()) for _ in names]


def _facts_of(line: bytes) -> ObjectFacts | None:
    if not line:
        raise _GoneError
    name, _, said = line.rstrip(b"\n").rpartition(b" ")
    if said in {b"missing", b"ambiguous"}:
        return None
    name, _, kind = name.rpartition(b" ")
    return ObjectFacts(name.decode(), kind, int(said))


class _GoneError(Exception):
    """Git has ended in the middle of an answer."""


class _Pipe(Struct):
    """One ``git cat-file`` that waits for names. *since_s* is when the question began that it answers now; 0.0 while it waits."""

    repository: Repository
    command: tuple[str, ...]
    environment: Mapping[str, str]
    limits: GitLimits
    since_s: float = 0.0
    _used_s: float = 0.0
    _git: GitProcess | None = None
    _questions: BinaryIO | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def is_open(self) -> bool:
        return self._git is not None

    def put(self, names: Sequence[str]) -> BinaryIO:
        """Ask for *names*, and return where the answers come; git is started where it doesn't run."""
        git, questions = self._running()
        try:
            questions.write("".join(f"{name}\n" for name in names).encode(errors="surrogateescape"))
        except OSError:
            raise _GoneError from None
        stream: BinaryIO = git.popen.stdout
        return stream

    def again(self, work: Callable[[], T]) -> T:
        """Do *work*; once more if the git that was used before turns out to have ended since.

        Raises:
            SourceError: it ends again.
        """
        was_open = self.is_open
        try:
            while True:
                self.since_s = time.monotonic()
                try:
                    return work()
                except _GoneError:
                    if not was_open:
                        raise self._unread() from None
                    was_open = False
                    self.close()
        except BaseException:  # half an answer may be left in the pipe
            self.close()
            raise
        finally:
            self.since_s, self._used_s = 0.0, time.monotonic()

    def _unread(self) -> SourceError:
        """Return why git has ended."""
        error = unread(self.repository, self._git) if self._git is not None else None
        return error or SourceError(SourceFault.CORRUPT, f"{self.repository}: the local clone can't be read")

    def kill_late(self) -> None:
        """Kill a git that takes too long for its answer; may be called from any thread."""
        git, since_s = self._git, self.since_s
        if git is not None and since_s and time.monotonic() - since_s > self.limits.seconds:
            git.kill_late()

    def rest(self, idle_s: float) -> None:
        if self._git is not None and time.monotonic() - self._used_s > idle_s:
            self.close()

    def close(self) -> None:
        self._git = self._questions = None
        self._stack.close()

    def _running(self) -> tuple[GitProcess, BinaryIO]:
        if self._git is None or self._questions is None:
            reading, writing = os.pipe()
            self._questions = self._stack.enter_context(os.fdopen(writing, "wb", buffering=0))
            theirs = ENDING.set(None)  # it outlives the work that it is started for
            try:
                with os.fdopen(reading, "rb") as stdin:
                    self._git = self._stack.enter_context(
                        running(
                            list(self.command), {**QUIET, **self.environment}, self.limits, threading.TIMEOUT_MAX, stdin
                        )
                    )
            except BaseException:
                self.close()
                raise
            finally:
                ENDING.reset(theirs)
        return self._git, self._questions


class _Keeper:
    """Manages the readers that have a git running, in a thread that is there as long as one has."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: OrderedDict[int, ObjectReader] = OrderedDict()
        self._thread: threading.Thread | None = None

    def keeps(self, reader: ObjectReader) -> None:
        """Manage *reader* from now on."""
        with self._guard:
            self._open[id(reader)] = reader
            self._open.move_to_end(id(reader))
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="git-readers", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            with self._guard:
                readers = list(self._open.values())
            excess = len(readers) - _MOST_OPEN
            for number, reader in enumerate(readers):
                reader.rest(0.0 if number < excess else _IDLE_S)
            with self._guard:
                for key, reader in list(self._open.items()):
                    if not reader.is_open:
                        del self._open[key]
                if not self._open:
                    self._thread = None
                    return


_KEEPER: Final = _Keeper()

_READERS: Final = Shared[tuple[Path, GitLimits], ObjectReader]()


def reader_of(repository: Repository, folder: Path, environment: Mapping[str, str], limits: GitLimits) -> ObjectReader:
    """Return the reader of the clone in *folder*, the same for all of this process."""
    return _READERS.of((folder, limits), lambda: ObjectReader(repository, folder, environment, limits))
