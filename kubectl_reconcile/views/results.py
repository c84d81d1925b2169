"""What a sync did: how it ended, and each change with its result.

Pure: results in, documents out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.resources.status import Report
from kubectl_reconcile.views.document import Document, ObjectName, SyncName, about, among, given


class ResultDocument(Document, frozen=True, kw_only=True):
    """What happened to one object."""

    op: Annotated[str, among(each.value for each in Op)]
    object: ObjectName
    state: Annotated[str, among(each.value for each in ResultState)]
    wrote: Annotated[bool, about("Something was written.")]
    error: Annotated[str | UnsetType, about("Why it failed, or was skipped.")] = UNSET
    file: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET


class SyncResultDocument(Document, frozen=True, kw_only=True):
    """What a sync did, versioned."""

    api_version: Literal["reconcile.dev/v1alpha1"]
    kind: Literal["SyncResult"]
    sync: Annotated[SyncName | None, about("The Sync; null outside any.")]
    revision: Annotated[str, about("The commit, or `worktree-` and a digest for a folder.")]
    result: Annotated[str, about("How it ended, in a word.")]
    message: Annotated[str, about("The same as a sentence.")]
    results: list[ResultDocument]
    problems: Annotated[list[str], about("What is wrong in the source, or with an object.")]
    warnings: list[str]
    held: Annotated[list[str], about("What waits for approval, and why.")]


def document(plan: Plan, report: Report, results: Sequence[Result]) -> SyncResultDocument:
    """Return what a sync did: how it ended, the counts, each change with its result."""
    return SyncResultDocument(
        api_version="reconcile.dev/v1alpha1",
        kind="SyncResult",
        sync=SyncName.of(plan.sync),
        revision=plan.revision,
        result=report.ending.value,
        message=report.sentence,
        results=[_result(each) for each in results],
        problems=[str(problem) for problem in plan.errors],
        warnings=list(report.warnings),
        held=[hold.message for hold in plan.holds],
    )


def _result(result: Result) -> ResultDocument:
    change = result.change
    return ResultDocument(
        op=change.op.value,
        object=ObjectName.of(change.ref),
        state=result.state.value,
        wrote=result.wrote,
        error=given(result.error),
        file=given(change.provenance.file),
        line=given(max(change.provenance.line, 0)),
        duration_ms=given(round(result.duration_ms)),
    )
