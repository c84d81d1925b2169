"""A case: one call of a module as it was recorded, and what the module says to it now.

A case holds the CR, the live objects around it, the facts and the time, and the outcome that these had. Recorded from
a real cluster, it is a test on real history. Values of Secrets aren't in it; a module that decides
by such a value can't be tested this way.

Pure: JSON in, JSON out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.call import Ask, outcome_of, outcome_of_invalid
from kubectl_reconcile.core.module.inputs import Context, Facts, Owned
from kubectl_reconcile.core.module.outcome import Outcome, as_tree
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.objects import API_GROUP, Manifest, annotations_of, walk

_KIND = "ModuleCase"
_HIDDEN = "***"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class CaseError(ValueError):
    """What was given is no recorded case."""


class Case(Struct, frozen=True):
    """What a module was given, and (*outcome*, as JSON) what it said."""

    module: str
    now: str
    cr: Manifest
    children: tuple[Manifest, ...] = ()
    read: tuple[Manifest, ...] = ()
    facts: Facts = field(default_factory=dict)
    unobserved: str = ""
    unread: Mapping[str, str] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Any) -> Case:
        """Return the case that a file holds.

        Raises:
            CaseError: it holds something else.
        """
        if not isinstance(tree, Mapping) or tree.get("kind") != _KIND:
            raise CaseError(f"it is no {_KIND}; record one by: kubectl reconcile record KIND/NAME -o FILE")
        try:
            return cls(
                module=tree["module"],
                now=tree["now"],
                cr=tree["cr"],
                children=tuple(tree["children"]),
                read=tuple(tree["read"]),
                facts=tree["facts"],
                unobserved=tree.get("unobserved", ""),
                unread=tree.get("unread", {}),
                outcome=tree["outcome"],
            )
        except (KeyError, TypeError) as error:
            raise CaseError(f"it lacks {error}") from error

    def tree(self) -> dict[str, Any]:
        """Return the case as JSON, without the values of Secrets."""
        return {
            "apiVersion": f"{API_GROUP}/v1alpha1",
            "kind": _KIND,
            "module": self.module,
            "now": self.now,
            "cr": _shareable(self.cr),
            "children": [_shareable(each) for each in self.children],
            "read": [_shareable(each) for each in self.read],
            "facts": self.facts,
            "unobserved": self.unobserved,
            **({"unread": dict(self.unread)} if self.unread else {}),
            "outcome": {**self.outcome, "children": [_shareable(each) for each in self.outcome.get("children", ())]},
        }

    def answered(self, module: Module, ask: Ask = outcome_of) -> Case:
        """Return the case with what *module* says to it now.

        Raises:
            ModuleError: the module failed.
        """
        owned = Owned(self.children, self.read, unread=self.unread)
        context = Context(self.now, module.name, self.cr, self.unobserved)
        try:
            outcome = ask(module, self.cr, owned, self.facts, context)
        except SpecError as error:
            outcome = outcome_of_invalid(self.cr, error)
        return replace(self, outcome=_plain(outcome))


def differences(before: Case, after: Case) -> Iterator[str]:
    """Yield one line for each place in which two outcomes differ: ``children.0.spec.replicas: 2 -> 3``."""
    old, new = (dict(walk(case.tree()["outcome"])) for case in (before, after))
    for path in sorted(old.keys() | new.keys(), key=str):
        was, is_now = old.get(path), new.get(path)
        if was != is_now:
            yield f"{'.'.join(map(str, path))}: {json.dumps(was)} -> {json.dumps(is_now)}"


def _plain(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(as_tree(outcome)))
    return found


def _shareable(manifest: Manifest) -> dict[str, Any]:
    """Return an object without what no module looks at, and without the values of Secrets."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    if _LAST_APPLIED in annotations_of(manifest):
        metadata["annotations"] = {
            name: value for name, value in annotations_of(manifest).items() if name != _LAST_APPLIED
        }
    found = {**manifest, "metadata": metadata}
    if manifest.get("kind") == "Secret":
        for values in ("data", "stringData"):
            if isinstance(manifest.get(values), Mapping):
                found[values] = dict.fromkeys(manifest[values], _HIDDEN)
    return found
