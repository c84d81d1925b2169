"""What a module sees and ends in a modelled cluster: children that it keeps carry no owner, so it sees them by their labels, and they go only where it says so."""

import copy

from kubectl_reconcile.core.module.adoption import adopt_child
from kubectl_reconcile.core.module.inputs import Owned


def seen(module, cr, objects, read=()):
    """What a module sees of *objects* and of what it reads besides."""
    kept = [each for each in objects if module.holds(cr, each)]
    children = [each for each in objects if not module.holds(cr, each)]
    return Owned(copy.deepcopy(children), copy.deepcopy([*read, *kept]))


def ended(module, cr, objects, outcome):
    """The keys, as in *objects*, of what goes by an outcome."""
    wanted = {(each["kind"], each["metadata"]["name"]) for each in outcome.children}
    dropped = {tuple(key.split("/")) for key in outcome.dropped}
    stay = {key for key, each in objects.items() if outcome.keep_children or module.holds(cr, each)}
    return [key for key in objects if key not in wanted and (key in dropped or key not in stay)]


def made(module, cr, child):
    """A child as it is written."""
    return adopt_child(copy.deepcopy(child), cr, module, released=module.holds(cr, child))
