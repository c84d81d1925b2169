"""What a plan does to a scan: only what would be written counts, and each finding once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.objects import FIELD_MANAGER, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Gate, Op, Provenance
from kubectl_reconcile.core.scan.namespace import findings_among
from kubectl_reconcile.core.scan.outlook import (
    CHECKUP,
    PlanScan,
    ScannedNamespace,
    ScanScope,
    checkups_after,
    outlook_of,
)
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.core.scan.rules import Exclusion, ScanRules
from tests.core.scan.namespaces import NAMESPACES, of_template
from tests.modules.checkup.world import deployment, meta, pod_of, service
from tests.modules.checkup.world import role as a_role

ROLE = ObjectRef("rbac.authorization.k8s.io", "Role", "shop", "web")
FROM_GIT = Provenance(file="rights.yaml", line=3)


def role(*verbs):
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "web", "namespace": "shop"},
        "rules": rules,
    }


def outlook(op, before=None, after=None, **more):
    found = outlook_of(
        [Change(ROLE, op, before=before, after=after, provenance=FROM_GIT, **more)], ScanScope(Profile.BASELINE)
    )
    return told(found)


def told(found):
    return tuple([(each.finding.check, each.place) for each in part] for part in (found.new, found.fixed))


def test_a_change_adds_what_wasn_t_there_and_mends_what_isn_t_any_more():
    wildcard, escalation = ("rights-wildcard", "rights.yaml:3"), ("rights-escalation", "rights.yaml:3")
    assert outlook(Op.CREATE, after=role("*")) == ([wildcard], [])
    assert outlook(Op.UPDATE, role("*"), role("bind")) == ([escalation], [wildcard])
    assert outlook(Op.UPDATE, role("*"), role("*", "get")) == ([], [])
    assert outlook(Op.DELETE, role("*")) == ([], [("rights-wildcard", "")])


@pytest.mark.parametrize(
    "gate", [Gate(blocked="another's"), Gate(held=True), Gate(denied="may not")], ids=["blocked", "held", "denied"]
)
def test_what_would_not_be_written_adds_and_mends_nothing(gate):
    assert outlook(Op.UPDATE, role("*"), role("bind"), gate=gate) == ([], [])


def test_what_stays_as_it_is_and_what_has_no_object_adds_nothing():
    assert outlook(Op.UNCHANGED, role("*"), role("*")) == ([], [])
    assert outlook(Op.ACT) == ([], [])


# --- by Checkups ---


def in_shop(changes, live, *rules, is_known=True):
    checkups = {f"checkup-{number}": each for number, each in enumerate(rules or [ScanRules(Profile.RESTRICTED)])}
    return outlook_of(changes, ScanScope(namespaces={"shop": ScannedNamespace(live, checkups, is_known)}))


def change(op, before=None, after=None, **more):
    ref = ObjectRef.of(after or before)
    return Change(ref, op, before=before, after=after, provenance=FROM_GIT, **more)


def test_what_a_checkup_leaves_out_is_not_told():
    changes = [change(Op.CREATE, after=a_role("*")), change(Op.CREATE, after=deployment(readinessProbe=None))]
    assert told(in_shop(changes, []))[0] == [("probes", "rights.yaml:3"), ("rights-wildcard", "rights.yaml:3")]
    lenient = ScanRules(Profile.RESTRICTED, (Exclusion(check="probes"),))
    assert told(in_shop(changes, [], lenient))[0] == [("rights-wildcard", "rights.yaml:3")]
    strict = ScanRules(Profile.RESTRICTED, (Exclusion(check="rights-*"),))
    assert len(told(in_shop(changes, [], lenient, strict))[0]) == 2, "whatever any of them finds"


def test_a_deployment_that_goes_leaves_a_service_that_nobody_answers_for_and_takes_its_pods_along():
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    replica_set = {**deployment("web-1"), "kind": "ReplicaSet"}
    replica_set["metadata"] = {**replica_set["metadata"], "ownerReferences": [made]}
    live = [service(), deployment(), replica_set, pod_of("ReplicaSet", "web-1", hostPID=True)]
    assert told(in_shop([change(Op.DELETE, before=deployment())], live)) == ([("endpoints", "")], [])


def test_where_not_all_is_known_nothing_is_said_of_what_answers_for_a_service():
    changes = [change(Op.CREATE, after=service()), change(Op.UPDATE, a_role("*"), a_role("get"))]
    assert told(in_shop(changes, [])) == ([("endpoints", "rights.yaml:3")], [("rights-wildcard", "rights.yaml:3")])
    assert told(in_shop(changes, [], is_known=False)) == ([], [("rights-wildcard", "rights.yaml:3")])


def test_a_plan_is_scanned_once_however_often_it_is_asked_for():
    class Counted(list):
        looks = 0

        def __iter__(self):
            self.looks += 1
            return super().__iter__()

    live = Counted([a_role("*")])
    scan = PlanScan(ScanScope(namespaces={"shop": ScannedNamespace(live, {"all": ScanRules(Profile.BASELINE)})}))
    first, second = [change(Op.UPDATE, a_role("*"), a_role("bind"))], [change(Op.CREATE, after=service())]
    expected = [told(outlook_of(each, scan.scope)) for each in (first, second)]
    live.looks = 0
    assert [told(scan.outlook(each)) for each in (first, second, first, second)] == expected * 2
    assert live.looks == 2


def test_other_namespaces_have_checkups_of_their_own():
    assert told(in_shop([Change(ROLE._replace(namespace="stall"), Op.CREATE, after=a_role("*"))], [])) == ([], [])


def test_checkups_are_asked_as_they_are_after_the_plan():
    def checkup(name, **spec):
        metadata = {"name": name, "namespace": "shop"}
        api = CHECKUP.api_version
        return {"apiVersion": api, "kind": "Checkup", "metadata": metadata, "spec": {"scan": {}, **spec}}

    live = [
        checkup("stays"),
        checkup("changes"),
        checkup("goes"),
        checkup("rests", suspend=True),
        {**checkup("asks"), "spec": {"load": {"service": "web", "port": 80}}},
        checkup("odd", scan={"profile": "x"}),
    ]
    changes = [
        change(Op.UPDATE, checkup("changes"), checkup("changes", scan={"profile": "restricted"})),
        change(Op.DELETE, checkup("goes")),
        change(Op.CREATE, None, checkup("comes")),
        change(Op.CREATE, None, checkup("held"), gate=Gate(held=True)),
    ]
    found = checkups_after(live, changes)["shop"]
    assert {name: str(rules.profile) for name, rules in found.items()} == {
        "stays": "baseline", "changes": "restricted", "comes": "baseline",
    }  # fmt: skip


WILD = {"Job": ".spec.template.spec.hostPID", "CronJob": ".spec.jobTemplate.spec.template.spec.hostPID", "Checkup": ".spec.job.template.spec.hostPID"}  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), WILD.items(), ids=WILD)
def test_pods_that_come_later_are_looked_at_where_they_are_asked_for(kind, path):
    found = in_shop([change(Op.CREATE, after=of_template("a", kind, {"hostPID": True}))], [])
    assert [each.finding.path for each in found.new] == [path]


def test_what_a_module_would_make_counts_and_is_told_with_the_module():
    """A scan doesn't see who has made it, so it looks at it by itself."""
    by = Provenance(manager=f"{FIELD_MANAGER}-memcached")
    cr = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": meta("web")}
    owner = {"apiVersion": cr["apiVersion"], "kind": cr["kind"], "name": "web", "uid": "u", "controller": True}
    child = {**a_role("*"), "metadata": meta("web", ownerReferences=[owner])}
    made = Change(ObjectRef.of(child), Op.CREATE, after=child, provenance=by)
    assert told(in_shop([change(Op.CREATE, after=cr), made], [])) == ([("rights-wildcard", "memcached")], [])


RULES = st.builds(
    ScanRules,
    st.sampled_from(Profile),
    st.lists(st.sampled_from([Exclusion("limits"), Exclusion(kind="Role"), Exclusion(name="a")]), max_size=2).map(
        tuple
    ),
)


@given(NAMESPACES, NAMESPACES, RULES)
def test_what_is_told_of_a_plan_is_what_a_scan_finds_after_it(before, after, rules):
    changes = [
        *(change(Op.CREATE, after=after[ref]) for ref in sorted(after.keys() - before.keys())),
        *(change(Op.UPDATE, before[ref], after[ref]) for ref in sorted(after.keys() & before.keys())),
        *(change(Op.DELETE, before=before[ref]) for ref in sorted(before.keys() - after.keys())),
    ]
    found = in_shop(changes, list(before.values()), rules)
    new, mended = ({each.finding for each in part} for part in (found.new, found.fixed))
    assert (set(findings_among(before.values(), rules)) | new) - mended == set(findings_among(after.values(), rules))
    assert not new & mended
