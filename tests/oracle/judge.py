"""One object with a history, put to the API server and to `three_way`: do they say the same?

Vocabulary: a *story* is what happened to an object: steps by managers, each an apply, an update, a
patch or a write to a subresource. A *question* is one more apply by us on top of a story. The
server answers it with dry-runs; a *mismatch* is where `three_way` said something else.

What the server fills in by itself on built-in kinds (defaults, derived fields) is told from what
it merges by asking it for both: storing our prediction (a dry-run PUT) must give the very object
that the apply gives. Values at the fields that we own must be as predicted even before that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.cluster.client import ApiError, Client
from kubectl_reconcile.core.objects import FIELD_MANAGER as US
from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.lookup import value_at
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED, entry_of
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, IgnoreRule, Merge, MergeError, Verdict, three_way
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.core.ssa.typed import ABSENT, fields_of
from kubectl_reconcile.core.ssa.values import is_zero, same

SERVERS_OWN = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")

DERIVED = FieldSet.of(
    [
        FieldPath.fields("metadata", "annotations"),
        FieldPath.fields("metadata", "annotations", "deprecated.daemonset.template.generation"),
        FieldPath.fields("metadata", "labels", "kubernetes.io/metadata.name"),
        FieldPath.fields("spec", "tolerations"),
    ]
)
"""Fields that the server changes, whatever anybody states: a DaemonSet counts its templates, a namespace is labelled with its
name, pods tolerate more."""


def _without_addresses(service: dict[str, Any]) -> dict[str, Any]:
    spec = {name: value for name, value in service["spec"].items() if name not in {"clusterIP", "clusterIPs"}}
    ports = [{name: value for name, value in port.items() if name != "nodePort"} for port in spec.get("ports") or ()]
    return {**service, "spec": {**spec, "ports": ports, "healthCheckNodePort": bool(spec.get("healthCheckNodePort"))}}


def _without_uids(job: dict[str, Any]) -> dict[str, Any]:
    """Return a Job whose controller labels and selector, which hold its uid, say only that they are there."""

    def plain(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {name: "drawn" if name.endswith("controller-uid") else plain(below) for name, below in tree.items()}
        return [plain(item) for item in tree] if isinstance(tree, list) else tree

    found: dict[str, Any] = plain(job)
    return found


def _without_times(volume: dict[str, Any]) -> dict[str, Any]:
    status = {name: value for name, value in volume["status"].items() if name != "lastPhaseTransitionTime"}
    return {**volume, "status": status}


DRAWN = {"Service": _without_addresses, "Job": _without_uids, "PersistentVolume": _without_times}
"""Kinds of which each create draws something anew, and what is left of one without that."""

BY_SERVICE_TYPE = {f"f:{name}" for name in ("nodePort", "healthCheckNodePort", "clusterIP", "clusterIPs")}
"""What the server drops by itself as soon as the new type of a Service has no use for it."""


@dataclass(frozen=True)
class Subject:
    """A kind under test: where its objects are and how they merge.

    *discovered* is the schema as production reads it, by discovery, where *schema* has another source.
    """

    api_version: str
    kind: str
    path: str
    schema: Schema
    has_status: bool = False
    scalable: bool = False
    versions: tuple[str, ...] = ()
    discovered: Schema | None = None

    def at(self, body: Mapping[str, Any]) -> str:
        """Return the collection at the version of *body*, ours if it says none."""
        return self.path.replace(f"/{self.api_version}/", f"/{body.get('apiVersion', self.api_version)}/")

    def manifest(self, name: str, body: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name, **metadata}, **body}


@dataclass(frozen=True)
class Step:
    """One write: *verb* is apply, force, create, update, patch, status or scale."""

    verb: str
    manager: str
    body: dict[str, Any]


@dataclass
class Mismatch:
    """What `three_way` said, and what the server did."""

    what: str
    predicted: Any
    actual: Any


@dataclass
class Answer:
    """How one question went."""

    verdict: str = ""
    refused: bool = False
    false_same: bool = False
    mismatches: list[Mismatch] = field(default_factory=list)
    phantoms: list[Mismatch] = field(default_factory=list)
    merge: Merge | None = None
    ignores: Sequence[IgnoreRule] = ()
    version: str = ""
    """resourceVersion of the object that the question was about, after a takeover."""


async def tell(client: Client, subject: Subject, name: str, step: Step) -> bool:
    """Do one step of a story; return whether the server took it."""
    path = f"{subject.at(step.body)}/{name}"
    body = {**step.body, "metadata": {**(step.body.get("metadata") or {}), "name": name}}
    try:
        if step.verb in {"apply", "force"}:
            await client.apply(path, body, manager=step.manager, force=step.verb == "force")
        elif step.verb == "create":
            await client.create(subject.at(step.body), body, manager=step.manager, field_validation="Ignore")
        elif step.verb == "update":
            version = (await client.get(path))["metadata"]["resourceVersion"]
            body["metadata"]["resourceVersion"] = version
            await client.replace(path, body, manager=step.manager, field_validation="Ignore")
        elif step.verb == "patch":
            await client.patch(path, body, manager=step.manager, field_validation="Ignore")
        else:
            await client.patch(f"{path}/{step.verb}", step.body, manager=step.manager, field_validation="Ignore")
    except ApiError:
        return False
    return True


async def ask(
    client: Client,
    subject: Subject,
    live: Mapping[str, Any],
    desired: Mapping[str, Any],
    *,
    base: Mapping[str, Any] | None = None,
    policy: ConflictPolicy = ConflictPolicy.OVERRIDE,
    ignores: Sequence[IgnoreRule] = (),
) -> Answer:
    """Put one question to both; a takeover, if one is due, is really done."""
    path = f"{subject.path}/{live['metadata']['name']}"
    before = repr(desired), repr(live)
    try:
        ours = three_way(desired=desired, live=live, schema=subject.schema, base=base, policy=policy, ignores=ignores)
    except MergeError as error:
        return await _refusal(client, path, desired, error)
    answer = Answer(verdict=ours.verdict, merge=ours, ignores=ignores)
    if (repr(desired), repr(live)) != before:
        answer.mismatches.append(Mismatch("inputs", "never mutated", "mutated"))
    if subject.discovered is not None:
        again = three_way(
            desired=desired, live=live, schema=subject.discovered, base=base, policy=policy, ignores=ignores
        )
        _compare_sources(ours, again, answer)
    if ours.takeover:
        live = await client.patch(path, list(ours.takeover), manager=US)
    answer.version = live["metadata"]["resourceVersion"]
    whole = three_way(desired=desired, live=live, schema=subject.schema, base=base, ignores=ignores).intent
    after = await _apply(client, path, ours, policy, answer, whole)
    if after is not None:
        if ours.verdict is not Verdict.UNSURE or not ours.doubt.endswith("can convert"):
            _compare_ownership(ours, live, after, answer)
            await _compare_values(client, path, subject, ours, live, after, answer)
            _compare_changes(subject, ours, live, after, answer)
        _compare_ignored(ignores, subject, desired, live, after, answer)
    return answer


async def ask_create(client: Client, subject: Subject, desired: Mapping[str, Any]) -> Answer:
    """Put the question what a create gives."""
    path = f"{subject.path}/{desired['metadata']['name']}"
    try:
        ours = three_way(desired=desired, live=None, schema=subject.schema)
    except MergeError as error:
        return await _refusal(client, path, desired, error)
    answer = Answer(verdict=ours.verdict)
    if subject.discovered is not None:
        _compare_sources(ours, three_way(desired=desired, live=None, schema=subject.discovered), answer)
    try:
        after = await client.apply(path, ours.intent, dry_run=True)
    except ApiError as error:
        _is_refused(error, answer)
        return answer
    empty = {"metadata": {}}
    _compare_ownership(ours, empty, after, answer)
    predicted, actual = _comparable(ours.merged), _comparable(after)
    if not subject.schema.is_custom:
        stored = await client.create(subject.path, ours.merged, dry_run=True, field_validation="Ignore")
        predicted = _comparable(stored)
    place = after["metadata"].get("namespace")
    predicted = {**predicted, "metadata": {**predicted["metadata"], **({"namespace": place} if place else {})}}
    if subject.kind in DRAWN:
        predicted, actual = DRAWN[subject.kind](predicted), DRAWN[subject.kind](actual)
    if not same(predicted, actual):
        answer.mismatches.append(Mismatch("created", _first_difference(predicted, actual), "see left"))
    return answer


def _compare_sources(ours: Merge, again: Merge, answer: Answer) -> None:
    """The schema from the CRD and the one by discovery tell the same; what converts into what only the CRD knows."""
    if again.verdict is Verdict.UNSURE and again.doubt.endswith("can convert"):
        return
    for what in ("verdict", "merged", "intent", "owned", "changes", "conflicts", "takeover"):
        one, other = getattr(ours, what), getattr(again, what)
        if one != other:
            answer.mismatches.append(Mismatch(f"{what} by discovery", other, one))


def _compare_ignored(
    ignores: Sequence[IgnoreRule],
    subject: Subject,
    desired: Mapping[str, Any],
    live: Mapping[str, Any],
    after: Mapping[str, Any],
    answer: Answer,
) -> None:
    """An ignored field is as it was."""
    root = subject.schema.root
    retyped = subject.kind == "Service" and live["spec"].get("type") != after["spec"].get("type")
    for path in (fields_of(desired, root) - STRIPPED - DERIVED).leaves():
        if retyped and path[-1] in BY_SERVICE_TYPE:
            continue
        if any(rule.matches(path) for rule in ignores):
            was, became = value_at(live, path, root), value_at(after, path, root)
            if was is not ABSENT and not (became is not ABSENT and same(was, became)):
                answer.mismatches.append(Mismatch(f"ignored {path}", was, became))


async def _refusal(client: Client, path: str, desired: Mapping[str, Any], error: MergeError) -> Answer:
    answer = Answer(refused=True)
    try:
        await client.apply(path, desired, force=True, dry_run=True)
    except ApiError:
        return answer
    answer.mismatches.append(Mismatch("refusal", str(error), "accepted"))
    return answer


async def _compare_yielded(
    client: Client, path: str, desired: Mapping[str, Any], expected: set[tuple[str, str]], answer: Answer
) -> None:
    """What we say we yield is what the server would have called a conflict."""
    try:
        await client.apply(path, desired, dry_run=True)
    except ApiError as error:
        found = _conflicts_of(error)
        if not found:
            return  # it is refused for another reason, which the yielded intent meets as well
    else:
        found = set()
    if found != expected:
        answer.mismatches.append(Mismatch("yielded conflicts", sorted(expected), sorted(found)))


def _conflicts_of(error: ApiError) -> set[tuple[str, str]]:
    causes = (cause for cause in error.causes if cause.reason == "FieldManagerConflict")
    return {(_manager(cause.message), cause.field) for cause in causes}


async def _apply(
    client: Client,
    path: str,
    ours: Merge,
    policy: ConflictPolicy,
    answer: Answer,
    desired: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Dry-run the intent, first without force, which tells the conflicts, then with it."""
    expected = {(conflict.manager, server_text(conflict.path)) for conflict in ours.conflicts}
    if policy is ConflictPolicy.YIELD:
        await _compare_yielded(client, path, desired, expected, answer)
        expected = set()
    found: set[tuple[str, str]] = set()
    try:
        after: dict[str, Any] | None = await client.apply(path, ours.intent, dry_run=True)
    except ApiError as error:
        found = _conflicts_of(error)
        after = None
        if not found and _is_refused(error, answer):
            return None
    if found != expected:
        answer.mismatches.append(Mismatch("conflicts", sorted(expected), sorted(found)))
    if after is None:
        try:
            after = await client.apply(path, ours.intent, force=True, dry_run=True)
        except ApiError as error:
            _is_refused(error, answer)
            return None
    return after


def _is_refused(error: ApiError, answer: Answer) -> bool:
    """Note a refusal; it counts against us only if it is about what the merge itself must refuse."""
    answer.refused = True
    if any(words in error.message for words in ("typed patch", "not declared in schema", "duplicate entries")):
        answer.mismatches.append(Mismatch("acceptance", "accepted", error.message))
    return True


def _manager(message: str) -> str:
    match = re.match(r'conflict with "([^"]*)"', message)
    return match[1] if match else message


def server_text(path: tuple[str, ...]) -> str:
    """Return a path as the server prints it."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    out = []
    for element in path:
        kind, body = element[:2], element[2:]
        if kind == "f:":
            out.append(f".{body}")
        elif kind == "k:":
            out.append("[" + ",".join(f"{name}={text(value)}" for name, value in json.loads(body).items()) + "]")
        else:
            out.append(f"[={text(json.loads(body))}]" if kind == "v:" else f"[{body}]")
    return "".join(out)


def _compare_ownership(ours: Merge, live: Mapping[str, Any], after: Mapping[str, Any], answer: Answer) -> None:
    entry = entry_of(after, US)
    owned = FieldSet.of_wire(entry["fieldsV1"]) if entry else FieldSet()
    if owned != ours.owned:
        answer.mismatches.append(
            Mismatch("our fields", f"only predicted:\n{ours.owned - owned}", f"only actual:\n{owned - ours.owned}")
        )
    elif entry and entry["fieldsV1"] != ours.owned.to_wire():
        answer.mismatches.append(Mismatch("spelling of our fields", ours.owned.to_wire(), entry["fieldsV1"]))
    unchanged = same(_comparable(live), _comparable(after)) and _owners(live) == _owners(after) and not ours.takeover
    if ours.verdict is Verdict.SAME and not unchanged:
        answer.false_same = True
        answer.mismatches.append(Mismatch("unchanged", _comparable(live), _comparable(after)))
    if ours.verdict is Verdict.DIFFERENT and unchanged:
        changes = [f"{change.path} {change.before!r} -> {change.after!r}" for change in ours.changes]
        answer.mismatches.append(Mismatch("different", changes or "owners", "unchanged"))


def _owners(obj: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    entries = obj["metadata"].get("managedFields") or ()
    return sorted(
        (
            entry["manager"],
            entry["operation"],
            entry.get("subresource", ""),
            entry["apiVersion"],
            repr(FieldSet.of_wire(entry["fieldsV1"])),
        )
        for entry in entries
    )


def _comparable(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in SERVERS_OWN}
    return {**obj, "metadata": metadata}


async def _compare_values(
    client: Client,
    path: str,
    subject: Subject,
    ours: Merge,
    live: Mapping[str, Any],
    after: Mapping[str, Any],
    answer: Answer,
) -> None:
    predicted, actual = _comparable(ours.merged), _comparable(after)
    if same(predicted, actual):
        return
    if not subject.schema.is_custom:
        for owned in (ours.owned - DERIVED).leaves():
            want, have = (value_at(tree, owned, subject.schema.root) for tree in (predicted, actual))
            if (
                want is not ABSENT
                and have is not ABSENT
                and not is_zero(want)
                and not same(want, have)
                and not _holds(want, have)
            ):
                answer.mismatches.append(Mismatch(f"value at {owned}", want, have))
        version = {"resourceVersion": live["metadata"]["resourceVersion"]}
        body = {**ours.merged, "metadata": {**ours.merged["metadata"], **version}}
        try:
            stored = await client.replace(path, body, dry_run=True, field_validation="Ignore")
        except ApiError as error:
            answer.mismatches.append(Mismatch("prediction refused", ours.merged, error.message))
            return
        predicted = _comparable(stored)
        if same(predicted, actual):
            return
    answer.mismatches.append(Mismatch("merged", _first_difference(predicted, actual), "see left"))


def _compare_changes(
    subject: Subject, ours: Merge, live: Mapping[str, Any], after: Mapping[str, Any], answer: Answer
) -> None:
    """Every field that we say changes does change: a change that the server doesn't make is a *phantom*."""
    for change in ours.changes:
        was, became = (value_at(_comparable(tree), change.path, subject.schema.root) for tree in (live, after))
        if was is became or (was is not ABSENT and became is not ABSENT and same(was, became)):
            answer.phantoms.append(
                Mismatch(f"phantom at {change.path}", f"{ours.verdict} {change.before!r} -> {change.after!r}", was)
            )


def _holds(want: Any, have: Any) -> bool:
    """Return whether *have* is *want* with the server's defaults inside (an atomic value of a built-in kind)."""
    if isinstance(want, dict) and isinstance(have, dict):
        return all(is_zero(value) or (name in have and _holds(value, have[name])) for name, value in want.items())
    if isinstance(want, list) and isinstance(have, list):
        return len(want) == len(have) and all(map(_holds, want, have))
    return same(want, have)


def _first_difference(one: Any, other: Any, path: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            left, right = one.get(name, ABSENT), other.get(name, ABSENT)
            if left is ABSENT or right is ABSENT or not same(left, right):
                return _first_difference(left, right, f"{path}.{name}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            if not same(left, right):
                return _first_difference(left, right, f"{path}[{index}]")
    return f"{path}: predicted {one!r}, actual {other!r}"
