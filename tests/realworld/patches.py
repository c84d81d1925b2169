"""Hold patches of a Sync against kustomize on the same objects: ``python -m tests.realworld.patches N``.

N pairs of objects and patches are drawn at random. What a Sync makes of them must be what ``kubectl kustomize`` makes of them, whether they are
manifests, an overlay or a chart; where one refuses a pair, both must. Prints what differs first; the exit status is 1 then.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from kubectl_reconcile.sandbox import build as sandbox
from kubectl_reconcile.source.render.program import RENDER
from kubectl_reconcile.source.render.renderer import Renderer
from tests.patch_pairs import difference, pairs, theirs


def main(arguments: Sequence[str]) -> int:
    """Hold so many pairs against kustomize; 1 where one differs."""
    number = int(arguments[0]) if arguments else 200
    kubectl = sandbox.build(lambda line: print(line, file=sys.stderr)).path("kubectl")
    RENDER.build(lambda line: print(line, file=sys.stderr))
    renderer, counts = Renderer(), Counter[str]()

    @settings(max_examples=number, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(pair=pairs())
    def same(pair: tuple[list[dict[str, Any]], dict[str, Any]]) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / ".git").mkdir()
            different = difference(renderer, kubectl, folder, pair)
            counts["refused by both" if theirs(kubectl, folder, pair[1]) is None else "built by both"] += 1
            assert not different, different

    try:
        same()
    except AssertionError as error:
        print(error)
        return 1
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
