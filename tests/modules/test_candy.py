"""The Candy module against a model of its machine: what it asks for, and that it gets there."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.module.action_journal import unmet
from kubectl_reconcile.core.module.call import check_purity, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.modules.candy import Candy

NOW = "2026-01-01T00:00:00Z"
NOTHING = {"exists": False, "sugar": None, "made": 0, "bar": None, "bin": []}
BITTERNESS = {"milk": 1, "dark": 3, "white": 0, "hazelnut": 2, "sweeeeeeet": 0}
STANDARD = 10


def candy(flavor="dark", sweetness=7, *, going=False, **status):
    metadata = {"name": "sweet", "namespace": "shop", "uid": "u-1", **({"deletionTimestamp": NOW} if going else {})}
    spec = {"flavor": flavor, **({} if sweetness is None else {"sweetness": sweetness})}
    return {"apiVersion": "awesome.corp.com/v1", "kind": "Candy", "metadata": metadata, "spec": spec, "status": status}


def ask(cr, facts, *, unobserved="", with_=outcome_of):
    return with_(Candy, cr, Owned(), facts, Context(NOW, "candy", cr, unobserved))


def run(facts, action):
    """The machine, after it did what it was told."""
    assert not unmet(action, facts), f"{action.key} could not run: {unmet(action, facts)}"
    after = copy.deepcopy(dict(facts))
    match action.verb:
        case "sugar":
            after |= {"exists": True, "sugar": action.parameters["sugar"]}
        case "make":
            flavor, number = action.parameters["flavor"], after["made"] + 1
            if after["sugar"] is None:
                after |= {"exists": True, "sugar": STANDARD}
            bar = {
                "id": f"bar-{number}",
                "flavor": flavor,
                "sugar": after["sugar"],
                "sweetness": after["sugar"] - BITTERNESS[flavor],
            }
            after |= {"made": number, "bar": bar}
        case "dispose":
            after["bin"].append(after["bar"])
            after["bar"] = None
        case "ship":
            after["bar"] = None
        case _:
            after = dict(NOTHING)
    return after


def reason(outcome, type_="Ready"):
    return next(one.reason for one in outcome.conditions if one.type == type_)


def made(sugar, flavor="dark", number=1):
    bar = {"id": f"bar-{number}", "flavor": flavor, "sugar": sugar, "sweetness": sugar - BITTERNESS[flavor]}
    return {"exists": True, "sugar": sugar, "made": number, "bar": bar, "bin": []}


ASKED = {
    "no machine yet": (NOTHING, ["sugar-0-7", "make-1"]),
    "the right bar": (made(10), []),
    "a bar that isn't sweet enough": (made(7), ["dispose-bar-1", "sugar-1-10", "make-2"]),
    "a bar of another flavour": (made(7, "white"), ["dispose-bar-1", "make-2"]),
    "disposed of, and then it crashed": ({**made(7), "bar": None, "bin": [made(7)["bar"]]}, ["sugar-1-10", "make-2"]),
    "the sugar was set, and then it crashed": ({**made(10), "bar": None, "bin": [made(7)["bar"]]}, ["make-2"]),
}


@pytest.mark.parametrize(("facts", "keys"), ASKED.values(), ids=ASKED)
def test_what_is_asked_for(facts, keys):
    outcome = ask(candy(), facts, with_=check_purity)
    assert [action.key for action in outcome.actions] == keys
    assert all(action.needs_approval == (action.verb == "dispose") for action in outcome.actions)


CRS = st.tuples(st.sampled_from(sorted(BITTERNESS)), st.none() | st.integers(0, 20))


@given(st.lists(CRS, min_size=1, max_size=4))
def test_whatever_was_asked_before_the_bar_becomes_right_and_no_key_comes_twice(wishes):
    facts, keys = dict(NOTHING), []
    for flavor, sweetness in wishes:
        for _ in range(12):
            actions = ask(candy(flavor, sweetness), facts).actions
            if not actions:
                break
            keys.append(actions[0].key)
            facts = run(facts, actions[0])
        assert facts["bar"]["flavor"] == flavor
        assert sweetness in {None, facts["bar"]["sweetness"]}
    assert len(keys) == len(set(keys))


@given(st.lists(CRS, min_size=1, max_size=3))
def test_the_actions_of_one_pass_run_one_after_the_other(wishes):
    facts = dict(NOTHING)
    for flavor, sweetness in wishes:
        for action in ask(candy(flavor, sweetness), facts).actions:
            facts = run(facts, action)


@given(st.lists(CRS, min_size=2, max_size=3))
def test_predictions_come_true_where_the_flavour_was_measured(wishes):
    facts = dict(NOTHING)
    for flavor, sweetness in wishes:
        for action in ask(candy(flavor, sweetness), facts).actions:
            known = action.verb != "make" or any(bar["flavor"] == flavor for bar in facts["bin"])
            known = known and facts["sugar"] is not None
            foreseen = Candy.predict(candy(flavor, sweetness), facts, action)
            facts = run(facts, action)
            assert not known or foreseen == facts


def test_while_the_machine_is_silent_nothing_is_done_and_nothing_forgotten():
    outcome = ask(candy(actualSweetness=4, disposed=1), {}, unobserved="no answer")
    assert (outcome.actions, outcome.status) == ((), {"actualSweetness": 4, "disposed": 1})
    assert (reason(outcome), reason(outcome, "MachineReachable")) == ("MachineUnreachable", "NoAnswer")


def test_deleting_ships_the_bar_and_retires_the_machine():
    facts, cr = made(10), candy(going=True)
    outcome = ask(cr, facts)
    assert ([action.key for action in outcome.actions], outcome.finalized) == (["ship-bar-1", "retire-1"], False)
    for action in outcome.actions:
        facts = run(facts, action)
    assert ask(cr, facts).finalized


@pytest.mark.parametrize("spec", [{"flavor": 7}, {"flavor": None}, {"sweetness": 21}, {"sweetness": "very"}])
def test_a_senseless_wish_is_refused(spec):
    with pytest.raises(SpecError, match=next(iter(spec))):
        ask(candy(**spec), NOTHING)
