"""Lookups: what a chart asks the cluster for while it is rendered, and what it is told.

Vocabulary: a *lookup* is one call of Helm's ``lookup``, of an object or, without a name, of all there are of a kind. What it is told
is its *answer*: an object, a list, or nothing. Nothing is *absent* for a reason where no such object can be, of which a warning tells.
What *may not be read* is a problem: to be told that it isn't there, a chart could leave out objects, which then were pruned.

A chart may do with an answer what it likes. So text from a Secret is marked wherever it shows in what was rendered, as values of
variables are; what stands there for true, false or a small number is not, which tells nothing.

Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located, Steps, VariableUse
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, Problem, Severity, map_at
from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.core.redaction import values_in, without

MOST_LOOKUPS: Final = 100
MOST_BYTES: Final = 1024 * 1024
"""How much all answers may take together, as JSON."""

MOST_ROUNDS: Final = 5
"""How often a chart is rendered for lookups that depend on answers of others."""

TELLS_NOTHING: Final = frozenset({"true", "false", "null", "none", "yes", "no", "on", "off"})
SHORT_NUMBER: Final = 4

_MOST_SHOWN: Final = 600
"""Characters: the longest that an object can be called is shorter."""

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._:@]{0,251}[A-Za-z0-9])?")
_WORD: Final = re.compile(r"[A-Za-z0-9./-]+")


class Lookup(Struct, frozen=True):
    """An object that a chart asks for, or all of a kind where *name* is empty, in all namespaces where *namespace* is."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, asked: str) -> Self | None:
        """Read what was asked for, as in ``v1 Secret shop/db``; None where nothing can be called so."""
        api_version, kind, place = (*asked.split(" ", 2), "", "")[:3]
        namespace, _, name = place.partition("/")
        words = _WORD.fullmatch(api_version) and _WORD.fullmatch(kind)
        fits = (not namespace or _NAMESPACE.fullmatch(namespace)) and (not name or _NAME.fullmatch(name))
        return cls(api_version, kind, namespace, name) if words and fits else None

    def finds(self, ref: ObjectRef) -> bool:
        """Tell whether an object is what is asked for, or among it."""
        kind = GroupVersionKind.parse(self.api_version, self.kind).group_kind
        return ref.group_kind == kind and self.namespace in {"", ref.namespace} and self.name in {"", ref.name}


def one_of(asked: str) -> str:
    """Return what a lookup asked for as people write it: ``Secret shop/db``, or ``every Secret of shop`` where it names none.

    Of a chart's text that nothing can be called, the beginning shows.
    """
    asked = asked if len(asked) <= _MOST_SHOWN else f"{asked[:_MOST_SHOWN]}…"
    _, kind, place = (*asked.split(" ", 2), "", "")[:3]
    namespace, _, name = place.partition("/")
    if name:
        return f"{kind} {f'{namespace}/' if namespace else ''}{name}"
    return f"every {kind}{f' of {namespace}' if namespace else ''}"


class Answers(Guarded, frozen=True):
    """What lookups are told: JSON by what was asked for, empty where nothing is there, and why some are *absent* for sure.

    Nothing can be rendered where some were *refused*, with the reason of each, or where they are *beyond* a bound, which it says.
    """

    hidden: ClassVar = frozenset({"found"})

    found: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    beyond: str = ""

    @property
    def key(self) -> str:
        """What tells these answers from others, without giving them away."""
        said = sorted(self.found.items()), sorted(self.absent.items()), sorted(self.refused.items()), self.beyond
        return hashlib.sha256(repr(said).encode()).hexdigest()

    @property
    def stamp(self) -> str:
        """What tells them from others by the versions of the objects, so that nobody can guess a value by it."""
        found = (map_at(each, "metadata") for _, each in self._objects())
        return " ".join(f"{each.get('uid')}/{each.get('resourceVersion')}" for each in found)

    def told(self) -> Mapping[str, str]:
        """Return the answers that are something, as a chart is told them."""
        return {asked: text for asked, text in self.found.items() if text}

    def lack(self, asked: Iterable[str]) -> tuple[str, ...]:
        """Return what of *asked* has no answer yet; nothing where there can't be more."""
        known = self.found.keys() | self.absent.keys() | self.refused.keys()
        return () if self.beyond else tuple(each for each in asked if each not in known)

    def and_also(self, more: Answers) -> Answers:
        """Return these answers with *more*, beyond a bound where that is too much together."""
        both = Answers({**self.found, **more.found}, {**self.absent, **more.absent}, {**self.refused, **more.refused})
        beyond = self.beyond or more.beyond
        if len(both.found) + len(both.absent) + len(both.refused) > MOST_LOOKUPS:
            beyond = f"it looks up more than {MOST_LOOKUPS} objects"
        elif sum(len(text.encode()) for text in both.found.values()) > MOST_BYTES:
            beyond = f"the objects that it looks up have more than {MOST_BYTES // 1024} KiB"
        return Answers(beyond=beyond) if beyond else both

    def of(self, asked: Iterable[str]) -> Answers:
        """Return the answers to what is *asked*, as far as they are known."""
        wanted = frozenset(asked)
        found, absent, refused = (
            {key: said for key, said in each.items() if key in wanted}
            for each in (self.found, self.absent, self.refused)
        )
        return Answers(found, absent, refused, self.beyond)

    def values(self) -> list[Any]:
        """Return what no message may have of them: what Secrets hold, and what others do unless that is public anyway."""
        found: list[Any] = []
        for _, each in self._objects():
            if each.get("kind") == "Secret":
                found.append({"secret": list(values_in(each))})
            else:
                found.append({key: value for key, value in each.items() if key not in _PUBLIC})
        return found

    def secrets(self) -> dict[str, str]:
        """Return the texts that nobody may see, each with the lookup that it comes from."""
        return {
            text: f"lookup {one_of(asked)}"
            for asked, each in self._objects()
            if each.get("kind") == "Secret"
            for text in values_in({"data": each.get("data")})
            if not _is_harmless(text)
        }

    def _objects(self) -> Iterator[tuple[str, Manifest]]:
        for asked, text in self.told().items():
            tree = json.loads(text)
            for each in tree["items"] if asked.endswith("/") else [tree]:
                yield asked, each


_PUBLIC: Final = frozenset({"apiVersion", "kind", "metadata"})

NO_ANSWERS: Final = Answers()


def answer(tree: Manifest) -> str:
    """Return an object as a chart is told it: without who manages its fields, which takes much room and tells a chart nothing."""
    return _json(_shown(tree))


def answer_of_all(lookup: Lookup, objects: Iterable[Manifest]) -> str:
    """Return the objects of a kind as a chart is told them: the list that the server has, without its version."""
    kind = f"{lookup.kind}List"
    return _json({"apiVersion": lookup.api_version, "kind": kind, "metadata": {}, "items": [*map(_shown, objects)]})


def _shown(tree: Manifest) -> Manifest:
    metadata = {key: value for key, value in (tree.get("metadata") or {}).items() if key != "managedFields"}
    return {**tree, "metadata": metadata}


def _json(tree: Manifest) -> str:
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


# --- what is said of them --------------------------------------------------------------------------------------------


def warnings_of(path: str, asked_for: Iterable[str], answers: Answers) -> Iterator[Problem]:
    """Yield a warning for each lookup of the chart whose file is at *path*: what it was told, and why where that is nothing.

    A chart may look up without end; beyond those that would be read, one warning says how many there are.
    """
    known = tuple(asked_for)
    if len(known) > MOST_LOOKUPS:
        yield Problem(
            path, 0, f"it looks up {len(known) - MOST_LOOKUPS:,} more objects than are listed here", "", _WARNING
        )
    for asked in known[:MOST_LOOKUPS]:
        yield Problem(path, 0, f"{reported_as(asked)}{_told(asked, answers)}", "", _WARNING)


def reported_as(asked: str) -> str:
    """Return how the warning of a lookup that could be answered begins."""
    return f"it looks up {one_of(asked)} in the cluster, and "


_WARNING: Final = Severity.WARNING


def _told(asked: str, answers: Answers) -> str:
    if answers.found.get(asked):
        return "finds it"
    if asked in answers.found:
        return "finds nothing"
    why = answers.absent.get(asked)
    return f"finds nothing{f': {why}' if why else ''}"


def problems_of(path: str, answers: Answers) -> Iterator[Problem]:
    """Yield why the chart whose file is at *path* can't be rendered with *answers*: what may not be read for it, and what is too much."""
    if answers.beyond:
        yield Problem(path, 0, answers.beyond, "look up less, or give the chart values instead")
    for asked, why in answers.refused.items():
        yield Problem(path, 0, f"it looks up {one_of(asked)} in the cluster, which may not be read: {why}")


def about(asked_for: Iterable[str], refs: Iterable[ObjectRef]) -> tuple[str, ...]:
    """Return those lookups that are answered otherwise when one of the objects *refs* is another."""
    known = tuple(refs)
    return tuple(asked for asked in asked_for if (lookup := Lookup.of(asked)) and any(map(lookup.finds, known)))


# --- what contains values of Secrets -------------------------------------------------------------------------------------------


def marked(manifests: tuple[Located, ...], answers: Answers) -> tuple[Located, ...]:
    """Return *manifests* with a mark at each scalar that has something in it of a Secret that was looked up.

    What one of them is called is known to everybody.
    """
    named = {name for each in manifests for name in (each.ref.name, each.ref.namespace)}
    secrets = {text: of for text, of in answers.secrets().items() if text not in named}
    return tuple(_marked(each, secrets) for each in manifests) if secrets else manifests


_KIND_OF: Final = frozenset({"apiVersion", "kind"})


def _marked(located: Located, secrets: Mapping[str, str]) -> Located:
    uses = tuple(use for use in _uses(located.manifest, (), secrets) if use.steps[0] not in _KIND_OF)
    return replace(located, uses=(*located.uses, *uses)) if uses else located


def _uses(tree: Any, steps: Steps, secrets: Mapping[str, str]) -> Iterator[VariableUse]:
    if isinstance(tree, Mapping):
        for name, below in tree.items():
            yield from _uses(below, (*steps, name), secrets)
    elif isinstance(tree, list):
        for index, below in enumerate(tree):
            yield from _uses(below, (*steps, index), secrets)
    elif tree is not None and not isinstance(tree, bool):
        text = str(tree)
        found = [each for each in secrets if each in text and without(text, [each]) != text]
        if found:
            names = tuple(dict.fromkeys(secrets[each] for each in found))
            yield VariableUse(steps, names, secret=True, texts=tuple(dict.fromkeys([text, *found])))


def _is_harmless(text: str) -> bool:
    return text.lower() in TELLS_NOTHING or (text.isdigit() and len(text) <= SHORT_NUMBER)
