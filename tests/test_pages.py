"""What would be broken on the documentation's site is found, with file and line."""

import pytest

from tests.pages import anchors, complaints, run_together

WHOLE = {
    "mkdocs.yml": "site_name: x\nnav:\n  - Home: index.md\n  - Guides:\n      - One: one.md\n",
    "docs/index.md": "# Home\n\nSee [one](one.md#a-b--c) and [below](#home), not `[this](nowhere.md)`.\n",
    "docs/one.md": "# One\n\n## A `b` & c\n\n```sh\n[no](link.md)\n# no heading\n```\n\n- a list\n  - below it\n",
    "README.md": "[docs](docs/one.md) and [elsewhere](https://example.com/x)\n",
}
BROKEN = {
    "a page without a place": ({"docs/two.md": "# Two\n"}, "docs/two.md: the navigation of mkdocs.yml doesn't name it"),
    "a place without a page": ({"mkdocs.yml": f"{WHOLE['mkdocs.yml']}  - Two: two.md\n"}, "mkdocs.yml: there is no docs/two.md"),
    "a file that isn't there": ({"docs/one.md": "## A b & c\n\n[x\ny](no.md)"}, "docs/one.md:3: no.md: there is no such file"),
    "a heading that isn't there": ({"README.md": "[x](docs/one.md#no-heading)"}, "README.md:1: docs/one.md#no-heading: there is no such heading"),
    "a file outside of the site": ({"docs/one.md": "## A b & c\n[x](../README.md)"}, "docs/one.md:2: ../README.md: the site doesn't have this file; name it as `file` instead"),
    "a list that a paragraph swallows": ({"docs/one.md": "## A b & c\n\nText:\n- a\n- b\n"}, "docs/one.md:4: a list needs an empty line before it"),
}  # fmt: skip


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return list(complaints(folder, ("README.md",)))


def test_pages_that_are_whole_are_not_complained_about(tmp_path):
    assert written(tmp_path, WHOLE) == []


@pytest.mark.parametrize(("change", "complaint"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_named_where_it_stands(tmp_path, change, complaint):
    assert written(tmp_path, {**WHOLE, **change}) == [complaint]


def test_a_heading_that_is_there_twice_has_a_number():
    assert anchors("# Same\n\n# Same\n") == {"same", "same_1"}


def test_a_list_may_follow_a_heading_or_another_item():
    assert list(run_together("# Title\n- one\n- two\n  goes on\n- three\n")) == []
