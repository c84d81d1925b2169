"""What a plan says, word for word: problems with what to do, and why something is left alone."""

import pytest

from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.resources.applyset import applyset_id
from kubectl_reconcile.core.resources.sync import Sync
from tests.core.planning.shop import SHOP, cache, config, hook, inputs_of, live, plan, written

OTHER = Sync(name="other", namespace="shop")
AWAY = Sync(name="web", namespace="bar")


def budget(api_version):
    return {"apiVersion": api_version, "kind": "PodDisruptionBudget", "metadata": {"name": "a"}}


def served(*versions):
    return {"served": frozenset(GroupVersionKind(*each, "PodDisruptionBudget") for each in versions)}


UNKNOWN_KIND = "caches.yaml:1: the cluster knows no kind PodDisruptionBudget"
SAID = {
    "an object in two files": (
        [written(cache("a"), "a.yaml"), written(cache("a"), "b.yaml", 4)], {},
        "b.yaml:4: Memcached.cache.example.com shop/a is also in a.yaml:1 (hint: keep one of the two)",
    ),
    "a kind that is served in other versions": (
        [budget("policy/v1beta1")], served(("policy", "v1"), ("policy", "v2")),
        f"{UNKNOWN_KIND} policy/v1beta1 (hint: the cluster serves it as policy/v1 and policy/v2: change apiVersion, and the fields that differ there)",
    ),
    "a kind that is served in another group": (
        [budget("extensions/v1beta1")], served(("policy", "v1")),
        f"{UNKNOWN_KIND} extensions/v1beta1 (hint: the cluster serves PodDisruptionBudget as policy/v1: change apiVersion to that, or apply the CRD of this one first)",
    ),
    "a kind that isn't served": (
        [budget("policy/v1")], {}, f"{UNKNOWN_KIND} policy/v1 (hint: apply its CRD first, or correct apiVersion)",
    ),
    "objects that depend on each other": (
        [config("a", depends_on="ConfigMap/b"), config("b", depends_on="ConfigMap/a")], {},
        "caches.yaml:1: these depend on each other: ConfigMap shop/a -> ConfigMap shop/b -> ConfigMap shop/a (hint: remove one reconcile.dev/depends-on)",
    ),
    "an object that depends on nothing": (
        [config("a", depends_on="ConfigMap/b")], {},
        "caches.yaml:1: ConfigMap shop/a depends on ConfigMap b, which isn't in this source (hint: add it, or correct the annotation reconcile.dev/depends-on)",
    ),
    "a hook of another kind": (
        [config("x", hook="pre-sync")], {},
        "caches.yaml:1: ConfigMap shop/x: only a Job can be a hook (hint: remove reconcile.dev/hook, or make it a Job)",
    ),
    "a hook that vanishes": (
        [{**hook("pre-sync"), "spec": {"ttlSecondsAfterFinished": 5}}], {}, "caches.yaml:1: Job.batch shop/migrate: a hook can't have ttlSecondsAfterFinished (hint: remove it: the Job is the record that the hook ran)",
    ),
    "a wave that is no number": ([config("a", wave="soon")], {}, 'caches.yaml:1: ConfigMap shop/a: reconcile.dev/wave must be an integer, not \'soon\' (hint: write it in digits, as in "2"; until then 0 is used)'),
    "a source without objects": ([], {}, ".: there are no manifest files at this path (hint: is the path right? manifests are files named *.yaml, *.yml or *.json)"),
}  # fmt: skip


@pytest.mark.parametrize(("desired", "more", "sentence"), SAID.values(), ids=SAID)
def test_a_problem_says_where_and_what_to_do(desired, more, sentence):
    (problem,) = plan(desired, **more).problems
    assert str(problem) == sentence


def blocked(desired, *cluster, **more):
    return next(change.gate.blocked for change in plan([desired], cluster, **more).changes if change.ref.name == "a")


OTHER_ID, AWAY_ID = applyset_id(OTHER.ref), applyset_id(AWAY.ref)
ELSEWHERE = {
    "in a set of which nothing is known": (
        {}, OTHER_ID,
        f"it belongs to another set, {OTHER_ID}, whose Sync isn't seen; if that was renamed or is gone, annotate this object with reconcile.dev/moved-from, or this Sync with reconcile.dev/members-from: {OTHER_ID}",
    ),
    "in the set of a Sync beside this one": (
        {"sets": {OTHER_ID: OTHER.ref}}, OTHER_ID,
        "it belongs to Sync shop/other; to move it here, annotate it with reconcile.dev/moved-from: shop/other, or remove it there first",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("more", "set_id", "sentence"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_belongs_elsewhere_is_left_alone_and_says_how_to_move_it(more, set_id, sentence):
    assert blocked(config("a", color="x"), live(config("a"), set_id=set_id), **more) == sentence


def test_what_a_sync_of_another_namespace_has_must_be_given_away_there():
    asked = config("a", moved_from="bar/web")
    assert blocked(asked, live(config("a"), set_id=AWAY_ID), sets={AWAY_ID: AWAY.ref}) == (
        "it belongs to Sync bar/web, which hasn't released it; annotate it there with reconcile.dev/moved-to: shop/shop, or remove it there first"
    )


def test_what_depends_on_what_cant_be_used_is_left_alone():
    made = plan([config("a", depends_on="ConfigMap/b"), config("b", depends_on="nonsense")])
    (change,) = made.changes
    assert change.gate.blocked == "it depends on ConfigMap shop/b, which can't be used as it is"


def test_what_cant_be_read_is_left_alone():
    unreadable = {ObjectRef("", "ConfigMap", "shop", "a"): "configmaps is forbidden"}
    assert blocked(config("a"), unreadable=unreadable) == "it can't be read: configmaps is forbidden"


def test_a_build_begins_with_what_is_known_already():
    begun = PlanBuilder.of(inputs_of([config("a")], sync=SHOP))
    assert [each.ref.name for each in begun.standing.others] == ["a"]
    assert begun.set_id == applyset_id(SHOP.ref)
