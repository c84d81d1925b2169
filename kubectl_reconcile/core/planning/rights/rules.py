"""RBAC rules taken apart into single rights, compared, and put together again.

A *right* is the smallest thing that RBAC gives: one verb on one resource of one API group, of any name or of one; or one
verb on a URL that is no resource. Coverage follows the server's own judgement of escalation
(``k8s.io/component-helpers/auth/rbac/validation``, "Covers"): each single right must be covered by one that is held.

Pure. What stands in somebody's Role may have any shape: what is no rule gives no rights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from kubectl_reconcile.core.objects import Manifest, maps_in

ANY = "*"
"""What RBAC takes for everything."""

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
_MOST = 50_000


class TooManyRights(ValueError):  # noqa: N818 - says what is wrong with the rules
    """Rules that stand for more single rights than anybody would read: groups times resources times verbs times names."""


class Right(NamedTuple):
    """One verb on one resource, of any *name* where that is empty; or on a *url*, with no group and resource."""

    group: str
    resource: str
    verb: str
    name: str = ""
    url: str = ""

    def __str__(self) -> str:
        if self.url:
            return f"{self.verb} {self.url}"
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}{f' {self.name}' if self.name else ''}"

    @property
    def is_wildcard(self) -> bool:
        """Tell whether it stands for more than is known by now."""
        return any(ANY in part for part in (self.group, self.resource, self.verb, self.url))


def rights_in(rules: Any) -> frozenset[Right]:
    """Return the single rights that the ``rules`` of a Role or ClusterRole stand for.

    Raises:
        TooManyRights: they are too many to be taken apart.
    """
    taken = [_parts(rule) for rule in maps_in(rules)]
    if sum(prod(map(len, parts)) for parts in taken) > _MOST:
        raise TooManyRights(f"more than {_MOST} single rights")
    return frozenset(Right(*each) for parts in taken for each in product(*parts))


def _parts(rule: Manifest) -> tuple[Sequence[str], ...]:
    """Return what a rule multiplies: groups, resources, verbs, names, URLs."""
    verbs = _texts(rule.get("verbs"))
    if urls := _texts(rule.get("nonResourceURLs")):
        return ("",), ("",), verbs, ("",), urls
    # An empty name among names is no "any": it means requests that name nothing, and nobody asks for that.
    names = tuple(filter(None, _texts(rule["resourceNames"]))) if rule.get("resourceNames") else ("",)
    return _texts(rule.get("apiGroups")), _texts(rule.get("resources")), verbs, names, ("",)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in value if isinstance(each, str))) if isinstance(value, list) else ()


def covers(held: Collection[Right], wanted: Right) -> bool:
    """Tell whether one of the rights *held* covers the one *wanted*."""
    return any(each in held for each in _covering(wanted))


def _covering(wanted: Right) -> Iterator[Right]:
    """Yield every right that covers *wanted*, itself first."""
    verbs = (wanted.verb, ANY)
    if wanted.url:
        urls = (wanted.url, *(f"{wanted.url[:at]}{ANY}" for at in range(len(wanted.url) + 1)))
        yield from (Right("", "", verb, "", url) for url, verb in product(urls, verbs))
        return
    _, slash, sub = wanted.resource.partition("/")
    resources = (wanted.resource, ANY, *((f"{ANY}/{sub}",) if slash else ()))
    names = (wanted.name, "")
    for group, resource, verb, name in product((wanted.group, ANY), resources, verbs, names):
        yield Right(group, resource, verb, name)


def least(rights: Collection[Right]) -> frozenset[Right]:
    """Return *rights* without those that others of them cover."""
    held = frozenset(rights)
    return frozenset(each for each in held if not any(one in held and one != each for one in _covering(each)))


def rules_of(rights: Collection[Right]) -> list[dict[str, list[str]]]:
    """Return *rights* as the fewest rules that are easy to read: one for the resources of a group with the same verbs and names.

    The same rights make the same rules, in the same order, wherever they come from.
    """
    kept = least(rights)
    resources = _resource_rules(each for each in kept if not each.url)
    verbs: dict[str, set[str]] = defaultdict(set)
    for each in kept:
        if each.url:
            verbs[each.url].add(each.verb)
    urls: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for url in sorted(verbs):
        urls[_in_order(verbs[url])].append(url)
    return [*resources, *({"nonResourceURLs": found, "verbs": list(words)} for words, found in sorted(urls.items()))]


def _resource_rules(rights: Iterable[Right]) -> list[dict[str, list[str]]]:
    names: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for each in rights:
        names[each.group, each.resource, each.verb].add(each.name)
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for (group, resource, verb), given in names.items():
        verbs[group, resource, tuple(sorted(given))].add(verb)
    joined: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, named), found in sorted(verbs.items()):
        joined[group, named, _in_order(found)].append(resource)
    rules = [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": list(named)} if any(named) else {}),
            "verbs": list(words),
        }
        for (group, named, words), resources in joined.items()
    ]
    return sorted(rules, key=lambda rule: (rule["apiGroups"], rule["resources"], rule.get("resourceNames", [])))


def _in_order(verbs: Iterable[str]) -> tuple[str, ...]:
    """Return verbs as people write them: reading before writing, rare ones last."""
    return tuple(sorted(verbs, key=lambda verb: (_VERBS.index(verb) if verb in _VERBS else len(_VERBS), verb)))
