"""Which way a folder goes: its files are manifests, or it is rendered as an overlay or as a chart.

Pure.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Final

from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.charts import CHART_FILE, chart_file
from kubectl_reconcile.core.rendering.entries import KUSTOMIZATIONS
from kubectl_reconcile.core.resources.source import Render

TELLING: Final = (*KUSTOMIZATIONS, CHART_FILE)
"""The files of a folder by which its way is decided; those that are ignored say nothing."""


def way(render: Render, names: Iterable[str]) -> Render:
    """Return how a folder with the files *names* is read where its Sync says *render*: AUTO where that isn't known."""
    if render is not Render.AUTO:
        return render
    there = frozenset(posixpath.basename(name) for name in names)
    is_overlay, is_chart = not there.isdisjoint(KUSTOMIZATIONS), CHART_FILE in there
    if is_overlay and is_chart:
        return Render.AUTO
    return Render.KUSTOMIZE if is_overlay else Render.HELM if is_chart else Render.RAW


def undecided(folder: str) -> Problem:
    """Return the problem that a folder is both an overlay and a chart."""
    hint = "set spec.source.render to Kustomize or Helm, or list one of the two files in .reconcileignore"
    return Problem(
        chart_file(folder),
        0,
        "a Helm chart and a kustomization in one folder: only one of them can be rendered",
        hint,
    )
