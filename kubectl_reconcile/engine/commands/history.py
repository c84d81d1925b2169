"""What a Sync has applied before, and how it comes back to that.

Vocabulary: an *entry* is one row of ``status.history``: a revision that changed the objects, when it was applied and how that went, with its
commit where there is one that the clone has. A *state* to go back to is a revision, and for a chart what the Sync itself said of it then: its version and
its values may be in no commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Commit
from kubectl_reconcile.core.objects import Manifest, map_at, maps_in
from kubectl_reconcile.core.resources import history
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.source import SourceSpec
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.revisions import is_packed, short_of
from kubectl_reconcile.engine.commands import suspend_resume
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.targets import source_at, source_of, target_of
from kubectl_reconcile.source.base import Commits
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.restore import RestoreCommit
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
    if sync.source is None:
        return entries, ""
    try:
        source = (await source_of(session, sync, sync.source)).commits
        if source is None:
            return entries, ""
        commits, why = await in_thread(_commits, source, [entry.revision for entry in entries])
    except SourceError as error:
        return entries, str(error)
    return [replace(entry, commit=commits.get(entry.revision)) for entry in entries], why


def _commits(source: Commits, shas: list[str]) -> tuple[dict[str, Commit], str]:
    found, why = {sha: commit for sha in shas if (commit := source.commit(sha))}, ""
    if len(found) < len(set(shas)):
        try:
            source.fetch()
        except SourceError as error:
            why = str(error)
        found = {sha: commit for sha in shas if (commit := source.commit(sha))}
    return found, why


class EarlierState(Struct, frozen=True):
    """What to go back to: a revision, and what the Sync said of its chart then, None where that is what it says now."""

    revision: str
    helm: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, row: Manifest, live: Manifest) -> Self:
        """Return the state of a row of the history of *live*.

        Raises:
            SourceError: what the Sync said of its chart then isn't known any more.
            SyncSpecError: the Sync follows nothing.
        """
        _, spec = _followed(live)
        revision = str(row["revision"])
        if not history.is_of_other_settings(row, spec.told()):
            return cls(revision)
        if "helm" in row:
            return cls(revision, row["helm"])
        message = f"{live['metadata']['name']} had other settings of its chart then, which are longer than what its history keeps"
        raise SourceError(
            SourceFault.REFUSED,
            message,
            "set spec.source.chart and spec.source.helm of the Sync as they were, and sync",
        )

    def __str__(self) -> str:
        """Return it as people say it."""
        chart = (self.helm or {}).get("chart") or {}
        said = f", chart {chart['name']} {chart['version']}" if chart else ", with the settings of its chart of then"
        return f"{short_of(self.revision)}{said if self.helm is not None and not is_packed(self.revision) else ''}"


async def resolve(session: Session, live: Manifest, text: str) -> EarlierState:
    """Return the state that *text* means; without a text, the one to go back to.

    That is the last that went well and asked for other objects than what was tried last.
    A text is the first digits of a commit, of the history or of what the Sync follows, a branch or tag, or a version of the chart that the history has.

    Raises:
        SourceError: there is no such commit, or the repository can't be read.
        SyncSpecError: the Sync follows nothing.
        ApiError: the server refuses, or doesn't answer.
    """
    sync, spec = _followed(live)
    if not text:
        return EarlierState.of(_previous(live), live)
    if row := _row_called(live, text):
        return EarlierState.of(row, live)
    source = (await source_of(session, sync, spec)).commits
    if source is None:
        hint = f"kubectl reconcile history {sync.name} lists what it has; any other version is set in spec.source.chart"
        raise SourceError(SourceFault.NO_SUCH_REF, f"the history of {sync.name} has no {text}", hint)
    if found := await in_thread(_found, source, text):
        return EarlierState(found)
    named = (await source_at(session, sync, spec, text)).commits or source
    return EarlierState(await in_thread(named.fetch))


def _row_called(live: Manifest, text: str) -> Manifest | None:
    """Return the newest row of the history that *text* means, one of another state than the newest where there is one; None where it means several commits, or none."""
    rows = _rows(live)
    of_chart = [
        row
        for row in rows
        if text in {row.get("chart"), str(row.get("chart") or "").partition(" ")[2]} and row.get("chart")
    ]
    of_commit = [row for row in rows if len(text) >= _LEAST_DIGITS and str(row.get("revision") or "").startswith(text)]
    if not of_chart and len({row["revision"] for row in of_commit}) != 1:
        return None
    found = of_chart or of_commit
    return next((row for row in found if not history.is_same_state(row, rows[0])), found[0])


_LEAST_DIGITS: Final = 4


def _found(source: Commits, text: str) -> str:
    """Return the commit that begins so, fetching what the Sync follows if it isn't known yet."""
    found = source.resolve(text)
    if not found:
        source.fetch()
        found = source.resolve(text)
    return found


def _previous(live: Manifest) -> Manifest:
    if (row := history.previous_of(_rows(live))) is not None:
        return row
    name = live["metadata"]["name"]
    hint = f"name a commit with --to; kubectl reconcile history {name} lists what was applied"
    raise SourceError(
        SourceFault.NO_SUCH_REF,
        f"{name} hasn't applied any other state before, so there is nothing to roll back to",
        hint,
    )


async def target_at(session: Session, live: Manifest, state: EarlierState) -> Target:
    """Return the target of a Sync as if it were pinned to *state*.

    Raises:
        SourceError: the repository can't be used.
        SyncSpecError: the Sync follows nothing.
        ApiError: the server refuses, or doesn't answer.
    """
    _followed(live)
    spec = map_at(live, "spec")
    source = dict(spec["source"])
    for place, fields in suspend_resume.patch_of_ref(live, suspend_resume.ref_at(live, state.revision)).items():
        source[place] = {name: value for name, value in {**source[place], **fields}.items() if value is not None}
    if state.helm is not None:
        source |= suspend_resume.settings_as_written(live, state.helm)
    sync, pinned = _followed({**live, "spec": {**spec, "source": source}})
    return await target_of(session, sync, await source_of(session, sync, pinned), live)


async def restore(session: Session, live: Manifest, state: EarlierState) -> tuple[str, str]:
    """Take the Sync's path on its branch back to *state* by a new commit; return that, "" if none was needed, and the branch.

    Raises:
        SourceError: it follows no branch, or the repository can't be read or pushed to.
        SyncSpecError: the Sync follows nothing.
    """
    sync, spec = _followed(live)
    if spec.git is None:
        message = f"{sync.name} follows no Git repository, so there is nothing to commit to"
        raise SourceError(
            SourceFault.REFUSED, message, "roll back without --commit, or change the Sync where it comes from"
        )
    sha = state.revision
    if state.helm is not None:
        message = f"{sync.name} said something else of its chart then (spec.source.chart and helm), which no commit to its repository changes"
        raise SourceError(
            SourceFault.REFUSED, message, "roll back without --commit, or change the Sync where it comes from"
        )
    ref = suspend_resume.followed_before(live) if suspend_resume.is_pinned(live) else suspend_resume.ref_of(live)
    if ref.get("tag") or ref.get("semver") or ref.get("commit"):
        message = f"{sync.name} follows {suspend_resume.ref_text(ref)}, which a new commit doesn't change"
        raise SourceError(SourceFault.REFUSED, message, "roll back without --commit, or have the Sync follow a branch")
    work = RestoreCommit(spec.git.url, ref.get("branch", ""), spec.path, sha, signed=spec.git.verify is not None)
    return await in_thread(work.commit, _message(sync, spec.path, sha), session.cache_dir / "git")


def _message(sync: Sync, followed: str, sha: str) -> str:
    path = "everything" if followed in {"", "."} else followed
    return (
        f"Take {path} back to {sha[:7]}\n\n"
        f"Restores what commit {sha} held, for Sync {sync.namespace}/{sync.name}.\n"
        "Made by kubectl reconcile rollback --commit.\n"
    )


def _followed(live: Manifest) -> tuple[Sync, SourceSpec]:
    sync = Sync.of(live)
    if sync.source is None:
        raise SyncSpecError("spec.source", f"Sync {sync.namespace}/{sync.name} follows no repository")
    return sync, sync.source
