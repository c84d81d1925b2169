"""What a document is: a Struct whose fields say what they mean, from which come its JSON and its JSON Schema.

Names are camelCase in JSON; a field that is unset is left out.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kubectl_reconcile.core.manifests.revision import Commit
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.views.text import Tone

_T = TypeVar("_T")

Count = Annotated[int, Meta(ge=0)]


def about(description: str) -> Meta:
    """Return what a field means, for its schema."""
    return Meta(description=description)


def among(words: Iterable[str], description: str = "") -> Meta:
    """Return what a text means that is one of some words."""
    return Meta(description=description or None, extra_json_schema={"enum": list(words)})


class Document(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Something that is shown, as programs get it."""


class ObjectName(Document, frozen=True, kw_only=True):
    """Which object it is."""

    group: Annotated[str, about("Its API group; empty for the core group.")]
    kind: Annotated[str, about("Its kind.")]
    namespace: Annotated[str, about("Its namespace; empty for an object of the whole cluster.")]
    name: Annotated[str, about("Its name.")]

    @classmethod
    def of(cls, ref: ObjectRef) -> ObjectName:
        """Return the name of an object."""
        return cls(group=ref.group, kind=ref.kind, namespace=ref.namespace, name=ref.name)


class SyncName(Document, frozen=True, kw_only=True):
    """Which Sync it is."""

    namespace: Annotated[str, about("Its namespace.")]
    name: Annotated[str, about("Its name.")]

    @classmethod
    def of(cls, ref: ObjectRef | None) -> SyncName | None:
        """Return the name of a Sync, if it is one."""
        return None if ref is None else cls(namespace=ref.namespace, name=ref.name)


class CommitDocument(Document, frozen=True, kw_only=True):
    """A commit."""

    sha: str
    author: str
    committed_at: Time
    subject: Annotated[str, about("The first line of its message.")]

    @classmethod
    def of(cls, commit: Commit) -> CommitDocument:
        """Return a commit as it is shown."""
        return cls(sha=commit.sha, author=commit.author, committed_at=commit.committed_at, subject=commit.subject)


Grade = Annotated[str, among(("good", "warn", "bad", "plain"), "How to colour it: never the only sign.")]
Link = Annotated[str, about("The link at GitHub, GitLab, Gitea or Forgejo; empty if there is none.")]
Time = Annotated[str, about("RFC 3339; empty if unknown.")]


_GRADES = {Tone.GOOD: "good", Tone.WARNING: "warn", Tone.BAD: "bad"}


def grade_of(tone: Tone) -> str:
    """Return what programs call a tone."""
    return _GRADES.get(tone, "plain")


def given(value: _T | None) -> _T | UnsetType:
    """Return a value, unset where it says nothing."""
    return value or UNSET


def plain(document: Any) -> Any:
    """Return a document, or a tree with documents in it, as plain JSON."""
    return msgspec.to_builtins(document, enc_hook=_plain)


def _plain(value: Any) -> Any:
    """Return a value as the plain kind that it is of; what JSON knows nothing of as text."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return dict(value) if isinstance(value, Mapping) else str(value)
