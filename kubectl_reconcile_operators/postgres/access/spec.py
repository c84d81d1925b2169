"""What a MyDatabase's spec says of TLS.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kubectl_reconcile.module_api import SpecError

_SECRET = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class TlsWish:
    """The Secret with a server's certificate and its key, and whether connections without TLS are let in."""

    secret_name: str
    mode: Literal["Allow", "Require"] = "Allow"

    def check(self) -> None:
        """Make sure that it makes sense.

        Raises:
            SpecError: it doesn't; the field is named.
        """
        if not _SECRET.fullmatch(self.secret_name):
            raise SpecError(".spec.tls.secretName", f"must be the name of a Secret, not {self.secret_name[:60]!r}")
