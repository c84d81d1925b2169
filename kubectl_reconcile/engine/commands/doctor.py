"""Whether everything is in place: this machine, the way to the cluster, what is installed there, and each Sync's Git.

Vocabulary: a *finding* is the answer to one question, with its *grade* and, where it isn't ok, what to do.

Findings come as they are made, the foundations first; where one of those fails, what stands on it isn't asked.
Nothing is written: rights are asked for by access reviews, which the server doesn't keep.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import platform
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson
from msgspec import Struct

import kubectl_reconcile
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, KubeconfigError, NotFound
from kubectl_reconcile.core.objects import Manifest, condition_of, map_at
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.resources.decryption import Decryption
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.source import chart_settings, former_fields
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.engine.api import sync_requests
from kubectl_reconcile.engine.api.access_reviews import may
from kubectl_reconcile.engine.commands.install import crds
from kubectl_reconcile.engine.commands.rights.survey import survey
from kubectl_reconcile.engine.modules.registry import KnownModules, installed_modules
from kubectl_reconcile.engine.sync.credentials import chart_of
from kubectl_reconcile.engine.sync.decryption import decryption_of
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import check_keys
from kubectl_reconcile.engine.sync.targets import listed, may_read, source_of
from kubectl_reconcile.source.base import Followed
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import git_version
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.source.running.threads import in_thread

_OLDEST_GIT = (2, 31)
_OLDEST_SERVER = (1, 30)
"""What `install` needs, as the guides say. Rules of its CRDs ask for CEL's ``quantity``, new in 1.29."""
_CLOCKS_AGREE_S = 3.0
_CLOCKS_CLASH_S = 15.0
"""Beyond this, the Lease of a living daemon looks expired."""
_AT_ONCE = 8
_BRINGS = "kubectl reconcile install creates them"


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    """All is well."""
    WARN = "warn"
    """Something works less well, or not for you."""
    FAIL = "fail"
    """Something that is needed doesn't work."""


class Finding(Struct, frozen=True):
    """What was found about *subject*, and what to do about it. *unreachable* tells that the cluster is out of reach."""

    grade: Grade
    subject: str
    text: str
    advice: str = ""
    unreachable: bool = False


async def examine(access: Access, cache_dir: Path | None, namespace: str) -> AsyncGenerator[Finding, None]:
    """Yield what is found, the foundations first. Syncs are those of *namespace*, or of all where that is empty."""
    for finding in await asyncio.to_thread(_machine):
        yield finding
    try:
        client = await Client.connect(access)
    except KubeconfigError as error:
        yield Finding(Grade.FAIL, "cluster", error.message, error.hint, unreachable=True)
        return
    async with client:
        try:
            for finding in await _server(client):
                yield finding
            session = await Session.over(client, SourcePolicy.of_person(), cache_dir)
        except ApiError as error:
            text, hint = _parted(error)
            yield Finding(Grade.FAIL, "cluster", text, hint, unreachable=True)
            return
        async for finding in _installed(session, namespace):
            yield finding


def _parted(error: Exception) -> tuple[str, str]:
    hint = str(getattr(error, "hint", ""))
    return str(error).removesuffix(f" (hint: {hint})"), hint


# --- this machine -----------------------------------------------------------------------------------------------------


def _machine() -> list[Finding]:
    return [_versions(), _plugin(), *modules_found(installed_modules())]


def _versions() -> Finding:
    ours = f"kubectl-reconcile {kubectl_reconcile.__version__}, Python {platform.python_version()}"
    try:
        git = git_version()
    except SourceError as error:
        return Finding(Grade.FAIL, "program", f"{ours}; {error.message}", error.hint)
    text = f"{ours}, git {'.'.join(map(str, git))}"
    if git[:2] < _OLDEST_GIT:
        return Finding(Grade.FAIL, "program", text, f"git must be {'.'.join(map(str, _OLDEST_GIT))} or newer")
    return Finding(Grade.OK, "program", text)


def _plugin() -> Finding:
    missing = [name for name in ("kubectl", "kubectl-reconcile") if not shutil.which(name)]
    if missing:
        text = f"{' and '.join(missing)} not on PATH: kubectl reconcile won't work"
        return Finding(Grade.WARN, "plugin", text, "add the folder that holds it to PATH")
    if not shutil.which("kubectl_complete-reconcile"):
        text = "kubectl finds kubectl-reconcile, but not kubectl_complete-reconcile: no completion"
        return Finding(Grade.WARN, "plugin", text, "put it on PATH, too")
    return Finding(Grade.OK, "plugin", "kubectl finds it, and its completion")


def modules_found(known: KnownModules) -> list[Finding]:
    """Return what there is to say of domain modules; all are imported for that."""
    count = len(known.all_loaded())
    faults = [
        Finding(Grade.FAIL if each.is_missing else Grade.WARN, "modules", each.why, each.hint) for each in known.faults
    ]
    return faults or [Finding(Grade.OK, "modules", f"{count} {'is' if count == 1 else 'are'} installed")]


# --- the server -------------------------------------------------------------------------------------------------------


async def _server(client: Client) -> list[Finding]:
    """Return what is found of the server.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    began_s = time.perf_counter()
    answer = await client.request("GET", "/version")
    took_s = time.perf_counter() - began_s
    version = orjson.loads(answer.body)
    return [release(client.server, version, took_s), clock(answer.headers.get("Date", ""), _now(), took_s)]


def release(server: str, version: Mapping[str, Any], took_s: float) -> Finding:
    """Return whether the daemon can be installed where ``/version`` says *version*; the answer took *took_s* seconds."""
    text = f"{server}: Kubernetes {version.get('gitVersion', '?')}, answers in {took_s * 1000:.0f} ms"
    if _number(version) >= _OLDEST_SERVER:
        return Finding(Grade.OK, "cluster", text)
    return Finding(Grade.WARN, "cluster", text, f"`install` needs {'.'.join(map(str, _OLDEST_SERVER))} or newer")


def _number(version: Mapping[str, Any]) -> tuple[int, int]:
    digits = ["".join(filter(str.isdigit, str(version.get(part, "")))) for part in ("major", "minor")]
    return int(digits[0] or 0), int(digits[1] or 0)


def clock(date: str, now: dt.datetime, took_s: float) -> Finding:
    """Return how far the clock here is from the server's, as its ``Date`` header *date* has it, to a second."""
    try:
        there = parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return Finding(Grade.WARN, "clock", "the server doesn't send its time")
    skew_s = (now - there).total_seconds() - took_s / 2
    if abs(skew_s) <= _CLOCKS_AGREE_S:
        return Finding(Grade.OK, "clock", "agrees with the server's")
    text = f"is {abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} the server's"
    worst = abs(skew_s) > _CLOCKS_CLASH_S
    advice = "set the clock (NTP): " + ("can't tell whether a daemon is running" if worst else "ages are shown wrong")
    return Finding(Grade.FAIL if worst else Grade.WARN, "clock", text, advice)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


# --- what is installed ------------------------------------------------------------------------------------------------


async def _installed(session: Session, namespace: str) -> AsyncIterator[Finding]:
    crds_found = await _crds(session)
    yield crds_found
    # For a moment the server reports a kind whose CRD was just deleted.
    if crds_found.grade is Grade.FAIL or session.discovery.find(SYNC.api_version, SYNC.kind) is None:
        return
    syncs, finding = await _syncs(session, namespace)
    if finding is not None:
        yield finding
    for strangers in map(strangers_of, syncs):
        if strangers is not None:
            yield strangers
    yield await _rights(session, namespace, syncs)
    yield await _daemon(session, namespace, syncs)
    for finding in await _accounts(session, syncs):
        yield finding
    for finding in await _sources(session, syncs):
        yield finding


async def _crds(session: Session) -> Finding:
    """Compare the CRDs that come with us with those that are there."""
    missing, other = [], []
    for located in crds():
        name = located.manifest["metadata"]["name"]
        try:
            live = await session.client.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        except NotFound:
            missing.append(name)
        except ApiError as error:
            text, hint = _parted(error)
            return Finding(Grade.WARN, "crds", f"can't be read: {text}", hint)
        else:
            if not covers(live["spec"], located.manifest["spec"]):
                other.append(name)
    if missing:
        needed = f"syncs.{SYNC.group}" in missing
        text = f"not installed: {', '.join(missing)}"
        return Finding(Grade.FAIL if needed else Grade.WARN, "crds", text, _BRINGS)
    if other:
        return Finding(
            Grade.WARN, "crds", f"not those of this version: {', '.join(other)}", "kubectl reconcile install"
        )
    return Finding(Grade.OK, "crds", f"all {len(crds())} installed, at this version")


def covers(live: Any, ours: Any) -> bool:
    """Return whether *live* states all that *ours* does, where the server may have added defaults.

    Properties of a schema are compared whole: one that we dropped doesn't count as a default.
    """
    if isinstance(ours, Mapping):
        if not isinstance(live, Mapping):
            return False
        for name, value in ours.items():
            if name not in live or not covers(live[name], value):
                return False
            if name == "properties" and isinstance(value, Mapping) and live[name].keys() != value.keys():
                return False
        return True
    if isinstance(ours, list):
        return isinstance(live, list) and len(live) == len(ours) and all(map(covers, live, ours))
    return bool(live == ours)


async def _syncs(session: Session, namespace: str) -> tuple[list[Manifest], Finding | None]:
    place = f"/namespaces/{namespace}" if namespace else ""
    try:
        items, _ = await session.client.list(f"{sync_requests.SYNCS}{place}/syncs")
    except ApiError as error:
        text, hint = _parted(error)
        return [], Finding(Grade.FAIL, "syncs", text, hint)
    items.sort(key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))
    return list(items), None


def strangers_of(sync: Manifest) -> Finding | None:
    """Return which objects say of themselves that they are members of a Sync without ever having been asked for; None where none does."""
    found = [str(each) for each in map_at(sync, "status").get("unasked") or ()]
    if not found:
        return None
    name, namespace = sync["metadata"]["name"], sync["metadata"]["namespace"]
    return Finding(
        Grade.WARN, f"sync {namespace}/{name}",
        f"marked as its members, and never asked for by its source: {listed(found)}",
        f"whoever may write them has put the label on; kubectl reconcile approve {name} -n {namespace} deletes them",
    )  # fmt: skip


# --- rights -----------------------------------------------------------------------------------------------------------

_Right = tuple[str, str, str, str]
"""Verb, API group, resource, and what can't be done without it."""

_YOURS: Sequence[_Right] = (
    ("list", SYNC.group, "syncs", "see Syncs"),
    ("patch", SYNC.group, "syncs", "sync, suspend, resume, approve, roll back"),
    ("create", SYNC.group, "syncs", "create Syncs"),
    ("list", "events.k8s.io", "events", "see what daemons report"),
)


def _names_credentials(sync: Manifest) -> bool:
    """Tell whether a Sync names a Secret for its repository, or for that of its chart."""
    places = (
        map_at(sync, "spec", "source", "git"),
        map_at(sync, "spec", "source", "oci"),
        map_at(chart_settings(sync), "chart"),
    )
    return any(each.get("secretRef") for each in places)


async def _rights(session: Session, namespace: str, syncs: Sequence[Manifest]) -> Finding:
    """Ask which of the rights that the verbs need you have."""
    wanted = list(_YOURS)
    if any(map(_names_credentials, syncs)):
        wanted.append(("get", "", "secrets", "read private repositories, as diff does"))
    asked = [(namespace, Right(group, resource, verb)) for verb, group, resource, _ in wanted]
    try:
        answers = await asyncio.gather(*(may(session.client, *one) for one in asked))
    except ApiError as error:
        text, hint = _parted(error)
        return Finding(Grade.WARN, "rights", f"can't be checked: {text}", hint)
    lacking = [right for right, allowed in zip(wanted, answers, strict=True) if not allowed]
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    if not lacking:
        return Finding(Grade.OK, "rights", f"you may do all that the verbs need {where}")
    text = "; ".join(
        f"you may not {verb} {resource} {where}, so you can't {what}" for verb, _, resource, what in lacking
    )
    advice = "rules that allow it: " + ", ".join(
        f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'
        for verb, group, resource, _ in lacking
    )
    return Finding(Grade.WARN, "rights", text, advice)


async def _accounts(session: Session, syncs: Sequence[Manifest]) -> list[Finding]:
    """Ask how the accounts are doing as whom Syncs that follow Git apply; nothing where there is none."""
    try:
        found = await survey(session, syncs)
    except ApiError as error:
        text, hint = _parted(error)
        return [Finding(Grade.WARN, "accounts", f"their rights can't be checked: {text}", hint)]
    if not found:
        return []
    bad = [
        Finding(
            Grade.FAIL if each.lacking or each.out_of_reach else Grade.WARN, "accounts",
            f"Sync {each.sync.namespace}/{each.sync.name}: {'; '.join(each.troubles)}", each.advice,
        )
        for each in found if each.troubles
    ]  # fmt: skip
    unchecked = [f"{each.sync.namespace}/{each.sync.name}" for each in found if each.unchecked and not each.troubles]
    if unchecked:
        text = f"unchecked: you may not check the rights of the accounts of {listed(unchecked)}"
        bad.append(
            Finding(Grade.WARN, "accounts", text, "the built-in role admin allows these checks in its namespace")
        )
    well = len(found) - sum(1 for each in found if each.troubles or each.unchecked)
    whose = "that of 1 Sync" if well == 1 else f"those of {well} Syncs"
    good = Finding(Grade.OK, "accounts", f"{whose} may do all that the members need")
    return [*([good] if well else []), *bad]


# --- daemons ----------------------------------------------------------------------------------------------------------


async def _daemon(session: Session, namespace: str, syncs: Sequence[Manifest]) -> Finding:
    """Tell whether a daemon is running that follows the Syncs."""
    try:
        places = {sync["metadata"]["namespace"] for sync in syncs} | ({namespace} if namespace else set())
        alive = await sync_requests.living_daemons(session.client, places)
    except ApiError as error:
        text, hint = _parted(error)
        return Finding(Grade.WARN, "daemon", f"can't tell whether one is running: {text}", hint)
    near = [each for each in alive if not (namespace and each.follows) or each.follows == namespace]
    if near:
        names = ", ".join(f"{each.name}{f' (namespace {each.follows})' if each.follows else ''}" for each in near)
        return Finding(
            Grade.OK, "daemon", f"{'one is running' if len(near) == 1 else f'{len(near)} are running'}: {names}"
        )
    waiting = sum(1 for sync in syncs if map_at(sync, "spec").get("source"))
    grade = Grade.FAIL if waiting else Grade.WARN
    text = f"none is running{f', and {waiting} Syncs wait for one' if waiting > 1 else ', and a Sync waits for one' if waiting else ''}"
    advice = "kubectl reconcile install runs one in the cluster, kubectl reconcile daemon here"
    return Finding(grade, "daemon", text, advice)


# --- Syncs ------------------------------------------------------------------------------------------------------------


async def _sources(session: Session, syncs: Sequence[Manifest]) -> list[Finding]:
    """Ask each Sync's repository where its ref is."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def look(live: Manifest) -> Finding:
        async with slots:
            return await _source(session, live)

    return list(await asyncio.gather(*(look(live) for live in syncs if map_at(live, "spec").get("source"))))


async def _source(session: Session, live: Manifest) -> Finding:
    metadata = live["metadata"]
    subject = f"{metadata['namespace']}/{metadata['name']}"
    try:
        sync = Sync.of(live)
        if sync.source is None:
            return Finding(Grade.OK, subject, "is applied by hand")
        if not may_read(session, sync.source.address):
            return _state(subject, live, "its repository is on the daemon's machine")
        source, chart = await source_of(session, sync, sync.source), await chart_of(session, sync)
        at = [await asyncio.to_thread(_place, source.followed)] if source.followed else []
        if chart is not None:
            await in_thread(chart.files)
        check_keys(source, chart)
        decryption = await _decryption(session, sync)
    except SyncSpecError as error:
        return Finding(Grade.FAIL, subject, str(error), "kubectl edit sync corrects it")
    except SourceError as error:
        return Finding(Grade.FAIL, subject, error.message, error.hint)
    except ApiError as error:
        text, hint = _parted(error)
        return Finding(Grade.WARN, subject, f"its repository can't be read: {text}", hint)
    who = "Git" if sync.source.git else "the registry"
    said = [*(f"{who} answers, at {each}" for each in at), *([f"{chart.pin} is there"] if chart else [])]
    if decryption.asked:
        said.append(f"{decryption.place} has keys for encrypted files ({_UNPROTECTED})")
    return _state(subject, live, "; ".join(said))


async def _decryption(session: Session, sync: Sync) -> Decryption:
    """Return the keys that a Sync names for encrypted files.

    Raises:
        SourceError: they can't be used.
        ApiError: the server doesn't answer.
    """
    found = await decryption_of(session, sync)
    if found.fault:
        raise SourceError(SourceFault.UNAUTHORIZED, f"encrypted files can't be decrypted: {found.fault}", found.hint)
    return found


_UNPROTECTED: Final = "SOPS protects neither comments in them nor, under mac_only_encrypted, what is plain"


def _place(followed: Followed) -> str:
    """Return at which revision a server has what is followed now, in short, with the tag that a range of versions leads to.

    Raises:
        SourceError: there is no answer, or nothing of the kind.
    """
    sha = followed.remote_sha()
    tag = followed.tag_of(sha)
    return f"{short_of(sha)} ({tag})" if tag else short_of(sha)


def _state(subject: str, live: Manifest, source: str) -> Finding:
    """Return what a Sync with a readable source says of itself."""
    ready = condition_of(live, "Ready") or {}
    name, namespace = live["metadata"]["name"], live["metadata"]["namespace"]
    if map_at(live, "spec").get("suspend"):
        return Finding(Grade.OK, subject, f"{source}; it is suspended")
    if ready.get("status") == "False":
        text = f"{source}; it isn't ready: {ready.get('message') or ready.get('reason')}"
        return Finding(Grade.WARN, subject, text, f"kubectl reconcile status {name} -n {namespace} says more")
    for moved in former_fields(map_at(live, "spec", "source")):
        edit = f"kubectl edit sync {name} -n {namespace}, or where it comes from"
        return Finding(Grade.WARN, subject, f"{source}; {moved.path}: {moved.message}", f"{moved.hint}: {edit}")
    return Finding(Grade.OK, subject, f"{source}{'; it is ready' if ready.get('status') == 'True' else ''}")
