"""What the documentation says of the code is true: files that it names are there, and so are the names in them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = (ROOT, ROOT / "kubectl_reconcile", ROOT / "kubectl_reconcile_operators")
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
NOT_THERE_YET = ("build/", "~")  # made by running something, or of somebody's home
_PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
_ROOM = re.compile(r"^\| [^|]*\?? \| `([\w/]+\.py)` \| ([^|]*) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


def paths_in(page):
    """The paths that a page names, within the repository or one of its packages."""
    found = _PATH.findall((ROOT / page).read_text())
    return sorted({path for path in found if not path.startswith(NOT_THERE_YET) and not path.startswith("/")})


@pytest.mark.parametrize(("page", "path"), [(page, path) for page in PAGES for path in paths_in(page)])
def test_a_file_that_a_page_names_is_there(page, path):
    found = [place for place in PLACES if (place / path).exists() or (place / f"{path}.py").exists()]
    assert found, f"{page} names {path}"


def test_each_question_of_a_newcomer_has_a_file():
    text = (ROOT / "docs/architecture.md").read_text()
    section = text.partition("## Where to look\n")[2].partition("\n## ")[0]
    questions = [line for line in section.splitlines() if re.match(r"\| [^|]+\? \|", line)]
    assert len(questions) == 10
    assert all(_ROOM.match(line) for line in questions)


@pytest.mark.parametrize(("file", "said"), _ROOM.findall((ROOT / "docs/architecture.md").read_text()))
def test_what_a_file_is_said_to_have_is_in_it(file, said):
    text = (ROOT / "kubectl_reconcile" / file).read_text()
    missing = [name for name in _NAME.findall(said) if not re.search(rf"\b{name}\b", text)]
    assert missing == []
