"""The history of a Sync: which states it has applied, and which of them it can go back to.

Vocabulary: a *state* is what a source asks for as a whole, known by a digest of its objects; a *row* of ``status.history`` is one
state, with the commit that brought it, when it was last tried with another result, and the result. A commit that leaves the
objects as they are is no other state, so it has no row.

Pure: time is an argument.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kubectl_reconcile.core.objects import Manifest, number_of
from kubectl_reconcile.core.redaction import without_values

_ROWS = 10
_MOST_PUT_BACK: Final = 20
_MOST_SAID: Final = 512
_GOOD: Final = frozenset({"Synced", "Drifted"})


def digest_of(objects: Iterable[Manifest]) -> str:
    """Return what a state is known by: the same for the same objects, in whatever files and order they stand.

    It is shown where Secrets aren't, where whoever likes can try values for as long as they like. So no value of a Secret goes in: a
    commit that changes nothing but such values brings no other state.
    """
    return digest_of_sorted(sorted(map(print_of, objects)))


def digest_of_sorted(prints: Sequence[bytes]) -> str:
    """Return what a state is known by that has the objects of these *prints*, which are in order."""
    return hashlib.sha256(b"".join(prints)).hexdigest()[:16]


def print_of(manifest: Manifest) -> bytes:
    """Return what one object of a state is known by."""
    told = without_values(manifest) if manifest.get("kind") == "Secret" else manifest
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).digest()


def with_row(before: Sequence[Manifest], row: Mapping[str, Any]) -> list[Any]:
    """Return the history after a pass that ended as *row* says; a state that is the newest already is told again if it went otherwise.

    A row without a digest is of a part of a state, which is nothing to go back to.
    """
    history = list(before)
    if not row.get("digest"):
        return history
    newest = history[0] if history else {}
    if not is_same_state(newest, row):
        return [dict(row), *history][:_ROWS]
    if newest.get("result") == row["result"] and newest.get("digest"):
        if all(newest.get(name) == row.get(name) for name in _OF_CHART):
            return history
        others = {name: value for name, value in newest.items() if name not in _OF_CHART}
        return [{**others, **{name: row[name] for name in _OF_CHART if name in row}}, *history[1:]]
    others = {name: value for name, value in row.items() if name not in _OF_COMMIT}
    return [{**others, **{name: newest[name] for name in _OF_COMMIT if name in newest}}, *history[1:]]


_OF_COMMIT: Final = ("revision", "author", "subject", "tag")
"""What a row says of the commit that brought its state: later ones that ask for the same don't change it."""
_OF_CHART: Final = ("chart", "helm", "settings")
"""What a row says of how a chart was rendered: the settings that stand in the Sync itself, and no commit tells."""
_MOST_SETTINGS: Final = 4096


def settings_of(helm: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row keeps of a Sync's settings for charts: the chart of a repository, a digest of all, and these themselves unless they are long."""
    if not helm:
        return {}
    text = json.dumps(helm, sort_keys=True)
    pin = helm.get("chart") or {}
    chart = {"chart": f"{pin['name']} {pin['version']}"} if pin else {}
    kept = {"helm": dict(helm)} if len(text) <= _MOST_SETTINGS else {}
    return {**chart, **kept, "settings": hashlib.sha256(text.encode()).hexdigest()[:16]}


def is_of_other_settings(row: Manifest | None, helm: Mapping[str, Any]) -> bool:
    """Tell whether a state was rendered with other settings of the Sync than these; where nobody noted any, it wasn't."""
    known = (row or {}).get("settings")
    return bool(known) and known != settings_of(helm).get("settings")


def is_same_state(one: Manifest, other: Manifest) -> bool:
    """Tell whether two rows are of one state; of rows that earlier versions wrote only the commits can be compared."""
    if one.get("digest") and other.get("digest"):
        return bool(one["digest"] == other["digest"])
    return bool(one.get("revision")) and one.get("revision") == other.get("revision")


def current_of(history: Sequence[Manifest]) -> Manifest | None:
    """Return the row that the cluster is at: the newest that went well."""
    return next((row for row in history if _went_well(row)), None)


def previous_of(history: Sequence[Manifest]) -> Manifest | None:
    """Return the row to go back to: the last that went well and is another state than what was tried last."""
    return next((row for row in history[1:] if _went_well(row) and not is_same_state(row, history[0])), None)


def _went_well(row: Manifest) -> bool:
    return str(row.get("result")) in _GOOD


def with_put_back(before: Sequence[Manifest], notes: Iterable[tuple[str, str]], now: str) -> list[dict[str, Any]]:
    """Return what drift was corrected, the latest first, once these *notes* are added: the object and what somebody did to it.

    What happens again has one entry, which counts.
    """
    notes = [(about, message[:_MOST_SAID]) for about, message in notes]
    found = {(str(each.get("object")), str(each.get("message"))): dict(each) for each in before}
    for about, message in notes:
        times = number_of(found.pop((about, message), {}).get("times")) or 0
        new = {"object": about, "message": message, "time": now, "times": times + 1}
        found = {(about, message): new, **found}
    return list(found.values())[:_MOST_PUT_BACK]
