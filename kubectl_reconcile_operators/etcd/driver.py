"""How etcd is asked and told, by the JSON gateway of its client port: the only file of the module that does I/O.

Numbers of 64 bits are text in its JSON; ids are kept in hexadecimal, as etcdctl shows them. What changes all the time, such as
revisions, isn't among the facts, unless there is no majority: then nothing changes it; or somebody is asked whether
a backup may replace them; or the quota of the database is used up, and hardly anything is written.

Facts: ``members`` (id, name, peer, learner), told by a majority if ``quorum``, else by whoever knows most; ``leader`` (an id); ``version`` (of the
cluster); ``pods`` by name (uid, id, version, learner, synced, cluster, error; alone where it leads nobody but itself while others have another leader; without a majority also revision, term and index); ``membership`` and ``answering``, each in one line;
``alarms`` (alarm, member). Where the quota is used up: ``sizes`` (size and used, in bytes, by pod), ``revision``, and whether the history is ``compacted`` up to that. Where there is a schedule for
it: ``slack``, the pods that it is worth to defragment. Where the cluster issues its certificates itself: ``tls`` (see ``tls``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import (
    Action,
    Answer,
    Context,
    Facts,
    Io,
    Manifest,
    PodIo,
    PodTls,
    SilentPodError,
    condition_of,
    is_alive,
)
from kubectl_reconcile_operators.etcd.children import CLIENT_PORT
from kubectl_reconcile_operators.etcd.outlook import membership
from kubectl_reconcile_operators.etcd.spec import cluster_spec, tls_secrets
from kubectl_reconcile_operators.etcd.steps import ON_SECRETS, Do
from kubectl_reconcile_operators.etcd.upkeep import NO_SPACE, alarms_in, is_worth_it

LONGEST_S = 120.0
"""For how long a member may be at its compaction or defragmentation."""
_LAG = 1000
"""Entries of the log that a member may be behind and still counts as keeping up."""


class EtcdError(Exception):
    """etcd refuses what it is told."""


async def observe(cr: Manifest, io: Io) -> Facts:
    """Return what the members say, each asked at the same time."""
    pods = [pod for pod in io.owned.of("Pod") if is_alive(pod) and (pod.get("status") or {}).get("podIP")]
    names = [pod["metadata"]["name"] for pod in pods]
    answers = dict(zip(names, await asyncio.gather(*(_look(cr, io, name) for name in names)), strict=True))
    leader = _leader(answers)
    alone = await _alone(cr, io, answers, leader)
    answers |= {name: {**answers[name], "alone": True, "leader": ""} for name in alone}
    among = [each for name, each in answers.items() if name not in alone]
    first = max((int(each["raftIndex"]) for each in among if each.get("raftIndex")), default=0)
    members, is_known = await _members(
        cr, io, {name: each for name, each in answers.items() if name not in alone}, leader
    )
    found = {pod["metadata"]["name"]: _fact(pod, answers[pod["metadata"]["name"]], first) for pod in pods}
    if not is_known or (condition_of(cr, "Ready") or {}).get("reason") == "RestoreOffered":
        found = {name: {**each, **_held(answers[name])} for name, each in found.items()}
    versions = sorted(each["etcdcluster"] for each in answers.values() if each.get("etcdcluster"))
    return {
        "members": members,
        "membership": membership(members),
        "quorum": is_known,
        "leader": leader if is_known else "",
        "answering": ",".join(sorted(name for name, each in found.items() if not each["error"])),
        "version": versions[0] if versions and versions[0] != "not_decided" else "",
        "pods": found,
        **await _kept_small(cr, io, answers, leader),
        **await _certificates(cr, io),
    }


def _leader(answers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return who leads, as most say that know of anybody; where as many say otherwise, those that know more."""
    told = [each for each in answers.values() if each.get("leader")]
    votes = Counter(each["leader"] for each in told)
    known = max(told, key=lambda each: (votes[each["leader"]], each["raftIndex"]), default=None)
    return str(known["leader"]) if known else ""


async def _alone(cr: Manifest, io: Io, answers: Mapping[str, Mapping[str, Any]], leader: str) -> list[str]:
    """Return the pods that lead nobody but themselves while others have another leader: somebody has begun again there."""
    found = []
    for name in (name for name, each in answers.items() if each.get("leader") and each["leader"] != leader):
        try:
            members = await _list(cr, io, name, is_sure=False)
        except (SilentPodError, EtcdError):
            continue
        if [each["id"] for each in members if not each["learner"]] == [answers[name]["id"]]:
            found.append(name)
    return found


async def _certificates(cr: Manifest, io: Io) -> dict[str, Any]:
    """Return what is known of certificates, where the cluster issues them itself."""
    tls = cluster_spec(cr).TLS
    if tls is None or tls.auto is None:
        return {}
    from kubectl_reconcile_operators.etcd.tls import driver  # noqa: PLC0415 - cryptography is loaded where it is needed

    return {"tls": await driver.observe(cr, io)}


async def _look(cr: Manifest, io: Io, name: str) -> dict[str, Any]:
    """Return what a pod says of itself; ``error`` where it says nothing."""
    try:
        pod = _reach(cr, io, name)
        status = _body(await pod.ask("/v3/maintenance/status", {}))
        version = _body(await pod.ask("/version"))
    except (SilentPodError, EtcdError) as error:
        return {"error": str(error)}
    header = status.get("header") or {}
    return {
        "id": _hex(header.get("member_id")),
        "cluster": _hex(header.get("cluster_id")),
        "leader": _hex(status.get("leader")),
        "raftIndex": int(status.get("raftIndex") or 0),
        "revision": int(header.get("revision") or 0),
        "term": int(header.get("raft_term") or 0),
        "applied": int(status.get("raftAppliedIndex") or 0),
        "learner": bool(status.get("isLearner")),
        "version": str(status.get("version") or ""),
        "etcdcluster": str(version.get("etcdcluster") or ""),
        "size": int(status.get("dbSize") or 0),
        "used": int(status.get("dbSizeInUse") or 0),
        "alarms": alarms_in(status.get("errors") or ()),
        "error": "",
    }


def _fact(pod: Manifest, answer: Mapping[str, Any], first: int) -> dict[str, Any]:
    applied = int(answer.get("applied") or 0)
    is_synced = bool(answer.get("leader")) and applied * 10 >= first * 9 and first - applied <= _LAG
    return {
        "uid": pod["metadata"]["uid"],
        **{key: answer.get(key, "") for key in ("id", "version", "cluster", "error")},
        "learner": bool(answer.get("learner")),
        "synced": is_synced,
        **({"alone": True} if answer.get("alone") else {}),
    }


async def _kept_small(cr: Manifest, io: Io, answers: Mapping[str, Mapping[str, Any]], leader: str) -> dict[str, Any]:
    """Return the alarms, and what there is to know of the size of files where that matters."""
    alarms = sorted({alarm for each in answers.values() for alarm in each.get("alarms") or ()})
    told: dict[str, Any] = {"alarms": [{"alarm": kind, "member": member} for kind, member in alarms]}
    known = {name: each for name, each in sorted(answers.items()) if each.get("size")}
    wanted = cluster_spec(cr).etcd.defragmentation
    if wanted is not None:
        told["slack"] = [
            name for name, each in known.items() if is_worth_it(each["size"], each["used"], wanted.min_free_percent)
        ]
    if NO_SPACE in dict(alarms):
        told["sizes"] = {name: {"size": each["size"], "used": each["used"]} for name, each in known.items()}
        told["revision"] = max((each["revision"] for each in known.values()), default=0)
        first = next((name for name, each in known.items() if each["id"] == leader), "")
        told["compacted"] = bool(first) and await _is_compacted(cr, io, first, told["revision"])
    return told


async def _is_compacted(cr: Manifest, io: Io, name: str, revision: int) -> bool:
    """Tell whether nothing is known any more of what was before *revision*."""
    body = {"key": "AA==", "revision": str(revision - 1), "limit": "1", "serializable": True}
    try:
        return revision > 1 and "has been compacted" in (await _reach(cr, io, name).ask("/v3/kv/range", body)).text
    except SilentPodError:
        return False


def _held(answer: Mapping[str, Any]) -> dict[str, int]:
    """Return how much a member knows that answers by itself."""
    known = {"revision": answer.get("revision"), "term": answer.get("term"), "index": answer.get("raftIndex")}
    return {name: number for name, number in known.items() if number}


async def _members(
    cr: Manifest, io: Io, answers: Mapping[str, Mapping[str, Any]], leader: str
) -> tuple[list[dict[str, Any]], bool]:
    """Return the members, and whether a majority says so."""
    able = [name for name, each in answers.items() if not each["error"] and not each["learner"]]
    able.sort(key=lambda name: (answers[name]["id"] != leader, -answers[name]["applied"], name))
    for name in able[:2] if leader else ():
        try:
            return await _list(cr, io, name, is_sure=True), True
        except (SilentPodError, EtcdError):
            continue
    for name in able:
        try:
            return await _list(cr, io, name, is_sure=False), False
        except (SilentPodError, EtcdError):
            continue
    return [], False


async def _list(cr: Manifest, io: Io, name: str, *, is_sure: bool) -> list[dict[str, Any]]:
    found = _body(await _reach(cr, io, name).ask("/v3/cluster/member/list", {"linearizable": is_sure}))
    members = [
        {
            "id": _hex(each.get("ID")),
            "name": str(each.get("name") or ""),
            "peer": str(next(iter(each.get("peerURLs") or ()), "")),
            "learner": bool(each.get("isLearner")),
        }
        for each in found.get("members") or ()
    ]
    return sorted(members, key=lambda each: each["id"])


async def act(cr: Manifest, action: Action, io: Io) -> str:
    """Carry out one change of the membership, of who leads, of what files hold, or of a Secret; a decision needs nobody but its journal.

    Raises:
        EtcdError: etcd refuses.
        SilentPodError: the pod that is told doesn't answer.
    """
    given = action.parameters
    if action.verb in {Do.RECOVER, Do.REPLACE, Do.MAKE_ROOM, Do.ACCEPT, Do.END_VOLUME}:
        return "decided"
    if action.verb in ON_SECRETS:
        from kubectl_reconcile_operators.etcd.tls import driver  # noqa: PLC0415 - as above

        return await driver.act(cr, action, io)
    pod = _reach(cr, io, str(given["via"]))
    if action.verb in {Do.COMPACT, Do.DEFRAGMENT, Do.DISARM}:
        return await _keep_small(pod, action)
    number = str(int(given["member"], 16)) if given["member"] else ""
    match action.verb:
        case Do.ADD:
            path, body = "/v3/cluster/member/add", {"peerURLs": [given["peer"]], "isLearner": True}
        case Do.PROMOTE:
            path, body = "/v3/cluster/member/promote", {"ID": number}
        case Do.REMOVE:
            path, body = "/v3/cluster/member/remove", {"ID": number}
        case _:
            path, body = "/v3/maintenance/transfer-leadership", {"targetID": number}
    _body(await pod.send("POST", path, body))
    return ""


async def _keep_small(pod: PodIo, action: Action) -> str:
    match action.verb:
        case Do.COMPACT:
            body = {"revision": str(action.parameters["revision"]), "physical": True}
            answer = await pod.send("POST", "/v3/kv/compaction", body, within_s=LONGEST_S)
            if "has been compacted" not in answer.text:
                _body(answer)
        case Do.DEFRAGMENT:
            _body(await pod.send("POST", "/v3/maintenance/defragment", {}, within_s=LONGEST_S))
        case _:
            raised = _body(await pod.ask("/v3/maintenance/alarm", {"action": "GET"})).get("alarms") or ()
            for each in (one for one in raised if one.get("alarm") == NO_SPACE):
                body = {"action": "DEACTIVATE", "memberID": str(each["memberID"]), "alarm": NO_SPACE}
                _body(await pod.send("POST", "/v3/maintenance/alarm", body))
    return ""


def _reach(cr: Manifest, io: Io, name: str) -> PodIo:
    ctx = Context("", "etcdcluster", cr)
    tls = tls_secrets(cluster_spec(cr), ctx)
    if tls is None:
        return io.pod(name, CLIENT_PORT)
    server = f"{name}.{ctx.name()}.{ctx.namespace}.svc"
    return io.pod(name, CLIENT_PORT, PodTls(tls.operator_secret, server))


def _body(answer: Answer) -> Mapping[str, Any]:
    """Return the body of a successful answer.

    Raises:
        EtcdError: it is none.
    """
    if answer.status == 200 and isinstance(answer.body, Mapping):
        return answer.body
    said = (
        answer.body.get("message") or answer.body.get("error")
        if isinstance(answer.body, Mapping)
        else answer.text[:200]
    )
    raise EtcdError(f"etcd answers {answer.status}: {said}")


def _hex(number: Any) -> str:
    return format(int(number), "x") if number and int(number) else ""
