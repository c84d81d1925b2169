"""Build the program that renders: ``python -m kubectl_reconcile.source.render``. A second run finds it done."""

from __future__ import annotations

import sys

from kubectl_reconcile.source.render.program import RENDER

if __name__ == "__main__":
    sys.exit(RENDER.main())
