"""What is followed in a repository, a *ref*; and what a Git server said of its refs, asked once for all who follow the repository with the same credentials.

Whoever wants to know where refs are says how old an answer may be. One question asks for the refs of all who asked lately; who
comes while it is being asked waits for its answer, and a failure is everybody's.

Who follows a range of versions needs the list of all tags, which may be long, or longer than is read. It is asked for once for all of them, in a question
of its own: nobody else waits for it, or fails with it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from enum import StrEnum
from typing import Any, Final, Self
from weakref import WeakSet

from msgspec import Struct, field

from kubectl_reconcile.core.resources.semver import VersionRange
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.asking.question import Asking
from kubectl_reconcile.source.remote import Repository
from kubectl_reconcile.source.running.ending import taking
from kubectl_reconcile.source.running.shared import Shared

_MOST_NAMES: Final = 200
"""How many refs are asked for at a time; whose aren't among them asks alone."""

TAGS: Final = "refs/tags/"
"""What the full names of tags begin with; as a name, it stands for all of them."""

_PEELED: Final = "^{}"


class RefKind(StrEnum):
    """What a ref's name names."""

    BRANCH = "branch"
    """Follow the branch, wherever it is moved."""
    TAG = "tag"
    """The commit that the tag points at, annotated or not; followed should it be moved."""
    RANGE = "range"
    """The commit of the tag that is the newest version in the range that is the name.

    Tags that are no versions are passed over. Of several tags of one version (``1.2.3`` and ``v1.2.3``) it is the last in the order of the alphabet.
    """
    COMMIT = "commit"
    """One commit by its full hash, forever."""
    ANY = "any"
    """The branch of that name, else the tag, else the commit, also by its first digits. Without a name, the default branch.

    A name that begins with ``refs/`` is that very ref; ``pull/12/head`` and the like are found too.
    """


class Ref(Struct, frozen=True):
    """What to follow in a repository."""

    kind: RefKind = RefKind.ANY
    name: str = ""

    @classmethod
    def of(cls, *, branch: str = "", tag: str = "", semver: str = "", commit: str = "") -> Self:
        """Return the one that is given, as in a Sync; the commit before the range of versions before the tag before the branch."""
        if commit:
            return cls(RefKind.COMMIT, commit)
        if semver:
            return cls(RefKind.RANGE, semver)
        if tag:
            return cls(RefKind.TAG, tag)
        return cls(RefKind.BRANCH, branch) if branch else cls()

    def __str__(self) -> str:
        if not self.name:
            return "the default branch"
        if self.kind is RefKind.RANGE:
            return f'tag that is a version in "{self.name}"'
        return f'"{self.name}"' if self.kind is RefKind.ANY else f'{self.kind} "{self.name}"'

    def names(self) -> list[str]:
        """Return the full names that the ref may have on the server, the likeliest first; a commit is on whatever there is."""
        return {
            RefKind.BRANCH: [f"refs/heads/{self.name}"],
            RefKind.TAG: [f"{TAGS}{self.name}{_PEELED}", f"{TAGS}{self.name}"],
            RefKind.RANGE: [TAGS],
            RefKind.COMMIT: ["HEAD"],
            RefKind.ANY: _names_of(self.name),
        }[self.kind]

    def among(self, found: Mapping[str, str]) -> RemoteRef | None:
        """Return where the ref is by what a server said; None for a commit, or where it has no such ref."""
        for full in self._names_among(found):
            if full in found:
                plain = full.removesuffix(_PEELED)
                return RemoteRef(plain, found[full], found.get(plain, "") if plain != full else "")
        return None

    def may_lead_to(self, tag: str) -> bool:
        """Tell whether a tag of that name is a version in the range that is followed."""
        return self.kind is RefKind.RANGE and bool(VersionRange.of(self.name).newest([tag]))

    def _names_among(self, found: Mapping[str, str]) -> Sequence[str]:
        """Return the full names that the ref has by what a server said, the likeliest first."""
        if self.kind is RefKind.RANGE:
            newest = VersionRange.of(self.name).newest(found, lambda full: full.removeprefix(TAGS))
            return [f"{newest}{_PEELED}", newest] if newest else []
        return [] if self.kind is RefKind.COMMIT else self.names()


class RemoteRef(Struct, frozen=True):
    """Where a ref is on the server: its full *name*, its commit, and the annotated *tag* in between, if any. A commit is its own name."""

    name: str
    sha: str
    tag: str = ""


def _names_of(name: str) -> list[str]:
    """Return the full names that *name* may stand for, the likeliest first."""
    if not name:
        return ["HEAD"]
    if name.startswith("refs/"):
        return [f"{name}^{{}}", name]
    return [f"refs/heads/{name}", f"refs/tags/{name}^{{}}", f"refs/tags/{name}", f"refs/{name}"]


class RefsAnswer(Struct, frozen=True):
    """What the server said: the commit of each ref *found* among those *asked* for, as of *begun_s* (monotonic); or the *failure*."""

    begun_s: float = float("-inf")
    asked: frozenset[str] = frozenset()
    found: Mapping[str, str] = field(default_factory=dict)
    failure: SourceError | None = None
    _places: MutableMapping[Ref, RemoteRef | None] = field(default_factory=dict)

    def at(self, ref: Ref) -> RemoteRef | None:
        """Return where a ref is; None for a commit, or where there is no such ref. What is the newest of many tags is worked out once for all who ask."""
        if ref not in self._places:
            self._places[ref] = ref.among(self.found)
        return self._places[ref]

    def followed_by(self, begun_s: float, asked: frozenset[str], found: Mapping[str, str]) -> Self:
        """Return a later answer; one that says the same keeps what was worked out."""
        places = self._places if (asked, found) == (self.asked, self.found) else {}
        return type(self)(begun_s, asked, found, None, places)

    def tells(self, names: Sequence[str], since_s: float) -> bool:
        """Tell whether this answers where *names* are, as of *since_s* or later."""
        return self.begun_s >= since_s and self.asked.issuperset(names)


class ServerRefs:
    """The refs of one repository, as one set of credentials sees them. From any thread."""

    def __init__(self, repository: Repository) -> None:
        self.asking = Asking(repository)
        """How the server is asked; by whoever has the turn."""
        self._turn = threading.Lock()
        self._wanted: OrderedDict[str, None] = OrderedDict()
        self.latest = RefsAnswer()
        """What was said last."""
        self.lets_in = False
        """Whether the server has let these credentials read it, and hasn't refused them since."""
        self._guard = threading.Lock()
        self._told_s = float("-inf")
        self._followers: WeakSet[Any] = WeakSet()

    def is_news(self) -> bool:
        """Tell whether this is asked for the first time since the server's last answer."""
        with self._guard:
            told, self._told_s = self._told_s, self.latest.begun_s
        return told != self._told_s

    def join(self, follower: object) -> None:
        """Count *follower* among those who follow the repository, for as long as somebody holds it."""
        with self._guard:
            self._followers.add(follower)

    def followers(self) -> list[Any]:
        """Return who follows the repository now."""
        with self._guard:
            return list(self._followers)

    def ask(
        self, names: Sequence[str], since_s: float, question: Callable[[Sequence[str]], Mapping[str, str]]
    ) -> RefsAnswer:
        """Return an answer that tells where *names* are, as of *since_s* or later; *question* asks the server where that isn't known.

        Raises:
            SourceError: the server can't be asked, or nobody waits any more.
        """
        with taking(self._turn):
            if not self.latest.tells(names, since_s):
                self._question(self._with_others(names), question)
            if (failure := self.latest.failure) is not None:
                raise SourceError(failure.fault, failure.message, failure.hint)
            return self.latest

    def _question(self, names: Sequence[str], question: Callable[[Sequence[str]], Mapping[str, str]]) -> None:
        begun_s, asked = time.monotonic(), frozenset(names)
        try:
            answer = self.latest.followed_by(begun_s, asked, question(names))
            for each in self.followers():  # so that whoever only looks needn't go through many tags
                answer.at(each.ref)
            self.latest = answer
            self.lets_in = True
        except SourceError as error:
            if error.fault is SourceFault.ENDED:
                raise
            if error.fault in {SourceFault.UNAUTHORIZED, SourceFault.NO_SUCH_REPOSITORY, SourceFault.REFUSED}:
                self.lets_in = False
            self.latest = RefsAnswer(begun_s, asked, failure=error)

    def _with_others(self, names: Sequence[str]) -> Sequence[str]:
        """Return *names* and those that were asked for lately; the oldest are forgotten."""
        for name in names:
            self._wanted[name] = None
            self._wanted.move_to_end(name)
        while len(self._wanted) > max(_MOST_NAMES, len(names)):
            self._wanted.popitem(last=False)
        return list(self._wanted)


_KNOWN: Final = Shared[tuple[Repository, bool], ServerRefs]()


def refs_of(repository: Repository, *, listed: bool = False) -> ServerRefs:
    """Return what is known of the refs of *repository*, or of the list of its tags: the same for all of this process who follow it with its credentials."""
    return _KNOWN.of((repository, listed), lambda: ServerRefs(repository))
