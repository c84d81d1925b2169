"""Metrics are a promise: what the dashboard asks for and what the documentation names is what a daemon exports."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kubectl_reconcile.engine.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[3]
PARTS = ("_bucket", "_sum", "_count", "_created")


def exported():
    families = re.findall(r"^# TYPE (\S+) (\S+)", Metrics().text().decode(), re.MULTILINE)
    return {name: kind for name, kind in families if not name.endswith("_created")}


def asked_for():
    board = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
    return {
        name
        for panel in board["panels"]
        for each in panel["targets"]
        for name in re.findall(r"reconcile_\w+", each["expr"])
    }


def test_each_metric_of_the_dashboard_is_exported():
    there = exported()
    names = {name + part for name, kind in there.items() for part in (PARTS if kind == "histogram" else ("",))}
    assert asked_for() <= names
    assert asked_for()


def test_each_metric_is_on_the_dashboard():
    shown = {re.sub(r"_bucket$", "", name) for name in asked_for()}
    assert exported().keys() == shown


def test_each_metric_is_documented():
    text = (ROOT / "docs/metrics.md").read_text()
    assert {name for name in exported() if f"`{name}" not in text} == set()


def test_panels_do_not_overlap():
    board = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
    places = [tuple(panel["gridPos"][each] for each in "xywh") for panel in board["panels"]]
    cells = [(x + dx, y + dy) for x, y, w, h in places for dx in range(w) for dy in range(h)]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
