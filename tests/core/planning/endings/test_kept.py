"""Children that stay when their CR goes: they carry no owner, from the first pass on, and go only when their module names them."""

import pytest

from kubectl_reconcile.core.module.api import Observation, module
from kubectl_reconcile.core.module.call import ModuleError, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Keeps, Owned
from kubectl_reconcile.core.module.outcome import Outcome, key_of, named
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.planning.plan import Op
from tests.core.planning.family import NOW, cache, child, live, plan

DISK = child("disk", data={"size": "1"})
FINALIZER = "reconcile.dev/cache"
LABELS = {
    "reconcile.dev/module": "cache",
    "app.kubernetes.io/name": "cache",
    "app.kubernetes.io/instance": "web",
}


def keeper(reconcile, finalize=lambda *_: Outcome(finalized=True)):
    """A module that keeps Things, unless the spec says otherwise."""
    methods = {"reconcile": lambda _, *given: reconcile(*given), "finalize": lambda _, *given: finalize(*given)}
    keeps = [Keeps("example.com/v1", "Thing")]
    owns = ["v1/Service", "example.com/v1/Thing"]
    return module(api="example.com/v1", kind="Cache", owns=owns, name="cache", keeps=keeps)(type("Cache", (), methods))


def wants(*children, **more):
    return keeper(lambda *_: Outcome(children, **more))


def refuse(*_):
    raise SpecError(".spec.size", "must be 0 or more")


def crash(*_):
    raise RuntimeError("a module's own fault")


def owner_of(change):
    return (change.after or {}).get("metadata", {}).get("ownerReferences")


def free(manifest, **metadata):
    """A child without an owner, as it stands in the cluster."""
    found = live({**manifest, "metadata": {**manifest["metadata"], "labels": LABELS}}, owner="", labelled=False)
    return {**found, "metadata": {**found["metadata"], **metadata}}


def policy(cr, said):
    return {**cr, "spec": {"deletionPolicy": said}}


def there():
    return cache(finalizers=[FINALIZER])


def going(**annotations):
    return cache(deleted=True, finalizers=[FINALIZER], **annotations)


def of(made, name="disk"):
    return [change for change in made.changes if change.ref.name == name]


@pytest.mark.parametrize("said", ["Retain", "", None])
def test_a_child_that_stays_is_made_without_an_owner(said):
    (change,) = of(plan(wants(DISK), policy(there(), said)))
    assert (change.op, owner_of(change)) == (Op.CREATE, None)


def test_a_child_that_goes_along_has_an_owner():
    (change,) = of(plan(wants(DISK), policy(there(), "Delete")))
    assert change.op is Op.CREATE
    assert owner_of(change)[0]["uid"] == "u-1"


AS_IT_WAS = {
    "it is asked for as it is": wants(DISK),
    "it is asked for, and other than it is": wants(child("disk", data={"size": "2"})),
    "it stays untouched": wants(DISK, untouched=("Thing.example.com/disk",)),
    "only its name is told": wants(named("example.com/v1", "Thing", "disk"), untouched=("Thing.example.com/disk",)),
    "its module says nothing of it": wants(),
    "nothing is to change": wants(keep_children=True),
    "the spec is refused": keeper(refuse),
    "the module crashes": keeper(crash),
}


@pytest.mark.parametrize("one", AS_IT_WAS.values(), ids=AS_IT_WAS)
def test_a_child_that_carries_an_owner_is_freed_at_the_first_pass(one):
    (change,) = of(plan(one, there(), live(DISK)))
    assert (change.op, owner_of(change)) == (Op.UPDATE, None)
    assert change.after["data"]["size"] in {"1", "2"}
    assert change.after["metadata"]["labels"]["reconcile.dev/module"] == "cache"


@pytest.mark.parametrize("one", AS_IT_WAS.values(), ids=AS_IT_WAS)
def test_what_is_free_is_left_alone(one):
    stays = [change.op for change in of(plan(one, there(), free(DISK)))]
    assert Op.DELETE not in stays


def test_it_is_bound_again_when_it_is_to_go_along():
    (change,) = of(plan(wants(DISK), policy(there(), "Delete"), free(DISK)))
    assert (change.op, owner_of(change)[0]["uid"]) == (Op.UPDATE, "u-1")


def test_a_cr_goes_once_nothing_that_stays_is_bound_to_it():
    (change,) = plan(wants(), going(), live(DISK)).changes
    assert (change.op, owner_of(change)) == (Op.UPDATE, None)
    (change,) = plan(wants(), going(), free(DISK)).changes
    assert change.action.verb == "let-go"


def test_the_way_out_frees_what_stays_first():
    abandoned = going(**{"reconcile.dev/abandon": "true"})
    (change,) = plan(wants(), abandoned, live(DISK)).changes
    assert (change.op, owner_of(change)) == (Op.UPDATE, None)
    (change,) = plan(wants(), abandoned, free(DISK)).changes
    assert change.action.verb == "let-go"


@pytest.mark.parametrize("is_bound", [True, False])
def test_what_its_module_drops_goes(is_bound):
    (change,) = of(plan(wants(dropped=("Thing.example.com/disk",)), there(), (live if is_bound else free)(DISK)))
    assert change.op is Op.DELETE


OTHERS = {
    "another's by its labels": free(DISK, labels={**LABELS, "app.kubernetes.io/instance": "other"}),
    "nobody's": free(DISK, labels={}),
    "one that somebody else controls": live({**DISK, "metadata": {**DISK["metadata"], "labels": LABELS}}, owner="u-2"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_belongs_to_others_is_never_dropped(other):
    assert of(plan(wants(dropped=("Thing.example.com/disk",)), there(), other)) == []


def test_nothing_is_dropped_and_wanted_at_once():
    both = wants(DISK, dropped=(key_of(DISK),))
    with pytest.raises(ModuleError, match=r"drops Thing\.example\.com/disk, which is also one of its children"):
        outcome_of(both, there(), Owned(), {}, Context(NOW, "cache", there()))


def test_what_was_stated_by_nobody_is_told_and_holds_the_end():
    wiped = live(DISK)
    wiped["metadata"]["managedFields"] = []
    made = plan(wants(keep_children=True), there(), wiped)
    assert of(made) == []
    assert "has its owner from somebody else (hint: remove metadata.ownerReferences of Thing.example.com" in str(
        made.problems[0]
    )
    assert not plan(wants(), going(), wiped).changes


def test_what_others_bind_to_it_is_none_of_its_children():
    foreign = live(DISK, labelled=False, manager="kubectl")
    assert plan(wants(), there(), foreign).problems == ()


def test_of_a_paused_cr_nothing_is_freed():
    paused = {**there(), "metadata": {**there()["metadata"], "annotations": {"reconcile.dev/paused": "true"}}}
    assert of(plan(wants(DISK), paused, live(DISK))) == []


def test_nobody_else_is_freed():
    service = child("web", "Service")
    made = plan(wants(service, untouched=("Service/web",)), there(), live(service), observed=Observation())
    assert [change.op for change in of(made, "web")] == [Op.UNCHANGED]
