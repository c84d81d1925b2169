"""Modules of installed packages, ours and others': imported for the kinds that there are, and told of where they can't be."""

from __future__ import annotations

import json
import secrets

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus

TELLS = """
import atexit, json, pathlib, sys
atexit.register(lambda: pathlib.Path({file!r}).write_text(json.dumps(sorted(sys.modules))))
"""
PLACES = ("kubectl_reconcile.modules.", "kubectl_reconcile_operators")


@pytest.fixture
def telling(starting_with, tmp_path):
    """Variables for a program that notes as it ends what it has imported, and modules() -> those of domain modules."""
    file = tmp_path / "imported.json"

    def modules():
        found = json.loads(file.read_text())
        assert "kubectl_reconcile.engine.modules.registry" in found
        return {name for name in found if name.startswith(PLACES)}

    return starting_with(TELLS.format(file=str(file))), modules


def test_what_has_no_custom_resource_of_an_operator_imports_none(
    plugin, memcached, config_map, tmp_path, monkeypatch, telling, crds
):
    variables, modules = telling
    for name, value in variables.items():
        monkeypatch.setenv(name, value, prepend=":")
    source = tmp_path / "source"
    source.mkdir()
    (source / "web.yaml").write_text(config_map("web"))
    assert plugin("diff", "-f", str(source)).status == ExitStatus.DIFFERENT
    assert modules() == set()
    (source / "cache.yaml").write_text(memcached("cache", size=1))
    assert plugin("diff", "-f", str(source)).status == ExitStatus.DIFFERENT
    assert modules() == {"kubectl_reconcile.modules.memcached"}


def test_a_daemon_imports_the_modules_of_the_kinds_that_there_are(
    new_daemon, cluster, follow, git_server, memcached, config_map, telling
):
    variables, modules = telling
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, **variables).start()
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"web.yaml": config_map("web"), "cache.yaml": memcached("cache", size=1)}))
    assert daemon.stop() == 0
    assert modules() == {"kubectl_reconcile.modules.memcached"}


@pytest.fixture
def broken(cluster, tmp_path, monkeypatch):
    """The group of a kind whose package is installed and lacks something that it imports."""
    group, place = f"g{secrets.token_hex(4)}.example.com", f"acme_{secrets.token_hex(4)}"
    site = tmp_path / "site"
    facts = site / f"{place}-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / f"{place}.py").write_text("import not_there_at_all\n")
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {place}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[kubectl_reconcile.modules]\nWidget.v1.{group} = {place}\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=":")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    cluster.apply({**crd, "metadata": {"name": f"widgets.{group}"}, "spec": spec})
    cluster.kubectl("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=300s")
    yield group
    cluster.delete("CustomResourceDefinition", f"widgets.{group}")


def test_a_module_that_cant_be_imported_is_told_of_with_its_object_and_the_others_go_on(
    broken, plugin, new_daemon, cluster, memcached, tmp_path, eventually
):
    widget = {"apiVersion": f"{broken}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}}
    source = tmp_path / "source"
    source.mkdir()
    (source / "widget.yaml").write_text(json.dumps(widget))
    (source / "cache.yaml").write_text(memcached("cache", size=1))
    why = "can't be imported: ModuleNotFoundError: No module named 'not_there_at_all'"

    said = plugin("diff", "-f", str(source))
    assert f"Widget.{broken} {cluster.namespace}/one: its module can't be loaded: acme_" in said.out + said.err
    assert why in said.out + said.err
    assert "hint: install package acme_" in said.out + said.err
    assert "Memcached" in said.out

    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace).start()
    path = f"/apis/{broken}/v1/namespaces/{cluster.namespace}/widgets/one?fieldManager=by-hand&force=true"
    cluster.api.ask(path, method="PATCH", body=widget, type_="application/apply-patch+yaml")
    eventually(lambda: f"{cluster.namespace}/one" in daemon.log and why in daemon.log, "the daemon says so, too")
    assert not cluster.api.ask(path.partition("?")[0]).get("status")
