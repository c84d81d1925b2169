"""What will be seen of a database after a step, for previews of what follows: a guess that all goes well.

Pure: facts in, facts out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import Action, Context, Facts, Owned, annotations_of, is_alive, map_at
from kubectl_reconcile_operators.postgres.access.hba import hba_digest
from kubectl_reconcile_operators.postgres.children import Begin
from kubectl_reconcile_operators.postgres.reading import state_of
from kubectl_reconcile_operators.postgres.situation import (
    SYSTEM,
    DatabaseState,
    claim_name,
    lsn_of,
    lsn_text,
    slot_id,
)
from kubectl_reconcile_operators.postgres.spec import SUPERUSER, MyDatabaseSpec, copied_by, secret_of
from kubectl_reconcile_operators.postgres.steps import ABSENT, OK, Do

_NEW = "new"
_UNUSED = {"active": False, "status": "reserved"}


def after_action(facts: Facts, action: Action) -> Facts:
    """Return the facts that an action leads to."""
    return {**facts, **_changed(facts, action)}


def _changed(facts: Facts, action: Action) -> Facts:
    """Return what of the facts an action changes."""
    given = action.parameters
    changed: Facts = {}
    match action.verb:
        case Do.MAKE_SECRET:
            changed = {"secrets": {**map_at(facts, "secrets"), given["secret"]: OK}}
        case Do.SET_USER:
            allowed = {
                name: given[name] for name in ("superuser", "createDatabase", "replication", "rewinds") if name in given
            }
            role = {"login": True, "password": True, **allowed}
            changed = {"roles": {**map_at(facts, "roles"), given["user"]: role}}
        case Do.MAKE_DATABASE | Do.SET_OWNER:
            changed = {"databases": {**map_at(facts, "databases"), given["database"]: given["owner"]}}
        case Do.MAKE_SLOT:
            changed = {"slots": {**map_at(facts, "slots"), given["slot"]: dict(_UNUSED)}}
        case Do.DROP_SLOT:
            left = {name: value for name, value in map_at(facts, "slots").items() if name != given["slot"]}
            changed = {"slots": left}
        case Do.SET_PARAMETERS:
            changed = _set(facts, given)
        case Do.SET_ACCESS | Do.SET_TLS | Do.CHECKPOINT | Do.SET_QUORUM:
            changed = _told(facts, given["instance"], **_news(facts, action))
        case Do.PROMOTE:
            changed = _promoted(facts, given)
    return changed


def _news(facts: Facts, action: Action) -> dict[str, Any]:
    """Return what an instance says after an action."""
    given = action.parameters
    match action.verb:
        case Do.SET_ACCESS:
            return {"hba": hba_digest(given["hba"])}
        case Do.SET_TLS:
            return {"tls": {"on": True, "seen": True, "stale": False, "shown": True}}
        case Do.SET_QUORUM:
            return {"synchronous": given["setting"]}
        case _:
            return {"checkpointed": map_at(facts, "pods", given["instance"]).get("timeline")}


def _set(facts: Facts, given: Mapping[str, Any]) -> Facts:
    pods, name = map_at(facts, "pods"), given["instance"]
    before = map_at(pods, name)
    kept = {key: value for key, value in map_at(before, "settings").items() if key not in given["reset"]}
    changed = {*given["set"], *given["reset"]}
    pending = sorted({*(before.get("pending") or ()), *(changed & {*(before.get("restarts") or ())})})
    told = {**before, "settings": {**kept, **given["set"]}, "pending": pending, "unloaded": False}
    return {"pods": {**pods, name: told}}


def _told(facts: Facts, name: str, **more: Any) -> Facts:
    """Return what pods say once one of them says *more*."""
    pods = map_at(facts, "pods")
    return {"pods": {**pods, name: {**map_at(pods, name), **more}}}


def _promoted(facts: Facts, given: Mapping[str, Any]) -> Facts:
    name, pods = given["instance"], map_at(facts, "pods")
    left = int(map_at(pods, name).get("timeline") or 0)
    timeline, forks = left + 1, {**map_at(facts, "forks"), str(left): map_at(pods, name).get("lsn")}
    before = map_at(pods, name)
    told = {
        **before,
        "recovery": False,
        "timeline": timeline,
        "synchronous": given["synchronous"],
        "checkpoint": before.get("lsn"),
    }
    slots = {each: dict(_UNUSED) for each in given["slots"]}
    return {"pods": {**pods, name: told}, "writable": name, "slots": slots, "forks": forks}


def once_running(spec: MyDatabaseSpec, owned: Owned, facts: Facts, ctx: Context) -> Facts:
    """Return the facts once the pods that are alive run."""
    state = state_of(ctx.cr, owned, facts, ctx)
    known = map_at(facts, "pods")
    pods: dict[str, Any] = {}
    for pod in owned.of("Pod"):
        name, uid = pod["metadata"]["name"], pod["metadata"].get("uid")
        if not is_alive(pod) or name not in state.instances:
            continue
        before = map_at(known, name)
        is_same = bool(before) and before.get("uid") == uid and not before.get("error")
        answer = before if is_same else _started(spec, state.instances[name].begun, _system(owned, name, state.system))
        pods[name] = {**answer, "uid": uid, "ready": True}
    secrets = map_at(facts, "secrets")
    writable = sorted(name for name, each in pods.items() if each.get("recovery") is False)
    if not writable:
        pods = _quiet(pods, state)
    replicas = [name for name, each in pods.items() if each.get("recovery") is True]
    slots = map_at(facts, "slots")
    active = {slot_id(name) for name in replicas} if writable else set()
    return {
        **facts,
        "pods": pods,
        "writable": ",".join(writable),
        "secrets": {name: secrets.get(name, ABSENT) for name in _secrets(spec, ctx)},
        "followers": {name: {"state": "streaming", "lagBytes": 0} for name in replicas if writable},
        "slots": {name: {**map_at(slots, name), "active": name in active} for name in slots},
    }  # fmt: skip


def _secrets(spec: MyDatabaseSpec, ctx: Context) -> tuple[str, ...]:
    own = (secret_of(ctx, each) for each in (SUPERUSER, *spec.roles))
    return (*own, *((spec.tls.secret_name,) if spec.tls else ()), *filter(None, (copied_by(ctx.cr),)))


def _quiet(pods: Mapping[str, Any], s: DatabaseState) -> dict[str, Any]:
    """Return what standbys say while nobody takes writes: all have the same, as far as nobody has said otherwise, and a primary that hands over has ended in order."""
    most: Mapping[str, Any] = max(pods.values(), key=lambda each: lsn_of(str(each.get("lsn") or "")) or 0, default={})
    after = None if s.handover.is_failover else s.handover.after
    far = {"lsn": most.get("lsn") or "0/0", "receives": False, **({"closed": lsn_text(after[1] + 1)} if after else {})}
    timeline = max((after[0] if after else 1, *(int(each.get("timeline") or 0) for each in pods.values())))
    return {
        name: {**each, **({} if each.get("lsn") else far), "receives": False, "timeline": timeline}
        for name, each in pods.items()
    }


def _started(spec: MyDatabaseSpec, begun: Mapping[str, str], system: str) -> dict[str, Any]:
    """Return what a server says that has just started."""
    lines = (line.partition(" = ") for line in begun.get("PARAMETERS", "").splitlines())
    settings = {name: value[1:-1].replace("''", "'").replace("\\\\", "\\") for name, _, value in lines}
    return {
        "recovery": begun.get("BEGIN") in {Begin.REPLICA, Begin.REWIND}, "system": system, "timeline": 1, "checkpointed": 1, "checkpoint": "0/0", "synchronous": begun.get("SYNCHRONOUS", ""), "version": str(spec.version), "major": str(spec.version),
        "settings": settings, "restarts": [], "limits": {}, "pending": [], "hba": hba_digest(begun.get("HBA", "")), "tls": {"on": False, "seen": spec.tls is not None, "stale": False}, "error": "",
    }  # fmt: skip


def _system(owned: Owned, slot: str, known: str) -> str:
    claim = owned.known("PersistentVolumeClaim", claim_name(slot))
    return (annotations_of(claim).get(SYSTEM, "") if claim else "") or known or _NEW
