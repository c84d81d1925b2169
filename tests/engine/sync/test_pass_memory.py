"""What a pass leaves to the next, and for how long that holds."""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.engine.sync.target import NOTHING_KNOWN
from tests.core.planning.answering import a_world, ref
from tests.core.planning.shop import KINDS

CONFIG_MAP = GroupVersionKind.parse("v1", "ConfigMap")
OTHER = {**KINDS, CONFIG_MAP: replace(KINDS[CONFIG_MAP], custom=True)}


def of_a_pass():
    inputs = a_world(a="same", b="same").inputs()
    return NOTHING_KNOWN.after(inputs, build(inputs), None)


def test_what_was_found_as_it_should_be_holds_while_its_kind_is_the_same():
    memory = of_a_pass()
    assert memory.under(KINDS).keys() == {ref("a"), ref("b")}
    assert memory.under(OTHER) == {}


def test_a_plan_of_a_part_says_nothing_about_the_others():
    inputs = replace(a_world(a="same").inputs(), whole=False)
    after = of_a_pass().after(inputs, build(inputs), None)
    assert after.verdicts.keys() == {ref("a"), ref("b")}
    assert after.footing is None


def test_a_whole_plan_says_everything():
    inputs = a_world(a="same", b="drift").inputs()
    assert of_a_pass().after(inputs, build(inputs), None).verdicts.keys() == {ref("a")}


def test_what_was_written_holds_while_its_kind_is_the_same_also_after_a_first_pass():
    made = build(a_world(c="new").inputs())
    written = NOTHING_KNOWN.written(made, {ref("c"): ("key", "8")})
    assert written.under(KINDS) == {ref("c"): ("key", "8")}
    assert written.under(OTHER) == {}
