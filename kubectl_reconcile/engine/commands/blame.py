"""Which commit changed a field: the history of its file, read value by value.

Vocabulary: the *versions* of a file are what it held after each commit that touched it, the newest first. A field
was changed by the newest commit before which its value was another.

Looked at only when somebody wants to know, and only for the files of what is shown: a walk costs two git
commands a file, whatever the number of fields. A source without history, such as a folder, has nothing to tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Commit, History
from kubectl_reconcile.core.objects import FieldPath, Manifest, ObjectRef, map_at
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.ssa.lookup import value_at
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.core.ssa.typed import ABSENT
from kubectl_reconcile.core.ssa.values import same
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.running.threads import in_thread

_MOST_VERSIONS = 200
"""How far back a file is read; a field that hasn't changed since is older than anybody asks for."""


class Version(Struct, frozen=True):
    """What a commit made of one object; *manifest* is None where the file didn't hold it, *line* where it began."""

    commit: Commit
    manifest: Manifest | None
    line: int = 0


async def with_commits(target: Target, made: Plan) -> Plan:
    """Return *made* with the commit and its author at each field of a member that Git changed since it was applied last.

    Costs nothing where nothing of the kind is in the plan. What is rendered is left out: its files don't hold it as it is.
    """
    history = target.source.history
    asked = [change for change in made.changes if _is_asked(change)]
    if not asked or history is None:
        return made
    applied = str(map_at(target.parent or {}, "status").get("lastAppliedRevision") or "")
    known = await in_thread(_explained, history, target, made.revision, applied, asked)
    return made.with_changes(known.get(change.ref, change) for change in made.changes)


def _is_asked(change: Change) -> bool:
    about_git = any(field.reason in {Reason.GIT, Reason.BOTH} for field in change.fields)
    is_in_file = change.provenance.file and change.provenance.line >= 0
    return bool(change.op in {Op.UPDATE, Op.REPLACE} and not change.provenance.owner and is_in_file and about_git)


def _explained(
    history: History, target: Target, revision: str, applied: str, asked: Iterable[Change]
) -> dict[ObjectRef, Change]:
    by_file: dict[str, list[Change]] = defaultdict(list)
    for change in asked:
        by_file[change.provenance.file].append(change)
    found, namespace = {}, target.sync.default_namespace
    for file, changes in by_file.items():
        refs = [change.ref for change in changes]
        lives = lives_of(history, file, revision, refs, namespace, reader=target.reader, since=applied)
        found.update({change.ref: _with_commits(change, lives[change.ref]) for change in changes})
    return found


def _with_commits(change: Change, life: Sequence[Version]) -> Change:
    if change.kind is None:
        return change
    schema = change.kind.schema
    return replace(change, fields=tuple(_with_commit(field, life, schema) for field in change.fields))


def _with_commit(field: FieldChange, life: Sequence[Version], schema: Schema) -> FieldChange:
    if field.reason not in {Reason.GIT, Reason.BOTH}:
        return field
    commit = who_changed(life, field.path, schema)
    return replace(field, commit=commit.sha, author=commit.author) if commit else field


def lives_of(
    history: History,
    file: str,
    sha: str,
    refs: Iterable[ObjectRef],
    namespace: str,
    *,
    reader: ManifestReader,
    since: str = "",
) -> dict[ObjectRef, list[Version]]:
    """Return what each commit up to *sha* made of the objects *refs* in *file*, newest first.

    With *since*, the last version is that commit's: what was there before all the others. Blocks while git is asked.
    """
    commits = list(history.commits_touching(file, sha, since=since, limit=_MOST_VERSIONS))
    before = [Commit(since, "", "", "")] if since else []
    wanted = [*commits, *before]
    lives: dict[ObjectRef, list[Version]] = {ref: [] for ref in refs}
    for commit, content in zip(wanted, history.versions(file, [each.sha for each in wanted]), strict=True):
        parsed = contents.manifests(content, file, reader.limits, reader.decryption).manifests if content else ()
        held = _held(parsed, namespace)
        for ref, life in lives.items():
            manifest, line = held.get(ref, (None, 0))
            life.append(Version(commit, manifest, line))
    return lives


def _held(there: Iterable[Located], namespace: str) -> Mapping[ObjectRef, tuple[Manifest, int]]:
    """Return the objects of a file by reference, with and without the namespace that they get if they name none."""
    found: dict[ObjectRef, tuple[Manifest, int]] = {}
    for located in there:
        ref = located.ref
        found.setdefault(ref, (located.manifest, located.line))
        found.setdefault(ref._replace(namespace=ref.namespace or namespace), (located.manifest, located.line))
    return found


def who_changed(life: Sequence[Version], path: FieldPath, schema: Schema) -> Commit | None:
    """Return the commit that made the field at *path* what it is in the newest version, None where that is older."""
    values = [ABSENT if each.manifest is None else value_at(each.manifest, path, schema.root) for each in life]
    for at, value in enumerate(values[1:]):
        if not _alike(value, values[0]):
            return life[at].commit
    reaches_back = 0 < len(life) < _MOST_VERSIONS and bool(life[-1].commit.committed_at)
    return life[-1].commit if reaches_back and values[0] is not ABSENT else None


def _alike(one: object, other: object) -> bool:
    return one is other or (one is not ABSENT and other is not ABSENT and same(one, other))
