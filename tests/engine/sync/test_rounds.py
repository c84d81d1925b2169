"""The one loop that asks what a plan must know: it says what was asked, and gives up where there is no end."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Outcomes, Unobserved
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.questions import Answers
from kubectl_reconcile.engine.sync.rounds import MOST_ROUNDS, EndlessQuestionsError, planned
from tests.core.planning.answering import World, a_world, observed_caches
from tests.core.planning.shop import MEMCACHED, SHOP, cache, config, inputs_of

LINE = "kubectl_reconcile.engine.sync.rounds"


def answering(world):
    builds = []

    async def built(inputs):
        builds.append(inputs)
        return build(inputs)

    async def answer(asked, inputs):
        return world.answers(asked, inputs)

    return built, answer, builds


async def test_a_set_in_sync_is_built_once_and_nothing_is_asked(caplog):
    world = a_world(a="same", b="same")
    built, answer, builds = answering(world)
    with caplog.at_level(logging.DEBUG, logger=LINE):
        known = await planned(SHOP.ref, world.inputs(), built, answer)
    assert (known.plan.acting(), len(builds)) == ((), 1)
    assert caplog.records[-1].reconcile_fields == {"object": SHOP.ref, "rounds": 0, "builds": 1, "asked": "nothing"}


async def test_a_line_tells_what_was_asked_in_how_many_rounds(caplog):
    world = a_world(a="new", b="hidden", c="drift")
    built, answer, builds = answering(world)
    with caplog.at_level(logging.DEBUG, logger=LINE):
        await planned(SHOP.ref, world.inputs(), built, answer)
    fields = caplog.records[-1].reconcile_fields
    assert (fields["rounds"], fields["builds"], len(builds)) == (3, 2, 2)
    assert fields["asked"] == "names (2), updates (2), writes (2)"


async def test_a_first_sync_of_a_thousand_objects_is_built_once():
    world = World(desired=[config(f"c-{number}") for number in range(1_000)])
    built, answer, builds = answering(world)
    known = await planned(SHOP.ref, world.inputs(), built, answer)
    assert (len(known.plan.acting()), len(builds)) == (1_000, 1)


async def test_questions_without_an_end_are_given_up_and_named():
    def asked_of(known):
        """Each answer brings one more custom resource that somebody must look at."""
        ref = ObjectRef("example.com", "Cache", "shop", f"c-{len(known.modules.observed)}")
        return {ref: Unobserved(observed_caches()[MEMCACHED], cache("sessions"), Owned())}

    async def built(known):
        return replace(build(known), outcomes=Outcomes(unobserved=asked_of(known)))

    async def answer(asked, _):
        return Answers(observed={each: Observation() for each in asked.outside})

    with pytest.raises(EndlessQuestionsError, match=rf"after {MOST_ROUNDS} rounds .* still asked: outside \(1\)"):
        await planned(SHOP.ref, inputs_of([]), built, answer)
