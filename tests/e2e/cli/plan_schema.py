"""The schema of plans that are written to files."""

import json
from pathlib import Path

import fastjsonschema

import kubectl_reconcile.core.planning

SCHEMA = fastjsonschema.compile(
    json.loads((Path(kubectl_reconcile.core.planning.__file__).parent / "plan.schema.json").read_text())
)
