"""Reports: what there is in the namespace, or of one Sync in it, written into a ConfigMap when it is due.

Nobody has to be asked for it, so it is there in the same pass. The ConfigMap stays until the next report takes its place.

Pure: a spec, live objects and a time in; a ConfigMap and a status out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

from kubectl_reconcile.module_api import (
    REPORTED,
    Context,
    Manifest,
    Owned,
    ReportScope,
    SpecError,
    report_of,
    report_texts,
)
from kubectl_reconcile.modules.checkup.verdict import Unjudging

FIELD: Final = ".spec.report"
SYNC: Final = "Sync.reconcile.dev"
_KINDS: Final = tuple(kind for _, kind in REPORTED)
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_MOST_BYTES: Final = 896 * 1024
"""How long a report may be in all its formats: a ConfigMap holds 1 MiB."""
_FORMATS: Final = {"markdown": "report.md", "json": "report.json"}


@dataclass(frozen=True, slots=True)
class ReportWish(Unjudging):
    """What is reported of, and how it is written; without a *format* in both ways."""

    of: Literal["namespace", "sync"] = "namespace"
    sync: str = ""
    format: Literal["", "markdown", "json"] = ""

    @property
    def needed(self) -> frozenset[str]:
        """The kinds without which there is nothing to tell."""
        return frozenset({SYNC} if self.of == "sync" else ())

    @property
    def basis(self) -> str:
        """What results must have in common to be compared."""
        return f"report-{self.of}-{self.sync}"

    def check(self) -> None:
        """Refuse what can't be meant so.

        Raises:
            SpecError: a field is named.
        """
        if self.of == "sync" and not _NAME.fullmatch(self.sync):
            raise SpecError(f"{FIELD}.sync", f"must be the name of a Sync of this namespace, not {self.sync!r}")
        if self.of == "namespace" and self.sync:
            raise SpecError(f"{FIELD}.sync", "can be set only with of: sync")

    def missing(self, owned: Owned) -> str:
        """Return what is in the way: there is no such Sync."""
        if self.of == "sync" and owned.other(SYNC, self.sync) is None:
            return (
                f"{FIELD}.sync: there is no Sync {self.sync} in this namespace (hint: correct the name, or create it)"
            )
        return ""

    def made(self, owned: Owned, ctx: Context, since: str) -> tuple[Manifest, dict[str, Any]]:
        """Return the ConfigMap of the report of now, and how many there are of what: the result."""
        objects = chain.from_iterable(map(owned.read, _KINDS))
        report = report_of(objects, ReportScope(ctx.namespace, self.sync, since), ctx.now)
        if unread := sorted(owned.unread):
            report["unread"] = unread
        texts = report_texts(report, [self.format] if self.format else list(_FORMATS), _MOST_BYTES)
        data = {_FORMATS[name]: text for name, text in texts.items()}
        metadata = {"name": report_name(ctx), "labels": ctx.labels()}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, dict(report["counts"])

    @staticmethod
    def summary(result: Mapping[str, Any]) -> str:
        """Return the result in a few words."""
        shown = ("objects", "unhealthy", "changes", "held", "problems")
        return ", ".join(f"{result.get(name)} {name}" for name in shown)


def report_name(ctx: Context) -> str:
    """Return the name of the ConfigMap of the report."""
    return ctx.name("report")
