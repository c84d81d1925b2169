"""Finds words in code and docs that a reader of today would stumble over, and says what to write instead: ``python -m tests.words``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTEAD = {
    r"(made|makes?|making) (\w+ )?anew": "recreated, recreate",
    r"anew": "again",
    r"for ever": "forever",
    r"heed(s|ed|ing)?": "follow, respect, consider",
    r"reckon(s|ed|ing)?": "compute, estimate, count",
    r"milliards?": "billion",
    r"dawdlers?": "slow senders",
    r"befall(s|en|ing)?|befell": "happen to",
    r"whence|thence|hither|thither|lest|nought|betwixt|hitherto|whilst|amongst": "a word of today",
    r"words? of a push": "push notification",
    r"ask(s|ed)? for news": "check for new commits",
    r"broken off": "stopped, cancelled, interrupted",
    r"of another mind": "who wants something else",
    r"be (it|they) (that|there|with|a|an|the)": "whether, even if",
    r"whatever becomes of": "whatever happens to",
    r"all the same": "anyway, still",
    r"in silence|without a word": "silently, without a message",
    r"can't be (told|had)(?! (apart|from))": "isn't known, can't be read",
    r"whose it is|who it is": "its owner, its author, its name",
    r"kept by hand": "applied by hand",
    r"(says|said|say) nothing of": "doesn't mention, hasn't reported on",
    r"nobody is here": "there is no terminal",
    r"such ones": "these",
    r"be rid of": "remove",
    r"none lives?|no daemon lives?": "none is running",
    r"asks? for it no more|(is|are) ours no more": "no longer asks for it",
    r"becom(e|es|ing) of|became of": "happens to, happened to",
    r"came of (it|that|this)|comes of (it|that|this)": "the result",
    r"(can|could|may|might) be had|(can't|couldn't|could not) be had": "is available, can be read",
    r"(is|are|it's) none of": "isn't one of, doesn't belong to",
    r"as of an? (pod|container|claim|backup|repository)": "as in a",
    r"(is|are|was|were|be) put back|puts? (it|them|drift) back": "is reverted, corrected, restored",
    r"lets? go of|letting go of": "releases, stops",
    r"mend(s|ed|ing)?": "fix, repair",
    r"look(s|ed|ing)? after": "manage, watch",
    r"dealt with": "handled, processed",
    r"goes? by (it|that|them|these|this)": "uses, follows",
    r"in the moment (in which|that)": "when, while",
    r"nobody but a person": "only a person",
}
"""A pattern, and what to write instead."""
_READ = {".md", ".py", ".yaml", ".go"}
_WORKSHOP = ("tests/", "benchmarks/")
"""What only those read who build it."""


def found(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the line, what is there and what to write instead, for each place of *text*."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in INSTEAD.items():
            for match in re.finditer(rf"\b({pattern})\b", line, re.IGNORECASE):
                yield number, match[0], instead


def texts() -> Iterator[tuple[str, str]]:
    """Yield each file of this repository that people read, and its text."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in _READ and not name.startswith(_WORKSHOP) and path.is_file():
            yield name, path.read_text(encoding="utf-8")


def main() -> None:
    """Print all of them, and end with status 1 if there are any."""
    lines = [
        f"{name}:{number}: {word!r}: write {instead}" for name, text in texts() for number, word, instead in found(text)
    ]
    sys.exit("\n".join(lines) or 0)


if __name__ == "__main__":
    main()
