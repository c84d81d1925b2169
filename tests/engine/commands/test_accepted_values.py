"""Which drifted values may be written down: none that a Secret has, wherever somebody put it."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.parse import VariableUse
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Provenance
from kubectl_reconcile.core.ssa.verdict import FieldChange, Reason
from kubectl_reconcile.engine.commands.accept import _drifts

PASSWORD = "s3cr3t-password"
USES = (
    VariableUse(("data", "url"), ("PASSWORD",), secret=True, texts=(f"db://u:{PASSWORD}@db", PASSWORD)),
    VariableUse(("data", "host"), ("HOST",), texts=()),
)
DESIRED = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "web"},
    "data": {"url": "x", "host": "y", "a": "b"},
}
FIELDS = {
    "anything else": ("a", "update", "c", Reason.DRIFT, True),
    "what is gone": ("a", "add", None, Reason.DRIFT, True),
    "what Git changed, too": ("a", "update", "c", Reason.BOTH, False),
    "a value of a Secret": ("a", "update", PASSWORD, Reason.DRIFT, False),
    "a text with a value of a Secret in it": ("a", "update", f"the {PASSWORD}!", Reason.DRIFT, False),
    "a map with a value of a Secret in it": ("a", "update", {"b": [PASSWORD]}, Reason.DRIFT, False),
    "where a value of a Secret stood": ("url", "update", "other", Reason.DRIFT, False),
    "where a value of a ConfigMap stood": ("host", "update", "other", Reason.DRIFT, False),
}  # fmt: skip


@pytest.mark.parametrize(("name", "op", "live", "reason", "is_taken"), FIELDS.values(), ids=FIELDS)
def test_of_what_drifted_is_taken(name, op, live, reason, is_taken):
    field = FieldChange(FieldPath(("f:data", f"f:{name}")), op, live, "b", reason)
    ref = ObjectRef("", "ConfigMap", "shop", "web")
    change = Change(ref, Op.UPDATE, after=DESIRED, fields=[field], provenance=Provenance("web.yaml", 1, uses=USES))
    assert _drifts(change) == ([field] if is_taken else [])
