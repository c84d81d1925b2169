"""Objects that come from another tool: whoever applied them, what leaves the source leaves the cluster."""

from __future__ import annotations

import pytest
import yaml

TOOLS = ("kustomize-controller", "helm", "argocd-controller")


def deployment(*, labels, env):
    container = {"name": "web", "image": "web:1", "env": [{"name": name, "value": "1"} for name in env]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "labels": dict.fromkeys(labels, "1")}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def config(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data}


@pytest.fixture
def source(tmp_path):
    """source(manifest) writes the one file of a folder, and returns the folder."""
    folder = tmp_path / "source"
    folder.mkdir()

    def write(manifest):
        (folder / "one.yaml").write_text(yaml.safe_dump(manifest))
        return str(folder)

    return write


@pytest.fixture
def applied_by(cluster, tmp_path):
    """applied_by("helm", manifest) applies as another tool does it, server-side."""

    def apply(manager, manifest):
        file = tmp_path / f"{manager}.yaml"
        file.write_text(yaml.safe_dump(manifest))
        cluster.kubectl(
            "apply", "--server-side", f"--field-manager={manager}", "-n", cluster.namespace, "-f", str(file)
        )

    return apply


@pytest.mark.parametrize("tool", TOOLS)
def test_a_label_and_an_env_entry_removed_from_git_go_whoever_applied_them(cluster, plugin, source, applied_by, tool):
    was = deployment(labels=("old", "kept"), env=("OLD", "KEPT"))
    applied_by(tool, was)
    folder = source(was)
    preview = plugin("diff", "-f", folder, "--name", "shop")
    assert preview.status == 1
    assert f"takes over what {tool} owned" in preview.out
    assert plugin("sync", "-f", folder, "--name", "shop").status == 0
    assert plugin("diff", "-f", folder, "--name", "shop").status == 0

    source(deployment(labels=("kept",), env=("KEPT",)))
    assert plugin("sync", "-f", folder, "--name", "shop").status == 0
    live = cluster.get("Deployment", "web")
    assert "old" not in live["metadata"]["labels"]
    assert live["metadata"]["labels"]["kept"] == "1"
    assert [one["name"] for one in live["spec"]["template"]["spec"]["containers"][0]["env"]] == ["KEPT"]
    assert tool not in {entry["manager"] for entry in live["metadata"]["managedFields"]}


def test_a_tool_that_the_sync_keeps_out_keeps_its_fields(cluster, plugin, source, applied_by):
    applied_by("helm", config(theirs="1", shared="1"))
    spec = {"takeOver": ["!helm"]}
    sync = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "shop", "namespace": cluster.namespace},
    }
    cluster.apply({**sync, "spec": spec})
    folder = source(config(shared="1"))
    preview = plugin("diff", "-f", folder, "--name", "shop")
    assert "takes over" not in preview.out
    assert plugin("sync", "-f", folder, "--name", "shop").status == 0
    assert cluster.get("ConfigMap", "one")["data"] == {"theirs": "1", "shared": "1"}


def test_an_update_of_owners_alone_says_which_fields_change_hands(cluster, plugin, source, applied_by):
    folder = source(config(a="1"))
    assert plugin("sync", "-f", folder, "--name", "shop").status == 0
    applied_by("operator", config(b="2"))
    source(config(a="1", b="2"))
    for layout in ("diff", "summary", "wide"):
        preview = plugin("diff", "-f", folder, "--name", "shop", "-o", layout)
        assert preview.status == 1
        assert ".data.b become ours, with the same value" in preview.out, layout


def test_a_controller_cannot_be_named_to_be_taken_over(cluster, plugin, source):
    sync = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "shop", "namespace": cluster.namespace},
        "spec": {"takeOver": ["kube-controller-manager"]},
    }
    cluster.apply(sync)
    refused = plugin("diff", "-f", source(config(a="1")), "--name", "shop")
    assert refused.status > 1
    assert "spec.takeOver: kube-controller-manager is a controller" in refused.err
