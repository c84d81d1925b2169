"""``report``: a namespace and a Sync as they are, told in Markdown and JSON."""

import json

from tests.e2e.cli.deployments import deployment


def test_a_report_tells_of_a_namespace_and_of_the_sync_in_it(plugin, cluster, tmp_path):
    (tmp_path / "web.yaml").write_text(json.dumps(deployment("mine")))
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    cluster.apply(deployment("theirs"))
    whole = json.loads(plugin("report", cluster.namespace, "-o", "json").out)
    assert whole["of"] == f"namespace {cluster.namespace}"
    assert {name: whole["inventory"][0][name] for name in ("kind", "count")} == {"kind": "Deployment.apps", "count": 2}
    assert [each["sync"] for each in whole["syncs"]] == ["shop"]
    part = json.loads(plugin("report", "shop", "-o", "json").out)
    assert part["images"] == [{"image": "nginx", "version": "1.29", "objects": ["Deployment.apps/mine"]}]
    assert plugin("report", "shop").out.startswith(f"# Report: Sync {cluster.namespace}/shop\n")
    assert plugin("report", "shop", "--since", "yesterday").status > 1
