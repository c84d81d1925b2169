"""Who owns each field of a live object, who asked for it, and whether it is drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.objects import Manifest, ObjectRef, controller_of
from kubectl_reconcile.core.planning.outlook.explain import ExplainedField, FieldState, outlook
from kubectl_reconcile.core.rendering.origins import FieldLine
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.core.ssa.typed import ABSENT
from kubectl_reconcile.engine.commands import explain, owner_tree
from kubectl_reconcile.engine.commands.explain import Explanation, FieldOrigin
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.views.document import CommitDocument, Document, ObjectName, SyncName, about, among, given
from kubectl_reconcile.views.masking import HIDDEN, hides_field, masked_live, without_texts
from kubectl_reconcile.views.yamltext import dump

_MOST_LINES = 20_000
_UNSHOWN = "not shown: the object may contain values of Secrets, and the Sync's source can't be read to find them"


class OwnerDocument(Document, frozen=True, kw_only=True):
    """Who owns a field."""

    manager: str
    operation: str
    subresource: str
    time: str


class BaseDocument(Document, frozen=True, kw_only=True):
    """Where a field has the value from that an overlay replaces."""

    file: str
    line: int
    by: str


class FieldDocument(Document, frozen=True, kw_only=True):
    """One field of an object."""

    path: str
    state: Annotated[str, about("same, git, drift and so on.")]
    live: Annotated[Any, about("Its value; unset if there is none.")] = UNSET
    wanted: Annotated[Any, about("What is asked for; unset if nobody asks for it, or it isn't known.")] = UNSET
    applied: Annotated[Any, about("What was applied last, where the desired state isn't known.")] = UNSET
    owners: list[OwnerDocument]
    line: int | UnsetType = UNSET
    file: str | UnsetType = UNSET
    by: Annotated[str | UnsetType, about("What rendered it.")] = UNSET
    entry: str | UnsetType = UNSET
    base: BaseDocument | UnsetType = UNSET
    commit: CommitDocument | UnsetType = UNSET
    verdict: Annotated[str, about("What the next sync does with it.")]


class ExplanationDocument(Document, frozen=True, kw_only=True):
    """One live object, and who set each of its fields."""

    object: ObjectName
    asker: Annotated[str, about("Who wants it: a Sync, a module, or nobody.")]
    unread: Annotated[str | UnsetType, about("Why the desired state isn't known.")] = UNSET
    file: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    commit: CommitDocument | UnsetType = UNSET
    made: Annotated[
        CommitDocument | UnsetType,
        about(
            "What the artifact was made of, as whoever pushed it says: the revision as subject, where that is as author."
        ),
    ] = UNSET
    verification: Annotated[
        dict[str, Any] | UnsetType, about("Who signed its revision, and the result of the verification.")
    ] = UNSET
    fields: list[FieldDocument]


class ExplainedObjectDocument(ExplanationDocument, frozen=True, kw_only=True):
    """One live object, how it is, and who set each of its fields. Values of Secrets are hidden."""

    health: Annotated[str, among((each.value for each in HealthStatus), "The verdict in kstatus' words.")]
    message: Annotated[str, about("Why it is so; empty if there is nothing to say.")]
    sync: Annotated[SyncName | UnsetType, about("The Sync that it belongs to.")] = UNSET
    owner: Annotated[ObjectName | UnsetType, about("The object that made it.")] = UNSET
    trouble: Annotated[str, about("What isn't known, and why; empty if everything is known.")]
    live: Annotated[
        list[str],
        about("The object in YAML, line by line; empty if it may contain values of Secrets that can't be found."),
    ]
    left_out: Annotated[int, about("How many more lines it has.")]


def document(found: Explanation, *, show_secrets: bool = False) -> ExplanationDocument:
    """Return an explanation; without values of Secrets, unless they are to be shown."""
    return ExplanationDocument(**_explained(found, show_secrets=show_secrets))


async def of_object(session: Session, live: Manifest) -> ExplainedObjectDocument:
    """Return one object as it is, and who asked for each of its fields.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    found = await explain.explain_live(session, live)
    shown = masked_live(live, found.facts.change, found.secrets)
    metadata = {key: value for key, value in shown["metadata"].items() if key != "managedFields"}
    health = owner_tree.health_of(session, live, found.sync)
    owner = controller_of(live)
    lines = [] if found.may_hold_secrets else dump({**shown, "metadata": metadata})
    return ExplainedObjectDocument(
        **_explained(found, show_secrets=False),
        health=health.status.value,
        message=without_texts(health.message, found.secrets) if not found.may_hold_secrets else "",
        sync=given(SyncName.of(ObjectRef.of(found.sync) if found.sync is not None else None)),
        owner=_owner(owner, found.ref.namespace) if owner else UNSET,
        trouble="; ".join(filter(None, [found.trouble, _UNSHOWN if found.may_hold_secrets else ""])),
        live=lines[:_MOST_LINES],
        left_out=max(len(lines) - _MOST_LINES, 0),
    )


def _owner(reference: Mapping[str, Any], namespace: str) -> ObjectName:
    """Return the controller of an object, which is in the same namespace, or in none."""
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    return ObjectName(group=group, kind=kind, namespace=namespace, name=name)


def is_hidden(found: Explanation, path: tuple[str, ...]) -> bool:
    """Tell whether what stands at *path* may be the value of a Secret, or a tool's copy of one."""
    facts = found.facts
    tree = facts.manifest or facts.live
    return found.may_hold_secrets or hides_field(found.ref.kind, path, facts.change, tree)


def _explained(found: Explanation, *, show_secrets: bool) -> dict[str, Any]:
    return {
        "object": ObjectName.of(found.ref),
        "asker": found.asker,
        "unread": given(found.facts.unread),
        "file": given(found.file),
        "line": found.line if found.file and found.line > 0 else UNSET,
        "commit": CommitDocument.of(found.commit) if found.commit else UNSET,
        "made": CommitDocument.of(found.made) if found.made else UNSET,
        "verification": _verification(found.verification) if found.verification else UNSET,
        "fields": [_field(each, found, show_secrets=show_secrets) for each in found.fields],
    }


def _field(each: ExplainedField, found: Explanation, *, show_secrets: bool) -> FieldDocument:
    origin = found.origins.get(each.path)
    hidden = not show_secrets and is_hidden(found, each.path)

    def shown(value: Any) -> Any:
        if value is ABSENT:
            return UNSET
        return HIDDEN if hidden else value if show_secrets else without_texts(value, found.secrets)

    return FieldDocument(
        path=str(each.path),
        state=each.standing.value,
        live=shown(each.live),
        wanted=shown(each.wanted),
        applied=shown(each.live if each.standing is FieldState.APPLIED else ABSENT),
        owners=[
            OwnerDocument(manager=one.manager, operation=one.operation, subresource=one.subresource, time=one.time)
            for one in each.owners
        ],
        line=origin.line if origin and origin.line > 0 else UNSET,
        **_rendered(origin),
        commit=CommitDocument.of(origin.commit) if origin and origin.commit else UNSET,
        verdict=outlook(each, found.facts),
    )


def _rendered(origin: FieldOrigin | None) -> dict[str, Any]:
    """Return what an overlay or a chart says of a field."""
    if origin is None or origin.rendered is None:
        return {}
    at, base = origin.rendered.at, origin.rendered.base
    below = UNSET if base is None else _base(base)
    return {"file": at.file, "by": at.by.value, "entry": given(at.entry), "base": below}


def _base(base: FieldLine) -> BaseDocument:
    return BaseDocument(file=base.file, line=base.line, by=base.by.value)


def _verification(verification: Verification) -> dict[str, Any]:
    condition = verification.condition()
    return {
        **verification.status(),
        "verified": not verification.is_refused,
        "reason": condition.reason,
        "message": condition.message,
    }
