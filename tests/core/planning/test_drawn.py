"""What a plan makes of fields that were drawn: held, drawn for the first time, or asked about."""

from __future__ import annotations

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.rendering.holding import with_fitting
from kubectl_reconcile.core.rendering.unstable import DRAWN_LATER, drawn_between, with_placeholders
from kubectl_reconcile.views.masking import masked
from tests.core.planning.services import live, only, plan, service

CERTIFICATE = "-----BEGIN CERTIFICATE-----\n%s"


def drawn(path, *values, name="web", kind="v1/Service"):
    first, second = ({**service(name, kind), "spec": {"type": value}} for value in values)
    return with_placeholders(Located.of(first, path, -1), drawn_between(first, second))


def there(value, name="web"):
    return live({**service(name), "spec": {"type": value}})


def test_a_second_plan_after_a_sync_is_empty_though_everything_was_drawn_anew():
    first = only(plan([drawn("a.yaml", "one", "two")]))
    assert (first.op, first.intent["spec"]["type"], first.provenance.drawn) == (
        Op.CREATE,
        "one",
        (("spec", "type"),),
    )
    again = only(plan([drawn("a.yaml", "three", "four")], [live(first.intent)]))
    assert again.op is Op.UNCHANGED


def test_a_plan_is_the_same_whatever_was_drawn():
    assert plan([drawn("a.yaml", "one", "two")]).hash == plan([drawn("a.yaml", "three", "four")]).hash


def test_what_is_drawn_when_applied_is_shown_as_that():
    change = masked(only(plan([drawn("a.yaml", "one", "two")])))
    assert change.intent["spec"] == {"type": DRAWN_LATER}
    assert "one" not in str(change.after)
    lacking = live({**service(), "spec": {}})
    shown = masked(only(plan([drawn("a.yaml", "one", "two")], [lacking])))
    assert [(str(each.path), each.after) for each in shown.fields] == [(".spec.type", DRAWN_LATER)]


def test_git_that_changes_what_is_around_a_drawn_value_is_told_that_it_is_kept():
    made = plan([drawn("a.yaml", "new:one", "new:two")], [there("old:zero")])
    [problem] = made.problems
    assert (problem.is_error, problem.path) == (False, "a.yaml")
    assert ".spec.type is kept at its live value, though its inputs have changed" in problem.message
    assert only(made).op is Op.UNCHANGED


def test_certificates_that_live_in_part_are_asked_about_and_never_mixed():
    both = [
        drawn("a.yaml", CERTIFICATE % 1, CERTIFICATE % 2),
        drawn("b.yaml", CERTIFICATE % 3, CERTIFICATE % 4, name="hook"),
    ]
    assert {change.op for change in plan(both).changes} == {Op.CREATE}
    assert plan(both, [there(CERTIFICATE % 5), there(CERTIFICATE % 6, "hook")]).problems == ()
    made = plan(both, [there(CERTIFICATE % 5)])
    [problem] = made.problems
    assert (
        problem.message
        == "Service shop/hook: .spec.type must match the live values in Service shop/web, and is missing"
    )
    assert "or also delete Service shop/web" in problem.hint
    assert [change.ref.name for change in made.changes if change.op is not Op.UNCHANGED] == []


def test_in_part_is_as_well_one_field_of_two():
    def certified(n):
        return {**service(note=CERTIFICATE % n), "spec": {"type": CERTIFICATE % n}}

    asked = with_placeholders(Located.of(certified(1), "a.yaml", -1), drawn_between(certified(1), certified(2)))
    assert len(asked.drawn) == 2
    [problem] = plan([asked], [live({**service(), "spec": {"type": CERTIFICATE % 3}})]).problems
    assert (
        '.metadata.annotations["reconcile.dev/note"] must match the live values in Service shop/web' in problem.message
    )


def test_a_part_of_what_is_asked_for_comes_with_what_must_fit_it():
    tls, hook = (
        drawn("a.yaml", CERTIFICATE % 1, CERTIFICATE % 2),
        drawn("b.yaml", CERTIFICATE % 3, CERTIFICATE % 4, name="hook"),
    )
    pin = drawn("c.yaml", "one", "two", name="pin")
    assert with_fitting([tls], [tls, hook, pin]) == (tls, hook)
    assert with_fitting([pin], [tls, hook, pin]) == (pin,)
