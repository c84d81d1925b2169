"""Which files of a source are read, and that what only a renderer understands is never taken as it is."""

from __future__ import annotations

import time

import pytest

from kubectl_reconcile.core.manifests.which_files import SourceIgnore, is_manifest_path, matters, without_unrendered

PATHS = {
    "web.yaml": True,
    "apps/web.yml": True,
    "apps/web.json": True,
    "WEB.YAML": True,
    "README.md": False,
    "web.yaml.bak": False,
    "kustomization.yaml": False,
    "Kustomization": False,
    "apps/kustomization.yml": False,
    "chart/Chart.yaml": False,
    "chart/values.yaml": False,
    "prod/reconcile.lock.yaml": False,
    "chart/values.schema.json": False,
    "my-values.yaml": True,
    ".hidden.yaml": False,
    ".github/workflows/ci.yaml": False,
    "apps/.cache/x.yaml": False,
}


@pytest.mark.parametrize(("path", "expected"), PATHS.items(), ids=PATHS)
def test_which_files_are_read(path, expected):
    assert is_manifest_path(path) is expected


IGNORED = {
    "a name anywhere": ("ci.yaml", "a/b/ci.yaml", True),
    "a name at the root only": ("/ci.yaml", "a/ci.yaml", False),
    "a folder": ("test/", "test/x/y.yaml", True),
    "a pattern": ("*.tmpl.yaml", "a/b.tmpl.yaml", True),
    "two stars": ("a/**/z.yaml", "a/b/c/z.yaml", True),
    "taken back in": ("*.json\n!keep.json", "keep.json", False),
    "a comment": ("# ci.yaml", "ci.yaml", False),
    "an empty line": ("\n\r\n", "ci.yaml", False),
    "with CRLF": ("a.yaml\r\nb.yaml\r\n", "a.yaml", True),
    "something else": ("ci.yaml", "web.yaml", False),
}


@pytest.mark.parametrize(("text", "path", "expected"), IGNORED.values(), ids=IGNORED)
def test_reconcileignore_is_gitignore(text, path, expected):
    assert SourceIgnore({"": text.encode()}).matches(path) is expected


def test_a_deeper_ignore_file_wins_and_counts_for_its_folder_only():
    ignore = SourceIgnore({"": b"*.json", "apps": b"!*.json\nx.yaml"})
    assert ignore.matches("a.json")
    assert not ignore.matches("apps/a.json")
    assert ignore.matches("apps/deep/x.yaml")
    assert not ignore.matches("x.yaml")
    assert not ignore.matches("apps-two/x.yaml")


def test_a_line_that_is_no_pattern_is_a_problem_and_the_others_count():
    ignore = SourceIgnore({"apps": b"a.yaml\n!\nb.yaml"})
    assert [str(problem) for problem in ignore.problems] == [
        "apps/.reconcileignore:2: \"!\" isn't a pattern (hint: write it in .gitignore's syntax)"
    ]
    assert ignore.matches("apps/b.yaml")


UNRENDERED = {
    "a folder of its own": (["a.yaml", "over/patch.yaml"], ["over/kustomization.yaml"], ["a.yaml"], ["over"]),
    "all that is below": (["over/deep/er/patch.yaml"], ["over/kustomization.yml"], [], ["over"]),
    "no namesake": (["over-two/a.yaml"], ["over/Kustomization"], ["over-two/a.yaml"], ["over"]),
    "the whole source": (["a.yaml", "b/c.yaml"], ["kustomization.yaml"], [], [""]),
    "one within another is told of with it": (
        ["x.yaml"],
        ["a/b/kustomization.yaml", "a/Chart.yaml"],
        ["x.yaml"],
        ["a"],
    ),
    "two of them": (["a/x.yaml", "b/x.yaml"], ["a/Chart.yaml", "b/kustomization.yaml"], [], ["a", "b"]),
    "nothing to render": (["a/x.yaml"], [], ["a/x.yaml"], []),
}


@pytest.mark.parametrize(("files", "renderers", "kept", "folders"), UNRENDERED.values(), ids=UNRENDERED)
def test_what_a_renderer_takes_in_is_not_read(files, renderers, kept, folders):
    chosen = without_unrendered(dict.fromkeys(files, "blob"), renderers)
    assert list(chosen.files) == kept
    assert list(chosen.unrendered) == folders
    assert len(chosen.problems) == len(folders)
    assert all(problem.is_error for problem in chosen.problems)


def test_the_problem_names_the_file_what_is_left_and_what_to_do():
    chosen = without_unrendered({"over/a.yaml": 1, "over/b.yaml": 2, "c.yaml": 3}, ["over/kustomization.yaml"])
    assert [str(problem) for problem in chosen.problems] == [
        (
            "over/kustomization.yaml: a kustomization, which isn't rendered here: nothing in its folder is applied or pruned, "
            "2 manifest files (hint: it is only rendered if a Sync follows exactly this folder; to apply the other files as they are, "
            "list this file in .reconcileignore)"
        )
    ]
    [chart] = without_unrendered({}, ["web/Chart.yaml"]).problems
    assert "a Helm chart" in str(chart)
    assert "only rendered if a Sync follows exactly" in str(chart)


def test_a_change_of_a_renderers_file_or_an_ignore_file_matters():
    assert all(map(matters, ["a.yaml", "a/kustomization.yaml", "Kustomization", "a/.reconcileignore", "Chart.yaml"]))
    assert not any(map(matters, ["README.md", ".git/index", "values.yaml"]))


EXPENSIVE = {
    "thirty stars": "*a" * 30 + "*b",
    "thirty folders of any depth": "/".join(["**", "a"] * 30) + "/b",
    "stars in folders of any depth": "/".join(["**", "*a*a"] * 15) + "/b",
    "question marks between stars": "*?" * 60 + "b",
    "classes between stars": "*[!x]" * 40 + "b",
}


@pytest.mark.parametrize("path", ["a" * 4000, "/".join(["a"] * 2000), "/".join(["aaaa" * 20] * 40)], ids=len)
@pytest.mark.parametrize("pattern", EXPENSIVE.values(), ids=EXPENSIVE)
def test_no_pattern_takes_long(pattern, path):
    ignore = SourceIgnore({"": pattern.encode()})
    began_s = time.process_time()
    assert not ignore.matches(path)
    assert time.process_time() - began_s < 5, "thousands of names, each in a moment; with backtracking it is years"


def test_a_folder_whose_patterns_are_too_long_or_too_many_is_left_out_and_says_so():
    ignore = SourceIgnore({"": b"x.yaml", "long": b"*" * 257, "many": b"\n".join([b"y.yaml"] * 500)})
    assert [str(problem) for problem in ignore.problems] == [
        (
            f'long/.reconcileignore:1: "{"*" * 57}..." is longer than 256 bytes; nothing of this folder is applied '
            "(hint: write it in .gitignore's syntax)"
        ),
        (
            "many/.reconcileignore:500: the source has more than 500 ignore patterns; nothing of this folder is applied "
            "(hint: leave out folders rather than files)"
        ),
    ]
    assert ignore.matches("long/web.yaml")
    assert ignore.matches("many/deep/web.yaml")
    assert not ignore.matches("web.yaml")
    assert all(problem.is_error for problem in ignore.problems)


def test_nothing_of_a_folder_that_is_left_out_is_taken_back_in():
    ignore = SourceIgnore({"": b"apps/\n!apps/web.yaml", "apps": b"!web.yaml"})
    assert ignore.matches("apps/web.yaml")


def test_a_source_that_is_too_much_to_compare_is_left_out_and_says_so():
    ignore = SourceIgnore({"": b"\n".join([b"a" * 200] * 500)})
    asked = [ignore.matches(f"{number}/{'b' * 4000}") for number in range(100)]
    assert asked[0] is False
    assert asked[-1] is True
    [problem] = ignore.problems
    assert "nothing of the source is applied" in str(problem)


def test_ten_thousand_ignore_files_and_renderers_are_looked_up_and_never_gone_through():
    folders = [f"f{number}" for number in range(10_000)]
    began_s = time.process_time()
    ignore = SourceIgnore(dict.fromkeys(folders, b""))
    assert not any(ignore.matches(f"{folder}/a.yaml") for folder in folders)
    chosen = without_unrendered({f"{each}/a.yaml": 1 for each in folders}, [f"{each}/Chart.yaml" for each in folders])
    assert (len(chosen.files), len(chosen.unrendered)) == (0, 10_000)
    assert "1 manifest file " in str(chosen.problems[0])
    assert time.process_time() - began_s < 5, "compared each with each it is a minute"
