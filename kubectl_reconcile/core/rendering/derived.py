"""What a chart made of Secrets, whatever it did with them: of those that it looked up, and of those that hold values for it.

A chart may spell a value in any way: reversed, in capitals, letter by letter, hashed. No look at what was rendered could find all of these. So such a
chart is rendered once more, with other values in the same Secrets. Where the two renderings differ, something of a Secret is: that is
marked, and shown to nobody.

Pure.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located, Parsed, Steps, VariableUse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, Problem, annotations_of
from kubectl_reconcile.core.redaction import is_ours
from kubectl_reconcile.core.rendering.lookups import Answers, one_of
from kubectl_reconcile.core.rendering.uses import without_secrets

_FROM, _TO = "abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm"
OTHERS: Final = str.maketrans(_FROM + _FROM.upper() + "0123456789", _TO + _TO.upper() + "5678901234")
"""Each letter and each digit, and another of its sort."""

_KIND_OF: Final = frozenset({"apiVersion", "kind"})
_NAME_OF: Final = frozenset({"name", "namespace"})
_UNSAID: Final = "what it says depends on the value of a Secret, and isn't shown"
_UNSHOWN: Final = (
    "names of objects, or of entries in them, depend on the value of a Secret, so a preview doesn't show these objects"
)
_SAY_LESS: Final = "make no name depend on the value of a Secret"
_UNTOLD: Final = "it can't be rendered with other values in its Secrets, so a preview can't tell which names depend on them, and doesn't show its objects"
_HOLD_LESS: Final = "let Secrets hold what is secret, and ConfigMaps or files all other values"


def altered(answers: Answers) -> Answers:
    """Return *answers* with other values in all Secrets, of the same sort as far as can be: letters for letters, digits for digits."""
    found = {asked: _altered(asked, text) if text else text for asked, text in answers.found.items()}
    return replace(answers, found=found)


def _altered(asked: str, text: str) -> str:
    tree = json.loads(text)
    if asked.endswith("/"):
        tree = {**tree, "items": [_other(each) for each in tree["items"]]}
    return json.dumps(_other(tree), sort_keys=True, separators=(",", ":"))


def _other(tree: Manifest) -> Manifest:
    """Return a Secret with other values; what is none stays."""
    if tree.get("kind") != "Secret":
        return tree
    metadata = dict(tree.get("metadata") or {})
    if notes := annotations_of(tree):
        metadata["annotations"] = {
            name: value if is_ours(name) else f"{value}".translate(OTHERS) for name, value in notes.items()
        }
    data = {name: _other_value(str(value)) for name, value in (tree.get("data") or {}).items()}
    return {**tree, "metadata": metadata, **({"data": data} if data else {})}


def _other_value(encoded: str) -> str:
    """Return another value for one in base64."""
    try:
        value = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return encoded.translate(OTHERS)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(bytes(255 - byte for byte in value) + b"\xff").decode()
    return base64.b64encode(other_text(text).encode()).decode()


def other_text(text: str) -> str:
    """Return another text of the same sort, longer by one: how long it is tells something, too."""
    other, end = text.translate(OTHERS), len(text.rstrip())
    return f"{other[:end]}x{other[end:]}"


def with_marks(
    first: Parsed,
    second: Parsed,
    names: tuple[str, ...],
    derived: Iterable[str] = (),
    texts: Collection[str] = (),
) -> Parsed:
    """Return the *first* rendering with a mark at each scalar that the *second*, by other values, has otherwise.

    *names* are those of the Secrets, as marks have them. What is wrong with it is told only where the second has the same wrong with it, and it
    names none of the *derived* lookups, which were made because of values. What of the *texts* of Secrets is in a marked one is hidden by itself, too.
    """
    others: dict[tuple[GroupVersionKind, ObjectRef], list[Manifest]] = defaultdict(list)
    for each in second.manifests:
        others[each.gvk, each.ref].append(each.manifest)
    manifests = []
    for each in first.manifests:
        there = others[each.gvk, each.ref]
        marks = (
            _with_texts(mark, texts)
            for mark in marks_between(each.manifest, there.pop(0) if there else None, (), names)
        )
        manifests.append(replace(each, uses=(*each.uses, *found)) if (found := tuple(marks)) else each)
    same, unsaid = frozenset(second.problems), tuple(map(one_of, derived))
    problems = tuple(
        each
        if each in same and not any(one in each.message for one in unsaid)
        else replace(each, message=_UNSAID, hint="")
        for each in first.problems
    )
    return replace(first, manifests=tuple(manifests), problems=tuple(dict.fromkeys(problems)))


def _with_texts(mark: VariableUse, texts: Collection[str]) -> VariableUse:
    [scalar] = mark.texts
    return replace(mark, texts=(scalar, *(each for each in texts if each != scalar and each in scalar)))


def with_safe_ids(revision: Revision, manifests: Iterable[Located], stamp: str) -> Revision:
    """Return a *revision* of which nobody can guess the value of a Secret: the ids of its files are those of what isn't marked in *manifests*.

    *stamp* tells the values that stand in them from others.
    """
    by_file: dict[str, list[Located]] = defaultdict(list)
    for each in manifests:
        by_file[each.path].append(each)
    shown = {
        path: json.dumps([without_secrets(each) for each in by_file[path]], sort_keys=True) for path in revision.files
    }
    files = {path: f"shown-{hashlib.sha256(text.encode()).hexdigest()[:32]}" for path, text in shown.items()}
    marked = {path for path, found in by_file.items() if any(use.secret for each in found for use in each.uses)}
    return replace(revision, files=files, stamps=dict.fromkeys(sorted(marked), stamp))


def concealed(first: Parsed, second: Parsed) -> Parsed:
    """Return the *first* rendering as somebody may see it who isn't its Sync's account: without objects that have a value in a name.

    They are there, or they or their entries are called so, because of it: in the *second*, by other values, they aren't. Where that couldn't be
    rendered, nobody knows which these are.
    """
    failed = next((each for each in second.problems if each.is_error), None)
    if failed is not None and first.manifests and not second.manifests:
        return replace(first, manifests=(), problems=(*first.problems, Problem(failed.path, 0, _UNTOLD, _HOLD_LESS)))
    others = {(each.gvk, each.ref): each.manifest for each in second.manifests}
    shown: list[Located] = []
    unseen: dict[str, Problem] = {}
    for each in first.manifests:
        if has_same_names(each.manifest, others.get((each.gvk, each.ref))):
            shown.append(each)
        else:
            unseen[each.path] = Problem(each.path, 0, _UNSHOWN, _SAY_LESS)
    return replace(first, manifests=tuple(shown), problems=(*first.problems, *unseen.values())) if unseen else first


def has_same_names(tree: Any, other: Any) -> bool:
    """Tell whether both have entries of the same names, wherever both have some."""
    if isinstance(tree, Mapping) and isinstance(other, Mapping):
        return tree.keys() <= other.keys() and all(has_same_names(below, other[name]) for name, below in tree.items())
    if isinstance(tree, list) and isinstance(other, list):
        return all(has_same_names(*pair) for pair in zip(tree, other, strict=False))
    return not isinstance(tree, Mapping)


def marks_between(tree: Any, other: Any, steps: Steps, names: tuple[str, ...]) -> Iterator[VariableUse]:
    """Yield a mark for each scalar that isn't the same in *other*; what an object is, and what it is called, everybody knows."""
    if steps[:1] and (steps[0] in _KIND_OF or (len(steps) == 2 and steps[0] == "metadata" and steps[1] in _NAME_OF)):
        return
    if isinstance(tree, Mapping):
        known = other if isinstance(other, Mapping) else {}
        for name, below in tree.items():
            yield from marks_between(below, known.get(name), (*steps, name), names)
    elif isinstance(tree, list):
        items: Iterable[Any] = other if isinstance(other, list) and len(other) == len(tree) else [None] * len(tree)
        for index, (below, its) in enumerate(zip(tree, items, strict=True)):
            yield from marks_between(below, its, (*steps, index), names)
    elif tree is not None and (type(tree) is not type(other) or tree != other):
        text = str(tree).lower() if isinstance(tree, bool) else str(tree)
        yield VariableUse(steps, names, secret=True, texts=(text,))
