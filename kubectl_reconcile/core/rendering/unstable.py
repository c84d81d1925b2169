"""Fields that a rendering draws: by chance, or from the clock. Each rendering would give them another value.

Vocabulary: a chart that draws is rendered twice, the second time with everything drawn being another; where the two differ is
*drawn*. Such a field has a placeholder in what is asked for, so that the same files always ask for the same. Where it meets
the live object it is *held* at its live value: a password isn't rotated, and stays among what is applied. Where
there is no live value it gets the drawn one.

A name can't be held, since by another name it is another object. Certificates and what is derived from a password belong
together: held in part and drawn in part they would fit no more.

Pure.
"""

from __future__ import annotations

import base64
import binascii
import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Drawn, Located, Steps
from kubectl_reconcile.core.objects import FieldPath, Manifest, ObjectRef
from kubectl_reconcile.core.records import Guarded

DRAWN_LATER: Final = "<generated when applied>"
"""What stands for a value in what is asked for."""

_ABSENT: Final = object()
_SECRET, _DATA, _STRING_DATA = "Secret", "data", "stringData"
_FIT: Final = re.compile(r"-----BEGIN |\$2[aby]\$\d\d\$")
"""Certificates and keys, and hashes of passwords: what must fit something else."""
_DELIMITER: Final = re.compile(r"[^A-Za-z0-9+/=_-]")


class RandomNameError(ValueError):
    """An object has another name, or another kind, at each rendering; the message says what of it."""


def shown(path: Steps) -> str:
    """Return a path as people write it: ``.stringData.password``, ``.spec.ports[0].nodePort``."""
    return str(FieldPath(f"i:{step}" if isinstance(step, int) else f"f:{step}" for step in path))


# --- what is drawn ---------------------------------------------------------------------------------------------


def drawn_between(first: Manifest, second: Manifest) -> tuple[Drawn, ...]:
    """Return where two renderings of one object differ, with the values of the *first*.

    Raises:
        RandomNameError: they aren't one object.
    """
    one, other = ObjectRef.of(first), ObjectRef.of(second)
    for what, before, after in (
        ("kind", one.group_kind, other.group_kind),
        ("namespace", one.namespace, other.namespace),
        ("name", one.name, other.name),
        ("apiVersion", first.get("apiVersion"), second.get("apiVersion")),
    ):
        if before != after:
            raise RandomNameError(what)
    return tuple(_differences(first, second, ()))


def _differences(first: Any, second: Any, path: Steps) -> Iterator[Drawn]:
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() != second.keys():
            raise RandomNameError(f"names of entries in {shown(path) or 'it'}")
        for key in first:
            yield from _differences(first[key], second[key], (*path, key))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differences(one, other, (*path, index))
    elif type(first) is not type(second) or first != second:
        yield Drawn(path, first, *_around(first, second, path))


def _around(first: Any, second: Any, path: Steps) -> tuple[str, str]:
    """Return what of a text is the same each time: its beginning and its end, each up to something that isn't drawn itself."""
    if not isinstance(first, str) or not isinstance(second, str):
        return "", ""
    one, other = _plain(first, path), _plain(second, path)
    before = 0
    while before < min(len(one), len(other)) and one[before] == other[before]:
        before += 1
    after = 0
    while after < min(len(one), len(other)) - before and one[-1 - after] == other[-1 - after]:
        after += 1
    head, tail = one[:before], one[len(one) - after :]
    ends = [found.end() for found in _DELIMITER.finditer(head)]
    start = _DELIMITER.search(tail)
    return (head[: ends[-1]] if ends else ""), (tail[start.start() :] if start else "")


def _plain(text: str, path: Steps) -> str:
    """Return what a text says: entries of ``data`` may be in base64."""
    decoded = _decoded(text) if path[0] == _DATA else None
    return text if decoded is None else decoded


def _decoded(text: Any) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError, TypeError):
        return None


def with_placeholders(located: Located, drawn: Sequence[Drawn]) -> Located:
    """Return a manifest that asks for the same however often it is rendered, and what was *drawn* for it."""
    if not drawn:
        return located
    manifest = copy.deepcopy(dict(located.manifest))
    for each in drawn:
        _put(manifest, each.path, DRAWN_LATER)
    return replace(located, manifest=manifest, drawn=tuple(drawn))


# --- what is held ----------------------------------------------------------------------------------------------


class Held(Guarded, frozen=True):
    """An object as it is to be applied.

    *missing* are the fields that had no live value, *changed* those around which Git asks for something else than is live.
    """

    hidden: ClassVar = frozenset({"manifest"})

    manifest: Manifest
    missing: tuple[Steps, ...] = ()
    changed: tuple[Steps, ...] = ()


def held(located: Located, live: Manifest | None) -> Held:
    """Return what an object asks for, its drawn fields at their live values, or at those drawn where there is none."""
    if not located.drawn:
        return Held(located.manifest)
    manifest = copy.deepcopy(dict(located.manifest))
    missing: list[Steps] = []
    changed: list[Steps] = []
    for each in located.drawn:
        value = _live_value(located, each.path, live)
        if value is _ABSENT:
            missing.append(each.path)
            value = each.value
        elif isinstance(value, str) and not _fits(_plain(value, each.path), each):
            changed.append(each.path)
        if isinstance(value, bytes):  # it can't be written as text
            _move(manifest, each.path, base64.b64encode(value).decode())
        else:
            _put(manifest, each.path, value)
    return Held(manifest, tuple(missing), tuple(changed))


def _fits(text: str, drawn: Drawn) -> bool:
    return (
        len(text) >= len(drawn.before) + len(drawn.after)
        and text.startswith(drawn.before)
        and text.endswith(drawn.after)
    )


def _live_value(located: Located, path: Steps, live: Manifest | None) -> Any:
    """Return what a live object has at a path of the manifest; of ``stringData`` what it has become."""
    if live is None:
        return _ABSENT
    if located.ref.kind == _SECRET and path[0] == _STRING_DATA:
        value = _at(live, (_DATA, *path[1:]))
        text = _decoded(value)
        if value is _ABSENT or text is not None:
            return _ABSENT if value is _ABSENT else text
        try:
            return base64.b64decode(value)
        except (binascii.Error, TypeError):
            return _ABSENT
    return _found(located.manifest, live, path)


def _found(asked: Any, live: Any, path: Steps) -> Any:
    """Return what *live* has at a path; items of a list are found by their names, where they have some."""
    for step in path:
        asked = _at(asked, (step,))
        name = asked.get("name") if isinstance(asked, dict) and isinstance(step, int) else None
        if name is not None and isinstance(live, list):
            live = next((item for item in live if isinstance(item, dict) and item.get("name") == name), _ABSENT)
        else:
            live = _at(live, (step,))
        if live is _ABSENT:
            return _ABSENT
    return live


def _at(tree: Any, path: Iterable[int | str]) -> Any:
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(step, _ABSENT)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return _ABSENT
    return tree


def _put(tree: Any, path: Steps, value: Any) -> None:
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = value


def _move(manifest: dict[str, Any], path: Steps, encoded: str) -> None:
    """Put a value of ``stringData`` into ``data``."""
    manifest[_STRING_DATA] = {name: value for name, value in manifest[_STRING_DATA].items() if name != path[1]}
    manifest[_DATA] = {**(manifest.get(_DATA) or {}), str(path[1]): encoded}


# --- what belongs together -------------------------------------------------------------------------------------


def must_fit(located: Located) -> tuple[Steps, ...]:
    """Return the drawn fields of an object that must fit others: certificates, keys, hashes; with all else that its Secret draws."""
    fitting = [each.path for each in located.drawn if _is_fitting(each)]
    if fitting and located.ref.kind == _SECRET:
        return tuple(each.path for each in located.drawn)
    return tuple(fitting)


def _is_fitting(drawn: Drawn) -> bool:
    if not isinstance(drawn.value, str):
        return False
    return bool(_FIT.search(drawn.value) or _FIT.search(_decoded(drawn.value) or ""))


def missing(located: Located, live: Manifest | None, paths: Iterable[Steps]) -> tuple[Steps, ...]:
    """Return those of the fields at *paths* that a live object doesn't have."""
    return tuple(path for path in paths if _live_value(located, path, live) is _ABSENT)


def hidden(manifest: Manifest | None, paths: Iterable[Steps]) -> Manifest | None:
    """Return a manifest as it may be shown and compared: with placeholders at *paths*."""
    if manifest is None or not (there := [path for path in paths if _at(manifest, path) is not _ABSENT]):
        return manifest
    shown_as = copy.deepcopy(dict(manifest))
    for path in there:
        _put(shown_as, path, DRAWN_LATER)
    return shown_as


def values_at(manifest: Mapping[str, Any] | None, paths: Iterable[Steps]) -> list[Any]:
    """Return what a manifest has at *paths*."""
    return [value for path in paths if (value := _at(manifest, path)) is not _ABSENT]
