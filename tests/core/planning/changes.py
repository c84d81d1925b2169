"""Changes and inputs from plain keywords, wherever these live."""

from functools import cache
from inspect import signature

from kubectl_reconcile.core.planning.inputs import Coverage, Inputs, Lookups, Memory, Modules
from kubectl_reconcile.core.planning.plan import Change, Gate, Provenance


@cache
def _fields(record):
    return tuple(signature(record).parameters)


def _grouped(record, values):
    """Return a *record* of those of *values* that it has a field for; they leave *values*."""
    return record(**{name: values.pop(name) for name in _fields(record) if name in values})


def a_change(ref, op, kind=None, **rest):
    """a_change(ref, Op.UPDATE, after=…, file="web.yaml", held=True)"""
    provenance, gate = _grouped(Provenance, rest), _grouped(Gate, rest)
    return Change(ref, op, kind, provenance=provenance, gate=gate, **rest)


def known(*, modules=None, **rest):
    """known(sync=…, desired=…, live=…, verdicts=…, observed=…): the inputs of a plan."""
    rest["by_kind"] = modules or {}
    return Inputs(
        memory=_grouped(Memory, rest),
        modules=_grouped(Modules, rest),
        lookups=_grouped(Lookups, rest),
        coverage=_grouped(Coverage, rest),
        **rest,
    )
