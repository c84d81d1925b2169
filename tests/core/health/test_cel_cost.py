"""No health rule takes long: what an expression takes is bounded before it is evaluated, and the bound holds."""

from __future__ import annotations

import math
import signal
import time

import cel
import pytest

from kubectl_reconcile.core.health.cel_cost import MOST_STEPS, USUAL, Size, UnreadableError, steps
from kubectl_reconcile.core.health.cel_rules import Rule, RuleError
from kubectl_reconcile.core.health.health import HealthStatus

READY = "self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"
USUAL_RULES = {
    "a phase": "self.status.phase == 'Running'",
    "a condition": READY,
    "as late as the spec": "self.status.observedGeneration == self.metadata.generation && " + READY,
    "counts": "self.status.readyReplicas >= self.spec.replicas && !has(self.status.error)",
    "all of a list": "self.spec.parts.all(p, self.status.parts.exists(s, s.name == p.name && s.ready))",
    "a pattern": r"self.status.message.matches(r'^ready in [0-9]{1,5}s$')",
    "a choice": "has(self.status.conditions) ? self.status.conditions.all(c, c.status != 'False') : false",
    "a comment": "// is it there?\nself.status.address != ''",
    "literals": "self.status.phase in ['Running', \"Done\", r'\\x', '''a'b'''] && {'a': 1}['a'] == 1 && [1u, 0x1F, 1.5e3].size() == 3",
    "filtered and counted": "size(self.status.pods.filter(p, p.ready).map(p, p.name)) == 3",
}


@pytest.mark.parametrize("expression", USUAL_RULES.values(), ids=USUAL_RULES)
def test_rules_as_people_write_them_are_taken(expression):
    rule = Rule.parse({"kind": "Thing.example.com", "current": expression})
    verdict = rule.judge({"kind": "Thing", "status": {"phase": "Running", "conditions": []}})
    assert "too long" not in verdict.message


DEAR_RULES = {
    "loops in loops": "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d >= 0))))",
    "a text that doubles": "['aaaaaaaaaa']" + ".map(x, x + x)" * 30 + ".size() > 0",
    "a list that doubles": "[[1]]" + ".map(x, x + x)" * 30 + ".size() > 0",
    "copies of everything": "self.l.map(a, self).map(a, self.l.map(b, self)).map(c, self.l.map(d, self)).size() > 0",
    "a pattern of many parts": r"'a'.matches('(\\w{100}){100}')",
    "a pattern whose repetitions multiply": r"'a'.matches('((a{99}){99}){99}')",
    "loops over what loops made": "self.l.map(a, self.l.map(b, self.l)).all(x, x.all(y, y.all(z, z.all(w, w == self))))",
}


@pytest.mark.parametrize("expression", DEAR_RULES.values(), ids=DEAR_RULES)
def test_rules_that_take_long_are_refused(expression):
    with pytest.raises(RuleError, match="would take too long"):
        Rule.parse({"kind": "Thing.example.com", "failed": expression})


UNREADABLE = {
    "nested deeply": "(" * 40 + "true" + ")" * 40,
    "a pattern from the object": "self.a.matches(self.b)",
    "a pattern put together": "self.a.matches('a{9}' + '{9}')",
}


@pytest.mark.parametrize("expression", UNREADABLE.values(), ids=UNREADABLE)
def test_rules_whose_cost_cannot_be_told_are_refused(expression):
    with pytest.raises(UnreadableError):
        steps(expression, USUAL)
    with pytest.raises(RuleError, match="cost can't be estimated"):
        Rule.parse({"kind": "Thing.example.com", "failed": expression})


WORST = {
    "one loop": "self.l.all(x, x >= 0)",
    "two loops": "self.l.all(x, self.l.all(y, x + y >= 0))",
    "copies": "self.o.all(x, self.o[0].t.c.size() > 0)",
    "comparisons": "self.o.all(x, self.o == self.o)",
    "members": "self.l.all(x, x in self.l)",
    "lists that grow": "self.o.all(x, (self.o + self.o + self.o).size() > 0)",
    "maps": "self.o.map(x, self.o).size() > 0",
    "texts": "self.o.all(x, (self.s + self.s).contains('a'))",
    "patterns": r"self.l.all(x, self.s.matches('[a-z]+b'))",
}


@pytest.mark.parametrize("items", [10, 50, 100, 200, 400])
@pytest.mark.parametrize("expression", WORST.values(), ids=WORST)
def test_what_is_asked_takes_no_longer_than_its_bound(expression, items):
    parts = [{"name": f"x{number}", "t": {"a": "b", "c": [1, 2, 3]}} for number in range(items)]
    manifest = {"l": list(range(items)), "o": parts, "s": "a" * items * 100}
    if steps(expression, Size.of(manifest)) > MOST_STEPS:
        verdict = Rule.parse({"kind": "Thing", "failed": expression}).judge(manifest)
        assert (verdict.status, "too long" in verdict.message) == (HealthStatus.IN_PROGRESS, True)
        return
    rule = Rule.parse({"kind": "Thing", "current": expression})
    began_s = time.process_time()
    assert rule.judge(manifest) is not None
    assert time.process_time() - began_s < 1.0, "a tenth of a second where nothing else runs"


def test_the_library_hears_nothing_until_it_is_done():
    """Why a bound is needed before: an alarm, by which calls of modules end, comes too late for an expression."""
    program = cel.compile("self.all(a, self.all(b, self.all(c, a + b + c >= 0)))")
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(time.perf_counter()))
    try:
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        assert program.execute({"self": list(range(120))}) is True
        took = time.perf_counter() - began
        while not heard:
            signal.sigtimedwait([], 0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard[0] - began > 0.9 * took, "the library was interrupted: is cel_cost still needed?"


def test_the_library_makes_whatever_an_expression_asks_for():
    made = cel.evaluate("[[1]]" + ".map(x, x + x)" * 16 + "[0]")
    assert len(made) == 2**16, "each fourteen characters double it, without a limit"


def test_neither_the_length_of_an_expression_nor_the_size_of_an_object_tells_how_long_it_takes():
    plain = "self.l.all(a, a > 0) && self.l.all(b, b < 9) && self.l.all(c, c != 5 || c == 50)"
    nested = "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d != 5000))))"
    numbers = Size.of({"l": list(range(1000))})
    assert math.isclose(len(plain), len(nested), abs_tol=2)
    assert steps(plain, numbers) < MOST_STEPS < steps(nested, numbers) / 1_000_000
