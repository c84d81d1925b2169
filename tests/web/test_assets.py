"""The files of the page: small, whole, and nothing in them that could make markup of data."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from kubectl_reconcile.web import assets

FOLDER = Path(assets.__file__).with_name("page")
OURS = sorted(path for path in FOLDER.glob("*.js"))


def test_what_is_vendored_is_what_was_published():
    known = json.loads((FOLDER / "vendor" / "vendored.json").read_text())
    files = {path.name for path in (FOLDER / "vendor").glob("*.js")}
    assert files == set(known)
    for name, about in known.items():
        assert hashlib.sha256((FOLDER / "vendor" / name).read_bytes()).hexdigest() == about["sha256"]
        assert about["license"]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_script_makes_markup_of_text(path):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", path.read_text())


def test_the_page_has_no_script_and_no_style_within():
    text = (FOLDER / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", text)
    assert not re.search(r"(src|href)=\"(?!/)", text)


def test_scripts_import_only_what_is_there():
    for path in OURS:
        for name in re.findall(r"from '(\.[^']+)'", path.read_text()):
            assert (path.parent / name).is_file(), f"{path.name} imports {name}"


def test_each_file_is_sent_as_what_it_is():
    found = assets.assets()
    assert {"index.html", "app.js", "page.css", "icon.svg", "vendor/preact-htm.js"} <= set(found)
    assert found["vendor/preact-htm.js"].type == "text/javascript"
    assert not any(name.endswith((".txt", ".json")) for name in found)
