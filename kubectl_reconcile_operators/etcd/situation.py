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
    map_at,
    text_at,
)
from kubectl_reconcile_operators.etcd.continuity import is_the_cluster
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
SURPLUS = f"{PREFIX}surplus"
"""On volumes: its member isn't wanted any more, or somebody has removed it; what is on it stays, unless somebody approves that it goes."""
SEED = f"{PREFIX}seed"
"""On volumes made for a restore to replace a cluster's data: what tells the snapshot."""
TRUSTED = f"{PREFIX}trusted"
"""On pods: the fingerprints of the authorities that their etcd trusted when they were made, where the cluster issues certificates itself."""
PEERS, STATE = f"{PREFIX}initial-cluster", f"{PREFIX}initial-cluster-state"
"""On pods: what their etcd does where its volume is empty. Its arguments take it from here at each start, and once it has begun it only goes on."""
CONTINUES = "existing"
"""The state of who joins a cluster; of who is told of nobody to join, too, and who therefore never begins one."""
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
_EMPTY = re.compile(r"cannot fetch cluster info from peer urls|could not retrieve cluster information")
"""What an etcd ends with that has no data and finds nobody to join; one that has data asks nobody."""


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
    """A pod that the CR controls, and what its etcd answered. *fault* is what keeps it from running, if anything does.

    It *has lost its data* where it has run before and its etcd finds nothing. It *is apart* where its etcd runs, but with data that isn't the cluster's: then nothing that it answers counts.
    """

    slot: str
    manifest: Manifest = field(repr=False)
    is_going: bool = False
    has_ended: bool = False
    is_ready: bool = False
    version: EtcdVersion | None = None
    template: str = ""
    restarts: int = 0
    refuses_data: bool = False
    has_lost_data: bool = False
    is_apart: bool = False
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
    def is_beginning(self) -> bool:
        """Whether its etcd would begin or join a cluster, should its volume be empty."""
        return _is_beginning(self.manifest)

    @property
    def begins_for_life(self) -> bool:
        """Whether it would even after it has begun, as pods of earlier versions do, and is there to stay."""
        spec = self.manifest.get("spec") or {}
        is_kept = any("persistentVolumeClaim" in each for each in spec.get("volumes") or ())
        return is_kept and not self.is_alone and bool(begun_by_arguments(self.manifest))

    @property
    def is_alone(self) -> bool:
        """Whether its etcd was told to be the only member."""
        return _is_alone(self.manifest)


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume claim; *member* is the id of the member whose data it holds, empty where no member was seen on it.

    One that was put *aside* is nobody's; there the id stands, of whose data it holds still. *seed_for* tells the snapshot that
    it was made for, *size* what it was asked to be, *is_surplus* whether its member isn't wanted any more.
    """

    slot: str
    member: str = ""
    is_going: bool = False
    uid: str = ""
    aside: str = ""
    seed_for: str = ""
    size: str = ""
    is_surplus: bool = False

    @property
    def holds(self) -> str:
        """The id of the member whose data is there, put aside or not."""
        return self.member or self.aside


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that is known. *is_formed* tells that the cluster has existed at some time, if only as a backup that has been restored.

    *ran_version* is the lowest one that was seen running last. It *is disowned* where a majority answers, but not with the cluster's data (see ``continuity``): then nobody is known.
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
    is_disowned: bool = False

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


def begun_by_arguments(pod: Manifest) -> dict[str, str]:
    """Return what the arguments of a pod of an earlier version say of how its etcd begins; nothing where they leave that to its annotations."""
    told = dict(each.partition("=")[::2] for each in arguments_of(pod))
    found: dict[str, str] = {
        name: told[name] for name in ("--initial-cluster", "--initial-cluster-state") if name in told
    }
    return {} if any(value.startswith("$(") for value in found.values()) else found


def _is_alone(pod: Manifest) -> bool:
    return any(each.startswith(ALONE) for each in arguments_of(pod))


def _is_beginning(pod: Manifest) -> bool:
    noted = annotations_of(pod)
    return STATE in noted and (noted[STATE] != CONTINUES or "," in noted.get(PEERS, ""))


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
    alone = {text_at(each, "metadata", "name") for each in owned.of("Pod") if _is_alone(each)}
    is_disowned = not is_the_cluster(cr, facts, alone)
    told = _disowned(facts) if is_disowned else facts
    seen: Mapping[str, Any] = told.get("pods") or {}
    pods = {each.slot: each for each in (_pod(pod, seen, ctx) for pod in owned.of("Pod")) if each.slot}
    claims = (*owned.read("PersistentVolumeClaim"), *owned.of("PersistentVolumeClaim"))
    restore = restore_of(cr, owned)
    volumes = {each.slot: each for each in (_volume(claim, ctx, restore) for claim in claims) if each.slot}
    answers = [each for each in seen.values() if each.get("cluster")]
    return Situation(
        members=tuple(sorted(_members(told, ctx), key=lambda each: (ctx.number_of(each.slot), each.id))),
        is_known=bool(told.get("quorum")),
        leader=str(told.get("leader") or ""),
        pods=pods,
        volumes=volumes,
        version=version_of(str(told.get("version") or "")),
        clusters=tuple(sorted({each["cluster"] for each in answers})),
        is_formed=bool((cr.get("status") or {}).get("clusterID")) or any(each.member for each in volumes.values()),
        ran_version=version_of(text_at(cr, "status", "currentVersion"))
        if any(each.member for each in volumes.values())
        else None,
        restore=restore,
        alarms=tuple(EtcdAlarm(str(each["alarm"]), str(each["member"])) for each in told.get("alarms") or ()),
        precautions=precautions_of(owned),
        facts=facts,
        is_disowned=is_disowned,
    )


def _disowned(facts: Facts) -> Facts:
    """Return facts without what a majority says that hasn't the cluster's data: its voters are alone with what they hold."""
    voters = {each["id"] for each in facts.get("members") or () if not each.get("learner")}
    pods = {name: {**each, "alone": each.get("id") in voters} for name, each in (facts.get("pods") or {}).items()}
    return {"pods": pods, **({"tls": facts["tls"]} if "tls" in facts else {})}


def _members(facts: Facts, ctx: Context) -> Iterable[EtcdMember]:
    for each in facts.get("members") or ():
        host = str(each.get("peer", "")).partition("://")[2].partition(".")[0]
        slot = host if ctx.number_of(host) >= 0 else ""
        yield EtcdMember(str(each["id"]), slot, bool(each.get("name")), bool(each.get("learner")))


def _pod(pod: Manifest, seen: Mapping[str, Any], ctx: Context) -> Pod:
    name, metadata = pod["metadata"]["name"], pod["metadata"]
    answer = seen.get(name) or {}
    is_it = answer.get("uid") == metadata.get("uid") and not answer.get("error")
    is_apart = is_it and bool(answer.get("alone"))
    is_it = is_it and not is_apart
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
        has_lost_data=_has_lost_data(pod, state),
        is_apart=is_apart,
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


def _has_lost_data(pod: Manifest, state: Mapping[str, Any]) -> bool:
    """Tell whether an etcd that has run before ended because it found no data; one that runs by now has found it."""
    is_down = not is_ready(pod) and "running" not in (state.get("state") or {})
    goes_on = annotations_of(pod).get(STATE) == CONTINUES and not _is_beginning(pod)
    return is_down and goes_on and bool(_EMPTY.search(str(_end(state).get("message") or "")))


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
    size = str(map_at(claim, "spec", "resources", "requests").get("storage") or "")
    is_going, is_surplus = bool(metadata.get("deletionTimestamp")), SURPLUS in annotations_of(claim)
    return Volume(slot if known else "", member, is_going, uid, aside, seed, size, is_surplus)
