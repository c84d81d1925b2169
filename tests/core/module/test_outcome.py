"""What a module says: outcomes that modules share, and how children are named in them."""

from kubectl_reconcile.core.module.outcome import Outcome, in_turn, kept_status, key_of, named, unobserved, untouched_in
from kubectl_reconcile.core.objects import Condition

CR = {"status": {"size": 3, "observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True"}]}}
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}
FRONT, BACK = named("v1", "Service", "front"), named("v1", "Service", "back")


def test_without_an_answer_nothing_is_known_and_nothing_is_done():
    why = "db-0 doesn't answer"
    expected = (
        Condition("Available", "Unknown", "NotObserved", why),
        Condition("Ready", "Unknown", "NotObserved", why),
    )
    assert unobserved(CR, why, 15.0) == Outcome(status={"size": 3}, conditions=expected, requeue_after_s=15.0)


def test_a_status_that_is_kept_has_nothing_that_the_engine_writes():
    assert kept_status(CR) == {"size": 3}
    assert kept_status({}) == kept_status({"status": "odd"}) == {}


def test_children_are_named_by_kind_and_name():
    assert (key_of(WEB), key_of(FRONT)) == ("Deployment.apps/web", "Service/front")


def test_each_stage_waits_for_all_stages_before_it():
    assert in_turn([WEB], [FRONT, BACK], [named("v1", "Pod", "last")]) == {
        "Service/front": ("Deployment.apps/web",),
        "Service/back": ("Deployment.apps/web",),
        "Pod/last": ("Deployment.apps/web", "Service/front", "Service/back"),
    }
    assert in_turn([WEB]) == in_turn() == {}


def test_children_that_have_only_a_name_stay_as_they_are():
    assert untouched_in([FRONT, WEB, BACK]) == ("Service/front", "Service/back")
    assert untouched_in([named("v1", "Service", "x") | {"spec": {}}]) == ()
