"""What a chart depends on: which versions are fetched, what it has already, and what can't be meant."""

import pytest

from kubectl_reconcile.core.objects import Severity
from kubectl_reconcile.core.rendering.pinned.dependencies import (
    Local,
    Needs,
    Vendored,
    needs_of,
)
from kubectl_reconcile.core.rendering.pinned.lock import Lock
from kubectl_reconcile.core.rendering.pinned.needed import Needed, missing, unused
from kubectl_reconcile.core.resources.chart import ChartSpec

CHARTS = "https://charts.example.com"
REGISTRY = "oci://registry.example.com/charts"
DIGEST = f"sha256:{'0a' * 32}"


def chart(*entries, name="Chart.yaml"):
    """Return the files of a chart in charts/web that lists these dependencies."""
    text = "\n".join(["apiVersion: v2", "name: web", "dependencies:", *(f"- {{{each}}}" for each in entries), ""])
    return {f"charts/web/{name}": text.encode()}


def entry(name="database", version="^1.2.0", repository=CHARTS):
    return f"name: {name}, version: '{version}', repository: '{repository}'"


def needs(files, *vendored):
    return needs_of("charts/web", files, Vendored(frozenset(vendored)))


def test_the_version_is_the_one_that_the_lock_says():
    files = {
        **chart(entry(), entry("queue", "2.x", REGISTRY)),
        **chart(entry(version="1.2.9"), entry("queue", "2.0.0", REGISTRY), name="Chart.lock"),
    }
    assert needs(files) == Needs(
        (
            Needed(ChartSpec(CHARTS, "database", "1.2.9"), "charts/web/Chart.yaml", 4),
            Needed(ChartSpec(REGISTRY, "queue", "2.0.0"), "charts/web/Chart.yaml", 5),
        )
    )  # fmt: skip


def test_an_old_chart_has_its_dependencies_in_a_file_of_their_own():
    files = {
        "charts/web/Chart.yaml": b"apiVersion: v1\nname: web\n",
        **chart(entry(), name="requirements.yaml"),
        **chart(entry(version="1.3.0"), name="requirements.lock"),
    }
    [needed] = needs(files).fetched
    assert (needed.wanted.version, needed.file) == ("1.3.0", "charts/web/requirements.yaml")


def test_what_charts_has_already_is_not_fetched():
    files = chart(entry(version="1.2.3"), entry("queue", "2.0.0"))
    assert [each.wanted.name for each in needs(files, "database").fetched] == ["queue"]


def test_a_dependency_without_a_repository_must_be_there_which_helm_says():
    assert needs(chart("name: database, version: 1.2.3")) == Needs()


def test_one_chart_by_two_aliases_is_fetched_once():
    files = chart(entry(version="1.2.3"), entry(version="1.2.3") + ", alias: other")
    assert [each.line for each in needs(files).fetched] == [4]


def test_two_versions_of_one_chart_are_told_apart_by_their_order_in_the_lock():
    files = {**chart(entry(version="1.x"), entry(version="2.x")), **chart(entry(version="1.9.0"), entry(version="2.1.0"), name="Chart.lock")}  # fmt: skip
    assert [each.wanted.version for each in needs(files).fetched] == ["1.9.0", "2.1.0"]


def test_a_chart_of_the_same_repository_is_taken_from_its_folder():
    assert needs(chart(entry("common", "*", "file://../common"))).local == (
        Local("common", "charts/common", "charts/web/Chart.yaml", 4),
    )


WRONG = {
    "a range without a lock": (
        chart(entry()), "charts/web/Chart.yaml", 4, "dependencies: database ^1.2.0 from https://charts.example.com isn't in charts/, and nothing says which version that is", "helm dependency update writes Chart.lock",
    ),
    "a version outside of the range": (
        {**chart(entry()), **chart(entry(version="2.0.0"), name="Chart.lock")},
        "charts/web/Chart.lock", 0, "it says database 2.0.0, and ^1.2.0 is wanted", "helm dependency update",
    ),
    "a lock from before the dependency": (
        {**chart(entry()), **chart(entry("queue"), name="Chart.lock")},
        "charts/web/Chart.lock", 0, "it says no version of database, so it is older than the list", "helm dependency update",
    ),
    "an alias of a repository": (
        chart(entry(version="1.2.3", repository="@stable")), "charts/web/Chart.yaml", 4, "@stable is an alias", "write the URL",
    ),
    "a password in the URL": (
        chart(entry(version="1.2.3", repository="https://a:b@charts.example.com")), "charts/web/Chart.yaml", 4, "isn't the URL of a Helm repository", "",
    ),
    "a folder outside of the repository": (
        chart(entry(repository="file://../../../etc")), "charts/web/Chart.yaml", 4, "file://../../../etc isn't a folder of this repository", "",
    ),
    "a folder of the machine": (
        chart(entry(repository="file:///etc")), "charts/web/Chart.yaml", 4, "file:///etc isn't a folder of this repository", "",
    ),
    "a registry without a name": (
        chart(entry(version="1.2.3", repository="oci://registry.example.com")), "charts/web/Chart.yaml", 4, "has no proper name", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "path", "line", "said", "hint"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_a_problem_with_its_line(files, path, line, said, hint):
    found = needs(files)
    assert (found.fetched, found.local) == ((), ())
    [problem] = found.problems
    assert (problem.path, problem.line) == (path, line)
    assert said in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize("text", ["", "dependencies: web\n", "dependencies: [1, null, {}]\n", "[", "- a\n"])
def test_what_lists_nothing_needs_nothing(text):
    assert needs({"charts/web/Chart.yaml": text.encode()}) == Needs()


VENDORED = {
    "a folder": (["database"], [], True),
    "an archive": ([], ["database-1.2.3.tgz"], True),
    "an archive of another chart whose name begins so": ([], ["database-backup-1.2.3.tgz"], False),
    "an archive of a version with a v": ([], ["database-v1.2.3.tgz"], True),
    "nothing": ([], [], False),
}


@pytest.mark.parametrize(("folders", "files", "expected"), VENDORED.values(), ids=VENDORED)
def test_a_chart_is_vendored_as_a_folder_or_an_archive(folders, files, expected):
    assert Vendored(frozenset(folders), tuple(files)).has("database") is expected


# -- pins --------------------------------------------------------------------------------------------------------------

NEEDED = (Needed(ChartSpec(CHARTS, "database", "1.2.3"), "charts/web/Chart.yaml", 4),)


def test_a_chart_that_is_not_pinned_is_a_problem_that_has_the_command():
    [problem] = missing(NEEDED, Lock(), "charts/web")
    assert str(problem) == (
        "charts/web/Chart.yaml:4: chart database 1.2.3 of https://charts.example.com isn't fetched: "
        "charts/web/reconcile.lock.yaml doesn't have it (hint: kubectl reconcile lock charts/web)"
    )


def test_a_pin_of_another_version_is_none():
    lock = Lock((ChartSpec(CHARTS, "database", "1.2.2", DIGEST),))
    [problem] = missing(NEEDED, lock, "")
    assert "isn't fetched: reconcile.lock.yaml has 1.2.2" in problem.message
    assert problem.hint == "kubectl reconcile lock ."


def test_a_pin_of_the_same_version_elsewhere_is_none():
    lock = Lock((ChartSpec("https://other.example.com", "database", "1.2.3", DIGEST),))
    assert [*missing(NEEDED, lock, "charts/web")]


def test_what_is_pinned_is_neither_missing_nor_unused():
    lock = Lock((ChartSpec(CHARTS, "database", "1.2.3", DIGEST),))
    assert [*missing(NEEDED, lock, "charts/web"), *unused(NEEDED, lock, "charts/web")] == []


def test_a_pin_that_nothing_needs_is_a_warning_at_its_line():
    pin = ChartSpec(CHARTS, "queue", "1.2.3", DIGEST)
    [problem] = unused(NEEDED, Lock((pin,), {pin: 8}), "charts/web")
    assert (problem.path, problem.line, problem.severity) == ("charts/web/reconcile.lock.yaml", 8, Severity.WARNING)
    assert problem.hint == "kubectl reconcile lock charts/web removes it"
