"""Plans of Syncs that a plan changes: which, why, what of them can be known, and what isn't shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.objects import ObjectRef, Problem
from kubectl_reconcile.core.planning import nested
from kubectl_reconcile.core.planning.kinds import CRD
from kubectl_reconcile.core.planning.nested import (
    MOST_LEVELS,
    MOST_SYNCS,
    AtHand,
    MadeAbove,
    is_same_repository,
    nested_in,
    not_planned,
    parted,
    together,
    why_of,
    without_others_values,
)
from kubectl_reconcile.core.planning.plan import Nested, Op, Plan, plan_hash
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.oci.spec import OciSpec
from kubectl_reconcile.core.resources.source import GitSpec, SourceSpec
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from tests.core.planning.changes import a_change
from tests.core.planning.shop import CRDS, KINDS, MEMCACHED

URL = "https://git.example.com/platform/clusters.git"
CHART = {"repository": "https://charts.example.com", "name": "web", "version": "1.2.3", "digest": f"sha256:{'a' * 64}"}


def ref_of(name, namespace="shop"):
    return ObjectRef(SYNC.group, SYNC.kind, namespace, name)


ROOT = ref_of("root")


def a_sync(name="web", *, labels=None, path="apps/web", url=URL, source=None, **spec):
    metadata = {"name": name, "namespace": "shop"} | ({"labels": labels} if labels else {})
    source = source or {"git": {"url": url}, "path": path}
    return {"apiVersion": SYNC.api_version, "kind": "Sync", "metadata": metadata, "spec": {"source": source, **spec}}


def created(manifest, **rest):
    return a_change(ObjectRef.of(manifest), Op.CREATE, after=manifest, intent=manifest, **rest)


def updated(before, after, **rest):
    return a_change(ObjectRef.of(after), Op.UPDATE, before=before, after=after, intent=after, **rest)


def a_plan(*changes, sync=ROOT, revision="3f9c2e1", **rest):
    return Plan(sync, revision, changes, **rest)


def config(name="web", namespace="shop", *, owner=None, **data):
    metadata = {"name": name, "namespace": namespace} | ({"labels": {PART_OF: applyset_id(owner)}} if owner else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def answered(made, plan_of):
    """What is nested in a plan, where *plan_of* gives the plan of each Sync that is asked for, or why there is none."""
    walk = nested_in(made)
    try:
        asked = next(walk)
        while True:
            asked = walk.send(plan_of(asked))
    except StopIteration as end:
        return end.value


# --- why ----------------------------------------------------------------------------------------------------------------

REASONS = {
    "another path": (a_sync(), a_sync(path="apps/shop"), ("spec.source.path",)),
    "another version of a chart": (
        a_sync(source={"chart": CHART}),
        a_sync(source={"chart": {**CHART, "version": "1.3.0", "digest": f"sha256:{'b' * 64}"}}),
        ("chart web 1.2.3 → 1.3.0",),
    ),
    "a version and values": (
        a_sync(source={"chart": CHART}),
        a_sync(source={"chart": {**CHART, "version": "1.3.0"}, "helm": {"values": {"replicas": 3}}}),
        ("chart web 1.2.3 → 1.3.0", "spec.source.helm"),
    ),
    "another chart": (
        a_sync(source={"chart": CHART}),
        a_sync(source={"chart": {**CHART, "name": "shop"}}),
        ("spec.source.chart.name",),
    ),
    "values deep down are one field": (
        a_sync(source={"chart": CHART, "helm": {"values": {"a": {"b": 1}}}}),
        a_sync(source={"chart": CHART, "helm": {"values": {"a": {"b": 2}}}}),
        ("spec.source.helm.values",),
    ),
    "labels alone": (a_sync(), a_sync(labels={"team": "shop"}), ("metadata.labels",)),
    "what the server writes": (a_sync(), {**a_sync(), "status": {"lastAppliedRevision": "3f9c2e1"}}, ()),
}


@pytest.mark.parametrize(("before", "after", "expected"), REASONS.values(), ids=REASONS)
def test_why_a_sync_does_something_else(before, after, expected):
    assert why_of(updated(before, after)) == expected


def test_many_reasons_are_counted():
    after = a_sync(path="b", prune=False, atomic=True, suspend=True, timeout="1m", replace=True)
    assert why_of(updated(a_sync(), after)) == ("spec.atomic, spec.prune, spec.replace, spec.source.path and 2 more",)


# --- where there is none ------------------------------------------------------------------------------------------------

NONE = {
    "it follows nothing": (created({**a_sync(), "spec": {}}), "it follows nothing"),
    "it is suspended": (created(a_sync(suspend=True)), "it is suspended"),
    "it is left alone": (
        updated(a_sync(), a_sync(path="b"), blocked="belongs to Sync a/b"),
        "it isn't written: belongs to Sync a/b",
    ),
    "it says nothing that can be meant": (
        created(a_sync(source={"git": {}})),
        "spec.source.git.url is required",
    ),
    "its members stay": (
        a_change(ref_of("web"), Op.DELETE, before=a_sync()),
        "its members stay, and belong to nobody then",
    ),
    "it has no members": (
        a_change(ref_of("web"), Op.DELETE, before=a_sync(deletionPolicy="Prune")),
        "nothing is deleted along with it",
    ),
}


@pytest.mark.parametrize(("change", "expected"), NONE.values(), ids=NONE)
def test_why_a_sync_has_no_plan(change, expected):
    [found] = answered(a_plan(change), lambda _: pytest.fail("nothing is to be asked"))
    assert (found.plan, found.not_planned.replace(":", "")) == (None, expected.replace(":", ""))


def test_what_goes_with_a_sync_is_counted_through_all_that_it_takes_along():
    gone = a_change(ref_of("web"), Op.DELETE, before=a_sync(deletionPolicy="Prune"))
    crd = ObjectRef(*CRD, "", "things.example.com")
    along = [
        a_change(crd, Op.DELETE, before={"metadata": {}}, owner=ref_of("web"), cascade=True),
        a_change(ObjectRef("example.com", "Thing", "shop", "a"), Op.DELETE, before={"metadata": {}}, owner=crd, cascade=True),
        a_change(ObjectRef("", "Pod", "shop", "b"), Op.DELETE, before={"metadata": {}}, owner=ref_of("other"), cascade=True),
    ]  # fmt: skip
    assert not_planned(gone, (), a_plan(gone, *along), ROOT) == "2 objects are deleted along with it"


def test_a_circle_of_syncs_is_named():
    inner = a_plan(created(a_sync("root")), sync=ref_of("web"))
    found = answered(a_plan(created(a_sync("web"))), lambda _: inner)
    assert found[1].not_planned == "it contains itself: shop/root → shop/web → shop/root"


def test_plans_are_nested_five_levels_deep_and_no_further():
    def deeper(asked):
        number = int(asked.change.ref.name)
        return a_plan(created(a_sync(str(number + 1))), sync=asked.change.ref)

    found = answered(a_plan(created(a_sync("1"))), deeper)
    assert [each.depth for each in found] == list(range(MOST_LEVELS + 1))
    assert [bool(each.plan) for each in found] == [True] * MOST_LEVELS + [False]
    assert found[-1].not_planned == "it is nested more than 5 levels deep"


def test_no_more_than_a_hundred_are_asked_for():
    asked = []

    def plan_of(question):
        asked.append(question)
        return a_plan(sync=question.change.ref)

    found = answered(a_plan(*(created(a_sync(f"s{n}")) for n in range(MOST_SYNCS + 20))), plan_of)
    assert (len(asked), sum(each.plan is None for each in found)) == (MOST_SYNCS, 20)


def test_those_that_wait_for_others_come_after_them():
    app = created(a_sync("app", dependsOn=[{"name": "infra"}]))
    asked = [
        each.sync.name
        for each in answered(a_plan(app, created(a_sync("infra"))), lambda each: a_plan(sync=each.change.ref))
    ]
    assert asked == ["infra", "app"]


def test_syncs_that_wait_for_each_other_are_planned_all_the_same():
    pair = [created(a_sync("a", dependsOn=[{"name": "b"}])), created(a_sync("b", dependsOn=[{"name": "a"}]))]
    assert len(answered(a_plan(*pair), lambda each: a_plan(sync=each.change.ref))) == 2


# --- what is at hand ----------------------------------------------------------------------------------------------------

SAME = {
    "to the letter": (URL, URL, True),
    "with and without .git": (URL, "https://git.example.com/platform/clusters", True),
    "over SSH": (URL, "git@git.example.com:platform/clusters.git", True),
    "over SSH at another port": (URL, "ssh://git@git.example.com:2222/platform/clusters", True),
    "another repository": (URL, "https://git.example.com/platform/other", False),
    "a repository below": (URL, "https://git.example.com/platform/clusters/other", False),
    "another host": (URL, "https://example.com/platform/clusters", False),
    "another port of one host": ("http://127.0.0.1:8001/a", "http://127.0.0.1:8002/a", False),
    "a folder": ("file:///srv/a.git", "/srv/a", True),
    "another folder": ("/srv/b", "/srv/a", False),
}


@pytest.mark.parametrize(("one", "other", "expected"), SAME.values(), ids=SAME)
def test_whether_urls_are_of_one_repository(one, other, expected):
    assert is_same_repository(one, other) is is_same_repository(other, one) is expected


MAIN = GitSpec(URL, branch="main")
FOLLOWED = {
    "the same branch": (MAIN, GitSpec(URL, branch="main"), True),
    "the default branch": (MAIN, GitSpec(URL), True),
    "another branch": (MAIN, GitSpec(URL, branch="next"), False),
    "a tag": (MAIN, GitSpec(URL, tag="v1"), False),
    "a range of versions": (MAIN, GitSpec(URL, semver="1.x"), False),
    "a commit": (MAIN, GitSpec(URL, commit="c" * 40), False),
    "the same tag": (GitSpec(URL, tag="v1"), GitSpec(URL, tag="v1"), True),
    "any branch, of a working tree": (None, GitSpec(URL, branch="next"), True),
    "a tag, whatever a working tree has": (None, GitSpec(URL, tag="v1"), False),
    "a range of versions, whatever a working tree has": (None, GitSpec(URL, semver="1.x"), False),
    "no repository": (MAIN, None, False),
}


@pytest.mark.parametrize(("at_hand", "git", "expected"), FOLLOWED.values(), ids=FOLLOWED)
def test_whether_a_sync_reads_what_is_at_hand(at_hand, git, expected):
    assert AtHand(frozenset({URL}), at_hand).is_read_by(SourceSpec(git)) is expected


# --- what isn't there yet -----------------------------------------------------------------------------------------------

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}


def crd_of_memcached():
    parsed = (each for file in CRDS.glob("*.yaml") for each in parse(file.read_bytes(), file.name).manifests)
    return next(each.manifest for each in parsed if each.ref.name.startswith("memcacheds."))


def test_what_needs_a_namespace_or_a_kind_that_isnt_there_yet_is_set_aside_and_says_so():
    above = MadeAbove().and_by(a_plan(created(NAMESPACE), created(crd_of_memcached())))
    cache = {"apiVersion": MEMCACHED.api_version, "kind": "Memcached", "metadata": {"name": "a", "namespace": "shop"}}
    here, there, custom = created(config("a")), created(config("b", "new")), created(cache, kind=KINDS[MEMCACHED])
    tried, aside = parted(a_plan(here, there, custom, confirmed=True), above)
    assert (tried.changes, aside) == ((here,), (there, custom))
    assert list(tried.remarks.values()) == [
        ("not checked by the API server: namespace new isn't there yet",),
        ("not checked by the API server: kind Memcached.cache.example.com isn't there yet",),
    ]
    whole = together(replace(tried, confirmed=True), aside)
    assert ({each.ref for each in whole.changes}, whole.confirmed) == ({here.ref, there.ref, custom.ref}, False)


def test_a_namespace_that_is_there_already_is_nothing_new():
    above = MadeAbove().and_by(a_plan(updated(NAMESPACE, NAMESPACE)))
    assert parted(a_plan(created(config("b", "new"))), above)[1] == ()


def test_accounts_and_roles_above_make_rights_unknown():
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "shop"}}
    assert MadeAbove().and_by(a_plan(created(account))).changes_rights
    assert not MadeAbove().and_by(a_plan(created(config()))).changes_rights


# --- what isn't shown ---------------------------------------------------------------------------------------------------

OTHERS = {
    "nobody's": (config(token="hunter2"), {}, "exists, and belongs to no Sync: its values aren't shown"),
    "another Sync's, by its name": (
        config(owner=ref_of("other"), token="hunter2"),
        {"foreign": "Sync shop/other"},
        "exists, and belongs to Sync shop/other: its values aren't shown",
    ),
    "another Sync's": (
        config(owner=ref_of("other"), token="hunter2"),
        {},
        "exists, and belongs to another Sync: its values aren't shown",
    ),
}


@pytest.mark.parametrize(("live", "rest", "expected"), OTHERS.values(), ids=OTHERS)
def test_of_somebody_elses_object_nothing_is_shown_but_whose_it_is(live, rest, expected):
    asked = config(token="guess")
    merged = {**asked, "data": {**live["data"], "token": "guess", "also": "hunter2"}}
    change = a_change(ObjectRef.of(asked), Op.UPDATE, before=live, after=merged, intent=asked, **rest)
    made = without_others_values(a_plan(change, sync=ref_of("web")), ref_of("web"))
    assert made.remarks[change.ref] == (expected,)
    assert "hunter2" not in repr(made)
    assert made.changes[0].after == asked


def test_a_members_values_are_shown_and_those_of_what_its_module_made():
    mine = updated(config(owner=ref_of("web"), a="1"), config(owner=ref_of("web"), a="2"))
    owned = {
        **config("child", a="1"),
        "metadata": {"name": "child", "ownerReferences": [{"kind": "Memcached", "name": "m"}]},
    }
    child = updated(owned, config("child", a="2"), owner=ObjectRef("cache.example.com", "Memcached", "shop", "m"))
    made = a_plan(mine, child, sync=ref_of("web"))
    assert without_others_values(made, ref_of("web")) is made


def test_what_goes_along_with_a_member_isnt_shown_unless_it_is_one():
    along = a_change(
        ObjectRef("", "ConfigMap", "shop", "web"),
        Op.DELETE,
        before=config(a="hunter2"),
        owner=ref_of("x"),
        cascade=True,
    )
    assert "hunter2" not in repr(without_others_values(a_plan(along), ref_of("web")))


def test_the_server_isnt_asked_about_somebody_elses_object():
    """What it refuses, it may quote."""
    change = updated(config(token="hunter2"), config(token="guess"))
    tried, aside = parted(without_others_values(a_plan(change), ref_of("web")), MadeAbove())
    assert (tried.changes, len(aside)) == ((), 1)


@given(st.text("ab", min_size=1, max_size=3), st.text("ab", min_size=1, max_size=3))
def test_nothing_that_is_printed_tells_one_live_value_of_somebody_else_from_another(one, other):
    def hidden(value):
        change = updated(config(token=value), config(token="guess", rest=value), fields=())
        change = replace(change, intent=config(token="guess"))
        return without_others_values(a_plan(change), ref_of("web"))

    assert hidden(one) == hidden(other)
    assert hidden(one).hash == hidden(other).hash


# --- what isn't for everybody -------------------------------------------------------------------------------------------


def from_map(name):
    return {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": name, "key": "web"}}}


def that_reads(*names, helm=None):
    source = {
        "git": {"url": URL},
        "path": "apps/web",
        "substitute": {"variables": [from_map(each) for each in names][:1]},
    }
    return Sync.of(
        a_sync(
            source=source | ({"helm": helm} if helm else {})
            if names
            else {"git": {"url": URL}, **({"helm": helm} if helm else {})}
        )
    )


READS = {
    "a new Sync that reads nothing": (None, that_reads(), ()),
    "a new Sync that reads a ConfigMap": (None, that_reads("colors"), ("ConfigMap shop/colors",)),
    "the ConfigMap that it read before": (that_reads("colors"), that_reads("colors"), ()),
    "another ConfigMap": (that_reads("colors"), that_reads("others"), ("ConfigMap shop/others",)),
    "what a chart looks up": (None, that_reads(helm={"lookup": "Cluster"}), ("what its chart looks up",)),
    "what a chart looked up before, for the chart may ask for something else": (
        that_reads(helm={"lookup": "Cluster"}), that_reads(helm={"lookup": "Cluster"}), ("what its chart looks up",)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), READS.values(), ids=READS)
def test_what_a_request_would_make_a_sync_read(before, after, expected):
    assert nested.newly_read(before, after) == expected


ELSEWHERE = {
    "the repository at hand": (SourceSpec(GitSpec(URL)), False),
    "another repository": (SourceSpec(GitSpec("https://git.example.com/private")), True),
    "an artifact": (SourceSpec(oci=OciSpec("oci://registry.example.com/web")), True),
    "a chart that anybody may fetch": (
        SourceSpec(chart=ChartSpec("https://charts.example.com", "web", "1.2.3", "")),
        False,
    ),
    "a chart that takes a Secret": (
        SourceSpec(chart=ChartSpec("https://charts.example.com", "web", "1.2.3", "", "key")),
        True,
    ),
}


@pytest.mark.parametrize(("source", "expected"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_is_read_elsewhere(source, expected):
    assert nested.is_elsewhere(source, AtHand(frozenset({URL}))) is expected


def test_of_another_repository_just_names_are_shown():
    private = {**config("web", owner=ref_of("web"), token="hunter2")}
    change = updated(private, {**private, "data": {"token": "hunter2-new"}}, blocked="hunter2 is no value")
    problem = Problem("secret/place.yaml", 3, "hunter2 isn't YAML", "not hunter2")
    made = nested.names_only(a_plan(change, created(config("new", token="hunter2")), problems=(problem, problem)))
    assert "hunter2" not in repr(made)
    assert "secret/place" not in repr(made)
    assert [(each.op, each.ref.name, bool(each.gate.blocked)) for each in made.changes] == [
        (Op.UPDATE, "web", True),
        (Op.CREATE, "new", False),
    ]
    assert made.remarks[change.ref] == ("its content isn't shown: it comes from another repository",)
    assert len(made.problems) == 1


# --- one hash over all --------------------------------------------------------------------------------------------------


def a_nested(*changes, name="web", op=Op.UPDATE, revision="3f9c2e1"):
    return Nested(ref_of(name), op, plan=a_plan(*changes, sync=ref_of(name), revision=revision))


def test_a_plan_without_nested_ones_has_the_hash_that_it_always_had():
    made = a_plan(created(config()))
    assert made.hash == plan_hash(made.sync, made.revision, made.changes)


MOVED = {
    "another change": (a_nested(created(config(a="2"))),),
    "another revision": (a_nested(created(config(a="1")), revision="77aa001"),),
    "another Sync": (a_nested(created(config(a="1")), name="shop"),),
    "another operation": (a_nested(created(config(a="1")), op=Op.CREATE),),
    "no plan any more": (Nested(ref_of("web"), Op.UPDATE, not_planned="it is suspended"),),
    "one more": (a_nested(created(config(a="1"))), a_nested(name="shop")),
    "none": (),
}


@pytest.mark.parametrize("moved", MOVED.values(), ids=MOVED)
def test_the_hash_covers_what_is_nested(moved):
    made = a_plan(created(a_sync()), nested=(a_nested(created(config(a="1"))),))
    assert replace(made, nested=moved).hash != made.hash


def test_why_is_no_part_of_the_hash():
    """The same is written, however it is told."""
    made = a_plan(created(a_sync()), nested=(a_nested(created(config(a="1"))),))
    told = replace(made.nested[0], why=("spec.source.path",))
    assert replace(made, nested=(told,)).hash == made.hash


def test_walking_leaves_the_plan_itself_as_it_is():
    made = a_plan(created(a_sync()))
    before = json.dumps([each.after for each in made.changes])
    answered(made, lambda each: a_plan(sync=each.change.ref))
    assert json.dumps([each.after for each in made.changes]) == before
    assert nested.syncs_in(made) == list(made.changes)
