"""Scans that know what hasn't changed: they find the same as others do, and look at nothing twice."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.scan.memory import ScanMemory
from kubectl_reconcile.core.scan.namespace import findings_among
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.core.scan.rules import Exclusion, ScanRules
from tests.core.scan.namespaces import NAMESPACES
from tests.modules.checkup.world import deployment, meta, pod_of, role, service

BASELINE, RESTRICTED = ScanRules(Profile.BASELINE), ScanRules(Profile.RESTRICTED)


@dataclass
class Shop:
    """Live objects of a namespace, which count how often they are parsed."""

    memory: ScanMemory = field(default_factory=ScanMemory)
    there: dict = field(default_factory=dict)
    writes: int = 0
    parsed: list = field(default_factory=list)

    def write(self, *manifests):
        for each in manifests:
            self.writes += 1
            self.there[ObjectRef.of(each)] = Counted(each, f"u/{self.writes}", self.parsed)

    def scan(self, rules=RESTRICTED, place="shop"):
        """Return what is found, and which objects were parsed for it."""
        self.parsed.clear()
        found = self.memory.findings_among(place, self.there.values(), rules)
        plain = findings_among([each.body for each in self.there.values()], rules)
        assert [(each, each.demand, each.severity) for each in found] == [
            (each, each.demand, each.severity) for each in plain
        ]
        return found, sorted(self.parsed)


@dataclass
class Counted:
    body: dict
    version: str
    parsed: list

    @property
    def ref(self):
        return ObjectRef.of(self.body)

    def manifest(self):
        self.parsed.append(self.ref.name)
        return self.body


def many(count=300):
    maker = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta("web"), "spec": {}}
    return [maker, *(pod_of("ReplicaSet", "web", f"web-{number}") for number in range(count))]


def test_each_object_is_parsed_once_and_again_only_when_it_has_changed():
    shop = Shop()
    shop.write(*many(), deployment(readinessProbe=None), service())
    found, parsed = shop.scan()
    assert len(parsed) == len(shop.there), "once for what is found in it and for what it means to others"
    assert shop.scan() == (found, [])
    shop.write(pod_of("ReplicaSet", "web", "web-7", hostPID=True), deployment(), role("*", name="more"))
    assert shop.scan()[1] == ["more", "web", "web-7"]
    del shop.there[ObjectRef("", "Pod", "shop", "web-8")]
    assert shop.scan()[1] == []


def test_pods_are_looked_at_by_themselves_once_their_maker_has_gone():
    shop = Shop()
    shop.write(*many(3))
    assert [each for each in shop.scan()[0] if each.ref.kind == "Pod"] == []
    del shop.there[ObjectRef("apps", "ReplicaSet", "shop", "web")]
    shop.write(pod_of("ReplicaSet", "web", "web-9", hostPID=True))
    found, parsed = shop.scan()
    assert {each.ref.name for each in found} >= {"web-9"}
    assert parsed == ["web-0", "web-1", "web-2", "web-9"]
    assert shop.scan() == (found, [])


def test_other_rules_ask_for_nothing_that_is_known():
    shop = Shop()
    shop.write(deployment(readinessProbe=None, pod={"hostPID": True}), role("*"))
    shop.scan(BASELINE)
    assert shop.scan(RESTRICTED)[1] == ["web", "web"], "another profile looks at other things"
    assert shop.scan(ScanRules(Profile.BASELINE, (Exclusion("probes"),)))[1] == []
    assert shop.scan(RESTRICTED)[1] == []


def test_what_has_no_version_is_looked_at_each_time():
    shop = Shop()
    shop.write(role("*"))
    for each in shop.there.values():
        each.version = ""
    assert shop.scan()[1] == shop.scan()[1] == ["web"]


def test_what_does_not_fit_is_looked_at_each_time_and_of_namespaces_the_last_ones_are_known():
    shop = Shop(ScanMemory(most=5))
    shop.write(*(role("get", name=name) for name in "abcd"))
    shop.scan(place="first")
    assert shop.scan(place="first")[1] == []
    shop.scan(place="second")
    assert shop.scan(place="second")[1] == []
    assert shop.scan(place="first")[1] == ["a", "b", "c", "d"], "both didn't fit"
    shop.write(*(role("*", name=name) for name in "abcd"))
    shop.scan()
    assert len(shop.scan()[1]) == 2, "an object and its finding are two"


@given(st.lists(NAMESPACES, max_size=5), st.sampled_from([BASELINE, RESTRICTED]))
def test_with_a_memory_a_scan_finds_what_it_finds_without(states, rules):
    shop = Shop(ScanMemory(most=4))
    for state in states:
        shop.there = {ref: each for ref, each in shop.there.items() if state.get(ref) == each.body}
        shop.write(*(each for ref, each in state.items() if ref not in shop.there))
        shop.scan(rules)  # compares
