"""One cause is one sentence, and nothing goes uncounted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.apply import causes
from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.apply.replace import advice_of, advice_on, loss_of
from kubectl_reconcile.core.objects import FieldPath, ObjectRef, Problem
from kubectl_reconcile.core.planning.hold import Hold
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.ssa.verdict import FieldChange, Reason


def maps(*names: str) -> list[ObjectRef]:
    return [ObjectRef("", "ConfigMap", "shop", name) for name in names]


def test_objects_that_lack_the_same_thing_are_told_of_together():
    refusals = [
        Refusal(ref, f"{ref.name}.yaml:1", 'namespaces "shop" not found (404 NotFound)') for ref in maps(*"abcdef")
    ]
    assert causes.of_refusals(refusals) == [
        (
            "a.yaml:1: ConfigMap shop/a and 5 more (ConfigMap shop/b, ConfigMap shop/c, ConfigMap shop/d and 2 more): "
            'namespaces "shop" not found (404 NotFound)'
        )
    ]


def test_an_object_s_own_name_makes_no_cause_of_its_own():
    refusals = [Refusal(ref, "", f'configmaps "{ref.name}" is forbidden: no') for ref in maps("a", "b")]
    [told] = causes.of_refusals(refusals)
    assert told == 'ConfigMap shop/a and 1 more (ConfigMap shop/b): configmaps "a" is forbidden: no'


def lacking(ref, right):
    return Refusal(
        ref,
        "",
        f"it can't be read: ServiceAccount shop/bot may not {right} (hint: kubectl reconcile grant shop -n shop)",
    )


def test_an_account_that_lacks_one_right_is_told_which():
    [told] = causes.of_refusals([lacking(ref, "get configmaps in namespace shop") for ref in maps("a", "b")])
    assert told.startswith(
        "ConfigMap shop/a and 1 more (ConfigMap shop/b): it can't be read: ServiceAccount shop/bot may not get "
    )


def test_an_account_that_lacks_several_rights_is_told_once_and_so_is_the_command_that_gives_them():
    other = Refusal(*maps("z"), "z.yaml:1", "something else")
    refusals = [lacking(ref, f"get {ref.name}s in namespace shop") for ref in maps(*"abcde")]
    assert causes.of_refusals([*refusals, other]) == [
        (
            "ServiceAccount shop/bot lacks rights on 5 objects: ConfigMap shop/a, ConfigMap shop/b, ConfigMap shop/c and 2 more "
            "(hint: kubectl reconcile grant shop -n shop)"
        ),
        "z.yaml:1: ConfigMap shop/z: something else",
    ]


def test_other_causes_are_other_sentences():
    refusals = [Refusal(ref, "x.yaml:1", why) for ref, why in zip(maps("a", "b"), ["this", "that"], strict=True)]
    assert causes.of_refusals(refusals) == ["x.yaml:1: ConfigMap shop/a: this", "x.yaml:1: ConfigMap shop/b: that"]


def test_a_problem_that_many_files_have_is_told_once_with_the_first_places():
    problems = [Problem(f"{name}.yaml", 3, "no kind", "write one") for name in "abcde"]
    assert causes.of_problems(problems) == [
        "a.yaml:3, b.yaml:3, c.yaml:3 and 2 more: no kind (hint: write one)",
    ]


def test_of_a_file_with_many_problems_a_few_are_told_and_the_rest_is_counted():
    problems = [Problem("chart.yaml", line, f"key {line} is odd") for line in range(1, 77)]
    told = causes.of_problems([*problems, Problem("other.yaml", 1, "odd")])
    assert told[:2] == ["chart.yaml:1: key 1 is odd", "chart.yaml:2: key 2 is odd"]
    assert told[-2:] == ["other.yaml:1: odd", "chart.yaml: and 71 more problems"]
    assert len(told) == 7


@given(st.lists(st.builds(Problem, st.sampled_from("ab"), st.integers(0, 3), st.sampled_from("xyz"))))
def test_whatever_is_wrong_something_is_told(problems):
    assert bool(causes.of_problems(problems)) is bool(problems)
    assert len(causes.of_problems(problems)) <= len(problems)


def test_a_hold_names_what_is_held():
    assert causes.of_hold(Hold("EmptySource", "every member would be deleted", tuple(maps(*"abcd")))) == (
        "every member would be deleted: ConfigMap shop/a, ConfigMap shop/b, ConfigMap shop/c and 1 more"
    )


STORAGE = FieldPath.fields("spec", "resources", "requests", "storage")


def resized(live, wanted, path=STORAGE):
    """A claim that the server won't change in place."""
    before, intent = (
        {**kind("v1", "PersistentVolumeClaim"), "spec": {"resources": {"requests": {"storage": size}}}}
        for size in (live, wanted)
    )
    change = FieldChange(path, "replace", live, wanted, Reason.DRIFT)
    return Change(ObjectRef("", "PersistentVolumeClaim", "shop", "a"), Op.UPDATE, before=before, intent=intent, fields=(change,))  # fmt: skip


def test_a_claim_that_was_grown_by_hand_is_to_be_grown_in_the_source():
    assert advice_on(resized("2Gi", "1Gi")).startswith("a claim can't shrink, and this one has 2Gi in the cluster")
    assert "undo the change in the source" in advice_on(resized("1Gi", "1Gi", FieldPath.fields("spec", "volumeName")))


@pytest.mark.parametrize(("live", "wanted"), [("1Gi", "2Gi"), ("1Gi", "1024Mi"), ("900M", "1Gi")])
def test_a_claim_that_is_to_be_no_smaller_is_not_told_that_it_cant_shrink(live, wanted):
    assert "shrink" not in advice_on(resized(live, wanted))


def kind(api_version: str, name: str, **spec) -> dict:
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "a"}, "spec": spec}


def test_what_holds_data_is_never_advised_to_be_replaced_without_saying_what_is_lost():
    claim = advice_of(kind("v1", "PersistentVolumeClaim"))
    assert "the data of its volume is lost" in claim
    assert claim.index("undo the change") < claim.index("reconcile.dev/replace")
    assert "everything in it is deleted" in advice_of(kind("v1", "Namespace"))
    assert "its data may be lost" in advice_of(kind("v1", "PersistentVolume"))
    crd = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert "all custom resources of its kind are deleted" in advice_of(crd)
    assert "its claims stay" in advice_of(kind("apps/v1", "StatefulSet", volumeClaimTemplates=[{}]))
    deleting = {"whenDeleted": "Delete"}
    stateful = kind("apps/v1", "StatefulSet", volumeClaimTemplates=[{}], persistentVolumeClaimRetentionPolicy=deleting)
    assert "and their data are deleted, too" in advice_of(stateful)
    assert loss_of(kind("batch/v1", "Job")) == ""
    assert (
        advice_of(kind("batch/v1", "Job")) == 'annotate it with reconcile.dev/replace: "true" to delete and recreate it'
    )
