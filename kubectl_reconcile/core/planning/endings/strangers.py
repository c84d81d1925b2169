"""Who was never asked for: of the objects that carry the mark of a set's members, those that no revision that was applied has asked for.

The mark, and the note of the file that an object comes from, are claims that whoever may write the object can make. So the file is looked
at as it was in the revisions that the Sync says it has applied. In doubt an object isn't called a stranger: where a revision can't be read,
where a name with variables in it may have been its name, or where the spec by which it was read has changed since.

Pure: what the files held is looked up by whoever asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import Manifest, ObjectRef, mapping_of, maps_in, number_of

_MOST: Final = 12
"""So many revisions are looked at: those that the history has, and the newest."""
_VARIABLE: Final = re.compile(r"\${1,2}\{[^}]*\}")


def applied_revisions(parent: Manifest | None) -> tuple[str, ...]:
    """Return the revisions that a live Sync says it has applied or tried, newest first; none where its spec has changed since."""
    status = mapping_of((parent or {}).get("status"))
    if number_of(mapping_of((parent or {}).get("metadata")).get("generation")) != status.get("lastAttemptedGeneration"):
        return ()
    rows = (str(row.get("revision") or "") for row in maps_in(status.get("history")))
    named = (str(status.get(name) or "") for name in ("lastAppliedRevision", "lastAttemptedRevision"))
    return tuple(dict.fromkeys(filter(None, (*named, *rows))))[:_MOST]


def strangers(
    unasked: Mapping[ObjectRef, Manifest],
    revisions: Iterable[str],
    held: Callable[[str, str], Iterable[Located] | None],
    namespace: str,
) -> frozenset[ObjectRef]:
    """Return those of the *unasked* that no revision has asked for; none where there are no *revisions*.

    *held* returns what a file held in a revision, None where that isn't known; *namespace* is that of objects that name none.
    """
    left, is_known = dict(unasked), False
    for revision in revisions:
        is_known = True
        for ref, manifest in list(left.items()):
            found = held(revision, MemberOptions.of(manifest).source)
            if found is None or any(_may_be(each.ref, ref, namespace) for each in found):
                del left[ref]
    return frozenset(left) if is_known else frozenset()


def _may_be(asked: ObjectRef, ref: ObjectRef, namespace: str) -> bool:
    """Tell whether a manifest may have asked for *ref*; *namespace* is that of objects that name none."""
    is_there = not ref.namespace or _fits(
        asked.namespace or namespace, ref.namespace
    )  # of what is in none it is ignored
    return asked.group_kind == ref.group_kind and is_there and _fits(asked.name, ref.name)


def _fits(pattern: str, text: str) -> bool:
    """Tell whether *text* is a name, whatever the variables in it stand for."""
    first, *others = _VARIABLE.split(pattern)
    if not others:
        return pattern == text
    *middle, last = others
    at = len(first)
    for part in middle:
        if (found := text.find(part, at)) < 0:
            return False
        at = found + len(part)
    return text.startswith(first) and text.endswith(last) and at + len(last) <= len(text)
