"""What a decision about an etcd cluster is made on: members as etcd tells them, pods and volumes as Kubernetes does.

Vocabulary: a *slot* is the name that a member, its pod and its volume share (``db-0``). A member is *started* once its etcd has
run; it has a name from then on. A *voter* is a member that is no learner. A pod *serves* if it is ready and its etcd answers.
The members are *known* if a majority has said who they are.

Facts are what the driver brings (see `driver.observe`); all of it may be missing. A preview's guess also says which pods will be ready.

Pure: values in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.module_api import (
    Context,
    Facts,
    Manifest,
    Owned,
    annotations_of,
    is_alive,
    is_ready,
    text_at,
)
from kubectl_reconcile_operators.etcd.precautions import Precaution, precautions_of
from kubectl_reconcile_operators.etcd.restored import RestoreState, restore_of
from kubectl_reconcile_operators.etcd.spec import EtcdVersion, version_of

PREFIX = "etcd.database.coreos.com/"
TEMPLATE = f"{PREFIX}template"
"""On pods: the digest of what of the spec they were made by, the version aside."""
MEMBER = f"{PREFIX}member"
"""On volumes: the id of the member whose data they hold."""
ASIDE = f"{PREFIX}put-aside"
"""On volumes that were put aside: the id of the member whose data they hold. Nobody starts on them, and they stay until somebody deletes them."""
SEED = f"{PREFIX}seed"
"""On volumes made for a restore to replace a cluster's data: what tells the snapshot."""
TRUSTED = f"{PREFIX}trusted"
"""On pods: the fingerprints of the authorities that their etcd trusted when they were made, where the cluster issues certificates itself."""
ALONE = "--force-new-cluster"
"""What a pod's etcd is told to go on with its data as the only member."""
VOTER = f"{PREFIX}voter"
"""Label of pods whose member votes: a learner answers no clients."""

SLOTS = 100
"""Slots are numbered below this; a cluster has seven members at most."""
_CRASHES = 3
_KILLED = 137
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_LOG_LINE = re.compile(rf'"msg":{_TEXT}(?:.*?"error":{_TEXT})?')
_REFUSED_DATA = re.compile(
    r"crc mismatch|wal: |walpb|\bproto: |raft log corrupted|snap: |failed to (read|open|recover|load) .*(wal|snap|db|backend)"
    r"|invalid (database|page)|(database|page|meta) .*(corrupt|invalid)|mvcc: .*corrupt",
    re.IGNORECASE,
)
_OUTER = re.compile(
    r"no space left|permission denied|too many open files|input/output error|read-only file system|cannot allocate memory",
    re.IGNORECASE,
)
"""What keeps an etcd from its data without that being wrong."""


@dataclass(frozen=True, slots=True)
class EtcdMember:
    """A member as etcd knows it. *slot* is empty where its address isn't one of ours: a stranger."""

    id: str
    slot: str
    is_started: bool
    is_learner: bool


@dataclass(frozen=True, slots=True)
class EtcdAlarm:
    """An alarm of etcd, ``NOSPACE`` or ``CORRUPT``, and the id of the member that has raised it."""

    kind: str
    member: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that the CR controls, and what its etcd answered. *fault* is what keeps it from running, if anything does."""

    slot: str
    manifest: Manifest = field(repr=False)
    is_going: bool = False
    has_ended: bool = False
    is_ready: bool = False
    version: EtcdVersion | None = None
    template: str = ""
    restarts: int = 0
    refuses_data: bool = False
    fault: str = ""
    answers: bool = False
    is_synced: bool = False

    @property
    def serves(self) -> bool:
        """Whether it is ready, and its etcd answers and keeps up."""
        return self.is_ready and self.answers and self.is_synced and not self.is_going

    @property
    def trusted(self) -> frozenset[str]:
        """The authorities that its etcd trusts, nothing where the cluster has none of its own."""
        return frozenset(filter(None, annotations_of(self.manifest).get(TRUSTED, "").split(",")))

    @property
    def is_alone(self) -> bool:
        """Whether its etcd was told to be the only member."""
        return any(each.startswith(ALONE) for each in arguments_of(self.manifest))


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume claim; *member* is the id of the member whose data it holds, empty where no member was seen on it.

    One that was put *aside* is nobody's; there the id stands, of whose data it holds still. *seed_for* tells the snapshot that
    it was made for.
    """

    slot: str
    member: str = ""
    is_going: bool = False
    uid: str = ""
    aside: str = ""
    seed_for: str = ""

    @property
    def holds(self) -> str:
        """The id of the member whose data is there, put aside or not."""
        return self.member or self.aside


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that is known. *is_formed* tells that the cluster has existed at some time, if only as a backup that has been restored.

    *ran_version* is the lowest one that was seen running last.
    """

    members: tuple[EtcdMember, ...] = ()
    is_known: bool = False
    leader: str = ""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    version: EtcdVersion | None = None
    clusters: tuple[str, ...] = ()
    is_formed: bool = False
    ran_version: EtcdVersion | None = None
    restore: RestoreState | None = None
    alarms: tuple[EtcdAlarm, ...] = ()
    precautions: Mapping[str, Precaution] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict, repr=False)

    @property
    def voters(self) -> tuple[EtcdMember, ...]:
        """The members that vote."""
        return tuple(each for each in self.members if not each.is_learner)

    @property
    def quorum(self) -> int:
        """How many voters it takes."""
        return len(self.voters) // 2 + 1

    @property
    def serving(self) -> tuple[EtcdMember, ...]:
        """The voters whose pod serves."""
        return tuple(each for each in self.voters if self.serves(each))

    @property
    def has_majority(self) -> bool:
        """Whether a majority says who the members are, and serves."""
        return self.is_known and len(self.serving) >= self.quorum

    @property
    def pods_in_order(self) -> tuple[Pod, ...]:
        """The pods by the numbers of their slots."""
        return tuple(sorted(self.pods.values(), key=lambda pod: (len(pod.slot), pod.slot)))

    @property
    def cut_short(self) -> tuple[Volume, ...]:
        """The volumes that pods were made without: whoever made both was killed. A member that has run gets no empty one."""
        waiting = (pod.slot for pod in self.pods.values() if not (pod.is_going or pod.has_ended))
        has_run = {slot: member.is_started if (member := self.member(slot)) else self.is_formed for slot in waiting}
        return tuple(Volume(slot) for slot, ran in sorted(has_run.items()) if slot not in self.volumes and not ran)

    def serves(self, member: EtcdMember) -> bool:
        """Tell whether a member's pod serves."""
        pod = self.pods.get(member.slot)
        return pod is not None and pod.serves

    def member(self, slot: str) -> EtcdMember | None:
        """Return the member of a slot."""
        return next((each for each in self.members if each.slot == slot), None)

    @property
    def leader_last(self) -> tuple[EtcdMember, ...]:
        """The voters in the order in which each may fail for a moment."""
        return tuple(sorted(self.voters, key=lambda each: each.id == self.leader))

    @property
    def running_version(self) -> EtcdVersion | None:
        """The lowest version among the pods."""
        return min((pod.version for pod in self.pods.values() if pod.version), default=None)


def arguments_of(pod: Manifest) -> Sequence[str]:
    """Return what a pod's etcd is told."""
    container: Mapping[str, Any] = next(iter((pod.get("spec") or {}).get("containers") or ()), {})
    return container.get("args") or ()


def free_slot(s: Situation, ctx: Context) -> str:
    """Return the first slot that neither a member nor a pod nor a volume has."""
    taken = {*s.pods, *s.volumes, *(each.slot for each in s.members)}
    return next(name for name in (ctx.name(str(at)) for at in range(SLOTS)) if name not in taken)


def in_order(s: Situation, ctx: Context) -> list[Volume]:
    """Return the volumes by the numbers of their slots."""
    return sorted(s.volumes.values(), key=lambda each: ctx.number_of(each.slot))


def peer_url(ctx: Context, slot: str, *, tls: bool) -> str:
    """Return the address by which a member is known to the others."""
    return f"{'https' if tls else 'http'}://{slot}.{ctx.name()}.{ctx.namespace}.svc:2380"


def situation_of(cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Situation:
    """Return what is known of the cluster of *cr*."""
    seen: Mapping[str, Any] = facts.get("pods") or {}
    pods = {each.slot: each for each in (_pod(pod, seen, ctx) for pod in owned.of("Pod")) if each.slot}
    claims = (*owned.read("PersistentVolumeClaim"), *owned.of("PersistentVolumeClaim"))
    restore = restore_of(cr, owned)
    volumes = {each.slot: each for each in (_volume(claim, ctx, restore) for claim in claims) if each.slot}
    answers = [each for each in seen.values() if each.get("cluster")]
    return Situation(
        members=tuple(sorted(_members(facts, ctx), key=lambda each: (ctx.number_of(each.slot), each.id))),
        is_known=bool(facts.get("quorum")),
        leader=str(facts.get("leader") or ""),
        pods=pods,
        volumes=volumes,
        version=version_of(str(facts.get("version") or "")),
        clusters=tuple(sorted({each["cluster"] for each in answers})),
        is_formed=bool((cr.get("status") or {}).get("clusterID")) or any(each.member for each in volumes.values()),
        ran_version=version_of(text_at(cr, "status", "currentVersion"))
        if any(each.member for each in volumes.values())
        else None,
        restore=restore,
        alarms=tuple(EtcdAlarm(str(each["alarm"]), str(each["member"])) for each in facts.get("alarms") or ()),
        precautions=precautions_of(owned),
        facts=facts,
    )


def _members(facts: Facts, ctx: Context) -> Iterable[EtcdMember]:
    for each in facts.get("members") or ():
        host = str(each.get("peer", "")).partition("://")[2].partition(".")[0]
        slot = host if ctx.number_of(host) >= 0 else ""
        yield EtcdMember(str(each["id"]), slot, bool(each.get("name")), bool(each.get("learner")))


def _pod(pod: Manifest, seen: Mapping[str, Any], ctx: Context) -> Pod:
    name, metadata = pod["metadata"]["name"], pod["metadata"]
    answer = seen.get(name) or {}
    is_it = answer.get("uid") == metadata.get("uid") and not answer.get("error")
    going = bool(metadata.get("deletionTimestamp"))
    container: Mapping[str, Any] = next(iter((pod.get("spec") or {}).get("containers") or ()), {})
    state: Mapping[str, Any] = next(iter((pod.get("status") or {}).get("containerStatuses") or ()), {})
    return Pod(
        slot=name if ctx.number_of(name) >= 0 else "",
        manifest=pod,
        is_going=going,
        has_ended=not going and not is_alive(pod),
        is_ready=is_ready(pod) or (is_it and bool(answer.get("ready"))),
        version=version_of(str(container.get("image", "")).rpartition(":")[2]),
        template=annotations_of(pod).get(TEMPLATE, ""),
        restarts=int(state.get("restartCount") or 0),
        refuses_data=int(state.get("restartCount") or 0) >= _CRASHES and _refuses_data(state),
        fault=_fault(pod, state),
        answers=is_it,
        is_synced=is_it and bool(answer.get("synced")),
    )


def _fault(pod: Manifest, state: Mapping[str, Any]) -> str:
    """Return what keeps a pod from running, in the words of its node; empty where nothing does."""
    status = pod.get("status") or {}
    waiting, ended = (state.get("state") or {}).get("waiting") or {}, _end(state)
    words = [str(waiting.get("reason") or ""), str(waiting.get("message") or "")]
    if ended and not is_ready(pod):
        words += [f"exit code {ended.get('exitCode')}", _said(str(ended.get("message") or ""))]
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            words += [str(each.get("reason") or ""), str(each.get("message") or "")]
    return ": ".join(word.strip() for word in words if word.strip() and word != "ContainerCreating")[:300]


def _end(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a container ended last."""
    return (state.get("state") or {}).get("terminated") or (state.get("lastState") or {}).get("terminated") or {}


def _refuses_data(state: Mapping[str, Any]) -> bool:
    """Tell whether an etcd ended by itself over what it read. One that was killed, or has no room or no rights, says nothing about its data."""
    ended = _end(state)
    said = _said(str(ended.get("message") or ""))
    return ended.get("exitCode") != _KILLED and bool(_REFUSED_DATA.search(said)) and not _OUTER.search(said)


def _said(message: str) -> str:
    """Return what an etcd says last: a panic, or message and error of the last line of its log, else the end of whatever it is."""
    for line in reversed(message.splitlines()):
        if line.startswith("panic: "):
            return line
        if found := _LOG_LINE.search(line):
            return ": ".join(filter(None, found.groups()))
    return message.strip()[-200:]


def _volume(claim: Manifest, ctx: Context, restore: RestoreState | None) -> Volume:
    name, metadata = claim["metadata"]["name"], claim["metadata"]
    slot = name.removesuffix("-data")
    known = name.endswith("-data") and ctx.number_of(slot) >= 0
    uid = str(metadata.get("uid") or "")
    written = restore.member if restore and uid and restore.claim_uid == uid else ""
    aside = annotations_of(claim).get(ASIDE, "")
    member = "" if aside else annotations_of(claim).get(MEMBER, "") or written
    seed = annotations_of(claim).get(SEED, "")
    return Volume(slot if known else "", member, bool(metadata.get("deletionTimestamp")), uid, aside, seed)
