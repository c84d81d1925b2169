"""Candy: a CR ``Candy`` is a bar of chocolate, made by a machine that stands outside the cluster.

The machine has a sugar setting, a belt on which at most one bar lies, and a bin. Each CR has a machine of its own in
the factory, the external system ``candy-factory``. What a bar tastes like is known only once it has been made and
measured: flavours are bitter in different degrees. Where the spec asks for no sweetness, the setting that the machine has is its
standard, and any bar of the flavour is right.

What is done, one action after the other: a bar that isn't as the spec asks is disposed of, which can't be undone and so
needs approval; the sugar is set to what the measurement suggests; the next bar is made. Keys of actions name the
bar they are about, so each happens once. Deleting the CR ships the bar and retires the machine.

Conditions: ``Ready`` (the bar is right), ``MachineReachable``, and ``Degraded`` if a disposal waits for approval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import (
    Action,
    Condition,
    Context,
    Facts,
    Io,
    Manifest,
    Outcome,
    Owned,
    SpecError,
    module,
    spec_of,
)

SYSTEM = "candy-factory"

_LOOK_AGAIN_S = 30.0
_SUGAR = (0, 30)
_SWEETEST = 20


@dataclass(frozen=True, slots=True)
class CandySpec:
    """The spec of a Candy."""

    flavor: str
    sweetness: int | None = None


class MachineError(Exception):
    """The machine answered, and not as it should."""


@module(api="awesome.corp.com/v1", kind="Candy", owns=[])
class Candy:
    """Have a machine make a bar of ``spec.flavor`` that is as sweet as ``spec.sweetness`` says, or as the machine's standard is.

    A bar that isn't is disposed of, once somebody approves, and made again with another sugar setting.
    """

    async def observe(self, cr: Manifest, io: Io) -> Facts:
        """Read the machine: sugar, the bar on the belt, the bin. No machine yet: an empty one."""
        answer = await io.get(SYSTEM, _path(cr))
        if answer.status == 404:
            return {"exists": False, "sugar": None, "made": 0, "bar": None, "bin": []}
        if answer.status != 200 or not isinstance(answer.body, Mapping):
            raise MachineError(f"the machine answers {answer.status}")
        return {"exists": True, **{name: answer.body[name] for name in ("sugar", "made", "bar", "bin")}}

    def reconcile(self, cr: Manifest, _owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Compare the bar with the spec."""
        spec = _spec(cr)
        if ctx.unobserved:
            return _blind(cr, ctx.unobserved)
        bar = facts["bar"]
        return Outcome(
            status={
                **(_measured(bar) if bar else _last_seen(cr)),
                "disposed": len(facts["bin"]),
            },
            conditions=(_reachable(), _ready(spec, bar)),
            actions=tuple(_actions(spec, facts)),
            requeue_after_s=_LOOK_AGAIN_S,
        )

    def finalize(self, cr: Manifest, _owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Ship the bar, then retire the machine."""
        if ctx.unobserved:
            return _blind(cr, ctx.unobserved)
        actions = []
        if bar := facts["bar"]:
            parameters = {"bar": bar["id"]}
            actions.append(Action(f"ship-{bar['id']}", "ship", f"ship {bar['id']}", parameters, {"bar.id": bar["id"]}))
        if facts["exists"]:
            made = facts["made"]
            actions.append(Action(f"retire-{made}", "retire", "retire the machine", {}, {"exists": True, "bar": None}))
        return Outcome(
            status={**_last_seen(cr), "disposed": len(facts["bin"])},
            conditions=(_reachable(), Condition("Ready", "False", "Deleting")),
            actions=tuple(actions),
            finalized=not facts["exists"],
        )

    async def act(self, cr: Manifest, action: Action, io: Io) -> str:
        """Tell the machine."""
        path, body = _path(cr), dict(action.parameters)
        method, where = {
            "sugar": ("PUT", "/sugar"),
            "make": ("POST", "/bars"),
            "dispose": ("POST", "/bin"),
            "ship": ("POST", "/shipments"),
            "retire": ("DELETE", ""),
        }[action.verb]
        answer = await io.send(method, SYSTEM, path + where, body)
        if answer.status not in {200, 201, 204}:
            raise MachineError(f"the machine answers {answer.status}: {(answer.body or {}).get('error', '')}")
        return ""

    def predict(self, _cr: Manifest, facts: Facts, action: Action) -> Facts:
        """Say what the machine will show after *action*; a bar's taste is what the last measurement suggests."""
        after = dict(facts)
        match action.verb:
            case "sugar":
                after |= {"exists": True, "sugar": action.parameters["sugar"]}
            case "dispose":
                after |= {"bar": None, "bin": [*facts["bin"], facts["bar"]]}
            case "make":
                flavor, made = action.parameters["flavor"], facts["made"] + 1
                sugar = facts["sugar"]
                taste = None if sugar is None else sugar - _bitterness(facts, flavor)
                bar = {"id": f"bar-{made}", "flavor": flavor, "sugar": sugar, "sweetness": taste}
                after |= {"exists": True, "made": made, "bar": bar}
            case "ship":
                after |= {"bar": None}
            case _:
                after |= {"exists": False}
        return after


def _spec(cr: Manifest) -> CandySpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, CandySpec)
    if spec.sweetness is not None and not 0 <= spec.sweetness <= _SWEETEST:
        raise SpecError(".spec.sweetness", f"must be between 0 and {_SWEETEST}, not {spec.sweetness}")
    return spec


def _path(cr: Manifest) -> str:
    return f"/machines/{cr['metadata']['namespace']}.{cr['metadata']['name']}"


# --- what is to be done -------------------------------------------------------------------------


def _actions(spec: CandySpec, facts: Facts) -> Iterator[Action]:
    bar, made = facts["bar"], facts["made"]
    if bar and _is_right(bar, spec):
        return
    if bar:
        why = f"{_words(bar)} instead of {_words({'flavor': spec.flavor, 'sweetness': spec.sweetness})}"
        yield Action(
            f"dispose-{bar['id']}", "dispose", f"dispose of {bar['id']}, {why}; this can't be undone",
            {"bar": bar["id"]}, {"bar.id": bar["id"]}, needs_approval=True,
        )  # fmt: skip
    sugar = facts["sugar"] if spec.sweetness is None else _sugar(spec.sweetness, facts, spec.flavor)
    if facts["sugar"] != sugar:
        summary = f"set the sugar to {sugar}" + (f" (was {facts['sugar']})" if facts["sugar"] is not None else "")
        yield Action(f"sugar-{made}-{sugar}", "sugar", summary, {"sugar": sugar}, {"bar": None, "made": made})
    summary = f"make a bar of {spec.flavor}"
    yield Action(
        f"make-{made + 1}", "make", summary, {"flavor": spec.flavor}, {"bar": None, "made": made, "sugar": sugar}
    )


def _is_right(bar: Mapping[str, Any], spec: CandySpec) -> bool:
    return bool(bar["flavor"] == spec.flavor and spec.sweetness in {None, bar["sweetness"]})


def _words(bar: Mapping[str, Any]) -> str:
    if bar["sweetness"] is None:
        return f"{bar['flavor']} of the machine's standard"
    return f"{bar['flavor']} of sweetness {bar['sweetness']}"


def _sugar(sweetness: int, facts: Facts, flavor: str) -> int:
    """Return the setting that gives the wanted sweetness, by the last measurement of this flavour."""
    least, most = _SUGAR
    return int(min(max(sweetness + _bitterness(facts, flavor), least), most))


def _bitterness(facts: Facts, flavor: str) -> int:
    measured = [*facts["bin"], *([facts["bar"]] if facts["bar"] else [])]
    known = (bar for bar in reversed(measured) if bar["flavor"] == flavor and bar["sweetness"] is not None)
    return next((bar["sugar"] - bar["sweetness"] for bar in known), 0)


# --- status -------------------------------------------------------------------------------------


def _blind(cr: Manifest, why: str) -> Outcome:
    """Return what is said while the machine doesn't answer: the last measurement stays, nothing is done."""
    before = cr.get("status") or {}
    return Outcome(
        status={name: before[name] for name in ("actualSweetness", "bar", "disposed") if name in before},
        conditions=(
            Condition("MachineReachable", "False", "NoAnswer", why),
            Condition("Ready", "Unknown", "MachineUnreachable", "the machine doesn't report what is on its belt"),
        ),
    )


def _measured(bar: Mapping[str, Any]) -> dict[str, Any]:
    taste = {} if bar["sweetness"] is None else {"actualSweetness": bar["sweetness"]}
    return {**taste, "bar": bar["id"]}


def _last_seen(cr: Manifest) -> dict[str, Any]:
    before = cr.get("status") or {}
    return {name: before[name] for name in ("actualSweetness",) if name in before}


def _reachable() -> Condition:
    return Condition("MachineReachable", "True", "Answers")


def _ready(spec: CandySpec, bar: Mapping[str, Any] | None) -> Condition:
    wanted = _words({"flavor": spec.flavor, "sweetness": spec.sweetness})
    if bar is None:
        return Condition("Ready", "False", "NoBar", f"{wanted} is being made")
    if _is_right(bar, spec):
        return Condition("Ready", "True", "AsWanted", f"{bar['id']} is {wanted}")
    return Condition("Ready", "False", "WrongBar", f"{bar['id']} is {_words(bar)}, wanted {wanted}")
