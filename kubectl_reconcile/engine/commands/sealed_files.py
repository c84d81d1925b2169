"""What changed in files of SOPS that nobody here has a key for, since they were applied last."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_reconcile.core.manifests.sealed_changes import sealed_change
from kubectl_reconcile.core.objects import Problem, Severity, map_at
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.running.threads import in_thread

_SHORT = 7


async def with_changes(target: Target, made: Plan) -> Plan:
    """Return *made* with a warning for each file that couldn't be decrypted, which tells the keys in it that aren't what they were in the commit that was applied last."""
    applied = str(map_at(target.parent or {}, "status").get("lastAppliedRevision") or "")
    if not applied or target.source.past is None:
        return made
    found = await in_thread(lambda: tuple(_changes(target, applied)))
    return replace(made, problems=(*made.problems, *found))


def _changes(target: Target, applied: str) -> Iterator[Problem]:
    past, revision = target.source.past, target.source.revision()
    for path in target.reader.unread():
        try:
            after = target.source.read(revision.files[path])
            before = past.read_at(applied, path) if past else None
        except (SourceError, KeyError):
            continue
        if change := str(sealed_change(before or b"", after, path)):
            said = f"since {applied[:_SHORT]}, as far as it shows without the key: {change}"
            yield Problem(path, 0, said, severity=Severity.WARNING)
