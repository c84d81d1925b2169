"""The steps that a preview of a database shows."""

import itertools

from kubectl_reconcile.core.planning.outlook.simulation import passes
from kubectl_reconcile.core.planning.plan import Op
from tests.operators.postgres.planned import inputs_of, planned
from tests.operators.postgres.world import step_of


def foreseen(world):
    """The steps that a preview shows."""
    inputs = inputs_of(world)
    first, shown, idle = planned(inputs), [], 0
    for plan in itertools.chain([first], passes(inputs, first, planned)):
        steps = [step for change in plan.changes if change.writes and (step := told(change))]
        shown += steps
        idle = 0 if steps else idle + 1
        if idle == 3:  # the schemas of pods aren't known here, so each pass would like to write them once more
            break
    return shown


def told(change):
    if change.action:
        return step_of(change.action)
    if change.ref.kind == "PersistentVolumeClaim" and change.op is Op.DELETE:
        return f"delete volume {change.ref.name.removesuffix('-data')}"
    if change.ref.kind == "Job" and change.op is Op.CREATE:
        return f"create {change.ref.name}"
    is_one = change.ref.kind == "Pod" and change.op in {Op.CREATE, Op.DELETE}
    return f"{change.op.value} {change.ref.name}" if is_one else ""


def is_part(steps, of):
    """Tell whether all steps are among others, in their order."""
    rest = iter(of)
    return all(step in rest for step in steps)
