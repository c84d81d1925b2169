"""What objects say to Helm and Argo CD by annotations, and what of it means the same here.

Vocabulary: a *point* is when a hook runs, in our words (``pre-sync``); an *occasion* is whether it runs at each sync or, as Helm
tells them apart, at the first one alone (an *install*) or at all others (*upgrades*). What is *left out* is neither applied nor
pruned. What is *ignored* has no meaning here, and whoever wrote it should know.

Rules: what an object says in our own words counts for more, aspect by aspect. Of hooks, Argo CD's word counts for more than
Helm's, as it does there (Argo CD, "Helm hooks"). Only a Job runs; any other object that is a hook is written where the hook would run,
and is a member like others. ``table`` says all of it for the documentation.

Pure: annotations in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.objects import Problem, Severity

HELM: Final = "helm.sh/"
ARGO: Final = "argocd.argoproj.io/"
PREFIXES: Final = (HELM, ARGO)
"""What the names begin with that are read here."""

HELM_HOOK: Final = f"{HELM}hook"
HELM_WEIGHT: Final = f"{HELM}hook-weight"
HELM_DELETE_POLICY: Final = f"{HELM}hook-delete-policy"
HELM_LOG_POLICY: Final = f"{HELM}hook-output-log-policy"
HELM_RESOURCE_POLICY: Final = f"{HELM}resource-policy"
ARGO_HOOK: Final = f"{ARGO}hook"
ARGO_DELETE_POLICY: Final = f"{ARGO}hook-delete-policy"
ARGO_WAVE: Final = f"{ARGO}sync-wave"
ARGO_SYNC_OPTIONS: Final = f"{ARGO}sync-options"
ARGO_COMPARE_OPTIONS: Final = f"{ARGO}compare-options"
ARGO_IGNORE_HEALTH: Final = f"{ARGO}ignore-healthcheck"

_PRE, _POST, _SYNC, _FAIL = "pre-sync", "post-sync", "sync", "sync-fail"
_ORDER: Final = (_PRE, _SYNC, _POST, _FAIL)


class Occasion(StrEnum):
    """At which syncs a hook runs."""

    EVERY = "every"
    """Once for each state of the source."""
    INSTALL = "install"
    """Once, as long as no sync has ended well: Helm's install."""
    UPGRADE = "upgrade"
    """Once for each state of the source after the first that was synced well: Helm's upgrade."""


class Aspect(StrEnum):
    """What an annotation of ours decides alone, where it is there."""

    HOOK = "hook"
    WAVE = "wave"
    PRUNE = "prune"
    REPLACE = "replace"


class Ignored(NamedTuple):
    """An annotation that means nothing here, or not all that it says: its *name*, what of it, and what to do."""

    name: str
    message: str
    hint: str = ""


class Translation(Struct, frozen=True):
    """What an object's annotations for other tools mean here; a *wave* and *replace* of None, and an empty *point*, say nothing.

    *runs* tells a Job, which runs at its point, from what is only written then. *left_out* says why the object is neither applied nor pruned. *kept* has it stay when its file goes, *asks* has its
    deletion wait for a person.
    """

    wave: int | None = None
    point: str = ""
    runs: bool = False
    occasion: Occasion = Occasion.EVERY
    left_out: str = ""
    kept: bool = False
    asks: bool = False
    replace: bool | None = None
    ignored: tuple[Ignored, ...] = ()


NOTHING: Final = Translation()
"""The translation of an object that says nothing to other tools."""


def translation(noted: Mapping[str, str], kind: str, decided: Collection[Aspect] = ()) -> Translation:
    """Return what the annotations *noted* on an object of *kind* mean here, but for what our own have *decided*. Never raises."""
    found = _Findings()
    if Aspect.HOOK not in decided and not _argo_hook(noted.get(ARGO_HOOK, ""), kind, found) and HELM_HOOK in noted:
        _helm_hook(noted[HELM_HOOK], kind, found)
    for name in (HELM_DELETE_POLICY, ARGO_DELETE_POLICY) if found.is_hook else ():
        _delete_policy(name, noted.get(name, ""), found)
    if found.is_hook and HELM_LOG_POLICY in noted:
        found.ignore(HELM_LOG_POLICY, "is ignored: the logs stay in the pods", "kubectl logs shows them")
    if Aspect.WAVE not in decided:
        found.wave = _wave(noted, found)
    if Aspect.PRUNE not in decided and HELM_RESOURCE_POLICY in noted:
        _resource_policy(noted[HELM_RESOURCE_POLICY], found)
    _sync_options(noted.get(ARGO_SYNC_OPTIONS, ""), decided, found)
    _compare_options(noted.get(ARGO_COMPARE_OPTIONS, ""), found)
    if noted.get(ARGO_IGNORE_HEALTH, "false") != "false":
        found.ignore(ARGO_IGNORE_HEALTH, "is ignored: the object counts for the Sync's health", _OWN_HEALTH)
    return found.total()


class _Findings(Struct):
    """What was found so far."""

    wave: int | None = None
    point: str = ""
    runs: bool = False
    occasion: Occasion = Occasion.EVERY
    left_out: str = ""
    kept: bool = False
    asks: bool = False
    replace: bool | None = None
    is_hook: bool = False
    ignored: list[Ignored] = field(default_factory=list)

    def ignore(self, name: str, message: str, hint: str = "") -> None:
        self.ignored.append(Ignored(name, message, hint))

    def leave_out(self, name: str, value: str, why: str, hint: str = "") -> None:
        self.left_out = f"{name}: {value}"
        self.ignore(name, f"{value}: the object is left out, neither applied nor pruned: {why}", hint)

    def run_at(self, name: str, points: Collection[str], kind: str) -> None:
        """Take the first of several points: a Job has one, and anything else stays once it is there."""
        ordered = [point for point in _ORDER if point in points]
        if kind in _RUNNING:
            self.left_out = f"{name} on a {kind}"
            self.ignore(
                name, f"on a {kind}: left out, neither applied nor pruned: only a Job runs as a hook", "make it a Job"
            )
            return
        if kind != _JOB and ordered[0] == _FAIL:
            self.left_out = f"{name} on a {kind}"
            self.ignore(
                name,
                "on an object that isn't a Job: left out, neither applied nor pruned: only a Job runs when a sync failed",
            )
            return
        if kind == _JOB and len(ordered) > 1:
            more = " and ".join(ordered[1:])
            self.ignore(
                name, f"names several points: the Job runs at {ordered[0]}, and not at {more}", "make it two Jobs"
            )
        self.point, self.runs = ordered[0], kind == _JOB

    def total(self) -> Translation:
        return Translation(
            self.wave,
            self.point,
            self.runs,
            self.occasion,
            self.left_out,
            self.kept,
            self.asks,
            self.replace,
            tuple(self.ignored),
        )


_JOB = "Job"
_CRD = "CustomResourceDefinition"
_RUNNING = frozenset({"Pod", "Workflow", "PipelineRun", "TaskRun"})
"""Kinds that run to an end, other than a Job: nobody here says when they have, or recreates them."""

_OWN_HEALTH = "spec.health.rules of the Sync say when objects of a kind are healthy"
_RECORD = "is ignored: a hook's Job stays until the hook runs again, as the record that it ran"
AT_DELETION = "nothing runs when a Sync is deleted"


# --- hooks -------------------------------------------------------------------------------------------------

_HELM_EVENTS: Final = {
    "pre-install": (_PRE, Occasion.INSTALL),
    "pre-upgrade": (_PRE, Occasion.UPGRADE),
    "post-install": (_POST, Occasion.INSTALL),
    "post-upgrade": (_POST, Occasion.UPGRADE),
}
_HELM_ROLLBACK: Final = {"pre-rollback": "pre-upgrade", "post-rollback": "post-upgrade"}
"""Events of a rollback, and those that happen in its place: here, a rollback is a sync of an earlier state."""
_HELM_DELETION: Final = frozenset({"pre-delete", "post-delete"})
_HELM_TESTS: Final = frozenset({"test", "test-success"})


def _helm_hook(text: str, kind: str, found: _Findings) -> None:
    events = _words(text)
    known = {*_HELM_EVENTS, *_HELM_ROLLBACK, *_HELM_DELETION, *_HELM_TESTS}
    unknown = [event for event in events if event not in known]
    if unknown == ["crd-install"] and kind == _CRD:
        found.ignore(HELM_HOOK, "crd-install is ignored: Helm no longer knows it, and CRDs come first in any case")
        return
    found.is_hook = True
    if unknown or not events:
        said = _shown(unknown[0]) if unknown else '""'
        found.leave_out(HELM_HOOK, said, "Helm knows no such hook, and leaves the object out as well", _OWN_WORD)
        return
    runs = [event for event in events if event in _HELM_EVENTS]
    for event in events:
        if event in _HELM_ROLLBACK and _HELM_ROLLBACK[event] not in runs and runs:
            found.ignore(HELM_HOOK, f"{event} is ignored: a rollback is a sync of an earlier state")
        if event in _HELM_DELETION and runs:
            found.ignore(HELM_HOOK, f"{event} is ignored: {AT_DELETION}")
    if runs:
        occasions = {_HELM_EVENTS[event][1] for event in runs}
        found.occasion = next(iter(occasions)) if len(occasions) == 1 else Occasion.EVERY
        found.run_at(HELM_HOOK, {_HELM_EVENTS[event][0] for event in runs}, kind)
    elif _HELM_TESTS.issuperset(events):
        found.leave_out(HELM_HOOK, "test", "tests of a chart aren't run", "helm test runs them")
    else:
        why = AT_DELETION if _HELM_DELETION.intersection(events) else "a rollback is a sync of an earlier state"
        found.leave_out(HELM_HOOK, ",".join(events), why)


_OWN_WORD = 'reconcile.dev/hook: "" applies it like any other object'

_ARGO_HOOKS: Final = {"presync": _PRE, "sync": _SYNC, "postsync": _POST, "syncfail": _FAIL}
_ARGO_DELETION: Final = {"predelete": "PreDelete", "postdelete": "PostDelete"}


def _argo_hook(text: str, kind: str, found: _Findings) -> bool:
    """Read Argo CD's hook; return whether there is one, so that Helm's doesn't count."""
    events = _words(text)
    if not events:
        return False
    found.is_hook = True
    unknown = [event for event in events if event not in {*_ARGO_HOOKS, *_ARGO_DELETION, "skip"}]
    points = {_ARGO_HOOKS[event] for event in events if event in _ARGO_HOOKS}
    if unknown:
        found.leave_out(ARGO_HOOK, _shown(unknown[0]), "Argo CD knows no such hook", _OWN_WORD)
    elif points:
        for event in events:
            if event in _ARGO_DELETION:
                found.ignore(ARGO_HOOK, f"{_ARGO_DELETION[event]} is ignored: {AT_DELETION}")
        found.run_at(ARGO_HOOK, points, kind)
    elif "skip" in events:
        found.left_out = f"{ARGO_HOOK}: Skip"
    else:
        found.leave_out(ARGO_HOOK, ",".join(_ARGO_DELETION[event] for event in events), AT_DELETION)
    return True


def _delete_policy(name: str, text: str, found: _Findings) -> None:
    for policy in _words(text):
        plain = policy.replace("-", "")
        if plain in {"hooksucceeded", "hookfailed"}:
            found.ignore(name, f"{_spelled(name, plain)} {_RECORD}")
        elif plain != "beforehookcreation":
            found.ignore(name, f"{_shown(policy)} is ignored: there is no such policy")


def _spelled(name: str, policy: str) -> str:
    words = {"hooksucceeded": ("hook-succeeded", "HookSucceeded"), "hookfailed": ("hook-failed", "HookFailed")}
    return words[policy][name == ARGO_DELETE_POLICY]


# --- order -------------------------------------------------------------------------------------------------


def _wave(noted: Mapping[str, str], found: _Findings) -> int | None:
    """Return the wave: Argo CD's of any object, Helm's weight of a hook."""
    names = (ARGO_WAVE, HELM_WEIGHT) if found.is_hook else (ARGO_WAVE,)
    for name in names:
        if name in noted:
            if re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", noted[name]):
                return int(noted[name])
            found.ignore(name, f"{_shown(noted[name])} isn't an integer; 0 is used")
    return None


# --- what stays, and how it changes -------------------------------------------------------------------------


def _resource_policy(text: str, found: _Findings) -> None:
    if text.strip().lower() == "keep":
        found.kept = True
    else:
        found.ignore(HELM_RESOURCE_POLICY, f"{_shown(text)} is ignored: Helm only knows keep")


_WITHOUT_ASKING: Final = frozenset({
    "serversideapply=true", "skipdryrunonmissingresource=true", "prunelast=true", "prune=true", "delete=true", "validate=true",
    "replace=false", "force=false", "skipdryrunonmissingresource=false", "prunelast=false", "controllerreferencesonly=true",
})  # fmt: skip
"""Options that say how it is here in any case, or that are Argo CD's defaults."""

_OPTIONS_IGNORED: Final = {
    "replace=true": "objects are applied server-side, so none is too large for it",
    "serversideapply=false": "objects are always applied server-side",
    "validate=false": "the server validates what it is sent",
    "clientsideapplymigration=false": "fields of client-side tools are taken over, as spec.takeOver of the Sync says",
}
_OPTION_HINTS: Final = {
    "replace=true": 'reconcile.dev/replace: "true" allows it to be deleted and recreated if a changed field is immutable',
    "clientsideapplymigration=false": "set spec.takeOver of the Sync",
}


def _sync_options(text: str, decided: Collection[Aspect], found: _Findings) -> None:
    options = dict(zip(_words(text), _as_written(text), strict=True))
    for option, written in options.items():
        if option in {"prune=false", "delete=false"}:
            found.kept = found.kept or Aspect.PRUNE not in decided
        elif option in {"prune=confirm", "delete=confirm"}:
            found.asks = Aspect.PRUNE not in decided
        elif option == "force=true":
            found.replace = None if Aspect.REPLACE in decided else True
        elif option in _OPTIONS_IGNORED:
            if option == "replace=true" and ("force=true" in options or Aspect.REPLACE in decided):
                continue
            found.ignore(
                ARGO_SYNC_OPTIONS, f"{written} is ignored: {_OPTIONS_IGNORED[option]}", _OPTION_HINTS.get(option, "")
            )
        elif option not in _WITHOUT_ASKING:
            found.ignore(ARGO_SYNC_OPTIONS, f"{_shown(written)} is ignored: it isn't a known option of one object")


_COMPARISONS: Final = frozenset({
    "ignoreextraneous", "ignoreneedspruning", "serversidediff=true", "includemutationwebhook=true", "includemutationwebhook=false",
})  # fmt: skip


def _compare_options(text: str, found: _Findings) -> None:
    for option, written in zip(_words(text), _as_written(text), strict=True):
        if option not in _COMPARISONS:
            found.ignore(
                ARGO_COMPARE_OPTIONS,
                f"{_shown(written)} is ignored: the API server's dry run always decides what differs",
            )


# --- words -------------------------------------------------------------------------------------------------


def _as_written(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _words(text: str) -> list[str]:
    """Return the words of a list, as they are compared: whatever their case."""
    return [word.lower() for word in _as_written(text)]


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


_LONGEST_SHOWN = 80


# --- what is said of it ------------------------------------------------------------------------------------

_SUBJECT: Final = "annotation "


def sentence_of(ignored: Ignored) -> str:
    """Return what is said of an annotation that is ignored: the same for all objects, so that it can be said once."""
    return f"{_SUBJECT}{ignored.name} {ignored.message}"


def gathered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return *problems* with what is said of other tools' annotations said once for each sentence, at its first place."""
    found: list[Problem] = []
    first: dict[str, int] = {}
    more: dict[str, int] = {}
    for problem in problems:
        if not _is_ours(problem):
            found.append(problem)
        elif problem.message in first:
            more[problem.message] = more.get(problem.message, 0) + 1
        else:
            first[problem.message] = len(found)
            found.append(problem)
    for message, count in more.items():
        at = first[message]
        found[at] = replace(found[at], message=f"{message} (and {count} more)")
    return tuple(found)


def _is_ours(problem: Problem) -> bool:
    return problem.severity is Severity.WARNING and problem.message.startswith(
        tuple(_SUBJECT + prefix for prefix in PREFIXES)
    )
