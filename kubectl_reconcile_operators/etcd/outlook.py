"""What will be seen of a cluster after a step, for previews of what follows: a guess that all goes well.

Pure: facts in, facts out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kubectl_reconcile.module_api import Action, Context, Facts, Manifest, Owned, annotations_of, is_alive
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.outlook import after_issuing
from kubectl_reconcile_operators.etcd.recovery import presumed_slots, recovery_of
from kubectl_reconcile_operators.etcd.situation import ALONE, ASIDE, MEMBER, arguments_of, peer_url, situation_of
from kubectl_reconcile_operators.etcd.spec import EtcdVersion, version_of
from kubectl_reconcile_operators.etcd.steps import ON_SECRETS, Do
from kubectl_reconcile_operators.etcd.tls.kinds import KINDS
from kubectl_reconcile_operators.etcd.upkeep import NO_SPACE


def after_action(facts: Facts, action: Action) -> Facts:
    """Return the facts that an action leads to."""
    if action.verb in ON_SECRETS:
        return {**facts, **after_issuing(KINDS, facts, CertificateDo(action.verb), str(action.parameters["member"]))}
    members, given = list(facts.get("members") or ()), action.parameters
    match action.verb:
        case Do.ADD:
            members.append({"id": f"new-{given['slot']}", "name": "", "peer": given["peer"], "learner": True})
        case Do.PROMOTE:
            members = [{**each, "learner": False} if each["id"] == given["member"] else each for each in members]
        case Do.REMOVE:
            members = [each for each in members if each["id"] != given["member"]]
            facts = _without_slack(facts, given["slot"])
        case _:
            return {**facts, **_noted(facts, action)}
    return told(facts, members)


_DECIDED: Mapping[Do, dict[str, Any]] = {
    Do.RECOVER: {"recovering": True},
    Do.REPLACE: {"replacing": True},
    Do.ACCEPT: {},
    Do.MAKE_ROOM: {},
    Do.END_VOLUME: {},
}


def _noted(facts: Facts, action: Action) -> dict[str, Any]:
    """Return what an action changes that leaves the members as they are."""
    match action.verb:
        case Do.RECOVER | Do.REPLACE | Do.MAKE_ROOM | Do.ACCEPT | Do.END_VOLUME:
            return _DECIDED[Do(action.verb)]
        case Do.COMPACT:
            sizes = {slot: {**each, "used": 0} for slot, each in (facts.get("sizes") or {}).items()}
            return {"sizes": sizes, "compacted": True}
        case Do.DEFRAGMENT:
            return _without_slack(facts, action.parameters["slot"])
        case Do.DISARM:
            return {"alarms": [each for each in facts.get("alarms") or () if each["alarm"] != NO_SPACE]}
        case _:
            return {"leader": action.parameters["member"]}


def _without_slack(facts: Facts, slot: str) -> dict[str, Any]:
    """Return *facts* once nothing is free in the file of a slot."""
    sizes = {
        name: {**each, "size": each["used"] or 1} if name == slot else each
        for name, each in (facts.get("sizes") or {}).items()
    }
    slack = [each for each in facts.get("slack") or () if each != slot]
    return {**facts, **({"sizes": sizes} if sizes else {}), **({"slack": slack} if "slack" in facts else {})}


def once_running(owned: Owned, facts: Facts, ctx: Context, *, tls: bool) -> Facts:
    """Return the facts once the pods that are alive run, and all members among them have caught up."""
    alive = {pod["metadata"]["name"]: pod for pod in owned.of("Pod") if is_alive(pod)}
    members = list(facts.get("members") or ()) or _presumed(owned, facts, alive, ctx, tls=tls)
    found: list[dict[str, Any]] = []
    pods: dict[str, Any] = {}
    for each in members:
        slot = str(each["peer"]).partition("://")[2].partition(".")[0]
        if slot in alive:
            found.append({**each, "name": slot})
            pods[slot] = _answer(alive[slot], each)
        else:
            found.append(dict(each))
    lines = [version_of(answer["version"]) for answer in pods.values()]
    lowest = min((each for each in lines if each), default=None)
    version = str(EtcdVersion(lowest.major, lowest.minor, 0)) if lowest else facts.get("version", "")
    return told({**facts, "pods": pods, "version": version}, found)


def once_alone(owned: Owned, facts: Facts, ctx: Context, *, tls: bool) -> Facts:
    """Return the facts while one member is to go on alone: nobody else comes back, and it is the only member once it runs so."""
    there = {pod["metadata"]["name"]: pod for pod in owned.of("Pod") if is_alive(pod)}
    lone = next((name for name, pod in there.items() if any(each.startswith(ALONE) for each in arguments_of(pod))), "")
    if not lone:
        left = {name: answer for name, answer in (facts.get("pods") or {}).items() if name in there}
        return told({**facts, "pods": left}, list(facts.get("members") or ()))
    known = next((each for each in facts.get("members") or () if each.get("name") == lone), None)
    one = known or _voter(owned, lone, ctx, tls=tls)
    pods = {lone: _answer(there[lone], {**one, "learner": False})}
    kept = {name: value for name, value in facts.items() if name != "recovering"}
    return told({**kept, "pods": pods}, [{**one, "learner": False}])


def once_given_up(facts: Facts, *, is_noted: bool) -> Facts:
    """Return the facts while a cluster's data is given up: nobody is a member any more. *is_noted* tells that the status says so by now."""
    kept = {name: value for name, value in facts.items() if not (is_noted and name == "replacing")}
    return told({**kept, "pods": {}}, [])


def _presumed(owned: Owned, facts: Facts, alive: Collection[str], ctx: Context, *, tls: bool) -> list[dict[str, Any]]:
    """Return who is a member where nobody has said so: whose data is known to be on volumes, else who runs; before a cluster is formed who begins it."""
    s = situation_of(ctx.cr, owned, facts, ctx)
    known = presumed_slots(s, recovery_of(ctx.cr))
    running = sorted(alive, key=lambda slot: (len(slot), slot))[: None if s.is_formed else 1]
    slots = [slot for slot in s.volumes if slot in known] or running
    return [_voter(owned, slot, ctx, tls=tls) for slot in slots]


def _voter(owned: Owned, slot: str, ctx: Context, *, tls: bool) -> dict[str, Any]:
    """Return the member of a slot that votes; one whose id stands nowhere is called by its slot."""
    noted = {each.slot: each.id for each in recovery_of(ctx.cr).voters}
    known = _member_on(owned, slot) or noted.get(slot) or f"new-{slot}"
    return {"id": known, "name": slot, "peer": peer_url(ctx, slot, tls=tls), "learner": False}


def _member_on(owned: Owned, slot: str) -> str:
    """Return the member whose data the volume of a slot is known to hold."""
    claim = owned.known("PersistentVolumeClaim", f"{slot}-data")
    noted = annotations_of(claim) if claim else {}
    return noted.get(MEMBER, "") or noted.get(ASIDE, "")


def _answer(pod: Manifest, member: Mapping[str, Any]) -> dict[str, Any]:
    image = str(pod["spec"]["containers"][0]["image"])
    version = version_of(image.rpartition(":")[2])
    return {
        "uid": pod["metadata"].get("uid"), "id": member["id"], "version": str(version or ""), "learner": member["learner"],
        "synced": True, "ready": True, "cluster": "", "error": "",
    }  # fmt: skip


def told(facts: Facts, members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return *facts* with these *members*, and what follows from who answers: whether there is a majority, and who leads."""
    pods: Mapping[str, Any] = facts.get("pods") or {}
    answering = sorted(name for name, answer in pods.items() if not answer.get("error"))
    voters = [each for each in members if not each["learner"]]
    able = [each["id"] for each in voters if each.get("name") in answering]
    has_quorum = bool(voters) and len(able) > len(voters) // 2
    leader = str(facts.get("leader") or "")
    return {
        **facts,
        "members": list(members),
        "membership": membership(members),
        "answering": ",".join(answering),
        "quorum": has_quorum,
        "leader": (leader if leader in able else able[0]) if has_quorum else "",
    }


def membership(members: Sequence[Mapping[str, Any]]) -> str:
    """Return all members in one line, in order: what actions are sure of before they run."""
    each = (
        f"{one['id']}{'-learner' if one['learner'] else ''}{'' if one['name'] else '-unstarted'}" for one in members
    )
    return ",".join(sorted(each))
