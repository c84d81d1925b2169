"""What a Sync has applied before, and how it comes back to that.

Vocabulary: an *entry* is one row of ``status.history``: a commit that changed the objects, when it was applied and how that went, with its
commit where the clone has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Commit
from kubectl_reconcile.core.objects import Manifest, map_at, maps_in
from kubectl_reconcile.core.resources import history
from kubectl_reconcile.core.resources.sync import GitSpec, Sync, SyncSpecError
from kubectl_reconcile.engine.commands import suspend_resume
from kubectl_reconcile.engine.sync.reconcile import Target
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.targets import source_of
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git import GitSource, Ref
from kubectl_reconcile.source.restore import RestoreCommit
from kubectl_reconcile.source.running.threads import in_thread


class HistoryEntry(Struct, frozen=True):
    """One state that a Sync tried to apply, and the commit that brought it; *counts* are what that did, *commit* is None where git can't tell."""

    revision: str
    time: str
    result: str
    message: str
    counts: Mapping[str, Any]
    is_current: bool
    commit: Commit | None = None


def entries_of(live: Manifest) -> list[HistoryEntry]:
    """Return the history of a Sync as its status has it, the newest first."""
    rows = _rows(live)
    current = history.current_of(rows)
    return [
        HistoryEntry(
            revision=str(row.get("revision") or ""),
            time=str(row.get("time") or ""),
            result=str(row.get("result") or ""),
            message=str(row.get("message") or ""),
            counts=row,
            is_current=row is current,
        )
        for row in rows
    ]


def _rows(live: Manifest) -> Sequence[Manifest]:
    return maps_in(map_at(live, "status").get("history"))


async def with_commits(session: Session, live: Manifest, entries: list[HistoryEntry]) -> tuple[list[HistoryEntry], str]:
    """Return *entries* with their commits, fetched where they are missing here, and why git could not tell, if so.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    sync = Sync.of(live)
    if sync.git is None:
        return entries, ""
    try:
        source = await source_of(session, sync, sync.git)
        commits, why = await in_thread(_commits, source, [entry.revision for entry in entries])
    except SourceError as error:
        return entries, str(error)
    return [replace(entry, commit=commits.get(entry.revision)) for entry in entries], why


def _commits(source: GitSource, shas: list[str]) -> tuple[dict[str, Commit], str]:
    found, why = {sha: commit for sha in shas if (commit := source.commit(sha))}, ""
    if len(found) < len(set(shas)):
        try:
            source.fetch()
        except SourceError as error:
            why = str(error)
        found = {sha: commit for sha in shas if (commit := source.commit(sha))}
    return found, why


async def resolve(session: Session, live: Manifest, text: str) -> str:
    """Return the full hash of the commit that *text* means; without a text, of the one to go back to.

    That is the last that went well and asked for other objects than what was tried last.
    A text is the first digits of a commit, of the history or of what the Sync follows, or a branch or tag.

    Raises:
        SourceError: there is no such commit, or the repository can't be read.
        SyncSpecError: the Sync follows nothing.
        ApiError: the server refuses, or doesn't answer.
    """
    sync, git = _followed(live)
    entries = entries_of(live)
    if not text:
        return _previous(live)
    known = {entry.revision for entry in entries if entry.revision.startswith(text)}
    if len(known) == 1 and len(text) >= 4:
        return known.pop()
    source = await source_of(session, sync, git)
    if found := await in_thread(_found, source, text):
        return found
    named = GitSource(source.repository, Ref(name=text), cache_dir=session.cache_dir / "git", limits=session.git_limits)
    return await in_thread(named.fetch)


def _found(source: GitSource, text: str) -> str:
    """Return the commit that begins so, fetching what the Sync follows if it isn't known yet."""
    found = source.resolve(text)
    if not found:
        source.fetch()
        found = source.resolve(text)
    return found


def _previous(live: Manifest) -> str:
    if (row := history.previous_of(_rows(live))) is not None:
        return str(row["revision"])
    name = live["metadata"]["name"]
    hint = f"name a commit with --to; kubectl reconcile history {name} lists what was applied"
    raise SourceError(
        SourceFault.NO_SUCH_REF,
        f"{name} hasn't applied any other state before, so there is nothing to roll back to",
        hint,
    )


async def target_at(session: Session, live: Manifest, sha: str) -> Target:
    """Return the target of a Sync as if it were pinned to the commit *sha*.

    Raises:
        SourceError: the repository can't be used.
        SyncSpecError: the Sync follows nothing.
        ApiError: the server refuses, or doesn't answer.
    """
    sync, git = _followed(live)
    pinned = replace(git, branch="", tag="", commit=sha)
    source = await source_of(session, sync, pinned)
    return Target(replace(sync, git=pinned), source, parent=live, reader=session.reader())


async def restore(session: Session, live: Manifest, sha: str) -> tuple[str, str]:
    """Take the Sync's path on its branch back to *sha* by a new commit; return that, "" if none was needed, and the branch.

    Raises:
        SourceError: it follows no branch, or the repository can't be read or pushed to.
        SyncSpecError: the Sync follows nothing.
    """
    sync, git = _followed(live)
    ref = suspend_resume.followed_before(live) if suspend_resume.is_pinned(live) else suspend_resume.ref_of(live)
    if ref.get("tag") or ref.get("commit"):
        message = f"{sync.name} follows {suspend_resume.ref_text(ref)}, which a new commit doesn't change"
        raise SourceError(SourceFault.REFUSED, message, "roll back without --commit, or have the Sync follow a branch")
    work = RestoreCommit(git.url, ref.get("branch", ""), git.path, sha, signed=git.verify is not None)
    return await in_thread(work.commit, _message(sync, git, sha), session.cache_dir / "git")


def _message(sync: Sync, git: GitSpec, sha: str) -> str:
    path = "everything" if git.path in {"", "."} else git.path
    return (
        f"Take {path} back to {sha[:7]}\n\n"
        f"Restores what commit {sha} held, for Sync {sync.namespace}/{sync.name}.\n"
        "Made by kubectl reconcile rollback --commit.\n"
    )


def _followed(live: Manifest) -> tuple[Sync, GitSpec]:
    sync = Sync.of(live)
    if sync.git is None:
        raise SyncSpecError("spec.source", f"Sync {sync.namespace}/{sync.name} follows no repository")
    return sync, sync.git
