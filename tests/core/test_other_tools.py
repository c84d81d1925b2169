"""What objects say to Helm and Argo CD: what it becomes here, and what is said where it means nothing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import HookPoint, MemberOptions
from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.other_tools.table import TABLE
from kubectl_reconcile.core.other_tools.translation import (
    NOTHING,
    PREFIXES,
    Aspect,
    Occasion,
    gathered,
    sentence_of,
    translation,
)

HELM, ARGO = "helm.sh/", "argocd.argoproj.io/"


def helm(hook, **more):
    return {f"{HELM}hook": hook, **{f"{HELM}{name.replace('_', '-')}": text for name, text in more.items()}}


def argo(**noted):
    return {f"{ARGO}{name.replace('_', '-')}": text for name, text in noted.items()}


def job(noted, kind="Job"):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "annotations": noted}}


EVERY, INSTALL, UPGRADE = Occasion
POINTS = {
    "before each": (helm("pre-install,pre-upgrade"), "pre-sync", EVERY),
    "after each, with space and capitals": (helm(" Post-Install , post-upgrade"), "post-sync", EVERY),
    "before an install": (helm("pre-install"), "pre-sync", INSTALL),
    "after an install": (helm("post-install"), "post-sync", INSTALL),
    "before upgrades": (helm("pre-upgrade"), "pre-sync", UPGRADE),
    "after upgrades and rollbacks, which are upgrades": (helm("post-upgrade,post-rollback"), "post-sync", UPGRADE),
    "Argo CD's before": (argo(hook="PreSync"), "pre-sync", EVERY),
    "Argo CD's with everything": (argo(hook="Sync"), "sync", EVERY),
    "Argo CD's after": (argo(hook="PostSync"), "post-sync", EVERY),
    "Argo CD's for a failure": (argo(hook="SyncFail"), "sync-fail", EVERY),
    "Argo CD's rather than Helm's": ({**argo(hook="PostSync"), **helm("pre-install")}, "post-sync", EVERY),
    "Helm's where Argo CD's is empty": ({**argo(hook=""), **helm("pre-install,pre-upgrade")}, "pre-sync", EVERY),
}


@pytest.mark.parametrize(("noted", "point", "occasion"), POINTS.values(), ids=POINTS)
def test_a_hook_runs(noted, point, occasion):
    found = translation(noted, "Job")
    assert (found.point, found.runs, found.occasion, found.left_out) == (point, True, occasion, "")
    assert found.ignored == ()
    assert MemberOptions.of(job(noted)).hook is HookPoint(point)


LEFT_OUT = {
    "a test": (
        helm("test"),
        "helm.sh/hook test: the object is left out, neither applied nor pruned: tests of a chart aren't run",
    ),
    "a test of Helm 2": (helm("test-success"), "helm.sh/hook test: "),
    "what Helm doesn't know": (helm("pre-instal"), "helm.sh/hook 'pre-instal': "),
    "what Helm doesn't know, beside what it knows": (helm("pre-install,later"), "helm.sh/hook 'later': "),
    "crd-install on what is no CRD": (helm("crd-install"), "helm.sh/hook 'crd-install': "),
    "no hook at all": (helm(""), 'helm.sh/hook "": '),
    "a deletion": (helm("pre-delete,post-delete"), "pre-delete,post-delete: the object is left out, "),
    "a rollback alone": (helm("post-rollback"), "a rollback is a sync of an earlier state"),
    "Argo CD's deletion": (argo(hook="PostDelete"), "argocd.argoproj.io/hook PostDelete: "),
    "what Argo CD doesn't know": (argo(hook="PreSink"), "argocd.argoproj.io/hook 'presink': "),
}


@pytest.mark.parametrize(("noted", "said"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_left_out_with_a_warning_is(noted, said):
    found = translation(noted, "Job")
    assert found.left_out
    assert (found.point, found.runs) == ("", False)
    [ignored] = found.ignored
    assert said in sentence_of(ignored)
    assert MemberOptions.of(job(noted)).hook is None


def test_what_argo_cd_skips_is_left_out_without_a_word():
    found = translation(argo(hook="Skip"), "ConfigMap")
    assert (found.left_out, found.ignored) == ("argocd.argoproj.io/hook: Skip", ())


def test_a_pod_runs_nowhere_and_no_other_object_runs_but_all_have_their_point():
    assert translation(helm("pre-install"), "Pod").left_out == "helm.sh/hook on a Pod"
    assert "make it a Job" in translation(argo(hook="Sync"), "Workflow").ignored[0].hint
    account = translation(helm("post-install,pre-upgrade", hook_weight="-5"), "ServiceAccount")
    assert (account.point, account.runs, account.wave, account.ignored) == ("pre-sync", False, -5, ())
    assert MemberOptions.of(job(helm("pre-install"), "ServiceAccount")).hook is None
    assert translation(argo(hook="SyncFail"), "ConfigMap").left_out


def test_a_crd_that_helm_2_would_install_is_a_crd():
    found = translation(helm("crd-install"), "CustomResourceDefinition")
    assert (found.left_out, found.point) == ("", "")
    assert "CRDs come first in any case" in found.ignored[0].message


IGNORED = {
    "a second point": (helm("pre-install,post-install"), "the Job runs at pre-sync, and not at post-sync"),
    "a deletion beside a sync": (helm("post-install,post-delete"), "post-delete is ignored: nothing runs when a Sync is deleted"),
    "a rollback without an upgrade": (helm("pre-install,pre-rollback"), "pre-rollback is ignored"),
    "the end of a hook": (helm("pre-install", hook_delete_policy="before-hook-creation,hook-succeeded"), "hook-succeeded is ignored"),
    "the end of Argo CD's": (argo(hook="PreSync", hook_delete_policy="HookFailed"), "HookFailed is ignored"),
    "an end that is none": (helm("pre-install", hook_delete_policy="never"), "'never' is ignored: there is no such policy"),
    "logs": (helm("pre-install", hook_output_log_policy="hook-failed"), "the logs stay in the pods"),
    "a weight in words": (helm("pre-install", hook_weight="first"), "'first' isn't an integer; 0 is used"),
    "another policy": ({f"{HELM}resource-policy": "delete"}, "'delete' is ignored: Helm only knows keep"),
    "no validation": (argo(sync_options="Validate=false"), "the server validates what it is sent"),
    "replacing": (argo(sync_options="Replace=true"), "none is too large for it"),
    "an option of applications": (argo(sync_options="CreateNamespace=true"), "'CreateNamespace=true' is ignored"),
    "another comparison": (argo(compare_options="ServerSideDiff=false"), "dry run always decides"),
    "health": (argo(ignore_healthcheck="true"), "the object counts for the Sync's health"),
}  # fmt: skip


@pytest.mark.parametrize(("noted", "said"), IGNORED.values(), ids=IGNORED)
def test_ignored_with_a_warning_that_names_it_is(noted, said):
    [ignored] = translation(noted, "Job").ignored
    assert said in ignored.message
    assert ignored.name in noted


OPTIONS = {
    "Prune=false": MemberOptions(kept=True),
    "prune=false , ServerSideApply=true": MemberOptions(kept=True),
    "Delete=false": MemberOptions(kept=True),
    "Force=true,Replace=true": MemberOptions(replace=True),
    "SkipDryRunOnMissingResource=true,PruneLast=true": MemberOptions(),
}


@pytest.mark.parametrize(("text", "expected"), OPTIONS.items(), ids=OPTIONS)
def test_options_of_argo_cd(text, expected):
    found = MemberOptions.of(job(argo(sync_options=text)))
    assert found.theirs.ignored == ()
    assert replace(found, theirs=NOTHING) == expected


def test_waves_and_what_is_kept():
    assert MemberOptions.of(job(argo(sync_wave=" -3 "))).wave == -3
    assert MemberOptions.of(job(helm("pre-install", hook_weight="7"))).wave == 7
    assert MemberOptions.of(job({f"{HELM}hook-weight": "7"})).wave == 0
    assert MemberOptions.of(job({f"{HELM}resource-policy": " Keep"})).kept
    assert MemberOptions.of(job(argo(sync_options="Prune=confirm"))).theirs.asks


OURS = {
    "a hook": ({"reconcile.dev/hook": "post-sync", **helm("test")}, MemberOptions(hook=HookPoint.POST_SYNC)),
    "no hook": ({"reconcile.dev/hook": "", **helm("pre-instal")}, MemberOptions()),
    "a wave": ({"reconcile.dev/wave": "2", **argo(sync_wave="x")}, MemberOptions(wave=2)),
    "prune": ({"reconcile.dev/prune": "true", **argo(sync_options="Prune=false")}, MemberOptions()),
    "replace": ({"reconcile.dev/replace": "false", **argo(sync_options="Force=true,Replace=true")}, MemberOptions(replace=False)),
}  # fmt: skip


@pytest.mark.parametrize(("noted", "expected"), OURS.values(), ids=OURS)
def test_our_own_word_counts_for_more(noted, expected):
    assert MemberOptions.of(job(noted)) == expected


NAMES = sorted({row.name for row in TABLE} | {"helm.sh/other", "argocd.argoproj.io/other"})
WORDS = sorted({word for row in TABLE for word in re.split(r"[ ,]+", row.value)} | {"", ",", "x" * 500})


@given(
    st.dictionaries(
        st.sampled_from(NAMES), st.lists(st.sampled_from(WORDS), max_size=4).map(",".join) | st.text(max_size=30)
    ),
    st.sampled_from(["Job", "Pod", "ConfigMap", "CustomResourceDefinition"]),
    st.sets(st.sampled_from(list(Aspect))),
)
def test_whatever_stands_there_is_read_and_what_is_left_out_says_why(noted, kind, decided):
    found = translation(noted, kind, decided)
    assert not (found.left_out and found.point)
    assert not found.left_out or found.ignored or found.left_out.endswith("Skip")
    assert not (found.runs and kind != "Job")
    assert all(each.name in noted and len(sentence_of(each)) < 400 for each in found.ignored)
    assert decided != set(Aspect) or replace(found, ignored=()) == NOTHING


def test_what_is_said_of_several_objects_is_said_once_at_the_first():
    def warning(path, noted):
        [ignored] = translation(noted, "Job").ignored
        return Problem(path, 7, sentence_of(ignored), ignored.hint, Severity.WARNING)

    other = Problem("d.yaml", 1, "annotation helm.sh/hook test: not this one")
    tests = [warning(f"{name}.yaml", helm("test")) for name in "abc"]
    found = gathered([tests[0], other, warning("e.yaml", helm("nope")), *tests[1:], other])
    assert [each.path for each in found] == ["a.yaml", "d.yaml", "e.yaml", "d.yaml"]
    assert found[0].message == f"{tests[0].message} (and 2 more)"
    assert gathered([]) == ()


def test_the_table_has_every_annotation_that_is_read_and_nothing_else_is():
    assert all(row.name.startswith(PREFIXES) and row.becomes for row in TABLE)
    assert len({(row.name, row.value) for row in TABLE}) == len(TABLE)
