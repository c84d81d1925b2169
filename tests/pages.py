"""Reads the pages of the documentation and finds what would be broken on the site: ``python -m tests.pages``.

A page that the navigation of mkdocs.yml leaves out, a relative link to a file or heading that isn't there, a link from docs/ to a file outside, which the
site doesn't have, and a list right below a line of text, which the site would show as one paragraph.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTSIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")
"""Pages that have links, too, but aren't on the site."""
_FENCE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`+[^`\n]*`+")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_ITEM = re.compile(r" *([-*+]|\d+\.) ")


def _blanked(text: str, pattern: re.Pattern[str]) -> str:
    """Return *text* with what *pattern* finds gone, and its lines still there."""
    return pattern.sub(lambda found: "\n" * found[0].count("\n"), text)


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page; a heading that is there twice has a number behind it."""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(_blanked(text, _FENCE)):
        found[slug(heading)] = found.get(slug(heading), 0) + 1
    return found.keys() | {f"{name}_{again}" for name, times in found.items() for again in range(1, times)}


def links(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and target of each link to another page or heading of this repository."""
    prose = _blanked(_blanked(text, _FENCE), _CODE)
    for link in _LINK.finditer(prose):
        if not re.match(r"[a-z]+:", link[1]):
            yield prose.count("\n", 0, link.start()) + 1, link[1]


def run_together(text: str) -> Iterator[int]:
    """Yield the lines where a list begins without an empty line before it."""
    before = ""
    for number, line in enumerate(_blanked(text, _FENCE).splitlines(), 1):
        if _ITEM.match(line) and re.match(r"[^\s#|<]", before) and not _ITEM.match(before):
            yield number
        before = before if line.startswith(" ") and _ITEM.match(before) else line


def navigation(config: str) -> list[str]:
    """Return the pages that the navigation of mkdocs.yml names."""
    return re.findall(r"[\w./-]+\.md\b", config.partition("\nnav:")[2])


def wrong(page: Path, target: str, *, site: Path) -> str:
    """Return what is wrong with a link of *page*, nothing if it leads somewhere."""
    name, _, anchor = target.partition("#")
    there = (page.parent / name).resolve() if name else page
    if not there.exists():
        return "there is no such file"
    if page.is_relative_to(site) and not there.is_relative_to(site):
        return "the site doesn't have this file; name it as `file` instead"
    if anchor and anchor not in anchors(there.read_text(encoding="utf-8")):
        return "there is no such heading"
    return ""


def complaints(root: Path, outside: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a line for each thing that is wrong in the pages of *root*."""
    site = root / "docs"
    listed = navigation((root / "mkdocs.yml").read_text(encoding="utf-8"))
    there = {str(page.relative_to(site)): page for page in sorted(site.rglob("*.md"))}
    yield from (f"docs/{name}: the navigation of mkdocs.yml doesn't name it" for name in there if name not in listed)
    yield from (f"mkdocs.yml: there is no docs/{name}" for name in listed if name not in there)
    for page in (*there.values(), *(root / name for name in outside)):
        text, name = page.read_text(encoding="utf-8"), page.relative_to(root)
        for number, target in links(text):
            if problem := wrong(page, target, site=site):
                yield f"{name}:{number}: {target}: {problem}"
        yield from (f"{name}:{number}: a list needs an empty line before it" for number in run_together(text))


def main() -> None:
    """Print all of them, and end with status 1 if there are any."""
    sys.exit("\n".join(complaints(ROOT, OUTSIDE)) or 0)


if __name__ == "__main__":
    main()
