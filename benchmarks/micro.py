"""What each step costs per object, in microseconds of this processor, and how fast the program starts. No cluster."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import orjson
import yaml

from benchmarks import merge_speed, plan_speed
from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.schema import schema_of_crd
from kubectl_reconcile.core.ssa.typed import fields_of

_COMMANDS = ("--help", "sync --help")
_STARTS = 5


def measure() -> dict[str, float]:
    """Return every figure by its name, which ends in its unit."""
    return {**_steps(), **{f"kubectl-reconcile {words}, ms": _start_ms(words) for words in _COMMANDS}}


def _steps() -> dict[str, float]:
    cr, web = merge_speed.custom_resource(), merge_speed.deployment()
    custom, built_in = schema_of_crd(merge_speed.CRD, "v1"), merge_speed.built_in_schemas()
    text, wire = yaml.safe_dump(cr).encode(), orjson.dumps(cr)
    owned = merge_speed.as_applied(web, built_in["Deployment"])["metadata"]["managedFields"][0]["fieldsV1"]
    best_us = merge_speed.best_us
    return {
        "parse a CR from YAML, us": best_us(lambda: parse(text, "a.yaml"), per_round=50),
        "parse a CR from JSON, us": best_us(lambda: parse(wire, "a.json"), per_round=50),
        "read a CRD's schema, us": best_us(
            lambda: fields_of(cr, schema_of_crd(merge_speed.CRD, "v1").root), per_round=50
        ),
        "read the managed fields of a Deployment, us": best_us(lambda: len(FieldSet.of_wire(owned))),
        "three-way merge of an unchanged CR, us": merge_speed.unchanged_us(cr, custom),
        "three-way merge of an unchanged Deployment, us": merge_speed.unchanged_us(web, built_in["Deployment"]),
        "plan an unchanged object with a warm verdict, us": _plan_us(),
    }


def _plan_us() -> float:
    manifests = [plan_speed.desired(number) for number in range(2000)]
    view = plan_speed.View([plan_speed.live(each) for each in manifests])
    first = build(plan_speed.inputs(manifests, view, {}))
    seconds, _ = plan_speed.best_s(lambda: build(plan_speed.inputs(manifests, view, first.verdicts)), rounds=3)
    return seconds / len(manifests) * 1e6


def _start_ms(words: str) -> float:
    program = Path(sys.executable).with_name("kubectl-reconcile")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(_STARTS):
        began_s = time.perf_counter()
        subprocess.run([program, *words.split()], env=environ, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - began_s) * 1000)
    return statistics.median(times)
