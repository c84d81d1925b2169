"""What says of itself that it is a member, and what a revision that was applied has asked for."""

import pytest

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.endings.strangers import applied_revisions, strangers

FILE = "a.yaml"


def config(name, namespace=""):
    place = f"  namespace: {namespace}\n" if namespace else ""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{place}"


def ref(name, namespace="shop"):
    return ObjectRef("", "ConfigMap", namespace, name)


def marked(path=FILE):
    return {"metadata": {"annotations": {"reconcile.dev/source": path}}}


def among(unasked, revisions):
    """Return the strangers, where *revisions* are the texts of files by path, None where one can't be read."""

    def held(sha, path):
        files = revisions[sha]
        if files is None or files.get(path, "") is None:
            return None
        return parse(files[path].encode(), path).manifests if path in files else ()

    return strangers(unasked, revisions, held, "shop")


CASES = {
    "what the newest revision asked for is none": (ref("one"), FILE, {"new": {FILE: config("one")}}, False),
    "what an older one asked for is none": (ref("one"), FILE, {"new": {}, "old": {FILE: config("one")}}, False),
    "what nobody asked for is": (ref("evil"), FILE, {"new": {FILE: config("one")}, "old": {}}, True),
    "so is what names a file that there never was": (ref("one"), "b.yaml", {"new": {FILE: config("one")}}, True),
    "and what names none": (ref("one"), "", {"new": {FILE: config("one")}}, True),
    "one of the same name elsewhere is": (ref("one", "team-a"), FILE, {"new": {FILE: config("one")}}, True),
    "of which the file names the place": (ref("one", "team-a"), FILE, {"new": {FILE: config("one", "team-a")}}, False),
    "of what is in no namespace any may be named": (ref("one", ""), FILE, {"new": {FILE: config("one", "odd")}}, False),
    "where a revision can't be read, nobody is": (ref("evil"), FILE, {"new": {}, "old": None}, False),
    "nor where the file can't": (ref("evil"), FILE, {"new": {FILE: None}}, False),
    "nor whose name may be one with variables in it": (
        ref("web-a-1"),
        FILE,
        {"new": {FILE: config("web-${X}-${Y}")}},
        False,
    ),
    "but whose name is none of these is": (ref("evil"), FILE, {"new": {FILE: config("web-${X}")}}, True),
    "and whose end isn't, too": (ref("web-b"), FILE, {"new": {FILE: config("web-${X}-b")}}, True),
    "one of another kind is": (
        ObjectRef("", "Secret", "shop", "web-1"),
        FILE,
        {"new": {FILE: config("web-${X}")}},
        True,
    ),
    "one in a place that may be its own isn't": (
        ref("a", "team-1"),
        FILE,
        {"new": {FILE: config("a", "team-${T}")}},
        False,
    ),
    "beside a label with a variable anybody else is": (
        ref("evil"),
        FILE,
        {"new": {FILE: config("a") + "  labels: {env: '${ENV}'}\n"}},
        True,
    ),
    "nor where nothing was ever applied": (ref("evil"), FILE, {}, False),
}


@pytest.mark.parametrize(("candidate", "path", "revisions", "is_stranger"), CASES.values(), ids=CASES)
def test_who_was_never_asked_for(candidate, path, revisions, is_stranger):
    assert among({candidate: marked(path)}, revisions) == ({candidate} if is_stranger else set())


def test_the_revisions_are_those_that_the_status_names_for_the_spec_of_now():
    rows = [{"revision": "c"}, {"revision": "b"}, {"revision": "a"}]
    status = {"lastAppliedRevision": "b", "lastAttemptedRevision": "c", "lastAttemptedGeneration": 3, "history": rows}
    assert applied_revisions({"metadata": {"generation": 3}, "status": status}) == ("b", "c", "a")
    assert applied_revisions({"metadata": {"generation": 4}, "status": status}) == ()
    assert applied_revisions({"metadata": {"generation": 1}}) == ()
    assert applied_revisions(None) == ()
