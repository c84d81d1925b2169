"""Build the program that renders: ``python -m kubectl_reconcile.source.render``. A second run finds it done."""

from __future__ import annotations

import sys

from kubectl_reconcile.go_programs import GoBuildError
from kubectl_reconcile.source.render.program import build


def main() -> int:
    """Build it and say where it is; the exit status is 1 where that can't be done."""
    try:
        place = build(lambda line: print(line, file=sys.stderr))  # noqa: T201 - it talks on the terminal
    except GoBuildError as error:
        print(f"error: {error}\n{error.output}".rstrip(), file=sys.stderr)  # noqa: T201
        return 1
    print(place)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
