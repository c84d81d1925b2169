"""Hooks among the modules, without a server to ask for their kinds."""

from __future__ import annotations

import json

from kubectl_reconcile.engine.modules.metacontroller import VARIABLE, modules_offline


def test_hooks_that_the_environment_names_are_modules_by_their_plural_names(tmp_path, monkeypatch):
    controller = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController", "metadata": {"name": "sets"},
        "spec": {
            "parentResource": {"apiVersion": "ctl.example.com/v1", "resource": "bluegreens"},
            "childResources": [{"apiVersion": "apps/v1", "resource": "replicasets"}],
            "hooks": {"sync": {"webhook": {"url": "http://127.0.0.1:1/sync"}}},
        },
    }  # fmt: skip
    (tmp_path / "hook.json").write_text(json.dumps(controller))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    [found] = modules_offline()
    assert (found.name, str(found.gvk), [str(gvk) for gvk in found.owns]) == (
        "sets", "bluegreens ctl.example.com/v1", ["replicasets apps/v1"],
    )  # fmt: skip
    monkeypatch.delenv(VARIABLE)
    assert modules_offline() == []
