"""What an import finds: units with the Syncs that they become, what is to be known of them, and what people must do.

Vocabulary: a *unit* is an object of another tool that applies something: an Application, a Kustomization, a HelmRelease. A *credential need* is a
Secret that a Sync names, where it is now and which URL it is for. A *step* is a command that somebody runs.

Rules: a unit of which a field isn't possible becomes no Sync. Values of Secrets are in nothing that is here; steps have programs carry them
from one Secret to another.

Pure: values in, values out.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import URLS
from kubectl_reconcile.core.importing.fields import Fate, Finding
from kubectl_reconcile.core.objects import Manifest, ObjectRef, map_at
from kubectl_reconcile.core.planning.rights.writes import grant_command
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.sync import SYNC, Sync

STOPS: Final = frozenset({Fate.NOT_POSSIBLE})
"""Fates that keep a unit from becoming a Sync."""


PIN: Final = "spec.source.chart.digest of the Sync is still to be written: without it nothing is rendered, and the error names it"
"""What is said of a chart whose digest isn't known."""


class Placed(Struct, frozen=True):
    """An object, and the *file* that it is written in, if it is."""

    manifest: Manifest
    file: str = ""


class Step(NamedTuple):
    """A *command* that somebody runs, and *why*."""

    why: str
    command: str


class CredentialNeed(NamedTuple):
    """A Secret that a Sync of namespace *place* names *name*, made of the Secret *of* in *home*, for *url*.

    *keys* are pairs of a key and the one that it is made of; none has it taken as it is. With *known_hosts* it has those of that ConfigMap, too.
    """

    place: str
    name: str
    home: str
    of: str
    url: str
    keys: tuple[tuple[str, str], ...] = ()
    known_hosts: str = ""


class Unit(Struct, frozen=True):
    """One object of another tool, the Syncs that it becomes and what is to be known; *file* is where it is written, if it is.

    *is_elsewhere* tells that it is for another cluster, *is_source* that nothing is made of it alone, because it says what others follow.
    """

    ref: ObjectRef
    file: str = ""
    syncs: tuple[Manifest, ...] = ()
    findings: tuple[Finding, ...] = ()
    needs: tuple[CredentialNeed, ...] = ()
    is_elsewhere: bool = False
    is_source: bool = False

    @property
    def is_translated(self) -> bool:
        """Tell whether a Sync says what it said."""
        return bool(self.syncs)

    def findings_of(self, *fates: Fate) -> tuple[Finding, ...]:
        """Return what was found that has one of these *fates*."""
        return tuple(each for each in self.findings if each.fate in fates)


class Imported(Struct, frozen=True):
    """All that was found: *units*, and *others* of which no Sync is made, because they say what units mean or because nothing here is like them."""

    units: tuple[Unit, ...] = ()
    others: tuple[Unit, ...] = ()

    @property
    def syncs(self) -> tuple[Manifest, ...]:
        """All Syncs, in the order of their units."""
        return tuple(each for unit in self.units for each in unit.syncs)

    @property
    def here(self) -> tuple[Unit, ...]:
        """The units for the cluster of the daemon."""
        return tuple(unit for unit in self.units if not unit.is_elsewhere)


# --- a Sync ------------------------------------------------------------------------------------------------------------


def sync_manifest(name: str, namespace: str, spec: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a Sync, without what is None or empty in *spec*."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": SYNC.api_version, "kind": SYNC.kind, "metadata": metadata, "spec": without_empty(spec)}


def without_empty(tree: Any) -> Any:
    """Return *tree* without entries of maps that are None, or have nothing in them; values of charts are left as they are."""
    if not isinstance(tree, Mapping):
        return tree
    found = {name: value if name == _AS_IT_IS else without_empty(value) for name, value in tree.items()}
    return {name: value for name, value in found.items() if value is not None and value not in ("", [], {})}


_AS_IT_IS: Final = "values"


ODD_TYPES: Final = (TypeError, AttributeError, KeyError, IndexError, ValueError)
"""What goes wrong with an object that its CRD would refuse."""


def odd(ref: ObjectRef, file: str, error: Exception) -> Unit:
    """Return the unit of an object that has a field of another type than its CRD asks for."""
    said = f"has a field of another type than its CRD asks for ({type(error).__name__})"
    return Unit(ref, file, findings=(Finding("spec", Fate.NOT_POSSIBLE, said),))


def judged(unit: Unit) -> Unit:
    """Return *unit* without Syncs where a field isn't possible, or a Sync can't be meant as it would be written."""
    findings = [*unit.findings, *(_TOLD_SECRET for each in unit.syncs if _tells_credentials(each))]
    for each in () if any(found.fate in STOPS for found in findings) else unit.syncs:
        try:
            if not Sync.of(each).name:
                findings.append(Finding("metadata.name", Fate.NOT_POSSIBLE, "there is none"))
        except SyncSpecError as error:
            findings.append(Finding(error.field, Fate.NOT_POSSIBLE, f"as a field of the Sync, it {error.message}"))
    found = tuple(dict.fromkeys(findings))
    if any(each.fate in STOPS for each in found):
        return replace(unit, syncs=(), needs=(), findings=found)
    return replace(unit, findings=found)


def told_apart(found: Imported) -> Imported:
    """Return what was found with a finding on units whose Syncs would be the same object."""
    owners = Counter((each["metadata"]["namespace"], each["metadata"]["name"]) for each in found.syncs)

    def told(unit: Unit) -> Unit:
        most = max((owners[each["metadata"]["namespace"], each["metadata"]["name"]] for each in unit.syncs), default=1)
        if most == 1:
            return unit
        said = f"{most} units become Syncs of this name: import the files of one cluster alone"
        return replace(unit, findings=(*unit.findings, Finding("metadata.name", Fate.APPROXIMATED, said)))

    return replace(found, units=tuple(map(told, found.units)))


_TOLD_SECRET: Final = Finding(
    "spec.source",
    Fate.NOT_POSSIBLE,
    "its URL has credentials in it: put them into a Secret, and out of the URL, which everybody may see",
)


def _tells_credentials(sync: Manifest) -> bool:
    source = map_at(sync, "spec", "source")
    urls = (
        map_at(source, "git").get("url"),
        map_at(source, "oci").get("url"),
        map_at(source, "chart").get("repository"),
    )
    return any(without_credentials(text) != text for text in map(str, filter(None, urls)))


# --- what people do -----------------------------------------------------------------------------------------------------


def credential_steps(units: Iterable[Unit]) -> Iterator[Step]:
    """Yield the commands that make the Secrets which the Syncs of *units* name, or that say what these are for."""
    urls: dict[CredentialNeed, list[str]] = defaultdict(list)
    for unit in units:
        for need in unit.needs:
            found = urls[need._replace(url="")]
            if need.url not in found:
                found.append(need.url)
    for need, addresses in sorted(urls.items()):
        named = " ".join(sorted(filter(None, addresses)))
        if named or need.home != need.place:
            yield _credential_step(need, named)


def _credential_step(need: CredentialNeed, urls: str) -> Step:
    if (need.home, need.of) == (need.place, need.name):
        command = f"kubectl annotate secret {_word(need.name)} -n {_word(need.place)} {_word(f'{URLS}={urls}')}"
        return Step(f"Secret {need.place}/{need.name} says what its credentials are for", command)
    metadata = {"name": need.name, "namespace": need.place, **({"annotations": {URLS: urls}} if urls else {})}
    data = ", ".join([
        *(f"{json.dumps(ours)}: .data[{json.dumps(theirs)}]" for ours, theirs in need.keys),
        *(["known_hosts: ($hosts | @base64)"] if need.known_hosts else []),
    ])  # fmt: skip
    kept = f'type: "Opaque", data: ({{{data}}} | with_entries(select(.value)))' if need.keys else "type, data"
    program = f"{{apiVersion, kind, {kept}, metadata: {json.dumps(metadata)}}}"
    hosts = (
        f" --arg hosts \"$(kubectl get configmap {_word(need.known_hosts)} -n {_word(need.home)} -o jsonpath='{{.data.ssh_known_hosts}}')\""
        if need.known_hosts
        else ""
    )
    read = f"kubectl get secret {_word(need.of)} -n {_word(need.home)} -o json"
    command = f"{read} | jq{hosts} {_word(program)} | kubectl apply -f -"
    return Step(f"Secret {need.place}/{need.name} has the credentials of {need.home}/{need.of}", command)


def grant_steps(units: Iterable[Unit]) -> Iterator[Step]:
    """Yield the commands that give the accounts of the Syncs of *units* their rights, once the Syncs are in the cluster."""
    for unit in units:
        for each in unit.syncs:
            sync = Sync.of(each)
            yield Step(
                f"ServiceAccount {sync.namespace}/{sync.service_account} may write what Sync {sync.name} has",
                f"{grant_command(sync)} --apply",
            )


def _word(text: str) -> str:
    return shlex.quote(text)
