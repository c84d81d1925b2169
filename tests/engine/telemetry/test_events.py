"""Which events are remembered, so that what is said again is counted and not written anew."""

from kubectl_reconcile.engine.telemetry.events import _QUIET_S, _REMEMBERED, _lately, _Said


def heard(at_s):
    return _Said("/events/one", heard_s=at_s, told_s=at_s)


def test_of_many_events_those_heard_last_are_remembered_and_there_is_room_for_as_many_more():
    said = {(f"uid-{at}", "Applied", "1 created"): heard(float(at) / 1000) for at in range(_REMEMBERED)}
    first, *_, last = said
    kept = _lately(dict(reversed(said.items())), now_s=5.0)
    assert len(kept) == _REMEMBERED // 2
    assert last in kept
    assert first not in kept


def test_what_was_not_heard_for_long_is_forgotten_first():
    said = {("uid-1", "Failed", "no"): heard(0.0), ("uid-2", "Failed", "no"): heard(1.0)}
    assert [*_lately(said, now_s=_QUIET_S + 0.5)] == [("uid-2", "Failed", "no")]
