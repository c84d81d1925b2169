"""Keeps the values of Secrets off screens, out of pipes and out of plan files.

A value is shown as ``***``, and as ``*** (changed)`` where it becomes another; not even its length
shows. That holds for ``data`` and ``stringData``, for annotations, since tools keep copies of the object in those (``kubectl apply``,
kapp, and who knows who else), and for the same values where single fields are listed. Our own annotations hold no values.

So are values of Secrets that variables brought into other objects, and what stood in their place.

Objects of a kind called Secret are masked whatever their group: a lookalike costs nothing, a leak does.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_reconcile.core.objects import Manifest, map_at
from kubectl_reconcile.core.planning.plan import Change
from kubectl_reconcile.core.redaction import is_ours
from kubectl_reconcile.core.rendering.sealed import is_name_of_file
from kubectl_reconcile.core.rendering.unstable import DRAWN_LATER, hidden, values_at
from kubectl_reconcile.core.rendering.uses import hiding, hiding_at, texts_of, uses_at
from kubectl_reconcile.core.ssa.merge import FieldChange, FieldConflict

HIDDEN = "***"
CHANGED = "*** (changed)"

_VALUES = ("data", "stringData")
_VALUE_FIELDS = frozenset(f"f:{name}" for name in _VALUES)
_NOTES = ("f:metadata", "f:annotations")


def masked(change: Change) -> Change:
    """Return *change* without values of Secrets, nor any that is drawn when it is applied; changes that have none come back as they are."""
    shown = _without_values(change) if change.ref.kind == "Secret" else _without_variables(change)
    return _with_placeholders(shown, change) if change.provenance.drawn else shown


def masked_live(manifest: Manifest, change: Change | None = None, texts: Collection[str] = ()) -> Manifest:
    """Return a live object without values of Secrets: its own where it is one, *texts*, and what variables brought where *change* is of it."""
    if manifest.get("kind") == "Secret":
        return _manifest(manifest, None) or {}
    shown = manifest if change is None or change.before is None else masked(change).before or {}
    return dict(hiding(shown, texts, HIDDEN))


def hides_field(kind: str, path: tuple[str, ...], change: Change | None, tree: Manifest) -> bool:
    """Tell whether what stands at *path* of an object of that *kind* may be the value of a Secret, or a tool's copy of one.

    What variables brought is known where *change* is of the object; *tree* is what it is asked to be.
    """
    if kind == "Secret":
        return path[0] in _VALUE_FIELDS or path[:2] == _NOTES
    uses = [use for use in change.provenance.uses if use.secret] if change else []
    return bool(uses_at(uses, path, tree))


def without_texts(value: Any, texts: Collection[str]) -> Any:
    """Return a value without *texts*, which variables brought from Secrets."""
    return hiding(value, texts, HIDDEN)


def _without_values(change: Change) -> Change:
    return replace(
        change,
        before=_manifest(change.before, None),
        after=_manifest(change.after, change.before),
        intent=_manifest(change.intent, change.before),
        fields=tuple(map(_field, change.fields)),
        conflicts=tuple(map(_conflict, change.conflicts)),
    )


def _without_variables(change: Change) -> Change:
    """Hide what variables and encrypted files brought: by its text wherever it stands, and what it replaces by the place.

    What an encrypted file doesn't have any more may have been encrypted in it.
    """
    uses = [use for use in change.provenance.uses if use.secret]
    if not uses:
        return change
    texts, tree = texts_of(uses), change.after if change.after is not None else change.intent
    sealed = any(is_name_of_file(name) for use in uses for name in use.names)
    paths = [each.path for each in change.fields if uses_at(uses, each.path, tree) or (sealed and each.after is None)]
    before = hiding_at(hiding(change.before, texts, HIDDEN), paths, HIDDEN)
    return replace(
        change,
        before=before,
        after=hiding(hiding_at(change.after, paths, HIDDEN if before is None else CHANGED), texts, HIDDEN),
        intent=hiding(change.intent, texts, HIDDEN),
        fields=tuple(_field_hidden(field) if field.path in paths else field for field in change.fields),
        conflicts=tuple(
            replace(each, live=HIDDEN, desired=CHANGED) if uses_at(uses, each.path, tree) else each
            for each in change.conflicts
        ),
    )


def _with_placeholders(shown: Change, change: Change) -> Change:
    """Return a change as it is *shown*, without what was drawn for it."""
    paths = change.provenance.drawn
    values = values_at(change.intent, paths)
    values += [base64.b64encode(value.encode()).decode() for value in values if isinstance(value, str)]
    fields = tuple(
        replace(each, after=DRAWN_LATER) if plain.after in values else each
        for each, plain in zip(shown.fields, change.fields, strict=True)
    )
    return replace(shown, after=hidden(shown.after, paths), intent=hidden(shown.intent, paths), fields=fields)


def _manifest(tree: Manifest | None, before: Manifest | None) -> Manifest | None:
    if tree is None:
        return None
    known = before or {}
    hidden = {name: _values(tree[name], known.get(name)) for name in _VALUES if name in tree}
    return {**tree, **hidden, **_metadata(tree, known)}


def _values(values: Any, before: Any) -> Any:
    """Mask every value of a map; a map that isn't one is masked whole, for who knows what was pasted there."""
    if not isinstance(values, Mapping):
        return _value(values, before)
    known = before if isinstance(before, Mapping) else {}
    return {key: _value(value, known.get(key)) for key, value in values.items()}


def _value(value: Any, before: Any) -> str:
    return CHANGED if before is not None and before != value else HIDDEN


def _metadata(tree: Manifest, before: Manifest) -> dict[str, Any]:
    """Mask the annotations, any of which may hold a copy of the object."""
    metadata = tree.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(annotations, Mapping):
        return {}
    earlier = map_at(before, "metadata", "annotations")
    shown = {name: _annotation(name, value, earlier.get(name)) for name, value in annotations.items()}
    return {"metadata": {**metadata, "annotations": shown}}


def _annotation(name: str, value: Any, before: Any) -> Any:
    return value if is_ours(name) else _value(value, before)


def _hides(path: Iterable[str]) -> bool:
    elements = tuple(path)
    if not elements or elements[0] in _VALUE_FIELDS:
        return True
    if elements[0] != "f:metadata":
        return False
    annotation = elements[2].removeprefix("f:") if len(elements) > 2 else ""
    return len(elements) < 3 or (elements[1] == "f:annotations" and not is_ours(annotation))


def _field(field: FieldChange) -> FieldChange:
    return _field_hidden(field) if _hides(field.path) else field


def _field_hidden(field: FieldChange) -> FieldChange:
    before = None if field.before is None else HIDDEN
    after = None if field.after is None else HIDDEN if before is None else CHANGED
    return replace(field, before=before, after=after)


def _conflict(conflict: FieldConflict) -> FieldConflict:
    return replace(conflict, live=HIDDEN, desired=CHANGED) if _hides(conflict.path) else conflict
