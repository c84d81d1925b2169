"""What belongs to a Sync, or to one object, with its health: a tree, down to the pods."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.resources.applyset import is_marked_by_us
from kubectl_reconcile.engine.commands import owner_tree
from kubectl_reconcile.engine.commands.owner_tree import OwnedObject
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.views.document import Document, Time, about, among, given


class NodeDocument(Document, frozen=True, kw_only=True):
    """An object, and what it owns."""

    api_version: str
    kind: str
    namespace: str | UnsetType = UNSET
    name: str
    uid: str | UnsetType = UNSET
    created_at: Time | UnsetType = UNSET
    health: Annotated[str, among((each.value for each in HealthStatus), "The verdict in kstatus' words.")]
    message: str | UnsetType = UNSET
    source: Annotated[str | UnsetType, about("The file with the object.")] = UNSET
    children: list[NodeDocument]


class TreeDocument(Document, frozen=True, kw_only=True):
    """What belongs to a Sync, down to the pods, and what of it may not be seen."""

    root: NodeDocument
    unseen: Annotated[list[str], about("Kinds that you may not list.")]


async def of_sync(session: Session, live: Manifest) -> TreeDocument:
    """Return what belongs to a Sync, as far as *session* may see it.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    found = await owner_tree.of_sync(session, live)
    return TreeDocument(root=document(found.root), unseen=[str(kind) for kind in found.unseen])


def document(relative: OwnedObject) -> NodeDocument:
    """Return an object with what it owns."""
    metadata, verdict = relative.manifest["metadata"], relative.health
    return NodeDocument(
        api_version=relative.manifest["apiVersion"],
        kind=relative.manifest["kind"],
        namespace=given(relative.ref.namespace),
        name=relative.ref.name,
        uid=given(metadata.get("uid", "")),
        created_at=given(metadata.get("creationTimestamp", "")),
        health=verdict.status.value,
        message=given(verdict.message),
        source=given(source_of(relative)),
        children=[document(child) for child in relative.children],
    )


def source_of(relative: OwnedObject) -> str:
    """Return the file that asked for a member; controllers copy annotations to what isn't one."""
    return MemberOptions.of(relative.manifest).source if is_marked_by_us(relative.manifest) else ""
