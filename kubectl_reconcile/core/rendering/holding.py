"""Fields that a rendering drew, where they meet live objects: held, drawn for the first time, or asked about.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from kubectl_reconcile.core.manifests.parse import Located, Steps
from kubectl_reconcile.core.objects import Manifest, ObjectRef, Problem, Severity
from kubectl_reconcile.core.rendering.unstable import held, missing, must_fit, shown

Live: TypeAlias = Callable[[ObjectRef], Manifest | None]
"""Returns what is live of an object."""


def is_to_be_drawn(desired: Iterable[Located], live: Live, namespace: str) -> bool:
    """Tell whether some field that was drawn has no live value, so that a plan takes the drawn one; *namespace* is the default one."""
    return any(_lacks(located, live, namespace) for located in desired if located.drawn)


def _lacks(located: Located, live: Live, namespace: str) -> bool:
    near = located.ref._replace(namespace=located.ref.namespace or namespace)
    return bool(drawn_now(located, live(near) or live(located.ref)))


def applied(located: Located, ref: ObjectRef, live: Live, problems: list[Problem]) -> Manifest:
    """Return a manifest as it is applied: what was drawn is held at its live value.

    Where Git asks for something else around it, that is said among the *problems*.
    """
    if not located.drawn:
        return located.manifest
    found = held(located, live(ref))
    if found.changed:
        paths = ", ".join(map(shown, found.changed))
        said = f"{ref}: {paths} is kept at its live value, though its inputs have changed"
        problems.append(Problem(located.path, 0, said, "delete the object to generate it again", Severity.WARNING))
    return found.manifest


def mixtures(members: Iterable[tuple[ObjectRef, Located]], live: Live) -> Mapping[ObjectRef, Problem]:
    """Return what lacks certificates, keys or hashes of which others are live: those drawn now wouldn't fit them."""
    fitting = {ref: (located, paths) for ref, located in members if located.drawn and (paths := must_fit(located))}
    lacking = {ref: gone for ref, (located, paths) in fitting.items() if (gone := missing(located, live(ref), paths))}
    there = ", ".join(str(ref) for ref, (_, paths) in fitting.items() if len(lacking.get(ref, ())) < len(paths))
    found = {}
    for ref, gone in lacking.items() if there else ():
        said = f"{ref}: {', '.join(map(shown, gone))} must match the live values in {there}, and is missing"
        hint = f"restore it, or also delete {there}, so that all of it is generated again"
        found[ref] = Problem(fitting[ref][0].path, 0, said, hint)
    return found


def with_fitting(part: Sequence[Located], whole: Iterable[Located]) -> tuple[Located, ...]:
    """Return a *part* of what is asked for, and all else of the *whole* that must fit something in it."""
    if not any(each.drawn and must_fit(each) for each in part):
        return tuple(part)
    there = {(each.path, each.line) for each in part}
    return (*part, *(each for each in whole if each.drawn and (each.path, each.line) not in there and must_fit(each)))


def drawn_now(located: Located, live: Manifest | None) -> tuple[Steps, ...]:
    """Return the fields of an object that get what was drawn, since there is nothing live to be kept."""
    return missing(located, live, (each.path for each in located.drawn)) if located.drawn else ()
