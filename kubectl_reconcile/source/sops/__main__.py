"""Build the program that decrypts: ``python -m kubectl_reconcile.source.sops``. A second run finds it done."""

from __future__ import annotations

import sys

from kubectl_reconcile.source.sops.program import SOPS

if __name__ == "__main__":
    sys.exit(SOPS.main())
