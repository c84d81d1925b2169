"""What changes among the members of a set is looked at; what only says that it is one, once in a while."""

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.engine.daemon.sources.followed import ChangedMembers


def ref(name):
    return ObjectRef("", "ConfigMap", "shop", name)


def test_a_member_that_changed_is_looked_at_at_once_and_once():
    changed = ChangedMembers()
    changed.note(ref("a"), is_known=True)
    assert changed.is_there(0.0)
    assert changed.take(0.0) == {ref("a")}
    assert not changed.is_there(0.0)


def test_what_nobody_asks_for_has_the_set_looked_at_once_in_half_a_minute():
    changed = ChangedMembers()
    changed.note(ref("forged"), is_known=False)
    assert changed.take(100.0) == {ref("forged")}
    changed.note(ref("forged"), is_known=False)
    changed.note(ref("a"), is_known=True)
    assert changed.take(101.0) == {ref("a")}, "a change of a member is no reason to look at what isn't one"
    assert not changed.is_there(129.0)
    assert changed.take(130.0) == {ref("forged")}


def test_however_many_there_are_few_are_remembered():
    changed = ChangedMembers()
    for number in range(10_000):
        changed.note(ref(f"forged-{number}"), is_known=False)
    assert len(changed.take(0.0)) == 100
