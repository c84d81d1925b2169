"""What a report says of a namespace, or of one Sync in it: what there is and how it is, what was changed, and what waits for somebody.

It is told from what objects say of themselves: no Secret is looked at. Each list has a limit; how many more there are is told.

Pure: live objects and a time in, JSON out. The order of the objects doesn't matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.checkups import CHECKUP, CHECKUP_HEALTH
from kubectl_reconcile.core.health.judge import Health, HealthStatus, health
from kubectl_reconcile.core.health.kind_table import KindRule
from kubectl_reconcile.core.module.schedules import seconds_between
from kubectl_reconcile.core.objects import (
    GroupKind,
    Manifest,
    ObjectRef,
    condition_of,
    controller_of,
    labels_of,
    map_at,
    maps_in,
    number_of,
    text_at,
)
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.source import address_of, has_git, has_oci, path_of
from kubectl_reconcile.core.scan.findings import PODS
from kubectl_reconcile.core.scan.namespace import SCANNED

SYNC: Final = GroupKind("reconcile.dev", "Sync")
CERTIFICATE: Final = GroupKind("cert-manager.io", "Certificate")
SOON_DAYS: Final = 30
"""Certificates that expire within this many days are reported."""
LEFT_OUT: Final = "leftOut"
"""Where a report says how many lines its lists lack."""
_MOST: Final = 100
_MOST_USERS: Final = 10
_LONGEST: Final = 200
_DAY_S: Final = 86_400
_CHECKUP_RULE: Final = KindRule.parse({"rules": CHECKUP_HEALTH})


class ReportScope(Struct, frozen=True):
    """What a report is about: a *namespace*, or one *sync* in it, with members in other *places* too ("": in none). *since* is the time of the last report."""

    namespace: str
    sync: str = ""
    since: str = ""
    places: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """What it is called."""
        return f"Sync {self.namespace}/{self.sync}" if self.sync else f"namespace {self.namespace}"


REPORTED: Final = (
    *(each for each in SCANNED if not each[1].startswith("Role")),
    ("reconcile.dev/v1alpha1", "Sync"),
    ("cert-manager.io/v1", "Certificate"),
)
"""The kinds of a namespace that a report covers, by version and kind. Not every namespace has all of them."""


def report_of(objects: Iterable[Manifest], scope: ReportScope, now: str) -> dict[str, Any]:
    """Return the report for *now*."""
    home = scope.namespace
    everything = sorted((each for each in objects if _is_of(each, scope)), key=ObjectRef.of)
    syncs = [each for each in everything if ObjectRef.of(each).group_kind == SYNC]
    members = [each for each in everything if ObjectRef.of(each).group_kind != SYNC and controller_of(each) is None]
    lists = {
        "unhealthy": [*_unhealthy(members, home)],
        "images": [*_images(members, home)],
        "syncs": [*map(_sync, syncs)],
        "changes": [line for each in syncs for line in _changes(each, scope.since)],
        "putBack": [line for each in syncs for line in _put_back(each, scope.since)],
        "drift": [*_conditions(everything, "Drifted", home)],
        "contested": [*_conditions(everything, "Contended", home)],
        "held": [line for each in syncs for line in _held(each)],
        "problems": [line for each in syncs for line in _problems(each)],
        "certificates": [*_certificates(everything, now, home)],
    }
    return {
        "of": scope.title,
        "time": now,
        **({"since": scope.since} if scope.since else {}),
        "counts": {"objects": len(members), **{name: len(lines) for name, lines in lists.items()}},
        "inventory": [*_inventory(members)],
        **{name: lines[:_MOST] for name, lines in lists.items()},
        LEFT_OUT: short_by({name: len(lines) - _MOST for name, lines in lists.items()}),
    }


def short_by(lacking: Mapping[str, int], before: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
    """Return how many lines are lacking of which list, together with those of *before*; of lists that are whole nothing is told."""
    found = Counter(before) + Counter({name: number for name, number in lacking.items() if number > 0})
    return dict(sorted(found.items()))


def _is_of(manifest: Manifest, scope: ReportScope) -> bool:
    ref = ObjectRef.of(manifest)
    if not scope.sync or ref.namespace not in {scope.namespace, *scope.places}:
        return ref.namespace == scope.namespace
    sync = ObjectRef(SYNC.group, SYNC.kind, scope.namespace, scope.sync)
    return ref == sync or labels_of(manifest).get(PART_OF) == applyset_id(sync)


def _named(manifest: Manifest, home: str) -> str:
    """Return what an object is called in a report on the namespace *home*."""
    ref = ObjectRef.of(manifest)
    place = f"{ref.namespace}/" if ref.namespace not in {"", home} else ""
    return f"{ref.group_kind}/{place}{ref.name}"


def _cut(text: object) -> str:
    found = " ".join(str(text or "").split())
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 1]}…"


# --- what there is --------------------------------------------------------------------------------


def _inventory(members: Sequence[Manifest]) -> Iterator[dict[str, Any]]:
    count, well = Counter[str](), Counter[str]()
    for each in members:
        kind = str(ObjectRef.of(each).group_kind)
        count[kind] += 1
        well[kind] += not _health(each).status.holds_up
    for kind in sorted(count):
        yield {"kind": kind, "count": count[kind], "healthy": well[kind]}


def _health(member: Manifest) -> Health:
    """Return the health of an object. A Checkup that reports counts as well: else a report could fail by its own last verdict."""
    is_checkup = ObjectRef.of(member).group_kind == CHECKUP
    if is_checkup and "report" in map_at(member, "spec"):
        return Health(HealthStatus.CURRENT)
    return health(member, rule=_CHECKUP_RULE if is_checkup else None)


def _unhealthy(members: Sequence[Manifest], home: str) -> Iterator[dict[str, Any]]:
    for each in members:
        found = _health(each)
        if found.status.holds_up and found.status is not HealthStatus.NOT_FOUND:
            yield {"object": _named(each, home), "health": str(found.status), "message": _cut(found.message)}


def _images(members: Sequence[Manifest], home: str) -> Iterator[dict[str, Any]]:
    users: dict[str, list[str]] = defaultdict(list)
    for each in members:
        place = PODS.get(ObjectRef.of(each).group_kind)
        spec = map_at(each, *(place or ()), "spec") if place is not None else {}
        for kind in ("initContainers", "containers"):
            for container in maps_in(spec.get(kind)):
                image = container.get("image")
                if isinstance(image, str) and _named(each, home) not in users[image]:
                    users[image].append(_named(each, home))
    for image in sorted(users):
        plain, _, digest = image.partition("@")
        name, _, version = plain.rpartition(":") if ":" in plain.rpartition("/")[2] else (plain, "", "")
        line = {"image": name, "version": version, "digest": digest}
        yield {**{key: _cut(value) for key, value in line.items() if value}, "objects": _few(users[image])}


def _few(names: Sequence[str]) -> list[str]:
    left = len(names) - _MOST_USERS
    return [*names[:_MOST_USERS], *([f"{left} more"] if left > 0 else [])]


# --- what was changed, and what waits -------------------------------------------------------------


def _sync(sync: Manifest) -> dict[str, Any]:
    ready = condition_of(sync, "Ready") or {}
    line = {
        "sync": sync["metadata"]["name"],
        "url": _cut(address_of(sync)),
        "path": _cut(path_of(sync)) if has_git(sync) or has_oci(sync) else "",
        "revision": text_at(sync, "status", "lastAppliedRevision"),
        "ready": str(ready.get("status") or "Unknown"),
        "message": _cut(ready.get("message")),
    }
    return {name: value for name, value in line.items() if value}


def _changes(sync: Manifest, since: str) -> Iterator[dict[str, Any]]:
    """Yield the commits that a Sync's history has of the time *since*, the newest first."""
    for each in maps_in(map_at(sync, "status").get("history")):
        if str(each.get("time") or "") > since:
            line = {"sync": sync["metadata"]["name"]}
            line |= {
                name: _cut(each.get(name)) for name in ("revision", "time", "result", "author", "subject", "signer")
            }
            counts = {name: each[name] for name in ("created", "updated", "deleted", "failed") if each.get(name)}
            yield {**{name: value for name, value in line.items() if value}, **counts}


def _put_back(sync: Manifest, since: str) -> Iterator[dict[str, Any]]:
    """Yield the drift that was corrected since, the latest first, as far as the Sync's status has it."""
    for each in maps_in(map_at(sync, "status").get("putBack")):
        if str(each.get("time") or "") > since:
            told = {name: _cut(each.get(name)) for name in ("object", "message", "time")}
            yield {"sync": sync["metadata"]["name"], **told, "times": number_of(each.get("times")) or 1}


def _conditions(manifests: Sequence[Manifest], type_: str, home: str) -> Iterator[dict[str, Any]]:
    for each in manifests:
        found = condition_of(each, type_)
        if found is not None and found.get("status") == "True":
            yield {"object": _named(each, home), "message": _cut(found.get("message"))}


def _held(sync: Manifest) -> Iterator[dict[str, Any]]:
    name, spec = sync["metadata"]["name"], map_at(sync, "spec")
    if spec.get("suspend") is True:
        yield {"sync": name, "message": "it is suspended: nothing is applied"}
    synced = condition_of(sync, "Synced") or {}
    if synced.get("reason") == "Held":
        yield {"sync": name, "message": _cut(synced.get("message"))}
    for each in map_at(sync, "status").get("undeletable") or ():
        yield {"sync": name, "message": _cut(f"{each} may not be deleted by the Sync's account")}


def _problems(sync: Manifest) -> Iterator[dict[str, Any]]:
    for each in map_at(sync, "status").get("problems") or ():
        yield {"sync": sync["metadata"]["name"], "message": _cut(each)}


def _certificates(manifests: Sequence[Manifest], now: str, home: str) -> Iterator[dict[str, Any]]:
    for each in manifests:
        ends = text_at(each, "status", "notAfter") if ObjectRef.of(each).group_kind == CERTIFICATE else ""
        days = _days_left(now, ends)
        if days is not None and days <= SOON_DAYS:
            yield {"object": _named(each, home), "ends": ends, "days": days}


def _days_left(now: str, ends: str) -> int | None:
    try:
        return int(seconds_between(now, ends) // _DAY_S) if ends else None
    except (ValueError, TypeError):
        return None
